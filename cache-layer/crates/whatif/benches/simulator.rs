//! How many requests a second the simulator works off on one core: `cargo bench -p whatif`.
//!
//! Hit ratios on a trace in memory: Zipf's law with exponent 0.9, 4 million requests of 400,000
//! blocks, a cache of a tenth of them, 20,000 requests a second; the curve of all cache sizes of the
//! same, exact and of samples. Time simulated: 8 KiB requests of a cached gigabyte, one in four of
//! them a write, by 16 users. Words after `--` name what to measure: `-- lru curve`. With `--trace FILE`,
//! in which a block is a byte, and `--slots N` the same of that trace; with `--json` a line of JSON for
//! each.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Duration;

use cache_core::engine::{CacheConfig, Engine, Mode, Pace};
use cache_core::layout::Layout;
use cache_core::policy::{self, Access, Block, Geometry, PolicyKind};
use clap::{Parser, ValueEnum};
use nix::time::{ClockId, clock_gettime};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use storage_model::spec::ModelSpec;
use virtual_time::Nanos;
use whatif::curve::Reader;
use whatif::hit_ratio::{Piece, pieces, simulate, warm_blocks};
use whatif::policies::Kind;
use whatif::timed::{Arrivals, simulate_timed};
use whatif::trace::{self, Request};

const BLOCKS: u32 = 400_000;
const REQUESTS: usize = 4_000_000;
const EXPONENT: f64 = 0.9;
/// The best of so many rounds is told, by the time that this thread had a core: others use the
/// computer, too.
const ROUNDS: u32 = 3;

const BLOCK_BYTES: u64 = 64 << 10;
const CACHED_BYTES: u64 = 1 << 30;
const TIMED_REQUESTS: u64 = 200_000;

#[derive(Parser)]
struct Args {
    /// What to measure; all if nothing is named.
    names: Vec<String>,
    #[arg(long, requires = "slots")]
    trace: Option<PathBuf>,
    #[arg(long)]
    slots: Option<u32>,
    #[arg(long, default_value_t = ROUNDS)]
    rounds: u32,
    #[arg(long)]
    json: bool,
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

/// The measured rate of a case.
struct Timing {
    name: String,
    /// Millions of requests a second.
    rate: f64,
    /// Of which thing the result is, and the result.
    result: (&'static str, f64),
}

impl Args {
    fn wants(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|one| name.contains(one))
    }

    fn tell(&self, found: &Timing) {
        let Timing {
            name,
            rate,
            result: (what, result),
        } = found;
        match self.json {
            true => println!("{{\"name\": \"{name}\", \"rate\": {rate}, \"{what}\": {result}}}"),
            false => println!("{name:14} {rate:8.2} M requests/s, {what} {result:.4}"),
        }
    }
}

fn main() {
    let args = Args::parse();
    let (trace, slots) = match &args.trace {
        Some(file) => (read(file), args.slots.expect("clap requires it")),
        None => (zipf(), BLOCKS / 10),
    };
    for &kind in Kind::value_variants() {
        let name = kind.name();
        // bcache looks at whole requests, which this trace has none of.
        if let Some(live) = kind.live().filter(|_| args.wants(&name)) {
            let mut misses = 0;
            let rate = best(args.rounds, trace.len(), || {
                misses = black_box(simulate(live, slots, &[], &trace)).misses;
            });
            let result = ("miss ratio", misses as f64 / trace.len() as f64);
            args.tell(&Timing { name, rate, result });
        }
    }
    let blocks: Vec<Block> = trace.iter().map(|access| access.block).collect();
    for (name, share) in [
        ("exact curve", 1.0),
        ("curve 1/10", 0.1),
        ("curve 1/100", 0.01),
    ] {
        if args.wants(name) {
            args.tell(&curve(name, share, &blocks, slots, args.rounds));
        }
    }
    drop(trace);
    for (name, model, cached) in [
        ("hits on flash", "nas-2014", true),
        ("flash alone", "pcie-flash-2014", false),
        ("nas-2014 alone", "nas-2014", false),
    ] {
        if args.wants(name) {
            let trace = timed_trace();
            let mut iops = 0.0;
            let rate = best(args.rounds, trace.len(), || {
                iops = timed(model, cached, &trace);
            });
            let (name, result) = (name.to_owned(), ("IOPS simulated", iops));
            args.tell(&Timing { name, rate, result });
        }
    }
}

fn read(file: &Path) -> Vec<Piece> {
    let requests = trace::read(file).expect("a trace");
    pieces(&requests, 1).expect("blocks of a byte")
}

/// The hit ratio of so many slots, beside which those of samples are.
fn curve(name: &str, share: f64, blocks: &[Block], slots: u32, rounds: u32) -> Timing {
    let mut ratio = 0.0;
    let rate = best(rounds, blocks.len(), || {
        let mut reader = Reader::new(share);
        reader.read(black_box(blocks));
        let found = reader.curve(1, &[u64::from(slots)]);
        ratio = found.points[0].hit_ratio;
    });
    Timing {
        name: name.to_owned(),
        rate,
        result: ("hit ratio", ratio),
    }
}

/// Millions a second.
fn best(rounds: u32, requests: usize, mut run: impl FnMut()) -> f64 {
    let rate = |_| {
        let began = on_core();
        run();
        requests as f64 / (on_core() - began).as_secs_f64() / 1e6
    };
    (0..rounds).map(rate).fold(0.0, f64::max)
}

fn on_core() -> Duration {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID);
    time.expect("Linux has this clock").into()
}

fn zipf() -> Vec<Piece> {
    let mut dice = SplitMix64::seed_from_u64(1);
    let mut sum = 0.0;
    let weight = |rank: u32| {
        sum += f64::from(rank + 1).powf(-EXPONENT);
        sum
    };
    let sums: Vec<f64> = (0..BLOCKS).map(weight).collect();
    let total = sums[sums.len() - 1];
    let mut names: Vec<u32> = (0..BLOCKS).collect();
    for at in (1..names.len()).rev() {
        names.swap(at, (dice.next_u64() % (at as u64 + 1)) as usize);
    }
    let access = |number: usize| {
        let drawn = dice.next_u64() as f64 / u64::MAX as f64 * total;
        let rank = sums.partition_point(|&sum| sum < drawn);
        Access {
            now: number as Nanos * 50_000,
            block: names[rank.min(names.len() - 1)],
            write: false,
            whole: false,
        }
    };
    (0..REQUESTS).map(access).map(Piece::from).collect()
}

fn timed_trace() -> Vec<Request> {
    let mut dice = SplitMix64::seed_from_u64(2);
    let request = |_| Request {
        at: 0,
        write: dice.next_u64() % 4 == 0,
        offset: dice.next_u64() % (CACHED_BYTES / 8192) * 8192,
        bytes: 8192,
    };
    (0..TIMED_REQUESTS).map(request).collect()
}

/// The origin's simulated rate.
fn timed(model: &str, cached: bool, trace: &[Request]) -> f64 {
    let slots = (CACHED_BYTES / BLOCK_BYTES) as u32;
    let layout = Layout::for_slots(slots, BLOCK_BYTES);
    let config = CacheConfig {
        mode: Mode::Writeback,
        layout,
        origin_bytes: CACHED_BYTES,
        dirty_target: 100,
        pace: Pace::Threshold,
    };
    let geometry = Geometry {
        origin_blocks: slots,
        slots,
    };
    let all: Vec<Piece> = (0..slots)
        .map(|block| Access {
            now: 0,
            block,
            write: false,
            whole: false,
        })
        .map(Piece::from)
        .collect();
    let (policy, warm) = match cached {
        true => (
            policy::make(PolicyKind::Lru, geometry),
            warm_blocks(&all, slots),
        ),
        false => (Box::new(policy::Nothing::new(geometry)) as _, Vec::new()),
    };
    let device = |name, bytes| ModelSpec::load(name).unwrap().build(bytes).unwrap();
    let users = Arrivals::Users {
        users: 16,
        think: 0,
    };
    let engine = Engine::new(config, policy, None, &warm);
    let flash = device("pcie-flash-2014", layout.volume_offset());
    simulate_timed(engine, flash, device(model, CACHED_BYTES), trace, users).iops
}
