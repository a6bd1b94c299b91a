//! The fields of an array, and their ranges.

use garde::util::nested_path;
use garde::{Path, Report, Validate};
use serde::{Deserialize, Serialize};

use super::constant;
use super::device::DeviceSpec;
use super::error::{only, within};
use crate::device::raid::geometry::{Geometry, Level};
use crate::device::raid::{RaidSpec, RebuildSpec};
use crate::device::write_cache::WriteCacheSpec;
use virtual_time::{nanos_from_ms, nanos_from_us, nanos_per_byte};

/// Most members an array may have.
const MEMBERS_MAX: usize = 64;

/// Devices made into one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
pub struct RaidFields {
    /// `"0"`, `"1"`, `"10"`, `"5"`, `"6"` or `"F1"`.
    #[garde(skip)]
    pub level: Level,
    /// The devices.
    #[garde(dive, custom(count_of(self.level)))]
    pub members: Members,
    /// Chunk on one member, bytes. 64 KiB is the common default of NAS firmware, 512 KiB md's.
    #[serde(default = "constant::<65_536, _>")]
    #[garde(custom(within(512, 1 << 30, "bytes, such as 65536")),
        custom(only(|bytes| bytes % 512 == 0, "a multiple of the sector size, 512")))]
    pub chunk_bytes: u64,
    /// Devices at hand that take the place of a failed member, like the members.
    #[serde(default)]
    #[garde(custom(within(0, MEMBERS_MAX, "devices")), custom(spares_of(self.level)))]
    pub spares: usize,
    /// md's `stripe_cache_size` in KiB of each member: rows whose content is remembered, so that
    /// a stream of writes reads nothing back. md: 256 pages of 4 KiB.
    #[serde(default = "constant::<1024, _>")]
    #[garde(custom(within(0, 1 << 20, "KiB")))]
    pub stripe_cache_kb: u64,
    /// What a rebuild takes of each member while the host works, MB/s. md's default: 1.
    #[serde(default = "constant::<1, _>")]
    #[garde(custom(within(0.01, 100_000.0, "MB/s, such as 1")))]
    pub rebuild_mb_per_s_min: f64,
    /// And while it does not. md's default: 200.
    #[serde(default = "constant::<200, _>")]
    #[garde(custom(within(self.rebuild_mb_per_s_min, 100_000.0,
        "MB/s, not less than rebuild_mb_per_s_min")))]
    pub rebuild_mb_per_s_max: f64,
    /// A controller with a write-back cache; absent = writes go to the members at once, as in md.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(dive)]
    pub controller: Option<ControllerFields>,
}

/// A controller's write-back cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
pub struct ControllerFields {
    /// Size, KiB. RAID controllers: 512 MiB to 8 GiB.
    #[garde(custom(within(64, 1 << 26, "KiB, such as 1048576 for 1 GiB")))]
    pub cache_kb: u64,
    /// With a battery, or flash and capacitors, what is in the cache outlives a loss of power.
    #[garde(skip)]
    pub battery: bool,
    /// Until a write is in the cache, microseconds.
    #[serde(default = "constant::<20, _>")]
    #[garde(custom(within(0.0, 100_000.0, "us, such as 20")))]
    pub latency_us: f64,
    /// Bytes into the cache and out of it, MB/s.
    #[serde(default = "constant::<5000, _>")]
    #[garde(custom(within(1.0, 100_000.0, "MB/s")))]
    pub mb_per_s: f64,
    /// What a read that is not in the cache costs beside the members' work, microseconds.
    #[serde(default)]
    #[garde(custom(within(0.0, 100_000.0, "us")))]
    pub miss_us: f64,
    /// Commands of the write-back under way at most.
    #[serde(default = "constant::<32, _>")]
    #[garde(custom(within(1, 4096, "commands")))]
    pub depth: u32,
    /// How long a part of a row waits for the rest of it, milliseconds.
    #[serde(default = "constant::<5, _>")]
    #[garde(custom(within(0.0, 10_000.0, "ms, such as 5")))]
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

/// By hand, because members are compared.
impl Validate for Members {
    type Context = ();

    fn validate_into(&self, (): &(), mut parent: &mut dyn FnMut() -> Path, report: &mut Report) {
        for (number, device) in self.list().iter().enumerate() {
            let mut path = nested_path!(parent, number);
            device.validate_into(&(), &mut path, report);
            let first = &self.list()[0];
            // The size of an invalid one is not known.
            if report.is_empty() && device != first {
                report.append(path(), unlike(device, first));
            }
        }
    }
}

/// The rule of the number of members.
fn count_of(level: Level) -> impl FnOnce(&Members, &()) -> garde::Result {
    move |members, ()| {
        let (count, least) = (members.count(), level.members_min());
        let even = level == Level::Raid10;
        if (least..=MEMBERS_MAX).contains(&count) && !(even && count % 2 == 1) {
            return Ok(());
        }
        let pairs = if even { ", an even number" } else { "" };
        Err(garde::Error::new(format!(
            "has {count} members: {level} takes {least} to {MEMBERS_MAX}{pairs}"
        )))
    }
}

/// The rule of the number of spares.
fn spares_of(level: Level) -> impl FnOnce(&usize, &()) -> garde::Result {
    let remedy = "0: RAID 0 has nothing to rebuild a spare from";
    only(move |&spares| spares == 0 || level != Level::Raid0, remedy)
}

fn unlike(device: &DeviceSpec, first: &DeviceSpec) -> garde::Error {
    garde::Error::new(format!(
        "({}) is unlike the members before it ({}): members of an array are alike; an unlike one would slow the others down or waste space",
        summary(device),
        summary(first)
    ))
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
