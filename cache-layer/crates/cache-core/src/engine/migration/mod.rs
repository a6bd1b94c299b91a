//! Blocks on their way: to the flash (`fetch`), off it (`leave`), and back to the origin (`write_back`);
//! `task` is what a migration is there for.
//!
//! No request waits for a migration but for those of the block that it has.

mod fetch;
mod leave;
mod task;
mod write_back;

use slab::Slab;
use virtual_time::Nanos;

use super::action::{Action, Buffer, BufferId, Health, Pace};
use super::{BlockLock, Engine, IDLE, ORIGIN_IDLE, Waiting};
use crate::layout::SECTOR_BYTES;
use crate::metadata::CommitTicket;
use crate::number_map::NumberMap;
use crate::policy::{Block, Slot, Work};

use self::task::CopyBack;
pub(super) use self::task::{Discard, Fill, Overwrite, Task};

/// The default of dm-cache.
const THRESHOLD_SECTORS: u64 = 2048;

/// Most migrations at a pace like dm-cache's, which has so many in its pool
/// (`MIGRATION_POOL_SIZE`).
const KERNEL_MIGRATIONS: u64 = 128;

/// One migration.
#[derive(Debug)]
pub(super) struct Migration {
    pub(super) task: Task,
    pub(super) buffer: BufferId,
    /// Whether it counts for `running`.
    pub(super) budgeted: bool,
    /// What is being copied to the origin.
    pub(super) copy_back: CopyBack,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Migrations {
    pub(super) all: Slab<Migration>,
    pub(super) buffers: BufferId,
    /// What may be under way at a time; one block always may.
    pub(super) threshold_sectors: u64,
    /// Those of policy and cleaner; not those that a request or a warm-up waits for.
    pub(super) running: u64,
    /// Whose turn it is.
    pub(super) cleaner_first: bool,
    /// Fetches that wait for writes to a block of the origin.
    pub(super) for_quiet: NumberMap<usize>,
    /// Blocks of fetches that wait for the readers of a slot.
    pub(super) for_readers: NumberMap<(usize, usize)>,
    /// Blocks of fetches that wait for a commit.
    pub(super) for_commit: Vec<(CommitTicket, usize, usize)>,
    /// Demotions that wait for the writers of a slot.
    pub(super) for_writers: NumberMap<usize>,
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

    pub(super) fn insert(&mut self, task: Task, budgeted: bool) -> usize {
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

    pub(super) fn buffer(&self, migration: usize, at: u32) -> Buffer {
        let id = self.migrations.all[migration].buffer;
        Buffer::Migration { id, at }
    }
}
