//! A flash device as its label has it (`disk/flash_devices.py` writes it).

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// The version of the label's JSON that this program reads.
pub const SCHEMA: u64 = 1;

/// A stretch of the flash, in bytes from its beginning.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub struct Part {
    pub start: u64,
    pub size: u64,
}

/// How a disk's cache behaves; sizes in bytes.
#[derive(Clone, Debug, Deserialize)]
pub struct Spec {
    pub mode: String,
    pub policy: String,
    pub block: u64,
    pub metadata: u64,
    pub cache: u64,
    pub bypass: Option<u64>,
}

/// What stays with a disk, whatever it is called; empty where it has no such thing.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct OriginId {
    pub size: u64,
    pub wwn: String,
    pub serial: String,
    pub partition: String,
    pub mapper: String,
}

/// An accelerated disk.
#[derive(Clone, Debug, Deserialize)]
pub struct Disk {
    pub name: String,
    pub kind: String,
    pub origin: PathBuf,
    pub spec: Spec,
    pub metadata: Vec<Part>,
    pub cache: Vec<Part>,
    pub identity: String,
    pub phase: String,
    pub record: u64,
    pub origin_id: Option<OriginId>,
    pub reserve: bool,
}

/// What makes the accelerated device.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    DmCache,
    Bcache,
    Userspace,
}

impl Disk {
    /// :raises: one that a later hotset has, for instance.
    pub fn kind(&self) -> Result<Kind> {
        match self.kind.as_str() {
            "dm-cache" => Ok(Kind::DmCache),
            "bcache" => Ok(Kind::Bcache),
            "userspace" => Ok(Kind::Userspace),
            other => bail!(
                "disk {}: its kind is {other:?}, which this hotset-boot does not know",
                self.name
            ),
        }
    }

    /// Tells its record from one that an earlier disk left in the same place.
    pub fn key(&self) -> &str {
        if self.identity.is_empty() {
            &self.name
        } else {
            &self.identity
        }
    }

    pub fn is_writeback(&self) -> bool {
        self.spec.mode == "writeback"
    }
}

/// A flash device and how it is cut.
#[derive(Clone, Debug, Deserialize)]
pub struct FlashDevice {
    pub name: String,
    pub volume: Vec<Part>,
    pub disks: Vec<Disk>,
    pub host: String,
    /// Empty: its firmware does not tell.
    pub hardware: String,
    pub host_name: String,
}

impl FlashDevice {
    /// :raises: it is of another version, or none.
    pub fn parse(body: &str) -> Result<Self> {
        let value: serde_json::Value =
            serde_json::from_str(body).context("the label does not describe a flash device")?;
        let version = value["schema_version"].as_u64();
        if version != Some(SCHEMA) {
            bail!(
                "the label is of version {}, and this hotset-boot reads version {SCHEMA}: \
                 run `hotset tier activate` of the hotset that wrote it",
                value["schema_version"]
            );
        }
        serde_json::from_value(value).context("the label cannot be read")
    }

    pub fn disk(&self, name: &str) -> Option<&Disk> {
        self.disks.iter().find(|disk| disk.name == name)
    }

    /// The name of its volume's device, which has its own place for disks with an engine.
    pub fn volume_name(&self, kind: Kind) -> String {
        let name = match self.name.as_str() {
            "main" => "volume".into(),
            other => format!("volume-{other}"),
        };
        match kind {
            Kind::DmCache | Kind::Bcache => format!("hotset-{name}"),
            Kind::Userspace => name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same bytes that hotset itself is held to (`tests/disk/test_flash_devices.py`).
    #[test]
    fn a_flash_device_is_read_as_hotset_writes_it() {
        let label = include_str!("../../../tests/data/flash-1.txt");
        let flash = FlashDevice::parse(label.lines().nth(1).unwrap()).unwrap();
        let disk = flash.disk("shop").unwrap();
        assert_eq!(
            (flash.name.as_str(), disk.identity.as_str()),
            ("main", "0d5c")
        );
        assert!(disk.is_writeback());
        assert_eq!(disk.spec.cache, 64 << 20);
    }
}
