//! The way of a block: to the flash, off it, and back to the origin.
//!
//! No request waits for a migration but for those of the block that it has.

use slab::Slab;
use smallvec::{SmallVec, smallvec};
use virtual_time::Nanos;

use super::action::{Action, Buffer, BufferId, Device, Direction, Errno, Health, IoState, Pace};
use super::discard::Discard;
use super::{BlockLock, Engine, IDLE, ORIGIN_IDLE, Then, Waiting};
use crate::layout::{Mask, SECTOR_BYTES};
use crate::metadata::{Change, CommitTicket};
use crate::number_map::NumberMap;
use crate::policy::{Block, HOTTEST, Slot, Work};

/// The default of dm-cache.
const THRESHOLD_SECTORS: u64 = 2048;

/// Most migrations at a pace like dm-cache's, which has so many in its pool
/// (`MIGRATION_POOL_SIZE`).
const KERNEL_MIGRATIONS: u64 = 128;

/// One migration.
#[derive(Debug)]
pub(super) struct Migration {
    task: Task,
    buffer: BufferId,
    /// Whether it counts for `running`.
    budgeted: bool,
    /// What is being copied to the origin.
    copy_back: CopyBack,
}

/// A dirty block on its way to the origin: one write for each run of sub-blocks that are there.
#[derive(Debug, Default)]
struct CopyBack {
    there: Mask,
    writes_left: u32,
    error: Option<Errno>,
}

/// A write that brings its block to the flash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overwrite {
    pub(super) block: Block,
    pub(super) slot: Slot,
    pub(super) waiting: Waiting,
}

/// The fetching of what is missing in a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fill {
    pub(super) block: Block,
    pub(super) slot: Slot,
    /// Where the part of the block begins that is read.
    pub(super) from: u64,
    pub(super) stores_left: u32,
    pub(super) error: Option<Errno>,
}

#[derive(Debug)]
pub(super) enum Task {
    Fetch(Fetch),
    Overwrite(Overwrite),
    Fill(Fill),
    Discard(Discard),
    Demote {
        block: Block,
        slot: Slot,
    },
    Clean {
        block: Block,
        slot: Slot,
        for_policy: bool,
    },
}

/// Blocks that follow one another, on their way to the flash.
#[derive(Debug)]
pub(super) struct Fetch {
    blocks: SmallVec<[(Block, Slot); 1]>,
    /// Which warm-up wants them; none: the policy.
    job: Option<usize>,
    /// Blocks that writes are on their way to.
    busy: u32,
    /// Blocks that have neither arrived nor failed.
    left: usize,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Migrations {
    all: Slab<Migration>,
    buffers: BufferId,
    /// What may be under way at a time; one block always may.
    pub(super) threshold_sectors: u64,
    /// Those of policy and cleaner; not those that a request or a warm-up waits for.
    running: u64,
    /// Whose turn it is.
    cleaner_first: bool,
    /// Fetches that wait for writes to a block of the origin.
    for_quiet: NumberMap<usize>,
    /// Blocks of fetches that wait for the readers of a slot.
    for_readers: NumberMap<(usize, usize)>,
    /// Blocks of fetches that wait for a commit.
    for_commit: Vec<(CommitTicket, usize, usize)>,
    /// Demotions that wait for the writers of a slot.
    for_writers: NumberMap<usize>,
}

impl Default for Migrations {
    fn default() -> Migrations {
        Migrations {
            all: Slab::new(),
            buffers: 0,
            threshold_sectors: THRESHOLD_SECTORS,
            running: 0,
            cleaner_first: false,
            for_quiet: NumberMap::default(),
            for_readers: NumberMap::default(),
            for_commit: Vec::new(),
            for_writers: NumberMap::default(),
        }
    }
}

impl Migrations {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    fn insert(&mut self, task: Task, budgeted: bool) -> usize {
        self.running += u64::from(budgeted);
        self.buffers += 1;
        let buffer = self.buffers;
        self.all.insert(Migration {
            task,
            buffer,
            budgeted,
            copy_back: CopyBack::default(),
        })
    }

    /// Whether a request began the fetch, and waits for it.
    pub(super) fn is_for_request(&self, migration: usize) -> bool {
        let Migration { task, budgeted, .. } = &self.all[migration];
        !budgeted && matches!(task, Task::Fetch(fetch) if fetch.job.is_none())
    }

    pub(super) fn task(&self, migration: usize) -> &Task {
        &self.all[migration].task
    }

    pub(super) fn task_mut(&mut self, migration: usize) -> &mut Task {
        &mut self.all[migration].task
    }

    pub(super) fn wait_for_writers(&mut self, slot: Slot, migration: usize) {
        self.for_writers.insert(slot, migration);
    }

    pub(super) fn wait_for_quiet(&mut self, block: Block, migration: usize) {
        self.for_quiet.insert(block, migration);
    }
}

/// What a block does next, and whether the policy or the cleaner wants it.
enum Next {
    Policy(Work),
    Clean(Block, Slot),
}

impl Engine {
    /// Begins whatever may be begun.
    pub(super) fn begin_migrations(&mut self, now: Nanos) {
        self.continue_jobs(now);
        self.retry_discards(now);
        while let Some(next) = self.next_migration(now) {
            match next {
                Next::Policy(Work::Promote { block, slot }) => self.promote(block, slot),
                Next::Policy(Work::Demote { block, slot }) => self.demote(now, block, slot),
                Next::Policy(Work::WriteBack { block, slot }) => {
                    self.clean_for_policy(now, block, slot);
                }
                Next::Clean(block, slot) => {
                    let for_policy = false;
                    let task = Task::Clean {
                        block,
                        slot,
                        for_policy,
                    };
                    let migration = self.begin_migration(task);
                    self.lock_for_cleaning(block, slot);
                    self.copy_out(migration);
                }
            }
        }
    }

    /// Policy and cleaner take turns, so that neither starves.
    fn next_migration(&mut self, now: Nanos) -> Option<Next> {
        // What discards wait for is brought to its end.
        let begins = !self.stopping || !self.discards.is_empty();
        if self.health != Health::Healthy || !begins {
            return None;
        }
        let blocks = self
            .migrations
            .threshold_sectors
            .saturating_mul(SECTOR_BYTES)
            / self.config.layout.block_bytes;
        let spare = self.migrations.running < blocks.max(1);
        let room = match self.config.pace {
            Pace::Threshold => spare,
            Pace::Kernel => self.migrations.running < KERNEL_MIGRATIONS,
        };
        let idle = |since: Nanos, limit: Nanos| spare && now.saturating_sub(since) >= limit;
        let all_idle = self.requests.is_empty() && idle(self.last_completion, IDLE);
        let may_write_back = all_idle && now >= self.write_backs_rest_until;
        let origin_used = self.origin_users > 0 || !self.warm_reads.is_idle();
        let origin_idle = !origin_used && idle(self.origin_used_at, ORIGIN_IDLE);
        let may_clean = match self.config.pace {
            Pace::Kernel => all_idle,
            Pace::Threshold => origin_idle && (all_idle || self.cleaner.may_gently(now)),
        };
        self.migrations.cleaner_first = !self.migrations.cleaner_first;
        let cleaner_first = self.migrations.cleaner_first;
        for cleaner in [cleaner_first, !cleaner_first] {
            let next = match cleaner {
                true if spare && !self.stopping => self
                    .next_cleaning(now, may_clean)
                    .map(|(block, slot)| Next::Clean(block, slot)),
                false if room => self.policy.next_work(now, may_write_back).map(Next::Policy),
                _ => None,
            };
            if next.is_some() {
                return next;
            }
        }
        None
    }

    pub(super) fn begin_migration(&mut self, task: Task) -> usize {
        self.migrations.insert(task, true)
    }

    /// Begins what a request waits for.
    pub(super) fn begin_for_request(&mut self, task: Task) -> usize {
        self.migrations.insert(task, false)
    }

    /// A migration of the policy's or the cleaner's has ended.
    pub(super) fn end_migration(&mut self, migration: usize) {
        let ended = self.migrations.all.remove(migration);
        let Migration {
            buffer, budgeted, ..
        } = ended;
        self.actions.push(Action::Release { buffer });
        self.migrations.running -= u64::from(budgeted);
        self.look_for_work = true;
    }

    pub(super) fn resume_all(&mut self, now: Nanos, waiting: Vec<Waiting>) {
        for waiting in waiting {
            self.resume(now, waiting);
        }
    }

    pub(super) fn unlock(&mut self, block: Block) -> Vec<Waiting> {
        match self.locks.remove(&block) {
            Some(
                BlockLock::Promoting(queue)
                | BlockLock::Admitting(queue)
                | BlockLock::Filling(queue)
                | BlockLock::Demoting(queue),
            ) => queue,
            Some(BlockLock::WritingBack { .. }) | None => Vec::new(),
        }
    }

    // To the flash.

    fn promote(&mut self, block: Block, slot: Slot) {
        if self.locks.contains_key(&block) || self.resident.contains(block) {
            return self.policy.finished(Work::Promote { block, slot }, false);
        }
        self.locks.insert(block, BlockLock::Promoting(Vec::new()));
        self.begin_fetch(smallvec![(block, slot)], None, true);
    }

    /// Fetches a block for a read that waits for it.
    pub(super) fn fetch_for(&mut self, waiting: Waiting, block: Block, slot: Slot) {
        self.locks
            .insert(block, BlockLock::Admitting(vec![waiting]));
        self.begin_fetch(smallvec![(block, slot)], None, false);
    }

    /// Fetches blocks that are locked for it, after the writes that are on their way to them.
    pub(super) fn begin_fetch(
        &mut self,
        blocks: SmallVec<[(Block, Slot); 1]>,
        job: Option<usize>,
        budgeted: bool,
    ) {
        let written = |&&(block, _): &&(Block, Slot)| self.origin_writes.contains_key(&block);
        let busy: SmallVec<[Block; 1]> = blocks.iter().filter(written).map(|at| at.0).collect();
        let fetch = Task::Fetch(Fetch {
            left: blocks.len(),
            blocks,
            job,
            busy: busy.len() as u32,
        });
        let migration = self.migrations.insert(fetch, budgeted);
        for &block in &busy {
            self.migrations.for_quiet.insert(block, migration);
        }
        if busy.is_empty() {
            self.read_blocks(migration);
        }
    }

    /// Whether it is a warm-up that fetches.
    pub(super) fn is_warming(&self, migration: usize) -> bool {
        matches!(self.migrations.task(migration), Task::Fetch(fetch) if fetch.job.is_some())
    }

    fn fetch(&mut self, migration: usize) -> &mut Fetch {
        match &mut self.migrations.all[migration].task {
            Task::Fetch(fetch) => fetch,
            task => unreachable!("{task:?} is no fetch"),
        }
    }

    /// No write is on its way to the block any more.
    pub(super) fn block_unwritten(&mut self, now: Nanos, block: Block) {
        if let Some(migration) = self.migrations.for_quiet.remove(&block) {
            if matches!(self.migrations.task(migration), Task::Fill(_)) {
                return self.read_missing(now, migration);
            }
            let fetch = self.fetch(migration);
            fetch.busy -= 1;
            if fetch.busy == 0 {
                self.read_blocks(migration);
            }
        }
    }

    fn read_blocks(&mut self, migration: usize) {
        let blocks = &self.fetch(migration).blocks;
        let (first, last) = (blocks[0].0, blocks[blocks.len() - 1].0);
        let (offset, end) = (self.config.span(first).0, self.config.span(last));
        let len = (end.0 - offset) as u32 + end.1;
        let buffer = self.buffer(migration, 0);
        let state = IoState::FetchRead { migration };
        self.transfer(
            state,
            Device::Origin,
            Direction::Read,
            (offset, len),
            buffer,
        );
    }

    pub(super) fn buffer(&self, migration: usize, at: u32) -> Buffer {
        let id = self.migrations.all[migration].buffer;
        Buffer::Migration { id, at }
    }

    pub(super) fn fetch_read(&mut self, now: Nanos, migration: usize, result: Result<(), Errno>) {
        for index in 0..self.fetch(migration).blocks.len() {
            match result {
                Ok(()) => self.store(now, migration, index),
                Err(errno) => self.end_fetch(now, migration, index, Err(Some(errno))),
            }
        }
    }

    /// Stores a block, once nobody reads what was in the slot before, and no recovery could take
    /// the one for the other.
    fn store(&mut self, now: Nanos, migration: usize, index: usize) {
        let (block, slot) = self.fetch(migration).blocks[index];
        if self.users.readers(slot) > 0 {
            self.migrations.for_readers.insert(slot, (migration, index));
            return;
        }
        if let Some(log) = self.log.as_mut().filter(|log| log.is_at_risk(slot)) {
            if log.has_failed() {
                return self.end_fetch(now, migration, index, Err(None));
            }
            let number = log.commit();
            let waiting = (number, migration, index);
            return self.migrations.for_commit.push(waiting);
        }
        let first = self.fetch(migration).blocks[0].0;
        let (offset, len) = self.config.span(block);
        let at = (offset - self.config.span(first).0) as u32;
        let buffer = self.buffer(migration, at);
        let place = (self.slot_offset(slot), len);
        let state = IoState::FetchStore { migration, index };
        self.transfer(state, Device::Flash, Direction::Write, place, buffer);
    }

    /// The last reader of a slot has left.
    pub(super) fn slot_unread(&mut self, now: Nanos, slot: Slot) {
        if let Some((migration, index)) = self.migrations.for_readers.remove(&slot) {
            self.store(now, migration, index);
        }
    }

    /// A commit may have ended.
    pub(super) fn store_what_was_at_risk(&mut self, now: Nanos) {
        if self.migrations.for_commit.is_empty() {
            return;
        }
        let committed = self.log.as_ref().map_or(0, |log| log.committed());
        let waiting = std::mem::take(&mut self.migrations.for_commit);
        for (number, migration, index) in waiting {
            match number <= committed {
                true => self.store(now, migration, index),
                false => self.migrations.for_commit.push((number, migration, index)),
            }
        }
    }

    /// There will be no commit any more.
    pub(super) fn fail_what_was_at_risk(&mut self, now: Nanos) {
        for (_, migration, index) in std::mem::take(&mut self.migrations.for_commit) {
            self.end_fetch(now, migration, index, Err(None));
        }
    }

    pub(super) fn fetch_stored(
        &mut self,
        now: Nanos,
        migration: usize,
        index: usize,
        result: Result<(), Errno>,
    ) {
        if let Err(errno) = result {
            self.flash_store_failed(errno);
            return self.end_fetch(now, migration, index, Err(Some(errno)));
        }
        let fetch = self.fetch(migration);
        let (block, slot) = fetch.blocks[index];
        let heat = match fetch.job {
            Some(_) => HOTTEST,
            None => 0,
        };
        let map = Change::Map {
            block,
            heat,
            missing: 0,
            dirty: false,
        };
        let ticket = self.log.as_mut().map(|log| log.append(slot, map));
        self.once_recorded(now, ticket, Then::Arrived { migration, index });
    }

    pub(super) fn arrived(&mut self, now: Nanos, migration: usize, index: usize, recorded: bool) {
        let (block, slot) = self.fetch(migration).blocks[index];
        if !recorded {
            return self.end_fetch(now, migration, index, Err(None));
        }
        self.resident.insert(block);
        self.missing[slot as usize] = 0;
        self.counters.promotions += 1;
        let len = self.config.span(block).1;
        self.end_fetch(now, migration, index, Ok(len));
    }

    /// A block has arrived, as so many bytes, or will not.
    fn end_fetch(
        &mut self,
        now: Nanos,
        migration: usize,
        index: usize,
        result: Result<u32, Option<Errno>>,
    ) {
        let fetch = self.fetch(migration);
        fetch.left -= 1;
        let (block, slot) = fetch.blocks[index];
        let (left, job) = (fetch.left, fetch.job);
        let work = Work::Promote { block, slot };
        self.policy.finished(work, result.is_ok());
        let waiting = self.unlock(block);
        if let Some(job) = job {
            self.warmed(job, result);
        }
        if left == 0 {
            self.end_migration(migration);
            if let Some(job) = job {
                self.warm_read_ended(job);
            }
        }
        self.resume_all(now, waiting);
    }

    // Off the flash.

    fn demote(&mut self, now: Nanos, block: Block, slot: Slot) {
        if !self.resident.contains(block) || self.is_being_filled(block) {
            return self.policy.finished(Work::Demote { block, slot }, false);
        }
        let migration = self.begin_migration(Task::Demote { block, slot });
        self.begin_or_queue(now, block, migration);
    }

    fn is_being_filled(&self, block: Block) -> bool {
        matches!(self.locks.get(&block), Some(BlockLock::Filling(_)))
    }

    /// The cleaner may have the block just now: then this comes next.
    fn begin_or_queue(&mut self, now: Nanos, block: Block, migration: usize) {
        match self.locks.get_mut(&block) {
            Some(BlockLock::WritingBack { next, .. }) => *next = Some(migration),
            Some(lock) => unreachable!("the policy has work for a block that is {lock:?}"),
            None => self.begin_on_resident(now, migration),
        }
    }

    /// Begins what is to be done with a block with which nothing is being done.
    fn begin_on_resident(&mut self, now: Nanos, migration: usize) {
        match self.migrations.all[migration].task {
            Task::Demote { block, slot } => {
                self.locks.insert(block, BlockLock::Demoting(Vec::new()));
                match self.users.writers(slot) {
                    0 => self.begin_leaving(now, migration),
                    _ => drop(self.migrations.for_writers.insert(slot, migration)),
                }
            }
            Task::Clean { block, .. } => match self.cleanable(block) {
                Some(slot) => {
                    self.lock_for_cleaning(block, slot);
                    self.copy_out(migration);
                }
                None => self.end_clean_for_policy(migration, !self.dirty.contains(block)),
            },
            ref task => unreachable!("{task:?} is nothing that waits for the cleaner"),
        }
    }

    /// The last writer of a slot has left.
    pub(super) fn slot_unwritten(&mut self, now: Nanos, slot: Slot) {
        if let Some(migration) = self.migrations.for_writers.remove(&slot) {
            match self.migrations.task(migration) {
                Task::Fill(_) => self.fill_once_quiet(now, migration),
                Task::Discard(_) => self.discard_cached(now, migration),
                _ => self.begin_leaving(now, migration),
            }
        }
    }

    fn begin_leaving(&mut self, now: Nanos, migration: usize) {
        match self.resident_task(migration) {
            (block, _) if self.dirty.contains(block) => self.copy_out(migration),
            _ => self.unmap(now, migration),
        }
    }

    fn resident_task(&self, migration: usize) -> (Block, Slot) {
        match self.migrations.all[migration].task {
            Task::Demote { block, slot } | Task::Clean { block, slot, .. } => (block, slot),
            ref task => unreachable!("{task:?} has no block that leaves"),
        }
    }

    /// The origin has the block: from now on it is asked for it.
    fn unmap(&mut self, now: Nanos, migration: usize) {
        let (block, slot) = self.resident_task(migration);
        self.counters.write_backs += u64::from(self.dirty.contains(block));
        self.mark_clean(block, slot);
        self.resident.remove(block);
        let ticket = self.log.as_mut().map(|log| log.append(slot, Change::Unmap));
        self.once_recorded(now, ticket, Then::Gone { migration });
    }

    pub(super) fn gone(&mut self, now: Nanos, migration: usize, recorded: bool) {
        let (block, slot) = self.resident_task(migration);
        self.counters.demotions += u64::from(recorded);
        self.end_demotion(now, migration, Work::Demote { block, slot }, recorded);
    }

    fn end_demotion(&mut self, now: Nanos, migration: usize, work: Work, gone: bool) {
        let (block, _) = self.resident_task(migration);
        self.policy.finished(work, gone);
        let waiting = self.unlock(block);
        self.end_migration(migration);
        self.resume_all(now, waiting);
    }

    // Back to the origin.

    fn clean_for_policy(&mut self, now: Nanos, block: Block, slot: Slot) {
        if self.is_being_filled(block) {
            return self.policy.finished(Work::WriteBack { block, slot }, false);
        }
        let for_policy = true;
        let migration = self.begin_migration(Task::Clean {
            block,
            slot,
            for_policy,
        });
        self.begin_or_queue(now, block, migration);
    }

    fn end_clean_for_policy(&mut self, migration: usize, clean: bool) {
        let (block, slot) = self.resident_task(migration);
        self.policy.finished(Work::WriteBack { block, slot }, clean);
        self.end_migration(migration);
    }

    fn copy_out(&mut self, migration: usize) {
        let (block, slot) = self.resident_task(migration);
        self.migrations.all[migration].copy_back = CopyBack {
            there: !self.missing[slot as usize],
            ..CopyBack::default()
        };
        let place = (self.slot_offset(slot), self.config.span(block).1);
        let buffer = self.buffer(migration, 0);
        let state = IoState::CopyOut { migration };
        self.transfer(state, Device::Flash, Direction::Read, place, buffer);
    }

    pub(super) fn copied_out(&mut self, now: Nanos, migration: usize, result: Result<(), Errno>) {
        if result.is_err() {
            return self.copied(now, migration, result);
        }
        let (block, _) = self.resident_task(migration);
        let all = self.config.layout.sub_blocks().all();
        let runs = self.runs(block, self.migrations.all[migration].copy_back.there & all);
        self.migrations.all[migration].copy_back.writes_left = runs.len() as u32;
        for (start, end) in runs {
            let buffer = self.buffer(migration, start as u32);
            let place = (self.config.span(block).0 + start, (end - start) as u32);
            let state = IoState::CopyBack { migration };
            self.transfer(state, Device::Origin, Direction::Write, place, buffer);
        }
    }

    pub(super) fn copied_back(&mut self, now: Nanos, migration: usize, result: Result<(), Errno>) {
        self.note_origin_written();
        let copy_back = &mut self.migrations.all[migration].copy_back;
        copy_back.error = copy_back.error.or(result.err());
        copy_back.writes_left -= 1;
        if copy_back.writes_left == 0 {
            let result = copy_back.error.map_or(Ok(()), Err);
            self.copied(now, migration, result);
        }
    }

    /// A dirty block has been copied to the origin, or could not be.
    fn copied(&mut self, now: Nanos, migration: usize, result: Result<(), Errno>) {
        match self.migrations.all[migration].task {
            Task::Demote { block, slot } => match result {
                Ok(()) => self.unmap(now, migration),
                Err(_) => {
                    let work = Work::Demote { block, slot };
                    self.end_demotion(now, migration, work, false);
                }
            },
            Task::Clean {
                block,
                slot,
                for_policy,
            } => {
                let lock = self.locks.remove(&block);
                let Some(BlockLock::WritingBack {
                    rewritten,
                    next,
                    discards,
                }) = lock
                else {
                    unreachable!("it is {lock:?} and not being written back");
                };
                self.counters.write_backs += u64::from(result.is_ok());
                let clean = result.is_ok() && !rewritten;
                if clean {
                    self.log_change(slot, Change::Clean);
                    self.mark_clean(block, slot);
                }
                match for_policy {
                    true => {
                        if result.is_err() {
                            self.write_backs_rest_until = now + IDLE;
                        }
                        self.end_clean_for_policy(migration, clean);
                    }
                    false => {
                        self.cleaner.tried(now, block, result);
                        self.end_migration(migration);
                    }
                }
                if let Some(next) = next {
                    self.begin_on_resident(now, next);
                }
                self.resume_all(now, discards);
            }
            ref task => unreachable!("{task:?} is not copied back"),
        }
    }
}
