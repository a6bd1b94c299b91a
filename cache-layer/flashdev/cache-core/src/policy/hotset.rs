//! hotset's own policy: a block comes to the flash with the very request that misses it.
//!
//! A read that misses reads its whole block, which costs a disk little more than the part that was
//! asked for; a write that misses is put into a slot, and nothing is read. So slots must be free
//! before they are needed: [`Hotset`] keeps some, at the cost of the blocks that are worth least.
//!
//! Which those are, says [`S3Fifo`], with one addition against scans. Neighbouring requests touch a
//! block several times within a moment, though it is wanted once (correlated references: O'Neil,
//! O'Neil, Weikum, "The LRU-K page replacement algorithm", SIGMOD 1993). So a touch counts only
//! when a share of the cache has been brought in since the last one that did.

use super::demand::{Contents, Replacement};
use super::s3fifo::S3Fifo;
use super::shares::{Beneficiary, Shares, Usage};
use super::slots::Place;
use super::{Access, Block, Geometry, Mapping, Policy, Slot, Work};
use virtual_time::Nanos;

/// Share of the slots that are kept free: one in so many, …
const FREE_SHARE: u32 = 64;
/// … and no more than these.
const FREE_MOST: u32 = 256;

/// Share of the cache that is brought in before another touch of a block counts: one in so many.
const CORRELATED_SHARE: u32 = 256;

/// The policy: 29 bytes per slot, its half of the map among them, and 4 per block of the origin.
pub struct Hotset {
    contents: Contents<S3Fifo>,
    /// The promotion of the block that missed last.
    admitted: Option<Work>,
    /// By slot: how many blocks had been brought in when a touch last counted.
    counted_at: Vec<u32>,
    brought_in: u32,
    kept_free: u32,
    correlated: u32,
}

impl Hotset {
    /// An empty cache.
    pub fn new(geometry: Geometry) -> Hotset {
        Hotset {
            contents: Contents::new(geometry),
            admitted: None,
            counted_at: vec![0; geometry.slots as usize],
            brought_in: 0,
            kept_free: geometry.slots.div_ceil(FREE_SHARE).min(FREE_MOST),
            correlated: geometry.slots / CORRELATED_SHARE,
        }
    }

    fn touch(&mut self, slot: Slot) {
        let counted_at = &mut self.counted_at[slot as usize];
        if self.brought_in.wrapping_sub(*counted_at) < self.correlated {
            return;
        }
        *counted_at = self.brought_in;
        self.contents.touch(slot);
    }

    /// Once half of the slots that are kept free are in use, others are made free.
    fn make_room(&mut self) {
        let slots = &self.contents.slots;
        let (coming, reserved) = (slots.free() + slots.leaving(), slots.reserved());
        if coming > reserved + self.kept_free / 2 {
            return;
        }
        for _ in coming..reserved + self.kept_free {
            if !self.give_up(Beneficiary::Anyone) {
                return;
            }
        }
    }

    /// An owner near its limit gives up blocks of its own, so that its next ones have room.
    fn make_room_within(&mut self, block: Block) {
        loop {
            let owners = self.contents.slots.owners.as_ref();
            let whom = owners.and_then(|owners| owners.close_to_limit(block, self.kept_free));
            match whom {
                Some(whom) if self.give_up(whom) => {}
                _ => return,
            }
        }
    }

    /// Queues the demotion of a victim, if there is one.
    fn give_up(&mut self, whom: Beneficiary) -> bool {
        if self.contents.backlog.is_full() {
            return false;
        }
        let Some(slot) = self.contents.victim(whom) else {
            return false;
        };
        let block = self.contents.slots.block(slot);
        self.contents.backlog.queue(Work::Demote { block, slot });
        true
    }

    fn promoted(&mut self, block: Block, slot: Slot, success: bool) {
        self.contents.promoted(block, slot, success);
        if success {
            self.brought_in = self.brought_in.wrapping_add(1);
            self.counted_at[slot as usize] = self.brought_in;
        }
    }

    fn demoted(&mut self, block: Block, slot: Slot, success: bool) {
        self.contents.demoted(block, slot, success);
        if success {
            self.contents.slots.release(slot);
        }
    }
}

impl Policy for Hotset {
    fn access(&mut self, access: Access) -> Option<Slot> {
        match self.contents.slots.place(access.block) {
            Place::Resident(slot) => {
                self.touch(slot);
                return Some(slot);
            }
            Place::Incoming { .. } => {}
            Place::Absent => {
                let block = access.block;
                let work = self.contents.start(block, false);
                if let Some(unused) = std::mem::replace(&mut self.admitted, work) {
                    self.contents.backlog.queue_started(unused);
                }
                self.make_room();
                self.make_room_within(block);
            }
        }
        None
    }

    fn admit(&mut self, access: Access) -> Option<Work> {
        self.admitted.take_if(|work| work.block() == access.block)
    }

    fn resident(&self, block: Block) -> Option<Slot> {
        self.contents.slots.resident(block)
    }

    fn next_work(&mut self, now: Nanos, _idle: bool) -> Option<Work> {
        self.contents.trim(now);
        self.admitted
            .take()
            .or_else(|| self.contents.backlog.oldest())
    }

    fn finished(&mut self, work: Work, success: bool) {
        self.contents.backlog.finish(work);
        match work {
            Work::Promote { block, slot } => self.promoted(block, slot, success),
            Work::Demote { block, slot } => self.demoted(block, slot, success),
            Work::WriteBack { .. } => unreachable!("this policy hands out no write-backs"),
        }
    }

    fn insert(&mut self, block: Block) -> Option<Work> {
        self.contents.insert(block)
    }

    fn make_way(&mut self, block: Block, wanted: Block) {
        self.contents.make_way(block, wanted);
    }

    fn leaving(&self) -> u32 {
        self.contents.slots.leaving()
    }

    fn load(&mut self, mapping: Mapping) {
        self.contents.load(mapping);
    }

    /// Dirty and clean blocks are worth the same here; the engine cleans in the order of the origin.
    fn set_dirty(&mut self, _slot: Slot, _dirty: bool) {}

    fn heat(&self, slot: Slot) -> u8 {
        self.contents.replacement.heat(slot)
    }

    fn set_shares(&mut self, shares: &Shares) {
        self.contents.set_shares(shares);
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
