//! Caching on demand: every miss brings its block in, a replacement algorithm says in whose place.

use std::hint::black_box;

use super::contents::{Contents, Filled, Filling, Replacement};
use super::list::NONE;
use super::shares::Beneficiary;
use super::slots::{Place, Slots};
use super::{Block, Geometry, HOTTEST, Mapping, Slot, Work};

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

/// What a touch has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touch {
    /// The block was there.
    pub hit: bool,
    /// It was not, and is now.
    pub came: bool,
    /// A block that had to go; the new one itself, if it was not let in.
    pub left: Option<Block>,
}

impl Touch {
    /// The block was there.
    pub const HIT: Touch = Touch {
        hit: true,
        came: false,
        left: None,
    };

    /// It was not, and is now, perhaps in place of another.
    pub fn came(left: Option<Block>) -> Touch {
        Touch {
            hit: false,
            came: true,
            left,
        }
    }
}

/// A replacement algorithm of the textbook: data moves in no time.
pub trait Textbook {
    /// These blocks are touched next, one after the other: what that needs of memory is read for all
    /// of them at once, so that the processor does not wait for each.
    fn prepare(&self, _blocks: impl Iterator<Item = Block>) {}

    /// A request touches a block.
    fn touch(&mut self, block: Block) -> Touch;
}

/// [`DemandFill`] where data moves in no time: the same slots, the same algorithm and so the same
/// misses, without the work that would be pending meanwhile, and without owners.
pub struct AtOnce<R> {
    replacement: R,
    slots: Slots,
}

#[allow(private_bounds)] // a seal, as of `Filled`
impl<R: Replacement> AtOnce<R> {
    /// A cache that holds these blocks.
    pub fn new(geometry: Geometry, warm: &[Mapping]) -> AtOnce<R> {
        let mut cache = AtOnce {
            replacement: R::new(geometry),
            slots: Slots::new(geometry),
        };
        for mapping in warm {
            cache.slots.load(mapping.block, mapping.slot);
            let is_hot = mapping.heat > HOTTEST / 2;
            cache
                .replacement
                .insert(mapping.block, mapping.slot, is_hot);
        }
        cache
    }

    fn miss(&mut self, block: Block) -> Touch {
        let recalled = self.replacement.recall(block, &mut self.slots);
        let (slot, left) = match self.slots.take() {
            Some(slot) => (slot, None),
            None => {
                let slot = self.replacement.evict(&self.slots);
                let victim = self.slots.block(slot);
                self.slots.vacate(victim);
                self.replacement.gone(victim, slot, &mut self.slots);
                (slot, Some(victim))
            }
        };
        self.slots.settle(block, slot);
        self.replacement.insert(block, slot, recalled);
        if let Some(next) = self.replacement.next_victim() {
            black_box(self.slots.block(next) ^ self.replacement.peek(next));
        }
        Touch::came(left)
    }
}

impl<R: Replacement> Textbook for AtOnce<R> {
    fn prepare(&self, blocks: impl Iterator<Item = Block>) {
        let resident = blocks.filter_map(|block| self.slots.resident(block));
        let read = resident.map(|slot| self.replacement.peek(slot));
        black_box(read.fold(0, |all, block| all ^ block));
    }

    fn touch(&mut self, block: Block) -> Touch {
        match self.slots.place(block) {
            Place::Resident(slot) => {
                self.replacement.touch(slot);
                Touch::HIT
            }
            Place::Incoming { .. } | Place::Absent => self.miss(block),
        }
    }
}
