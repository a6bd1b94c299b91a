//! What waits for the log: for a change to be recorded, for a commit, or for a sync, as a flush does.

use virtual_time::Nanos;

use super::action::{Action, Device, Errno, Health, IoState};
use super::health::{Stranded, SyncFor};
use super::{Engine, Waiting};
use crate::layout::Mask;
use crate::metadata::{LogDone, LogIo, LogPart, Ticket, pop_until};
use crate::policy::Slot;

/// The rest of an operation, once its change of metadata is recorded.
#[derive(Clone, Copy, Debug)]
pub(super) enum Continuation {
    /// A write into a slot that is known to be dirty now.
    Write {
        waiting: Waiting,
        slot: Slot,
        ticks: bool,
    },
    /// The same, to the origin as well.
    WriteThrough {
        waiting: Waiting,
        slot: Slot,
        ticks: bool,
    },
    /// A write that has put sub-blocks into a slot that were missing there.
    Extended {
        request: usize,
        slot: Slot,
        written: Mask,
    },
    /// A block has arrived.
    Arrived { migration: usize, index: usize },
    /// A write that has brought its block to the flash.
    Overwritten { migration: usize },
    /// All sub-blocks of a block are there.
    Filled { migration: usize },
    /// A block was demoted.
    Demoted { migration: usize },
    /// A block was discarded.
    Discarded { migration: usize },
}

/// A flush that waits for the syncs of these numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct SyncWaiter {
    pub(super) request: usize,
    pub(super) flash: u64,
    pub(super) origin: u64,
}

impl Engine {
    pub(super) fn begin_log_io(&mut self) {
        let Some(log) = &mut self.log else { return };
        let policy = &self.policy;
        while let Some(wanted) = log.next_io(|slot| policy.heat(slot)) {
            match wanted {
                LogIo::SyncFlash(_) => self.unsynced_flash.sync_begins(),
                LogIo::SyncOrigin(_) => self.unsynced_origin.sync_begins(),
                LogIo::Write { .. } => {}
            }
            let action = match wanted {
                LogIo::Write {
                    part,
                    offset,
                    bytes,
                } => Action::WriteMetadata {
                    io: self.ios.insert(IoState::Log(LogDone::Write(part))),
                    offset,
                    bytes,
                    in_background: part == LogPart::Checkpoint,
                },
                LogIo::SyncFlash(kind) => Action::Sync {
                    io: self.ios.insert(IoState::Log(LogDone::SyncFlash)),
                    device: Device::Flash,
                    kind,
                },
                LogIo::SyncOrigin(kind) => Action::Sync {
                    io: self.ios.insert(IoState::Log(LogDone::SyncOrigin)),
                    device: Device::Origin,
                    kind,
                },
            };
            self.actions.push(action);
        }
    }

    pub(super) fn log_io_done(&mut self, now: Nanos, done: LogDone, result: Result<(), Errno>) {
        if let Some(log) = &mut self.log {
            log.io_done(done, result.is_ok());
        }
        match done {
            LogDone::SyncFlash => self.unsynced_flash.sync_ends(result.is_ok()),
            LogDone::SyncOrigin => self.unsynced_origin.sync_ends(result.is_ok()),
            LogDone::Write(_) => {}
        }
        if let Err(errno) = result {
            self.log_failed(now, done, errno);
        }
    }

    /// Takes up what waited for the log.
    pub(super) fn settle_waiters(&mut self, now: Nanos) {
        let Some(log) = &self.log else { return };
        let (recorded, committed) = (log.recorded(), log.committed());
        let (flash, origin) = (log.flash_syncs(), log.origin_syncs());
        while let Some((_, then)) = pop_until(&mut self.for_record, recorded) {
            self.continue_with(now, then, true);
        }
        if !self.unrecorded.is_empty() {
            self.unrecorded.retain(|_, ticket| *ticket > recorded);
        }
        while let Some((_, request)) = pop_until(&mut self.for_commit, committed) {
            self.part_done(now, request, Ok(()));
        }
        let through = |waiter: &SyncWaiter| waiter.flash <= flash && waiter.origin <= origin;
        if self.for_syncs.iter().any(through) {
            let (done, left) = self.for_syncs.drain(..).partition(through);
            self.for_syncs = left;
            let done: Vec<SyncWaiter> = done;
            for waiter in done {
                self.part_done(now, waiter.request, Ok(()));
            }
        }
        self.copy_back_what_is_proven(flash);
        self.store_what_was_at_risk(now);
        if self.log_has_failed() {
            self.abandon_log(now);
        }
        self.begin_syncs_alone();
    }

    pub(super) fn continue_with(&mut self, now: Nanos, then: Continuation, recorded: bool) {
        match then {
            Continuation::Write {
                waiting,
                slot,
                ticks,
            } => self.write_recorded(now, waiting, slot, ticks, recorded),
            Continuation::WriteThrough {
                waiting,
                slot,
                ticks,
            } => self.through_recorded(now, waiting, slot, ticks, recorded),
            Continuation::Extended {
                request,
                slot,
                written,
            } => self.extension_recorded(now, request, slot, written, recorded),
            Continuation::Arrived { migration, index } => {
                self.arrived(now, migration, index, recorded)
            }
            Continuation::Overwritten { migration } => {
                self.overwrite_recorded(now, migration, recorded)
            }
            Continuation::Filled { migration } => self.filled(now, migration, recorded),
            Continuation::Demoted { migration } => self.gone(now, migration, recorded),
            Continuation::Discarded { migration } => {
                self.discard_recorded(now, migration, recorded)
            }
        }
    }

    /// Resumes at once if nothing need be recorded.
    pub(super) fn once_recorded(&mut self, now: Nanos, ticket: Option<Ticket>, then: Continuation) {
        match (ticket, &self.log) {
            (Some(ticket), Some(log)) if ticket > log.recorded() => match log.has_failed() {
                true => self.continue_with(now, then, false),
                false => self.for_record.push_back((ticket, then)),
            },
            _ => self.continue_with(now, then, true),
        }
    }

    /// Makes durable what was answered before, on origin and flash.
    pub(super) fn flush(&mut self, now: Nanos, request: usize) {
        match (&self.health, &mut self.log) {
            (_, None) => self.part_done(now, request, Ok(())),
            (Health::Healthy, Some(log)) => {
                // Without `sync` this is all there is: the model drains what was written.
                let origin = log.sync_origin();
                let before = log.committed();
                let number = log.commit();
                match number > before {
                    true => self.for_commit.push_back((number, request)),
                    false => self.for_syncs.push(SyncWaiter {
                        request,
                        flash: 0,
                        origin,
                    }),
                }
            }
            (Health::Degrading(_), _) => self.stranded.push(Stranded::Flush(request)),
            (Health::PassThrough(_), _) => self.sync_alone(Device::Origin, SyncFor::Flush(request)),
            (Health::ReadOnly(_), _) => self.part_done(now, request, Err(Errno::EIO)),
        }
    }

    pub(super) fn flush_volume(&mut self, now: Nanos, request: usize) {
        match &mut self.log {
            None => self.part_done(now, request, Ok(())),
            // Who syncs the flash is told of a failure once, and all must know of it.
            Some(_) if self.unsynced_flash.is_lost() => {
                self.part_done(now, request, Err(Errno::EIO));
            }
            Some(log) if log.has_failed() => {
                self.sync_alone(Device::Flash, SyncFor::Flush(request))
            }
            Some(log) => {
                let flash = log.sync_flash();
                self.for_syncs.push(SyncWaiter {
                    request,
                    flash,
                    origin: 0,
                });
            }
        }
    }
}
