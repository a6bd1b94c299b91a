//! Caching on demand: every miss brings its block in, a replacement algorithm says in whose place.

use super::contents::{Contents, Filled, Filling, Replacement};
use super::list::NONE;
use super::shares::Beneficiary;
use super::{Block, Geometry, Slot, Work};

/// The policy that a replacement algorithm makes.
pub type DemandFill<R> = Filled<R, OnDemand>;

/// A block comes into the slot of the one that its miss displaces.
pub struct OnDemand {
    /// By slot: the block that follows the one that is being demoted, if one does.
    successors: Vec<Block>,
}

impl OnDemand {
    /// Queues what brings an absent block into the slot of another, if one may be taken.
    fn replace<R: Replacement>(&mut self, contents: &mut Contents<R>, successor: Block) {
        let whom = match &contents.slots.owners {
            None => Beneficiary::Anyone,
            Some(owners) => match owners.beneficiary(successor) {
                Some(whom) => whom,
                None => return,
            },
        };
        contents.recall(successor, false);
        let Some(slot) = contents.give_up(whom) else {
            return contents.slots.cancel(successor);
        };
        self.successors[slot as usize] = successor;
    }
}

impl<R: Replacement> Filling<R> for OnDemand {
    fn new(geometry: Geometry) -> OnDemand {
        OnDemand {
            successors: vec![NONE; geometry.slots as usize],
        }
    }

    /// Queues what brings the block in, if anything can.
    fn miss(&mut self, contents: &mut Contents<R>, block: Block) {
        if contents.backlog.is_full() {
            return;
        }
        if contents.slots.may_take(block) {
            if let Some(slot) = contents.slots.take() {
                contents.recall(block, false);
                contents.backlog.queue(Work::Promote { block, slot });
            }
        } else if contents.may_make_room() {
            self.replace(contents, block);
        }
    }

    /// The promotion into the slot is queued only now, as it can be done only now.
    fn demoted(&mut self, contents: &mut Contents<R>, slot: Slot, success: bool) {
        let successor = std::mem::replace(&mut self.successors[slot as usize], NONE);
        match (successor, success) {
            (NONE, true) => contents.slots.release(slot),
            (NONE, false) => {}
            (block, true) => contents.backlog.queue(Work::Promote { block, slot }),
            (successor, false) => contents.slots.cancel(successor),
        }
    }
}
