//! hotset's own policy: a block comes to the flash with the very request that misses it.
//!
//! A read that misses reads its whole block, which costs a disk little more than the part that was
//! asked for; a write that misses is put into a slot, and nothing is read. So slots must be free
//! before they are needed: [`Hotset`] keeps some, at the cost of the blocks that are worth least.
//!
//! Which those are, says S3-FIFO, with two additions. Neighbouring requests touch a
//! block several times within a moment, though it is wanted once (correlated references: O'Neil,
//! O'Neil, Weikum, "The LRU-K page replacement algorithm", SIGMOD 1993). So a touch counts only
//! when a share of the cache has been brought in since the last one that did. And what comes back
//! takes the place only of what is wanted less: [`Guarded`].

mod guarded;
mod streams;

use self::guarded::Guarded;
use super::contents::{Contents, Filled, Filling, Replacement};
use super::shares::Beneficiary;
use super::{Block, Geometry, Slot};

/// Share of the slots that are kept free: one in so many, …
const FREE_SHARE: u32 = 64;
/// … and no more than these.
const FREE_MOST: u32 = 256;

/// Share of the cache that is brought in before another touch of a block counts: one in so many.
const CORRELATED_SHARE: u32 = 256;

/// The policy: 29 bytes per slot, its half of the map among them, and 4 per block of the origin.
pub type Hotset = Filled<Guarded, Ahead>;

/// Slots are made free before they are needed.
pub struct Ahead {
    /// By slot: how many blocks had been brought in when a touch last counted.
    counted_at: Vec<u32>,
    brought_in: u32,
    kept_free: u32,
    correlated: u32,
}

impl Ahead {
    /// Once half of the slots that are kept free are in use, others are made free.
    fn make_room<R: Replacement>(&self, contents: &mut Contents<R>) {
        let slots = &contents.slots;
        let (coming, reserved) = (slots.free() + slots.leaving(), slots.reserved());
        if coming > reserved + self.kept_free / 2 {
            return;
        }
        for _ in coming..reserved + self.kept_free {
            if !give_up(contents, Beneficiary::Anyone) {
                return;
            }
        }
    }

    /// An owner near its limit gives up blocks of its own, so that its next ones have room.
    fn make_room_within<R: Replacement>(&self, contents: &mut Contents<R>, block: Block) {
        loop {
            let owners = contents.slots.owners.as_ref();
            let whom = owners.and_then(|owners| owners.close_to_limit(block, self.kept_free));
            match whom {
                Some(whom) if give_up(contents, whom) => {}
                _ => return,
            }
        }
    }
}

fn give_up<R: Replacement>(contents: &mut Contents<R>, whom: Beneficiary) -> bool {
    !contents.backlog.is_full() && contents.give_up(whom).is_some()
}

impl<R: Replacement> Filling<R> for Ahead {
    fn new(geometry: Geometry) -> Ahead {
        Ahead {
            counted_at: vec![0; geometry.slots as usize],
            brought_in: 0,
            kept_free: geometry.slots.div_ceil(FREE_SHARE).min(FREE_MOST),
            correlated: geometry.slots / CORRELATED_SHARE,
        }
    }

    fn touch(&mut self, contents: &mut Contents<R>, slot: Slot) {
        let counted_at = &mut self.counted_at[slot as usize];
        if self.brought_in.wrapping_sub(*counted_at) < self.correlated {
            return;
        }
        *counted_at = self.brought_in;
        contents.touch(slot);
    }

    fn miss(&mut self, contents: &mut Contents<R>, block: Block) {
        let work = contents.start(block, false);
        contents.backlog.offer(work);
        self.make_room(contents);
        self.make_room_within(contents, block);
    }

    fn promoted(&mut self, slot: Slot) {
        self.brought_in = self.brought_in.wrapping_add(1);
        self.counted_at[slot as usize] = self.brought_in;
    }

    fn demoted(&mut self, contents: &mut Contents<R>, slot: Slot, success: bool) {
        if success {
            contents.slots.release(slot);
        }
    }
}

#[cfg(test)]
mod tests;
