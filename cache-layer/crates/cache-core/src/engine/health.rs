//! What becomes of a cache whose devices fail.
//!
//! A cache that holds nothing but copies is given up: first it is detached from its origin, so that
//! no later session can take the stale copies for good, then the origin serves everything. One that
//! holds what the origin lacks serves reads, and refuses writes: whatever it did with them, somebody
//! could lose data that a flush had promised.

use virtual_time::Nanos;

use super::action::{Action, Device, Errno, Health, IoState};
use super::{Engine, SyncWaiter, Waiting};
use crate::metadata::{Log, LogDone, SyncKind};

/// Failures of the flash in what the origin serves as well, after which the cache is given up.
const FLASH_ERRORS_MAX: u32 = 16;

/// From errno(3): a sparse file on a full disk takes no new block, and goes on with those it has.
const ENOSPC: Errno = Errno(28);

/// What waits until it is known what becomes of the cache.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stranded {
    /// A write.
    Piece(Waiting),
    /// A flush.
    Flush(usize),
    /// A part of a request that reached the origin with this result, but not the flash.
    Written(usize, Result<(), Errno>),
}

/// Who waits for a sync that is not the log's.
#[derive(Clone, Copy, Debug)]
pub(super) enum SyncFor {
    /// A flush.
    Flush(usize),
    /// The one before [`Action::Detach`].
    Detach,
}

impl Engine {
    /// A write to the flash, or a sync of it, has failed.
    pub(super) fn flash_failed(&mut self, what: &str, errno: Errno) {
        let reason = format!("{what} failed with error {}", errno.0);
        if self.health != Health::Healthy {
            return;
        }
        self.health = match self.dirty.is_empty() {
            true => {
                // The origin goes on without it: no orderly end is written over what is old by then.
                if let Some(log) = &mut self.log {
                    log.fail();
                }
                // What was cleaned may not be durable on the origin yet, but is on the flash.
                self.sync_alone(Device::Origin, SyncFor::Detach);
                Health::Degrading(reason)
            }
            false => Health::ReadOnly(reason),
        };
        self.health_changed();
    }

    /// A read of the flash has failed; nothing is lost by it.
    pub(super) fn flash_read_failed(&mut self, errno: Errno) {
        self.count_flash_error("reading from the flash", errno);
    }

    /// A block that was fetched could not be stored; nothing is lost by it, but the origin is read for
    /// nothing.
    pub(super) fn flash_store_failed(&mut self, errno: Errno) {
        if errno != ENOSPC {
            self.count_flash_error("writing to the flash", errno);
        }
    }

    fn count_flash_error(&mut self, what: &str, errno: Errno) {
        self.flash_errors += 1;
        if self.flash_errors >= FLASH_ERRORS_MAX && self.dirty.is_empty() {
            self.flash_failed(what, errno);
        }
    }

    /// An I/O of the log's has failed: it does none any more.
    pub(super) fn log_failed(&mut self, now: Nanos, done: LogDone, errno: Errno) {
        match done {
            LogDone::Write(_) => self.flash_failed("writing metadata to the flash", errno),
            LogDone::SyncFlash => self.flash_failed("syncing the flash", errno),
            LogDone::SyncOrigin => self.origin_sync_failed(now, errno),
        }
    }

    /// What was written to the origin lately may be lost, and no later sync would tell. So nothing is
    /// promised any more, whoever asked for it: an orderly end would have the next start believe
    /// clean blocks that the origin lacks.
    pub(super) fn origin_sync_failed(&mut self, now: Nanos, errno: Errno) {
        self.unsynced_origin.sync_ends(false);
        if let Some(log) = &mut self.log {
            log.fail();
        }
        if !matches!(self.health, Health::ReadOnly(_)) {
            let reason = format!("syncing the origin failed with error {}", errno.0);
            self.health = Health::ReadOnly(reason);
            self.health_changed();
            self.rescue_all(now);
        }
    }

    /// Nothing that waits for the log will come.
    pub(super) fn abandon_log(&mut self, now: Nanos) {
        for (_, then) in std::mem::take(&mut self.for_record) {
            self.continue_with(now, then, false);
        }
        for (_, request) in std::mem::take(&mut self.for_commit) {
            self.strand(now, Stranded::Flush(request));
        }
        for SyncWaiter { request, flash, .. } in std::mem::take(&mut self.for_syncs) {
            match flash {
                0 => self.strand(now, Stranded::Flush(request)),
                _ => self.flush_volume(now, request),
            }
        }
        self.drop_what_is_not_proven(now);
        self.fail_what_was_at_risk(now);
    }

    /// Has something wait if it is not known yet what becomes of the cache.
    pub(super) fn strand(&mut self, now: Nanos, stranded: Stranded) {
        match self.health {
            Health::Degrading(_) => self.stranded.push(stranded),
            _ => self.rescue(now, stranded),
        }
    }

    fn rescue(&mut self, now: Nanos, stranded: Stranded) {
        match stranded {
            Stranded::Piece(waiting) => self.resume(now, waiting),
            Stranded::Flush(request) => self.flush(now, request),
            Stranded::Written(request, on_origin) => {
                let result = match self.health {
                    Health::PassThrough(_) => on_origin,
                    _ => Err(Errno::EIO),
                };
                self.part_done(now, request, result);
            }
        }
    }

    /// The origin is as durable as the flash was.
    fn synced_to_detach(&mut self) {
        if matches!(self.health, Health::Degrading(_)) {
            let io = self.ios.insert(IoState::Detach);
            self.actions.push(Action::Detach { io });
        }
    }

    /// The cache has been detached from its origin, or could not be.
    pub(super) fn detached(&mut self, now: Nanos, result: Result<(), Errno>) {
        let Health::Degrading(reason) = &self.health else {
            return;
        };
        self.health = match result {
            Ok(()) => Health::PassThrough(reason.clone()),
            Err(errno) => Health::ReadOnly(format!(
                "{reason}, and detaching the cache from its origin with error {}",
                errno.0
            )),
        };
        self.health_changed();
        self.rescue_all(now);
    }

    fn rescue_all(&mut self, now: Nanos) {
        for stranded in std::mem::take(&mut self.stranded) {
            self.rescue(now, stranded);
        }
    }

    /// Wants a sync of a device where the log does none any more.
    pub(super) fn sync_alone(&mut self, device: Device, whom: SyncFor) {
        self.syncs_alone.push((device, whom));
    }

    /// Begins those that are wanted, where no other is under way: Linux tells of an error of write-back
    /// once, so that of what one sync has lost, another that was under way meanwhile does not know.
    pub(super) fn begin_syncs_alone(&mut self) {
        for device in [Device::Flash, Device::Origin] {
            let is_its = |state: &IoState| match state {
                IoState::SyncAlone { device: of, .. } => *of == device,
                IoState::Log(LogDone::SyncFlash) => device == Device::Flash,
                IoState::Log(LogDone::SyncOrigin) => device == Device::Origin,
                _ => false,
            };
            let waiting = self.syncs_alone.iter().filter(|(of, _)| *of == device);
            let count = waiting.count();
            if count > 0 && !self.ios.iter().any(|(_, state)| is_its(state)) {
                let io = self.ios.insert(IoState::SyncAlone { device, count });
                self.actions.push(Action::Sync {
                    io,
                    device,
                    kind: SyncKind::Usual,
                });
            }
        }
    }

    /// Such a sync has ended, for the first so many who wanted one of the device.
    pub(super) fn synced_alone(
        &mut self,
        now: Nanos,
        (device, count): (Device, usize),
        result: Result<(), Errno>,
    ) {
        match (device, result) {
            (_, Ok(())) => {}
            (Device::Origin, Err(errno)) => self.origin_sync_failed(now, errno),
            (Device::Flash, Err(_)) => self.unsynced_flash.sync_ends(false),
        }
        let is_lost = match device {
            Device::Origin => matches!(self.health, Health::ReadOnly(_)),
            Device::Flash => self.unsynced_flash.is_lost(),
        };
        let result = if is_lost { Err(Errno::EIO) } else { result };
        for _ in 0..count {
            let first = self.syncs_alone.iter().position(|(of, _)| *of == device);
            match first.map(|first| self.syncs_alone.remove(first).1) {
                Some(SyncFor::Flush(request)) => self.part_done(now, request, result),
                Some(SyncFor::Detach) if result.is_ok() => self.synced_to_detach(),
                Some(SyncFor::Detach) | None => {}
            }
        }
    }

    fn health_changed(&mut self) {
        self.actions.push(Action::HealthChanged);
        self.stop_jobs();
        self.look_for_work = true;
    }

    /// Whether the metadata cannot be written any more.
    pub fn log_has_failed(&self) -> bool {
        self.log.as_ref().is_some_and(Log::has_failed)
    }

    /// Whether no metadata is written now, nor will be: then others may write there.
    pub fn log_is_over(&self) -> bool {
        let writes = |state: &IoState| matches!(state, IoState::Log(LogDone::Write(_)));
        self.log_has_failed() && !self.ios.iter().any(|(_, state)| writes(state))
    }
}
