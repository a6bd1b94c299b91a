//! Work of many blocks that somebody waits for: warm-ups, and flushes of the cache.
//!
//! The engine gets on with a job whether or not somebody watches; who does asks for the progress.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU64;

use roaring::RoaringBitmap;
use smallvec::SmallVec;
use virtual_time::{NANOS_PER_S, Nanos};

use super::action::{Action, Errno, Health, JobId};
use super::{BlockLock, Engine, IDLE, ORIGIN_IDLE};
use crate::policy::{Block, HOTTEST, Slot, Work};

/// What is read at a time, bytes: the largest request of the kernel's.
const READ_BYTES: u64 = 1 << 20;

/// How many such reads are under way: the read-ahead of a disk must not run dry while one of them
/// is stored.
const READS: u32 = 4;

/// What is read at a time, bytes, where users come to the origin now and then: one of them then
/// waits for little.
const POLITE_READ_BYTES: u64 = 256 << 10;

/// How far a warm-up with a rate may fall behind it and still make up for it.
const BEHIND_MOST: Nanos = NANOS_PER_S as Nanos / 4;

/// While users keep the origin busy, it is left to them after such a read: for so many I/Os of
/// theirs, or so many times as long as the read took. Fewer than one of twenty then meets a read.
const LEFT_TO_USERS: u32 = 24;
const RESTS_PER_READ: Nanos = 20;

/// Slots that a refill leaves free, one of so many and no more than these: as long as they are, hotset's
/// own policy has nothing leave (`policy::hotset` keeps twice as many).
const SPARED_SHARE: u32 = 128;
const SPARED_MOST: u32 = 128;

/// How warm-ups share the origin with users, all of them together.
#[derive(Debug, Default)]
pub(super) struct WarmReads {
    /// Under way on the origin.
    under_way: u32,
    began: Nanos,
    /// When the last one ended the origin was left to its users: for so many I/Os more, but no
    /// longer than this.
    left_to_users: u32,
    rest_until: Nanos,
}

impl WarmReads {
    pub(super) fn is_idle(&self) -> bool {
        self.under_way == 0
    }

    pub(super) fn end(&mut self, now: Nanos) {
        self.under_way -= 1;
        self.left_to_users = LEFT_TO_USERS;
        self.rest_until = now + now.saturating_sub(self.began) * RESTS_PER_READ;
    }

    /// A user's I/O on the origin has ended.
    pub(super) fn note_user(&mut self) {
        self.left_to_users = self.left_to_users.saturating_sub(1);
    }

    fn begin(&mut self, now: Nanos) {
        self.under_way += 1;
        self.began = now;
    }

    fn rests(&self, now: Nanos) -> bool {
        self.left_to_users > 0 && now < self.rest_until
    }
}

/// What a warm-up has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Warmed {
    /// How much was fetched.
    pub bytes: u64,
    /// Blocks fetched.
    pub blocks: u64,
    /// Blocks left alone: they were there already, no place could be had, or they failed.
    pub skipped: u64,
    /// Why some failed, if any did.
    pub error: Option<Errno>,
}

/// What a job has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobResult {
    /// A warm-up.
    Warmed(Warmed),
    /// A flush of so many blocks.
    Flushed(u64),
    /// A flush that has left so many blocks dirty; why, or because it was stopped.
    NotFlushed(u64, Option<Errno>),
}

/// How far a job is, blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobProgress {
    /// Seen to.
    pub done: u64,
    /// Wanted.
    pub total: u64,
}

/// A job.
#[derive(Debug)]
pub(super) enum Job {
    Warm(Warming),
    Flush(Flushing),
    /// Nobody has taken its result yet.
    Done(JobResult),
}

/// A warm-up: wanted blocks are fetched in the order of the origin, as one long sequential read.
#[derive(Debug, Default)]
pub(super) struct Warming {
    wanted: RoaringBitmap,
    total: u64,
    bytes_per_s: Option<NonZeroU64>,
    /// Nothing makes way for it.
    into_free: bool,
    /// What its blocks are worth to the policy.
    heat: u8,
    /// When the next read is, at that rate.
    due: Nanos,
    /// What may make way, once it is known.
    victims: Victims,
    /// Where to go on.
    next: Option<Block>,
    /// Only once a block has left.
    waits_for_room: bool,
    reads: u32,
    warmed: Warmed,
}

/// What may make way for a warm-up, the coldest first.
#[derive(Debug, Default)]
struct Victims {
    /// How much it is worth, whether it is dirty, and the block.
    candidates: BinaryHeap<Reverse<(u8, bool, Block)>>,
    /// Those that had to stay, and for blocks of which owner: for others they may go.
    refused: Vec<Reverse<(u8, bool, Block)>>,
    refused_for: usize,
    /// Where to go on looking, once that has begun; behind the last block, all are found.
    looked_to: Option<u64>,
}

impl Victims {
    /// What had to stay for blocks of another owner may go for this one's.
    fn look_for(&mut self, owner: usize) {
        if self.refused_for != owner {
            self.candidates.extend(self.refused.drain(..));
            self.refused_for = owner;
        }
    }
}

impl Warming {
    fn begin_read(&mut self, now: Nanos, bytes: u64) {
        self.reads += 1;
        if let Some(rate) = self.bytes_per_s {
            let earliest = now.saturating_sub(BEHIND_MOST);
            let spacing = bytes as f64 / rate.get() as f64 * NANOS_PER_S;
            self.due = self.due.max(earliest) + spacing as Nanos;
        }
    }
}

/// A flush of everything that was dirty when it began.
#[derive(Debug)]
pub(super) struct Flushing {
    dirty: u64,
    failures: u64,
}

impl Engine {
    /// Begins to fetch blocks, at a rate at most if one is given; they are as hot as can be then.
    /// Where the cache is full others make way, the coldest first, but not what is pinned or
    /// guaranteed.
    pub fn begin_warm_up(
        &mut self,
        now: Nanos,
        wanted: RoaringBitmap,
        bytes_per_s: Option<NonZeroU64>,
    ) -> JobId {
        let how = Warming {
            bytes_per_s,
            heat: HOTTEST,
            ..Warming::default()
        };
        self.warm_up(now, wanted, how)
    }

    /// The same into slots that are free: nothing makes way, neither now nor because the policy runs
    /// short of free slots for its users. The blocks are as hot as that afterwards (0 to
    /// [`HOTTEST`]): one that was cold is no reason for what users bring in to leave before it.
    pub fn begin_refill(&mut self, now: Nanos, wanted: RoaringBitmap, heat: u8) -> JobId {
        let how = Warming {
            into_free: true,
            heat,
            ..Warming::default()
        };
        self.warm_up(now, wanted, how)
    }

    fn warm_up(&mut self, now: Nanos, wanted: RoaringBitmap, how: Warming) -> JobId {
        let begins = self.health == Health::Healthy && !self.stopping;
        let job = self.jobs.insert(Job::Warm(Warming {
            total: wanted.len(),
            next: wanted.min().filter(|_| begins),
            wanted,
            due: now,
            ..how
        }));
        self.look_for_work = true;
        self.advance(now);
        job
    }

    /// Begins to write back what is dirty now.
    pub fn begin_flush(&mut self, now: Nanos) -> JobId {
        self.cleaner.want(&self.dirty);
        let job = self.jobs.insert(Job::Flush(Flushing {
            dirty: self.dirty.len(),
            failures: self.cleaner.failures,
        }));
        self.look_for_work = true;
        self.advance(now);
        job
    }

    /// How far a job is.
    pub fn job_progress(&self, job: JobId) -> JobProgress {
        match &self.jobs[job] {
            Job::Warm(Warming { warmed, total, .. }) => JobProgress {
                done: warmed.blocks + warmed.skipped,
                total: *total,
            },
            Job::Flush(Flushing { dirty, .. }) => JobProgress {
                done: dirty.saturating_sub(self.cleaner.left()),
                total: *dirty,
            },
            Job::Done(_) => JobProgress { done: 1, total: 1 },
        }
    }

    /// Blocks that somebody wants flushed and that are still dirty.
    pub fn flush_left(&self) -> u64 {
        self.cleaner.left()
    }

    /// A warm-up fetches nothing more; it is done when what is under way has ended. Of a flush,
    /// what was wanted is done without anybody watching.
    pub fn cancel_job(&mut self, now: Nanos, job: JobId) {
        match &mut self.jobs[job] {
            Job::Warm(warming) => warming.next = None,
            Job::Flush(_) => {
                let left = self.cleaner.left();
                self.end_job(job, JobResult::NotFlushed(left, None));
            }
            Job::Done(_) => {}
        }
        self.look_for_work = true;
        self.advance(now);
    }

    /// The result of a job that is done; it is forgotten.
    ///
    /// # Panics
    /// If the job is not done.
    pub fn finish_job(&mut self, job: JobId) -> JobResult {
        match self.jobs.remove(job) {
            Job::Done(result) => result,
            job => panic!("not done: {job:?}"),
        }
    }

    /// The cache is going down, or has failed.
    pub(super) fn stop_jobs(&mut self) {
        for (_, job) in &mut self.jobs {
            if let Job::Warm(warming) = job {
                warming.next = None;
            }
        }
        self.look_for_work = true;
    }

    /// Has jobs go on, and ends those that are through.
    pub(super) fn continue_jobs(&mut self, now: Nanos) {
        for job in self.jobs.iter().map(|(job, _)| job).collect::<Vec<_>>() {
            match &self.jobs[job] {
                Job::Warm(_) => self.continue_warm_up(now, job),
                Job::Flush(_) => self.continue_flush(job),
                Job::Done(_) => {}
            }
        }
    }

    /// The most that a warm-up may read now, bytes; none: it has to wait.
    ///
    /// Users come first: as long as they use the origin, it is theirs for most of the time.
    fn warm_read_bytes(&self, now: Nanos) -> Option<u64> {
        let reads = &self.warm_reads;
        let unused_for = match self.origin_users {
            0 => self
                .users_left_at
                .map_or(Nanos::MAX, |at| now.saturating_sub(at)),
            _ => 0,
        };
        let (bytes, most) = match unused_for {
            IDLE.. => (READ_BYTES, READS),
            ORIGIN_IDLE.. => (POLITE_READ_BYTES, 1),
            _ if reads.rests(now) => return None,
            _ => (POLITE_READ_BYTES, 1),
        };
        (reads.under_way < most).then_some(bytes)
    }

    fn continue_warm_up(&mut self, now: Nanos, job: JobId) {
        let block_bytes = self.config.layout.block_bytes;
        loop {
            let may_read = self.warm_read_bytes(now);
            let Job::Warm(warming) = &mut self.jobs[job] else {
                return;
            };
            if warming.next.is_none() && warming.reads == 0 {
                warming.warmed.skipped = warming.total - warming.warmed.blocks;
                let result = JobResult::Warmed(warming.warmed);
                return self.end_job(job, result);
            }
            let may_begin = warming.next.is_some() && warming.reads < READS && now >= warming.due;
            let Some(bytes) = may_read.filter(|_| may_begin) else {
                return;
            };
            let mut warming = std::mem::take(warming);
            let claims = self.claim_run(&mut warming, bytes);
            let has_to_wait = warming.waits_for_room;
            if !claims.is_empty() {
                warming.begin_read(now, claims.len() as u64 * block_bytes);
            }
            self.jobs[job] = Job::Warm(warming);
            if !claims.is_empty() {
                self.warm_reads.begin(now);
                self.begin_fetch(claims, Some(job), false);
            } else if has_to_wait || self.stopped_short {
                return;
            }
        }
    }

    /// Claims wanted blocks that follow one another, as many as make one read.
    fn claim_run(&mut self, warming: &mut Warming, bytes: u64) -> SmallVec<[(Block, Slot); 1]> {
        let most = (bytes / self.config.layout.block_bytes).max(1) as usize;
        let mut claims: SmallVec<[(Block, Slot); 1]> = SmallVec::new();
        for _ in 0..most {
            warming.waits_for_room = false;
            if !self.may_step() {
                break;
            }
            let next = |from| warming.wanted.range(from..).next();
            let Some(block) = warming.next.and_then(next) else {
                warming.next = None;
                break;
            };
            if claims.last().is_some_and(|&(last, _)| last + 1 != block) {
                break;
            }
            if warming.into_free && !self.has_slots_to_spare() {
                warming.next = None;
                break;
            }
            let absent = !self.locks.contains_key(&block) && !self.resident.contains(block);
            let work = absent
                .then(|| self.policy.insert(block, warming.heat))
                .flatten();
            if let Some(Work::Promote { slot, .. }) = work {
                warming.next = block.checked_add(1);
                self.locks.insert(block, BlockLock::Promoting(Vec::new()));
                claims.push((block, slot));
                continue;
            }
            if absent && !warming.into_free && self.make_room(warming, block, READS * most as u32) {
                break;
            }
            warming.next = block.checked_add(1);
            warming.warmed.skipped += 1;
            if !claims.is_empty() {
                break;
            }
        }
        claims
    }

    /// Whether there are free slots beside those that a policy keeps for what its users bring in.
    fn has_slots_to_spare(&self) -> bool {
        let (used, capacity) = (self.policy.used(), self.policy.capacity());
        used < capacity - (capacity / SPARED_SHARE).min(SPARED_MOST)
    }

    /// Has others leave, the coldest first, until so many are on their way out; whether any is, or may
    /// be, and the block has to wait.
    fn make_room(&mut self, warming: &mut Warming, block: Block, most: u32) -> bool {
        let Some(owner) = self.policy.owner(block) else {
            return false;
        };
        if !self.find_victims(warming) {
            warming.waits_for_room = true;
            return true;
        }
        warming.victims.look_for(owner);
        // Nobody loses more than what comes for it.
        let coming = warming.wanted.range_cardinality(block..);
        while u64::from(self.policy.leaving()) < coming.min(u64::from(most)) {
            if !self.may_step() {
                warming.waits_for_room = true;
                return true;
            }
            let Some(victim) = warming.victims.candidates.pop() else {
                break;
            };
            let Reverse((_, _, other)) = victim;
            if !self.policy.make_way(other, block) {
                warming.victims.refused.push(victim);
            }
        }
        warming.waits_for_room = self.policy.leaving() > 0;
        warming.waits_for_room
    }

    /// Goes on looking for what may make way; whether all of it is found. That is done once: what comes
    /// into the cache meanwhile stays.
    fn find_victims(&mut self, warming: &mut Warming) -> bool {
        let victims = &mut warming.victims;
        let from = victims.looked_to.unwrap_or_else(|| {
            victims.candidates.reserve(self.resident.len() as usize);
            0
        });
        let Ok(from) = Block::try_from(from) else {
            return true;
        };
        let mut looked_to = u64::from(from);
        let all = self.resident.range(from..);
        let mut found_all = true;
        for other in all {
            // As `may_step`, which the borrowed blocks do not let be called.
            if self.steps_left == 0 {
                (self.stopped_short, found_all) = (true, false);
                break;
            }
            self.steps_left -= 1;
            looked_to = u64::from(other) + 1;
            if warming.wanted.contains(other) {
                continue;
            }
            if let Some(slot) = self.policy.resident(other) {
                let worth = (self.policy.heat(slot), self.dirty.contains(other), other);
                victims.candidates.push(Reverse(worth));
            }
        }
        victims.looked_to = Some(if found_all { u64::MAX } else { looked_to });
        found_all
    }

    /// A block of a warm-up has arrived or failed.
    pub(super) fn warmed(&mut self, job: JobId, result: Result<u32, Option<Errno>>) {
        let Job::Warm(warming) = &mut self.jobs[job] else {
            return;
        };
        match result {
            Ok(bytes) => {
                warming.warmed.blocks += 1;
                warming.warmed.bytes += u64::from(bytes);
            }
            Err(errno) => {
                warming.warmed.skipped += 1;
                warming.warmed.error = errno.or(warming.warmed.error);
            }
        }
    }

    /// A read of a warm-up, and what was done with it, has ended.
    pub(super) fn warm_read_ended(&mut self, job: JobId) {
        if let Job::Warm(warming) = &mut self.jobs[job] {
            warming.reads -= 1;
        }
    }

    fn continue_flush(&mut self, job: JobId) {
        let Job::Flush(Flushing { dirty, failures }) = self.jobs[job] else {
            return;
        };
        let left = self.cleaner.left();
        let stopped = self.stopping || self.health != Health::Healthy;
        let result = match self.cleaner.failures > failures {
            true => JobResult::NotFlushed(left, self.cleaner.error),
            false if left == 0 => JobResult::Flushed(dirty),
            false if stopped => JobResult::NotFlushed(left, None),
            false => return,
        };
        if matches!(result, JobResult::NotFlushed(..)) {
            self.cleaner.give_up();
        }
        self.end_job(job, result);
    }

    fn end_job(&mut self, job: JobId, result: JobResult) {
        self.jobs[job] = Job::Done(result);
        self.actions.push(Action::JobDone { job });
    }
}
