//! The way of a block to the flash.

use smallvec::{SmallVec, smallvec};
use virtual_time::Nanos;

use super::task::{Fetch, Task};
use crate::engine::action::{Device, Direction, Errno, IoState};
use crate::engine::{BlockLock, Continuation, Engine, Waiting};
use crate::metadata::Change;
use crate::policy::{Block, HOTTEST, Slot, Work};

impl Engine {
    pub(in crate::engine) fn promote(&mut self, block: Block, slot: Slot) {
        if self.locks.contains_key(&block) || self.resident.contains(block) {
            return self.policy.finished(Work::Promote { block, slot }, false);
        }
        self.locks.insert(block, BlockLock::Promoting(Vec::new()));
        self.begin_fetch(smallvec![(block, slot)], None, true);
    }

    /// Fetches a block for a read that waits for it.
    pub(in crate::engine) fn fetch_for(&mut self, waiting: Waiting, block: Block, slot: Slot) {
        self.locks
            .insert(block, BlockLock::Admitting(vec![waiting]));
        self.begin_fetch(smallvec![(block, slot)], None, false);
    }

    /// Fetches blocks that are locked for it, after the writes that are on their way to them.
    pub(in crate::engine) fn begin_fetch(
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
    pub(in crate::engine) fn is_warming(&self, migration: usize) -> bool {
        matches!(self.migrations.task(migration), Task::Fetch(fetch) if fetch.job.is_some())
    }

    fn fetch(&mut self, migration: usize) -> &mut Fetch {
        match &mut self.migrations.all[migration].task {
            Task::Fetch(fetch) => fetch,
            task => unreachable!("{task:?} is no fetch"),
        }
    }

    /// No write is on its way to the block any more.
    pub(in crate::engine) fn block_unwritten(&mut self, now: Nanos, block: Block) {
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

    pub(in crate::engine) fn fetch_read(
        &mut self,
        now: Nanos,
        migration: usize,
        result: Result<(), Errno>,
    ) {
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
    pub(in crate::engine) fn slot_unread(&mut self, now: Nanos, slot: Slot) {
        if let Some((migration, index)) = self.migrations.for_readers.remove(&slot) {
            self.store(now, migration, index);
        }
    }

    /// A commit may have ended.
    pub(in crate::engine) fn store_what_was_at_risk(&mut self, now: Nanos) {
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
    pub(in crate::engine) fn fail_what_was_at_risk(&mut self, now: Nanos) {
        for (_, migration, index) in std::mem::take(&mut self.migrations.for_commit) {
            self.end_fetch(now, migration, index, Err(None));
        }
    }

    pub(in crate::engine) fn fetch_stored(
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
        self.once_recorded(now, ticket, Continuation::Arrived { migration, index });
    }

    pub(in crate::engine) fn arrived(
        &mut self,
        now: Nanos,
        migration: usize,
        index: usize,
        recorded: bool,
    ) {
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
}
