//! Demotion.

use virtual_time::Nanos;

use super::task::Task;
use crate::engine::{BlockLock, Continuation, Engine};
use crate::metadata::Change;
use crate::policy::{Block, Slot, Work};

impl Engine {
    pub(in crate::engine) fn demote(&mut self, now: Nanos, block: Block, slot: Slot) {
        if !self.resident.contains(block) || self.is_being_filled(block) {
            return self.policy.finished(Work::Demote { block, slot }, false);
        }
        let migration = self.begin_migration(Task::Demote { block, slot });
        self.begin_or_queue(now, block, migration);
    }

    pub(in crate::engine) fn is_being_filled(&self, block: Block) -> bool {
        matches!(self.locks.get(&block), Some(BlockLock::Filling(_)))
    }

    /// The cleaner may have the block just now: then this comes next.
    pub(in crate::engine) fn begin_or_queue(&mut self, now: Nanos, block: Block, migration: usize) {
        match self.locks.get_mut(&block) {
            Some(BlockLock::WritingBack { next, .. }) => *next = Some(migration),
            Some(lock) => unreachable!("the policy has work for a block that is {lock:?}"),
            None => self.begin_on_resident(now, migration),
        }
    }

    /// Begins what is to be done with a block with which nothing is being done.
    pub(in crate::engine) fn begin_on_resident(&mut self, now: Nanos, migration: usize) {
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
    pub(in crate::engine) fn slot_unwritten(&mut self, now: Nanos, slot: Slot) {
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

    pub(in crate::engine) fn resident_task(&self, migration: usize) -> (Block, Slot) {
        match self.migrations.all[migration].task {
            Task::Demote { block, slot } | Task::Clean { block, slot, .. } => (block, slot),
            ref task => unreachable!("{task:?} has no block that leaves"),
        }
    }

    /// The origin has the block: from now on it is asked for it.
    pub(in crate::engine) fn unmap(&mut self, now: Nanos, migration: usize) {
        let (block, slot) = self.resident_task(migration);
        self.counters.write_backs += u64::from(self.dirty.contains(block));
        self.mark_clean(block, slot);
        self.resident.remove(block);
        let ticket = self.log.as_mut().map(|log| log.append(slot, Change::Unmap));
        self.once_recorded(now, ticket, Continuation::Demoted { migration });
    }

    pub(in crate::engine) fn gone(&mut self, now: Nanos, migration: usize, recorded: bool) {
        let (block, slot) = self.resident_task(migration);
        self.counters.demotions += u64::from(recorded);
        self.end_demotion(now, migration, Work::Demote { block, slot }, recorded);
    }

    pub(in crate::engine) fn end_demotion(
        &mut self,
        now: Nanos,
        migration: usize,
        work: Work,
        gone: bool,
    ) {
        let (block, _) = self.resident_task(migration);
        self.policy.finished(work, gone);
        let waiting = self.unlock(block);
        self.end_migration(migration);
        self.resume_all(now, waiting);
    }
}
