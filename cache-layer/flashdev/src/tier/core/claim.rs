//! What migrations do with the state: `begin_…` claims a block, `end_…` lets go of it and gives
//! back the pieces that waited.

use std::io;

use super::{Busy, Core, Waiting};
use crate::policy::{Block, Slot, Work};

impl Core {
    /// Claims a block that is to come. Its copying must wait for [`Core::is_quiet`].
    pub(in crate::tier) fn begin_promotion(&mut self, block: Block) -> bool {
        let free = !self.busy.contains_key(&block) && !self.resident.contains(block);
        if free {
            self.busy.insert(block, Busy::Arriving(Vec::new()));
        }
        free
    }

    /// Whether no write to the block is on its way to the origin.
    pub(in crate::tier) fn is_quiet(&self, block: Block) -> bool {
        !self.origin_writes.contains_key(&block)
    }

    /// Enters the block if it was copied, or else forgets about it; whether it is there now.
    pub(in crate::tier) fn end_promotion(
        &mut self,
        block: Block,
        slot: Slot,
        copied: bool,
    ) -> (bool, Vec<Waiting>) {
        let arrived = copied && self.meta.map(slot, block).is_ok();
        if arrived {
            self.resident.insert(block);
            self.counters.promotions += 1;
        }
        self.policy.finished(Work::Promote { block, slot }, arrived);
        (arrived, self.let_go(block))
    }

    /// Claims a block that is to go, unless something else is being done with it. Its copying
    /// must wait for [`Core::is_unused`].
    pub(in crate::tier) fn begin_demotion(&mut self, block: Block) -> bool {
        let free = !self.busy.contains_key(&block) && self.resident.contains(block);
        if free {
            self.busy.insert(block, Busy::Leaving(Vec::new()));
        }
        free
    }

    /// Whether no request uses the slot.
    pub(in crate::tier) fn is_unused(&self, slot: Slot) -> bool {
        let users = self.users[slot as usize];
        users.readers == 0 && users.writers == 0
    }

    /// Records that a block that was claimed has gone; the slot may not be used again before
    /// that is committed.
    pub(in crate::tier) fn forget(&mut self, block: Block, slot: Slot) -> io::Result<()> {
        self.meta.unmap(slot)?;
        self.counters.write_backs += u64::from(self.dirty.contains(block));
        self.mark_clean(block, slot);
        self.resident.remove(block);
        Ok(())
    }

    /// Frees the slot of a block that has gone; the block stays if it has not.
    pub(in crate::tier) fn end_demotion(
        &mut self,
        block: Block,
        slot: Slot,
        gone: bool,
    ) -> Vec<Waiting> {
        self.counters.demotions += u64::from(gone);
        self.policy.finished(Work::Demote { block, slot }, gone);
        self.let_go(block)
    }

    /// Claims a dirty block that is to be written back: its slot, unless it is in use.
    pub(in crate::tier) fn begin_write_back(&mut self, block: Block) -> Option<Slot> {
        if !self.dirty.contains(block) || self.busy.contains_key(&block) {
            return None;
        }
        let slot = self.policy.resident(block)?;
        if self.users[slot as usize].writers > 0 {
            return None;
        }
        let rewritten = false;
        self.busy.insert(block, Busy::WritingBack { rewritten });
        Some(slot)
    }

    /// Whether the block is clean now, `copied` being what came of the copy.
    pub(in crate::tier) fn end_write_back(
        &mut self,
        block: Block,
        slot: Slot,
        copied: bool,
    ) -> bool {
        let claim = self.busy.remove(&block);
        let same = matches!(claim, Some(Busy::WritingBack { rewritten: false }));
        self.counters.write_backs += u64::from(copied);
        let clean = copied && same && self.meta.clean(slot).is_ok();
        if clean {
            self.mark_clean(block, slot);
        }
        clean
    }

    /// Whether something is being done with the block.
    pub(in crate::tier) fn is_busy(&self, block: Block) -> bool {
        self.busy.contains_key(&block)
    }

    /// Whether nothing is being done with any block.
    pub(in crate::tier) fn is_calm(&self) -> bool {
        self.busy.is_empty()
    }

    fn let_go(&mut self, block: Block) -> Vec<Waiting> {
        match self.busy.remove(&block) {
            Some(Busy::Arriving(waiting) | Busy::Leaving(waiting)) => waiting,
            _ => Vec::new(),
        }
    }
}
