//! Maps by numbers of our own.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by block or slot. Nobody chooses those to collide, so hashing them can be quick.
pub(crate) type NumberMap<V> = HashMap<u32, V, BuildHasherDefault<NumberHasher>>;

/// Fibonacci hashing: Knuth, The Art of Computer Programming, volume 3, 6.4.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
