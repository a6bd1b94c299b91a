//! The way of a dirty block back to the origin.

use virtual_time::Nanos;

use super::task::{CopyBack, Task};
use crate::engine::action::{Device, Direction, Errno, IoState};
use crate::engine::{BlockLock, Engine, IDLE};
use crate::metadata::Change;
use crate::policy::{Block, Slot, Work};

impl Engine {
    pub(in crate::engine) fn clean_for_policy(&mut self, now: Nanos, block: Block, slot: Slot) {
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

    pub(in crate::engine) fn end_clean_for_policy(&mut self, migration: usize, clean: bool) {
        let (block, slot) = self.resident_task(migration);
        self.policy.finished(Work::WriteBack { block, slot }, clean);
        self.end_migration(migration);
    }

    pub(in crate::engine) fn copy_out(&mut self, migration: usize) {
        let (block, slot) = self.resident_task(migration);
        self.migrations.all[migration].copy_back = CopyBack {
            present: !self.missing[slot as usize],
            ..CopyBack::default()
        };
        let place = (self.slot_offset(slot), self.config.span(block).1);
        let buffer = self.buffer(migration, 0);
        let state = IoState::CopyOut { migration };
        self.transfer(state, Device::Flash, Direction::Read, place, buffer);
    }

    pub(in crate::engine) fn copied_out(
        &mut self,
        now: Nanos,
        migration: usize,
        result: Result<(), Errno>,
    ) {
        match result {
            Ok(()) => self.copy_back_once_proven(now, migration),
            Err(errno) => {
                let (block, _) = self.resident_task(migration);
                self.note_write_back(now, block, Err((Device::Flash, errno)));
                self.copied(now, migration, result);
            }
        }
    }

    pub(in crate::engine) fn copy_back(&mut self, migration: usize) {
        let (block, _) = self.resident_task(migration);
        let all = self.config.layout.sub_blocks().all();
        let runs = self.runs(
            block,
            self.migrations.all[migration].copy_back.present & all,
        );
        self.migrations.all[migration].copy_back.writes_left = runs.len() as u32;
        for (start, end) in runs {
            let buffer = self.buffer(migration, start as u32);
            let place = (self.config.span(block).0 + start, (end - start) as u32);
            let state = IoState::CopyBack { migration };
            self.transfer(state, Device::Origin, Direction::Write, place, buffer);
        }
    }

    pub(in crate::engine) fn copied_back(
        &mut self,
        now: Nanos,
        migration: usize,
        result: Result<(), Errno>,
    ) {
        self.note_origin_written();
        let copy_back = &mut self.migrations.all[migration].copy_back;
        copy_back.error = copy_back.error.or(result.err());
        copy_back.writes_left -= 1;
        if copy_back.writes_left == 0 {
            let result = copy_back.error.map_or(Ok(()), Err);
            let (block, _) = self.resident_task(migration);
            let outcome = result.map_err(|errno| (Device::Origin, errno));
            self.note_write_back(now, block, outcome);
            self.copied(now, migration, result);
        }
    }

    /// A dirty block has been copied to the origin, or could not be.
    pub(in crate::engine) fn copied(
        &mut self,
        now: Nanos,
        migration: usize,
        result: Result<(), Errno>,
    ) {
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
