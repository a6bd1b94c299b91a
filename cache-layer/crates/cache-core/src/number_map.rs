//! Maps by numbers of our own.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by block or slot. Nobody chooses those to collide, so hashing them can be quick.
pub(crate) type NumberMap<V> = HashMap<u32, V, BuildHasherDefault<NumberHasher>>;

/// Fibonacci hashing: Knuth, The Art of Computer Programming, volume 3, 6.4. The product's highest bits
/// depend on all of a number, its lowest on the number's lowest alone; the map takes the lowest.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::Hash;

    use super::*;

    const NUMBERS: u32 = 4096;

    fn hash(number: u32) -> u64 {
        let mut hasher = NumberHasher::default();
        number.hash(&mut hasher);
        hasher.finish()
    }

    /// A table finds a group of 16 places by the lowest bits, and tells neighbours apart by the highest
    /// seven. Drawn by lot, 8 numbers fall into the average group here, and 20 into the fullest.
    #[test]
    fn numbers_with_gaps_between_them_are_spread_as_well_as_those_without() {
        let groups = 2 * u64::from(NUMBERS) / 16;
        for stride in [1, 2, 3, 64, 1000, 1024, 1 << 14, 1 << 20] {
            let hashes = (0..NUMBERS).map(|number| hash(number * stride));
            let mut counts = vec![0; groups as usize];
            for hash in hashes.clone() {
                counts[(hash / 16 % groups) as usize] += 1;
            }
            let fullest = counts.iter().max().unwrap();
            assert!(*fullest <= 20, "stride {stride}: {fullest} in a group");
            let tags: HashSet<u64> = hashes.map(|hash| hash >> 57).collect();
            assert!(tags.len() >= 120, "stride {stride}: {} tags", tags.len());
        }
    }
}
