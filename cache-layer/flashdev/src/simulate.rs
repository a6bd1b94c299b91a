//! Runs a trace of requests through a cache policy: the misses, without any data or waiting.

use std::fmt;
use std::io::BufRead;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;

use crate::Refusal;
use crate::policy::{
    Access, Arc, Block, DemandFill, Geometry, Lru, Policy, PolicyKind, S3Fifo, Sieve, Smq, Work,
};
use crate::time::{NANOS_PER_S, Nanos};

/// A gap between two requests from which on the cache counts as idle: dm-cache's, one second.
const IDLE_AFTER: Nanos = NANOS_PER_S as Nanos;

/// First block number that a trace may not have: policies keep tables over all blocks below.
const BLOCK_LIMIT: Block = 1 << 28;

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

/// Reads a trace: one request per line, `SECONDS BLOCK R|W`, in order of time.
///
/// # Errors
/// The file cannot be read, or a line is no request: a [`Refusal`] that names it.
pub fn read_trace(path: &Path) -> anyhow::Result<Vec<Access>> {
    let what = || format!("cannot read trace {}", path.display());
    let file = std::fs::File::open(path).with_context(what)?;
    let mut trace: Vec<Access> = Vec::new();
    for (number, line) in (1..).zip(std::io::BufReader::new(file).lines()) {
        let line = line.with_context(what)?;
        let refusal = |reason: String| {
            Refusal(format!(
                "{} line {number}, `{line}`: {reason}",
                path.display()
            ))
        };
        let access = parse_request(&line).map_err(refusal)?;
        if trace.last().is_some_and(|last| last.now > access.now) {
            return Err(refusal("is earlier than the line before; sort by time".to_owned()).into());
        }
        trace.push(access);
    }
    Ok(trace)
}

fn parse_request(line: &str) -> Result<Access, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [seconds, block, kind] = words[..] else {
        return Err("give SECONDS BLOCK R|W".to_owned());
    };
    let seconds: f64 = match seconds.parse() {
        Ok(seconds) if (0.0..1e10).contains(&seconds) => seconds,
        _ => return Err(format!("give seconds from 0 to 10^10, not `{seconds}`")),
    };
    let block = match block.parse() {
        Ok(block) if block < BLOCK_LIMIT => block,
        _ => return Err(format!("give a block below {BLOCK_LIMIT}, not `{block}`")),
    };
    let write = match kind {
        "R" => false,
        "W" => true,
        _ => return Err(format!("give R or W, not `{kind}`")),
    };
    Ok(Access {
        now: (seconds * NANOS_PER_S).round() as Nanos,
        block,
        write,
        whole: false,
    })
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
    use std::io::Write;

    fn read(text: &str) -> anyhow::Result<Vec<Access>> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        read_trace(file.path())
    }

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
    fn a_trace_is_read() {
        let trace = read("0 7 R\n0.5 8 W\n").unwrap();
        assert_eq!(trace[0].block, 7);
        let second = Access {
            now: 500_000_000,
            block: 8,
            write: true,
            whole: false,
        };
        assert_eq!(trace[1], second);
    }

    #[test]
    fn a_bad_line_is_named_with_a_remedy() {
        for (text, words) in [
            ("0 1 R\n0 1\n", "line 2, `0 1`: give SECONDS BLOCK R|W"),
            ("0 1 R\n\n", "line 2, ``: give SECONDS BLOCK R|W"),
            ("0 x R\n", "line 1, `0 x R`: give a block below 268435456"),
            ("0 268435456 R\n", "give a block below 268435456"),
            ("0 1 Q\n", "give R or W, not `Q`"),
            ("nan 1 R\n", "give seconds from 0 to 10^10, not `nan`"),
            ("2 1 R\n1 1 R\n", "line 2, `1 1 R`: is earlier"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.is::<Refusal>());
            assert!(error.to_string().contains(words), "{error}");
        }
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
