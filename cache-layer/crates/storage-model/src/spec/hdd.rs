//! The fields of a hard disk, and their ranges.

use garde::Validate;
use serde::{Deserialize, Serialize};

use super::error::within;
use crate::device::hdd::HddSpec;
use crate::device::hdd::mechanics::{MechanicsSpec, seek_curve_ms};
use virtual_time::{nanos_from_ms, nanos_from_us, nanos_per_byte};

/// One disk. The defaults are a 1 TB 7200 rpm SATA disk of 2014, read as follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct HddFields {
    /// Spindle speed, turns per minute. 7200: a turn in 8.33 ms, half of it the mean wait.
    #[garde(custom(within(1000, 30_000, "rpm, such as 7200")))]
    pub rpm: u32,
    /// Size, bytes. 1 TB.
    #[garde(custom(within(
        1_000_000,
        100_000_000_000_000,
        "bytes, such as 1000000000000 for 1 TB"
    )))]
    pub capacity_bytes: u64,
    /// Seek to the next track, milliseconds. Data sheets: 0.5-1.2; the settling of the head.
    #[garde(custom(within(0.01, 100.0, "ms")))]
    pub seek_ms_track_to_track: f64,
    /// Mean seek between random places, milliseconds. Data sheets promise "< 8.5"; reviews of
    /// such disks measured random accesses of 11.9-12.1 ms, which less half a turn (4.17 ms)
    /// leaves 7.7. It makes 84 random reads per second one at a time.
    #[garde(custom(within(self.seek_ms_track_to_track, 1000.0,
        "ms, not less than seek_ms_track_to_track")))]
    pub seek_ms_average: f64,
    /// Seek across the whole disk, milliseconds; absent = what the square-root curve through
    /// the other two gives (13.7 here).
    #[serde(skip_serializing_if = "Option::is_none")]
    #[garde(inner(custom(within(0.01, 1000.0, "ms")), custom(self.rising_seek_curve())))]
    pub seek_ms_full: Option<f64>,
    /// What the head takes longer to settle before it may write, milliseconds. Data sheets that
    /// give seeks for reading and writing differ by 0.5-1; 0 = none.
    #[garde(custom(within(0.0, 100.0, "ms, such as 0.7")))]
    pub write_settle_ms: f64,
    /// Time lost at the end of each track, for the next head or track, milliseconds; 0 where
    /// `media_mb_per_s` is a sustained rate, which has it in it.
    #[garde(custom(within(0.0, 100.0, "ms, such as 1")))]
    pub head_switch_ms: f64,
    /// Commands the drive chooses among. SATA NCQ has 32.
    #[garde(custom(within(1, 256, "commands; SATA has 32, 1 turns NCQ off")))]
    pub queue_depth: u32,
    /// Sustained rate of a long run on the outer tracks, MB/s. Such disks read 180-200 outside
    /// and 90-100 inside; one zone of 150 is the mean.
    #[garde(custom(within(1.0, 2000.0, "MB/s")))]
    pub media_mb_per_s: f64,
    /// The same on the inner tracks; absent = as outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[garde(inner(custom(within(1.0, self.media_mb_per_s,
        "MB/s, not more than media_mb_per_s, the rate outside"))))]
    pub inner_mb_per_s: Option<f64>,
    /// Zones of constant rate between the two edges. Disks of 2014 have 15 to 30.
    #[garde(custom(within(self.zones_min(), 1000, "zones; an inner_mb_per_s takes at least two")))]
    pub zones: u32,
    /// How far a sequential stream is read ahead, KiB. Drive and controller together; it has
    /// to bridge a turn of the platter at the disk's share of the link rate (163 KB behind
    /// 1 GbE with six disks), several times over.
    #[garde(custom(within(0, 1 << 20, "KiB")))]
    pub read_ahead_kb: u64,
    /// What has been read and read ahead is kept in so much of the drive's buffer, KiB. Most of
    /// the 64 MB that such disks have.
    #[garde(custom(within(0, 1 << 20, "KiB")))]
    pub read_buffer_kb: u64,
    /// How much of a bulk write stream is accepted before it is on the medium, KiB. A few
    /// turns of the platter as well. Small writes are never gathered: the write cache is off.
    #[garde(custom(within(0, 1 << 20, "KiB")))]
    pub write_gather_kb: u64,
    /// The drive's volatile write cache, KiB: every write is accepted into it; 0 = turned off, as
    /// databases and arrays have it. What is in it is lost with the power; a flush empties it.
    #[garde(custom(within(0, 1 << 20, "KiB")))]
    pub write_cache_kb: u64,
    /// What the electronics add to each command, microseconds; 0 = none.
    #[garde(custom(within(0.0, 10_000.0, "us, such as 100")))]
    pub command_overhead_us: f64,
    /// Between host and buffer, MB/s; absent = no time. SATA: 150, 300 and 600 less a little.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[garde(inner(custom(within(1.0, 100_000.0, "MB/s, such as 300 for SATA II"))))]
    pub interface_mb_per_s: Option<f64>,
    /// A queued command older than this is served first, milliseconds. Three times the mean
    /// wait in a full queue of 32 (170 ms): rarely reached, but nothing starves.
    #[garde(custom(within(1.0, 60_000.0, "ms")))]
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
    /// The rule of the third point of the seek curve: it must not fall with distance. Where the
    /// points ask for that, it does so at one of its ends first.
    fn rising_seek_curve(&self) -> impl FnOnce(&f64, &()) -> garde::Result {
        let (root_ms, linear_ms) = seek_curve_ms(&self.mechanics(0, 1.0));
        let (least_ms, average_ms) = (self.seek_ms_track_to_track, self.seek_ms_average);
        move |full_ms, ()| {
            if root_ms >= 0.0 && root_ms / 2.0 + linear_ms >= 0.0 {
                return Ok(());
            }
            Err(garde::Error::new(format!(
                "is {full_ms}: no rising curve goes through it, seek_ms_track_to_track {least_ms} and seek_ms_average {average_ms}; about twice the average is usual, or leave it out"
            )))
        }
    }

    fn zones_min(&self) -> u32 {
        if self.inner_mb_per_s.is_some() { 2 } else { 1 }
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
