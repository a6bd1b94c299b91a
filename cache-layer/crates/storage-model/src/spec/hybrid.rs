//! The fields of a hybrid disk, and their ranges.

use cache_core::engine::{CacheConfig, Engine, Mode, Pace};
use cache_core::layout::Layout;
use cache_core::policy::{self, Geometry, PolicyKind};
use garde::Validate;
use serde::{Deserialize, Serialize};

use super::constant;
use super::device::DeviceSpec;
use super::error::{only, require, within};

/// A disk with some flash in it that keeps what is used often.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
pub struct HybridFields {
    /// The disk; its size is the hybrid's.
    #[garde(dive)]
    pub disk: DeviceSpec,
    /// The flash in it.
    #[garde(dive, custom(flash_only))]
    pub flash: DeviceSpec,
    /// How much of the flash is cache, bytes.
    #[garde(custom(within(self.block_bytes(), self.flash.bytes_max(),
        "bytes, at least a block and at most what the flash holds")))]
    pub cache_bytes: u64,
    /// What is cached at a time, KiB.
    #[serde(default = "constant::<64, _>")]
    #[garde(custom(within(4, 16 << 10, "KiB, such as 64")),
        custom(only(|kb: &u64| kb.is_power_of_two(), "a power of two, such as 64")))]
    pub block_kb: u64,
    /// What decides which blocks are kept: `hotset`, `lru`, `sieve`, `s3-fifo`, `arc` or `smq`.
    #[serde(default = "policy_kind")]
    #[garde(skip)]
    pub policy: PolicyKind,
    /// `writethrough`: a write is on the disk when it is answered, as in hybrid disks that are sold.
    /// `writeback`: it is on the flash.
    #[serde(default = "mode")]
    #[garde(skip)]
    pub mode: Mode,
}

/// How much of a cache that is written back later may be dirty though the disk has time, percent.
const DIRTY_TARGET: u8 = 20;

fn flash_only(device: &DeviceSpec, (): &()) -> garde::Result {
    let remedy = "an `ssd` with its fields, or the name of one";
    require(device.is_flash(), "no flash", remedy)
}

fn policy_kind() -> PolicyKind {
    PolicyKind::Hotset
}

fn mode() -> Mode {
    Mode::Writethrough
}

impl HybridFields {
    /// The cache in front of a disk that holds a file of this size. Of a file that stands for one
    /// `stretch` times as large, it keeps the same share.
    pub(crate) fn engine(&self, size_bytes: u64, stretch: f64) -> Engine {
        let config = CacheConfig {
            mode: self.mode,
            layout: Layout {
                block_bytes: self.block_bytes(),
                metadata_bytes: 0,
                cache_bytes: self.slots(size_bytes, stretch) * self.block_bytes(),
                volume_bytes: 0,
            },
            origin_bytes: size_bytes,
            dirty_target: DIRTY_TARGET,
            pace: Pace::of(self.policy),
        };
        let geometry = Geometry {
            origin_blocks: config.origin_blocks(),
            slots: config.layout.slots(),
        };
        Engine::new(config, policy::make(self.policy, geometry), None, &[])
    }

    /// How much of the flash the cache in front of such a file takes, bytes.
    pub(super) fn flash_bytes(&self, size_bytes: u64, stretch: f64) -> u64 {
        self.slots(size_bytes, stretch) * self.block_bytes()
    }

    /// As many as there are blocks at most, and some more for a policy that keeps some free.
    fn slots(&self, size_bytes: u64, stretch: f64) -> u64 {
        let blocks = size_bytes.div_ceil(self.block_bytes());
        let share = (self.cache_bytes as f64 / stretch) as u64 / self.block_bytes();
        share.min(blocks + blocks / 8 + 1).max(1)
    }

    fn block_bytes(&self) -> u64 {
        self.block_kb << 10
    }
}
