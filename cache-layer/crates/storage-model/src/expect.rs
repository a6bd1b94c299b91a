//! What a model promises: the very device that is served, run in virtual time under a closed load.

use serde::Serialize;

use crate::device::{Completion, Device, Op, Request};
use crate::spec::{ModelError, ModelSpec};
use virtual_time::{NANOS_PER_MS, NANOS_PER_S, Nanos, splitmix64};

/// Queue depths of the random reads.
pub const QUEUE_DEPTHS: [usize; 4] = [1, 4, 16, 32];

/// A database page, bytes.
const PAGE_BYTES: u64 = 8192;

/// A sequential request, bytes.
const RUN_BYTES: u64 = 1 << 20;

/// Random reads per queue depth: enough for a mean within 1 %.
const RANDOM_REQUESTS: usize = 20_000;

/// Sequential requests: a few seconds' worth.
const SEQUENTIAL_REQUESTS: usize = 2_000;

/// Which addresses a load visits, and how.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Read or write.
    pub op: Op,
    /// Size of each request, bytes.
    pub len: u64,
    /// Anywhere in the span (else one after the other).
    pub random: bool,
    /// The first so many bytes of the device are visited.
    pub span_bytes: u64,
    /// Requests outstanding at any time.
    pub queue_depth: usize,
    /// Requests in all.
    pub requests: usize,
}

/// What a load saw, in device time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Requests completed.
    pub requests: usize,
    /// Bytes moved.
    pub bytes: u64,
    /// From the first submission to the last completion.
    pub elapsed: Nanos,
    /// Sum of all latencies.
    pub latency_sum: u128,
    /// The longest latency.
    pub latency_max: Nanos,
}

impl Outcome {
    fn count(&mut self, at: Nanos, latency: Nanos) {
        self.requests += 1;
        self.elapsed = self.elapsed.max(at);
        self.latency_sum += u128::from(latency);
        self.latency_max = self.latency_max.max(latency);
    }

    /// Requests per second.
    pub fn iops(&self) -> f64 {
        self.requests as f64 / self.elapsed_s()
    }

    /// 10^6 bytes per second.
    pub fn mb_per_s(&self) -> f64 {
        self.bytes as f64 / 1e6 / self.elapsed_s()
    }

    /// Mean latency in milliseconds.
    pub fn latency_ms_mean(&self) -> f64 {
        self.latency_sum as f64 / self.requests as f64 / NANOS_PER_MS
    }

    fn elapsed_s(&self) -> f64 {
        self.elapsed.max(1) as f64 / NANOS_PER_S
    }
}

/// Runs a closed load: a new request is made at the very time one completes.
pub fn run_closed(device: &mut impl Device, load: &Load) -> Outcome {
    let mut addresses = Addresses::new(load.random, load.span_bytes, load.len);
    let mut left = load.requests;
    closed(device, load.queue_depth, |_| {
        left = left.checked_sub(1)?;
        Some((load.op, addresses.next_offset(), load.len))
    })
}

/// A closed load that lasts for a time, as fio makes it.
#[derive(Clone, Copy, Debug)]
pub struct TimedLoad {
    /// How many of a hundred requests are reads.
    pub reads_percent: u64,
    /// Size of each request, bytes.
    pub len: u64,
    /// Anywhere in the span (else one after the other, reads and writes each on their own).
    pub random: bool,
    /// The first so many bytes of the device are visited.
    pub span_bytes: u64,
    /// Requests outstanding at any time.
    pub queue_depth: usize,
    /// No request is made later.
    pub duration: Nanos,
}

/// Runs it on a device; those under way at the end are waited for, and count.
pub fn run_timed(device: &mut impl Device, load: &TimedLoad) -> Outcome {
    let addresses = || Addresses::new(load.random, load.span_bytes, load.len);
    let (mut reads, mut writes) = (addresses(), addresses());
    // Other numbers than the first addresses are drawn from.
    let mut choice = 1970;
    closed(device, load.queue_depth, |now| {
        let is_read = splitmix64(&mut choice) % 100 < load.reads_percent;
        let (op, offset) = match (is_read, load.random) {
            (true, _) => (Op::Read, reads.next_offset()),
            // One sequence of places: two alike would write where it was just read.
            (false, true) => (Op::Write, reads.next_offset()),
            (false, false) => (Op::Write, writes.next_offset()),
        };
        (now < load.duration).then_some((op, offset, load.len))
    })
}

/// Keeps so many requests under way until `next`, asked with the time, has none: operation, offset
/// and length.
fn closed(
    device: &mut impl Device,
    queue_depth: usize,
    mut next: impl FnMut(Nanos) -> Option<(Op, u64, u64)>,
) -> Outcome {
    let mut submitted_at: Vec<Nanos> = Vec::new();
    let mut outcome = Outcome::default();
    let mut submit = |device: &mut dyn Device, now: Nanos, submitted_at: &mut Vec<Nanos>| {
        let (op, offset, len) = next(now)?;
        let tag = submitted_at.len() as u64;
        submitted_at.push(now);
        device.submit(now, Request::whole(tag, op, offset, len));
        Some(len)
    };
    for _ in 0..queue_depth {
        outcome.bytes += submit(device, 0, &mut submitted_at).unwrap_or(0);
    }
    let mut batch: Vec<Completion> = Vec::new();
    while outcome.requests < submitted_at.len() {
        let Some(at) = device.next_event() else {
            panic!(
                "the device rests with {} requests lost",
                submitted_at.len() - outcome.requests
            );
        };
        device.advance(at, &mut batch);
        for completion in batch.drain(..) {
            outcome.count(
                completion.at,
                completion.at - submitted_at[completion.tag as usize],
            );
            outcome.bytes += submit(device, at, &mut submitted_at).unwrap_or(0);
        }
    }
    outcome
}

/// The offsets of a load: the same ones on every run.
struct Addresses {
    random: bool,
    len: u64,
    slots: u64,
    made: u64,
    state: u64,
}

impl Addresses {
    fn new(random: bool, span_bytes: u64, len: u64) -> Addresses {
        Addresses {
            random,
            len,
            slots: (span_bytes / len).max(1),
            made: 0,
            state: 2014,
        }
    }

    fn next_offset(&mut self) -> u64 {
        let slot = if self.random {
            splitmix64(&mut self.state) % self.slots
        } else {
            self.made % self.slots
        };
        self.made += 1;
        slot * self.len
    }
}

/// Random reads at one queue depth.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RandomPoint {
    /// Requests outstanding.
    pub queue_depth: usize,
    /// Requests per second.
    pub iops: f64,
    /// Mean latency, milliseconds.
    pub latency_ms_mean: f64,
}

/// Everything a model promises.
#[derive(Clone, Debug, Serialize)]
pub struct Expectation {
    /// The model's name.
    pub model: String,
    /// Size of the file, bytes.
    pub size_bytes: u64,
    /// How much of the file, from its start, the load visits, bytes.
    pub span_bytes: u64,
    /// 8 KiB random reads.
    pub random_read_8k: Vec<RandomPoint>,
    /// Mean latency of 8 KiB random writes one at a time, milliseconds.
    pub random_write_8k_ms: f64,
    /// 1 MiB sequential reads one at a time, 10^6 bytes per second.
    pub sequential_read_mb_per_s: f64,
    /// 1 MiB sequential writes one at a time, 10^6 bytes per second.
    pub sequential_write_mb_per_s: f64,
}

/// Works out what a file of this size on this model should show.
pub fn expect(
    spec: &ModelSpec,
    size_bytes: u64,
    span_bytes: u64,
) -> Result<Expectation, ModelError> {
    let run = |load: Load| -> Result<Outcome, ModelError> {
        Ok(run_closed(&mut spec.build(size_bytes)?, &load))
    };
    let mut points = Vec::new();
    for queue_depth in QUEUE_DEPTHS {
        let outcome = run(random(Op::Read, span_bytes, queue_depth))?;
        points.push(RandomPoint {
            queue_depth,
            iops: outcome.iops(),
            latency_ms_mean: outcome.latency_ms_mean(),
        });
    }
    Ok(Expectation {
        model: spec.name.clone(),
        size_bytes,
        span_bytes,
        random_read_8k: points,
        random_write_8k_ms: run(random(Op::Write, span_bytes, 1))?.latency_ms_mean(),
        sequential_read_mb_per_s: run(sequential(Op::Read, span_bytes))?.mb_per_s(),
        sequential_write_mb_per_s: run(sequential(Op::Write, span_bytes))?.mb_per_s(),
    })
}

fn random(op: Op, span_bytes: u64, queue_depth: usize) -> Load {
    Load {
        op,
        len: PAGE_BYTES,
        random: true,
        span_bytes,
        queue_depth,
        requests: RANDOM_REQUESTS,
    }
}

fn sequential(op: Op, span_bytes: u64) -> Load {
    Load {
        op,
        len: RUN_BYTES,
        random: false,
        span_bytes,
        queue_depth: 1,
        requests: SEQUENTIAL_REQUESTS,
    }
}

impl std::fmt::Display for Expectation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "{}: file {} bytes, load over {} bytes",
            self.model, self.size_bytes, self.span_bytes
        )?;
        writeln!(
            f,
            "{:<18} {:>10} {:>12}",
            "8 KiB random read", "IOPS", "latency ms"
        )?;
        for point in &self.random_read_8k {
            writeln!(
                f,
                "{:<18} {:>10.1} {:>12.3}",
                format!("  queue depth {}", point.queue_depth),
                point.iops,
                point.latency_ms_mean
            )?;
        }
        writeln!(
            f,
            "8 KiB random write, one at a time {:>8.3} ms",
            self.random_write_8k_ms
        )?;
        writeln!(
            f,
            "1 MiB sequential read  {:>8.1} MB/s",
            self.sequential_read_mb_per_s
        )?;
        write!(
            f,
            "1 MiB sequential write {:>8.1} MB/s",
            self.sequential_write_mb_per_s
        )
    }
}

#[cfg(test)]
#[path = "expect_tests.rs"]
mod tests;
