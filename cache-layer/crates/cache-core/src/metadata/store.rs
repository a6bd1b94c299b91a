//! What metadata is read from and written to while a cache starts, and the checksum that everything
//! written carries.

use std::io;

use crate::layout::Layout;

/// The flash, as far as starting a cache needs it. While it runs, whoever drives the
/// [`Log`](super::Log) does its I/O.
pub trait FlashStore {
    /// Size of the flash, bytes.
    fn size_bytes(&self) -> io::Result<u64>;

    /// Fills the buffer from the flash.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes to the flash, as far as the page cache.
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()>;

    /// Makes everything written to the flash before durable.
    fn sync_flash(&self) -> io::Result<()>;
}

/// The flash and the origin.
pub trait Store: FlashStore {
    /// Fills the buffer from the origin.
    fn read_origin_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Makes everything written to the origin before durable.
    fn sync_origin(&self) -> io::Result<()>;
}

/// Zeros are written in pieces of this size when a cache is made, bytes.
const ZEROS_BYTES: usize = 64 << 10;

/// Overwrites tables and journals with zeros.
pub(super) fn wipe(store: &impl FlashStore, layout: &Layout) -> io::Result<()> {
    let zeros = [0; ZEROS_BYTES];
    let mut offset = layout.table_offset(0);
    while offset < layout.metadata_bytes {
        let count = (layout.metadata_bytes - offset).min(ZEROS_BYTES as u64);
        store.write_at(&zeros[..count as usize], offset)?;
        offset += count;
    }
    Ok(())
}

const CRC_BYTES: usize = 4;

/// Puts the CRC-32C of all other bytes into the last four.
pub(super) fn seal(bytes: &mut [u8]) {
    let (body, crc) = bytes.split_at_mut(bytes.len() - CRC_BYTES);
    crc.copy_from_slice(&crc32c::crc32c(body).to_le_bytes());
}

/// Whether the bytes are as they were when they were sealed.
pub(super) fn is_sealed(bytes: &[u8]) -> bool {
    let (body, crc) = bytes.split_at(bytes.len() - CRC_BYTES);
    crc == crc32c::crc32c(body).to_le_bytes()
}

/// Takes a field off the front of what is left of a sealed structure.
pub(super) fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (field, after) = rest
        .split_first_chunk()
        .expect("structures are longer than the sum of their fields");
    *rest = after;
    *field
}
