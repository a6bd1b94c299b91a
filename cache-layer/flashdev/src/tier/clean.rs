//! Writing dirty blocks back of the tier's own accord: in the order of the origin, so that a
//! disk has short ways.

use std::io;
use std::sync::PoisonError;
use std::time::Duration;

use super::Tier;
use super::block_set::BlockSet;
use super::core::Core;
use crate::policy::{Block, Slot};
use crate::time::{NANOS_PER_S, Nanos};

/// How long cleaning rests after an error of the origin, device time.
const REST: Nanos = NANOS_PER_S as Nanos;

/// How often a flush tells what is left, real time.
const PROGRESS: Duration = Duration::from_millis(500);

/// How many blocks that cannot be written back just now are passed over at a time.
const PASSED_OVER_MAX: usize = 64;

/// What is to be cleaned.
pub(super) struct Cleaner {
    /// Share of the cache that may be dirty, percent; 100 leaves cleaning to the policy.
    pub(super) target_percent: u8,
    /// What somebody wants flushed and has not been copied since.
    wanted: BlockSet,
    /// The part of it that is being copied.
    under_way: BlockSet,
    /// Where to go on.
    cursor: Block,
    rest_until: Nanos,
    /// How often it went wrong, and the last time why.
    failures: u64,
    error: String,
}

impl Cleaner {
    pub(super) fn new(target_percent: u8, origin_blocks: u32) -> Cleaner {
        Cleaner {
            target_percent,
            wanted: BlockSet::new(origin_blocks),
            under_way: BlockSet::new(origin_blocks),
            cursor: 0,
            rest_until: 0,
            failures: 0,
            error: String::new(),
        }
    }

    /// Wants all of these blocks written back, as they are now; one that is written to
    /// meanwhile does not count again, or there would be no end.
    fn want(&mut self, dirty: &BlockSet) {
        self.wanted.insert_all(dirty);
    }

    /// How many blocks are still wanted.
    pub(super) fn left(&self) -> u32 {
        self.wanted.len() + self.under_way.len()
    }

    /// A block has become clean.
    pub(super) fn cleaned(&mut self, block: Block) {
        self.wanted.remove(block);
    }

    /// Cleaning a block has come to an end.
    pub(super) fn tried(&mut self, block: Block, copied: io::Result<()>, now: Nanos) {
        let was_wanted = self.under_way.remove(block);
        if let Err(error) = copied {
            self.failures += 1;
            self.error = error.to_string();
            self.rest_until = now + REST;
            if was_wanted {
                self.wanted.insert(block);
            }
        }
    }
}

impl Tier {
    /// Writes back what is dirty now and waits for it, as long as `progress` (blocks left)
    /// agrees; how many blocks were dirty, or what went wrong.
    pub(super) fn clean_all(&self, mut progress: impl FnMut(u32) -> bool) -> Result<u32, String> {
        let (dirty, failures) = {
            let core = &mut *self.lock();
            core.cleaner.want(&core.dirty);
            (core.dirty.len(), core.cleaner.failures)
        };
        loop {
            self.work.notify_one();
            let waited = self
                .changed
                .wait_timeout_while(self.lock(), PROGRESS, |core| {
                    let cleaner = &core.cleaner;
                    cleaner.left() > 0 && cleaner.failures == failures && !core.pool.stopping
                });
            let (mut core, _) = waited.unwrap_or_else(PoisonError::into_inner);
            let left = core.cleaner.left();
            if core.cleaner.failures > failures {
                core.cleaner.wanted.clear();
                let error = &core.cleaner.error;
                return Err(format!("{left} blocks are still dirty: {error}"));
            }
            let stopping = core.pool.stopping;
            drop(core);
            match left {
                0 => return Ok(dirty),
                _ if stopping || !progress(left) => {
                    return Err(format!(
                        "{left} blocks are still dirty: the flush was given up"
                    ));
                }
                _ => {}
            }
        }
    }
}

impl Core {
    /// Claims the next block to write back: what is wanted first, then what exceeds the target,
    /// then, in a tier that is idle, whatever is dirty.
    pub(super) fn next_cleaning(&mut self, now: Nanos, idle: bool) -> Option<(Block, Slot)> {
        if now < self.cleaner.rest_until {
            return None;
        }
        let flushing = self.cleaner.wanted.len() > 0;
        if !flushing && !self.wants_cleaning(idle) {
            return None;
        }
        let mut from = self.cleaner.cursor;
        for _ in 0..PASSED_OVER_MAX {
            let candidates = match flushing {
                true => &self.cleaner.wanted,
                false => &self.dirty,
            };
            let block = candidates.next(from).or_else(|| candidates.next(0))?;
            from = block + 1;
            if let Some(slot) = self.begin_write_back(block) {
                self.cleaner.cursor = from;
                if self.cleaner.wanted.remove(block) {
                    self.cleaner.under_way.insert(block);
                }
                return Some((block, slot));
            }
        }
        None
    }

    fn wants_cleaning(&self, idle: bool) -> bool {
        let target = u64::from(self.cleaner.target_percent);
        let dirty = u64::from(self.dirty.len());
        let exceeded = dirty * 100 > target * u64::from(self.policy.capacity());
        exceeded || (idle && target < 100 && dirty > 0)
    }
}
