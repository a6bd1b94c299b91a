//! The file that holds the data: direct I/O where it can be had.

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, bail};
use nix::fcntl::{FallocateFlags, Flock, FlockArg, fallocate};

use crate::direct_io::{DIRECT_ALIGN, Direct, PageBuffer};
use crate::flash_file::witness::Watched;
use crate::flash_file::{FlashFile, size_of};
use crate::fuse::file_system::FileView;

/// The backing file, open twice.
///
/// I/O is direct ([`Direct`]): the modelled device then competes with nobody for the page cache,
/// and a daemon that never dirties pages cannot be caught waiting for its own write-back when
/// memory is short. Where the file system refuses it, the buffered handle serves.
#[derive(Debug)]
pub struct Backing {
    buffered: Flock<File>,
    direct: Option<Direct>,
    size_bytes: AtomicU64,
    durability: Durability,
    syncs: Watched,
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

impl Durability {
    /// As an option says.
    pub fn of(volatile: bool) -> Durability {
        match volatile {
            true => Durability::Volatile,
            false => Durability::Synced,
        }
    }
}

impl Backing {
    /// Opens and locks the file, so that no second device serves it at the same time.
    pub fn open(path: &Path, durability: Durability) -> anyhow::Result<Backing> {
        let shown = path.display();
        let exclusive = match std::fs::metadata(path) {
            // Claimed for as long as this lasts: nobody can mount it meanwhile (open(2), O_EXCL).
            Ok(about) if about.file_type().is_block_device() => libc::O_EXCL,
            _ => 0,
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(exclusive)
            .open(path)
            .with_context(|| {
                format!("cannot open backing file {shown} for reading and writing; make one with `truncate -s 2G {shown}`")
            })?;
        let Ok(size_bytes) = size_of(&mut file) else {
            bail!(
                "backing {shown} is neither a regular file nor a block device: give the path of one"
            );
        };
        if size_bytes == 0 {
            bail!(
                "backing file {shown} is empty, and its size is the device's: `truncate -s 2G {shown}` gives it one"
            );
        }
        let Ok(buffered) = Flock::lock(file, FlockArg::LockExclusiveNonblock) else {
            bail!(
                "backing file {shown} is in use by another process: stop that one, or use another file"
            );
        };
        Ok(Backing {
            buffered,
            direct: Direct::open(path),
            size_bytes: AtomicU64::new(size_bytes),
            durability,
            syncs: Watched::default(),
        })
    }

    /// Size of the file when it was opened, or when it was taken in that it has grown, bytes.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes.load(Ordering::Relaxed)
    }

    /// Its size by now, bytes; nothing changes by that.
    pub(crate) fn size_now(&self) -> anyhow::Result<u64> {
        size_of(&mut self.buffered.try_clone()?)
    }

    /// Takes in that it has grown to so many bytes.
    pub(crate) fn grow_to(&self, size_bytes: u64) {
        self.size_bytes.store(size_bytes, Ordering::Relaxed);
    }

    /// The file once more, for buffered I/O; locked as long as this is.
    pub fn share(&self) -> io::Result<Arc<FlashFile>> {
        let file = self.buffered.try_clone()?;
        // The same open file, so the same lock.
        let file = Flock::lock(file, FlockArg::LockExclusiveNonblock)
            .map_err(|(_, error)| io::Error::from(error))?;
        Ok(Arc::new(FlashFile::whole(file, self.size_bytes())))
    }

    /// How the served file views: owner, group and permission bits are the backing file's own.
    pub fn view(&self, name: OsString) -> io::Result<FileView> {
        Ok(view_of(&self.buffered.metadata()?, name, self.size_bytes()))
    }

    /// Reads a range that lies within the file.
    pub fn read(&self, offset: u64, len: usize) -> io::Result<PageBuffer> {
        let Some(direct) = &self.direct else {
            let mut buffer = PageBuffer::zeroed(len);
            self.read_up_to(&self.buffered, 1, buffer.bytes_mut(), offset)?;
            return Ok(buffer);
        };
        // Whole pages around the range; at the end of the file the last one comes short.
        let lead = offset as usize % DIRECT_ALIGN;
        let pages_len = (lead + len).next_multiple_of(DIRECT_ALIGN);
        let mut buffer = PageBuffer::zeroed(pages_len);
        let start = offset - lead as u64;
        self.read_up_to(direct.file(), DIRECT_ALIGN, buffer.bytes_mut(), start)?;
        buffer.narrow(lead, len);
        Ok(buffer)
    }

    /// Reads until the buffer is full or the file ends, where the rest stays zero.
    fn read_up_to(
        &self,
        file: &File,
        align: usize,
        buffer: &mut [u8],
        offset: u64,
    ) -> io::Result<()> {
        let read = |buffer: &mut [u8], offset| file.read_at(buffer, offset);
        read_up_to(read, align, buffer, offset, self.size_bytes())
    }

    /// Writes a range that lies within the file.
    pub fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        match &self.direct {
            Some(direct) => direct.write_all_at(bytes, offset),
            None => self.buffered.write_all_at(bytes, offset),
        }
    }

    /// Makes everything written so far as durable as was asked for.
    pub fn sync(&self) -> io::Result<()> {
        match self.durability {
            Durability::Synced => self.sync_forced(),
            Durability::Volatile => Ok(()),
        }
    }

    /// Makes everything written so far durable, whatever was asked for.
    pub fn sync_forced(&self) -> io::Result<()> {
        self.syncs.sync(|| self.buffered.sync_data())
    }

    /// The file or device itself.
    pub(crate) fn file(&self) -> &File {
        &self.buffered
    }

    pub(crate) fn syncs(&self) -> &Watched {
        &self.syncs
    }

    /// Allocates, punches or zeroes a range, as fallocate(2) does.
    pub fn allocate(&self, mode: FallocateFlags, offset: u64, len: u64) -> io::Result<()> {
        fallocate(self.buffered.as_fd(), mode, offset as i64, len as i64).map_err(io::Error::from)
    }
}

/// How a served file views, by what is behind it: its owner's alone.
pub(crate) fn view_of(behind: &Metadata, name: OsString, size_bytes: u64) -> FileView {
    FileView {
        name,
        size_bytes,
        uid: behind.uid(),
        gid: behind.gid(),
        permissions: (behind.mode() & 0o600) as u16,
    }
}

/// Reads by `read` until the buffer is full or `size_bytes` are reached; it can go on at multiples
/// of `align`.
///
/// # Errors
/// Whatever `read` fails with, or EIO if it comes short anywhere else: what is missing is not zeros.
fn read_up_to(
    read: impl Fn(&mut [u8], u64) -> io::Result<usize>,
    align: usize,
    mut buffer: &mut [u8],
    mut offset: u64,
    size_bytes: u64,
) -> io::Result<()> {
    while !buffer.is_empty() && offset < size_bytes {
        match read(buffer, offset) {
            // Somebody has cut the file, or the device has given up.
            Ok(0) => return Err(io::Error::from_raw_os_error(libc::EIO)),
            Ok(count) => {
                buffer = &mut buffer[count..];
                offset += count as u64;
                // A direct read cannot go on from the middle of a page; only the end of the file
                // lies there.
                if count % align != 0 && !buffer.is_empty() && offset < size_bytes {
                    return Err(io::Error::from_raw_os_error(libc::EIO));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
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

    #[test]
    fn a_read_that_comes_short_before_the_end_is_an_error_and_not_zeros() {
        let short = |most: usize| {
            move |buffer: &mut [u8], _: u64| {
                let count = buffer.len().min(most);
                buffer[..count].fill(7);
                Ok(count)
            }
        };
        let mut buffer = [0; 8192];
        read_up_to(short(4096), 4096, &mut buffer, 0, 8192).unwrap();
        assert_eq!(buffer, [7; 8192]);
        for most in [0, 100, 5000] {
            let error = read_up_to(short(most), 4096, &mut buffer, 0, 8192).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EIO), "{most}");
        }
        // The end of the file, in the middle of its last page.
        let mut buffer = [0; 8192];
        read_up_to(short(5000), 4096, &mut buffer, 0, 5000).unwrap();
        assert_eq!((buffer[4999], buffer[5000]), (7, 0));
        // Through the page cache it can go on anywhere.
        let mut buffer = [0; 8192];
        read_up_to(short(100), 1, &mut buffer, 0, 8192).unwrap();
        assert_eq!(buffer, [7; 8192]);
    }

    #[test]
    fn recycled_memory_is_as_long_and_as_aligned_as_new() {
        for len in [1, 8192, 65536, 100, 8192, 1 << 20, 4096] {
            let buffer = PageBuffer::recycled(len);
            assert_eq!(buffer.bytes().len(), len);
            assert_eq!(buffer.bytes().as_ptr() as usize % DIRECT_ALIGN, 0);
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
                backing.write(offset as u64, PageBuffer::copy_of(&vec![byte; len]).bytes()).unwrap();
                let from = offset.saturating_sub(100);
                let until = (offset + len + 100).min(SIZE_BYTES);
                let seen = backing.read(from as u64, until - from).unwrap();
                prop_assert_eq!(seen.bytes(), &twin[from..until]);
            }
        }
    }
}
