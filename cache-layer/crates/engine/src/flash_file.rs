//! The flash below a tier: a file or block device, of which a tier has all, or some parts.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, bail};
use nix::fcntl::{FallocateFlags, FcntlArg, Flock, FlockArg, fallocate, fcntl};
use parking_lot::RwLock;

use crate::Refusal;
use crate::direct_io::Direct;
use witness::Watched;

pub(crate) mod witness;

/// A stretch of the flash, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where it begins.
    pub start: u64,
    /// How long it is.
    pub size: u64,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Part, String> {
        let wrong = || format!("`{text}` is no part of a flash: give START:SIZE in bytes");
        let (start, size) = text.split_once(':').ok_or_else(wrong)?;
        let number = |digits: &str| digits.parse::<u64>().map_err(|_| wrong());
        let part = Part {
            start: number(start)?,
            size: number(size)?,
        };
        match part.start.checked_add(part.size) {
            Some(end) if part.size > 0 && end <= i64::MAX as u64 => Ok(part),
            _ => Err(wrong()),
        }
    }
}

/// The parts, one behind the other, as one device. Each is locked: two tiers cannot have the same
/// one, and a program that has the whole device keeps tiers off it.
///
/// Parts of a real flash are read and written past the page cache ([`Direct`]): memory would only hold
/// again what the flash holds, or held, and answer for it. A whole file, which stands for a faster
/// device than it is, goes through the page cache.
#[derive(Debug)]
pub struct FlashFile {
    file: Flock<File>,
    direct: Option<Direct>,
    parts: RwLock<Vec<Part>>,
    /// How its parts are locked: F_WRLCK, or F_RDLCK by who only reads.
    lock_kind: libc::c_int,
    syncs: Watched,
}

impl FlashFile {
    /// Opens and locks; without parts all of it.
    pub fn open(path: &Path, parts: &[Part]) -> anyhow::Result<FlashFile> {
        FlashFile::open_with(path, parts, Direct::open, libc::F_WRLCK)
    }

    /// The same for who only reads: a write to it fails.
    pub fn open_read_only(path: &Path, parts: &[Part]) -> anyhow::Result<FlashFile> {
        FlashFile::open_with(path, parts, Direct::open_read_only, libc::F_RDLCK)
    }

    fn open_with(
        path: &Path,
        parts: &[Part],
        direct: impl FnOnce(&Path) -> Option<Direct>,
        lock_kind: libc::c_int,
    ) -> anyhow::Result<FlashFile> {
        let shown = path.display();
        let (is_written, how) = match lock_kind {
            libc::F_WRLCK => (true, "reading and writing"),
            _ => (false, "reading"),
        };
        let mut file = OpenOptions::new()
            .read(true)
            .write(is_written)
            .open(path)
            .with_context(|| format!("cannot open flash {shown} for {how}"))?;
        let size = size_of(&mut file).with_context(|| format!("cannot use flash {shown}"))?;
        if size == 0 {
            bail!(
                "flash {shown} is empty: give a device, or a file with a size (truncate -s 2G {shown})"
            );
        }
        let how = match parts {
            [] => FlockArg::LockExclusiveNonblock,
            _ => FlockArg::LockSharedNonblock,
        };
        let Ok(file) = Flock::lock(file, how) else {
            return Err(in_use(path));
        };
        let direct = match parts {
            [] => None,
            parts => {
                direct(path).filter(|direct| parts.iter().all(|part| is_in_sectors(direct, part)))
            }
        };
        let flash = FlashFile {
            file,
            direct,
            parts: RwLock::new(Vec::new()),
            lock_kind,
            syncs: Watched::default(),
        };
        match parts {
            [] => flash.parts.write().push(Part { start: 0, size }),
            parts => flash.set_parts(path, parts)?,
        }
        Ok(flash)
    }

    /// All of a file that somebody else has locked.
    pub(crate) fn whole(file: Flock<File>, size: u64) -> FlashFile {
        FlashFile {
            file,
            direct: None,
            parts: RwLock::new(vec![Part { start: 0, size }]),
            lock_kind: libc::F_WRLCK,
            syncs: Watched::default(),
        }
    }

    /// Has other parts from now on: more behind those it has, or fewer.
    ///
    /// # Errors
    /// One of them is beyond the device's end, or another tier's.
    pub(crate) fn set_parts(&self, path: &Path, parts: &[Part]) -> anyhow::Result<()> {
        let size = size_of(&mut self.file.try_clone()?)?;
        if let Some(part) = parts.iter().find(|part| part.start + part.size > size) {
            return Err(Refusal(format!(
                "part {}:{} is beyond the end of flash {}, which has {size} bytes",
                part.start,
                part.size,
                path.display()
            ))
            .into());
        }
        let cut = |part: &&Part| {
            self.direct
                .as_ref()
                .is_some_and(|direct| !is_in_sectors(direct, part))
        };
        if let Some(part) = parts.iter().find(cut) {
            let (start, size) = (part.start, part.size);
            let flash = path.display();
            return Err(Refusal(format!(
                "part {start}:{size} begins or ends within a sector of flash {flash}"
            ))
            .into());
        }
        for part in parts {
            if !self.lock(part, self.lock_kind) {
                return Err(in_use(path));
            }
        }
        let mut now = self.parts.write();
        for gone in now.iter().filter(|part| !parts.contains(part)) {
            self.lock(gone, libc::F_UNLCK);
        }
        // What was let go of may overlap what is kept.
        parts.iter().for_each(|part| {
            self.lock(part, self.lock_kind);
        });
        *now = parts.to_vec();
        Ok(())
    }

    /// A lock on a range, which belongs to the open file and ends with it (fcntl(2), open file
    /// description locks).
    fn lock(&self, part: &Part, kind: libc::c_int) -> bool {
        let range = libc::flock {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: part.start as i64,
            l_len: part.size as i64,
            l_pid: 0,
        };
        fcntl(self.file.as_fd(), FcntlArg::F_OFD_SETLK(&range)).is_ok()
    }

    /// Size of all parts together, bytes.
    pub fn size_bytes(&self) -> u64 {
        self.parts.read().iter().map(|part| part.size).sum()
    }

    /// The device, open for direct I/O; whoever reads then waits for it, rather than for memory.
    pub(crate) fn direct(&self) -> Option<&File> {
        self.direct.as_ref().map(Direct::file)
    }

    /// Where on the device whole sectors lie that direct I/O can reach in one go.
    pub(crate) fn direct_place(&self, offset: u64, len: usize) -> Option<u64> {
        let direct = self.direct.as_ref()?;
        let mut start = offset;
        for part in self.parts.read().iter() {
            if start < part.size {
                let at = part.start + start;
                let fits = start + len as u64 <= part.size;
                return (fits && direct.takes(at, len)).then_some(at);
            }
            start -= part.size;
        }
        None
    }

    /// What the file system knows of it.
    pub(crate) fn metadata(&self) -> io::Result<std::fs::Metadata> {
        self.file.metadata()
    }

    /// Fills the buffer from this place on.
    pub fn read_exact_at(&self, mut buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.each(offset, buffer.len() as u64, |at, len| {
            let (piece, rest) = std::mem::take(&mut buffer).split_at_mut(len as usize);
            buffer = rest;
            match &self.direct {
                Some(direct) => direct.read_exact_at(piece, at),
                None => self.file.read_exact_at(piece, at),
            }
        })
    }

    /// Stores the bytes from this place on.
    pub fn write_all_at(&self, mut bytes: &[u8], offset: u64) -> io::Result<()> {
        self.each(offset, bytes.len() as u64, |at, len| {
            let (piece, rest) = bytes.split_at(len as usize);
            bytes = rest;
            match &self.direct {
                Some(direct) => direct.write_all_at(piece, at),
                None => self.file.write_all_at(piece, at),
            }
        })
    }

    /// Allocates, punches or zeroes a range, as fallocate(2) does.
    pub fn allocate(&self, mode: FallocateFlags, offset: u64, len: u64) -> io::Result<()> {
        self.each(offset, len, |at, len| {
            fallocate(self.file.as_fd(), mode, at as i64, len as i64).map_err(io::Error::from)
        })
    }

    /// Makes everything written so far durable.
    pub fn sync_data(&self) -> io::Result<()> {
        self.syncs.sync(|| self.file.sync_data())
    }

    /// The file or device itself.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    pub(crate) fn syncs(&self) -> &Watched {
        &self.syncs
    }

    /// Calls with each stretch of the device that a range is made of, in order.
    fn each(
        &self,
        mut offset: u64,
        mut len: u64,
        mut act: impl FnMut(u64, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        for part in self.parts.read().iter() {
            if len == 0 {
                break;
            }
            if offset >= part.size {
                offset -= part.size;
                continue;
            }
            let piece = len.min(part.size - offset);
            act(part.start + offset, piece)?;
            len -= piece;
            offset = 0;
        }
        match len {
            0 => Ok(()),
            _ => Err(io::Error::from_raw_os_error(libc::EIO)),
        }
    }
}

fn is_in_sectors(direct: &Direct, part: &Part) -> bool {
    direct.takes(part.start, part.size as usize)
}

fn in_use(path: &Path) -> anyhow::Error {
    let shown = path.display();
    Refusal(format!(
        "flash {shown} is in use by another process: stop that one, or use another flash"
    ))
    .into()
}

/// Size of a regular file or a block device, bytes.
///
/// # Errors
/// It is neither.
pub(crate) fn size_of(file: &mut File) -> anyhow::Result<u64> {
    let kind = file.metadata()?.file_type();
    if !kind.is_file() && !kind.is_block_device() {
        bail!("it is neither a regular file nor a block device");
    }
    Ok(file.seek(SeekFrom::End(0))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::direct_io::PageBuffer;
    use crate::ring::Rings;
    use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
    use std::process::Command;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::channel;

    #[test]
    fn whole_pages_and_pieces_of_them_are_one_truth() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let part = |start, size| Part { start, size };
        let parts = [part(64 << 10, 128 << 10), part(512 << 10, 64 << 10)];
        let flash = FlashFile::open(file.path(), &parts).unwrap();
        let mut twin = vec![0u8; 192 << 10];
        for (number, (offset, len)) in [(0, 8192), (100, 10), (4096, 131072), (126 << 10, 4096)]
            .into_iter()
            .enumerate()
        {
            let bytes = vec![number as u8 + 1; len + 1];
            // Aligned or not, as it comes.
            flash.write_all_at(&bytes[1..], offset as u64).unwrap();
            twin[offset..offset + len].fill(number as u8 + 1);
            let mut read = vec![0; twin.len()];
            flash.read_exact_at(&mut read, 0).unwrap();
            assert!(read == twin, "after write {number}");
        }
    }

    const PARTS: [Part; 2] = [Part { start: 8, size: 4 }, Part { start: 0, size: 6 }];

    fn file() -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), b"0123456789abcdef").unwrap();
        file
    }

    #[test]
    fn parts_are_one_device_in_the_order_they_were_given() {
        let file = file();
        let flash = FlashFile::open(file.path(), &PARTS).unwrap();
        assert_eq!(flash.size_bytes(), 10);
        let mut read = [0; 10];
        flash.read_exact_at(&mut read, 0).unwrap();
        assert_eq!(&read, b"89ab012345");
        flash.write_all_at(b"XYZ", 3).unwrap();
        assert_eq!(std::fs::read(file.path()).unwrap(), b"YZ23456789aXcdef");
        assert!(flash.read_exact_at(&mut read, 1).is_err());
    }

    #[test]
    fn two_tiers_share_a_flash_but_no_part_of_it() {
        let file = file();
        let first = FlashFile::open(file.path(), &PARTS).unwrap();
        let rest = Part { start: 12, size: 4 };
        let second = FlashFile::open(file.path(), &[rest]).unwrap();
        let overlap = Part { start: 11, size: 2 };
        for parts in [&[overlap][..], &[]] {
            let error = FlashFile::open(file.path(), parts).unwrap_err().to_string();
            assert!(error.contains("in use by another"), "{error}");
        }
        // What one lets go of, another may have.
        drop(second);
        first.set_parts(file.path(), &PARTS[..1]).unwrap();
        FlashFile::open(file.path(), &[PARTS[1]]).unwrap();
        let beyond = Part { start: 12, size: 5 };
        let error = FlashFile::open(file.path(), &[beyond]).unwrap_err();
        assert!(error.to_string().contains("beyond the end"), "{error}");
    }

    #[test]
    fn a_part_is_told_as_start_and_size() {
        assert_eq!("8:4".parse(), Ok(PARTS[0]));
        for wrong in [
            "",
            "8",
            "8:",
            ":4",
            "8:0",
            "-1:4",
            "8:4:2",
            "9223372036854775807:1",
        ] {
            assert!(wrong.parse::<Part>().is_err(), "{wrong}");
        }
    }

    /// A loop device, which is a block device as a flash is; none without the right to make one.
    struct Loop(String);

    impl Loop {
        fn over(path: &Path) -> Option<Loop> {
            let argv = ["--find", "--show"];
            let made = Command::new("losetup").args(argv).arg(path).output().ok()?;
            let name = String::from_utf8(made.stdout).ok()?.trim().to_owned();
            made.status.success().then_some(Loop(name))
        }
    }

    impl Drop for Loop {
        fn drop(&mut self) {
            let _ = Command::new("losetup")
                .arg("--detach")
                .arg(&self.0)
                .status();
        }
    }

    /// The page cache of a block device keeps what is read into it while a direct write is under way
    /// that nobody waits for: now and then, and for good.
    #[test]
    fn what_was_overwritten_is_never_read_again() {
        // More than a thread waits for itself.
        const SLOT: usize = 128 << 10;
        const WRITES: u32 = 5000;
        let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        file.as_file().set_len(4 << 20).unwrap();
        let Some(device) = Loop::over(file.path()) else {
            eprintln!("skipped: no loop device here");
            return;
        };
        let path = Path::new(&device.0);
        let (start, size) = (0, 2 * SLOT as u64);
        let flash = FlashFile::open(path, &[Part { start, size }]).unwrap();
        let Some(rings) = flash.direct().and_then(Rings::open) else {
            eprintln!("skipped: no io_uring here");
            return;
        };
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // Of the neighbour, so that the kernel reads ahead.
            scope.spawn(|| {
                let other = File::open(path).unwrap();
                let mut bytes = [0; 1024];
                while !is_over.load(Ordering::Relaxed) {
                    for at in (512..SLOT as u64 - 1024).step_by(1024) {
                        flash.read_exact_at(&mut bytes, at).unwrap();
                        other.read_exact_at(&mut bytes, at).unwrap();
                    }
                    // Its own, so that it is read again.
                    posix_fadvise(
                        &other,
                        0,
                        SLOT as i64,
                        PosixFadviseAdvice::POSIX_FADV_DONTNEED,
                    )
                    .unwrap();
                }
            });
            let stale = (1..=WRITES).filter(|round| {
                let byte = *round as u8;
                let (sender, written) = channel();
                let bytes = Arc::new(PageBuffer::copy_of(&[byte; SLOT]));
                rings.write(SLOT as u64, bytes, 0..SLOT, move |end| {
                    sender.send(end.map(drop)).unwrap();
                });
                written.recv().unwrap().unwrap();
                let mut read = [0; 1024];
                flash.read_exact_at(&mut read, SLOT as u64 + 512).unwrap();
                read != [byte; 1024]
            });
            let stale = stale.count();
            is_over.store(true, Ordering::Relaxed);
            assert_eq!(stale, 0, "of {WRITES} writes");
        });
    }
}
