//! What is said over the control socket: one JSON object per line, each way.
//!
//! | request | reply |
//! |---|---|
//! | `{"counters": {"devices": true}}` | [`Status`]; without a word, the devices are left out |
//! | `{"resident": {}}` | [`Resident`] |
//! | `{"heat": {"extent_blocks": 64}}` | [`Heat`]; without a number, at most 4096 extents |
//! | `{"regions": {}}` | [`Regions`]: the counters of hits and misses by region of the origin |
//! | `{"set": {"migration_threshold": 2048, "dirty_target": 25}}` | [`Settings`] as they are then; both may be left out |
//! | `{"reconfigure": {"policy": "arc", "mode": "writethrough", "cache_bytes": N, "flash_parts": ["START:SIZE", …], "follow_origin": true}}` | [`Configuration`] as it is then; each may be left out. Requests wait meanwhile; counters begin anew. `cache_bytes` is refused where there is a VOLUME, which lies behind the cache |
//! | `{"shares": {}}` | [`Division`]: what is pinned, excluded and shared, and how much of it is cached |
//! | `{"share": {"pinned": [{"name": "table:orders", "runs": [[first, count], …]}], "excluded": […], "shares": [{"name": "database:shop", "runs": […], "guaranteed": 800, "most": 1200}]}}` | the same, as it is then: what is named takes the place of all that was; each may be left out |
//! | `{"shared": {}}` | [`Wanted`]: what was said last |
//! | `{"flush": {}}` | [`Left`] about twice a second, then [`Flushed`] |
//! | `{"warm": {"runs": [[first, count], …], "bytes_per_s": N}}` | [`Progress`] about twice a second, then what was done; without a rate, as fast as users let it |
//! | `{"read_origin": {"bytes": 50331648}}` | how fast the origin is read in sequence, past the cache |
//!
//! Blocks are numbers: byte of the origin / block size. A request that cannot be met is answered
//! by a [`Refused`], and the next one may follow.
//!
//! Every answer ends with `"protocol": N`, its [`PROTOCOL`]; whoever reads an answer refuses one with
//! another number, or with none. An engine stays up while hotset is upgraded around it, so within a
//! version fields that are not known are passed over; a request with a word that the engine does not
//! know is refused.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use cache_core::engine::{Counters, Mode};
use cache_core::policy::Block;

use super::refill::RefillStatus;
use crate::front::Front;
use crate::real_time::meter::DeviceCounters;

/// Goes up when an answer loses a field, or a field gets another meaning. `PROTOCOL` in hotset's
/// `hotset/tier/engine/control.py` is the version that is read there.
pub(super) const PROTOCOL: u32 = 1;

/// An answer as it is sent.
#[derive(Debug, Serialize)]
pub(super) struct Answer<'a, T> {
    /// First: `hotset-engine ask` knows a complaint by how the line begins.
    #[serde(flatten)]
    reply: &'a T,
    protocol: u32,
}

impl<'a, T> Answer<'a, T> {
    pub(super) fn of(reply: &'a T) -> Self {
        Self {
            reply,
            protocol: PROTOCOL,
        }
    }
}

/// First block and number of blocks.
pub(super) type Run = (Block, u32);

/// What can be asked.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Request {
    /// What has happened, and how full the cache is.
    Counters {
        /// And what went through its devices.
        #[serde(default)]
        devices: bool,
    },
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
    /// Changes what makes up a running tier.
    Reconfigure(Reconfigure),
    /// How the cache is divided.
    Shares {},
    /// What it was said to be divided into.
    Shared {},
    /// Divides the cache from now on.
    Share(Wanted),
    /// Writes back what is dirty now; requests go on meanwhile.
    Flush {},
    /// Fetches these blocks, in the order of the origin.
    Warm {
        /// The blocks.
        runs: Vec<Run>,
        /// At most so much a second.
        bytes_per_s: Option<NonZeroU64>,
    },
    /// Reads the origin from its start on, past the cache.
    ReadOrigin {
        /// How much of it.
        bytes: u64,
    },
}

/// What a tier is to be from now on; what is left out stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Reconfigure {
    /// The name of a policy, as the command line has it.
    pub(super) policy: Option<String>,
    /// The name of a mode.
    pub(super) mode: Option<String>,
    /// Size of the CACHE.
    pub(super) cache_bytes: Option<u64>,
    /// The parts of the flash, METADATA first, with those of the new CACHE: `START:SIZE`.
    pub(super) flash_parts: Option<Vec<String>>,
    /// Take in an origin that has grown.
    pub(super) follow_origin: bool,
}

/// How the cache is to be divided; where two name the same block, what is excluded comes first, then
/// what is pinned, then the shares in their order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Wanted {
    /// Blocks that are always kept.
    pub(super) pinned: Vec<NamedRuns>,
    /// Blocks that never enter.
    pub(super) excluded: Vec<NamedRuns>,
    /// What has a guaranteed and a largest part.
    pub(super) shares: Vec<WantedShare>,
}

/// Blocks, and what they are told by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NamedRuns {
    pub(super) name: String,
    pub(super) runs: Vec<Run>,
}

/// Blocks with a share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WantedShare {
    /// What it is told by.
    pub(super) name: String,
    /// Its blocks.
    pub(super) runs: Vec<Run>,
    /// Blocks of the cache that others leave it.
    pub(super) guaranteed: u32,
    /// Blocks of the cache that it may have.
    pub(super) most: u32,
}

/// How the cache is divided.
#[derive(Debug, Serialize)]
pub(super) struct Division {
    /// Size of a block, bytes.
    pub(super) block_bytes: u64,
    /// Blocks that have room.
    pub(super) total: u32,
    /// Those of them that can be pinned or guaranteed.
    pub(super) available: u32,
    pub(super) pinned: OwnerPart,
    pub(super) excluded: OwnerPart,
    pub(super) shares: Vec<OwnerPart>,
    /// Blocks that have still to leave before all of this holds.
    pub(super) to_leave: u64,
}

/// What one owner has of the cache, in blocks.
#[derive(Debug, Serialize)]
pub(super) struct OwnerPart {
    pub(super) name: String,
    /// Its own, of the origin's.
    pub(super) blocks: u64,
    /// Those on the flash.
    pub(super) resident: u32,
    pub(super) guaranteed: u32,
    pub(super) most: u32,
}

/// What a tier is.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Configuration {
    pub(super) policy: String,
    pub(super) mode: Mode,
    pub(super) cache_bytes: u64,
    pub(super) origin_bytes: u64,
}

/// What a tier is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    /// Serving requests.
    Serving,
    /// That, and writing back for a flush.
    Flushing,
    /// Going down.
    Stopping,
    /// Serving requests from the origin alone: the flash has failed, and the cache was given up.
    PassThrough,
    /// Serving reads: a device has failed, and the flash holds what the origin lacks.
    ReadOnly,
}

/// Counters and occupancy.
#[derive(Debug, Serialize)]
pub(super) struct Status {
    #[serde(flatten)]
    pub(super) counters: Counters,
    /// Blocks on the flash that the origin does not have.
    pub(super) dirty: u64,
    /// Blocks on the flash.
    pub(super) used: u64,
    /// Blocks that have room.
    pub(super) total: u32,
    /// Size of a block, bytes.
    pub(super) block_bytes: u64,
    pub(super) policy: String,
    pub(super) mode: Mode,
    pub(super) state: State,
    /// How the disk is served; left out where it was not to be chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) front: Option<Front>,
    /// When the counters began at zero, seconds since 1970.
    pub(super) begun: f64,
    /// Why it is not serving as it should; left out where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    /// Left out where whatever was tried could be written back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) write_back_failure: Option<WriteBackFailing>,
    /// What is fetched again of a cache that had to begin empty; left out where nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) refill: Option<RefillStatus>,
    /// Since the engine's process began: `origin`, `cache`, `volume`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) devices: Option<Vec<DeviceCounters>>,
}

/// Dirty blocks that cannot be written back.
#[derive(Debug, Serialize)]
pub(super) struct WriteBackFailing {
    /// `origin` or `flash`: the one that failed the last time.
    pub(super) device: &'static str,
    /// And how.
    pub(super) error: String,
    /// For how long.
    pub(super) seconds: f64,
    /// How many.
    pub(super) blocks: u64,
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
    pub(super) left: u64,
}

/// Blocks that were dirty when a flush began, and have been written back.
#[derive(Debug, Serialize)]
pub(super) struct Flushed {
    pub(super) flushed: u64,
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
pub(super) struct Refused {
    pub(super) error: String,
}
