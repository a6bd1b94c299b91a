//! How the flash file is cut up: METADATA | CACHE | VOLUME.
//!
//! METADATA in turn is two superblocks, two tables of the slots and two journals:
//!
//! ```text
//! page 0       1            2 …      2+t …    2+2t …     half way …  end of METADATA
//! superblock 0 superblock 1 table 0  table 1  journal 0  journal 1
//! ```
//!
//! Of each, a generation uses the one whose number is its parity, so a checkpoint never writes to
//! what is valid: table, superblock and journal of the generation before.

/// A block of the origin: byte offset / block size.
pub type Block = u32;

/// A block's place in the CACHE: 0 up to the capacity.
pub type Slot = u32;

/// Every part of the flash is a multiple of this, bytes.
pub const PAGE_BYTES: u64 = 4096;

/// What the kernel counts in, bytes.
pub const SECTOR_BYTES: u64 = 512;

/// Smallest and largest block, bytes.
const BLOCK_BYTES: std::ops::RangeInclusive<u64> = PAGE_BYTES..=1 << 30;

/// Most slots and most blocks of an origin: the numbers above are marks in tables and lists.
pub const BLOCKS_MAX: u32 = u32::MAX - 1024;

/// Pages of METADATA that hold the superblocks.
const SUPERBLOCK_PAGES: u64 = 2;

/// Pages of METADATA that hold the journals, at least.
const JOURNAL_PAGES_MIN: u64 = 2;

/// One slot in a table, bytes.
pub(crate) const ENTRY_BYTES: usize = 8;

/// Slots in a page of a table; the rest of the page says which page it is, and checks it.
pub(crate) const ENTRIES_PER_PAGE: usize = (PAGE_BYTES as usize - 16) / ENTRY_BYTES;

/// One record of a journal, bytes. Divides a page, so no record lies in two.
pub(crate) const RECORD_BYTES: usize = 32;

/// Most sub-blocks of a block: bits of a [`Mask`].
const SUB_BLOCKS_MAX: u64 = 16;

/// One bit per sub-block of a block, the first one lowest.
pub type Mask = u16;

/// How a block is cut up: parts of at least a page, each of which is in its slot or is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubBlocks {
    /// Size of one, bytes.
    pub bytes: u64,
    /// How many make a block.
    pub count: u32,
}

impl SubBlocks {
    fn of(block_bytes: u64) -> SubBlocks {
        let bytes = PAGE_BYTES.max(block_bytes / SUB_BLOCKS_MAX);
        SubBlocks {
            bytes,
            count: (block_bytes / bytes) as u32,
        }
    }

    /// All of them.
    pub fn all(self) -> Mask {
        Mask::MAX >> (SUB_BLOCKS_MAX as u32 - self.count)
    }

    /// Those that a range touches; offsets are bytes from the start of the block.
    pub fn touched(self, offset: u64, len: u32) -> Mask {
        self.range(
            offset / self.bytes,
            (offset + u64::from(len)).div_ceil(self.bytes),
        )
    }

    /// Those that lie within a range. The last block of an origin may be cut short: `block_len`.
    pub fn covered(self, offset: u64, len: u32, block_len: u32) -> Mask {
        let end = offset + u64::from(len);
        let last = match end == u64::from(block_len) {
            true => end.div_ceil(self.bytes),
            false => end / self.bytes,
        };
        self.range(offset.div_ceil(self.bytes), last)
    }

    fn range(self, first: u64, end: u64) -> Mask {
        if first >= end {
            return 0;
        }
        let below = |bit: u64| ((1u32 << bit) - 1) as Mask;
        below(end) & !below(first)
    }

    /// The runs of sub-blocks in a mask, as bytes from the start of the block.
    pub fn runs(self, mask: Mask) -> impl Iterator<Item = (u64, u64)> {
        let mut left = mask;
        std::iter::from_fn(move || {
            let first = left.trailing_zeros();
            let run = (left >> first.min(SUB_BLOCKS_MAX as u32 - 1)).trailing_ones();
            if left == 0 {
                return None;
            }
            left &= !self.range(first.into(), (first + run).into());
            Some((
                u64::from(first) * self.bytes,
                u64::from(first + run) * self.bytes,
            ))
        })
    }
}

/// A layout that cannot be: says why, and what would do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LayoutError {
    /// Not a block size.
    #[error("block of {0} bytes: give a power of two from 4K to 1G, such as 64K")]
    Block(u64),
    /// A part is not a multiple of its unit.
    #[error("{part} of {bytes} bytes: give a multiple of {unit} bytes, such as {nearest}")]
    Multiple {
        /// Which part.
        part: &'static str,
        /// Its size.
        bytes: u64,
        /// What it must be a multiple of.
        unit: u64,
        /// A size that would do.
        nearest: u64,
    },
    /// Too many slots, or none.
    #[error(
        "cache of {bytes} bytes has {slots} blocks of {block_bytes} bytes: give a size that makes \
         1 to {BLOCKS_MAX} of them"
    )]
    Slots {
        /// Size of the cache.
        bytes: u64,
        /// How many slots that makes.
        slots: u64,
        /// Size of a block.
        block_bytes: u64,
    },
    /// Too little metadata.
    #[error(
        "metadata of {bytes} bytes is too small for {slots} blocks of {block_bytes} bytes: give it \
         at least {needed} bytes, or take larger blocks"
    )]
    Metadata {
        /// Size of the metadata.
        bytes: u64,
        /// How many slots there are.
        slots: u32,
        /// Size of a block.
        block_bytes: u64,
        /// What would do.
        needed: u64,
    },
    /// The parts are larger than the flash.
    #[error(
        "flash of {flash_bytes} bytes is smaller than its parts, metadata {metadata} + cache \
         {cache} + volume {volume} = {sum} bytes: take a larger file or smaller parts"
    )]
    Flash {
        /// Size of the flash.
        flash_bytes: u64,
        /// Size of a part.
        metadata: u64,
        /// Size of a part.
        cache: u64,
        /// Size of a part.
        volume: u64,
        /// Size of all.
        sum: u128,
    },
    /// A cache that is to be cut up anew while something lies behind it.
    #[error(
        "cache_bytes {cache_bytes}: the VOLUME lies behind the cache and cannot be moved while it is in \
         use: make the tier anew with --discard after a flush and a copy of its VOLUME"
    )]
    Volume {
        /// The size that the cache was to have.
        cache_bytes: u64,
    },
    /// Too many blocks to number.
    #[error(
        "origin of {bytes} bytes has {blocks} blocks of {block_bytes} bytes, but at most \
         {BLOCKS_MAX} can be told apart: take larger blocks"
    )]
    Origin {
        /// Size of the origin.
        bytes: u64,
        /// How many blocks that makes.
        blocks: u64,
        /// Size of a block.
        block_bytes: u64,
    },
}

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
    pub fn check(&self, flash_bytes: u64) -> Result<(), LayoutError> {
        self.check_parts()?;
        let needed = Layout::metadata_bytes_needed(self.slots());
        if self.metadata_bytes < needed {
            return Err(LayoutError::Metadata {
                bytes: self.metadata_bytes,
                slots: self.slots(),
                block_bytes: self.block_bytes,
                needed,
            });
        }
        let (metadata, cache, volume) = (self.metadata_bytes, self.cache_bytes, self.volume_bytes);
        let sum = [metadata, cache, volume].map(u128::from).iter().sum();
        if sum > u128::from(flash_bytes) {
            return Err(LayoutError::Flash {
                flash_bytes,
                metadata,
                cache,
                volume,
                sum,
            });
        }
        Ok(())
    }

    /// Whether a flash that is cut up so can be cut up like this instead, while it is in use.
    pub fn check_change(&self, to: &Layout) -> Result<(), LayoutError> {
        // What lies behind the cache is served from there, and would be another block's.
        if self != to && self.volume_bytes.max(to.volume_bytes) > 0 {
            return Err(LayoutError::Volume {
                cache_bytes: to.cache_bytes,
            });
        }
        Ok(())
    }

    fn check_parts(&self) -> Result<(), LayoutError> {
        if !self.block_bytes.is_power_of_two() || !BLOCK_BYTES.contains(&self.block_bytes) {
            return Err(LayoutError::Block(self.block_bytes));
        }
        for (part, bytes, unit) in [
            ("metadata", self.metadata_bytes, PAGE_BYTES),
            ("cache", self.cache_bytes, self.block_bytes),
            ("volume", self.volume_bytes, PAGE_BYTES),
        ] {
            if bytes % unit != 0 {
                return Err(LayoutError::Multiple {
                    part,
                    bytes,
                    unit,
                    nearest: bytes.saturating_sub(bytes % unit).max(unit),
                });
            }
        }
        let slots = self.cache_bytes / self.block_bytes;
        if slots == 0 || slots > u64::from(BLOCKS_MAX) {
            return Err(LayoutError::Slots {
                bytes: self.cache_bytes,
                slots,
                block_bytes: self.block_bytes,
            });
        }
        Ok(())
    }

    /// The sub-blocks of a block.
    pub fn sub_blocks(&self) -> SubBlocks {
        SubBlocks::of(self.block_bytes)
    }

    /// Number of blocks an origin of this size has, the last one possibly cut short.
    pub fn origin_blocks(&self, origin_bytes: u64) -> Result<u32, LayoutError> {
        let blocks = origin_bytes.div_ceil(self.block_bytes);
        match Block::try_from(blocks) {
            Ok(blocks) if blocks <= BLOCKS_MAX => Ok(blocks),
            _ => Err(LayoutError::Origin {
                bytes: origin_bytes,
                blocks,
                block_bytes: self.block_bytes,
            }),
        }
    }

    /// One that holds so many blocks, with just the metadata that they need and no VOLUME.
    pub fn for_slots(slots: u32, block_bytes: u64) -> Layout {
        Layout {
            block_bytes,
            metadata_bytes: Layout::metadata_bytes_needed(slots),
            cache_bytes: u64::from(slots) * block_bytes,
            volume_bytes: 0,
        }
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
        // With journals as long as a table together, a checkpoint writes at most two pages per
        // page of records, however large the cache is.
        let tables = table_pages(slots);
        (SUPERBLOCK_PAGES + 2 * tables + tables.max(JOURNAL_PAGES_MIN)) * PAGE_BYTES
    }

    pub(crate) fn superblock_offset(&self, generation: u64) -> u64 {
        generation % 2 * PAGE_BYTES
    }

    pub(crate) fn table_offset(&self, generation: u64) -> u64 {
        (SUPERBLOCK_PAGES + generation % 2 * table_pages(self.slots())) * PAGE_BYTES
    }

    /// Where the journal of a generation begins.
    pub(crate) fn journal_offset(&self, generation: u64) -> u64 {
        self.journals_offset() + generation % 2 * self.journal_records() * RECORD_BYTES as u64
    }

    /// How many records a journal has room for.
    pub(crate) fn journal_records(&self) -> u64 {
        let pages = (self.metadata_bytes - self.journals_offset()) / PAGE_BYTES;
        pages / 2 * PAGE_BYTES / RECORD_BYTES as u64
    }

    fn journals_offset(&self) -> u64 {
        (SUPERBLOCK_PAGES + 2 * table_pages(self.slots())) * PAGE_BYTES
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
        assert_eq!(GOOD.journal_offset(6), GOOD.table_offset(7) + table_bytes);
        let journal_bytes = GOOD.journal_records() * RECORD_BYTES as u64;
        assert_eq!(
            GOOD.journal_offset(7),
            GOOD.journal_offset(6) + journal_bytes
        );
        let end = GOOD.journal_offset(7) + journal_bytes;
        assert!((GOOD.metadata_bytes - 2 * PAGE_BYTES..=GOOD.metadata_bytes).contains(&end));
        assert!(2 * journal_bytes >= table_bytes);
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
        let too_many = Layout {
            block_bytes: PAGE_BYTES,
            cache_bytes: (u64::from(BLOCKS_MAX) + 1) * PAGE_BYTES,
            ..GOOD
        };
        refused(too_many, u64::MAX, &["1 to 4294966271"]);
    }

    #[test]
    fn a_block_has_sub_blocks_of_at_least_a_page() {
        let sub = |block_bytes| SubBlocks::of(block_bytes);
        assert_eq!((sub(4096).bytes, sub(4096).all()), (4096, 1));
        assert_eq!((sub(32 << 10).bytes, sub(32 << 10).all()), (4096, 0xff));
        assert_eq!((sub(64 << 10).bytes, sub(64 << 10).all()), (4096, 0xffff));
        assert_eq!(sub(1 << 20).bytes, 64 << 10);
        let sub = sub(64 << 10);
        assert_eq!(sub.touched(4000, 200), 0b11);
        assert_eq!(sub.covered(4000, 200, 65_536), 0);
        assert_eq!(sub.covered(4096, 8192, 65_536), 0b110);
        assert_eq!(sub.covered(0, 5000, 5000), 0b11, "the last block is short");
        assert_eq!(sub.covered(0, 65_536, 65_536), 0xffff);
        let runs: Vec<_> = sub.runs(0b1000_0000_0000_0110).collect();
        assert_eq!(runs, [(4096, 12_288), (61_440, 65_536)]);
        assert_eq!(sub.runs(0).count(), 0);
        assert_eq!(sub.runs(sub.all()).collect::<Vec<_>>(), [(0, 65_536)]);
    }

    #[test]
    fn an_origin_of_too_many_blocks_is_refused() {
        assert_eq!(GOOD.origin_blocks(1).unwrap(), 1);
        assert_eq!(GOOD.origin_blocks(128 << 10).unwrap(), 2);
        let most = u64::from(BLOCKS_MAX) * GOOD.block_bytes;
        assert_eq!(GOOD.origin_blocks(most).unwrap(), BLOCKS_MAX);
        assert!(GOOD.origin_blocks(most + 1).is_err());
        let error = GOOD.origin_blocks(1 << 49).unwrap_err().to_string();
        assert!(error.contains("larger blocks"), "{error}");
    }
}
