//! Devices that lose what is not synced when the power is cut, and what a session that starts does to
//! them.

use std::cell::RefCell;
use std::io;

use super::Faults;
use crate::dice::Dice;
use crate::layout::SECTOR_BYTES;
use crate::metadata::{FlashStore, Store};

/// A device with a volatile cache.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    /// What a read finds.
    pub(super) seen: Vec<u8>,
    /// What is on the medium.
    pub(super) medium: Vec<u8>,
    /// Writes in between, in order, and how many were made before them.
    pub(super) unsynced: Vec<(usize, Vec<u8>)>,
    settled: usize,
    /// Nothing of it is in a page cache: what its own cache has lost is not read any more.
    pub(super) direct: bool,
}

impl Disk {
    pub(super) fn new(bytes: u64) -> Disk {
        Disk {
            seen: vec![0; bytes as usize],
            medium: vec![0; bytes as usize],
            unsynced: Vec::new(),
            settled: 0,
            direct: false,
        }
    }

    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let offset = offset as usize;
        self.seen[offset..offset + bytes.len()].copy_from_slice(bytes);
        self.unsynced.push((offset, bytes.to_vec()));
    }

    pub(super) fn read(&self, offset: u64, len: u32) -> Vec<u8> {
        self.seen[offset as usize..][..len as usize].to_vec()
    }

    /// How many writes there have been.
    pub(super) fn written(&self) -> usize {
        self.settled + self.unsynced.len()
    }

    /// The first so many of all writes get to the medium, and no more.
    pub(super) fn sync(&mut self, writes: usize) {
        let writes = writes.saturating_sub(self.settled);
        self.settled += writes;
        for (offset, bytes) in self.unsynced.drain(..writes) {
            self.medium[offset..offset + bytes.len()].copy_from_slice(&bytes);
        }
    }

    /// The power is cut: of each sector, the writes up to a time of its own are on the medium.
    pub(super) fn cut(&mut self, dice: &mut Dice) {
        let sectors = self.medium.len() / SECTOR_BYTES as usize;
        let until: Vec<usize> = (0..sectors)
            .map(|_| match dice.below(3) {
                0 => 0,
                1 => self.unsynced.len(),
                _ => dice.below(self.unsynced.len() as u64 + 1) as usize,
            })
            .collect();
        for (at, (offset, bytes)) in self.unsynced.drain(..).enumerate() {
            for (byte, value) in (offset..).zip(bytes) {
                if at < until[byte / SECTOR_BYTES as usize] {
                    self.medium[byte] = value;
                }
            }
        }
        self.settled = 0;
        self.seen.clone_from(&self.medium);
    }

    /// A sync fails, or the device loses its cache: some of what was not synced is lost, though a page
    /// cache has it still, and the next sync says nothing of it.
    pub(super) fn lose(&mut self, dice: &mut Dice) {
        self.settled = self.written();
        let writes = std::mem::take(&mut self.unsynced);
        for (offset, bytes) in writes {
            if dice.once_in(2) {
                self.medium[offset..offset + bytes.len()].copy_from_slice(&bytes);
            }
        }
        if self.direct {
            self.forget_pages();
        }
    }

    /// What the page cache has is dropped, but for what it has still to write.
    pub(super) fn forget_pages(&mut self) {
        self.seen.clone_from(&self.medium);
        for (offset, bytes) in &self.unsynced {
            self.seen[*offset..offset + bytes.len()].copy_from_slice(bytes);
        }
    }
}

/// What becomes of the I/O of a session that starts.
pub(super) struct Fate {
    pub(super) faults: Faults,
    pub(super) dice: Dice,
    /// The process is killed after so many I/Os; never.
    pub(super) left: Option<u64>,
    /// A sync has failed.
    pub(super) sync_failed: bool,
}

impl Fate {
    /// All of it succeeds.
    fn kind() -> Fate {
        Fate {
            faults: Faults::default(),
            dice: Dice::new(0),
            left: None,
            sync_failed: false,
        }
    }

    /// Whether the next I/O is done.
    fn lets(&mut self, once_in: u64) -> io::Result<bool> {
        match &mut self.left {
            Some(0) => return Err(io::Error::other("the process is dead")),
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(once_in == 0 || !self.dice.once_in(once_in))
    }
}

fn failed<T>() -> io::Result<T> {
    Err(io::Error::other("the device has failed"))
}

/// Both devices, as a session finds them when it starts.
pub(super) struct Devices<'a> {
    disks: RefCell<(&'a mut Disk, &'a mut Disk)>,
    fate: RefCell<Fate>,
}

impl<'a> Devices<'a> {
    pub(super) fn new(flash: &'a mut Disk, origin: &'a mut Disk) -> Devices<'a> {
        Devices::with(flash, origin, Fate::kind())
    }

    pub(super) fn with(flash: &'a mut Disk, origin: &'a mut Disk, fate: Fate) -> Devices<'a> {
        Devices {
            disks: RefCell::new((flash, origin)),
            fate: RefCell::new(fate),
        }
    }

    pub(super) fn into_fate(self) -> Fate {
        self.fate.into_inner()
    }

    fn lets(&self, once_in: impl FnOnce(&Faults) -> u64) -> io::Result<bool> {
        let fate = &mut *self.fate.borrow_mut();
        fate.lets(once_in(&fate.faults))
    }

    fn sync(&self, disk: &mut Disk, once_in: impl FnOnce(&Faults) -> u64) -> io::Result<()> {
        if !self.lets(once_in)? {
            let fate = &mut *self.fate.borrow_mut();
            fate.sync_failed = true;
            disk.lose(&mut fate.dice);
            return failed();
        }
        disk.sync(disk.written());
        Ok(())
    }
}

impl FlashStore for Devices<'_> {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.disks.borrow().0.seen.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if !self.lets(|faults| faults.flash_read)? {
            return failed();
        }
        let len = buffer.len() as u32;
        buffer.copy_from_slice(&self.disks.borrow().0.read(offset, len));
        Ok(())
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let done = self.lets(|faults| faults.flash_write)?;
        let sectors = data.len() as u64 / SECTOR_BYTES;
        let written = match done {
            true => data.len(),
            false => (self.fate.borrow_mut().dice.below(sectors + 1) * SECTOR_BYTES) as usize,
        };
        self.disks.borrow_mut().0.write(offset, &data[..written]);
        if done { Ok(()) } else { failed() }
    }

    fn sync_flash(&self) -> io::Result<()> {
        let disks = &mut *self.disks.borrow_mut();
        self.sync(disks.0, |faults| faults.flash_sync)
    }
}

impl Store for Devices<'_> {
    fn read_origin_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if !self.lets(|faults| faults.origin_read)? {
            return failed();
        }
        let len = buffer.len() as u32;
        buffer.copy_from_slice(&self.disks.borrow().1.read(offset, len));
        Ok(())
    }

    fn sync_origin(&self) -> io::Result<()> {
        let disks = &mut *self.disks.borrow_mut();
        self.sync(disks.1, |faults| faults.origin_sync)
    }
}
