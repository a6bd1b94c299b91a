//! The fields of an array, and their checks.

use serde::{Deserialize, Serialize};

use super::device::DeviceSpec;
use super::error::{ModelError, within};
use crate::device::raid::geometry::{Geometry, Level};
use crate::device::raid::{RaidSpec, RebuildSpec};
use crate::device::write_cache::WriteCacheSpec;
use virtual_time::{nanos_from_ms, nanos_from_us, nanos_per_byte};

/// Most members an array may have.
const MEMBERS_MAX: usize = 64;

/// Devices made into one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RaidFields {
    /// `"0"`, `"1"`, `"10"`, `"5"`, `"6"` or `"F1"`.
    pub level: Level,
    /// The devices.
    pub members: Members,
    /// Chunk on one member, bytes. 64 KiB is the common default of NAS firmware, 512 KiB md's.
    #[serde(default = "default_chunk_bytes")]
    pub chunk_bytes: u64,
    /// Devices at hand that take the place of a failed member, like the members.
    #[serde(default)]
    pub spares: usize,
    /// md's `stripe_cache_size` in KiB of each member: rows whose content is remembered, so that
    /// a stream of writes reads nothing back. md: 256 pages of 4 KiB.
    #[serde(default = "default_stripe_cache_kb")]
    pub stripe_cache_kb: u64,
    /// What a rebuild takes of each member while the host works, MB/s. md's default: 1.
    #[serde(default = "default_rebuild_min")]
    pub rebuild_mb_per_s_min: f64,
    /// And while it does not. md's default: 200.
    #[serde(default = "default_rebuild_max")]
    pub rebuild_mb_per_s_max: f64,
    /// A controller with a write-back cache; absent = writes go to the members at once, as in md.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<ControllerFields>,
}

/// A controller's write-back cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ControllerFields {
    /// Size, KiB. RAID controllers: 512 MiB to 8 GiB.
    pub cache_kb: u64,
    /// With a battery, or flash and capacitors, what is in the cache outlives a loss of power.
    pub battery: bool,
    /// Until a write is in the cache, microseconds.
    #[serde(default = "default_controller_latency")]
    pub latency_us: f64,
    /// Bytes into the cache and out of it, MB/s.
    #[serde(default = "default_controller_rate")]
    pub mb_per_s: f64,
    /// What a read that is not in the cache costs beside the members' work, microseconds.
    #[serde(default)]
    pub miss_us: f64,
    /// Commands of the write-back under way at most.
    #[serde(default = "default_controller_depth")]
    pub depth: u32,
    /// How long a part of a row waits for the rest of it, milliseconds.
    #[serde(default = "default_controller_gather")]
    pub gather_ms: f64,
}

/// The devices of an array: a list, or so many alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Members {
    /// `{"alike": {"count": 6, "device": …}}`
    Alike {
        /// How many.
        count: usize,
        /// Each of them.
        device: DeviceSpec,
    },
    /// `{"each": [ …, … ]}`
    Each(Vec<DeviceSpec>),
}

impl Members {
    /// Each kind of member once.
    pub fn list(&self) -> &[DeviceSpec] {
        match self {
            Members::Alike { device, .. } => std::slice::from_ref(device),
            Members::Each(devices) => devices,
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        match self {
            Members::Alike { count, .. } => *count,
            Members::Each(devices) => devices.len(),
        }
    }

    /// The first; all are alike.
    pub fn first(&self) -> Option<&DeviceSpec> {
        self.list().first()
    }
}

fn default_chunk_bytes() -> u64 {
    65_536
}

fn default_stripe_cache_kb() -> u64 {
    1024
}

fn default_rebuild_min() -> f64 {
    1.0
}

fn default_rebuild_max() -> f64 {
    200.0
}

fn default_controller_latency() -> f64 {
    20.0
}

fn default_controller_rate() -> f64 {
    5000.0
}

fn default_controller_depth() -> u32 {
    32
}

fn default_controller_gather() -> f64 {
    5.0
}

impl RaidFields {
    /// What the array holds, bytes: whole rows.
    pub fn capacity_bytes(&self) -> u64 {
        let member = self.members.first().map_or(0, DeviceSpec::capacity_bytes);
        self.geometry().capacity_bytes(member)
    }

    pub(super) fn geometry(&self) -> Geometry {
        Geometry {
            level: self.level,
            members: self.members.count(),
            chunk_bytes: self.chunk_bytes,
        }
    }

    pub(super) fn check(&self, path: &str) -> Result<(), ModelError> {
        let field = |name: &str| format!("{path}.{name}");
        self.check_members(&field("members"))?;
        within(
            field("chunk_bytes"),
            self.chunk_bytes,
            512,
            1 << 30,
            "bytes, such as 65536",
        )?;
        if self.chunk_bytes % 512 != 0 {
            return Err(ModelError::OutOfRange {
                field: field("chunk_bytes"),
                value: self.chunk_bytes.to_string(),
                remedy: "give a multiple of the sector size, 512".to_owned(),
            });
        }
        within(field("spares"), self.spares, 0, MEMBERS_MAX, "devices")?;
        if self.spares > 0 && self.level == Level::Raid0 {
            return Err(ModelError::OutOfRange {
                field: field("spares"),
                value: self.spares.to_string(),
                remedy: "give 0: RAID 0 has nothing to rebuild a spare from".to_owned(),
            });
        }
        within(
            field("stripe_cache_kb"),
            self.stripe_cache_kb,
            0,
            1 << 20,
            "KiB",
        )?;
        let least = self.rebuild_mb_per_s_min;
        within(
            field("rebuild_mb_per_s_min"),
            least,
            0.01,
            100_000.0,
            "MB/s, such as 1",
        )?;
        within(
            field("rebuild_mb_per_s_max"),
            self.rebuild_mb_per_s_max,
            least,
            100_000.0,
            "MB/s, not less than rebuild_mb_per_s_min",
        )?;
        match &self.controller {
            None => Ok(()),
            Some(controller) => controller.check(&field("controller")),
        }
    }

    fn check_members(&self, field: &str) -> Result<(), ModelError> {
        let (count, least) = (self.members.count(), self.level.members_min());
        let even = self.level == Level::Raid10;
        if !(least..=MEMBERS_MAX).contains(&count) || (even && count % 2 == 1) {
            let pairs = if even { ", an even number" } else { "" };
            return Err(ModelError::Members {
                field: field.to_owned(),
                count,
                level: self.level,
                remedy: format!("{least} to {MEMBERS_MAX}{pairs}"),
            });
        }
        for (number, device) in self.members.list().iter().enumerate() {
            device.check(&format!("{field}[{number}]"))?;
            let first = &self.members.list()[0];
            if device != first {
                return Err(ModelError::UnlikeMembers {
                    field: field.to_owned(),
                    number,
                    found: summary(device),
                    expected: summary(first),
                });
            }
        }
        Ok(())
    }

    /// The array on which so much of each member is used.
    pub(super) fn spec(&self, member_bytes: u64) -> RaidSpec {
        RaidSpec {
            geometry: self.geometry(),
            cached_rows: (self.stripe_cache_kb * 1024 / self.chunk_bytes) as usize,
            spares: self.spares,
            rebuild: RebuildSpec {
                mb_per_s_min: self.rebuild_mb_per_s_min,
                mb_per_s_max: self.rebuild_mb_per_s_max,
            },
            member_bytes,
        }
    }

    pub(super) fn write_cache(&self) -> Option<WriteCacheSpec> {
        self.controller.as_ref().map(|controller| WriteCacheSpec {
            bytes: controller.cache_kb * 1024,
            battery: controller.battery,
            latency: nanos_from_us(controller.latency_us),
            ns_per_byte: nanos_per_byte(controller.mb_per_s),
            miss: nanos_from_us(controller.miss_us),
            row_bytes: self.geometry().row_bytes(),
            depth: controller.depth as usize,
            gather: nanos_from_ms(controller.gather_ms),
        })
    }
}

impl ControllerFields {
    fn check(&self, path: &str) -> Result<(), ModelError> {
        let field = |name: &str| format!("{path}.{name}");
        within(
            field("cache_kb"),
            self.cache_kb,
            64,
            1 << 26,
            "KiB, such as 1048576 for 1 GiB",
        )?;
        within(
            field("latency_us"),
            self.latency_us,
            0.0,
            100_000.0,
            "us, such as 20",
        )?;
        within(field("miss_us"), self.miss_us, 0.0, 100_000.0, "us")?;
        within(field("mb_per_s"), self.mb_per_s, 1.0, 100_000.0, "MB/s")?;
        within(field("depth"), self.depth, 1, 4096, "commands")?;
        within(
            field("gather_ms"),
            self.gather_ms,
            0.0,
            10_000.0,
            "ms, such as 5",
        )
    }
}

fn summary(device: &DeviceSpec) -> String {
    let kind = match device {
        DeviceSpec::Hdd(hdd) => format!("hdd of {} rpm", hdd.rpm),
        DeviceSpec::Ssd(_) => "ssd".to_owned(),
        DeviceSpec::Raid(raid) => raid.level.to_string(),
        DeviceSpec::Hybrid(_) => "hybrid disk".to_owned(),
        DeviceSpec::Linked(_) => "linked device".to_owned(),
    };
    format!("{kind}, {} bytes", device.capacity_bytes())
}
