//! Sets of the origin's blocks.

use crate::policy::Block;

const WORD_BITS: usize = u64::BITS as usize;

/// A set of blocks: one bit for every block of the origin.
#[derive(Clone, Debug)]
pub(super) struct BlockSet {
    words: Vec<u64>,
    len: u32,
}

impl BlockSet {
    /// The empty set, with room for so many blocks.
    pub(super) fn new(blocks: u32) -> BlockSet {
        BlockSet {
            words: vec![0; (blocks as usize).div_ceil(WORD_BITS)],
            len: 0,
        }
    }

    /// How many blocks are in it.
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn contains(&self, block: Block) -> bool {
        let (word, mask) = place(block);
        self.words[word] & mask != 0
    }

    /// Adds a block; whether it was not there.
    pub(super) fn insert(&mut self, block: Block) -> bool {
        let (word, mask) = place(block);
        let new = self.words[word] & mask == 0;
        self.words[word] |= mask;
        self.len += u32::from(new);
        new
    }

    /// Takes a block out; whether it was there.
    pub(super) fn remove(&mut self, block: Block) -> bool {
        let (word, mask) = place(block);
        let there = self.words[word] & mask != 0;
        self.words[word] &= !mask;
        self.len -= u32::from(there);
        there
    }

    /// Adds all blocks of a set of the same origin.
    pub(super) fn insert_all(&mut self, other: &BlockSet) {
        for (word, &more) in self.words.iter_mut().zip(&other.words) {
            self.len += (more & !*word).count_ones();
            *word |= more;
        }
    }

    /// Takes all blocks out.
    pub(super) fn clear(&mut self) {
        self.words.fill(0);
        self.len = 0;
    }

    /// The first block of the set that is not before `from`.
    pub(super) fn next(&self, from: Block) -> Option<Block> {
        let first = from as usize / WORD_BITS;
        let mut unseen = !0 << (from as usize % WORD_BITS);
        for (number, word) in self.words.iter().enumerate().skip(first) {
            let found = word & unseen;
            if found != 0 {
                return Some((number * WORD_BITS) as Block + found.trailing_zeros());
            }
            unseen = !0;
        }
        None
    }

    /// The blocks in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = Block> {
        let mut from = Some(0);
        std::iter::from_fn(move || {
            let block = self.next(from?)?;
            from = block.checked_add(1);
            Some(block)
        })
    }

    /// The blocks as runs of (first, count), in order.
    pub(super) fn runs(&self) -> Vec<(Block, u32)> {
        let mut runs: Vec<(Block, u32)> = Vec::new();
        for block in self.iter() {
            match runs.last_mut() {
                Some((first, count)) if *first + *count == block => *count += 1,
                _ => runs.push((block, 1)),
            }
        }
        runs
    }
}

fn place(block: Block) -> (usize, u64) {
    (
        block as usize / WORD_BITS,
        1 << (block as usize % WORD_BITS),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_the_set_that_the_standard_library_has(
            steps in prop::collection::vec((0..300u32, any::<bool>()), 0..200),
            more in prop::collection::btree_set(0..300u32, 0..50),
        ) {
            let (mut set, mut twin) = (BlockSet::new(300), BTreeSet::new());
            for (block, insert) in steps {
                match insert {
                    true => prop_assert_eq!(set.insert(block), twin.insert(block)),
                    false => prop_assert_eq!(set.remove(block), twin.remove(&block)),
                }
                prop_assert_eq!(set.contains(block), insert);
            }
            let mut other = BlockSet::new(300);
            more.iter().for_each(|&block| { other.insert(block); });
            set.insert_all(&other);
            twin.extend(more);
            prop_assert_eq!(set.len() as usize, twin.len());
            prop_assert!(set.iter().eq(twin.iter().copied()));
            let of_runs = set.runs().into_iter().flat_map(|(first, count)| first..first + count);
            prop_assert!(of_runs.eq(twin.iter().copied()));
            for from in [0, 63, 64, 150, 299] {
                prop_assert_eq!(set.next(from), twin.range(from..).next().copied());
            }
        }
    }

    #[test]
    fn runs_join_neighbours_over_words() {
        let mut set = BlockSet::new(200);
        for block in [0, 62, 63, 64, 65, 199] {
            set.insert(block);
        }
        assert_eq!(set.runs(), [(0, 1), (62, 4), (199, 1)]);
    }
}
