//! What is said over the control socket: one JSON object per line, each way.
//!
//! | request | answer |
//! |---|---|
//! | `{"counters": {}}` | [`Status`] |
//! | `{"resident": {}}` | [`Resident`] |
//! | `{"heat": {"extent_blocks": 64}}` | [`Heat`]; without a number, at most 4096 extents |
//! | `{"regions": {}}` | [`Regions`]: the counters of hits and misses by region of the origin |
//! | `{"set": {"migration_threshold": 2048, "dirty_target": 25}}` | [`Settings`] as they are then; both may be left out |
//! | `{"flush": {}}` | [`Left`] about twice a second, then [`Flushed`] |
//! | `{"warm": {"runs": [[first, count], …]}}` | [`Progress`] about twice a second, then what was done |
//! | `{"read_origin": {"bytes": 50331648}}` | how fast the origin is read in sequence, past the cache |
//!
//! Blocks are numbers: byte of the origin / block size. A request that cannot be met is answered
//! by a [`Complaint`], and the next one may follow.

use serde::{Deserialize, Serialize};

use super::core::{Counters, Mode};
use crate::policy::Block;

/// First block and number of blocks.
pub(super) type Run = (Block, u32);

/// What can be asked.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Request {
    /// What has happened, and how full the cache is.
    Counters {},
    /// Which blocks are on the flash, and which of them are dirty.
    Resident {},
    /// How much the blocks on the flash are worth to the policy, by extent of the origin.
    Heat {
        /// Size of an extent, blocks.
        extent_blocks: Option<u32>,
    },
    /// Which regions of the origin are asked for, and what came of it.
    Regions {},
    /// Changes what can be changed of a running tier.
    Set {
        /// What migrations may have under way at a time, sectors.
        migration_threshold: Option<u64>,
        /// How much of the cache may be dirty, percent.
        dirty_target: Option<u8>,
    },
    /// Writes back what is dirty now; requests go on meanwhile.
    Flush {},
    /// Fetches these blocks, in the order of the origin.
    Warm {
        /// The blocks.
        runs: Vec<Run>,
    },
    /// Reads the origin from its start on, past the cache.
    ReadOrigin {
        /// How much of it.
        bytes: u64,
    },
}

/// What a tier is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum State {
    /// Serving requests.
    Serving,
    /// That, and writing back for a flush.
    Flushing,
    /// Going down.
    Stopping,
}

/// Counters and occupancy.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Status {
    #[serde(flatten)]
    pub(super) counters: Counters,
    /// Blocks on the flash that the origin does not have.
    pub(super) dirty: u32,
    /// Blocks on the flash.
    pub(super) used: u32,
    /// Blocks that have room.
    pub(super) total: u32,
    /// Size of a block, bytes.
    pub(super) block_bytes: u64,
    pub(super) policy: String,
    pub(super) mode: Mode,
    pub(super) state: State,
}

/// What is on the flash.
#[derive(Debug, Serialize)]
pub(super) struct Resident {
    /// All of it.
    pub(super) runs: Vec<Run>,
    /// What is dirty of it.
    pub(super) dirty: Vec<Run>,
}

/// What the cached blocks are worth.
#[derive(Debug, Serialize)]
pub(super) struct Heat {
    /// Size of an extent, blocks.
    pub(super) extent_blocks: u32,
    /// Of each extent with blocks on the flash: its first block, how many there are, and their
    /// mean level, 0 to 63.
    pub(super) extents: Vec<(Block, u32, u8)>,
}

/// Counters by region of the origin since the tier was started.
#[derive(Debug, Serialize)]
pub(super) struct Regions {
    /// Size of the origin, bytes.
    pub(super) origin_bytes: u64,
    /// Size of a region, bytes.
    pub(super) region_bytes: u64,
    /// When the tier was started, seconds since 1970.
    pub(super) begun: f64,
    /// Of each region that was asked for: its number, read hits, read misses, write hits, write
    /// misses.
    pub(super) regions: Vec<(u32, u64, u64, u64, u64)>,
}

/// What can be set.
#[derive(Debug, Serialize)]
pub(super) struct Settings {
    /// See [`Request::Set`].
    pub(super) migration_threshold: u64,
    /// See [`Request::Set`].
    pub(super) dirty_target: u8,
}

/// Blocks that a flush has still to write back.
#[derive(Debug, Serialize)]
pub(super) struct Left {
    pub(super) left: u32,
}

/// Blocks that were dirty when a flush began, and have been written back.
#[derive(Debug, Serialize)]
pub(super) struct Flushed {
    pub(super) flushed: u32,
}

/// How far a warm-up is, bytes.
#[derive(Debug, Serialize)]
pub(super) struct Progress {
    /// Seen to: fetched or skipped.
    pub(super) bytes: u64,
    /// Wanted.
    pub(super) total: u64,
}

/// Why a request is not met.
#[derive(Debug, Serialize)]
pub(super) struct Complaint {
    pub(super) error: String,
}
