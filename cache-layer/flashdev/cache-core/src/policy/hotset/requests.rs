//! How often each block was requested, the longer ago the less.

use super::super::{Block, Geometry};

/// Requests for each slot after which all counts have been halved once.
const HALVED_AFTER: u64 = 100;
/// Counts of requests, a byte per block of the origin.
///
/// They are halved one after the other, a few with every request, so that no request waits for all.
pub struct Requests {
    counts: Vec<u8>,
    /// The count that is halved next.
    hand: usize,
    /// Counts to halve, in parts of `halved_after`.
    due: u64,
    halved_after: u64,
}

impl Requests {
    /// Nothing was requested yet.
    pub fn new(geometry: Geometry) -> Requests {
        Requests {
            counts: vec![0; geometry.origin_blocks as usize],
            hand: 0,
            due: 0,
            halved_after: HALVED_AFTER * u64::from(geometry.slots),
        }
    }

    /// How often a block was requested lately.
    pub fn of(&self, block: Block) -> u8 {
        self.counts[block as usize]
    }

    /// A block is requested.
    pub fn count(&mut self, block: Block) {
        let count = &mut self.counts[block as usize];
        *count = count.saturating_add(1);
        self.age();
    }

    /// A block is known to have been requested as often as that, at least.
    pub fn raise(&mut self, block: Block, least: u8) {
        let count = &mut self.counts[block as usize];
        *count = least.max(*count);
    }

    fn age(&mut self) {
        self.due += self.counts.len() as u64;
        while self.due >= self.halved_after {
            self.due -= self.halved_after;
            self.counts[self.hand] /= 2;
            self.hand = (self.hand + 1) % self.counts.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(slots: u32) -> Requests {
        Requests::new(Geometry {
            origin_blocks: 1000,
            slots,
        })
    }

    #[test]
    fn what_is_not_requested_any_more_is_worth_half_as_much_after_a_while() {
        let mut requests = requests(10);
        requests.raise(7, 200);
        let counted = HALVED_AFTER as u32 * 10;
        (0..counted).for_each(|at| requests.count(100 + at % 900));
        assert_eq!(requests.of(7), 100);
        (0..counted).for_each(|at| requests.count(100 + at % 900));
        assert_eq!(requests.of(7), 50);
    }

    #[test]
    fn what_is_known_from_before_is_never_less() {
        let mut requests = requests(10);
        requests.raise(7, 9);
        requests.raise(7, 4);
        assert_eq!(requests.of(7), 9);
    }
}
