//! bcache, as Linux has it: `drivers/md/bcache` (request.c, alloc.c, writeback.c), whose names are in
//! brackets. It caches what is requested, to the byte; here to the block, so blocks are to be as
//! large as the requests: a database's pages.
//!
//! Traces name no tasks, so tasks take turns ([`Settings::tasks`]); each fills a bucket of its own
//! (`pick_data_bucket` of drivers/md/bcache/alloc.c). What is missed is put there once it has been read
//! (`cached_dev_read_done`), so requests that are made at the same time get there in no order.
//!
//! Left out: what one task does on the whole (`sequential_io_avg`), read-ahead and metadata requests, the B-tree's own buckets, the writing back faster when dirty data is
//! scattered (`writeback_consider_fragment`), and garbage collection's delay: a bucket counts as what
//! it is at once. All writes count as synchronous, as a database's are.

use std::collections::BTreeSet;

use cache_core::engine::Mode;
use cache_core::policy::Block;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use virtual_time::{NANOS_PER_S, Nanos};

use crate::outcome::Outcome;
use crate::trace::Request;

const SECOND: Nanos = NANOS_PER_S as Nanos;
const SECTOR: u64 = 512;
/// Runs of requests that are remembered, and for how long (`RECENT_IO`, `check_should_bypass`).
const RECENT: usize = 128;
const RECENT_FOR: Nanos = 5 * SECOND;
/// Percent of the buckets with dirty data above which nothing is added (`CUTOFF_CACHE_ADD`), and
/// above which nothing is written back later (`CUTOFF_WRITEBACK_SYNC`).
const CUTOFF_ADD: u64 = 95;
const CUTOFF_WRITEBACK: u64 = 70;
/// What a bucket is worth when it was just used (`INITIAL_PRIO`).
const INITIAL_PRIO: u64 = 32_768;
/// A cache that is read and written this part of its size gets one older (`bch_rescale_priorities`).
const RESCALES: u64 = 1024;
/// Buckets that are given up together, of so many (`free_inc`).
const BATCH_SHIFT: u32 = 8;
/// Fewer buckets than this are no cache; the kernel wants 128.
const BUCKETS_LEAST: u32 = 8;
/// Buckets that are being filled (`MAX_OPEN_BUCKETS`). In caches that are too small for the kernel no
/// more than half of all.
const OPEN_MOST: usize = 128;
/// In place of the number of a task.
const NO_TASK: u32 = u32::MAX;
/// The controller of the rate of writing back (`__update_writeback_rate`): how often it looks, the
/// inverses of its terms, the least rate in sectors a second.
const RATE_UPDATE_S: i64 = 5;
const P_INVERSE: i64 = 40;
const I_INVERSE: i64 = 10_000;
const RATE_LEAST: i64 = 8;
/// How long it waits when it has written all back (`writeback_delay`).
const WRITEBACK_DELAY: Nanos = 30 * SECOND;
/// Most requests that are under way at a time, however many a trace says came at the same: as many as a
/// disk's queue takes (`BLKDEV_DEFAULT_RQ`).
const AT_ONCE: u32 = 128;
/// A flash that takes longer than this to answer is congested (`congested_read_threshold_us`,
/// `congested_write_threshold_us`), by so much at most (`CONGESTED_MAX`).
const CONGESTED_READ_US: u64 = 2000;
const CONGESTED_WRITE_US: u64 = 20_000;
const CONGESTED_MAX: i64 = 1024;
/// Half of 32 random bits are set, on average (`bch_get_congested`).
const RANDOM_BITS: i64 = 16;

/// What its files in /sys set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Size of a bucket.
    pub bucket_bytes: u64,
    /// Runs of requests from this length on go past the cache; 0: none do (`sequential_cutoff`).
    pub sequential_cutoff: u64,
    /// How much of the cache is to be dirty, percent (`writeback_percent`).
    pub writeback_percent: u8,
    /// How long the flash takes for a request, one after the other; 0: it is never congested.
    pub flash_us: u64,
    /// So many tasks make the requests, each the next one in its turn: a database's sessions.
    pub tasks: u32,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            bucket_bytes: 512 << 10,
            sequential_cutoff: 4 << 20,
            writeback_percent: 10,
            flash_us: 0,
            tasks: 16,
        }
    }
}

/// A block that was missed and is being read.
#[derive(Clone, Copy)]
struct Incoming {
    /// Of its request: those with the lowest are read first.
    turn: u64,
    task: u32,
    block: Block,
}

/// A place for a bucket that is being filled (`struct open_bucket`).
#[derive(Clone, Copy)]
struct Open {
    /// None: it is full, or there was none yet.
    bucket: Option<u32>,
    /// Who put something there last (`last_write_point`) …
    task: u32,
    /// … and where on the origin that ended (`key`).
    end: u64,
}

const NOTHING_OPEN: Open = Open {
    bucket: None,
    task: NO_TASK,
    end: u64::MAX,
};

#[derive(Clone, Default)]
struct Bucket {
    /// What was written to it, of which some may have another place by now.
    blocks: Vec<Block>,
    used: u32,
    dirty: u32,
    /// It is being filled, so that it cannot be given up (`pin`).
    open: bool,
    /// The tick of its last use.
    used_at: u64,
}

/// A run of requests, each beginning where the one before it ended.
#[derive(Clone, Copy, Default)]
struct Run {
    end: u64,
    bytes: u64,
    until: Nanos,
}

/// bcache.
pub struct Bcache {
    settings: Settings,
    mode: Mode,
    block_bytes: u64,
    bucket_blocks: usize,
    buckets: Vec<Bucket>,
    free: Vec<u32>,
    /// By block: its bucket plus 1, or 0.
    places: Vec<u32>,
    dirty: BTreeSet<Block>,
    dirty_buckets: u64,
    /// The one that was written to last is last (`data_buckets`).
    open: Vec<Open>,
    /// Who makes the request that is being served.
    task: u32,
    /// What was missed at this time.
    incoming: (Nanos, Vec<Incoming>),
    /// Requests of this time that are under way.
    at_once: u32,
    dice: SplitMix64,
    /// The one that has been extended last is last.
    runs: Vec<Run>,
    tick: u64,
    untick_bytes: u64,
    writer: Writer,
    congestion: Congestion,
}

impl Bcache {
    /// An empty cache.
    ///
    /// # Errors
    /// Why there cannot be one.
    pub fn new(
        origin_blocks: u32,
        slots: u32,
        block_bytes: u64,
        mode: Mode,
        settings: Settings,
    ) -> Result<Bcache, String> {
        let bucket_blocks = (settings.bucket_bytes / block_bytes).max(1);
        let count = (u64::from(slots) / bucket_blocks) as u32;
        if count < BUCKETS_LEAST {
            return Err(format!(
                "bcache needs {BUCKETS_LEAST} buckets of {} bytes or more: give a larger cache",
                bucket_blocks * block_bytes
            ));
        }
        Ok(Bcache {
            settings,
            mode,
            block_bytes,
            bucket_blocks: bucket_blocks as usize,
            buckets: vec![Bucket::default(); count as usize],
            free: (0..count).rev().collect(),
            places: vec![0; origin_blocks as usize],
            dirty: BTreeSet::new(),
            dirty_buckets: 0,
            open: vec![NOTHING_OPEN; OPEN_MOST.min(count as usize / 2)],
            task: 0,
            incoming: (0, Vec::new()),
            at_once: 0,
            dice: SplitMix64::seed_from_u64(0),
            runs: vec![Run::default(); RECENT],
            tick: 0,
            untick_bytes: 0,
            writer: Writer::default(),
            congestion: Congestion::default(),
        })
    }

    /// Serves a request that touches these blocks.
    pub fn serve(&mut self, request: &Request, outcome: &mut Outcome) {
        if self.incoming.0 != request.at || self.at_once == AT_ONCE {
            self.finish(outcome);
            self.incoming.0 = request.at;
        }
        self.at_once += 1;
        self.write_back(request.at, outcome);
        let turn = self.dice.next_u64();
        self.task = (self.task + 1) % self.settings.tasks.max(1);
        let bypass = self.bypasses(request);
        let first = (request.offset / self.block_bytes) as Block;
        let end = (request.end().max(request.offset + 1)).div_ceil(self.block_bytes) as Block;
        for block in first..end {
            let hit = match request.write {
                true => self.write(block, bypass, outcome),
                false => self.read(block, bypass, turn),
            };
            let bytes = request.bytes_in(block.into(), self.block_bytes);
            outcome.count(hit, request.write, bytes);
            outcome.bypassed += u64::from(bypass && (request.write || !hit));
            if hit || !bypass {
                self.congestion.flash(request, self.settings.flash_us);
            }
        }
    }

    /// What was missed by now is there; to be called at a trace's end.
    pub fn finish(&mut self, outcome: &mut Outcome) {
        self.at_once = 0;
        let mut incoming = std::mem::take(&mut self.incoming.1);
        incoming.sort_by_key(|entry| entry.turn);
        let task = self.task;
        for entry in incoming.drain(..) {
            self.task = entry.task;
            // Another may have brought it meanwhile.
            if self.places[entry.block as usize] == 0 && self.put(entry.block, outcome) {
                outcome.promotions += 1;
            }
        }
        (self.task, self.incoming.1) = (task, incoming);
    }

    /// `check_should_bypass`.
    fn bypasses(&mut self, request: &Request) -> bool {
        if self.in_use() > CUTOFF_ADD {
            return true;
        }
        let sequential = self.extend_run(request);
        let cutoff = self.settings.sequential_cutoff;
        let congested = self.congestion.sectors(request.at);
        let bypass = cutoff > 0 && sequential >= cutoff
            || congested.is_some_and(|sectors| sequential / SECTOR >= sectors);
        if !bypass {
            self.untick_bytes += request.bytes;
            let step = self.buckets.len() as u64 * self.settings.bucket_bytes / RESCALES;
            self.tick += self.untick_bytes / step.max(1);
            self.untick_bytes %= step.max(1);
        }
        bypass
    }

    /// How long the run is by now that a request belongs to.
    fn extend_run(&mut self, request: &Request) -> u64 {
        let follows = |run: &Run| run.end == request.offset && request.at < run.until;
        let at = self.runs.iter().rposition(follows);
        let before = self.runs.remove(at.unwrap_or(0));
        let bytes = request.bytes + at.map_or(0, |_| before.bytes);
        self.runs.push(Run {
            end: request.end(),
            bytes,
            until: request.at + RECENT_FOR,
        });
        bytes
    }

    /// Percent of the buckets that cannot be given up (`gc_stats.in_use`).
    fn in_use(&self) -> u64 {
        self.dirty_buckets * 100 / self.buckets.len() as u64
    }

    fn read(&mut self, block: Block, bypass: bool, turn: u64) -> bool {
        if let Some(bucket) = self.places[block as usize].checked_sub(1) {
            self.buckets[bucket as usize].used_at = self.tick;
            return true;
        }
        if !bypass {
            let task = self.task;
            self.incoming.1.push(Incoming { turn, task, block });
        }
        false
    }

    fn write(&mut self, block: Block, bypass: bool, outcome: &mut Outcome) -> bool {
        let is_cached = self.places[block as usize] != 0;
        let back = self.mode == Mode::Writeback && !bypass && self.in_use() <= CUTOFF_WRITEBACK;
        if bypass {
            // What is dirty beside the bytes that are written now must stay.
            if is_cached && !self.dirty.contains(&block) {
                self.remove(block);
                outcome.demotions += 1;
            }
            return is_cached;
        }
        if is_cached && self.dirty.contains(&block) && !back {
            self.clean(block);
        }
        let was_dirty = self.dirty.contains(&block);
        if is_cached {
            self.remove(block);
        }
        if !self.put(block, outcome) {
            outcome.write_backs += u64::from(was_dirty);
            return is_cached;
        }
        outcome.promotions += u64::from(!is_cached);
        if back {
            outcome.absorbed += 1;
            self.soil(block);
        }
        is_cached
    }

    /// Puts a block that is nowhere into an open bucket (`bch_alloc_sectors`).
    fn put(&mut self, block: Block, outcome: &mut Outcome) -> bool {
        let start = u64::from(block) * self.block_bytes;
        let at = self.pick(start);
        if self.open[at].bucket.is_none() {
            if self.free.is_empty() {
                self.give_up(outcome);
            }
            self.open[at].bucket = self.free.pop();
        }
        let Some(bucket) = self.open[at].bucket else {
            return false;
        };
        let state = &mut self.buckets[bucket as usize];
        state.blocks.push(block);
        state.used += 1;
        state.used_at = self.tick;
        state.open = state.blocks.len() < self.bucket_blocks;
        self.places[block as usize] = bucket + 1;
        self.open.remove(at);
        self.open.push(Open {
            bucket: Some(bucket).filter(|_| self.buckets[bucket as usize].open),
            task: self.task,
            end: start + self.block_bytes,
        });
        true
    }

    /// Where to put what begins here (`pick_data_bucket`): behind what ends here, or else where the
    /// same task put something, its oldest place, or else where nothing was put for longest.
    fn pick(&self, start: u64) -> usize {
        let mut of_task = None;
        for (at, open) in self.open.iter().enumerate().rev() {
            if open.end == start {
                return at;
            }
            if open.task == self.task {
                of_task = Some(at);
            }
        }
        of_task.unwrap_or(0)
    }

    /// A block is cached no more.
    fn remove(&mut self, block: Block) {
        self.clean(block);
        let bucket = self.places[block as usize] - 1;
        self.places[block as usize] = 0;
        self.buckets[bucket as usize].used -= 1;
        self.free_if_unused(bucket);
    }

    fn free_if_unused(&mut self, bucket: u32) {
        let state = &mut self.buckets[bucket as usize];
        if state.used == 0 && !state.open {
            state.blocks.clear();
            self.free.push(bucket);
        }
    }

    fn soil(&mut self, block: Block) {
        if self.dirty.insert(block) {
            let bucket = &mut self.buckets[self.places[block as usize] as usize - 1];
            bucket.dirty += 1;
            self.dirty_buckets += u64::from(bucket.dirty == 1);
        }
    }

    fn clean(&mut self, block: Block) {
        if self.dirty.remove(&block) {
            let bucket = &mut self.buckets[self.places[block as usize] as usize - 1];
            bucket.dirty -= 1;
            self.dirty_buckets -= u64::from(bucket.dirty == 0);
        }
    }

    /// Gives up the buckets that are worth least (`invalidate_buckets_lru`, `bucket_prio`).
    fn give_up(&mut self, outcome: &mut Outcome) {
        let prio = |bucket: &Bucket| INITIAL_PRIO.saturating_sub(self.tick - bucket.used_at);
        let least = self.buckets.iter().map(prio).min().unwrap_or(0);
        let floor = (INITIAL_PRIO - least) / 8;
        let mut worth: Vec<(u64, u32)> = (0..)
            .zip(&self.buckets)
            .filter(|(_, bucket)| bucket.dirty == 0 && !bucket.open)
            .map(|(number, bucket)| {
                (
                    (prio(bucket) - least + floor) * u64::from(bucket.used),
                    number,
                )
            })
            .collect();
        let batch = (self.buckets.len() >> BATCH_SHIFT).max(1).min(worth.len());
        if batch == 0 {
            return;
        }
        worth.select_nth_unstable(batch - 1);
        for &(_, number) in &worth[..batch] {
            let blocks = std::mem::take(&mut self.buckets[number as usize].blocks);
            for block in blocks {
                let place = &mut self.places[block as usize];
                if *place == number + 1 {
                    *place = 0;
                    outcome.demotions += 1;
                }
            }
            self.buckets[number as usize].used = 0;
            self.free.push(number);
        }
    }

    /// Writes back what is due by now.
    fn write_back(&mut self, now: Nanos, outcome: &mut Outcome) {
        let sectors = |blocks: usize| (blocks as u64 * self.block_bytes / SECTOR) as i64;
        let all = sectors(self.buckets.len() * self.bucket_blocks);
        let target = all * i64::from(self.settings.writeback_percent) / 100;
        let step = sectors(1).max(1) as u64 * SECOND;
        while self.writer.next_update <= now {
            let dirty = sectors(self.dirty.len());
            self.writer.update(dirty - target);
        }
        while self.writer.next <= now {
            let Some(block) = self.writer.next_block(&self.dirty) else {
                self.writer.next = now.max(self.writer.next) + 1;
                return;
            };
            self.clean(block);
            outcome.write_backs += 1;
            self.writer.next += step / self.writer.rate.max(1) as u64;
        }
    }
}

/// What writes back, in the order of the origin.
struct Writer {
    next_update: Nanos,
    /// When the next block is due.
    next: Nanos,
    integral: i64,
    /// Sectors a second.
    rate: i64,
    cursor: Block,
}

impl Default for Writer {
    fn default() -> Writer {
        Writer {
            next_update: 0,
            next: 0,
            integral: 0,
            rate: RATE_LEAST,
            cursor: 0,
        }
    }
}

impl Writer {
    /// `__update_writeback_rate`; `error`: how many sectors too many are dirty.
    fn update(&mut self, error: i64) {
        let keeps_up = self.next >= self.next_update;
        if error < 0 && self.integral > 0 || error > 0 && !keeps_up {
            self.integral += error * RATE_UPDATE_S;
        }
        let rate = error / P_INVERSE + self.integral / I_INVERSE;
        self.rate = rate.clamp(RATE_LEAST, NANOS_PER_S as i64);
        self.next_update += RATE_UPDATE_S as Nanos * SECOND;
    }

    /// The next dirty block; after the last of them it rests.
    fn next_block(&mut self, dirty: &BTreeSet<Block>) -> Option<Block> {
        match dirty.range(self.cursor..).next() {
            Some(&block) => {
                self.cursor = block + 1;
                Some(block)
            }
            None => {
                if !dirty.is_empty() {
                    self.next += WRITEBACK_DELAY;
                }
                self.cursor = 0;
                None
            }
        }
    }
}

/// Whether the flash has been slow lately.
#[derive(Default)]
struct Congestion {
    busy_until: Nanos,
    /// Below 0: by how much it is congested (`cache_set.congested`).
    congested: i64,
    last: Nanos,
}

impl Congestion {
    /// The flash has a request more (`bch_bbio_count_io_errors`).
    fn flash(&mut self, request: &Request, flash_us: u64) {
        if flash_us == 0 {
            return;
        }
        self.busy_until = self.busy_until.max(request.at) + flash_us * 1000;
        let us = (self.busy_until - request.at) / 1000;
        let threshold = match request.write {
            true => CONGESTED_WRITE_US,
            false => CONGESTED_READ_US,
        };
        if us > threshold {
            self.last = self.busy_until;
            let ms = (us / 1024) as i64;
            self.congested -= ms.min(CONGESTED_MAX + self.congested);
        } else if self.congested < 0 {
            self.congested += 1;
        }
    }

    /// Runs of so many sectors and more are to go past it (`bch_get_congested`).
    fn sectors(&self, now: Nanos) -> Option<u64> {
        if self.last == 0 || now < self.last {
            return None;
        }
        let calm = ((now - self.last) / 1000 / 1024) as i64 + self.congested;
        if calm >= 0 {
            return None;
        }
        let left = calm + CONGESTED_MAX;
        let sectors = if left > 0 {
            2f64.powf(left as f64 / 64.0) as i64
        } else {
            left
        };
        Some((sectors - RANDOM_BITS).max(1) as u64)
    }
}

#[cfg(test)]
mod tests;
