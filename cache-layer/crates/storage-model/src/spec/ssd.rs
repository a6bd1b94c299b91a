//! The fields of a flash device, and their ranges.

use garde::Validate;
use serde::{Deserialize, Serialize};

use super::error::within;
use crate::device::ssd::nand::NandSpec;
use crate::device::ssd::{DirectionSpec, SsdSpec};
use virtual_time::{nanos_from_us, nanos_per_byte};

/// One flash device, as a data sheet has it. The defaults are `pcie-flash-2014`, the PCIe 2.0 x8
/// card with which a SQL accelerator was tested in 2014.
///
/// Of the card, the test gives the size, the slot and what a database made of it; its latencies,
/// IOPS and write rate here are assumed, of the order of such cards.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct SsdFields {
    /// Size, bytes. Card: 800 GB.
    #[garde(custom(within(
        1_000_000,
        100_000_000_000_000,
        "bytes, such as 800000000000 for 800 GB"
    )))]
    pub capacity_bytes: u64,
    /// Time of a small read that has the device to itself, as the host sees it, microseconds.
    /// Card: 90, a page of MLC and the way to it.
    #[garde(custom(within(0.0, 100_000.0, "us, such as 90")))]
    pub read_latency_us: f64,
    /// Time until a small write is in the buffer, as the host sees it, microseconds; no cell is
    /// programmed by then. Card: 30.
    #[garde(custom(within(0.0, 100_000.0, "us, such as 90")))]
    pub write_latency_us: f64,
    /// Most reads per second. Card: 90,000.
    #[garde(custom(within(1, 100_000_000, "requests per second")))]
    pub read_iops: u32,
    /// Most writes per second; in the steady state, unless `nand` is there to make it so. Card:
    /// 60,000.
    #[garde(custom(within(1, 100_000_000, "requests per second")))]
    pub write_iops: u32,
    /// Most MB/s read. Card: 2000; its slot carries 4000, and 2.5 TB of TPC-H scans in 26
    /// minutes are 1600.
    #[garde(custom(within(1.0, 100_000.0, "MB/s")))]
    pub read_mb_per_s: f64,
    /// Most MB/s written. Card: 1000.
    #[garde(custom(within(1.0, 100_000.0, "MB/s")))]
    pub write_mb_per_s: f64,
    /// Capacitors that let the drive finish its writes when the power fails. Without them the
    /// buffer is lost, and a flush waits for the cells.
    #[garde(skip)]
    pub power_loss_protection: bool,
    /// From the buffer to the cells, microseconds; what a flush of an unprotected drive waits for.
    /// Programming a page takes 200 (SLC mode) to 2000 (QLC).
    #[garde(custom(within(0.0, 10_000_000.0, "us, such as 600")))]
    pub program_us: f64,
    /// Writes of its size a day over the warranty, as data sheets give endurance; 0 = not known.
    #[garde(custom(within(0.0, 100.0, "drive writes a day")))]
    pub drive_writes_per_day: f64,
    /// Years of that.
    #[garde(custom(within(0.5, 20.0, "years, such as 5")))]
    pub warranty_years: f64,
    /// The dies, where they are to meet; absent = the figures above are all there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[garde(dive(self.read_latency_us))]
    pub nand: Option<NandFields>,
}

/// What is inside a flash device. No data sheet gives it; the defaults are of a TLC drive of the
/// 2020s (ISSCC papers of 64- to 176-layer TLC give 40-60 us to read, 400-700 us to program a
/// word line in one pass, 3-5 ms to erase, 1.2-1.6 GB/s a channel).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Validate)]
#[garde(context(f64 as read_latency_us))]
#[serde(deny_unknown_fields, default)]
pub struct NandFields {
    /// Channels.
    #[garde(custom(within(1, 64, "of them")))]
    pub channels: u32,
    /// Dies on each.
    #[garde(custom(within(1, 64, "of them")))]
    pub dies_per_channel: u32,
    /// What one operation of a die moves, all planes together, KiB.
    #[garde(custom(within(1, 1024, "KiB, such as 16 times the planes")))]
    pub page_kb: u64,
    /// Pages of a block, the unit that is erased.
    #[garde(custom(within(1, 10_000, "of them")))]
    pub pages_per_block: u32,
    /// From the cells to the die's register, microseconds. Part of `read_latency_us`.
    #[garde(custom(within(0.1, *read_latency_us, "us, a part of read_latency_us")))]
    pub read_us: f64,
    /// From the register to the cells, microseconds.
    #[garde(custom(within(0.1, 100_000.0, "us")))]
    pub program_us: f64,
    /// Erasing a block, microseconds.
    #[garde(custom(within(0.1, 100_000.0, "us")))]
    pub erase_us: f64,
    /// A program under way lets a read in after so long, microseconds.
    #[garde(custom(within(0.1, 100_000.0, "us")))]
    pub suspend_us: f64,
    /// What a channel carries, MB/s.
    #[garde(custom(within(1.0, 100_000.0, "MB/s")))]
    pub channel_mb_per_s: f64,
    /// Write buffer, KiB.
    #[garde(custom(within(self.page_kb, 1 << 24, "KiB, at least page_kb")))]
    pub buffer_kb: u64,
    /// Physical size beyond what the host sees, as a share of that: 0.07 for a consumer's drive,
    /// 0.28 for mixed use.
    #[garde(custom(within(
        0.02,
        4.0,
        "of the size, such as 0.07; without any, garbage collection never ends"
    )))]
    pub over_provisioning: f64,
}

impl Default for SsdFields {
    fn default() -> SsdFields {
        SsdFields {
            capacity_bytes: 800_000_000_000,
            read_latency_us: 90.0,
            write_latency_us: 30.0,
            read_iops: 90_000,
            write_iops: 60_000,
            read_mb_per_s: 2000.0,
            write_mb_per_s: 1000.0,
            power_loss_protection: true,
            program_us: 600.0,
            drive_writes_per_day: 0.0,
            warranty_years: 5.0,
            nand: None,
        }
    }
}

impl Default for NandFields {
    fn default() -> NandFields {
        NandFields {
            channels: 8,
            dies_per_channel: 4,
            page_kb: 64,
            pages_per_block: 768,
            read_us: 50.0,
            program_us: 500.0,
            erase_us: 3500.0,
            suspend_us: 15.0,
            channel_mb_per_s: 1200.0,
            buffer_kb: 8192,
            over_provisioning: 0.07,
        }
    }
}

impl SsdFields {
    /// The device holding a file of this size.
    pub(super) fn spec(&self, size_bytes: u64) -> SsdSpec {
        SsdSpec {
            read: DirectionSpec {
                latency: nanos_from_us(self.read_latency_us),
                iops: self.read_iops,
                mb_per_s: self.read_mb_per_s,
            },
            write: DirectionSpec {
                latency: nanos_from_us(self.write_latency_us),
                iops: self.write_iops,
                mb_per_s: self.write_mb_per_s,
            },
            power_loss_protection: self.power_loss_protection,
            program: nanos_from_us(self.program_us),
            nand: self.nand.as_ref().map(|nand| nand.spec(size_bytes)),
        }
    }
}

impl NandFields {
    fn spec(&self, size_bytes: u64) -> NandSpec {
        NandSpec {
            channels: self.channels,
            dies_per_channel: self.dies_per_channel,
            page_bytes: self.page_kb * 1024,
            pages_per_block: self.pages_per_block,
            read: nanos_from_us(self.read_us),
            program: nanos_from_us(self.program_us),
            erase: nanos_from_us(self.erase_us),
            suspend: nanos_from_us(self.suspend_us),
            channel_ns_per_byte: nanos_per_byte(self.channel_mb_per_s),
            buffer_bytes: self.buffer_kb * 1024,
            over_provisioning: 1.0 + self.over_provisioning,
            size_bytes,
        }
    }
}
