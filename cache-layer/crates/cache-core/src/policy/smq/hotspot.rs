//! Which parts of the origin miss so often that their blocks deserve a slot.

use super::SECOND;
use super::levels::{LEVELS, Members, Queue};
use crate::policy::by_block::ByBlock;
use crate::policy::list::NONE;
use crate::policy::{Block, Geometry};
use virtual_time::Nanos;

/// Of a server's kernel (`CONFIG_HZ`, 250). A period is over at the first tick in a later jiffy than its
/// end (`time_after`): where 64 requests come in a second, at an even rate, it takes in 65 of them, and
/// so not the same ones over and over.
const JIFFY: Nanos = SECOND / 250;

/// Levels from here on are hot: three quarters of the way up (`stats_init`).
const HOT_LEVEL: u8 = LEVELS as u8 * 3 / 4;

/// How well the ranking foretells what is asked for (`enum performance`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ranking {
    Poor,
    Fair,
    Well,
}

/// Misses since the last redistribution, by whether the ranking expected them (`struct stats`).
#[derive(Default)]
struct Stats {
    hot: u64,
    others: u64,
}

impl Stats {
    /// `stats_assess`: below a sixteenth poor, below an eighth fair.
    fn assess(&self) -> Ranking {
        let all = self.hot + self.others;
        match self.hot * 256 / all.max(1) {
            ..16 => Ranking::Poor,
            16..32 => Ranking::Fair,
            _ => Ranking::Well,
        }
    }
}

/// A queue of hotspot blocks, each as long as up to 16 blocks of the origin.
pub(super) struct Hotspot {
    /// Blocks of the origin per hotspot block.
    blocks_per_entry: u32,
    /// By hotspot block: its entry.
    entries: ByBlock,
    /// By entry: its hotspot block.
    hotspot_blocks: Vec<u32>,
    /// By entry: the tick in which it was last hit.
    hit_in: Vec<u32>,
    members: Members,
    queue: Queue,
    /// Entries that have been used.
    allocated: u32,
    stats: Stats,
    /// Levels that an entry rises at its first hit in a tick.
    jump: u8,
    /// Level from which on blocks are promoted.
    promote_level: u8,
    tick: u32,
    redistribute_at: Nanos,
}

impl Hotspot {
    /// `calc_hotspot_params` and its part of `__smq_create`.
    pub fn new(geometry: Geometry) -> Hotspot {
        let count = (geometry.slots / 4).max(1024);
        let origin = u64::from(geometry.origin_blocks);
        let mut blocks_per_entry = 16;
        while blocks_per_entry > 1 && u64::from(blocks_per_entry) * u64::from(count) > origin {
            blocks_per_entry /= 2;
        }
        let in_top_levels = (count / LEVELS as u32).min(geometry.slots / blocks_per_entry);
        Hotspot {
            blocks_per_entry,
            entries: ByBlock::new(geometry.origin_blocks.div_ceil(blocks_per_entry), count),
            hotspot_blocks: vec![NONE; count as usize],
            hit_in: vec![0; count as usize],
            members: Members::new(count),
            queue: Queue::with_top(8, in_top_levels),
            allocated: 0,
            stats: Stats::default(),
            jump: 1,
            promote_level: LEVELS as u8,
            tick: 1,
            redistribute_at: 0,
        }
    }

    /// A block misses: whether it deserves a slot (`update_hotspot_queue`, `should_promote`).
    pub fn miss(&mut self, block: Block) -> bool {
        let hotspot_block = block / self.blocks_per_entry;
        let entry = match self.entries.get(hotspot_block) {
            NONE => {
                self.stats.others += 1;
                self.enter(hotspot_block)
            }
            entry => {
                if self.members.level(entry) >= HOT_LEVEL {
                    self.stats.hot += 1;
                } else {
                    self.stats.others += 1;
                }
                let hit_in = &mut self.hit_in[entry as usize];
                let first = std::mem::replace(hit_in, self.tick) != self.tick;
                let up = if first { self.jump } else { 0 };
                self.queue.requeue(&mut self.members, entry, up);
                entry
            }
        };
        self.members.level(entry) >= self.promote_level
    }

    /// A new entry starts at the bottom, or where the one that makes room for it was.
    fn enter(&mut self, hotspot_block: u32) -> u32 {
        let entry = if (self.allocated as usize) < self.hotspot_blocks.len() {
            self.allocated += 1;
            self.allocated - 1
        } else {
            let lowest = self.queue.peek(&self.members, LEVELS, false);
            let lowest = lowest.expect("all entries are in the queue");
            self.queue.remove(&mut self.members, lowest);
            self.entries.set(self.hotspot_blocks[lowest as usize], NONE);
            lowest
        };
        self.hit_in[entry as usize] = 0;
        self.hotspot_blocks[entry as usize] = hotspot_block;
        self.entries.set(hotspot_block, entry);
        self.queue.push(&mut self.members, entry);
        entry
    }

    /// `end_hotspot_period`: entries may rise again; how far, and how high they must be for a
    /// promotion, depends on how good the ranking has proved to be.
    ///
    /// The kernel's `default_promote_level`, which looks at the cache's own hit ratio, is lost in
    /// the `max` that follows it there, so it is left out here.
    pub fn tick(&mut self, now: Nanos) {
        self.tick = self.tick.wrapping_add(1).max(1); // 0: hit in no tick
        let ranking = self.stats.assess();
        self.promote_level = match ranking {
            Ranking::Poor => 48,
            Ranking::Fair => 32,
            Ranking::Well => 0,
        };
        if now / JIFFY <= self.redistribute_at / JIFFY {
            return;
        }
        self.jump = match ranking {
            Ranking::Poor => 4,
            Ranking::Fair => 2,
            Ranking::Well => 1,
        };
        self.queue.redistribute(&mut self.members);
        self.stats = Stats::default();
        self.redistribute_at = now + SECOND;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hotspot() -> Hotspot {
        Hotspot::new(Geometry {
            origin_blocks: 1 << 20,
            slots: 64,
        })
    }

    fn level(hotspot: &Hotspot, block: Block) -> u8 {
        let entry = hotspot.entries.get(block / hotspot.blocks_per_entry);
        hotspot.members.level(entry)
    }

    #[test]
    fn hotspot_blocks_shrink_until_they_fit_the_origin() {
        for (origin_blocks, slots, expected) in [
            (1 << 20, 64, 16),
            (16 * 1024, 64, 16),
            (16 * 1024 - 1, 64, 8),
            (1000, 64, 1),
            (64_000, 16_000, 16),
            (63_999, 16_000, 8),
        ] {
            let hotspot = Hotspot::new(Geometry {
                origin_blocks,
                slots,
            });
            assert_eq!(
                hotspot.blocks_per_entry, expected,
                "{origin_blocks} {slots}"
            );
        }
    }

    #[test]
    fn only_the_first_miss_of_a_tick_raises_an_entry() {
        let mut hotspot = hotspot();
        hotspot.miss(5);
        assert_eq!(level(&hotspot, 5), 0);
        for block in [5, 0, 15] {
            hotspot.miss(block); // all in the same hotspot block
            assert_eq!(level(&hotspot, 5), 1);
        }
        hotspot.tick(SECOND);
        hotspot.tick(SECOND + 1); // no redistribution: a second has not passed
        assert_eq!(hotspot.jump, 4, "nothing is known: poor");
        let before = level(&hotspot, 5);
        hotspot.miss(5);
        assert_eq!(level(&hotspot, 5), before + 4);
    }

    #[test]
    fn the_ranking_sets_the_jump_and_the_promotion_level() {
        for (hot, others, jump, promote_level) in [
            (0, 0, 4, 48),
            (15, 241, 4, 48),
            (16, 240, 2, 32),
            (31, 225, 2, 32),
            (32, 224, 1, 0),
            (100, 0, 1, 0),
        ] {
            let mut hotspot = hotspot();
            hotspot.stats = Stats { hot, others };
            hotspot.tick(SECOND);
            let chosen = (hotspot.jump, hotspot.promote_level);
            assert_eq!(chosen, (jump, promote_level), "{hot} of {}", hot + others);
        }
    }

    #[test]
    fn a_block_is_promoted_from_the_threshold_on() {
        let mut hotspot = hotspot();
        assert!(!hotspot.miss(5), "nothing before the first tick");
        hotspot.tick(SECOND); // poor: jump 4, threshold 48
        hotspot.redistribute_at = Nanos::MAX; // levels stay
        let start = level(&hotspot, 5);
        for hit in 1.. {
            let promote = hotspot.miss(5);
            let reached = start + 4 * hit;
            assert_eq!(level(&hotspot, 5), reached);
            assert_eq!(promote, reached >= 48);
            if promote {
                break;
            }
            hotspot.stats = Stats::default();
            hotspot.tick(1);
        }
    }

    #[test]
    fn a_period_ends_after_a_second_and_not_with_it() {
        let mut hotspot = hotspot();
        let mut periods = 0;
        for tick in 1..=64 * 65 {
            let before = hotspot.redistribute_at;
            hotspot.tick(tick * SECOND / 64);
            periods += u32::from(hotspot.redistribute_at != before);
        }
        assert_eq!(periods, 64, "of 65 ticks each");
    }

    #[test]
    fn with_every_entry_taken_the_lowest_makes_room() {
        let mut hotspot = hotspot();
        for block in (0..1024).map(|entry| entry * 16) {
            hotspot.miss(block);
        }
        hotspot.miss(0); // rises to level 1
        hotspot.miss(1024 * 16);
        assert_eq!(
            hotspot.entries.get(1),
            NONE,
            "the oldest of level 0 is gone"
        );
        assert_ne!(hotspot.entries.get(0), NONE);
        assert_eq!(hotspot.queue.len(), 1024);
    }

    #[test]
    fn an_entry_that_is_taken_over_counts_as_not_hit() {
        let mut hotspot = hotspot();
        for block in (0..2048).map(|hit| hit % 1024 * 16) {
            hotspot.miss(block); // at the second round, all have been hit in this tick
        }
        hotspot.miss(1024 * 16);
        let before = level(&hotspot, 1024 * 16);
        hotspot.miss(1024 * 16);
        assert_eq!(level(&hotspot, 1024 * 16), before + 1);
    }
}
