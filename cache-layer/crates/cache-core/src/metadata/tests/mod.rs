//! Tests of what metadata promises: against a model, with a store that can be stopped anywhere.

use std::cell::RefCell;
use std::io;

use super::*;
use crate::layout::Layout;
use crate::policy::{Block, Slot};

mod computer;
mod damage;
mod golden;
mod growth;
mod kill;
mod memory;
mod model;
mod numbers;
mod process;
mod reconfigured;
mod refusals;
mod salvage;

/// As small as can be: journals of one page, so that checkpoints are frequent.
const TINY: Layout = Layout {
    block_bytes: 4096,
    metadata_bytes: 6 * 4096,
    cache_bytes: 5 * 4096,
    volume_bytes: 0,
};

const FLASH_BYTES: usize = 11 * 4096;

/// Blocks of the tests' origin.
const BLOCKS: u32 = 9;

/// A session of the tests; `boot` tells one run of the computer from another, and whom a witness knows.
fn own(layout: Layout, sync: bool, boot: u8) -> Session {
    Session {
        identity: Identity {
            layout,
            origin_id: [7; 16],
            origin_bytes: u64::from(BLOCKS) * layout.block_bytes,
        },
        sync,
        boot_id: [boot; 16],
        id: [boot; 16],
        witnessed: Some([boot; 16]),
    }
}

/// A log whose I/O is done when it is wanted, by whoever waits for it.
#[derive(Debug)]
struct Metadata<S> {
    store: S,
    log: RefCell<Log>,
}

impl<S: Store> Metadata<S> {
    fn format_on(store: S, session: Session) -> Result<Metadata<S>, MetadataError> {
        let log = RefCell::new(format(&store, &session)?);
        Ok(Metadata { store, log })
    }

    fn open_on(store: S, session: Session) -> Result<(Metadata<S>, Recovered), MetadataError> {
        let (log, recovered) = open(&store, &session)?;
        let log = RefCell::new(log);
        Ok((Metadata { store, log }, recovered))
    }

    fn map(&self, slot: Slot, block: Block) -> io::Result<()> {
        let (heat, missing, dirty) = (0, 0, false);
        let map = Change::Map {
            block,
            heat,
            missing,
            dirty,
        };
        self.change(slot, map)
    }

    fn unmap(&self, slot: Slot) -> io::Result<()> {
        self.change(slot, Change::Unmap)
    }

    fn dirty(&self, slot: Slot) -> io::Result<()> {
        self.change(slot, Change::Dirty)
    }

    fn clean(&self, slot: Slot) -> io::Result<()> {
        // What was written to the origin before.
        self.log.borrow_mut().origin_written();
        self.change(slot, Change::Clean)
    }

    fn change(&self, slot: Slot, change: Change) -> io::Result<()> {
        let ticket = self.log.borrow_mut().append(slot, change);
        self.work_until(|_| 0, |log| log.recorded() >= ticket)
    }

    fn commit(&self) -> io::Result<()> {
        self.log.borrow_mut().origin_written();
        let number = self.log.borrow_mut().commit();
        self.work_until(|_| 0, |log| log.committed() >= number)
    }

    fn close(&self, heat: impl Fn(Slot) -> u8) -> io::Result<()> {
        self.log.borrow_mut().close();
        self.work_until(heat, Log::is_closed)
    }

    fn work_until(&self, heat: impl Fn(Slot) -> u8, done: impl Fn(&Log) -> bool) -> io::Result<()> {
        let log = &mut *self.log.borrow_mut();
        while !done(log) {
            let Some(wanted) = log.next_io(&heat) else {
                assert!(
                    log.has_failed(),
                    "it wants nothing, but is not done: {log:?}"
                );
                return Err(io::Error::other("an earlier write or sync has failed"));
            };
            let (ended, result) = match wanted {
                LogIo::Write {
                    part,
                    offset,
                    bytes,
                } => (LogDone::Write(part), self.store.write_at(&bytes, offset)),
                LogIo::SyncFlash(_) => (LogDone::SyncFlash, self.store.sync_flash()),
                LogIo::SyncOrigin(_) => (LogDone::SyncOrigin, self.store.sync_origin()),
            };
            log.io_done(ended, result.is_ok());
            result?;
        }
        Ok(())
    }
}
