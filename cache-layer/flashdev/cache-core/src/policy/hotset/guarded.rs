//! A scan displaces what nobody has wanted for long, and nothing else.
//!
//! [`S3Fifo`] lets a block into its main queue as soon as it misses again. Three reads of a cold
//! table from end to end, with nothing else going on, so push a hot one out: its blocks have lost
//! the three touches that are counted by the second turn of the queue. So here a block that comes
//! back with a scan meets the one that the main queue would give up next, and takes its place only
//! if that has not been touched for some turns. Other blocks come in as ever: a working set that
//! moves is cached at once.

use fixedbitset::FixedBitSet;

use super::super::contents::Replacement;
use super::super::s3fifo::S3Fifo;
use super::super::slots::Slots;
use super::super::{Access, Block, Geometry, Slot};
use super::streams::Streams;

/// For so many turns of the main queue a block that nobody touches withstands scans.
const TURNS_MOST: i8 = 8;
/// Share of the slots that is enough for scans to pass through: one in so many.
const PASSAGE_SHARE: u32 = 64;

/// S3-FIFO that withstands scans: 21 bytes per slot and a bit per block of the origin.
pub struct Guarded {
    queues: S3Fifo,
    streams: Streams,
    /// By block: whether it missed with a scan, and has not come back without one since.
    scanned: FixedBitSet,
    /// Whether the last miss was one of a scan.
    scans: bool,
    /// The small queue may be that long with what scans have brought in.
    passage: u32,
}

impl Guarded {
    /// Learns from a read that misses whether somebody scans.
    fn read_absent(&mut self, block: Block) {
        let scanned = self.streams.miss(block);
        self.scans = scanned.is_some();
        for block in scanned.into_iter().flatten() {
            self.scanned.insert(block as usize);
        }
    }

    /// Whether a block that comes back with a scan is to be in the main queue. If so, the one whose
    /// place it takes is the next to go; if not, that one stays for another turn.
    fn wins(&mut self) -> bool {
        let Some(oldest) = self.queues.oldest_of_full_main() else {
            return true;
        };
        let is_forsaken = self.queues.untouched_turns(oldest) >= TURNS_MOST;
        if is_forsaken {
            self.queues.demote(oldest);
        } else {
            self.queues.spare(oldest);
        }
        is_forsaken
    }
}

impl Replacement for Guarded {
    fn new(geometry: Geometry) -> Guarded {
        Guarded {
            queues: S3Fifo::new(geometry),
            streams: Streams::new(),
            scanned: FixedBitSet::with_capacity(geometry.origin_blocks as usize),
            scans: false,
            passage: geometry.slots / PASSAGE_SHARE,
        }
    }

    fn request(&mut self, access: Access, is_hit: bool) {
        match (is_hit, access.write) {
            (true, false) => self.streams.hit(access.block),
            (true, true) => {}
            (false, false) => self.read_absent(access.block),
            (false, true) => self.scans = false,
        }
    }

    fn touch(&mut self, slot: Slot) {
        self.queues.touch(slot);
    }

    fn recall(&mut self, block: Block, slots: &mut Slots) -> bool {
        if !self.queues.recall(block, slots) {
            return false;
        }
        let came_with_scan = self.scanned[block as usize];
        if !self.scans {
            self.scanned.remove(block as usize);
        }
        !came_with_scan || self.wins()
    }

    /// What a scan brings in takes the place of what it brought before.
    fn evict(&mut self, slots: &Slots) -> Slot {
        let from_small = self.scans && self.queues.small() > self.passage;
        let victim = from_small.then(|| self.queues.evict_small()).flatten();
        victim.unwrap_or_else(|| self.queues.evict(slots))
    }

    fn remove(&mut self, slot: Slot) {
        self.queues.remove(slot);
    }

    fn gone(&mut self, block: Block, slot: Slot, slots: &mut Slots) {
        self.queues.gone(block, slot, slots);
    }

    fn insert(&mut self, block: Block, slot: Slot, hot: bool) {
        self.queues.insert(block, slot, hot);
    }

    fn next_victim(&self) -> Option<Slot> {
        self.queues.next_victim()
    }

    fn heat(&self, slot: Slot) -> u8 {
        self.queues.heat(slot)
    }
}
