//! Counters per region of the origin, so that hits can be told apart by file.
//!
//! A region is a whole number of blocks, a power of two of them, as few as keep the table small.
//! Every piece counts in one region, so that the sum over all regions is the tier's counters.

use crate::policy::Block;

/// Regions at most: a table of a megabyte.
const REGIONS_MAX: u32 = 32_768;

/// Read hits, read misses, write hits, write misses.
pub type Counts = [u64; 4];

/// The table.
pub struct Regions {
    shift: u32,
    counts: Vec<Counts>,
}

impl Regions {
    /// An empty table for an origin of so many blocks.
    pub(super) fn new(origin_blocks: u32) -> Regions {
        let region_blocks = origin_blocks.div_ceil(REGIONS_MAX).next_power_of_two();
        let regions = origin_blocks.div_ceil(region_blocks);
        Regions {
            shift: region_blocks.trailing_zeros(),
            counts: vec![Counts::default(); regions as usize],
        }
    }

    /// Counts a piece.
    pub(super) fn count(&mut self, block: Block, write: bool, hit: bool) {
        let column = usize::from(write) * 2 + usize::from(!hit);
        self.counts[(block >> self.shift) as usize][column] += 1;
    }

    /// Size of a region, blocks.
    pub fn region_blocks(&self) -> u32 {
        1 << self.shift
    }

    /// The table, by number of region.
    pub fn counts(&self) -> &[Counts] {
        &self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_of_the_largest_and_the_smallest_origin_has_a_region() {
        for blocks in [
            1,
            2,
            REGIONS_MAX,
            REGIONS_MAX + 1,
            3 * REGIONS_MAX,
            u32::MAX,
        ] {
            let mut regions = Regions::new(blocks);
            regions.count(0, false, true);
            regions.count(blocks - 1, true, false);
            assert!(regions.counts().len() <= REGIONS_MAX as usize);
            let last = regions.counts().len() - 1;
            assert_eq!(regions.counts()[last][3], 1);
            assert_eq!(regions.counts()[0][0], 1);
            let held = u64::from(regions.region_blocks()) * regions.counts().len() as u64;
            assert!(held >= u64::from(blocks));
        }
    }
}
