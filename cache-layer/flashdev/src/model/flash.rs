//! The fields of a flash model, and their checks.

use serde::{Deserialize, Serialize};

use super::error::{ModelError, within};
use super::link::LinkFields;

/// A flash device, possibly behind a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlashModel {
    /// What reports call it.
    pub name: String,
    /// The device.
    pub flash: FlashFields,
    /// The network in front; absent = attached directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkFields>,
}

/// One flash device. The defaults are `pcie-flash-2014`, the PCIe 2.0 x8 card with which a SQL
/// accelerator was tested in 2014; `dc500m` is a SATA drive for servers, a Kingston DC500M of
/// 2019. Both have capacitors that let their buffers survive a loss of power.
///
/// Of the card, the test gives the size, the slot and what a database made of it. Its latencies
/// and its IOPS are not published there: those here are of the order of such cards. Those of the
/// DC500M are on its data sheet, except for the latencies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FlashFields {
    /// Size, bytes. Card: 800 GB. DC500M: 960 GB, the size of the published array's drives.
    pub capacity_bytes: u64,
    /// Time of a small read that has the device to itself, as the host sees it, microseconds.
    /// Card: 90, a page of MLC and the way to it. DC500M: 120; reviewers measured 8000 to 9000
    /// reads of 4 KiB per second one at a time.
    pub read_latency_us: f64,
    /// Time until a small write is in the buffer, as the host sees it, microseconds; no cell is
    /// programmed by then. Card: 30. DC500M: 50, as SATA costs more than PCIe (assumed).
    pub write_latency_us: f64,
    /// Most reads per second. Card: 90,000. DC500M: 98,000 of 4 KiB.
    pub read_iops: u32,
    /// Most writes per second in the steady state. Card: 60,000. DC500M: 70,000 of 4 KiB.
    pub write_iops: u32,
    /// Most MB/s read. Card: 2000; its slot carries 4000, and 2.5 TB of TPC-H scans in 26
    /// minutes are 1600. DC500M: 555.
    pub read_mb_per_s: f64,
    /// Most MB/s written. Card: 1000 (assumed). DC500M: 520.
    pub write_mb_per_s: f64,
}

impl Default for FlashFields {
    fn default() -> FlashFields {
        FlashFields {
            capacity_bytes: 800_000_000_000,
            read_latency_us: 90.0,
            write_latency_us: 30.0,
            read_iops: 90_000,
            write_iops: 60_000,
            read_mb_per_s: 2000.0,
            write_mb_per_s: 1000.0,
        }
    }
}

impl FlashModel {
    pub(super) fn check(&self) -> Result<(), ModelError> {
        let flash = &self.flash;
        within(
            "flash.capacity_bytes",
            flash.capacity_bytes,
            1_000_000,
            100_000_000_000_000,
            "bytes, such as 800000000000 for 800 GB",
        )?;
        check_direction(
            [
                "flash.read_latency_us",
                "flash.read_iops",
                "flash.read_mb_per_s",
            ],
            (flash.read_latency_us, flash.read_iops, flash.read_mb_per_s),
        )?;
        check_direction(
            [
                "flash.write_latency_us",
                "flash.write_iops",
                "flash.write_mb_per_s",
            ],
            (
                flash.write_latency_us,
                flash.write_iops,
                flash.write_mb_per_s,
            ),
        )?;
        self.link.as_ref().map_or(Ok(()), LinkFields::check)
    }
}

fn check_direction(
    [latency_field, iops_field, rate_field]: [&'static str; 3],
    (latency_us, iops, mb_per_s): (f64, u32, f64),
) -> Result<(), ModelError> {
    within(latency_field, latency_us, 0.0, 100_000.0, "us, such as 90")?;
    within(iops_field, iops, 1, 100_000_000, "requests per second")?;
    within(rate_field, mb_per_s, 1.0, 100_000.0, "MB/s")
}
