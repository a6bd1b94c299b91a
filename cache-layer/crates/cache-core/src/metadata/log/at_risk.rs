//! Slots at risk: which of them a recovery could take for dirty though they are not, until what ended
//! that is durable.

use super::super::slots::Content;
use super::{Log, Ticket, pop_until};
use crate::policy::Slot;

/// How many of what was settled are forgotten at a time, for the same reason: a checkpoint may settle as
/// many as a journal holds.
pub(super) const FORGOTTEN_AT_A_TIME: usize = 256;

impl Log {
    /// Whether a recovery could believe that the slot, which is not dirty, is.
    pub(super) fn may_be_believed_dirty(&self, slot: Slot) -> bool {
        let durable = |ceased: &Ticket| *ceased <= self.durable;
        self.at_risk.contains(slot as usize) && !self.ceased.get(&slot).is_some_and(durable)
    }

    /// Changes up to this one are durable: of the slots that they left clean or free, no recovery
    /// would believe that they are dirty.
    pub(super) fn settle(&mut self, durable: Ticket) {
        self.durable = self.durable.max(durable);
        self.forget_settled(FORGOTTEN_AT_A_TIME);
    }

    /// Forgets some of what does not matter any more.
    pub(super) fn forget_settled(&mut self, most: usize) {
        for _ in 0..most {
            let Some((ticket, slot)) = pop_until(&mut self.ceasings, self.durable) else {
                return;
            };
            if self.ceased.get(&slot) == Some(&ticket) {
                self.ceased.remove(&slot);
                let dirty = self.entry(slot).content == Content::Dirty;
                self.at_risk.set(slot as usize, dirty);
            }
        }
    }

    /// Whether the slot may not be used for another block before a commit: should the computer
    /// stop, it would be taken for a dirty block that it held before. dm-cache commits there as
    /// well (`mg_update_metadata`).
    pub fn is_at_risk(&self, slot: Slot) -> bool {
        let at_risk =
            || self.entry(slot).content == Content::Dirty || self.may_be_believed_dirty(slot);
        self.own.sync && !self.careless && at_risk()
    }
}
