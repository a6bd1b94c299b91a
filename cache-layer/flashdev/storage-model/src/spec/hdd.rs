//! The fields of a hard disk, and their checks.

use serde::{Deserialize, Serialize};

use super::error::{ModelError, within};
use crate::device::hdd::HddSpec;
use crate::device::hdd::mechanics::{MechanicsSpec, seek_curve_ms};
use virtual_time::{nanos_from_ms, nanos_from_us, nanos_per_byte};

/// One disk. The defaults are a 1 TB 7200 rpm SATA disk of 2014, read as follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HddFields {
    /// Spindle speed, turns per minute. 7200: a turn in 8.33 ms, half of it the mean wait.
    pub rpm: u32,
    /// Size, bytes. 1 TB.
    pub capacity_bytes: u64,
    /// Seek to the next track, milliseconds. Data sheets: 0.5-1.2; the settling of the head.
    pub seek_ms_track_to_track: f64,
    /// Mean seek between random places, milliseconds. Data sheets promise "< 8.5"; reviews of
    /// such disks measured random accesses of 11.9-12.1 ms, which less half a turn (4.17 ms)
    /// leaves 7.7. It makes 84 random reads per second one at a time.
    pub seek_ms_average: f64,
    /// Seek across the whole disk, milliseconds; absent = what the square-root curve through
    /// the other two gives (13.7 here).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seek_ms_full: Option<f64>,
    /// What the head takes longer to settle before it may write, milliseconds. Data sheets that
    /// give seeks for reading and writing differ by 0.5-1; 0 = none.
    pub write_settle_ms: f64,
    /// Time lost at the end of each track, for the next head or track, milliseconds; 0 where
    /// `media_mb_per_s` is a sustained rate, which has it in it.
    pub head_switch_ms: f64,
    /// Commands the drive chooses among. SATA NCQ has 32.
    pub queue_depth: u32,
    /// Sustained rate of a long run on the outer tracks, MB/s. Such disks read 180-200 outside
    /// and 90-100 inside; one zone of 150 is the mean.
    pub media_mb_per_s: f64,
    /// The same on the inner tracks; absent = as outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inner_mb_per_s: Option<f64>,
    /// Zones of constant rate between the two edges. Disks of 2014 have 15 to 30.
    pub zones: u32,
    /// How far a sequential stream is read ahead, KiB. Drive and controller together; it has
    /// to bridge a turn of the platter at the disk's share of the link rate (163 KB behind
    /// 1 GbE with six disks), several times over.
    pub read_ahead_kb: u64,
    /// What has been read and read ahead is kept in so much of the drive's buffer, KiB. Most of
    /// the 64 MB that such disks have.
    pub read_buffer_kb: u64,
    /// How much of a bulk write stream is accepted before it is on the medium, KiB. A few
    /// turns of the platter as well. Small writes are never gathered: the write cache is off.
    pub write_gather_kb: u64,
    /// The drive's volatile write cache, KiB: every write is accepted into it; 0 = turned off, as
    /// databases and arrays have it. What is in it is lost with the power; a flush empties it.
    pub write_cache_kb: u64,
    /// What the electronics add to each command, microseconds; 0 = none.
    pub command_overhead_us: f64,
    /// Between host and buffer, MB/s; absent = no time. SATA: 150, 300 and 600 less a little.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interface_mb_per_s: Option<f64>,
    /// A queued command older than this is served first, milliseconds. Three times the mean
    /// wait in a full queue of 32 (170 ms): rarely reached, but nothing starves.
    pub age_ms_max: f64,
}

impl Default for HddFields {
    fn default() -> HddFields {
        HddFields {
            rpm: 7200,
            capacity_bytes: 1_000_000_000_000,
            seek_ms_track_to_track: 0.8,
            seek_ms_average: 7.7,
            seek_ms_full: None,
            write_settle_ms: 0.0,
            head_switch_ms: 0.0,
            queue_depth: 32,
            media_mb_per_s: 150.0,
            inner_mb_per_s: None,
            zones: 1,
            read_ahead_kb: 512,
            read_buffer_kb: 49_152,
            write_gather_kb: 1024,
            write_cache_kb: 0,
            command_overhead_us: 0.0,
            interface_mb_per_s: None,
            age_ms_max: 500.0,
        }
    }
}

impl HddFields {
    pub(super) fn check(&self, path: &str) -> Result<(), ModelError> {
        let field = |name: &str| format!("{path}.{name}");
        within(field("rpm"), self.rpm, 1000, 30_000, "rpm, such as 7200")?;
        within(
            field("capacity_bytes"),
            self.capacity_bytes,
            1_000_000,
            100_000_000_000_000,
            "bytes, such as 1000000000000 for 1 TB",
        )?;
        within(
            field("queue_depth"),
            self.queue_depth,
            1,
            256,
            "commands; SATA has 32, 1 turns NCQ off",
        )?;
        for (name, kib) in [
            ("read_ahead_kb", self.read_ahead_kb),
            ("read_buffer_kb", self.read_buffer_kb),
            ("write_gather_kb", self.write_gather_kb),
            ("write_cache_kb", self.write_cache_kb),
        ] {
            within(field(name), kib, 0, 1 << 20, "KiB")?;
        }
        within(field("age_ms_max"), self.age_ms_max, 1.0, 60_000.0, "ms")?;
        within(
            field("command_overhead_us"),
            self.command_overhead_us,
            0.0,
            10_000.0,
            "us, such as 100",
        )?;
        self.check_rates(path)?;
        self.check_seeks(path)
    }

    fn check_rates(&self, path: &str) -> Result<(), ModelError> {
        let field = |name: &str| format!("{path}.{name}");
        let outer = self.media_mb_per_s;
        within(field("media_mb_per_s"), outer, 1.0, 2000.0, "MB/s")?;
        within(
            field("inner_mb_per_s"),
            self.inner_mb_per_s.unwrap_or(outer),
            1.0,
            outer,
            "MB/s, not more than media_mb_per_s, the rate outside",
        )?;
        let zones_min = if self.inner_mb_per_s.is_some() { 2 } else { 1 };
        within(
            field("zones"),
            self.zones,
            zones_min,
            1000,
            "zones; an inner_mb_per_s takes at least two",
        )?;
        within(
            field("interface_mb_per_s"),
            self.interface_mb_per_s.unwrap_or(600.0),
            1.0,
            100_000.0,
            "MB/s, such as 300 for SATA II",
        )
    }

    fn check_seeks(&self, path: &str) -> Result<(), ModelError> {
        let field = |name: &str| format!("{path}.{name}");
        let least_ms = self.seek_ms_track_to_track;
        within(field("seek_ms_track_to_track"), least_ms, 0.01, 100.0, "ms")?;
        within(
            field("seek_ms_average"),
            self.seek_ms_average,
            least_ms,
            1000.0,
            "ms, not less than seek_ms_track_to_track",
        )?;
        within(
            field("write_settle_ms"),
            self.write_settle_ms,
            0.0,
            100.0,
            "ms, such as 0.7",
        )?;
        within(
            field("head_switch_ms"),
            self.head_switch_ms,
            0.0,
            100.0,
            "ms, such as 1",
        )?;
        let Some(full_ms) = self.seek_ms_full else {
            return Ok(());
        };
        within(field("seek_ms_full"), full_ms, 0.01, 1000.0, "ms")?;
        // A curve must not fall with distance; where the three points ask for that, it does so
        // at one of its ends first.
        let (root_ms, linear_ms) = seek_curve_ms(&self.mechanics(0, 1.0));
        if root_ms >= 0.0 && root_ms / 2.0 + linear_ms >= 0.0 {
            return Ok(());
        }
        Err(ModelError::OutOfRange {
            field: field("seek_ms_full"),
            value: full_ms.to_string(),
            remedy: format!(
                "no rising curve goes through it, seek_ms_track_to_track {least_ms} and seek_ms_average {}; about twice the average is usual, or leave it out",
                self.seek_ms_average
            ),
        })
    }

    /// The disk with this number, its seeks stretched so many times.
    pub(super) fn spec(&self, number: usize, stretch: f64) -> HddSpec {
        HddSpec {
            mechanics: self.mechanics(number, stretch),
            queue_depth: self.queue_depth as usize,
            read_ahead_bytes: self.read_ahead_kb * 1024,
            read_buffer_bytes: self.read_buffer_kb * 1024,
            write_gather_bytes: self.write_gather_kb * 1024,
            write_cache_bytes: self.write_cache_kb * 1024,
            command_overhead: nanos_from_us(self.command_overhead_us),
            interface_ns_per_byte: self.interface_mb_per_s.map_or(0.0, nanos_per_byte),
            age_max: nanos_from_ms(self.age_ms_max),
        }
    }

    fn mechanics(&self, number: usize, stretch: f64) -> MechanicsSpec {
        /// Multiples of the golden ratio spread any number of disks evenly over a turn.
        const GOLDEN_RATIO: f64 = 0.618_033_988_749_895;
        MechanicsSpec {
            rpm: self.rpm,
            capacity_bytes: self.capacity_bytes,
            seek_ms_track_to_track: self.seek_ms_track_to_track,
            seek_ms_average: self.seek_ms_average,
            seek_ms_full: self.seek_ms_full,
            media_mb_per_s: self.media_mb_per_s,
            inner_mb_per_s: self.inner_mb_per_s.unwrap_or(self.media_mb_per_s),
            zones: self.zones,
            head_switch_ms: self.head_switch_ms,
            write_settle_ms: self.write_settle_ms,
            stretch,
            phase: (number as f64 * GOLDEN_RATIO).fract(),
        }
    }
}
