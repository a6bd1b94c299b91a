//! The file that holds the data: direct I/O where it can be had.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use nix::fcntl::{FallocateFlags, Flock, FlockArg, fallocate};

use super::file_system::FileLook;

/// Offsets, lengths and buffers of direct I/O are multiples of this, bytes. Most devices would
/// take 512, but a whole page never shares a page of the cache with a buffered neighbour.
pub const DIRECT_ALIGN: usize = 4096;

/// The backing file, open twice.
///
/// Direct I/O is preferred: the modelled device then competes with nobody for the page cache,
/// and a daemon that never dirties pages cannot be caught waiting for its own write-back when
/// memory is short. Where the file system refuses it, and for requests that do not cover whole
/// pages, the buffered handle serves; the kernel keeps the two coherent.
#[derive(Debug)]
pub struct Backing {
    buffered: Flock<File>,
    direct: Option<File>,
    size_bytes: u64,
    durability: Durability,
}

/// What a flush does for the data on the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// fdatasync: what was flushed survives the computer.
    Synced,
    /// Nothing: it survives this process. For a laboratory whose disks are thrown away, because
    /// the host's own disk would add its flush to the modelled one's.
    Volatile,
}

impl Backing {
    /// Opens and locks the file, so that no second device serves it at the same time.
    pub fn open(path: &Path, durability: Durability) -> anyhow::Result<Backing> {
        let shown = path.display();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .with_context(|| {
                format!("cannot open backing file {shown} for reading and writing; make one with `truncate -s 2G {shown}`")
            })?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            bail!(
                "backing {shown} is not a regular file: give the path of a file, not of a directory or device"
            );
        }
        if metadata.len() == 0 {
            bail!(
                "backing file {shown} is empty, and its size is the device's: `truncate -s 2G {shown}` gives it one"
            );
        }
        let Ok(buffered) = Flock::lock(file, FlockArg::LockExclusiveNonblock) else {
            bail!(
                "backing file {shown} is in use by another flashdev: stop that one, or use another file"
            );
        };
        Ok(Backing {
            buffered,
            direct: open_direct(path),
            size_bytes: metadata.len(),
            durability,
        })
    }

    /// Size of the file when it was opened, bytes.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// The file once more, for buffered I/O; locked as long as this is.
    pub(crate) fn share(&self) -> io::Result<Arc<File>> {
        Ok(Arc::new(self.buffered.try_clone()?))
    }

    /// How the served file looks: owner, group and permission bits are the backing file's own.
    pub(crate) fn look(&self, name: OsString) -> io::Result<FileLook> {
        let metadata = self.buffered.metadata()?;
        Ok(FileLook {
            name,
            size_bytes: self.size_bytes,
            uid: metadata.uid(),
            gid: metadata.gid(),
            permissions: (metadata.mode() & 0o666) as u16,
        })
    }

    /// Reads a range that lies within the file.
    pub fn read(&self, offset: u64, len: usize) -> io::Result<PageBuffer> {
        let Some(direct) = &self.direct else {
            let mut buffer = PageBuffer::zeroed(len);
            read_up_to(&self.buffered, buffer.bytes_mut(), offset)?;
            return Ok(buffer);
        };
        // Whole pages around the range; at the end of the file the last one comes short.
        let lead = offset as usize % DIRECT_ALIGN;
        let pages_len = (lead + len).next_multiple_of(DIRECT_ALIGN);
        let mut buffer = PageBuffer::zeroed(pages_len);
        read_up_to(direct, buffer.bytes_mut(), offset - lead as u64)?;
        buffer.narrow(lead, len);
        Ok(buffer)
    }

    /// Writes a range that lies within the file.
    pub fn write(&self, offset: u64, data: &PageBuffer) -> io::Result<()> {
        let bytes = data.bytes();
        let whole_pages = (offset as usize | bytes.len()) % DIRECT_ALIGN == 0;
        match &self.direct {
            Some(direct) if whole_pages => direct.write_all_at(bytes, offset),
            _ => self.buffered.write_all_at(bytes, offset),
        }
    }

    /// Makes everything written so far as durable as was asked for.
    pub fn sync(&self) -> io::Result<()> {
        match self.durability {
            Durability::Synced => self.buffered.sync_data(),
            Durability::Volatile => Ok(()),
        }
    }

    /// Allocates, punches or zeroes a range, as fallocate(2) does.
    pub fn allocate(&self, mode: FallocateFlags, offset: u64, len: u64) -> io::Result<()> {
        fallocate(self.buffered.as_fd(), mode, offset as i64, len as i64).map_err(io::Error::from)
    }
}

/// The file once more for direct I/O, if a read really works: some file systems accept the flag
/// and refuse the I/O.
fn open_direct(path: &Path) -> Option<File> {
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

/// Reads until the buffer is full or the file ends; the rest stays zero.
fn read_up_to(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match file.read_at(buffer, offset) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                buffer = &mut buffer[count..];
                offset += count as u64;
                // A direct read comes short only at the end of the file, and could not go on
                // from the middle of a page.
                if count % DIRECT_ALIGN != 0 {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Bytes whose memory starts at a page boundary, as direct I/O wants it.
#[derive(Debug)]
pub struct PageBuffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
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
        // One page too many, so that a boundary lies within. The vector never grows, so the
        // boundary stays where it is.
        let memory = vec![0; len + DIRECT_ALIGN];
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
    fn narrow(&mut self, lead: usize, len: usize) {
        assert!(lead + len <= self.len);
        self.start += lead;
        self.len = len;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZE_BYTES: usize = 50_000;

    fn backing() -> (tempfile::NamedTempFile, Backing) {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(SIZE_BYTES as u64).unwrap();
        let backing = Backing::open(file.path(), Durability::Synced).unwrap();
        (file, backing)
    }

    #[test]
    fn a_file_is_served_once() {
        let (file, _backing) = backing();
        let error = Backing::open(file.path(), Durability::Synced)
            .unwrap_err()
            .to_string();
        assert!(error.contains("in use by another"), "{error}");
    }

    #[test]
    fn an_empty_or_missing_file_is_refused_with_a_remedy() {
        let empty = tempfile::NamedTempFile::new().unwrap();
        for path in [empty.path(), Path::new("/nonexistent/disk")] {
            let error = format!("{:#}", Backing::open(path, Durability::Synced).unwrap_err());
            assert!(error.contains("truncate -s"), "{error}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn what_is_written_is_read_back(
            writes in prop::collection::vec((0..SIZE_BYTES, 1..9000usize, any::<u8>(), any::<bool>()), 1..12)
        ) {
            let (_file, backing) = backing();
            let mut twin = vec![0u8; SIZE_BYTES];
            for (offset, len, byte, aligned) in writes {
                let offset = if aligned { offset & !4095 } else { offset };
                let len = if aligned { 8192 } else { len }.min(SIZE_BYTES - offset);
                twin[offset..offset + len].fill(byte);
                backing.write(offset as u64, &PageBuffer::copy_of(&vec![byte; len])).unwrap();
                let from = offset.saturating_sub(100);
                let until = (offset + len + 100).min(SIZE_BYTES);
                let seen = backing.read(from as u64, until - from).unwrap();
                prop_assert_eq!(seen.bytes(), &twin[from..until]);
            }
        }
    }
}
