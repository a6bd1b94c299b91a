//! What a model promises: of a table of loads, or of one load.

use clap::{Args, ValueEnum};
use serde::Serialize;

use hotset_engine::Refusal;
use hotset_engine::cli::output::say;
use hotset_engine::cli::parse_size;
use storage_model::expect::{Outcome, TimedLoad, expect, run_timed};
use storage_model::spec::ModelSpec;
use virtual_time::{NANOS_PER_S, Nanos};

#[derive(Args)]
pub(crate) struct ExpectArgs {
    /// JSON file, or the name of a model in the library (see `flashdev models`).
    #[arg(long, value_name = "FILE|NAME")]
    model: String,
    /// Size of the device, bytes or with K, M, G, T (powers of 1024) [default: the model's span].
    #[arg(long, value_parser = parse_size)]
    size: Option<u64>,
    /// Visit only so much of the device, from its start [default: all of it].
    #[arg(long, value_parser = parse_size)]
    span: Option<u64>,
    /// One load instead, on a device that has done nothing before: what is asked of it.
    #[arg(long, value_enum)]
    load: Option<Direction>,
    /// Size of that load's requests, bytes or with K, M.
    #[arg(long, default_value = "4K", value_parser = parse_size, requires = "load")]
    block: u64,
    /// How many of them are under way at a time.
    #[arg(long, default_value = "1", value_parser = clap::value_parser!(u16).range(1..), requires = "load")]
    depth: u16,
    /// They follow one another; else they go anywhere.
    #[arg(long, requires = "load")]
    sequential: bool,
    /// How long that load lasts.
    #[arg(long, default_value = "5", value_parser = clap::value_parser!(u16).range(1..=3600), requires = "load")]
    seconds: u16,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Reads, writes, or both.
#[derive(Clone, Copy, ValueEnum)]
enum Direction {
    Read,
    Write,
    /// 70 reads of 100.
    Mix,
}

impl Direction {
    fn reads_percent(self) -> u64 {
        match self {
            Direction::Read => 100,
            Direction::Write => 0,
            Direction::Mix => 70,
        }
    }
}

/// What a load should come to.
#[derive(Serialize)]
struct Promise {
    requests: usize,
    iops: f64,
    mb_per_s: f64,
    latency_us_mean: f64,
}

impl Promise {
    fn of(outcome: &Outcome) -> Promise {
        Promise {
            requests: outcome.requests,
            iops: outcome.iops(),
            mb_per_s: outcome.mb_per_s(),
            latency_us_mean: outcome.latency_ms_mean() * 1e3,
        }
    }
}

pub(crate) fn run_expect(args: &ExpectArgs) -> anyhow::Result<()> {
    let spec = ModelSpec::load(&args.model)?;
    let size_bytes = args.size.unwrap_or(spec.span_bytes());
    let span_bytes = args.span.unwrap_or(size_bytes);
    if size_bytes < 1 << 20 || !(1 << 20..=size_bytes).contains(&span_bytes) {
        return Err(Refusal(format!(
            "size {size_bytes} and span {span_bytes}: the span must be at least 1M and not exceed the size"
        ))
        .into());
    }
    if let Some(direction) = args.load {
        return one_load(args, direction, &spec, size_bytes, span_bytes);
    }
    let expectation = expect(&spec, size_bytes, span_bytes)?;
    if args.json {
        say(serde_json::to_string(&expectation)?)?;
    } else {
        say(expectation)?;
    }
    Ok(())
}

fn one_load(
    args: &ExpectArgs,
    direction: Direction,
    spec: &ModelSpec,
    size_bytes: u64,
    span_bytes: u64,
) -> anyhow::Result<()> {
    if args.block == 0 || args.block > span_bytes {
        return Err(Refusal(format!(
            "block of {} bytes: give 1 to the span's {span_bytes}",
            args.block
        ))
        .into());
    }
    let load = TimedLoad {
        reads_percent: direction.reads_percent(),
        len: args.block,
        random: !args.sequential,
        span_bytes,
        queue_depth: args.depth.into(),
        duration: Nanos::from(args.seconds) * NANOS_PER_S as Nanos,
    };
    let promise = Promise::of(&run_timed(&mut spec.build(size_bytes)?, &load));
    if args.json {
        say(serde_json::to_string(&promise)?)?;
    } else {
        say(format_args!(
            "{:.1} IOPS, {:.1} MB/s, {:.1} us",
            promise.iops, promise.mb_per_s, promise.latency_us_mean
        ))?;
    }
    Ok(())
}
