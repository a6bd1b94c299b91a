//! Runs a trace of requests through a cache policy: the misses, without any data or waiting.

use std::fmt;

use serde::Serialize;

use crate::Refusal;
use crate::policy::{
    Access, Arc, Block, DemandFill, Geometry, Lru, Policy, PolicyKind, S3Fifo, Sieve, Smq, Work,
};
use crate::time::{NANOS_PER_S, Nanos};
use crate::trace::Request;

/// A gap between two requests from which on the cache counts as idle: dm-cache's, one second.
const IDLE_AFTER: Nanos = NANOS_PER_S as Nanos;

/// First block number that a trace may not have: policies keep tables over all blocks below.
const BLOCK_LIMIT: u64 = 1 << 28;

/// What a policy made of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// Number of requests.
    pub requests: u64,
    /// Those whose block was on the flash.
    pub hits: u64,
    /// Those whose block was not.
    pub misses: u64,
    /// Misses per request; 0 for an empty trace.
    pub miss_ratio: f64,
    /// Blocks copied to the flash.
    pub promotions: u64,
    /// Blocks given up.
    pub demotions: u64,
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        writeln!(formatter, "requests   {}", self.requests)?;
        writeln!(formatter, "hits       {}", self.hits)?;
        writeln!(formatter, "misses     {}", self.misses)?;
        writeln!(formatter, "miss ratio {:.6}", self.miss_ratio)?;
        writeln!(formatter, "promotions {}", self.promotions)?;
        write!(formatter, "demotions  {}", self.demotions)
    }
}

/// Cuts the requests of a trace at the boundaries of blocks, as the tier does.
///
/// # Errors
/// A block number that is too large: a [`Refusal`].
pub fn accesses(trace: &[Request], block_bytes: u64) -> Result<Vec<Access>, Refusal> {
    let mut accesses = Vec::with_capacity(trace.len());
    for request in trace {
        let end = request.offset + request.bytes.max(1);
        let blocks = request.offset / block_bytes..end.div_ceil(block_bytes);
        if blocks.end > BLOCK_LIMIT {
            return Err(Refusal(format!(
                "the trace has a request at byte {}, beyond the {BLOCK_LIMIT} blocks of {block_bytes} bytes that can be simulated: give a larger --block",
                request.offset
            )));
        }
        accesses.extend(blocks.map(|block| Access {
            now: request.at,
            block: block as Block,
            write: request.write,
            whole: false,
        }));
    }
    Ok(accesses)
}

/// Runs a trace through an empty cache of `slots` blocks.
pub fn simulate(kind: PolicyKind, slots: u32, trace: &[Access]) -> Outcome {
    let highest = trace.iter().map(|access| access.block).max();
    let geometry = Geometry {
        origin_blocks: highest.map_or(0, |block| block + 1),
        slots,
    };
    // One copy of the loop per policy, so that its calls are static.
    match kind {
        PolicyKind::Lru => run(DemandFill::<Lru>::new(geometry), trace),
        PolicyKind::Sieve => run(DemandFill::<Sieve>::new(geometry), trace),
        PolicyKind::S3Fifo => run(DemandFill::<S3Fifo>::new(geometry), trace),
        PolicyKind::Arc => run(DemandFill::<Arc>::new(geometry), trace),
        PolicyKind::Smq => run(Smq::new(geometry), trace),
    }
}

fn run<P: Policy>(mut policy: P, trace: &[Access]) -> Outcome {
    let mut outcome = Outcome {
        requests: trace.len() as u64,
        ..Outcome::default()
    };
    let mut idle_at = Nanos::MAX;
    for &access in trace {
        if access.now >= idle_at {
            work_off(&mut policy, idle_at, true, &mut outcome);
        }
        idle_at = access.now + IDLE_AFTER;
        match policy.access(access) {
            Some(slot) => {
                outcome.hits += 1;
                if access.write {
                    policy.set_dirty(slot, true);
                }
            }
            None => outcome.misses += 1,
        }
        work_off(&mut policy, access.now, false, &mut outcome);
        policy.answered(access.block, access.now);
    }
    outcome.miss_ratio = outcome.misses as f64 / outcome.requests.max(1) as f64;
    outcome
}

/// Does all the work there is.
fn work_off<P: Policy>(policy: &mut P, now: Nanos, idle: bool, outcome: &mut Outcome) {
    while let Some(work) = policy.next_work(now, idle) {
        match work {
            Work::Promote { .. } => outcome.promotions += 1,
            Work::Demote { .. } => outcome.demotions += 1,
            Work::WriteBack { slot, .. } => policy.set_dirty(slot, false),
        }
        policy.finished(work, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(blocks: &[Block]) -> Vec<Access> {
        let request = |(at, &block)| Access {
            now: at as Nanos,
            block,
            write: false,
            whole: false,
        };
        blocks.iter().enumerate().map(request).collect()
    }

    #[test]
    fn a_request_touches_every_block_it_lies_in() {
        let request = |offset, bytes| Request {
            at: 5,
            write: true,
            offset,
            bytes,
        };
        let trace = [request(100, 10), request(90, 200), request(200, 100)];
        let blocks: Vec<_> = accesses(&trace, 100)
            .unwrap()
            .iter()
            .map(|access| (access.now, access.block, access.write))
            .collect();
        let expected = [1, 0, 1, 2, 2].map(|block| (5, block, true));
        assert_eq!(blocks, expected);
    }

    #[test]
    fn a_block_beyond_the_limit_is_refused_with_a_remedy() {
        let far = Request {
            at: 0,
            write: false,
            offset: 1 << 40,
            bytes: 1,
        };
        let error = accesses(&[far], 4096).unwrap_err().to_string();
        assert!(error.contains("--block"), "{error}");
        assert_eq!(accesses(&[far], 65536).unwrap().len(), 1);
    }

    #[test]
    fn lru_is_what_it_says() {
        let trace = reads(&[1, 2, 1, 3, 2, 1]);
        let outcome = simulate(PolicyKind::Lru, 2, &trace);
        // 3 takes the place of 2, then 2 that of 1, then 1 that of 3.
        let expected = Outcome {
            requests: 6,
            hits: 1,
            misses: 5,
            miss_ratio: 5.0 / 6.0,
            promotions: 5,
            demotions: 3,
        };
        assert_eq!(outcome, expected);
    }

    #[test]
    fn an_empty_trace_has_no_misses() {
        for kind in [PolicyKind::S3Fifo, PolicyKind::Smq] {
            assert_eq!(simulate(kind, 10, &[]), Outcome::default());
        }
    }
}
