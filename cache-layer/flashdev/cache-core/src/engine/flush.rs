//! The way of a flush: what was answered before it is made durable.

use virtual_time::Nanos;

use super::action::{Errno, Health};
use super::health::Stranded;
use super::{Engine, SyncWaiter};

impl Engine {
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
            (Health::PassThrough(_), _) => self.sync_origin_alone(request),
            (Health::ReadOnly(_), _) => self.part_done(now, request, Err(Errno::EIO)),
        }
    }

    pub(super) fn flush_volume(&mut self, now: Nanos, request: usize) {
        match &mut self.log {
            None => self.part_done(now, request, Ok(())),
            // Who syncs the flash is told of a failure once, and all must know of it.
            Some(log) if log.has_failed() => self.part_done(now, request, Err(Errno::EIO)),
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
