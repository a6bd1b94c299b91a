//! The mounted directory with its files, in FUSE's terms.

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

use crate::reply::{Handler, Reply};

/// The first file; the directory is `INodeNo::ROOT`.
const FIRST_FILE: u64 = 2;

/// Largest request, bytes: what the kernel sends at most with its usual limit of 256 pages.
const REQUEST_BYTES_MAX: u32 = 1 << 20;

/// Requests the kernel may have outstanding here before it holds back asynchronous ones. The
/// usual 12-16 would cap the queue depth of the modelled device.
const BACKGROUND_MAX: u16 = 512;

/// How long the kernel need not ask again. A file that has grown is seen to have.
const ATTRIBUTES_TTL: Duration = Duration::from_secs(1);

/// What a file views like.
pub struct FileView {
    /// Its name in the mounted directory.
    pub name: OsString,
    /// Its size, bytes.
    pub size_bytes: u64,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Who may read and write it, as in chmod(2).
    pub permissions: u16,
}

/// A file and what is behind it.
pub struct ServedFile {
    /// What it looks like.
    pub view: FileView,
    /// What requests do.
    pub handler: Arc<dyn Handler>,
}

impl ServedFile {
    fn size_bytes(&self) -> u64 {
        self.handler.grown_to().unwrap_or(self.view.size_bytes)
    }

    /// The part of a request that lies within the file.
    fn clip(&self, offset: u64, len: u64) -> u64 {
        len.min(self.size_bytes().saturating_sub(offset))
    }
}

/// A directory with files.
pub(crate) struct Directory {
    files: Vec<ServedFile>,
    born: SystemTime,
}

impl Directory {
    pub(crate) fn new(files: Vec<ServedFile>) -> Directory {
        Directory {
            files,
            born: SystemTime::now(),
        }
    }

    fn file(&self, ino: INodeNo) -> Option<&ServedFile> {
        self.files.get(ino.0.checked_sub(FIRST_FILE)? as usize)
    }

    /// The files with their numbers.
    fn numbered(&self) -> impl Iterator<Item = (INodeNo, &ServedFile)> {
        let inos = (FIRST_FILE..).map(INodeNo);
        inos.zip(&self.files)
    }

    fn attributes(&self, ino: INodeNo) -> Option<FileAttr> {
        let first = self.files.first()?;
        let (view, kind, perm, size, nlink) = match self.file(ino) {
            _ if ino == INodeNo::ROOT => (&first.view, FileType::Directory, 0o555, 0, 2),
            Some(file) => {
                let (view, regular) = (&file.view, FileType::RegularFile);
                (view, regular, view.permissions, file.size_bytes(), 1)
            }
            None => return None,
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
            uid: view.uid,
            gid: view.gid,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        })
    }
}

impl Filesystem for Directory {
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
        let entry = self.numbered().find(|(_, file)| file.view.name == name);
        let attributes = entry.and_then(|(ino, _)| self.attributes(ino));
        match attributes {
            Some(attributes) if parent == INodeNo::ROOT => {
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
        if self.file(ino).is_none() {
            return reply.error(Errno::EISDIR);
        }
        // Past the page cache, or memory would reply for the modelled device; and writes side
        // by side, or the kernel would hand them over one at a time.
        let flags = FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES;
        reply.opened(FileHandle(0), flags);
    }

    fn read(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let Some(file) = self.file(ino) else {
            return reply.error(Errno::EBADF);
        };
        match file.clip(offset, u64::from(size)) {
            0 => reply.data(&[]),
            len => file.handler.read(offset, len as u32, Reply::Data(reply)),
        }
    }

    fn write(
        &self,
        _req: &Request,
        ino: INodeNo,
        _fh: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let Some(file) = self.file(ino) else {
            return reply.error(Errno::EBADF);
        };
        match file.clip(offset, data.len() as u64) {
            // As a block device does at its end.
            0 if !data.is_empty() => reply.error(Errno::ENOSPC),
            0 => reply.written(0),
            len => {
                let reply = Reply::Written(reply, len as u32);
                file.handler.write(offset, &data[..len as usize], reply);
            }
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
        ino: INodeNo,
        _fh: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        match self.file(ino) {
            Some(file) => file.handler.flush(Reply::Done(reply)),
            None => reply.error(Errno::EBADF),
        }
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
        let dots = [".", ".."].map(|name| (INodeNo::ROOT, FileType::Directory, OsStr::new(name)));
        let files = self
            .numbered()
            .map(|(ino, file)| (ino, FileType::RegularFile, file.view.name.as_os_str()));
        let entries = dots.into_iter().chain(files);
        for (index, (ino, kind, name)) in entries.enumerate().skip(offset as usize) {
            if reply.add(ino, index as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let bytes = self.files.iter().map(ServedFile::size_bytes);
        let blocks = bytes.sum::<u64>().div_ceil(4096);
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
        let Some(file) = self.file(ino) else {
            return reply.error(Errno::EBADF);
        };
        let end = offset.checked_add(length);
        if end.is_none_or(|end| end > file.size_bytes()) {
            return reply.error(Errno::EFBIG);
        }
        let known = FallocateFlags::FALLOC_FL_KEEP_SIZE
            | FallocateFlags::FALLOC_FL_PUNCH_HOLE
            | FallocateFlags::FALLOC_FL_ZERO_RANGE;
        match FallocateFlags::from_bits(mode) {
            Some(flags) if known.contains(flags) => {
                let reply = Reply::Done(reply);
                file.handler.allocate(flags, offset, length, reply);
            }
            _ => reply.error(Errno::EOPNOTSUPP),
        }
    }
}
