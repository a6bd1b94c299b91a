//! How the flash file is cut up: METADATA | CACHE | VOLUME.
//!
//! METADATA in turn is two superblocks, two tables of the slots and the journal:
//!
//! ```text
//! page 0       1            2 …      2+t …    2+2t … end of METADATA
//! superblock 0 superblock 1 table 0  table 1  journal
//! ```
//!
//! A checkpoint goes to the table and then the superblock whose number is its generation's
//! parity, so the one that is valid is never written to.

use crate::Refusal;
use crate::policy::{Block, Slot};

/// Every part of the flash is a multiple of this, bytes.
pub const PAGE_BYTES: u64 = 4096;

/// Smallest and largest block, bytes.
const BLOCK_BYTES: std::ops::RangeInclusive<u64> = PAGE_BYTES..=1 << 30;

/// Pages of METADATA that hold the superblocks.
const SUPERBLOCK_PAGES: u64 = 2;

/// One slot in a table, bytes.
pub(super) const ENTRY_BYTES: usize = 8;

/// Slots in a page of a table; the rest of the page says which page it is, and checks it.
pub(super) const ENTRIES_PER_PAGE: usize = (PAGE_BYTES as usize - 16) / ENTRY_BYTES;

/// One record of the journal, bytes. Divides a page, so no record lies in two.
pub(super) const RECORD_BYTES: usize = 32;

/// The parts of the flash file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Size of a block of the origin and of a slot, bytes.
    pub block_bytes: u64,
    /// Size of METADATA, bytes.
    pub metadata_bytes: u64,
    /// Size of CACHE, bytes.
    pub cache_bytes: u64,
    /// Size of VOLUME, bytes; may be 0.
    pub volume_bytes: u64,
}

impl Layout {
    /// Whether the parts make sense and fit on a flash of this many bytes. Everything else here
    /// takes a checked layout for granted.
    pub fn check(&self, flash_bytes: u64) -> Result<(), Refusal> {
        self.check_block()?;
        self.check_parts()?;
        let needed = Layout::metadata_bytes_needed(self.slots());
        if self.metadata_bytes < needed {
            return Err(Refusal(format!(
                "metadata of {} bytes is too small for {} blocks of {} bytes: give it at least {needed} bytes, or take larger blocks",
                self.metadata_bytes,
                self.slots(),
                self.block_bytes
            )));
        }
        let parts = [self.metadata_bytes, self.cache_bytes, self.volume_bytes];
        let sum = parts.iter().map(|&part| u128::from(part)).sum::<u128>();
        if sum > u128::from(flash_bytes) {
            return Err(Refusal(format!(
                "flash of {flash_bytes} bytes is smaller than its parts, metadata {} + cache {} + volume {} = {sum} bytes: take a larger file or smaller parts",
                self.metadata_bytes, self.cache_bytes, self.volume_bytes
            )));
        }
        Ok(())
    }

    fn check_block(&self) -> Result<(), Refusal> {
        if self.block_bytes.is_power_of_two() && BLOCK_BYTES.contains(&self.block_bytes) {
            return Ok(());
        }
        Err(Refusal(format!(
            "block of {} bytes: give a power of two from 4K to 1G, such as 64K",
            self.block_bytes
        )))
    }

    fn check_parts(&self) -> Result<(), Refusal> {
        let parts = [
            ("metadata", self.metadata_bytes, PAGE_BYTES),
            ("cache", self.cache_bytes, self.block_bytes),
            ("volume", self.volume_bytes, PAGE_BYTES),
        ];
        for (name, bytes, unit) in parts {
            if bytes % unit != 0 {
                return Err(Refusal(format!(
                    "{name} of {bytes} bytes: give a multiple of {unit} bytes, such as {}",
                    bytes.saturating_sub(bytes % unit).max(unit)
                )));
            }
        }
        let slots = self.cache_bytes / self.block_bytes;
        if slots == 0 || slots > u64::from(Slot::MAX) {
            return Err(Refusal(format!(
                "cache of {} bytes has {slots} blocks of {} bytes: give a size that makes 1 to {} of them",
                self.cache_bytes,
                self.block_bytes,
                Slot::MAX
            )));
        }
        Ok(())
    }

    /// Number of blocks an origin of this size has, the last one possibly cut short.
    pub fn origin_blocks(&self, origin_bytes: u64) -> Result<u32, Refusal> {
        let blocks = origin_bytes.div_ceil(self.block_bytes);
        Block::try_from(blocks).map_err(|_| {
            Refusal(format!(
                "origin of {origin_bytes} bytes has {blocks} blocks of {} bytes, but at most {} can be told apart: take larger blocks",
                self.block_bytes,
                Block::MAX
            ))
        })
    }

    /// Number of blocks the cache holds.
    pub fn slots(&self) -> u32 {
        (self.cache_bytes / self.block_bytes) as u32
    }

    /// Where CACHE begins, bytes from the start of the flash.
    pub fn cache_offset(&self) -> u64 {
        self.metadata_bytes
    }

    /// Where VOLUME begins, bytes from the start of the flash.
    pub fn volume_offset(&self) -> u64 {
        self.metadata_bytes + self.cache_bytes
    }

    /// Where a slot begins, bytes from the start of the flash.
    pub fn slot_offset(&self, slot: Slot) -> u64 {
        self.cache_offset() + u64::from(slot) * self.block_bytes
    }

    /// Size that METADATA must have for so many slots, bytes: 24 per slot. More makes the journal
    /// longer, and checkpoints rarer.
    pub fn metadata_bytes_needed(slots: u32) -> u64 {
        // With a journal at least as long as a table, a checkpoint writes at most one page per
        // page of records, however large the cache is.
        (SUPERBLOCK_PAGES + 3 * table_pages(slots)) * PAGE_BYTES
    }

    pub(super) fn superblock_offset(&self, generation: u64) -> u64 {
        generation % 2 * PAGE_BYTES
    }

    pub(super) fn table_offset(&self, generation: u64) -> u64 {
        (SUPERBLOCK_PAGES + generation % 2 * table_pages(self.slots())) * PAGE_BYTES
    }

    pub(super) fn journal_offset(&self) -> u64 {
        (SUPERBLOCK_PAGES + 2 * table_pages(self.slots())) * PAGE_BYTES
    }

    /// How many records the journal has room for.
    pub(super) fn journal_records(&self) -> u64 {
        (self.metadata_bytes - self.journal_offset()) / RECORD_BYTES as u64
    }
}

fn table_pages(slots: u32) -> u64 {
    u64::from(slots).div_ceil(ENTRIES_PER_PAGE as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: Layout = Layout {
        block_bytes: 64 << 10,
        metadata_bytes: 8 << 20,
        cache_bytes: 2 << 30,
        volume_bytes: 256 << 20,
    };
    const FLASH_BYTES: u64 = (8 << 20) + (2 << 30) + (256 << 20);

    fn refused(layout: Layout, flash_bytes: u64, words: &[&str]) {
        let error = layout.check(flash_bytes).unwrap_err().to_string();
        for word in words {
            assert!(error.contains(word), "{error} lacks {word}");
        }
    }

    #[test]
    fn the_parts_follow_one_another() {
        GOOD.check(FLASH_BYTES).unwrap();
        assert_eq!(GOOD.slots(), 32_768);
        assert_eq!(GOOD.cache_offset(), 8 << 20);
        assert_eq!(GOOD.slot_offset(3), (8 << 20) + (192 << 10));
        assert_eq!(GOOD.slot_offset(GOOD.slots()), GOOD.volume_offset());
        assert_eq!(GOOD.volume_offset() + GOOD.volume_bytes, FLASH_BYTES);
    }

    #[test]
    fn superblocks_tables_and_journal_do_not_overlap() {
        let table_bytes = table_pages(GOOD.slots()) * PAGE_BYTES;
        assert_eq!(GOOD.superblock_offset(6), 0);
        assert_eq!(GOOD.superblock_offset(7), PAGE_BYTES);
        assert_eq!(GOOD.table_offset(6), 2 * PAGE_BYTES);
        assert_eq!(GOOD.table_offset(7), 2 * PAGE_BYTES + table_bytes);
        assert_eq!(GOOD.journal_offset(), GOOD.table_offset(7) + table_bytes);
        let journal_bytes = GOOD.journal_records() * RECORD_BYTES as u64;
        assert_eq!(GOOD.journal_offset() + journal_bytes, GOOD.metadata_bytes);
        assert!(journal_bytes >= table_bytes);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_a_remedy() {
        refused(GOOD, FLASH_BYTES - 1, &["2424307711", "larger file"]);
        let huge = Layout {
            volume_bytes: u64::MAX - 4095,
            ..GOOD
        };
        refused(huge, u64::MAX, &["smaller than its parts"]);
        let needed = Layout::metadata_bytes_needed(GOOD.slots());
        let metadata_bytes = needed - PAGE_BYTES;
        let tight = Layout {
            metadata_bytes,
            ..GOOD
        };
        refused(tight, FLASH_BYTES, &["at least", &needed.to_string()]);
        let enough = Layout {
            metadata_bytes: needed,
            ..GOOD
        };
        enough.check(FLASH_BYTES).unwrap();
    }

    #[test]
    fn odd_sizes_are_refused_by_name() {
        for block_bytes in [0, 2048, 96 << 10, 2 << 30] {
            let layout = Layout {
                block_bytes,
                ..GOOD
            };
            refused(layout, FLASH_BYTES, &["block of", "power of two"]);
        }
        let metadata_bytes = GOOD.metadata_bytes - 1;
        let odd_metadata = Layout {
            metadata_bytes,
            ..GOOD
        };
        refused(odd_metadata, FLASH_BYTES, &["metadata", "4096"]);
        let odd_cache = Layout {
            cache_bytes: GOOD.cache_bytes - PAGE_BYTES,
            ..GOOD
        };
        refused(odd_cache, FLASH_BYTES, &["cache", "65536"]);
        let odd_volume = Layout {
            volume_bytes: 100,
            ..GOOD
        };
        refused(odd_volume, FLASH_BYTES, &["volume", "4096"]);
        let no_cache = Layout {
            cache_bytes: 0,
            ..GOOD
        };
        refused(no_cache, FLASH_BYTES, &["cache", "0 blocks"]);
    }

    #[test]
    fn an_origin_of_too_many_blocks_is_refused() {
        assert_eq!(GOOD.origin_blocks(1).unwrap(), 1);
        assert_eq!(GOOD.origin_blocks(128 << 10).unwrap(), 2);
        let error = GOOD.origin_blocks(1 << 49).unwrap_err().to_string();
        assert!(error.contains("larger blocks"), "{error}");
    }
}
