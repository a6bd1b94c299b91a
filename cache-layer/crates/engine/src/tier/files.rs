//! The files below a tier, as far as its metadata needs them when it starts.

use std::io;
use std::sync::Arc;

use anyhow::Context;
use cache_core::metadata::{BootId, FlashStore, Store};

use super::origin::OriginFile;
use crate::flash_file::FlashFile;

/// The flash file and the origin's.
pub(super) struct StoreFiles<'a> {
    pub(super) flash: Arc<FlashFile>,
    pub(super) origin: &'a OriginFile,
}

impl FlashStore for StoreFiles<'_> {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.flash.size_bytes())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.flash.read_exact_at(buffer, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.flash.write_all_at(data, offset)
    }

    fn sync_flash(&self) -> io::Result<()> {
        self.flash.sync_data()
    }
}

/// A flash without its origin.
impl FlashStore for FlashFile {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(FlashFile::size_bytes(self))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(data, offset)
    }

    fn sync_flash(&self) -> io::Result<()> {
        self.sync_data()
    }
}

impl Store for StoreFiles<'_> {
    fn read_origin_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.origin.read_exact_at(buffer, offset)
    }

    fn sync_origin(&self) -> io::Result<()> {
        self.origin.sync()
    }
}

/// The number that the kernel drew when it started; see random(4).
pub(super) fn boot_id() -> anyhow::Result<BootId> {
    let path = "/proc/sys/kernel/random/boot_id";
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    let digits = text.trim().replace('-', "");
    let number = u128::from_str_radix(&digits, 16)
        .with_context(|| format!("{path} holds `{}`, which is no UUID", text.trim()))?;
    Ok(number.to_be_bytes())
}
