//! The fields of a model of hard disks, and their checks.

use serde::{Deserialize, Serialize};

use super::error::{ModelError, within};
use super::link::LinkFields;
use crate::device::mechanics::seek_curve_ms;

/// Striped hard disks, possibly behind a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DisksModel {
    /// What reports call it.
    pub name: String,
    /// Number of disks in the RAID-0.
    pub disks: u32,
    /// Every disk; all alike.
    #[serde(default)]
    pub disk: DiskSpec,
    /// Stripe unit on one disk, bytes. 64 KiB is the common default of NAS firmware and md.
    #[serde(default = "default_stripe_bytes")]
    pub stripe_bytes: u64,
    /// The network in front; absent = attached directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkFields>,
    /// How the file lies on the platters.
    #[serde(default)]
    pub placement: Placement,
    /// How many bytes of the array the file stands for when it is spread; absent = all of it.
    ///
    /// `nas-2014` says 1.3 TB: the 500 GB TPC-C and the 800 GB TPC-H database lay side by side
    /// on its 6 TB, so the arms travelled over 22 % of the platters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_bytes: Option<u64>,
}

/// How the file lies on the platters.
///
/// A laboratory has room for a few GB, not for the 500 GB database it stands for. Stored as it
/// is, the small file would take up a sliver of each platter and the arms would hardly move:
/// seeks three times too short. `spread` keeps the scaled database and unscales the seeks: every
/// distance is multiplied by (span / file size), while neighbouring bytes stay neighbours, so
/// that runs are as sequential as ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Seek distances stretched as if the file filled the span.
    #[default]
    Spread,
    /// Seek distances as they are: the file lies at the start of the disks.
    ShortStroke,
}

/// One disk. The defaults are a 1 TB 7200 rpm SATA disk of 2014, read as follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DiskSpec {
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
    /// Commands the drive chooses among. SATA NCQ has 32.
    pub queue_depth: u32,
    /// Sustained rate of a long run, MB/s. Such disks read 180-200 outside, 90-100 inside.
    pub media_mb_per_s: f64,
    /// How far a sequential stream is read ahead, KiB. Drive and controller together; it has
    /// to bridge a turn of the platter at the disk's share of the link rate (163 KB behind
    /// 1 GbE with six disks), several times over.
    pub read_ahead_kb: u64,
    /// How much of a bulk write stream is accepted before it is on the medium, KiB. A few
    /// turns of the platter as well. Small writes are never gathered: the write cache is off.
    pub write_gather_kb: u64,
    /// A queued command older than this is served first, milliseconds. Three times the mean
    /// wait in a full queue of 32 (170 ms): rarely reached, but nothing starves.
    pub age_ms_max: f64,
}

impl Default for DiskSpec {
    fn default() -> DiskSpec {
        DiskSpec {
            rpm: 7200,
            capacity_bytes: 1_000_000_000_000,
            seek_ms_track_to_track: 0.8,
            seek_ms_average: 7.7,
            seek_ms_full: None,
            queue_depth: 32,
            media_mb_per_s: 150.0,
            read_ahead_kb: 512,
            write_gather_kb: 1024,
            age_ms_max: 500.0,
        }
    }
}

fn default_stripe_bytes() -> u64 {
    65_536
}

impl DisksModel {
    /// What the disks hold together, bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.disk.capacity_bytes * u64::from(self.disks)
    }

    /// What a spread file stands for, bytes.
    pub fn span_bytes(&self) -> u64 {
        self.span_bytes.unwrap_or(self.capacity_bytes())
    }

    pub(super) fn check(&self) -> Result<(), ModelError> {
        let disk = &self.disk;
        within("disks", self.disks, 1, 64, "disks")?;
        within("disk.rpm", disk.rpm, 1000, 30_000, "rpm, such as 7200")?;
        within(
            "disk.capacity_bytes",
            disk.capacity_bytes,
            1_000_000,
            100_000_000_000_000,
            "bytes, such as 1000000000000 for 1 TB",
        )?;
        within(
            "disk.queue_depth",
            disk.queue_depth,
            1,
            256,
            "commands; SATA has 32, 1 turns NCQ off",
        )?;
        within(
            "disk.media_mb_per_s",
            disk.media_mb_per_s,
            1.0,
            2000.0,
            "MB/s",
        )?;
        within("disk.read_ahead_kb", disk.read_ahead_kb, 0, 65_536, "KiB")?;
        within(
            "disk.write_gather_kb",
            disk.write_gather_kb,
            0,
            65_536,
            "KiB",
        )?;
        within("disk.age_ms_max", disk.age_ms_max, 1.0, 60_000.0, "ms")?;
        self.check_stripe()?;
        self.check_span()?;
        self.check_seeks()?;
        self.link.as_ref().map_or(Ok(()), LinkFields::check)
    }

    fn check_stripe(&self) -> Result<(), ModelError> {
        within(
            "stripe_bytes",
            self.stripe_bytes,
            512,
            1 << 30,
            "bytes, such as 65536",
        )?;
        if self.stripe_bytes % 512 == 0 {
            return Ok(());
        }
        Err(ModelError::OutOfRange {
            field: "stripe_bytes",
            value: self.stripe_bytes.to_string(),
            remedy: "give a multiple of the sector size, 512".to_owned(),
        })
    }

    fn check_span(&self) -> Result<(), ModelError> {
        within(
            "span_bytes",
            self.span_bytes(),
            1,
            self.capacity_bytes(),
            "bytes, at most what the disks hold together; leave it out for all of it",
        )
    }

    fn check_seeks(&self) -> Result<(), ModelError> {
        let disk = &self.disk;
        let least_ms = disk.seek_ms_track_to_track;
        within("disk.seek_ms_track_to_track", least_ms, 0.01, 100.0, "ms")?;
        within(
            "disk.seek_ms_average",
            disk.seek_ms_average,
            least_ms,
            1000.0,
            "ms, not less than seek_ms_track_to_track",
        )?;
        let Some(full_ms) = disk.seek_ms_full else {
            return Ok(());
        };
        within("disk.seek_ms_full", full_ms, 0.01, 1000.0, "ms")?;
        // A curve must not fall with distance; where the three points ask for that, it does so
        // at one of its ends first.
        let (root_ms, linear_ms) = seek_curve_ms(&self.mechanics_spec(0, 1));
        if root_ms >= 0.0 && root_ms / 2.0 + linear_ms >= 0.0 {
            return Ok(());
        }
        Err(ModelError::OutOfRange {
            field: "disk.seek_ms_full",
            value: full_ms.to_string(),
            remedy: format!(
                "no rising curve goes through it, seek_ms_track_to_track {least_ms} and seek_ms_average {}; about twice the average is usual, or leave it out",
                disk.seek_ms_average
            ),
        })
    }
}
