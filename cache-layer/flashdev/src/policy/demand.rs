//! Caching on demand: every miss brings its block in, a replacement algorithm says in whose place.
//!
//! Here is what LRU, SIEVE, S3-FIFO and ARC have in common once data takes time to move: slots,
//! pending work, failures. The algorithms see none of it. A victim leaves their lists as soon as
//! it is chosen, so no block is chosen twice, and a new block enters them when its bytes are
//! there. If all work is finished before the next access, the misses are those of the textbook.

use super::backlog::Backlog;
use super::list::NONE;
use super::slots::{Place, Slots};
use super::{Access, Block, Geometry, HOTTEST, Mapping, Policy, Slot, Work};
use crate::time::Nanos;

/// Which block makes room: an algorithm over the blocks that are resident and not on their way out.
pub(super) trait Replacement: Send {
    /// An empty cache.
    fn new(geometry: Geometry) -> Self;

    /// A block is touched.
    fn touch(&mut self, slot: Slot);

    /// A block that misses will be admitted: whether the algorithm remembers it, as one that was
    /// evicted only lately; then it forgets it.
    fn recall(&mut self, block: Block) -> bool;

    /// Takes the victim out, to make room for the block last recalled. There is a candidate.
    fn evict(&mut self, slots: &Slots) -> Slot;

    /// A block is in its slot. `hot`: it was recalled, or comes with a proven worth.
    fn insert(&mut self, block: Block, slot: Slot, hot: bool);

    /// How much a block is worth, 0 to [`HOTTEST`]; from half of it on it is `hot` when loaded.
    fn heat(&self, slot: Slot) -> u8;
}

/// The policy that a replacement algorithm makes: 8 bytes per slot and 4 per block of the origin
/// beside the algorithm's own.
pub struct DemandFill<R> {
    replacement: R,
    slots: Slots,
    /// By slot: the block that follows the one that is being demoted.
    successors: Vec<Block>,
    /// Number of blocks that are being demoted.
    leaving: u32,
    backlog: Backlog,
}

#[allow(private_bounds)] // a seal: the algorithms are those of this module
impl<R: Replacement> DemandFill<R> {
    /// An empty cache.
    pub fn new(geometry: Geometry) -> DemandFill<R> {
        DemandFill {
            replacement: R::new(geometry),
            slots: Slots::new(geometry),
            successors: vec![NONE; geometry.slots as usize],
            leaving: 0,
            backlog: Backlog::new(),
        }
    }

    /// Queues what brings an absent block in, if anything can.
    fn admit(&mut self, block: Block) {
        if self.backlog.is_full() {
            return;
        }
        if let Some(slot) = self.slots.take() {
            let hot = self.replacement.recall(block);
            self.slots.expect(block, hot);
            self.backlog.queue(Work::Promote { block, slot });
        } else if self.slots.used() > self.leaving {
            let hot = self.replacement.recall(block);
            self.slots.expect(block, hot);
            let slot = self.replacement.evict(&self.slots);
            self.successors[slot as usize] = block;
            self.leaving += 1;
            let block = self.slots.block(slot);
            self.backlog.queue(Work::Demote { block, slot });
        }
    }

    fn promoted(&mut self, block: Block, slot: Slot, success: bool) {
        let hot = self.slots.place(block) == Place::Incoming { hot: true };
        if success {
            self.slots.settle(block, slot);
            self.replacement.insert(block, slot, hot);
        } else {
            self.slots.cancel(block);
            self.slots.release(slot);
        }
    }

    /// The promotion into the slot is queued only now, as it can be done only now.
    fn demoted(&mut self, block: Block, slot: Slot, success: bool) {
        let successor = std::mem::replace(&mut self.successors[slot as usize], NONE);
        self.leaving -= 1;
        if success {
            self.slots.remove(block);
            self.backlog.queue(Work::Promote {
                block: successor,
                slot,
            });
        } else {
            self.slots.cancel(successor);
            // As a new block, not as the next victim again: what failed may fail for a while.
            self.replacement.insert(block, slot, false);
        }
    }
}

impl<R: Replacement> Policy for DemandFill<R> {
    fn access(&mut self, access: Access) -> Option<Slot> {
        match self.slots.place(access.block) {
            Place::Resident(slot) => {
                if self.successors[slot as usize] == NONE {
                    self.replacement.touch(slot);
                }
                Some(slot)
            }
            Place::Incoming { .. } => None,
            Place::Absent => {
                self.admit(access.block);
                None
            }
        }
    }

    fn resident(&self, block: Block) -> Option<Slot> {
        self.slots.resident(block)
    }

    fn next_work(&mut self, _now: Nanos, _idle: bool) -> Option<Work> {
        self.backlog.oldest()
    }

    fn finished(&mut self, work: Work, success: bool) {
        self.backlog.finish(work);
        match work {
            Work::Promote { block, slot } => self.promoted(block, slot, success),
            Work::Demote { block, slot } => self.demoted(block, slot, success),
            Work::WriteBack { .. } => unreachable!("this policy hands out no write-backs"),
        }
    }

    fn insert(&mut self, block: Block) -> Option<Work> {
        if self.slots.place(block) != Place::Absent || self.backlog.is_full() {
            return None;
        }
        let slot = self.slots.take()?;
        self.slots.expect(block, true);
        let work = Work::Promote { block, slot };
        self.backlog.start(work);
        Some(work)
    }

    fn load(&mut self, mapping: Mapping) {
        self.slots.load(mapping.block, mapping.slot);
        let hot = mapping.heat > HOTTEST / 2;
        self.replacement.insert(mapping.block, mapping.slot, hot);
    }

    /// Dirty and clean blocks are worth the same here: a demotion writes back what must be.
    fn set_dirty(&mut self, _slot: Slot, _dirty: bool) {}

    fn heat(&self, slot: Slot) -> u8 {
        self.replacement.heat(slot)
    }

    fn used(&self) -> u32 {
        self.slots.used()
    }

    fn capacity(&self) -> u32 {
        self.slots.capacity()
    }
}
