//! The policies that can be simulated: those of the live engine, and some that only stand beside
//! them to be compared with.

mod bcache;
mod clock;
mod fifo;
mod lirs;
mod tiny_lfu;
mod two_queues;

use cache_core::policy::PolicyKind;
use clap::ValueEnum;

pub use bcache::{Bcache, Settings as BcacheSettings};
pub use clock::Clock;
pub use fifo::Fifo;
pub use lirs::Lirs;
pub use tiny_lfu::TinyLfu;
pub use two_queues::TwoQueues;

/// The policies there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// hotset's own: S3-FIFO, and blocks that come with the request that misses them.
    Hotset,
    /// Least recently used.
    Lru,
    /// First in, first out.
    Fifo,
    /// Second chance.
    Clock,
    /// 2Q (VLDB 1994).
    #[value(name = "2q")]
    TwoQueues,
    /// Adaptive replacement cache (FAST 2003).
    Arc,
    /// Low inter-reference recency set (SIGMETRICS 2002).
    Lirs,
    /// W-TinyLFU (ACM TOS 2017).
    #[value(name = "w-tinylfu")]
    TinyLfu,
    /// SIEVE (NSDI 2024).
    Sieve,
    /// S3-FIFO (SOSP 2023).
    S3Fifo,
    /// Stochastic multi-queue, dm-cache's own.
    Smq,
    /// The whole of bcache: buckets, bypass of sequential requests, write-back.
    Bcache,
}

impl Kind {
    /// The live engine's, if it has it.
    pub fn live(self) -> Option<PolicyKind> {
        match self {
            Kind::Hotset => Some(PolicyKind::Hotset),
            Kind::Lru => Some(PolicyKind::Lru),
            Kind::Arc => Some(PolicyKind::Arc),
            Kind::Sieve => Some(PolicyKind::Sieve),
            Kind::S3Fifo => Some(PolicyKind::S3Fifo),
            Kind::Smq => Some(PolicyKind::Smq),
            _ => None,
        }
    }

    /// As the command line has it.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// Whether it does something after a while, so that a trace must have times.
    pub fn goes_by_time(self) -> bool {
        matches!(self, Kind::Smq | Kind::Bcache)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cache_core::policy::{Block, Textbook};
    use proptest::prelude::*;
    use std::collections::HashSet;

    const BLOCKS: u32 = 30;

    /// What comes and goes is what hits.
    fn check(mut policy: impl Textbook, slots: u32, blocks: &[Block]) {
        let mut there = HashSet::new();
        for &block in blocks {
            let touch = policy.touch(block);
            assert_eq!(touch.hit, there.contains(&block), "{block}: {touch:?}");
            assert!(
                touch.hit || touch.came,
                "all of them let a block in at first"
            );
            there.insert(block);
            if let Some(left) = touch.left {
                assert!(there.remove(&left), "{left} was not there");
                assert!(
                    there.len() as u32 == slots,
                    "nothing goes while there is room"
                );
            }
            assert!(there.len() as u32 <= slots);
        }
    }

    fn misses(mut policy: impl Textbook, blocks: impl IntoIterator<Item = Block>) -> usize {
        let touches = blocks.into_iter().map(|block| policy.touch(block));
        touches.filter(|touch| !touch.hit).count()
    }

    proptest! {
        #[test]
        fn what_comes_and_goes_is_what_hits(slots in 1..9u32,
                                            blocks in prop::collection::vec(0..BLOCKS, 0..300)) {
            check(Fifo::new(BLOCKS, slots), slots, &blocks);
            check(Clock::new(BLOCKS, slots), slots, &blocks);
            check(TwoQueues::new(BLOCKS, slots), slots, &blocks);
            check(Lirs::new(BLOCKS, slots), slots, &blocks);
            check(TinyLfu::new(BLOCKS, slots), slots, &blocks);
        }

        #[test]
        fn fifo_and_clock_are_those_of_the_book(slots in 1..9usize,
                                                blocks in prop::collection::vec(0..12u32, 0..200)) {
            let (mut queue, mut ring): (Vec<Block>, Vec<(Block, bool)>) = (Vec::new(), Vec::new());
            let mut fifo = Fifo::new(BLOCKS, slots as u32);
            let mut clock = Clock::new(BLOCKS, slots as u32);
            for &block in &blocks {
                prop_assert_eq!(fifo.touch(block).hit, queue.contains(&block));
                if !queue.contains(&block) {
                    queue.push(block);
                    if queue.len() > slots {
                        queue.remove(0);
                    }
                }
                let found = ring.iter_mut().find(|one| one.0 == block);
                prop_assert_eq!(clock.touch(block).hit, found.is_some());
                if let Some(one) = found {
                    one.1 = true;
                    continue;
                }
                while ring.len() == slots {
                    let (oldest, used) = ring.remove(0);
                    if used {
                        ring.push((oldest, false));
                    }
                }
                ring.push((block, false));
            }
        }
    }

    /// A loop that is a little larger than the cache: the worst for LRU and FIFO.
    #[test]
    fn lirs_keeps_most_of_a_loop() {
        let round = || (0..10_000u32).map(|at| at % 110);
        assert_eq!(misses(Fifo::new(1 << 16, 100), round()), 10_000);
        let lirs = misses(Lirs::new(1 << 16, 100), round());
        assert!(lirs < 2000, "{lirs}");
    }

    /// A hot set that fits, with a scan of blocks that never come again between.
    #[test]
    fn a_scan_does_not_push_the_hot_set_out() {
        let hot = |at: u32| (at.wrapping_mul(2_654_435_769) >> 16) % 60;
        let one = move |at: u32| if at % 2 == 0 { hot(at / 2) } else { 100 + at };
        let mixed = || (0..20_000u32).map(one);
        let scan = 10_000;
        for (name, misses) in [
            ("2q", misses(TwoQueues::new(1 << 16, 100), mixed())),
            ("lirs", misses(Lirs::new(1 << 16, 100), mixed())),
            ("w-tinylfu", misses(TinyLfu::new(1 << 16, 100), mixed())),
        ] {
            assert!(misses < scan + 1000, "{name}: {misses}");
        }
        let fifo = misses(Fifo::new(1 << 16, 100), mixed());
        assert!(fifo > scan + 2000, "{fifo}");
    }
}
