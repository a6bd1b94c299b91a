//! What an engine is told, and what it wants done.

use crate::layout::Layout;
use crate::metadata::{LogDone, SyncKind};
use crate::policy::PolicyKind;

/// Chosen by the driver; comes back in [`Action::Reply`]. Unique among those in flight.
pub type RequestId = u64;

/// An I/O that the engine has asked for; comes back in [`Engine::on_completion`].
///
/// [`Engine::on_completion`]: super::Engine::on_completion
pub type IoId = usize;

/// Memory for blocks on their way between the devices.
pub type BufferId = u64;

/// Work of many blocks that somebody waits for.
pub type JobId = usize;

/// An error number of the operating system, as in `errno(3)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Errno(pub i32);

impl Errno {
    /// Input/output error.
    pub const EIO: Errno = Errno(5);
    /// Read-only file system.
    pub const EROFS: Errno = Errno(30);
    /// Cannot send after transport endpoint shutdown.
    pub const ESHUTDOWN: Errno = Errno(108);
}

/// What somebody wants of the cached device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Read a range of the origin, through the cache.
    Read {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u32,
    },
    /// Write a range of the origin, through the cache.
    Write {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u32,
    },
    /// Forget whole blocks: from then on they read as zeros. The last one may be cut short by the
    /// origin's end.
    Discard {
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u32,
    },
    /// Make durable what was answered before.
    Flush,
    /// The same for whatever else lies on the flash.
    FlushVolume,
}

/// Which of the two devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Device {
    /// The fast one.
    Flash,
    /// The one that is cached.
    Origin,
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the device to the buffer.
    Read,
    /// From the buffer to the device.
    Write,
}

/// Where bytes come from or go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// A request's own, from a byte of it on.
    Request {
        /// Whose.
        id: RequestId,
        /// From here on.
        at: u32,
    },
    /// One for a migration, from a byte of it on.
    Migration {
        /// Which.
        id: BufferId,
        /// From here on.
        at: u32,
    },
}

/// Something to be done by whoever drives an engine, at once and in any order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Move bytes.
    Transfer {
        /// To be told when it is done.
        io: IoId,
        /// Between which device …
        device: Device,
        /// Which way.
        direction: Direction,
        /// From which byte of the device on.
        offset: u64,
        /// How many.
        len: u32,
        /// … and which memory.
        buffer: Buffer,
        /// Nobody waits for it; what somebody waits for comes first.
        in_background: bool,
    },
    /// Make a range of the origin read as zeros, without anybody having to write them.
    Discard {
        /// To be told when it is done.
        io: IoId,
        /// From which byte on.
        offset: u64,
        /// How many.
        len: u32,
    },
    /// Write metadata to the flash, as far as the page cache.
    WriteMetadata {
        /// To be told when it is done.
        io: IoId,
        /// Which byte of the flash.
        offset: u64,
        /// What.
        bytes: Vec<u8>,
        /// It is a part of a checkpoint: no request waits for it, and none should be kept by it.
        in_background: bool,
    },
    /// Make everything written to a device before durable.
    Sync {
        /// To be told when it is done.
        io: IoId,
        /// Which device.
        device: Device,
        /// How much it is about.
        kind: SyncKind,
    },
    /// See to it that the cache on the flash can never be taken for this origin's again.
    Detach {
        /// To be told when it is done.
        io: IoId,
    },
    /// A request is through.
    Reply {
        /// Which.
        id: RequestId,
        /// What came of it.
        result: Result<(), Errno>,
    },
    /// A buffer is not needed any more.
    Release {
        /// Which.
        buffer: BufferId,
    },
    /// A job is through; see [`Engine::finish_job`](super::Engine::finish_job).
    JobDone {
        /// Which.
        job: JobId,
    },
    /// See [`Engine::health`](super::Engine::health) and
    /// [`Engine::write_back_failure`](super::Engine::write_back_failure).
    HealthChanged,
}

/// A part of a request that lies in one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) block: u32,
    /// First byte, from the start of the origin.
    pub(super) offset: u64,
    pub(super) len: u32,
}

/// A range cut at the boundaries of blocks.
pub(super) fn pieces(offset: u64, len: u32, block_bytes: u64) -> impl Iterator<Item = Piece> {
    let end = offset + u64::from(len);
    let mut at = offset;
    std::iter::from_fn(move || {
        let block = at / block_bytes;
        let until = end.min((block + 1) * block_bytes);
        let piece = Piece {
            block: block as u32,
            offset: at,
            len: (until - at) as u32,
        };
        at = until;
        (piece.len > 0).then_some(piece)
    })
}

/// What becomes of a write that hits.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It goes to the flash, and to the origin some time later.
    Writeback,
    /// It goes to both before it is answered.
    Writethrough,
}

/// How many blocks may be on their way at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As many as `migration_threshold` sectors make.
    Threshold,
    /// As in dm-cache: the threshold only says when there is bandwidth to spare for cleaning.
    Kernel,
}

impl Pace {
    /// The pace that goes with a policy: the kernel's own with the kernel's.
    pub fn of(policy: PolicyKind) -> Pace {
        match policy {
            PolicyKind::Smq => Pace::Kernel,
            _ => Pace::Threshold,
        }
    }
}

/// How a cache is to behave.
#[derive(Clone, Copy, Debug)]
pub struct CacheConfig {
    /// What becomes of a write that hits.
    pub mode: Mode,
    /// Where the slots are.
    pub layout: Layout,
    /// Size of the origin, bytes.
    pub origin_bytes: u64,
    /// How much of the cache may be dirty before it is cleaned though nobody needs the place,
    /// percent; 100 leaves cleaning to the policy.
    pub dirty_target: u8,
    /// How many blocks may be on their way.
    pub pace: Pace,
}

impl CacheConfig {
    /// Number of blocks of the origin, the last one possibly cut short.
    pub fn origin_blocks(&self) -> u32 {
        self.origin_bytes.div_ceil(self.layout.block_bytes) as u32
    }

    /// Where a block is on the origin: first byte and number of bytes.
    pub fn span(&self, block: u32) -> (u64, u32) {
        let block_bytes = self.layout.block_bytes;
        let offset = u64::from(block) * block_bytes;
        (offset, block_bytes.min(self.origin_bytes - offset) as u32)
    }
}

/// What has happened since the engine was made. A request counts once for each block that it
/// touches, when it is sent to flash or origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Counters {
    /// Reads that the flash served.
    pub read_hits: u64,
    /// Reads that the origin served.
    pub read_misses: u64,
    /// Writes to blocks that were on the flash.
    pub write_hits: u64,
    /// Writes that went to the origin alone.
    pub write_misses: u64,
    /// Blocks copied to the flash, warm-up included.
    pub promotions: u64,
    /// Blocks given up.
    pub demotions: u64,
    /// Dirty blocks copied to the origin.
    pub write_backs: u64,
}

/// Whether the cache can keep its promises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// It can.
    Healthy,
    /// The flash has failed with nothing on it that the origin lacks: the cache is being given up,
    /// and writes wait for that.
    Degrading(String),
    /// The cache was given up, for this reason: the origin serves everything.
    PassThrough(String),
    /// Something failed, for this reason, and the flash holds what the origin lacks, or it is
    /// unknown what the origin holds: nothing is written any more.
    ReadOnly(String),
}

/// Dirty blocks that cannot be written back: each was tried, and not copied since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteBackFailure {
    /// The one that failed the last time.
    pub device: Device,
    /// And how.
    pub errno: Errno,
    /// Since when there is such a block.
    pub since: virtual_time::Nanos,
    /// How many there are.
    pub blocks: u64,
}

/// What an I/O of the engine's was about.
#[derive(Clone, Copy, Debug)]
pub(super) enum IoState {
    /// A part of a request, on the flash, in slots that follow one another.
    Hit {
        request: usize,
        write: bool,
        piece: Piece,
        slot: u32,
        count: u32,
        ticks: bool,
    },
    /// A part of a request, on the origin, in blocks that follow one another.
    Miss {
        request: usize,
        write: bool,
        piece: Piece,
        count: u32,
        ticks: bool,
    },
    /// A write of sub-blocks that are missing in the slot.
    Extend {
        request: usize,
        piece: Piece,
        slot: u32,
        ticks: bool,
    },
    /// A write that brings its block to the flash.
    Overwrite { migration: usize },
    /// The reading of sub-blocks that are missing in a slot.
    FillRead { migration: usize },
    /// The storing of some of them.
    FillStore { migration: usize },
    /// One of the two writes of a part that is written through.
    Through { through: usize, device: Device },
    /// The reading of blocks that are fetched.
    FetchRead { migration: usize },
    /// The storing of one of them.
    FetchStore { migration: usize, index: usize },
    /// The reading of a dirty block.
    CopyOut { migration: usize },
    /// The writing of it to the origin.
    CopyBack { migration: usize },
    /// A part of a request that discards, in blocks that follow one another and are not cached.
    Discard {
        request: usize,
        piece: Piece,
        count: u32,
    },
    /// The same of a block that is.
    DiscardCached { migration: usize },
    /// The log's.
    Log(LogDone),
    /// A sync that the log does not do any more, for the first so many who want one of the device.
    SyncAlone { device: Device, count: usize },
    /// [`Action::Detach`].
    Detach,
}
