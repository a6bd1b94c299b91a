//! Direct I/O: past the page cache, whatever a request's offset and length are.
//!
//! Where a file is read and written directly, none of it goes through the page cache. The kernel does not
//! keep the two coherent on a block device: while a direct write is under way that nobody waits for
//! (io_uring), a buffered read of the neighbourhood, or its read-ahead, brings old bytes into memory, and
//! what invalidates them came before (blkdev_direct_write of block/fops.c). Whoever then reads through the
//! page cache gets bytes that were overwritten, and a write of a part of a page puts them back.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use parking_lot::Mutex;

/// Memory for direct I/O begins at multiples of this, bytes; most devices would take less.
pub const DIRECT_ALIGN: usize = 4096;

/// What offsets and lengths of direct I/O may be multiples of: a device's sectors.
const SECTORS: [usize; 2] = [512, DIRECT_ALIGN];

/// A file that is read and written past the page cache.
#[derive(Debug)]
pub(crate) struct Direct {
    file: File,
    /// The same through the page cache: for the last bytes of a file that ends within a sector.
    buffered: File,
    /// Offsets and lengths of I/O are multiples of it, bytes.
    sector: usize,
    /// Held by whoever writes a part of a sector, and so writes again what is around it.
    merging: Mutex<()>,
}

impl Direct {
    /// Opens it, if a read really works: some file systems accept the flag and refuse the I/O.
    pub(crate) fn open(path: &Path) -> Option<Direct> {
        Direct::open_with(path, true)
    }

    /// The same for who only reads.
    pub(crate) fn open_read_only(path: &Path) -> Option<Direct> {
        Direct::open_with(path, false)
    }

    fn open_with(path: &Path, is_written: bool) -> Option<Direct> {
        let open = |flags| {
            OpenOptions::new()
                .read(true)
                .write(is_written)
                .custom_flags(flags)
                .open(path)
                .ok()
        };
        let file = open(libc::O_DIRECT)?;
        let mut probe = PageBuffer::zeroed(DIRECT_ALIGN);
        let mut reads = |sector: usize| {
            let bytes = &mut probe.bytes_mut()[..sector];
            file.read_at(bytes, sector as u64).is_ok()
        };
        let sector = SECTORS.into_iter().find(|sector| reads(*sector))?;
        Some(Direct {
            sector,
            file,
            buffered: open(0)?,
            merging: Mutex::new(()),
        })
    }

    /// The file, for I/O that it takes.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Whether a range is of whole sectors, and so can be had in one go.
    pub(crate) fn takes(&self, offset: u64, len: usize) -> bool {
        (offset as usize | len) % self.sector == 0
    }

    /// Fills the buffer from this place on.
    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        if self.takes(offset, buffer.len()) && is_aligned(buffer) {
            return self.file.read_exact_at(buffer, offset);
        }
        let (start, lead, len) = self.around(offset, buffer.len());
        let mut whole = PageBuffer::recycled(len);
        let bytes_read = self.read_up_to(whole.bytes_mut(), start)?;
        if bytes_read < lead + buffer.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer.copy_from_slice(&whole.bytes()[lead..lead + buffer.len()]);
        Ok(())
    }

    /// Stores the bytes from this place on.
    pub(crate) fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        if !self.takes(offset, bytes.len()) {
            return self.merge(bytes, offset);
        }
        if is_aligned(bytes) {
            return self.file.write_all_at(bytes, offset);
        }
        let mut aligned = PageBuffer::recycled(bytes.len());
        aligned.bytes_mut().copy_from_slice(bytes);
        self.file.write_all_at(aligned.bytes(), offset)
    }

    /// Stores parts of sectors: what is around them is read and written again.
    fn merge(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let _alone = self.merging.lock();
        let (start, lead, len) = self.around(offset, bytes.len());
        let mut whole = PageBuffer::recycled(len);
        if self.read_up_to(whole.bytes_mut(), start)? < len {
            return self.buffered.write_all_at(bytes, offset);
        }
        whole.bytes_mut()[lead..lead + bytes.len()].copy_from_slice(bytes);
        self.file.write_all_at(whole.bytes(), start)
    }

    /// The whole sectors around a range: where they begin, how far in it begins, and their length.
    fn around(&self, offset: u64, len: usize) -> (u64, usize, usize) {
        let lead = offset as usize % self.sector;
        let whole = (lead + len).next_multiple_of(self.sector);
        (offset - lead as u64, lead, whole)
    }

    /// Reads until the buffer is full or the file ends; returns how much that was.
    fn read_up_to(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut bytes_read = 0;
        while bytes_read < buffer.len() {
            match self
                .file
                .read_at(&mut buffer[bytes_read..], offset + bytes_read as u64)
            {
                Ok(0) => break,
                Ok(count) => bytes_read += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            // Nothing but the end of the file lies within a sector.
            if bytes_read % self.sector != 0 {
                break;
            }
        }
        Ok(bytes_read)
    }
}

fn is_aligned(memory: &[u8]) -> bool {
    memory.as_ptr() as usize % DIRECT_ALIGN == 0
}

/// Bytes whose memory starts at a page boundary, as direct I/O wants it.
#[derive(Debug)]
pub struct PageBuffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

/// Most memory that a thread keeps, and the most of one buffer: those of hits, not of migrations.
const SPARE_BUFFERS: usize = 4;
const SPARE_BYTES: usize = 128 << 10;

thread_local! {
    /// Memory of buffers that were dropped in this thread.
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

impl Drop for PageBuffer {
    fn drop(&mut self) {
        if !(1..=SPARE_BYTES).contains(&self.memory.len()) {
            return;
        }
        let memory = std::mem::take(&mut self.memory);
        // A thread that ends has no list any more.
        let _ = SPARE.try_with(|spare| {
            let spare = &mut *spare.borrow_mut();
            if spare.len() < SPARE_BUFFERS {
                spare.push(memory);
            }
        });
    }
}

impl PageBuffer {
    /// No bytes, and no memory.
    pub const fn empty() -> PageBuffer {
        PageBuffer {
            memory: Vec::new(),
            start: 0,
            len: 0,
        }
    }

    /// So many zeros.
    pub fn zeroed(len: usize) -> PageBuffer {
        PageBuffer::within(vec![0; len + DIRECT_ALIGN], len)
    }

    /// So many bytes for somebody who fills them all: what was in them before is anybody's guess.
    pub fn recycled(len: usize) -> PageBuffer {
        let fits = |memory: &Vec<u8>| memory.len() >= len + DIRECT_ALIGN;
        let spare = SPARE.with_borrow_mut(|spare| spare.pop()).filter(fits);
        match spare {
            Some(memory) => PageBuffer::within(memory, len),
            None => PageBuffer::zeroed(len),
        }
    }

    /// The memory is one page too long, so that a boundary lies within. The vector never grows, so
    /// the boundary stays where it is.
    fn within(memory: Vec<u8>, len: usize) -> PageBuffer {
        let start = memory.as_ptr().align_offset(DIRECT_ALIGN);
        PageBuffer { memory, start, len }
    }

    /// A copy of these bytes.
    pub fn copy_of(bytes: &[u8]) -> PageBuffer {
        let mut buffer = PageBuffer::zeroed(bytes.len());
        buffer.bytes_mut().copy_from_slice(bytes);
        buffer
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }

    /// The bytes, to be filled.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }

    /// Keeps `len` bytes from `lead` on.
    pub(crate) fn narrow(&mut self, lead: usize, len: usize) {
        assert!(lead + len <= self.len);
        self.start += lead;
        self.len = len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::fd::AsRawFd;

    const SIZE: usize = 40 << 10;

    fn file() -> Option<(tempfile::NamedTempFile, Direct)> {
        let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        file.as_file().set_len(SIZE as u64).unwrap();
        file.as_file().sync_all().unwrap();
        let direct = Direct::open(file.path());
        if direct.is_none() {
            eprintln!("skipped: no direct I/O here");
        }
        Some((file, direct?))
    }

    /// How many pages of it are in the page cache.
    fn pages_in_memory(file: &File) -> usize {
        let mut pages = [0u8; SIZE / 4096];
        // SAFETY: a mapping of its own, which nobody touches, and a vector with a byte for each page.
        unsafe {
            let none = std::ptr::null_mut();
            let fd = file.as_raw_fd();
            let at = libc::mmap(none, SIZE, libc::PROT_READ, libc::MAP_SHARED, fd, 0);
            assert_ne!(at, libc::MAP_FAILED);
            assert_eq!(libc::mincore(at, SIZE, pages.as_mut_ptr()), 0);
            libc::munmap(at, SIZE);
        }
        pages.iter().filter(|page| **page & 1 == 1).count()
    }

    /// A file system with blocks of 1 KiB, and a log of sectors: both once went through the page
    /// cache, beside direct writes, and were given what had been overwritten.
    #[test]
    fn nothing_of_it_is_in_the_page_cache_whatever_is_read_and_written() {
        let Some((file, direct)) = file() else { return };
        let before = pages_in_memory(file.as_file());
        let bytes = [7; 3000];
        for (offset, len) in [
            (0, 1024),
            (1024, 512),
            (5120, 3000),
            (9999, 1),
            (8192, 1536),
        ] {
            direct.write_all_at(&bytes[..len], offset).unwrap();
            let mut read = vec![0; len];
            direct.read_exact_at(&mut read, offset).unwrap();
            assert_eq!(read, bytes[..len], "{offset}");
        }
        assert_eq!((before, pages_in_memory(file.as_file())), (0, 0));
    }

    #[test]
    fn parts_of_a_sector_that_are_written_at_once_are_all_there() {
        let Some((_file, direct)) = file() else {
            return;
        };
        std::thread::scope(|scope| {
            for writer in 0..8usize {
                let direct = &direct;
                scope.spawn(move || {
                    for round in 0..50u8 {
                        let bytes = [round; 64];
                        direct.write_all_at(&bytes, writer as u64 * 64).unwrap();
                    }
                });
            }
        });
        let mut read = [0; 512];
        direct.read_exact_at(&mut read, 0).unwrap();
        assert_eq!(read, [49; 512]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        /// Up to an end within a sector, and not beyond.
        #[test]
        fn any_range_is_written_and_read(
            end in SIZE - 600..SIZE,
            ranges in prop::collection::vec((0..SIZE, 1..6000usize, any::<u8>()), 1..10),
        ) {
            let Some((file, direct)) = file() else { return Ok(()) };
            file.as_file().set_len(end as u64).unwrap();
            let mut twin = vec![0u8; end];
            for (offset, len, byte) in ranges {
                let offset = offset.min(end - 1);
                let len = len.min(end - offset);
                twin[offset..offset + len].fill(byte);
                direct.write_all_at(&vec![byte; len], offset as u64).unwrap();
                let mut read = vec![0; end];
                direct.read_exact_at(&mut read, 0).unwrap();
                prop_assert!(read == twin);
            }
            prop_assert_eq!(file.as_file().metadata().unwrap().len(), end as u64);
            prop_assert!(direct.read_exact_at(&mut [0; 2], end as u64 - 1).is_err());
        }
    }
}
