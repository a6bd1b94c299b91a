//! Writing dirty blocks back of the cache's own accord: in the order of the origin, so that a disk
//! has short ways.

use roaring::RoaringBitmap;
use virtual_time::{NANOS_PER_S, Nanos};

use super::{Action, BlockLock, Device, Engine, Errno, WriteBackFailure};
use crate::policy::{Block, Slot};

/// How long cleaning rests after an error of the origin.
const REST: Nanos = NANOS_PER_S as Nanos;

/// From one block to the next where only the origin is idle: what is hot is soon dirty again, and each
/// copy takes flash and CPU from those who hit.
const GENTLY: Nanos = NANOS_PER_S as Nanos / 100;

/// How much of that time may be made up for: it is looked at ten times a second at least.
const MISSED_MOST: Nanos = NANOS_PER_S as Nanos / 10;

/// How many blocks that cannot be written back just now are passed over at a time; few blocks are as
/// many in tests.
const PASSED_OVER_MAX: usize = if cfg!(test) { 2 } else { 64 };

/// What is to be cleaned.
#[derive(Debug)]
pub(super) struct Cleaner {
    /// Share of the cache that may be dirty, percent; 100 leaves cleaning to the policy.
    pub(super) target_percent: u8,
    /// What somebody wants flushed and has not been copied since.
    wanted: RoaringBitmap,
    /// The part of it that is being copied.
    under_way: RoaringBitmap,
    /// The part of it that was being written to when its turn came.
    passed_over: RoaringBitmap,
    /// Where to go on.
    cursor: Block,
    rest_until: Nanos,
    /// When one may be copied again while users hit.
    gently_from: Nanos,
    /// How often it went wrong, and the last time why.
    pub(super) failures: u64,
    pub(super) error: Option<Errno>,
    /// Blocks whose last copy to the origin failed, whoever wanted it; since when there are any, and
    /// why the last one did.
    failing: RoaringBitmap,
    failing_since: Nanos,
    why_failing: (Device, Errno),
}

impl Cleaner {
    pub(super) fn new(target_percent: u8) -> Cleaner {
        Cleaner {
            target_percent,
            wanted: RoaringBitmap::new(),
            under_way: RoaringBitmap::new(),
            passed_over: RoaringBitmap::new(),
            cursor: 0,
            rest_until: 0,
            gently_from: 0,
            failures: 0,
            error: None,
            failing: RoaringBitmap::new(),
            failing_since: 0,
            why_failing: (Device::Origin, Errno::EIO),
        }
    }

    /// Wants all of these blocks written back, as they are now; one that is written to
    /// meanwhile does not count again, or there would be no end.
    pub(super) fn want(&mut self, dirty: &RoaringBitmap) {
        self.wanted |= dirty;
    }

    /// Whether it may copy a block while users hit.
    pub(super) fn may_gently(&self, now: Nanos) -> bool {
        now >= self.gently_from
    }

    /// Wants nothing any more.
    pub(super) fn give_up(&mut self) {
        self.wanted.clear();
        self.passed_over.clear();
    }

    /// How many blocks are still wanted.
    pub(super) fn left(&self) -> u64 {
        self.wanted.len() + self.under_way.len()
    }

    /// A block has become clean.
    pub(super) fn cleaned(&mut self, block: Block) {
        self.wanted.remove(block);
        self.passed_over.remove(block);
        self.failing.remove(block);
    }

    /// What keeps blocks from being copied, while something does.
    pub(super) fn failure(&self) -> Option<WriteBackFailure> {
        let (device, errno) = self.why_failing;
        (!self.failing.is_empty()).then(|| WriteBackFailure {
            device,
            errno,
            since: self.failing_since,
            blocks: self.failing.len(),
        })
    }

    /// A block was copied to the origin, or this device failed; returns whether that is news.
    fn copied(&mut self, now: Nanos, block: Block, result: Result<(), (Device, Errno)>) -> bool {
        let was_failing = !self.failing.is_empty();
        match result {
            Ok(()) => {
                self.failing.remove(block);
            }
            Err(why) => {
                self.why_failing = why;
                self.failing.insert(block);
                if !was_failing {
                    self.failing_since = now;
                }
            }
        }
        was_failing == self.failing.is_empty()
    }

    /// A block is going to be copied.
    fn begin(&mut self, now: Nanos, block: Block) {
        self.cursor = block + 1;
        let earliest = now.saturating_sub(MISSED_MOST);
        self.gently_from = self.gently_from.max(earliest) + GENTLY;
        self.passed_over.remove(block);
        if self.wanted.remove(block) {
            self.under_way.insert(block);
        }
    }

    /// Cleaning a block has come to an end.
    pub(super) fn tried(&mut self, now: Nanos, block: Block, copied: Result<(), Errno>) {
        let was_wanted = self.under_way.remove(block);
        if let Err(errno) = copied {
            self.failures += 1;
            self.error = Some(errno);
            self.rest_until = now + REST;
            if was_wanted {
                self.wanted.insert(block);
            }
        }
    }
}

impl Engine {
    /// A dirty block was copied to the origin, or could not be: told at once, as nobody waits for it.
    pub(super) fn note_write_back(
        &mut self,
        now: Nanos,
        block: Block,
        result: Result<(), (Device, Errno)>,
    ) {
        if self.cleaner.copied(now, block, result) {
            self.actions.push(Action::HealthChanged);
        }
    }

    /// The next block to write back: what is wanted first, then what exceeds the target, then, in a
    /// cache that is idle, whatever is dirty.
    pub(super) fn next_cleaning(&mut self, now: Nanos, idle: bool) -> Option<(Block, Slot)> {
        if now < self.cleaner.rest_until {
            return None;
        }
        let flushing = !self.cleaner.wanted.is_empty();
        if !flushing && !self.wants_cleaning(idle) {
            return None;
        }
        let mut from = self.cleaner.cursor;
        for _ in 0..PASSED_OVER_MAX {
            let candidates = match flushing {
                true => &self.cleaner.wanted,
                false => &self.dirty,
            };
            let ahead = candidates.range(from..).next();
            let block = ahead.or_else(|| candidates.min())?;
            from = block + 1;
            let quiet = self.cleanable(block);
            if let Some(slot) = quiet.or_else(|| self.flushable(block)) {
                self.cleaner.begin(now, block);
                return Some((block, slot));
            }
        }
        // So that they do not hide those behind them.
        self.cleaner.cursor = from;
        None
    }

    /// The slot of a dirty block with which nothing else is being done.
    pub(super) fn cleanable(&self, block: Block) -> Option<Slot> {
        if !self.dirty.contains(block) || self.locks.contains_key(&block) {
            return None;
        }
        let slot = self.policy.resident(block)?;
        (self.users.writers(slot) == 0).then_some(slot)
    }

    /// The slot of a block that is to be flushed though somebody writes to it, each time that its turn
    /// comes: such a block is never clean, and needs no cleaning, but a flush would never end. What was
    /// answered before the flush began is on the flash and is copied. What is being written may be copied
    /// in part, which harms nobody: the block stays dirty, so the flash counts.
    fn flushable(&mut self, block: Block) -> Option<Slot> {
        if !self.cleaner.wanted.contains(block) || self.locks.contains_key(&block) {
            return None;
        }
        let slot = self.policy.resident(block)?;
        // It may be quiet the next time.
        let passed_over_before = !self.cleaner.passed_over.insert(block);
        passed_over_before.then_some(slot)
    }

    /// Begins to write a block back; it does not become clean by that if somebody writes to it now.
    pub(super) fn lock_for_cleaning(&mut self, block: Block, slot: Slot) {
        let lock = BlockLock::WritingBack {
            rewritten: self.users.writers(slot) > 0,
            next: None,
            discards: Vec::new(),
        };
        self.locks.insert(block, lock);
    }

    fn wants_cleaning(&self, idle: bool) -> bool {
        let target = u64::from(self.cleaner.target_percent);
        let dirty = self.dirty.len();
        let exceeded = dirty * 100 > target * u64::from(self.policy.capacity());
        exceeded || (idle && target < 100 && dirty > 0)
    }
}
