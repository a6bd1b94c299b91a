//! Discards: whole blocks whose data nobody wants any more.
//!
//! What is discarded reads as zeros once that is answered, as punched holes do; dm-cache promises less.
//! Before the answer, and after a crash, it may still be there, but must not come and go: what one read
//! has found, later ones find. So what the log calls clean is on the origin at all times:
//!
//! - A clean block leaves the cache first, then the origin forgets it. After a crash in between, the
//!   origin has the same data.
//! - The origin forgets a dirty block first, since it may have older data, then the cache does. A crash
//!   in between finds it dirty, as it was, and a flush makes both last together, as it does for a block
//!   that is written back.

use virtual_time::Nanos;

use super::action::{Action, Errno, Health, IoState};
use super::health::Stranded;
use super::migration::{Discard, Task};
use super::request::Route;
use super::{BlockLock, Continuation, Engine, Waiting};
use crate::metadata::Change;
use crate::policy::{Block, Work};

/// Of a large discard, thousands may wait; taking up all of them after each that was done would keep
/// hits waiting. Those that still have to wait go behind the others.
const RETRIED_AT_ONCE: usize = 64;

impl Engine {
    /// What becomes of a discarded block: it goes past the cache, or elsewhere.
    pub(super) fn route_discard(&mut self, now: Nanos, waiting: Waiting) -> Route {
        let block = waiting.piece.block;
        match self.health {
            Health::Healthy => {}
            Health::PassThrough(_) => return self.discard_on_origin(block),
            Health::Degrading(_) => {
                self.put_aside(waiting);
                self.stranded.push(Stranded::Piece(waiting));
                return Route::Elsewhere;
            }
            Health::ReadOnly(_) => return self.refuse(waiting, Errno::EROFS),
        }
        if self.queue(waiting, true) {
            return Route::Elsewhere;
        }
        if let Some(BlockLock::WritingBack { discards, .. }) = self.locks.get_mut(&block) {
            discards.push(waiting);
            self.put_aside(waiting);
            return Route::Elsewhere;
        }
        match self.policy.resident(block) {
            None => self.discard_on_origin(block),
            Some(_) => {
                self.put_aside(waiting);
                match self.policy.discard(block) {
                    Some(work) => self.begin_discard(now, waiting, work),
                    // The policy has other plans for it, which are not far off.
                    None => self.discards.push_back(waiting),
                }
                Route::Elsewhere
            }
        }
    }

    fn discard_on_origin(&mut self, block: Block) -> Route {
        self.note_origin_write(block);
        Route::Origin { ticks: false }
    }

    fn refuse(&mut self, waiting: Waiting, errno: Errno) -> Route {
        let error = &mut self.requests[waiting.request].error;
        *error = error.or(Some(errno));
        Route::Elsewhere
    }

    /// Takes up those that had to wait for the policy's plans.
    pub(super) fn retry_discards(&mut self, now: Nanos) {
        let some = self.discards.len().min(RETRIED_AT_ONCE);
        let waiting = self.discards.drain(..some).collect();
        self.resume_all(now, waiting);
    }

    fn begin_discard(&mut self, now: Nanos, waiting: Waiting, work: Work) {
        let Work::Demote { block, slot } = work else {
            unreachable!("{work:?} gives nothing up");
        };
        let discard = Discard {
            block,
            slot,
            waiting,
        };
        let migration = self.begin_for_request(Task::Discard(discard));
        self.locks.insert(block, BlockLock::Demoting(Vec::new()));
        match self.users.writers(slot) {
            0 => self.discard_cached(now, migration),
            _ => self.migrations.wait_for_writers(slot, migration),
        }
    }

    /// Nobody writes to the block any more.
    pub(super) fn discard_cached(&mut self, now: Nanos, migration: usize) {
        match self.dirty.contains(self.discard_task(migration).block) {
            true => self.punch_cached(migration),
            false => self.forget(now, migration),
        }
    }

    /// Has the origin forget the block.
    fn punch_cached(&mut self, migration: usize) {
        let (offset, len) = self.config.span(self.discard_task(migration).block);
        self.discard_range(IoState::DiscardCached { migration }, offset, len);
    }

    /// Has the cache forget the block.
    fn forget(&mut self, now: Nanos, migration: usize) {
        let slot = self.discard_task(migration).slot;
        let ticket = self.log.as_mut().map(|log| log.append(slot, Change::Unmap));
        self.once_recorded(now, ticket, Continuation::Discarded { migration });
    }

    pub(super) fn discard_range(&mut self, state: IoState, offset: u64, len: u32) {
        self.note_write(&state);
        let io = self.ios.insert(state);
        self.actions.push(Action::Discard { io, offset, len });
    }

    pub(super) fn discard_task(&self, migration: usize) -> Discard {
        match *self.migrations.task(migration) {
            Task::Discard(discard) => discard,
            ref task => unreachable!("{task:?} discards nothing"),
        }
    }

    /// The origin has forgotten the block, or could not.
    pub(super) fn cached_discarded(
        &mut self,
        now: Nanos,
        migration: usize,
        result: Result<(), Errno>,
    ) {
        self.note_origin_written();
        match result {
            Ok(()) if self.resident.contains(self.discard_task(migration).block) => {
                self.forget(now, migration);
            }
            result => self.end_discard(now, migration, result),
        }
    }

    /// The log says that the block has left the cache, or never will. Until then it is read from there.
    pub(super) fn discard_recorded(&mut self, now: Nanos, migration: usize, recorded: bool) {
        let Discard { block, slot, .. } = self.discard_task(migration);
        if !recorded {
            return self.end_discard(now, migration, Err(Errno::EIO));
        }
        self.resident.remove(block);
        match self.dirty.contains(block) {
            true => {
                self.mark_clean(block, slot);
                self.end_discard(now, migration, Ok(()));
            }
            false => self.punch_cached(migration),
        }
    }

    fn end_discard(&mut self, now: Nanos, migration: usize, result: Result<(), Errno>) {
        let Discard {
            block,
            slot,
            waiting,
        } = self.discard_task(migration);
        let work = Work::Demote { block, slot };
        let gone = !self.resident.contains(block);
        self.policy.finished(work, gone);
        let others = self.unlock(block);
        self.end_migration(migration);
        self.part_done(now, waiting.request, result);
        self.resume_all(now, others);
    }
}
