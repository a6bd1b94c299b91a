//! What was written to a device since its last good sync. Once a sync fails, the device may have lost
//! that, and what it reads there is another block's, or older: no read of it counts. And as a loss is
//! told by the next sync at the earliest, nothing is copied to the origin before one has proven it.

use std::ops::Range;

use roaring::RoaringBitmap;
use virtual_time::Nanos;

use super::action::{Device, Errno, IoState};
use super::migration::Task;
use super::{Engine, pop_until};

/// Slots of the flash, or blocks of the origin.
#[derive(Debug, Default)]
pub(super) struct Unsynced {
    /// Written since the last sync began, or under way.
    written: RoaringBitmap,
    /// What a sync that is under way covers.
    syncing: RoaringBitmap,
    lost: bool,
    /// All is believed; of tests, which must find that out.
    #[cfg(test)]
    pub(super) careless: bool,
}

impl Unsynced {
    fn write(&mut self, places: Range<u32>) {
        match places.len() {
            1 => drop(self.written.insert(places.start)),
            _ => drop(self.written.insert_range(places)),
        }
    }

    pub(super) fn sync_begins(&mut self) {
        self.syncing |= std::mem::take(&mut self.written);
    }

    /// A sync has ended; one that failed has lost some of it, and no later one would tell.
    pub(super) fn sync_ends(&mut self, succeeded: bool) {
        match succeeded && !self.lost {
            true => self.syncing.clear(),
            false => self.lost = true,
        }
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost
    }

    fn holds(&self, places: Range<u32>) -> bool {
        #[cfg(test)]
        if self.careless {
            return false;
        }
        let within = |set: &RoaringBitmap| set.range_cardinality(places.clone()) > 0;
        within(&self.written) || within(&self.syncing)
    }
}

impl Engine {
    pub(super) fn unsynced(&mut self, device: Device) -> &mut Unsynced {
        match device {
            Device::Flash => &mut self.unsynced_flash,
            Device::Origin => &mut self.unsynced_origin,
        }
    }

    /// Notes what an I/O writes: when it begins, as a failed sync loses what is under way, too, and
    /// when it ends, as no sync that began meanwhile covers it.
    pub(super) fn note_write(&mut self, state: &IoState) {
        // Without a log there is nothing to lose.
        if self.log.is_none() {
            return;
        }
        if let Some((device, places)) = self.written_by(state) {
            self.unsynced(device).write(places);
        }
    }

    fn written_by(&self, state: &IoState) -> Option<(Device, Range<u32>)> {
        let run = |first: u32, count: u32| first..first + count;
        let of_task = |migration: usize| match self.migrations.task(migration) {
            Task::Overwrite(overwrite) => overwrite.slot,
            Task::Fill(fill) => fill.slot,
            task => unreachable!("{task:?} writes to no slot of its own"),
        };
        Some(match *state {
            IoState::Hit {
                write: true,
                slot,
                count,
                ..
            } => (Device::Flash, run(slot, count)),
            IoState::Extend { slot, .. } => (Device::Flash, run(slot, 1)),
            IoState::Overwrite { migration } | IoState::FillStore { migration } => {
                (Device::Flash, run(of_task(migration), 1))
            }
            IoState::FetchStore { migration, index } => match self.migrations.task(migration) {
                Task::Fetch(fetch) => (Device::Flash, run(fetch.blocks[index].1, 1)),
                task => unreachable!("{task:?} is no fetch"),
            },
            IoState::Through { through, device } => {
                let hit = &self.throughs[through].hit;
                match device {
                    Device::Flash => (device, run(hit.slot, 1)),
                    Device::Origin => (device, run(hit.piece.block, 1)),
                }
            }
            IoState::Miss {
                write: true,
                piece,
                count,
                ..
            }
            | IoState::Discard { piece, count, .. } => (Device::Origin, run(piece.block, count)),
            IoState::CopyBack { migration } => {
                (Device::Origin, run(self.resident_task(migration).0, 1))
            }
            IoState::DiscardCached { migration } => {
                (Device::Origin, run(self.discard_task(migration).block, 1))
            }
            _ => return None,
        })
    }

    /// What became of an I/O, if it has read what its device may have lost: nothing.
    pub(super) fn believed(&self, state: &IoState, result: Result<(), Errno>) -> Result<(), Errno> {
        match result.is_ok() && self.has_read_what_may_be_lost(state) {
            true => Err(Errno::EIO),
            false => result,
        }
    }

    fn has_read_what_may_be_lost(&self, state: &IoState) -> bool {
        let (flash, origin) = (&self.unsynced_flash, &self.unsynced_origin);
        if !flash.lost && !origin.lost {
            return false;
        }
        match *state {
            IoState::Hit {
                write: false,
                slot,
                count,
                ..
            } => flash.lost && flash.holds(slot..slot + count),
            IoState::CopyOut { migration } => {
                let slot = self.resident_task(migration).1;
                flash.lost && flash.holds(slot..slot + 1)
            }
            IoState::Miss {
                write: false,
                piece,
                count,
                ..
            } => origin.lost && origin.holds(piece.block..piece.block + count),
            // What is fetched then is stored nowhere.
            IoState::FetchRead { .. } | IoState::FillRead { .. } => origin.lost,
            _ => false,
        }
    }

    /// Goes on with a copy of a slot once it is proven: at once where a good sync covers what was
    /// written there, else after one that begins now. Until then the flash may have lost it, and
    /// nobody know.
    pub(super) fn copy_back_once_proven(&mut self, now: Nanos, migration: usize) {
        let slot = self.resident_task(migration).1;
        let is_proven = !self.unsynced_flash.holds(slot..slot + 1);
        match self.log.as_mut().filter(|log| log.syncs() && !is_proven) {
            None => self.copy_back(migration),
            Some(log) if log.has_failed() => self.copied(now, migration, Err(Errno::EIO)),
            Some(log) => {
                let number = log.sync_flash();
                self.for_proof.push_back((number, migration));
            }
        }
    }

    /// Syncs up to this one have succeeded.
    pub(super) fn copy_back_what_is_proven(&mut self, synced: u64) {
        while let Some((_, migration)) = pop_until(&mut self.for_proof, synced) {
            self.copy_back(migration);
        }
    }

    /// There will be no sync any more.
    pub(super) fn drop_what_is_not_proven(&mut self, now: Nanos) {
        for (_, migration) in std::mem::take(&mut self.for_proof) {
            self.copied(now, migration, Err(Errno::EIO));
        }
    }
}
