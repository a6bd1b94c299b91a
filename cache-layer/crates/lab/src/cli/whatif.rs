//! Traces, and what caches would make of them.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cache_core::engine::{CacheConfig, Engine, Mode, Pace};
use cache_core::layout::Layout;
use cache_core::policy::{self, Block, Geometry, Nothing};
use clap::{Args, Subcommand, ValueEnum};
use hotset_engine::Refusal;
use hotset_engine::tier::dirty_target;
use storage_model::spec::ModelSpec;
use virtual_time::Nanos;
use whatif::belady;
use whatif::curve::Reader;
use whatif::hit_ratio::{self, Setup, blocks, pieces, warm_blocks};
use whatif::policies::{BcacheSettings, Kind};
use whatif::rates;
use whatif::timed::{Arrivals, TimedOutcome, simulate_timed};
use whatif::trace::binary::{self, Writer};
use whatif::trace::foreign::{self, Format};
use whatif::trace::{self, Request, STDIN, Summary, Trace, TraceError};

use super::source::{self, TpccLoad, TpchLoad};
use hotset_engine::cli::output::{Output, say};
use hotset_engine::cli::parse_size;

/// Requests between two looks at the clock.
const TELL_EVERY: u64 = 1 << 16;
const TELL_AFTER: Duration = Duration::from_secs(1);

/// Below `trace`.
#[derive(Subcommand)]
pub(crate) enum TraceCommand {
    /// Turn what another program has recorded into a binary trace; prints a line of JSON.
    Convert(ConvertArgs),
    /// Make the requests of TPC-C at any scale, without a database; prints a line of JSON.
    Tpcc(MakeArgs<TpccLoad>),
    /// Make the scans of TPC-H's queries at any scale; prints a line of JSON.
    Tpch(MakeArgs<TpchLoad>),
    /// Read a trace to its end, and print how many requests it has and what they touch, as JSON.
    Info(InfoArgs),
    /// Print a trace as text: a line `SECONDS R|W OFFSET BYTES` for each request.
    Print(InfoArgs),
}

/// Options of `trace convert`.
#[derive(Args)]
pub(crate) struct ConvertArgs {
    /// What was recorded; - for standard input.
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// Who recorded it [default: hotset, in text or binary].
    #[arg(long)]
    from: Option<Format>,
    /// Only this disk, as the trace names it (8,16 for blkparse, 0 for MSR, a file for fio).
    #[arg(long = "of-disk")]
    disk: Option<String>,
    /// Of oracleGeneral: how many bytes an id stands for.
    #[arg(long = "id-size", value_parser = parse_size)]
    id_bytes: Option<u64>,
    /// The trace to write.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Print `read N` about once a second, N requests, and the share of all if it is known.
    #[arg(long)]
    progress: bool,
}

/// Options of `trace tpcc` and `trace tpch`.
#[derive(Args)]
pub(crate) struct MakeArgs<L: Args> {
    #[command(flatten)]
    load: L,
    /// The trace to write.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
    /// Print `read N` about once a second, N requests, and the share of all if it is known.
    #[arg(long)]
    progress: bool,
}

/// Options of `trace info`.
#[derive(Args)]
pub(crate) struct InfoArgs {
    /// The trace; - for standard input; or a load that is made as it is read, such as
    /// tpcc:warehouses=5000,buffer=24G or tpch:scale=600.
    trace: PathBuf,
}

/// Options of `mrc`.
#[derive(Args)]
pub(crate) struct MrcArgs {
    /// The trace; - for standard input; or a load that is made as it is read, such as
    /// tpcc:warehouses=5000,buffer=24G or tpch:scale=600.
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    /// Size of a cache block, bytes or with K, M, G (powers of 1024).
    #[arg(long, default_value = "64K", value_parser = parse_size)]
    block: u64,
    /// Count only this share of the blocks, 0.0001 to 1, and say how far the curve may be off.
    #[arg(long, value_name = "SHARE", default_value = "1", value_parser = parse_share)]
    sample: f64,
    /// A size of the cache, with K, M, G, T; repeatable [default: sizes that show the curve].
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    cache: Vec<u64>,
    /// Print `read N` about once a second, N requests, and the share of all if it is known.
    #[arg(long)]
    progress: bool,
}

/// What a policy knows that no real one does.
#[derive(Clone, Copy, ValueEnum)]
enum Bound {
    /// When each block is wanted again (Belady).
    Future,
    /// How often each block is wanted.
    Rates,
}

/// Options of `simulate`.
#[derive(Args)]
pub(crate) struct SimulateArgs {
    /// Which blocks are cached.
    #[arg(long, default_value = "hotset")]
    policy: Kind,
    /// Number of blocks that the cache holds.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..1 << 28))]
    cache_blocks: u32,
    /// Leave the cache out: what the slow device does alone.
    #[arg(long, requires = "origin_model", conflicts_with = "warm_by")]
    alone: bool,
    /// In place of a policy's hits, the most that one could have that knows this.
    #[arg(long, value_name = "KNOWS", conflicts_with_all = ["policy", "origin_model"])]
    bound: Option<Bound>,
    /// Size of a cache block, bytes or with K, M, G (powers of 1024).
    #[arg(long, default_value = "64K", value_parser = parse_size)]
    block: u64,
    /// Model of the slow device: then requests take their time on it and on the flash.
    #[arg(long, value_name = "FILE|NAME", requires = "flash_model")]
    origin_model: Option<String>,
    /// Model of the flash.
    #[arg(long, value_name = "FILE|NAME", requires = "origin_model")]
    flash_model: Option<String>,
    /// Size of the slow device, with K, M, G, T (powers of 1024) [default: up to the trace's end].
    #[arg(long, value_name = "BYTES", value_parser = parse_size, requires = "origin_model")]
    origin_size: Option<u64>,
    /// So many users make the requests, each the next one as soon as it has its answer [default: they
    /// are made at their times in the trace].
    #[arg(long, value_name = "N", requires = "origin_model", value_parser = clap::value_parser!(u16).range(1..))]
    users: Option<u16>,
    /// How long a user rests between an answer and the next request, microseconds.
    #[arg(long, value_name = "US", requires = "users", default_value = "0")]
    think_us: u32,
    /// Begin with a warm cache: the blocks that so many requests at the trace's start ask for most,
    /// as a warm-up by heat fills it. Those requests are left out then.
    #[arg(long, value_name = "N", default_value = "0")]
    warm_by: usize,
    /// How much of the cache may be dirty before it is cleaned though nobody needs the place, percent;
    /// 100 leaves that to the policy [default: by mode and policy].
    #[arg(long, value_name = "PERCENT", requires = "origin_model", value_parser = clap::value_parser!(u8).range(0..=100))]
    dirty_target: Option<u8>,
    /// Whether a write that hits goes to the flash first, or to both.
    #[arg(long, default_value = "writeback")]
    mode: Mode,
    /// Of bcache: runs of requests from this length on go past it, with K, M; 0: none.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "4M")]
    sequential_cutoff: u64,
    /// Of bcache: the size of its buckets, with K, M.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "512K")]
    bucket: u64,
    /// Of bcache: how much of it is to be dirty.
    #[arg(long, value_name = "PERCENT", default_value = "10", value_parser = clap::value_parser!(u8).range(0..=100))]
    writeback_percent: u8,
    /// Of bcache: microseconds that its flash takes for a request; from 2 ms of waiting on it counts
    /// as congested. 0: it never is.
    #[arg(long, value_name = "US", default_value = "0")]
    flash_us: u64,
    /// Of bcache: so many tasks make the requests in turn, each filling a bucket of its own: a
    /// database's sessions.
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    tasks: u32,
    /// The trace; - for standard input; or a load that is made as it is read, such as
    /// tpcc:warehouses=5000,buffer=24G or tpch:scale=600.
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    /// Print `read N` about once a second, N requests, and the share of all if it is known.
    #[arg(long)]
    progress: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// `flashdev trace`.
pub(crate) fn run_trace(command: &TraceCommand) -> anyhow::Result<()> {
    let summary = match command {
        TraceCommand::Convert(args) => convert(args)?,
        TraceCommand::Info(args) => Summary::of(source::open(&args.trace)?)?,
        TraceCommand::Print(args) => return print_text(source::open(&args.trace)?),
        TraceCommand::Tpcc(args) => write(args.load.trace(), &args.to, args.progress)?,
        TraceCommand::Tpch(args) => write(args.load.trace(), &args.to, args.progress)?,
    };
    Ok(say(serde_json::to_string(&summary)?)?)
}

fn convert(args: &ConvertArgs) -> anyhow::Result<Summary> {
    let options = foreign::Options {
        disk: args.disk.clone(),
        id_bytes: args.id_bytes,
    };
    let trace = match args.from {
        Some(format) => foreign::open(&args.input, format, &options)?,
        None => trace::open(&args.input)?,
    };
    write(trace, &args.to, args.progress)
}

fn print_text(trace: Trace) -> anyhow::Result<()> {
    let mut out = BufWriter::new(Output::new());
    for request in trace {
        writeln!(out, "{}", request?)?;
    }
    Ok(out.flush()?)
}

/// Writes a binary trace; a part of one is not left behind.
fn write(trace: Trace, to: &Path, progress: bool) -> anyhow::Result<Summary> {
    let written = write_all(trace, to, progress);
    if written.is_err() {
        binary::remove_part(to);
    }
    written
}

fn write_all(trace: Trace, to: &Path, progress: bool) -> anyhow::Result<Summary> {
    let timed = trace.about.timed;
    let mut summary = Summary::begin(timed);
    let cannot_write = |source| TraceError::Io {
        what: "write",
        path: to.to_owned(),
        source,
    };
    let mut writer =
        Writer::new(File::create(to).map_err(cannot_write)?, timed).map_err(cannot_write)?;
    for request in Progress::new(trace, progress) {
        let request = request?;
        summary.add(&request);
        writer.add(request).map_err(cannot_write)?;
    }
    writer.finish().map_err(cannot_write)?;
    Ok(summary)
}

/// `flashdev mrc`.
pub(crate) fn run_mrc(args: &MrcArgs) -> anyhow::Result<()> {
    require_block(args.block)?;
    let mut reader = Reader::new(args.sample);
    let mut batch: Vec<Block> = Vec::with_capacity(TELL_EVERY as usize);
    for request in Progress::new(source::open(&args.trace)?, args.progress) {
        batch.extend(blocks(&request?, args.block)?);
        if batch.len() >= TELL_EVERY as usize {
            reader.read(&batch);
            batch.clear();
        }
    }
    reader.read(&batch);
    let mut sizes: Vec<u64> = args.cache.iter().map(|bytes| bytes / args.block).collect();
    sizes.sort_unstable();
    let curve = reader.curve(args.block, &sizes);
    Ok(say(serde_json::to_string(&curve)?)?)
}

/// `flashdev simulate`.
pub(crate) fn run_simulate(args: &SimulateArgs) -> anyhow::Result<()> {
    require_block(args.block)?;
    if let (Some(origin), Some(flash)) = (&args.origin_model, &args.flash_model) {
        let models = (ModelSpec::load(origin)?, ModelSpec::load(flash)?);
        let trace = match args.users {
            None => whole(&args.trace, "a simulation with models")?,
            Some(_) => source::open(&args.trace)?.collect::<Result<_, _>>()?,
        };
        return print(&run_timed(args, models, &trace)?, args.json);
    }
    let (mut requests, end) = with_end(&args.trace)?;
    if args.policy.goes_by_time() && args.bound.is_none() {
        require_times(&requests, &format!("policy {}", args.policy.name()))?;
    }
    let cache_bytes = u64::from(args.cache_blocks).saturating_mul(args.block);
    if cache_bytes > end.next_multiple_of(args.block) {
        return Err(Refusal(format!(
            "the cache has {cache_bytes} bytes, and the trace touches only the disk's first {end}: \
             give a smaller one"
        ))
        .into());
    }
    let past: Vec<Request> = requests
        .by_ref()
        .take(args.warm_by)
        .collect::<Result<_, _>>()?;
    let warm = warm_blocks(&pieces(&past, args.block)?, args.cache_blocks);
    let mut requests = Progress::new(requests, args.progress);
    let outcome = if let Some(bound) = args.bound {
        let rest = pieces(&requests.collect::<Result<Vec<_>, _>>()?, args.block)?;
        match bound {
            Bound::Future => belady::bound(args.cache_blocks, &warm, &rest),
            Bound::Rates => rates::bound(args.cache_blocks, &warm, &rest),
        }
    } else {
        let setup = Setup {
            kind: args.policy,
            slots: args.cache_blocks,
            block_bytes: args.block,
            mode: args.mode,
            bcache: BcacheSettings {
                bucket_bytes: args.bucket,
                sequential_cutoff: args.sequential_cutoff,
                writeback_percent: args.writeback_percent,
                flash_us: args.flash_us,
                tasks: args.tasks,
            },
        };
        hit_ratio::run(&setup, end, &warm, &mut requests)?
    };
    print(&outcome, args.json)
}

fn run_timed(
    args: &SimulateArgs,
    (origin, flash): (ModelSpec, ModelSpec),
    trace: &[Request],
) -> anyhow::Result<TimedOutcome> {
    let Some(kind) = args.policy.live() else {
        return Err(Refusal(format!(
            "{} is not a policy of the live engine, so it has no timing: leave out the models",
            args.policy.name()
        ))
        .into());
    };
    let ends = trace.iter().map(|request| request.offset + request.bytes);
    let end = ends.max().unwrap_or(0);
    let origin_bytes = args.origin_size.unwrap_or(end.next_multiple_of(args.block));
    if origin_bytes < end {
        return Err(Refusal(format!(
            "--origin-size is {origin_bytes}, but the trace goes on until byte {end}: give at least that"
        ))
        .into());
    }
    let layout = Layout::for_slots(args.cache_blocks, args.block);
    layout.check(u64::MAX)?;
    let origin_blocks = layout.origin_blocks(origin_bytes)?;
    let config = CacheConfig {
        mode: args.mode,
        layout,
        origin_bytes,
        dirty_target: args.dirty_target.unwrap_or(dirty_target(args.mode, kind)),
        pace: Pace::of(kind),
    };
    let geometry = Geometry {
        origin_blocks,
        slots: args.cache_blocks,
    };
    let (past, trace) = trace.split_at(args.warm_by.min(trace.len()));
    let warm = warm_blocks(&pieces(past, args.block)?, args.cache_blocks);
    let policy = match args.alone {
        true => Box::new(Nothing::new(geometry)),
        false => policy::make(kind, geometry),
    };
    let engine = Engine::new(config, policy, None, &warm);
    let (origin, flash) = (
        origin.build(origin_bytes)?,
        flash.build(layout.volume_offset())?,
    );
    let arrivals = match args.users {
        None => Arrivals::Timed,
        Some(users) => Arrivals::Users {
            users: users.into(),
            think: Nanos::from(args.think_us) * 1000,
        },
    };
    Ok(simulate_timed(engine, flash, origin, trace, arrivals))
}

fn print(outcome: &(impl serde::Serialize + std::fmt::Display), json: bool) -> anyhow::Result<()> {
    match json {
        true => say(serde_json::to_string(outcome)?)?,
        false => say(outcome)?,
    }
    Ok(())
}

/// A whole trace, in memory, that must have times for what is done with it.
pub(crate) fn whole(path: &Path, what: &str) -> anyhow::Result<Vec<Request>> {
    let trace = source::open(path)?;
    require_times(&trace, what)?;
    Ok(trace.collect::<Result<_, _>>()?)
}

/// A trace and where the disk ends that it is of; a text trace is read twice for that.
fn with_end(path: &Path) -> anyhow::Result<(Trace, u64)> {
    let trace = source::open(path)?;
    match trace.about.end {
        Some(end) => Ok((trace, end)),
        None if path == Path::new(STDIN) => Err(TraceError::Stream.into()),
        None => Ok((source::open(path)?, Summary::of(trace)?.end)),
    }
}

fn require_times(trace: &Trace, what: &str) -> Result<(), TraceError> {
    match trace.about.timed {
        true => Ok(()),
        false => Err(TraceError::NoTimes {
            what: what.to_owned(),
        }),
    }
}

fn require_block(bytes: u64) -> Result<(), Refusal> {
    match bytes {
        0 => Err(Refusal(
            "--block is 0: give the size of a cache block".to_owned(),
        )),
        _ => Ok(()),
    }
}

/// A trace that says about once a second how far it was read.
struct Progress {
    trace: Trace,
    progress: bool,
    read: u64,
    reported_at: Instant,
}

impl Progress {
    fn new(trace: Trace, progress: bool) -> Progress {
        Progress {
            trace,
            progress,
            read: 0,
            reported_at: Instant::now(),
        }
    }
}

impl Progress {
    /// Says how far it is, where that is known with the share of all.
    fn tell(&self, next: Option<&Result<Request, TraceError>>) -> io::Result<()> {
        let about = &self.trace.about;
        let share = match (next, about.requests, about.lasts) {
            (_, Some(all), _) => Some(self.read as f64 / all as f64),
            (Some(Ok(request)), None, Some(end)) => Some(request.at as f64 / end as f64),
            _ => None,
        };
        match share {
            Some(share) => say(format_args!("read {} {share:.6}", self.read)),
            None => say(format_args!("read {}", self.read)),
        }
    }
}

impl Iterator for Progress {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.trace.next();
        self.read += 1;
        if self.progress && self.read % TELL_EVERY == 0 && self.reported_at.elapsed() > TELL_AFTER {
            self.reported_at = Instant::now();
            if let Err(source) = self.tell(next.as_ref()) {
                return Some(Err(TraceError::Io {
                    what: "tell the progress of",
                    path: PathBuf::from(STDIN),
                    source,
                }));
            }
        }
        next
    }
}

fn parse_share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0001..=1.0).contains(&share) => Ok(share),
        _ => Err("give a share from 0.0001 to 1, such as 0.01".to_owned()),
    }
}
