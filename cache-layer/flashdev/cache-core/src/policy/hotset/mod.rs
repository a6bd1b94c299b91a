//! hotset's own policy: a block comes to the flash with the very request that misses it.
//!
//! A read that misses reads its whole block, which costs a disk little more than the part that was
//! asked for; a write that misses is put into a slot, and nothing is read. So slots must be free
//! before they are needed: [`Hotset`] keeps some, at the cost of the blocks that are worth least.
//!
//! Which those are, says S3-FIFO, with two additions against scans. Neighbouring requests touch a
//! block several times within a moment, though it is wanted once (correlated references: O'Neil,
//! O'Neil, Weikum, "The LRU-K page replacement algorithm", SIGMOD 1993). So of
//! the touches of a moment one counts. And a block that
//! comes back has to have been wanted more often than the one that goes: [`Weighed`].

mod requests;
mod weighed;

use self::weighed::Weighed;
use super::contents::{Contents, Filled, Filling, Replacement};
use super::shares::Beneficiary;
use super::{Block, Geometry, Slot};

/// Share of the slots that are kept free: one in so many, …
const FREE_SHARE: u32 = 64;
/// … and no more than these.
const FREE_MOST: u32 = 256;

/// Requests within such a part of the cache's size, and …
const MOMENT_SHARE: u32 = 256;
/// … so many more, are of one moment.
const MOMENT_LEAST: u32 = 16;

/// The policy: 27 bytes per slot, its half of the map among them, and 5 per block of the origin.
pub type Hotset = Filled<Weighed, Ahead>;

/// Slots are made free before they are needed.
pub struct Ahead {
    /// By slot: the moment in which a touch last counted, its lowest bits.
    seen: Vec<u8>,
    moment: u8,
    moment_length: u32,
    /// Requests of this moment so far.
    requests: u32,
    kept_free: u32,
}

impl Ahead {
    /// Time passes with the requests.
    fn pass(&mut self) {
        self.requests += 1;
        if self.requests == self.moment_length {
            self.requests = 0;
            self.moment = self.moment.wrapping_add(1);
        }
    }

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
            seen: vec![0; geometry.slots as usize],
            moment: 0,
            moment_length: geometry.slots / MOMENT_SHARE + MOMENT_LEAST,
            requests: 0,
            kept_free: geometry.slots.div_ceil(FREE_SHARE).min(FREE_MOST),
        }
    }

    fn touch(&mut self, contents: &mut Contents<R>, slot: Slot) {
        self.pass();
        let seen = &mut self.seen[slot as usize];
        if *seen == self.moment {
            return;
        }
        *seen = self.moment;
        let block = contents.slots.block(slot);
        contents.replacement.request(block);
        contents.touch(slot);
    }

    fn miss(&mut self, contents: &mut Contents<R>, block: Block) {
        self.pass();
        contents.replacement.request(block);
        let work = contents.start(block, false);
        contents.backlog.offer(work);
        self.make_room(contents);
        self.make_room_within(contents, block);
    }

    fn promoted(&mut self, slot: Slot) {
        self.seen[slot as usize] = self.moment;
    }

    fn demoted(&mut self, contents: &mut Contents<R>, slot: Slot, success: bool) {
        if success {
            contents.slots.release(slot);
        }
    }
}

#[cfg(test)]
mod tests;
