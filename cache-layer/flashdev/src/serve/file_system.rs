//! The mounted directory with its one file, in FUSE's terms.

use std::ffi::{OsStr, OsString};
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use nix::fcntl::FallocateFlags;

use super::engine::Engine;
use crate::model::Model;

/// The one file; the directory is `INodeNo::ROOT`.
const FILE: INodeNo = INodeNo(2);

/// Largest request, bytes: what the kernel sends at most with its usual limit of 256 pages.
const REQUEST_BYTES_MAX: u32 = 1 << 20;

/// Requests the kernel may have outstanding here before it holds back asynchronous ones. The
/// usual 12-16 would cap the queue depth of the modelled device.
const BACKGROUND_MAX: u16 = 512;

/// Nothing about the file changes, so the kernel need not ask again.
const ATTRIBUTES_TTL: Duration = Duration::from_secs(3600);

/// What the file looks like.
pub(super) struct FileLook {
    pub name: OsString,
    pub size_bytes: u64,
    pub uid: u32,
    pub gid: u32,
    pub permissions: u16,
}

/// A directory with one file.
pub(super) struct OneFile {
    look: FileLook,
    engine: Arc<Engine<Model>>,
    born: SystemTime,
}

impl OneFile {
    pub(super) fn new(look: FileLook, engine: Arc<Engine<Model>>) -> OneFile {
        OneFile {
            look,
            engine,
            born: SystemTime::now(),
        }
    }

    fn attributes(&self, ino: INodeNo) -> Option<FileAttr> {
        let look = &self.look;
        let (kind, perm, size, nlink) = match ino {
            INodeNo::ROOT => (FileType::Directory, 0o555, 0, 2),
            FILE => (FileType::RegularFile, look.permissions, look.size_bytes, 1),
            _ => return None,
        };
        Some(FileAttr {
            ino,
            size,
            blocks: size.div_ceil(512),
            atime: self.born,
            mtime: self.born,
            ctime: self.born,
            crtime: self.born,
            kind,
            perm,
            nlink,
            uid: look.uid,
            gid: look.gid,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }

    /// The part of a request that lies within the file.
    fn clip(&self, offset: u64, len: u64) -> u64 {
        len.min(self.look.size_bytes.saturating_sub(offset))
    }
}

impl Filesystem for OneFile {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Each of these is an offer: an older kernel without it still works, only slower.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let _ = config.add_capabilities(InitFlags::FUSE_MAX_PAGES);
        let _ = config.set_max_write(REQUEST_BYTES_MAX);
        let _ = config.set_max_background(BACKGROUND_MAX);
        let _ = config.set_congestion_threshold(BACKGROUND_MAX);
        Ok(())
    }

    fn lookup(&self, _req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(FILE) {
            Some(attributes) if parent == INodeNo::ROOT && name == self.look.name => {
                reply.entry(&ATTRIBUTES_TTL, &attributes, Generation(0));
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _req: &Request, ino: INodeNo, _fh: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(ino) {
            Some(attributes) => reply.attr(&ATTRIBUTES_TTL, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    /// A device keeps its size, owner and mode. Times are accepted and forgotten, for the sake
    /// of tools that set them in passing.
    fn setattr(
        &self,
        _req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let refused = size.is_some() || mode.is_some() || uid.is_some() || gid.is_some();
        match self.attributes(ino) {
            _ if refused => reply.error(Errno::EPERM),
            Some(attributes) => reply.attr(&ATTRIBUTES_TTL, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _req: &Request, ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        if ino != FILE {
            return reply.error(Errno::EISDIR);
        }
        // Past the page cache, or memory would answer for the modelled device; and writes side
        // by side, or the kernel would hand them over one at a time.
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(0), flags);
    }

    fn read(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.clip(offset, u64::from(size)) {
            0 => reply.data(&[]),
            len => self.engine.read(offset, len as u32, reply),
        }
    }

    fn write(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.clip(offset, data.len() as u64) {
            // As a block device does at its end.
            0 if !data.is_empty() => reply.error(Errno::ENOSPC),
            0 => reply.written(0),
            len => self.engine.write(offset, &data[..len as usize], reply),
        }
    }

    /// Comes with every close; durability is what fsync is for.
    fn flush(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _lock_owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn fsync(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        self.engine.flush(reply);
    }

    fn fsyncdir(
        &self,
        _req: &Request,
        _ino: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        reply.ok();
    }

    fn readdir(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        if ino != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let entries = [
            (INodeNo::ROOT, FileType::Directory, OsStr::new(".")),
            (INodeNo::ROOT, FileType::Directory, OsStr::new("..")),
            (FILE, FileType::RegularFile, self.look.name.as_os_str()),
        ];
        for (index, (ino, kind, name)) in entries.into_iter().enumerate().skip(offset as usize) {
            if reply.add(ino, index as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let blocks = self.look.size_bytes.div_ceil(4096);
        reply.statfs(blocks, 0, 0, 1, 0, 4096, 255, 4096);
    }

    fn fallocate(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let end = offset.checked_add(length);
        if ino != FILE || end.is_none_or(|end| end > self.look.size_bytes) {
            return reply.error(Errno::EFBIG);
        }
        let known = FallocateFlags::FALLOC_FL_KEEP_SIZE
            | FallocateFlags::FALLOC_FL_PUNCH_HOLE
            | FallocateFlags::FALLOC_FL_ZERO_RANGE;
        match FallocateFlags::from_bits(mode) {
            Some(flags) if known.contains(flags) => {
                self.engine.allocate(flags, offset, length, reply);
            }
            _ => reply.error(Errno::EOPNOTSUPP),
        }
    }
}
