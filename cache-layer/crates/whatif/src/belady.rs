//! The most that any policy could hit: one that knows the future.
//!
//! Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal
//! 5(2), 1966: the victim is the block that is wanted again last. A block that is wanted again later
//! than all that are cached is not brought in at all, which only a policy with admission can do.

use std::collections::BinaryHeap;

use cache_core::policy::{Block, Mapping};

use crate::hit_ratio::Piece;
use crate::outcome::Outcome;

/// It is not wanted again.
const NEVER: u32 = u32::MAX;

/// What it would make of a trace of fewer than 2^32 accesses, with a cache of `slots` blocks that
/// holds these when it begins and writes back.
pub fn bound(slots: u32, warm: &[Mapping], trace: &[Piece]) -> Outcome {
    let blocks = trace.iter().map(|piece| piece.block);
    let blocks = blocks.chain(warm.iter().map(|mapping| mapping.block));
    let count = blocks.max().map_or(0, |block| block as usize + 1);
    let (again, first) = uses(trace, count);
    let mut cache = Cache {
        wanted_at: vec![None; count],
        dirty: vec![false; count],
        last: BinaryHeap::new(),
        held: 0,
        slots,
    };
    let mut outcome = Outcome::default();
    for mapping in warm {
        cache.want(mapping.block, first[mapping.block as usize], &mut outcome);
    }
    outcome = Outcome::default();
    for (piece, &next) in trace.iter().zip(&again) {
        let hit = cache.want(piece.block, next, &mut outcome);
        outcome.count(hit, piece.write, piece.bytes);
        if hit && piece.write {
            cache.dirty[piece.block as usize] = true;
            outcome.absorbed += 1;
        }
    }
    outcome.with_ratio()
}

/// When the block of each piece is wanted again, and when each block is wanted first.
fn uses(trace: &[Piece], blocks: usize) -> (Vec<u32>, Vec<u32>) {
    let mut next = vec![NEVER; blocks];
    let mut again = vec![NEVER; trace.len()];
    for (number, piece) in trace.iter().enumerate().rev() {
        again[number] = std::mem::replace(&mut next[piece.block as usize], number as u32);
    }
    (again, next)
}

struct Cache {
    /// By block: when one that is held is wanted again.
    wanted_at: Vec<Option<u32>>,
    /// By block: it was written since it came, and not to the origin.
    dirty: Vec<bool>,
    /// The blocks that are held by when they are wanted again, and some entries that are out of date.
    last: BinaryHeap<(u32, Block)>,
    held: u32,
    slots: u32,
}

impl Cache {
    /// A block is wanted, and again at `next`; whether it is held.
    fn want(&mut self, block: Block, next: u32, outcome: &mut Outcome) -> bool {
        let hit = self.wanted_at[block as usize].is_some();
        if !hit {
            if next == NEVER || self.slots == 0 {
                return false;
            }
            if self.held == self.slots {
                let (latest, victim) = self.latest();
                if latest <= next {
                    return false;
                }
                self.last.pop();
                self.wanted_at[victim as usize] = None;
                self.held -= 1;
                outcome.demotions += 1;
                let was_dirty = std::mem::replace(&mut self.dirty[victim as usize], false);
                outcome.write_backs += u64::from(was_dirty);
            }
            self.held += 1;
            outcome.promotions += 1;
        }
        self.wanted_at[block as usize] = Some(next);
        self.last.push((next, block));
        hit
    }

    /// The block that is wanted again last.
    fn latest(&mut self) -> (u32, Block) {
        while let Some(&(at, block)) = self.last.peek() {
            if self.wanted_at[block as usize] == Some(at) {
                return (at, block);
            }
            self.last.pop();
        }
        unreachable!("a full cache holds something")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hit_ratio::simulate;
    use crate::policies::Kind;
    use cache_core::policy::Access;
    use clap::ValueEnum;
    use proptest::prelude::*;

    fn reads(blocks: &[Block]) -> Vec<Piece> {
        let request = |&block| Access {
            now: 0,
            block,
            write: false,
            whole: false,
        };
        blocks.iter().map(request).map(Piece::from).collect()
    }

    /// By trying everything: the most hits from here on.
    fn best(blocks: &[Block], held: &mut Vec<Block>, slots: usize) -> u64 {
        let Some((&block, rest)) = blocks.split_first() else {
            return 0;
        };
        if held.contains(&block) {
            return 1 + best(rest, held, slots);
        }
        let mut most = best(rest, held, slots);
        if held.len() < slots {
            held.push(block);
            most = most.max(best(rest, held, slots));
            held.pop();
            return most;
        }
        for at in 0..held.len() {
            let victim = std::mem::replace(&mut held[at], block);
            most = most.max(best(rest, held, slots));
            held[at] = victim;
        }
        most
    }

    proptest! {
        #[test]
        fn nothing_hits_more(blocks in prop::collection::vec(0..5u32, 0..11), slots in 1..4u32) {
            let outcome = bound(slots, &[], &reads(&blocks));
            prop_assert_eq!(outcome.hits, best(&blocks, &mut Vec::new(), slots as usize));
            prop_assert_eq!(outcome.hits + outcome.misses, blocks.len() as u64);
            for kind in Kind::value_variants().iter().filter_map(|kind| kind.live()) {
                prop_assert!(simulate(kind, slots, &[], &reads(&blocks)).hits <= outcome.hits);
            }
        }
    }
}
