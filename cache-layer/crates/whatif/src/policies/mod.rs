//! The policies that can be simulated: those of the live engine, and all of bcache.

mod bcache;

use cache_core::policy::PolicyKind;
use clap::ValueEnum;

pub use bcache::{Bcache, Settings as BcacheSettings};

/// The policies there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// hotset's own: S3-FIFO, and blocks that come with the request that misses them.
    Hotset,
    /// Least recently used.
    Lru,
    /// Adaptive replacement cache (FAST 2003).
    Arc,
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
    /// The live engine's; none for bcache, which looks at whole requests.
    pub fn live(self) -> Option<PolicyKind> {
        match self {
            Kind::Hotset => Some(PolicyKind::Hotset),
            Kind::Lru => Some(PolicyKind::Lru),
            Kind::Arc => Some(PolicyKind::Arc),
            Kind::Sieve => Some(PolicyKind::Sieve),
            Kind::S3Fifo => Some(PolicyKind::S3Fifo),
            Kind::Smq => Some(PolicyKind::Smq),
            Kind::Bcache => None,
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
