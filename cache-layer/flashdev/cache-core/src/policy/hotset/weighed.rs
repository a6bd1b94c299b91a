//! Who comes into the main queue has been wanted more often than the one that goes.
//!
//! [`S3Fifo`] lets a block into its main queue as soon as it misses again. Three reads of a cold
//! table from end to end, with nothing else going on, so push a hot one out: its blocks have lost
//! the three touches that are counted by the second turn of the queue. So here a block that comes
//! back meets the one that the main queue would give up next, and the one that was requested more
//! often stays, as [`Requests`] counts (TinyLFU's rule of admission: Einziger, Friedman, Manes, ACM
//! Transactions on Storage 13(4), 2017). What was hot once does not stay for ever: it has so many
//! turns without a touch.

use super::super::contents::Replacement;
use super::super::s3fifo::S3Fifo;
use super::super::slots::Slots;
use super::super::{Block, Geometry, HOTTEST, Slot};
use super::requests::Requests;

/// Turns of the main queue that a block may go untouched; the next one to come back takes its place.
const TURNS_MOST: u8 = 8;
/// How many blocks are passed over to find one that was not touched lately; after these, the main
/// queue is in use as it is.
const PASSED_MOST: u32 = 16;
/// Heat above [`HOTTEST`]'s half grows by so much when requests double.
const HEAT_OF_DOUBLE: f32 = 4.0;

/// S3-FIFO with admission by requests: 22 bytes per slot and 1 per block of the origin.
pub struct Weighed {
    queues: S3Fifo,
    requests: Requests,
    /// By slot: turns of the main queue since it was touched.
    turns: Vec<u8>,
}

impl Weighed {
    /// Whether a block that has come back is to be in the main queue. If so, the one whose place it
    /// takes is the next to go; if not, that one stays for another turn.
    fn wins(&mut self, block: Block, slots: &Slots) -> bool {
        for _ in 0..PASSED_MOST {
            let Some(oldest) = self.queues.oldest_of_full_main() else {
                return true;
            };
            if !self.queues.is_touched(oldest) {
                return self.beats(block, oldest, slots);
            }
            self.queues.spare(oldest);
        }
        false
    }

    fn beats(&mut self, block: Block, rival: Slot, slots: &Slots) -> bool {
        let turns = &mut self.turns[rival as usize];
        let is_wanted = self.requests.of(block) > self.requests.of(slots.block(rival));
        if is_wanted || *turns >= TURNS_MOST {
            self.queues.demote(rival);
            return true;
        }
        *turns += 1;
        self.queues.spare(rival);
        false
    }
}

impl Replacement for Weighed {
    fn new(geometry: Geometry) -> Weighed {
        Weighed {
            queues: S3Fifo::new(geometry),
            requests: Requests::new(geometry),
            turns: vec![0; geometry.slots as usize],
        }
    }

    fn request(&mut self, block: Block) {
        self.requests.count(block);
    }

    fn touch(&mut self, slot: Slot) {
        self.turns[slot as usize] = 0;
        self.queues.touch(slot);
    }

    fn recall(&mut self, block: Block, slots: &mut Slots) -> bool {
        self.queues.recall(block, slots) && self.wins(block, slots)
    }

    fn evict(&mut self, slots: &Slots) -> Slot {
        self.queues.evict(slots)
    }

    fn remove(&mut self, slot: Slot) {
        self.queues.remove(slot);
    }

    fn gone(&mut self, block: Block, slot: Slot, slots: &mut Slots) {
        self.queues.gone(block, slot, slots);
    }

    fn insert(&mut self, block: Block, slot: Slot, hot: bool) {
        self.turns[slot as usize] = 0;
        self.queues.insert(block, slot, hot);
    }

    fn next_victim(&self) -> Option<Slot> {
        self.queues.next_victim()
    }

    /// By its queue alone, see [`Weighed::heat_of`].
    fn heat(&self, slot: Slot) -> u8 {
        self.queues.heat(slot)
    }

    /// Its queue is one half, the logarithm of its requests the rest.
    fn heat_of(&self, block: Block, slot: Slot) -> u8 {
        let requests = f32::from(self.requests.of(block)) + 1.0;
        let rest = (requests.log2() * HEAT_OF_DOUBLE) as u8;
        let half = HOTTEST / 2;
        let base = if self.queues.is_in_main(slot) {
            half + 1
        } else {
            0
        };
        base + rest.min(half)
    }

    /// A warm-up's block, or one from before a restart, was wanted as often as its heat says.
    fn learn(&mut self, block: Block, heat: u8) {
        let rest = f32::from(heat % (HOTTEST / 2 + 1));
        let requests = (rest / HEAT_OF_DOUBLE).exp2() - 1.0;
        self.requests.raise(block, requests.round() as u8);
    }
}
