//! What TPC-C draws (clause 2.1.6).

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// Random numbers, the same for the same seed.
pub(super) struct Dice {
    generator: Xoshiro256PlusPlus,
    /// Run-time constants of the names, customers and items (clause 2.1.6.1).
    constants: [u64; 3],
}

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        let mut dice = Dice {
            generator: Xoshiro256PlusPlus::seed_from_u64(seed),
            constants: [0; 3],
        };
        dice.constants = [255, 1023, 8191].map(|most| dice.below(most + 1));
        dice
    }

    /// From 0 up to `end`, which is not one of them.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        // Lemire, "Fast random integer generation in an interval", 2019, without the rejection: the
        // bias is below 2^-32 for all that is drawn here.
        ((u128::from(self.generator.next_u64()) * u128::from(end)) >> 64) as u64
    }

    pub(super) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Exponentially distributed, with a mean of 1.
    pub(super) fn wait(&mut self) -> f64 {
        let part = (self.below(1 << 53) + 1) as f64 / (1u64 << 53) as f64;
        -part.ln()
    }

    /// `NURand(255, 0, 999)`: the number of a last name.
    pub(super) fn name(&mut self) -> u64 {
        self.skewed(0, 255, 1000)
    }

    /// `NURand(1023, 1, 3000)`, from 0.
    pub(super) fn customer(&mut self) -> u64 {
        self.skewed(1, 1023, 3000)
    }

    /// `NURand(8191, 1, 100000)`, from 0.
    pub(super) fn item(&mut self) -> u64 {
        self.skewed(2, 8191, 100_000)
    }

    fn skewed(&mut self, which: usize, most: u64, count: u64) -> u64 {
        let drawn = self.below(most + 1) | self.below(count);
        (drawn + self.constants[which]) % count
    }
}
