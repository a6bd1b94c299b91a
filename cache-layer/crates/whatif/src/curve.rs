//! How many of a trace's requests an LRU cache of each size hits, in one pass.
//!
//! A request hits a cache of more blocks than have been touched since its own was (Mattson, Gecsei,
//! Slutz, Traiger, "Evaluation techniques for storage hierarchies", IBM Systems Journal 9(2), 1970).
//! [`Recency`] counts them exactly. SHARDS does so for a share of the blocks that a hash chooses, and
//! scales (Waldspurger, Park, Garthwaite, Ahmad, "Efficient MRC construction with SHARDS", FAST 2015),
//! with the adjustment of its section 2.4: what the sample has too few requests, or too many, is
//! added to the shortest distance.
//!
//! A block's first request in a trace misses a cache that starts empty, and tells nothing of one that
//! was in use before: it was last asked for before at least all that the trace had touched by then, so
//! it misses smaller caches than that, and may hit larger ones. Of the later part of the trace few
//! requests are such first ones, and its ratios have narrow bounds.
//!
//! Blocks of the earlier part alone (a night's scan, where the trace begins before it) are the same
//! backwards: they may come back as seldom, and then miss.

use std::collections::HashMap;

use cache_core::policy::Block;
use serde::Serialize;

/// Positions counted together: a cache line of bits.
const GROUP: usize = 512;
const WORDS: usize = GROUP / 64;
const LEAST_GROUPS: usize = 64;
/// Hashes are told apart this finely.
const HASH_BITS: u32 = 24;
/// The sample is cut into so many parts, whose differences tell how far to trust it.
const PARTS: usize = 8;
/// Sizes between which the hit ratio changes by more have others between them,
const STEEP: f64 = 0.05;
/// until they are no further apart than this.
const CLOSEST: f64 = 1.01;
/// Student's t for 95 % and one less than [`PARTS`].
const STUDENT: f64 = 2.365;

/// The order in which blocks were last touched.
///
/// Each touch takes the next position of a row; a block has a bit at its last one. Bits are counted
/// by a Fenwick tree over groups of them (Fenwick, "A new data structure for cumulative frequency
/// tables", 1994). When the row is used up, the bits move together: positions are never more than
/// some times the blocks, however long the trace.
struct Recency {
    bits: Vec<u64>,
    /// By group, from 1: a Fenwick tree of how many bits it has.
    tree: Vec<u32>,
    /// By position: who touched it.
    owners: Vec<u32>,
    live: u32,
}

impl Recency {
    fn new() -> Recency {
        Recency {
            bits: vec![0; LEAST_GROUPS * WORDS],
            tree: vec![0; LEAST_GROUPS + 1],
            owners: Vec::with_capacity(LEAST_GROUPS * GROUP),
            live: 0,
        }
    }

    /// A block is touched: how many others have been since its last time.
    ///
    /// `last`: by block, its position plus 1, or 0.
    fn touch(&mut self, last: &mut [u32], block: u32) -> Option<u32> {
        if self.owners.len() == self.bits.len() * 64 {
            self.move_together(last);
        }
        let before = last[block as usize].checked_sub(1);
        let distance = before.map(|position| {
            let distance = self.live - self.up_to(position as usize);
            self.bits[position as usize / 64] &= !(1 << (position % 64));
            self.add(position as usize / GROUP, u32::MAX);
            self.live -= 1;
            distance
        });
        let position = self.owners.len();
        self.owners.push(block);
        self.bits[position / 64] |= 1 << (position % 64);
        self.add(position / GROUP, 1);
        self.live += 1;
        last[block as usize] = position as u32 + 1;
        distance
    }

    /// Bits up to a position, that one included.
    fn up_to(&self, position: usize) -> u32 {
        let group = position / GROUP;
        let mut sum = 0u32;
        let mut at = group;
        while at > 0 {
            sum = sum.wrapping_add(self.tree[at]);
            at &= at - 1;
        }
        let word = position / 64;
        let whole: u32 = self.bits[group * WORDS..word]
            .iter()
            .map(|bits| bits.count_ones())
            .sum();
        let part = self.bits[word] << (63 - position % 64);
        sum.wrapping_add(whole + part.count_ones())
    }

    fn add(&mut self, group: usize, number: u32) {
        let mut at = group + 1;
        while let Some(sum) = self.tree.get_mut(at) {
            *sum = sum.wrapping_add(number);
            at += at & at.wrapping_neg();
        }
    }

    /// Positions without a bit are given up.
    fn move_together(&mut self, last: &mut [u32]) {
        let bits = &self.bits;
        let mut position = 0;
        self.owners.retain(|_| {
            position += 1;
            bits[(position - 1) / 64] >> ((position - 1) % 64) & 1 != 0
        });
        for (position, &owner) in self.owners.iter().enumerate() {
            last[owner as usize] = position as u32 + 1;
        }
        let live = self.owners.len();
        let groups = (3 * live).div_ceil(GROUP).max(LEAST_GROUPS);
        self.bits.clear();
        self.bits.resize(groups * WORDS, 0);
        self.bits[..live / 64].fill(u64::MAX);
        if live % 64 > 0 {
            self.bits[live / 64] = (1 << (live % 64)) - 1;
        }
        self.tree.clear();
        self.tree.resize(groups + 1, 0);
        for group in 0..live.div_ceil(GROUP) {
            self.add(group, (live - group * GROUP).min(GROUP) as u32);
        }
    }
}

/// How often each distance came.
#[derive(Clone, Default)]
struct Distances {
    counts: Vec<u64>,
    requests: u64,
    blocks: u64,
}

impl Distances {
    fn count(&mut self, distance: Option<u32>) {
        self.requests += 1;
        let Some(distance) = distance else {
            self.blocks += 1;
            return;
        };
        let distance = distance as usize;
        if distance >= self.counts.len() {
            self.counts.resize((distance + 1).next_power_of_two(), 0);
        }
        self.counts[distance] += 1;
    }

    fn add(&mut self, other: &Distances) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.requests += other.requests;
        self.blocks += other.blocks;
    }

    /// Of so many requests, the share that hits caches of so many blocks (in ascending order), if
    /// these distances are of `rate` of all blocks.
    fn hit_ratios(&self, sizes: &[u64], requests: f64, rate: f64) -> Vec<f64> {
        let expected = requests * rate;
        let mut hits = expected - self.requests as f64;
        let mut counted = 0;
        let ratio = |&size: &u64| {
            // Distances below the cache's share of the sample.
            let below = ((size as f64 * rate).ceil() as usize).min(self.counts.len());
            let more: u64 = self.counts[counted.min(below)..below].iter().sum();
            hits += more as f64;
            counted = below;
            if size == 0 || expected == 0.0 {
                return 0.0;
            }
            (hits / expected).clamp(0.0, 1.0)
        };
        sizes.iter().map(ratio).collect()
    }
}

/// The distances of a trace in parts: the later one is told apart while nobody knows how long it is.
///
/// At each turn, when twice as many requests have come as at the one before, what was before that
/// one is over. So from half to three quarters of all requests are in the later part.
#[derive(Default)]
struct History {
    over: Distances,
    last: Distances,
    now: Distances,
    turns: u8,
    /// By block, between which turns it was touched last, from 1; 0: never.
    touched: Vec<u8>,
}

impl History {
    fn count(&mut self, block: u32, distance: Option<u32>) {
        if block as usize >= self.touched.len() {
            let len = (block as usize + 1).next_power_of_two();
            self.touched.resize(len, 0);
        }
        self.touched[block as usize] = self.turns + 1;
        self.now.count(distance);
    }

    fn turn(&mut self) {
        self.over.add(&self.last);
        self.last = std::mem::take(&mut self.now);
        self.turns += 1;
    }

    /// Blocks of the earlier part that the later one did not touch.
    fn gone(&self) -> u64 {
        let is_gone = |&&last: &&u8| last > 0 && last < self.turns;
        self.touched.iter().filter(is_gone).count() as u64
    }

    fn later(&self) -> Distances {
        let mut later = self.last.clone();
        later.add(&self.now);
        later
    }

    fn whole(&self) -> Distances {
        let mut whole = self.later();
        whole.add(&self.over);
        whole
    }

    fn blocks(&self) -> u64 {
        self.over.blocks + self.last.blocks + self.now.blocks
    }
}

/// Reads a trace's blocks and makes a curve of them.
pub struct Reader {
    counted: Counted,
    requests: u64,
    /// Different blocks after 1, 2, 4, … requests.
    growth: Vec<u64>,
}

enum Counted {
    /// Every block.
    Exact(Box<Exact>),
    /// A share of them.
    Sampled(Box<Sampled>),
}

impl Reader {
    /// One that has read nothing; `share`: of the blocks, all if it is 1.
    pub fn new(share: f64) -> Reader {
        let counted = match share < 1.0 {
            true => Counted::Sampled(Box::new(Sampled::new(share))),
            false => Counted::Exact(Box::new(Exact::new())),
        };
        Reader {
            counted,
            requests: 0,
            growth: Vec::new(),
        }
    }

    /// Reads on.
    pub fn read(&mut self, mut blocks: &[Block]) {
        while !blocks.is_empty() {
            let turn = 1 << self.growth.len();
            let left = usize::try_from(turn - self.requests).unwrap_or(usize::MAX);
            let (now, later) = blocks.split_at(left.min(blocks.len()));
            match &mut self.counted {
                Counted::Exact(exact) => exact.read(now),
                Counted::Sampled(sampled) => sampled.read(now),
            }
            self.requests += now.len() as u64;
            if self.requests == turn {
                self.growth.push(self.blocks());
                self.history_mut().turn();
            }
            blocks = later;
        }
    }

    fn history(&self) -> &History {
        match &self.counted {
            Counted::Exact(exact) => &exact.history,
            Counted::Sampled(sampled) => &sampled.history,
        }
    }

    fn history_mut(&mut self) -> &mut History {
        match &mut self.counted {
            Counted::Exact(exact) => &mut exact.history,
            Counted::Sampled(sampled) => &mut sampled.history,
        }
    }

    fn share(&self) -> f64 {
        match &self.counted {
            Counted::Exact(_) => 1.0,
            Counted::Sampled(sampled) => sampled.share(),
        }
    }

    /// Requests before the later part.
    fn earlier(&self) -> u64 {
        match self.growth.len() {
            0 | 1 => 0,
            turns => 1 << (turns - 2),
        }
    }

    /// The curve of what was read at caches of so many blocks, in ascending order; at
    /// [`Reader::sizes`] if none are given.
    pub fn curve(&self, block_bytes: u64, sizes: &[u64]) -> Curve {
        let share = self.share();
        let (whole, later) = (self.history().whole(), self.history().later());
        let recent = (self.requests - self.earlier()) as f64;
        let gone = self.history().gone() as f64 / share;
        let come_back = (gone / (self.requests as f64).max(1.0)).min(1.0);
        // All of it has room for what comes back, too.
        let hit = |blocks: u64| {
            if blocks < self.blocks() {
                1.0 - come_back
            } else {
                1.0
            }
        };
        let warm = |sizes: &[u64]| -> Vec<f64> {
            let later = later.hit_ratios(sizes, recent, share);
            sizes
                .iter()
                .zip(later)
                .map(|(&blocks, ratio)| ratio * hit(blocks))
                .collect()
        };
        let sizes = match sizes.is_empty() {
            true => &closer_where_steep(self.sizes(), warm),
            false => sizes,
        };
        let ratios = whole.hit_ratios(sizes, self.requests as f64, share);
        let recently = later.hit_ratios(sizes, recent, share);
        let doubts = match &self.counted {
            Counted::Exact(_) => vec![0.0; sizes.len()],
            Counted::Sampled(sampled) => sampled.doubts(sizes, self.requests as f64),
        };
        let new = later.blocks as f64 / share;
        let known = self.blocks() as f64 - new;
        let point = |(at, &blocks): (usize, &u64)| {
            let (ratio, doubt) = (ratios[at], doubts[at]);
            // First requests of the later part that a cache of this size may have hit.
            let may_hit = (blocks as f64 - known).clamp(0.0, new) / recent.max(1.0);
            Point {
                cache_bytes: blocks * block_bytes,
                hit_ratio: ratio,
                hit_ratio_low: (ratio - doubt).max(0.0),
                hit_ratio_high: (ratio + doubt).min(1.0),
                warm_low: (recently[at] - doubt).max(0.0) * hit(blocks),
                warm_high: (recently[at] + may_hit + doubt).min(1.0),
            }
        };
        Curve {
            requests: self.requests,
            blocks: self.blocks(),
            block_bytes,
            sampled_share: share,
            later_requests: recent as u64,
            later_new: new.round() as u64,
            gone: gone.round() as u64,
            growth: self.growth.clone(),
            points: sizes.iter().enumerate().map(point).collect(),
        }
    }

    /// Different blocks that were read; an estimate where they were sampled.
    pub fn blocks(&self) -> u64 {
        (self.history().blocks() as f64 / self.share()).round() as u64
    }

    /// Cache sizes that show the curve, in blocks: from a thousandth of what was touched to all of
    /// it, each some 25 % more than the one before it.
    fn sizes(&self) -> Vec<u64> {
        let all = self.blocks().max(1);
        let least = (all as f64 / 1000.0).max(1.0);
        let steps = ((all as f64 / least).ln() / 1.25f64.ln()).ceil().max(1.0) as i32;
        let ratio = (all as f64 / least).powf(1.0 / f64::from(steps));
        let mut sizes: Vec<u64> = (0..steps)
            .map(|step| (least * ratio.powi(step)).round() as u64)
            .chain([all])
            .collect();
        sizes.dedup();
        sizes
    }
}

/// With more sizes where the curve is steep: a loop hits nothing until all of it has room.
fn closer_where_steep(mut sizes: Vec<u64>, ratios: impl Fn(&[u64]) -> Vec<f64>) -> Vec<u64> {
    loop {
        let hit = ratios(&sizes);
        let is_steep = |at: &usize| {
            hit[at + 1] - hit[*at] > STEEP && sizes[at + 1] as f64 > sizes[*at] as f64 * CLOSEST
        };
        let middle = |at: usize| (sizes[at] as f64 * sizes[at + 1] as f64).sqrt() as u64;
        let more: Vec<u64> = (0..sizes.len() - 1).filter(is_steep).map(middle).collect();
        let before = sizes.len();
        sizes.extend(more);
        sizes.sort_unstable();
        sizes.dedup();
        if sizes.len() == before {
            return sizes;
        }
    }
}

/// Counts every block.
struct Exact {
    recency: Recency,
    last: Vec<u32>,
    history: History,
}

impl Exact {
    fn new() -> Exact {
        Exact {
            recency: Recency::new(),
            last: Vec::new(),
            history: History::default(),
        }
    }

    fn read(&mut self, blocks: &[Block]) {
        for &block in blocks {
            if block as usize >= self.last.len() {
                self.last
                    .resize((block as usize + 1).next_power_of_two(), 0);
            }
            let distance = self.recency.touch(&mut self.last, block);
            self.history.count(block, distance);
        }
    }
}

/// Counts a share of the blocks.
struct Sampled {
    /// Blocks whose hash is below are in the sample.
    threshold: u32,
    /// Blocks of the sample, numbered as they come.
    numbers: HashMap<Block, u32>,
    recency: Recency,
    last: Vec<u32>,
    history: History,
    /// The distances in each part of the sample.
    parts: Vec<(Recency, Distances)>,
    last_of_parts: Vec<u32>,
}

impl Sampled {
    fn new(share: f64) -> Sampled {
        let all = f64::from(1u32 << HASH_BITS);
        Sampled {
            threshold: (share * all).round().clamp(1.0, all) as u32,
            numbers: HashMap::new(),
            recency: Recency::new(),
            last: Vec::new(),
            history: History::default(),
            parts: (0..PARTS)
                .map(|_| (Recency::new(), Distances::default()))
                .collect(),
            last_of_parts: Vec::new(),
        }
    }

    fn share(&self) -> f64 {
        f64::from(self.threshold) / f64::from(1u32 << HASH_BITS)
    }

    fn read(&mut self, blocks: &[Block]) {
        for &block in blocks {
            let hash = hash(block);
            if ((hash >> (64 - HASH_BITS)) as u32) < self.threshold {
                self.touch(block, hash);
            }
        }
    }

    #[cold]
    fn touch(&mut self, block: Block, hash: u64) {
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(block).or_insert(next);
        if number as usize >= self.last.len() {
            let len = (number as usize + 1).next_power_of_two();
            self.last.resize(len, 0);
            self.last_of_parts.resize(len, 0);
        }
        let distance = self.recency.touch(&mut self.last, number);
        self.history.count(number, distance);
        // Bits that the threshold does not look at.
        let part = hash as usize % PARTS;
        let (recency, distances) = &mut self.parts[part];
        distances.count(recency.touch(&mut self.last_of_parts, number));
    }

    /// How far the hit ratios may be off.
    fn doubts(&self, sizes: &[u64], requests: f64) -> Vec<f64> {
        let share = self.share() / PARTS as f64;
        let of_part =
            |(_, distances): &(Recency, Distances)| distances.hit_ratios(sizes, requests, share);
        let parts: Vec<Vec<f64>> = self.parts.iter().map(of_part).collect();
        let doubt = |at: usize| {
            let each = parts.iter().map(|part| part[at]);
            let mean = each.clone().sum::<f64>() / PARTS as f64;
            let squares: f64 = each.map(|ratio| (ratio - mean).powi(2)).sum();
            STUDENT * (squares / (PARTS * (PARTS - 1)) as f64).sqrt()
        };
        (0..sizes.len()).map(doubt).collect()
    }
}

/// SplitMix64's finalizer (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
/// OOPSLA 2014): neighbours are sampled apart from each other.
fn hash(block: Block) -> u64 {
    let mut hash = u64::from(block).wrapping_add(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}

/// What LRU caches of some sizes hit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Curve {
    /// Requests, cut at the blocks.
    pub requests: u64,
    /// Different blocks; where they were sampled, an estimate.
    pub blocks: u64,
    /// How large they are.
    pub block_bytes: u64,
    /// The share of the blocks that was counted.
    pub sampled_share: f64,
    /// Requests of the later part.
    pub later_requests: u64,
    /// Those of them that were the first to their block.
    pub later_new: u64,
    /// Blocks that it did not touch, and the earlier part did.
    pub gone: u64,
    /// Different blocks after 1, 2, 4, … requests.
    pub growth: Vec<u64>,
    /// By size.
    pub points: Vec<Point>,
}

/// A cache size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Point {
    /// How large the cache is.
    pub cache_bytes: u64,
    /// Hits per request of a cache that starts empty.
    pub hit_ratio: f64,
    /// Of a sample, the band that holds this size's exact ratio with a probability of 95 %, as
    /// told by the differences of the sample's parts; not all sizes' at once. From here
    pub hit_ratio_low: f64,
    /// to here.
    pub hit_ratio_high: f64,
    /// Hits per request of the later part, of a cache that was in use before the trace, whatever
    /// had been asked of it, and should what is gone come back: from here
    pub warm_low: f64,
    /// to here.
    pub warm_high: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand_xoshiro::SplitMix64;
    use rand_xoshiro::rand_core::{RngCore, SeedableRng};

    /// An LRU list, as one would write it without a thought of speed.
    fn hits(blocks: &[Block], slots: usize) -> u64 {
        let mut list: Vec<Block> = Vec::new();
        let mut hits = 0;
        for &block in blocks {
            if let Some(at) = list.iter().position(|&listed| listed == block) {
                list.remove(at);
                hits += 1;
            }
            list.insert(0, block);
            list.truncate(slots);
        }
        hits
    }

    fn skewed(requests: usize, blocks: u64) -> Vec<Block> {
        let mut dice = SplitMix64::seed_from_u64(7);
        let mut part = || dice.next_u64() as f64 / u64::MAX as f64;
        let mut draw = || (part().powi(3) * blocks as f64) as Block;
        (0..requests).map(|_| draw()).collect()
    }

    proptest! {
        #[test]
        fn every_size_hits_what_a_list_hits(blocks in prop::collection::vec(0..12u32, 0..80)) {
            let mut reader = Reader::new(1.0);
            reader.read(&blocks);
            let sizes: Vec<u64> = (0..14).collect();
            let curve = reader.curve(1, &sizes);
            for (slots, point) in curve.points.iter().enumerate() {
                let counted = point.hit_ratio * blocks.len() as f64;
                prop_assert_eq!(counted.round() as u64, hits(&blocks, slots));
            }
        }
    }

    proptest! {
        #[test]
        fn a_cache_with_a_past_hits_what_the_later_part_allows(
            past in prop::collection::vec(0..30u32, 0..60),
            blocks in prop::collection::vec(0..30u32, 1..80),
        ) {
            let mut reader = Reader::new(1.0);
            reader.read(&blocks);
            let sizes: Vec<u64> = (0..34).collect();
            let curve = reader.curve(1, &sizes);
            let earlier = blocks.len() - curve.later_requests as usize;
            prop_assert!((blocks.len() / 4..=blocks.len() / 2).contains(&earlier));
            let before: Vec<Block> = past.iter().chain(&blocks[..earlier]).copied().collect();
            let all: Vec<Block> = past.iter().chain(&blocks).copied().collect();
            for (slots, point) in curve.points.iter().enumerate() {
                let counted = (hits(&all, slots) - hits(&before, slots)) as f64;
                let ratio = counted / curve.later_requests as f64;
                prop_assert!((point.warm_low..=point.warm_high + 1e-9).contains(&ratio), "{ratio} {point:?}");
            }
        }
    }

    #[test]
    fn positions_that_move_together_change_nothing() {
        // The row has 32,768 positions at first, and more once many blocks live.
        let blocks = skewed(150_000, 20_000);
        let mut reader = Reader::new(1.0);
        blocks.chunks(1000).for_each(|chunk| reader.read(chunk));
        let sizes = [10, 300, 5000];
        let curve = reader.curve(4096, &sizes);
        for (point, slots) in curve.points.iter().zip([10, 300, 5000]) {
            let expected = hits(&blocks, slots) as f64 / blocks.len() as f64;
            assert!(
                (point.hit_ratio - expected).abs() < 1e-9,
                "{point:?} {expected}"
            );
        }
        let distinct: std::collections::HashSet<_> = blocks.iter().collect();
        assert_eq!(curve.blocks, distinct.len() as u64);
    }

    #[test]
    fn a_sample_comes_near_and_its_band_holds_the_truth() {
        let blocks = skewed(400_000, 100_000);
        let sizes: Vec<u64> = (1..20).map(|step| step * 5000).collect();
        let curve = |share: f64| {
            let mut reader = Reader::new(share);
            reader.read(&blocks);
            reader.curve(1, &sizes)
        };
        let (exact, sampled) = (curve(1.0), curve(0.1));
        let mut outside = 0;
        for (truth, point) in exact.points.iter().zip(&sampled.points) {
            let error = (truth.hit_ratio - point.hit_ratio).abs();
            assert!(error < 0.02, "{truth:?} {point:?}");
            let band = point.hit_ratio_low - 1e-3..=point.hit_ratio_high + 1e-3;
            outside += u32::from(!band.contains(&truth.hit_ratio));
        }
        assert!(outside <= 3, "{outside} of 19");
        let off = sampled.blocks as f64 / exact.blocks as f64;
        assert!((0.95..1.05).contains(&off), "{off}");
    }

    #[test]
    fn without_the_adjustment_a_hot_block_would_spoil_it() {
        // One block has half of the requests: a sample has it or not.
        let mut blocks = skewed(100_000, 10_000);
        blocks
            .iter_mut()
            .step_by(2)
            .for_each(|block| *block = 77_777);
        for share in [0.05, 0.1, 0.2] {
            let mut sampled = Reader::new(share);
            sampled.read(&blocks);
            let mut exact = Reader::new(1.0);
            exact.read(&blocks);
            let at = [1000, 5000];
            for (point, other) in sampled
                .curve(1, &at)
                .points
                .iter()
                .zip(exact.curve(1, &at).points)
            {
                let error = (point.hit_ratio - other.hit_ratio).abs();
                assert!(error < 0.04, "{share}: {point:?} {other:?}");
            }
        }
    }

    #[test]
    fn a_loop_is_told_to_the_hundredth_of_its_size() {
        let mut reader = Reader::new(1.0);
        (0..5).for_each(|_| reader.read(&(0..4000).collect::<Vec<Block>>()));
        let points = reader.curve(1, &[]).points;
        let below = points.iter().filter(|point| point.warm_low < 0.1).count();
        assert!(points[below - 1].cache_bytes >= 3960, "{points:?}");
        assert!(points[below].warm_low > 0.9, "{points:?}");
        assert!(points.len() < 60, "{}", points.len());
    }

    #[test]
    fn what_was_asked_for_in_the_earlier_part_alone_may_come_back() {
        let mut blocks: Vec<Block> = (5_000..10_000).collect();
        blocks.extend(skewed(45_000, 500));
        let mut reader = Reader::new(1.0);
        reader.read(&blocks);
        let curve = reader.curve(1, &[1000, 5500]);
        assert_eq!((curve.gone, curve.later_new), (5000, 0));
        assert!((curve.points[0].warm_low - 0.9).abs() < 1e-9, "{curve:?}");
        assert!((curve.points[1].warm_low - 1.0).abs() < 1e-9, "{curve:?}");
    }

    #[test]
    fn nothing_read_is_an_empty_curve() {
        for share in [1.0, 0.01] {
            let curve = Reader::new(share).curve(4096, &[]);
            assert_eq!((curve.requests, curve.points[0].hit_ratio), (0, 0.0));
        }
    }
}
