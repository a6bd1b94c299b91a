//! Who comes back has to be wanted more than whom it displaces.
//!
//! [`S3Fifo`] lets a block into its main queue as soon as it misses again. In a cache that holds a
//! small share of what is asked for at random, most of what misses again is no hotter than the
//! rest, and turns the main queue over so fast that hot blocks lose their touches and go. So here a
//! block that comes back meets the one that the main queue would give up next, and takes its place
//! only if it had left lately and the other was not touched in its last turn (admission by
//! comparison: Einziger, Friedman, Manes, "TinyLFU: A highly efficient cache admission policy", ACM
//! Transactions on Storage 13(4), 2017). One that stays has a touch less, whoever it met: a working
//! set that has moved is there after some turns.
//!
//! Three reads of a cold table from end to end, with nothing else going on, would push a hot set out
//! all the same. So a block that comes back with a scan takes the other's place only if that has not
//! been touched for some turns.

use roaring::RoaringBitmap;

use super::super::contents::Replacement;
use super::super::s3fifo::S3Fifo;
use super::super::slots::Slots;
use super::super::{Access, Block, Geometry, Slot};
use super::streams::Streams;

/// For so many turns of the main queue a block that nobody touches withstands scans.
const TURNS_MOST: i8 = 8;
/// Share of the slots that is enough for scans to pass through: one in so many.
const PASSAGE_SHARE: u32 = 64;

/// S3-FIFO with admission: 21 bytes per slot, and a bit at most per block of the origin that is scanned.
pub struct Guarded {
    queues: S3Fifo,
    streams: Streams,
    /// By block: whether it missed with a scan, and has not come back without one since.
    scanned: RoaringBitmap,
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
        if let Some(blocks) = scanned {
            self.scanned.insert_range(blocks);
        }
    }

    /// Whether a block that comes back, with a scan or without, is to be in the main queue. If not,
    /// the one whose place it would take stays for another turn; if a scan's is to be, that one is the
    /// next to go.
    fn wins(&mut self, came_with_scan: bool) -> bool {
        let Some(oldest) = self.queues.oldest_of_full_main() else {
            return true;
        };
        if !came_with_scan {
            return !self.queues.withstands(oldest);
        }
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
            scanned: RoaringBitmap::new(),
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
        let Some(left_lately) = self.queues.recall_lately(block, slots) else {
            return false;
        };
        let came_with_scan = self.scanned.contains(block);
        if !self.scans {
            self.scanned.remove(block);
        }
        self.wins(came_with_scan) && (came_with_scan || left_lately)
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
