//! What direct I/O takes: memory at page boundaries, and a file opened for it.

use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// Offsets, lengths and buffers of direct I/O are multiples of this, bytes. Most devices would
/// take 512, but a whole page never shares a page of the cache with a buffered neighbour.
pub const DIRECT_ALIGN: usize = 4096;

/// The file once more for direct I/O, if a read really works: some file systems accept the flag
/// and refuse the I/O.
pub(crate) fn open_direct(path: &Path) -> Option<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(path)
        .ok()?;
    let mut probe = PageBuffer::zeroed(DIRECT_ALIGN);
    file.read_at(probe.bytes_mut(), 0).ok()?;
    Some(file)
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
