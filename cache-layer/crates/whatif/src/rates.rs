//! What a policy hits that knows how often each block is wanted, and not when.
//!
//! Where each request is drawn at random, no policy without knowledge of the draw hits more: it holds
//! the blocks that are wanted most (A0: Aho, Denning, Ullman, "Principles of optimal page
//! replacement", Journal of the ACM 18(1), 1971). Real requests are not quite drawn like that, so a
//! policy that follows what is wanted lately may hit a little more.

use cache_core::policy::{Block, Mapping};
use fixedbitset::FixedBitSet;

use crate::hit_ratio::{Piece, most_wanted};
use crate::outcome::Outcome;

/// What it would make of a trace, with a cache of `slots` blocks that holds these when it begins, and
/// writes back. A block comes when it is first wanted, as the least wanted of the others goes.
pub fn bound(slots: u32, warm: &[Mapping], trace: &[Piece]) -> Outcome {
    let mut cache = Cache::new(slots, warm, trace);
    let mut outcome = Outcome::default();
    for piece in trace {
        let block = piece.block as usize;
        let hit = cache.held[block];
        outcome.count(hit, piece.write, piece.bytes);
        if hit && piece.write {
            cache.dirty.insert(block);
            outcome.absorbed += 1;
        }
        if !hit && cache.best[block] {
            cache.bring_in(piece.block, &mut outcome);
        }
    }
    outcome.with_ratio()
}

struct Cache {
    /// By block: it is among those that are wanted most.
    best: FixedBitSet,
    /// By block.
    held: FixedBitSet,
    /// By block: it was written since it came, and not to the origin.
    dirty: FixedBitSet,
    /// Those that the cache was warmed with and that are not among the best, the least wanted last.
    others: Vec<Block>,
    free: u32,
}

impl Cache {
    fn new(slots: u32, warm: &[Mapping], trace: &[Piece]) -> Cache {
        let order = most_wanted(trace);
        let warm = || warm.iter().map(|mapping| mapping.block);
        let highest = order.iter().copied().chain(warm()).max();
        let count = highest.map_or(0, |block| block as usize + 1);
        let (best, rest) = order.split_at(order.len().min(slots as usize));
        let (best, wanted) = (set_of(count, best), set_of(count, &order));
        let held = set_of(count, &warm().collect::<Vec<_>>());
        let less = rest.iter().copied().filter(|&block| held[block as usize]);
        let never = held.difference(&wanted).map(|block| block as Block);
        let others = less.chain(never).collect();
        let free = slots - held.count_ones(..) as u32;
        let dirty = FixedBitSet::with_capacity(count);
        Cache {
            best,
            held,
            dirty,
            others,
            free,
        }
    }

    fn bring_in(&mut self, block: Block, outcome: &mut Outcome) {
        if self.free > 0 {
            self.free -= 1;
        } else {
            let victim = self.others.pop().expect("one that is not among the best") as usize;
            self.held.set(victim, false);
            outcome.demotions += 1;
            outcome.write_backs += u64::from(self.dirty[victim]);
        }
        self.held.insert(block as usize);
        outcome.promotions += 1;
    }
}

fn set_of(count: usize, blocks: &[Block]) -> FixedBitSet {
    let mut set = FixedBitSet::with_capacity(count);
    blocks.iter().for_each(|&block| set.insert(block as usize));
    set
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::belady;
    use cache_core::policy::Access;
    use proptest::prelude::*;

    fn accesses(blocks: &[Block]) -> Vec<Piece> {
        let request = |&block| Access {
            now: 0,
            block,
            write: block % 2 == 0,
            whole: false,
        };
        blocks.iter().map(request).map(Piece::from).collect()
    }

    fn held(blocks: &[Block]) -> Vec<Mapping> {
        let mapping = |(slot, &block): (u32, &Block)| Mapping {
            block,
            slot,
            dirty: false,
            heat: 0,
            missing: Default::default(),
        };
        (0..).zip(blocks).map(mapping).collect()
    }

    #[test]
    fn the_most_wanted_stay_and_the_others_make_way_for_them() {
        let trace = accesses(&[1, 2, 1, 3, 1, 2, 4, 4, 4]);
        let outcome = bound(2, &held(&[2, 3]), &trace);
        // 1 comes in the place of 3, 4 in that of 2; 2 is hit at first only, and was written.
        assert_eq!(
            (outcome.hits, outcome.promotions, outcome.demotions),
            (6, 2, 2)
        );
        assert_eq!((outcome.write_hits, outcome.write_backs), (4, 1));
        assert_eq!(outcome.requests, 9);
    }

    proptest! {
        #[test]
        fn who_knows_the_future_hits_no_less(
            blocks in prop::collection::vec(0..20u32, 0..200),
            slots in 1..12u32,
            warm in prop::collection::btree_set(0..30u32, 0..12),
        ) {
            let warm: Vec<Block> = warm.into_iter().take(slots as usize).collect();
            let (trace, warm) = (accesses(&blocks), held(&warm));
            let (outcome, most) = (bound(slots, &warm, &trace), belady::bound(slots, &warm, &trace));
            prop_assert!(outcome.hits <= most.hits);
            prop_assert_eq!(outcome.hits + outcome.misses, blocks.len() as u64);
        }
    }
}
