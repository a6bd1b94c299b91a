//! A cache over modelled devices, in virtual time: the very engine that the daemon drives on files,
//! driven by a trace.
//!
//! Requests are made at their times in the trace, whether or not earlier ones are through, or by
//! users who wait for their answers ([`Arrivals`]). The metadata is left out: it takes a write to the page cache, and flushes are not in traces.

use std::collections::VecDeque;
use std::fmt;

use cache_core::engine::{Counters, Engine};
use serde::Serialize;
use storage_model::device::hybrid::Hybrid;
use storage_model::device::{Completion, Device, Op, Request as DeviceRequest};
use virtual_time::{NANOS_PER_MS, NANOS_PER_S, Nanos};

use crate::trace::Request;

/// When requests are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// At their times in the trace.
    Timed,
    /// As soon as a user is free, in the order of the trace.
    Users {
        /// How many there are; each has one request under way.
        users: usize,
        /// How long one rests between an answer and the next request.
        think: Nanos,
    },
}

/// What became of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TimedOutcome {
    /// Number of requests.
    pub requests: u64,
    /// What happened, by block.
    #[serde(flatten)]
    pub counters: Counters,
    /// Blocks that the origin did not have at the end.
    pub dirty: u64,
    /// From the first request to the last answer, seconds.
    pub seconds: f64,
    /// Requests per second of that.
    pub iops: f64,
    /// Response times of requests, milliseconds.
    pub latency_ms_mean: f64,
    /// The median.
    pub latency_ms_p50: f64,
    /// 95 % are shorter.
    pub latency_ms_p95: f64,
    /// 99 % are shorter.
    pub latency_ms_p99: f64,
    /// The longest.
    pub latency_ms_max: f64,
}

impl fmt::Display for TimedOutcome {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let Counters {
            read_hits,
            read_misses,
            write_hits,
            write_misses,
            promotions,
            demotions,
            write_backs,
        } = self.counters;
        writeln!(formatter, "requests     {}", self.requests)?;
        writeln!(formatter, "read hits    {read_hits}, misses {read_misses}")?;
        writeln!(
            formatter,
            "write hits   {write_hits}, misses {write_misses}"
        )?;
        writeln!(
            formatter,
            "migrations   {promotions} promotions, {demotions} demotions, {write_backs} write-backs"
        )?;
        writeln!(
            formatter,
            "seconds      {:.3}, {:.1} requests a second",
            self.seconds, self.iops
        )?;
        write!(
            formatter,
            "latency ms   {:.3} mean, {:.3} p50, {:.3} p95, {:.3} p99, {:.3} max",
            self.latency_ms_mean,
            self.latency_ms_p50,
            self.latency_ms_p95,
            self.latency_ms_p99,
            self.latency_ms_max
        )
    }
}

/// Runs a trace through an engine without a log.
pub fn simulate_timed(
    engine: Engine,
    flash: impl Device,
    origin: impl Device,
    trace: &[Request],
    arrivals: Arrivals,
) -> TimedOutcome {
    let mut simulation = Simulation {
        device: Hybrid::new(engine, flash, origin),
        done: Vec::new(),
        latencies: vec![0; trace.len()],
        left: trace.len(),
        last_answer: 0,
        due: due(trace, arrivals),
        arrivals,
    };
    simulation.run(trace);
    simulation.outcome(trace)
}

/// When the first requests are made.
fn due(trace: &[Request], arrivals: Arrivals) -> VecDeque<Nanos> {
    match arrivals {
        Arrivals::Timed => trace.iter().map(|request| request.at).collect(),
        Arrivals::Users { users, .. } => vec![0; users.min(trace.len())].into(),
    }
}

struct Simulation<F, O> {
    device: Hybrid<F, O>,
    done: Vec<Completion>,
    /// Of each request; until it is answered, when it was made.
    latencies: Vec<Nanos>,
    left: usize,
    last_answer: Nanos,
    /// When the next requests are made, as far as that is known.
    due: VecDeque<Nanos>,
    arrivals: Arrivals,
}

impl<F: Device, O: Device> Simulation<F, O> {
    fn run(&mut self, trace: &[Request]) {
        let mut requests = trace.iter().enumerate();
        while self.left > 0 {
            let arrival = self.due.front().copied();
            let events = [self.device.next_event(), arrival];
            let now = events.into_iter().flatten().min();
            let now = now.expect("a cache with requests under way has something to do");
            self.complete(now);
            if arrival == Some(now) {
                self.due.pop_front();
                if let Some((number, request)) = requests.next() {
                    self.arrive(now, number, request);
                }
            }
        }
    }

    fn arrive(&mut self, now: Nanos, number: usize, request: &Request) {
        self.latencies[number] = now;
        let op = match request.write {
            true => Op::Write,
            false => Op::Read,
        };
        let request = DeviceRequest::whole(number as u64, op, request.offset, request.bytes);
        self.device.submit(now, request);
    }

    /// Lets the cache go on until now.
    fn complete(&mut self, now: Nanos) {
        self.device.advance(now, &mut self.done);
        for answer in self.done.drain(..) {
            let latency = &mut self.latencies[answer.tag as usize];
            *latency = answer.at - *latency;
            self.left -= 1;
            self.last_answer = answer.at;
            if let Arrivals::Users { think, .. } = self.arrivals {
                self.due.push_back(answer.at + think);
            }
        }
    }

    fn outcome(mut self, trace: &[Request]) -> TimedOutcome {
        let latencies = &mut self.latencies[..];
        let sum: u128 = latencies.iter().map(|&latency| u128::from(latency)).sum();
        let most = latencies.iter().copied().max().unwrap_or(0);
        let [p50, p95, p99] = quantiles(latencies, [0.5, 0.95, 0.99]);
        let ms = |nanos: Nanos| nanos as f64 / NANOS_PER_MS;
        let first = match self.arrivals {
            Arrivals::Timed => trace.first().map_or(0, |request| request.at),
            Arrivals::Users { .. } => 0,
        };
        let seconds = self.last_answer.saturating_sub(first) as f64 / NANOS_PER_S;
        TimedOutcome {
            requests: trace.len() as u64,
            counters: self.device.engine().counters(),
            dirty: self.device.engine().dirty().len(),
            seconds,
            iops: trace.len() as f64 / seconds.max(f64::MIN_POSITIVE),
            latency_ms_mean: sum as f64 / trace.len().max(1) as f64 / NANOS_PER_MS,
            latency_ms_p50: ms(p50),
            latency_ms_p95: ms(p95),
            latency_ms_p99: ms(p99),
            latency_ms_max: ms(most),
        }
    }
}

/// What these shares, in rising order, are shorter than or equal to; reorders.
fn quantiles<const N: usize>(latencies: &mut [Nanos], shares: [f64; N]) -> [Nanos; N] {
    let all = latencies.len();
    // What is below a quantile that was found need not be looked at again.
    let mut below = 0;
    shares.map(|share| {
        let place = ((all as f64 * share) as usize).min(all.saturating_sub(1));
        let rest = &mut latencies[below..];
        if rest.is_empty() {
            return 0;
        }
        let (_, &mut value, _) = rest.select_nth_unstable(place - below);
        below = place;
        value
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cache_core::engine::{CacheConfig, Mode, Pace};
    use cache_core::layout::Layout;
    use cache_core::policy::{self, Geometry, PolicyKind};
    use storage_model::spec::ModelSpec;

    const BLOCK: u64 = 64 << 10;
    const ORIGIN_BYTES: u64 = 256 * BLOCK;

    fn run(mode: Mode, trace: &[Request]) -> TimedOutcome {
        let slots = 64;
        let layout = Layout {
            block_bytes: BLOCK,
            metadata_bytes: 1 << 20,
            cache_bytes: u64::from(slots) * BLOCK,
            volume_bytes: 0,
        };
        let config = CacheConfig {
            mode,
            layout,
            origin_bytes: ORIGIN_BYTES,
            dirty_target: 100,
            pace: Pace::Threshold,
        };
        let origin_blocks = config.origin_blocks();
        let geometry = Geometry {
            origin_blocks,
            slots,
        };
        let engine = Engine::new(config, policy::make(PolicyKind::Lru, geometry), None, &[]);
        let device = |name, bytes| ModelSpec::load(name).unwrap().build(bytes).unwrap();
        let flash = device("pcie-flash-2014", layout.volume_offset());
        simulate_timed(
            engine,
            flash,
            device("hdd-7200", ORIGIN_BYTES),
            trace,
            Arrivals::Timed,
        )
    }

    /// The same blocks over and over, one request every 50 ms.
    fn looping(blocks: u64, requests: u64, write: bool) -> Vec<Request> {
        let request = |number: u64| Request {
            at: number * 50_000_000,
            write,
            offset: number * 7 % blocks * BLOCK,
            bytes: 8192,
        };
        (0..requests).map(request).collect()
    }

    #[test]
    fn what_fits_is_as_fast_as_the_flash_once_it_is_there() {
        let outcome = run(Mode::Writeback, &looping(32, 1000, false));
        assert_eq!(outcome.counters.read_misses, 32);
        assert_eq!(outcome.counters.promotions, 32);
        // 90 us, as the card; the misses are the disk's.
        assert!((0.08..0.11).contains(&outcome.latency_ms_p50), "{outcome}");
        assert!(outcome.latency_ms_max > 1.0, "{outcome}");
    }

    #[test]
    fn writing_through_is_as_slow_as_the_disk() {
        let back = run(Mode::Writeback, &looping(32, 1000, true));
        let through = run(Mode::Writethrough, &looping(32, 1000, true));
        assert_eq!(back.counters.write_hits, through.counters.write_hits);
        assert!(
            through.latency_ms_p50 > 10.0 * back.latency_ms_p50,
            "{through}"
        );
        assert_eq!((back.dirty, through.dirty), (32, 0));
    }

    #[test]
    fn quantiles_are_those_of_the_sorted_times() {
        for count in [0, 1, 2, 3, 10, 99, 1000] {
            let mut times: Vec<Nanos> = (0..count).map(|at| at * 7919 % 1013).collect();
            let mut sorted = times.clone();
            sorted.sort_unstable();
            let at = |share: f64| {
                let place = (count as f64 * share) as usize;
                sorted.get(place.min(sorted.len().saturating_sub(1)))
            };
            let expected = [0.5, 0.95, 0.99].map(|share| at(share).copied().unwrap_or(0));
            assert_eq!(
                quantiles(&mut times, [0.5, 0.95, 0.99]),
                expected,
                "{count}"
            );
        }
    }

    #[test]
    fn every_request_is_answered_however_fast_they_come() {
        let mut trace = looping(200, 2000, true);
        for (number, request) in (0u64..).zip(&mut trace) {
            request.at = number * 1000;
            request.write = number % 3 == 0;
        }
        let outcome = run(Mode::Writeback, &trace);
        assert_eq!(outcome.requests, 2000);
        let Counters {
            read_hits,
            read_misses,
            write_hits,
            write_misses,
            ..
        } = outcome.counters;
        assert_eq!(read_hits + read_misses + write_hits + write_misses, 2000);
    }
}
