//! A store in memory that remembers every write and sync, and can be told to fail.

use std::sync::{Arc, Mutex, MutexGuard};

use super::*;

/// Which file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Flash,
    Origin,
}

/// What a store did.
#[derive(Clone, Debug)]
pub(super) enum Event {
    Write(Place, usize, Vec<u8>),
    Sync(Place),
}

#[derive(Debug)]
struct Inner {
    flash: Vec<u8>,
    origin: Vec<u8>,
    log: Vec<Event>,
    /// Bytes that can be written before the disk is full.
    room_bytes: usize,
    sync_fails: bool,
}

/// The store; clones share it.
#[derive(Clone, Debug)]
pub(super) struct Memory(Arc<Mutex<Inner>>);

impl Memory {
    pub(super) fn new(flash: Vec<u8>, origin: Vec<u8>) -> Memory {
        Memory(Arc::new(Mutex::new(Inner {
            flash,
            origin,
            log: Vec::new(),
            room_bytes: usize::MAX,
            sync_fails: false,
        })))
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap()
    }

    pub(super) fn flash(&self) -> Vec<u8> {
        self.inner().flash.clone()
    }

    pub(super) fn log(&self) -> Vec<Event> {
        self.inner().log.clone()
    }

    pub(super) fn log_len(&self) -> usize {
        self.inner().log.len()
    }

    pub(super) fn set_room(&self, bytes: usize) {
        self.inner().room_bytes = bytes;
    }

    pub(super) fn set_sync_fails(&self, fails: bool) {
        self.inner().sync_fails = fails;
    }

    pub(super) fn read(&self, place: Place, offset: usize, len: usize) -> Vec<u8> {
        let inner = self.inner();
        let bytes = match place {
            Place::Flash => &inner.flash,
            Place::Origin => &inner.origin,
        };
        bytes[offset..offset + len].to_vec()
    }

    pub(super) fn write(&self, place: Place, data: &[u8], offset: usize) -> io::Result<()> {
        let mut inner = self.inner();
        let count = data.len().min(inner.room_bytes);
        inner.room_bytes -= count;
        let written = data[..count].to_vec();
        let bytes = match place {
            Place::Flash => &mut inner.flash,
            Place::Origin => &mut inner.origin,
        };
        bytes[offset..offset + count].copy_from_slice(&written);
        inner.log.push(Event::Write(place, offset, written));
        if count < data.len() {
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        Ok(())
    }

    fn sync(&self, place: Place) -> io::Result<()> {
        let mut inner = self.inner();
        if inner.sync_fails {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        inner.log.push(Event::Sync(place));
        Ok(())
    }
}

impl FlashStore for Memory {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.inner().flash.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        buffer.copy_from_slice(&self.read(Place::Flash, offset as usize, buffer.len()));
        Ok(())
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.write(Place::Flash, data, offset as usize)
    }

    fn sync_flash(&self) -> io::Result<()> {
        self.sync(Place::Flash)
    }
}

impl Store for Memory {
    fn read_origin_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        buffer.copy_from_slice(&self.read(Place::Origin, offset as usize, buffer.len()));
        Ok(())
    }

    fn sync_origin(&self) -> io::Result<()> {
        self.sync(Place::Origin)
    }
}

/// A new cache in memory.
pub(super) fn new_cache(sync: bool) -> (Memory, Metadata<Memory>) {
    let memory = Memory::new(vec![0; FLASH_BYTES], Vec::new());
    let metadata = Metadata::format_on(memory.clone(), own(TINY, sync, 1)).unwrap();
    (memory, metadata)
}

/// Opens a flash as a process would after the last one was killed.
pub(super) fn reopen(flash: Vec<u8>) -> Result<(Metadata<Memory>, Recovered), MetadataError> {
    Metadata::open_on(Memory::new(flash, Vec::new()), own(TINY, false, 1))
}
