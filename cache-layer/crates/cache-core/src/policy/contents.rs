//! What a cache holds once data takes time to move: slots, pending work, failures.
//!
//! LRU, SIEVE, S3-FIFO and ARC see none of it. A victim leaves their lists as soon as it is chosen,
//! so no block is chosen twice, and a new block enters them when its bytes are there. If all work
//! is finished before the next access, the misses are those of the textbook.

use fixedbitset::FixedBitSet;
use virtual_time::Nanos;

use super::backlog::Backlog;
use super::shares::{Beneficiary, Excess, Shares, Usage};
use super::slots::{Place, Slots};
use super::{Access, Block, Geometry, HOTTEST, Mapping, Policy, Slot, Work};

/// How many victims are looked at for one that its owner may lose, at a time.
pub(super) const SEARCH_MOST: u32 = 1024;

/// Which block makes room: an algorithm over the blocks that are resident and not on their way out.
pub(super) trait Replacement: Send {
    /// An empty cache.
    fn new(geometry: Geometry) -> Self;

    /// A request hits a block or misses it.
    fn request(&mut self, _access: Access, _is_hit: bool) {}

    /// A block is touched.
    fn touch(&mut self, slot: Slot);

    /// An absent block will be admitted: whether the algorithm remembers it, as one that was
    /// evicted only lately; then it forgets it.
    fn recall(&mut self, block: Block, slots: &mut Slots) -> bool;

    /// Takes the victim out, to make room for the block last recalled. There is a candidate.
    fn evict(&mut self, slots: &Slots) -> Slot;

    /// Takes a candidate out that has to leave whatever it is worth.
    fn remove(&mut self, slot: Slot);

    /// The victim has left its slot: it may be remembered.
    fn gone(&mut self, _block: Block, _slot: Slot, _slots: &mut Slots) {}

    /// A block is in its slot. `hot`: it was recalled, or comes with a proven worth.
    fn insert(&mut self, block: Block, slot: Slot, hot: bool);

    /// How much a block is worth, 0 to [`HOTTEST`]; from half of it on it is `hot` when loaded.
    fn heat(&self, slot: Slot) -> u8;

    /// Something of what [`Replacement::touch`] is going to change, so that it is in the processor's
    /// cache by then.
    fn peek(&self, slot: Slot) -> u32 {
        self.heat(slot).into()
    }

    /// Which slot [`Replacement::evict`] looks at first, if that is known.
    fn next_victim(&self) -> Option<Slot> {
        None
    }
}

/// What is in the cache, what decides among it, and the work that changes it.
pub(super) struct Contents<R> {
    pub(super) replacement: R,
    pub(super) slots: Slots,
    pub(super) backlog: Backlog,
    /// By slot: its block is no candidate, since it is leaving, or its owner must not lose it.
    aside: FixedBitSet,
    /// Number of candidates.
    candidates: u32,
    /// The shares are new: from here on, slots may hold what was pinned under those before.
    unpinned_from: Option<Slot>,
}

impl<R: Replacement> Contents<R> {
    pub(super) fn new(geometry: Geometry) -> Contents<R> {
        Contents {
            replacement: R::new(geometry),
            slots: Slots::new(geometry),
            backlog: Backlog::new(),
            aside: FixedBitSet::with_capacity(geometry.slots as usize),
            candidates: 0,
            unpinned_from: None,
        }
    }

    /// A resident block is touched.
    pub(super) fn touch(&mut self, slot: Slot) {
        match self.aside[slot as usize] {
            false => self.replacement.touch(slot),
            true => self.touch_aside(slot),
        }
    }

    /// One that was set aside may be a candidate again; one that is leaving leaves.
    #[cold]
    fn touch_aside(&mut self, slot: Slot) {
        let owner = self.slots.owner(slot);
        let Some(owners) = &mut self.slots.owners else {
            return;
        };
        if owners.is_parked(slot) {
            owners.unpark(owner, slot);
            self.list(slot, true);
        }
    }

    /// The block in a slot becomes a candidate.
    fn list(&mut self, slot: Slot, hot: bool) {
        self.aside.remove(slot as usize);
        self.candidates += 1;
        let block = self.slots.block(slot);
        self.replacement.insert(block, slot, hot);
    }

    /// Chooses the block that makes room, if one may; it is leaving then.
    fn victim(&mut self, whom: Beneficiary) -> Option<Slot> {
        let slot = self
            .parked_victim(whom)
            .or_else(|| self.listed_victim(whom))?;
        self.slots.leave(slot);
        Some(slot)
    }

    fn parked_victim(&mut self, whom: Beneficiary) -> Option<Slot> {
        let owners = self.slots.owners.as_mut()?;
        owners.parked_victim(whom)
    }

    /// The algorithm's choice; those that their owners must not lose are set aside.
    fn listed_victim(&mut self, whom: Beneficiary) -> Option<Slot> {
        for _ in 0..self.candidates.min(SEARCH_MOST) {
            let slot = self.replacement.evict(&self.slots);
            self.aside.insert(slot as usize);
            self.candidates -= 1;
            let owner = self.slots.owner(slot);
            match &mut self.slots.owners {
                // What is pinned need not be found again.
                Some(owners) if owners.is_pinned(owner) => {}
                Some(owners) if !owners.may_lose(owner, whom) => owners.park(owner, slot),
                _ => return Some(slot),
            }
        }
        None
    }

    /// Whether there may be a victim.
    pub(super) fn may_make_room(&self) -> bool {
        self.candidates > 0 || self.slots.owners.is_some()
    }

    /// Queues the demotion of what has to leave without anybody waiting for its slot.
    fn trim(&mut self, now: Nanos) {
        while !self.backlog.is_full() {
            let Some(excess) = self.slots.excess(now) else {
                return;
            };
            let slot = match excess {
                Excess::Block(_, slot) => {
                    self.take_out(slot);
                    slot
                }
                Excess::Victim(whom) => match self.victim(whom) {
                    Some(slot) => slot,
                    None => return,
                },
            };
            if let Some(owners) = &mut self.slots.owners {
                owners.vacate(slot);
            }
            let block = self.slots.block(slot);
            self.backlog.queue(Work::Demote { block, slot });
        }
    }

    /// The block in a slot has to leave whatever it is worth.
    fn take_out(&mut self, slot: Slot) {
        let owner = self.slots.owner(slot);
        match &mut self.slots.owners {
            Some(owners) if owners.is_parked(slot) => owners.unpark(owner, slot),
            _ if self.aside[slot as usize] => {}
            _ => {
                self.replacement.remove(slot);
                self.aside.insert(slot as usize);
                self.candidates -= 1;
            }
        }
        self.slots.leave(slot);
    }

    /// Queues the demotion of a victim, if there is one: out of that slot.
    pub(super) fn give_up(&mut self, whom: Beneficiary) -> Option<Slot> {
        let slot = self.victim(whom)?;
        let block = self.slots.block(slot);
        self.backlog.queue(Work::Demote { block, slot });
        Some(slot)
    }

    /// Goes on with new shares, by so many slots or blocks; whether nothing is left to do.
    fn continue_shares(&mut self, steps: u32) -> bool {
        if self.slots.has_parked_before() {
            for _ in 0..steps {
                let Some(slot) = self.slots.next_parked_before() else {
                    break;
                };
                self.park_aside(slot);
            }
        } else if let Some(from) = self.unpinned_from {
            let capacity = self.slots.capacity();
            let until = from.saturating_add(steps).min(capacity);
            (from..until).for_each(|slot| self.park_aside(slot));
            self.unpinned_from = (until < capacity).then_some(until);
        } else if self.slots.count_shares(steps) {
            self.unpinned_from = Some(0);
        }
        self.slots.is_divided() && self.unpinned_from.is_none()
    }

    /// What is no candidate under other shares goes before others from now on, until it is touched;
    /// what was pinned as well.
    fn park_aside(&mut self, slot: Slot) {
        if !self.aside[slot as usize] || self.slots.is_leaving(slot) {
            return;
        }
        let owner = self.slots.owner(slot);
        if let Some(owners) = &mut self.slots.owners {
            if !owners.is_pinned(owner) && !owners.is_parked(slot) {
                owners.park(owner, slot);
            }
        }
    }

    /// Starts to bring an absent block into a free slot, if there is one. `proven`: it is known to
    /// be worth keeping.
    pub(super) fn start(&mut self, block: Block, proven: bool) -> Option<Work> {
        if self.backlog.is_full() || !self.slots.may_take(block) {
            return None;
        }
        let slot = self.slots.take()?;
        self.recall(block, proven);
        let work = Work::Promote { block, slot };
        self.backlog.start(work);
        Some(work)
    }

    /// An absent block is going to come.
    pub(super) fn recall(&mut self, block: Block, proven: bool) {
        let recalled = self.replacement.recall(block, &mut self.slots);
        self.slots.expect(block, recalled || proven);
    }

    /// The victim has left its slot, which is not free yet; or, without `success`, stays.
    fn demoted(&mut self, block: Block, slot: Slot, success: bool) {
        if success {
            self.slots.remove(block);
            self.aside.remove(slot as usize);
            self.replacement.gone(block, slot, &mut self.slots);
        } else {
            self.slots.stay(slot);
            // As a new block, not as the next victim again: what failed may fail for a while.
            self.list(slot, false);
        }
    }

    fn promoted(&mut self, block: Block, slot: Slot, success: bool) {
        let hot = self.slots.place(block) == Place::Incoming { hot: true };
        if success {
            self.slots.settle(block, slot);
            self.list(slot, hot);
        } else {
            self.slots.cancel(block);
            self.slots.release(slot);
        }
    }
}

/// Whether a block that comes with a heat is of proven worth.
fn is_hot(heat: u8) -> bool {
    heat > HOTTEST / 2
}

/// When blocks come in, and when others leave for them.
pub(super) trait Filling<R: Replacement>: Send {
    /// Of an empty cache.
    fn new(geometry: Geometry) -> Self;

    /// A resident block is touched.
    fn touch(&mut self, contents: &mut Contents<R>, slot: Slot) {
        contents.touch(slot);
    }

    /// A request misses an absent block.
    fn miss(&mut self, contents: &mut Contents<R>, block: Block);

    /// A block has come into its slot.
    fn promoted(&mut self, _slot: Slot) {}

    /// A block has left its slot, which is not free yet; or, without `success`, stays.
    fn demoted(&mut self, contents: &mut Contents<R>, slot: Slot, success: bool);
}

/// The policy that a replacement algorithm and a way of filling the cache make: 8 bytes per slot
/// and 4 per block of the origin beside theirs.
pub struct Filled<R, F> {
    contents: Contents<R>,
    filling: F,
}

#[allow(private_bounds)] // a seal: the algorithms are those of this module
impl<R: Replacement, F: Filling<R>> Filled<R, F> {
    /// An empty cache.
    pub fn new(geometry: Geometry) -> Filled<R, F> {
        Filled {
            contents: Contents::new(geometry),
            filling: F::new(geometry),
        }
    }
}

impl<R: Replacement, F: Filling<R>> Policy for Filled<R, F> {
    fn access(&mut self, access: Access) -> Option<Slot> {
        match self.contents.slots.place(access.block) {
            Place::Resident(slot) => {
                self.contents.replacement.request(access, true);
                self.filling.touch(&mut self.contents, slot);
                return Some(slot);
            }
            Place::Incoming { .. } => {}
            Place::Absent => {
                self.contents.replacement.request(access, false);
                self.filling.miss(&mut self.contents, access.block);
            }
        }
        None
    }

    fn admit(&mut self, access: Access) -> Option<Work> {
        self.contents.backlog.take_offered(access.block)
    }

    fn resident(&self, block: Block) -> Option<Slot> {
        self.contents.slots.resident(block)
    }

    fn next_work(&mut self, now: Nanos, _idle: bool) -> Option<Work> {
        self.contents.trim(now);
        self.contents.backlog.oldest()
    }

    fn finished(&mut self, work: Work, success: bool) {
        self.contents.backlog.finish(work);
        match work {
            Work::Promote { block, slot } => {
                self.contents.promoted(block, slot, success);
                if success {
                    self.filling.promoted(slot);
                }
            }
            Work::Demote { block, slot } => {
                self.contents.demoted(block, slot, success);
                self.filling.demoted(&mut self.contents, slot, success);
            }
            Work::WriteBack { .. } => unreachable!("this policy hands out no write-backs"),
        }
    }

    fn insert(&mut self, block: Block, heat: u8) -> Option<Work> {
        match self.contents.slots.place(block) {
            Place::Absent => self.contents.start(block, is_hot(heat)),
            Place::Resident(_) | Place::Incoming { .. } => None,
        }
    }

    fn make_way(&mut self, block: Block, wanted: Block) -> bool {
        let Contents { slots, backlog, .. } = &self.contents;
        let slot = slots.expendable(block, wanted);
        let Some(slot) = slot.filter(|_| !backlog.is_full()) else {
            return false;
        };
        self.contents.take_out(slot);
        self.contents.backlog.queue(Work::Demote { block, slot });
        true
    }

    fn owner(&self, block: Block) -> Option<usize> {
        self.contents.slots.owner_of(block)
    }

    fn discard(&mut self, block: Block) -> Option<Work> {
        let Contents { slots, backlog, .. } = &self.contents;
        let slot = slots.resident(block)?;
        if slots.is_leaving(slot) || backlog.is_full() {
            return None;
        }
        self.contents.take_out(slot);
        let work = Work::Demote { block, slot };
        self.contents.backlog.start(work);
        Some(work)
    }

    fn leaving(&self) -> u32 {
        self.contents.slots.leaving()
    }

    fn load(&mut self, mapping: Mapping) {
        self.contents.slots.load(mapping.block, mapping.slot);
        self.contents.list(mapping.slot, is_hot(mapping.heat));
    }

    /// Dirty and clean blocks are worth the same here: a demotion writes back what must be, and the
    /// engine cleans in the order of the origin.
    fn set_dirty(&mut self, _slot: Slot, _dirty: bool) {}

    fn heat(&self, slot: Slot) -> u8 {
        self.contents.replacement.heat(slot)
    }

    fn begin_shares(&mut self, shares: &Shares) {
        self.contents.slots.begin_shares(shares);
    }

    fn continue_shares(&mut self, steps: u32) -> bool {
        self.contents.continue_shares(steps)
    }

    fn usage(&self) -> Usage {
        self.contents.slots.usage()
    }

    fn used(&self) -> u32 {
        self.contents.slots.used()
    }

    fn capacity(&self) -> u32 {
        self.contents.slots.capacity()
    }
}
