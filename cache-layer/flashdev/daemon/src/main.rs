//! The command line: thin; the work is in the library.

use std::ffi::OsString;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use cache_core::layout::LayoutError;
use cache_core::metadata::{MetadataError, OriginId};
use cli::expect::{ExpectArgs, run_expect};
use cli::salvage::{SalvageArgs, run_salvage};
use cli::tier_args::{TierArgs, parse_id};
use cli::whatif::{MrcArgs, SimulateArgs, TraceCommand, run_mrc, run_simulate, run_trace, whole};
use flashdev::Refusal;
use flashdev::backing::Durability;
use flashdev::direct_io::DIRECT_ALIGN;
use flashdev::flash_file::Part;
use flashdev::serve::{ServeOptions, serve};
use flashdev::tier::{RefillFile, check_tier, format_flash, serve_tier};
use flashdev::tools::ask::ask;
use flashdev::tools::compare::compare;
use flashdev::tools::copy::{CopyOptions, Run, copy, read_runs};
use flashdev::tools::cpu;
use flashdev::tools::relay::{Route, relay};
use flashdev::tools::replay::replay;
use storage_model::spec::{LIBRARY, ModelError, ModelSpec, library};
use virtual_time::TimeScale;
use whatif::hit_ratio::SimulationError;
use whatif::trace::TraceError;

mod cli;

/// A file that behaves like a modelled slow storage device, with real timing.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Mount a directory with one file that is as slow as the model says.
    ///
    /// Prints `ready FILE SIZE` when it serves; ends on SIGTERM, SIGINT or an unmount, and then
    /// writes its counters as a line of JSON to stderr.
    Serve(ServeArgs),
    /// Mount a cached device and a volume: a flash file in front of a modelled slow origin.
    ///
    /// Prints `ready DIR/data SIZE DIR/volume SIZE` when it serves; ends on SIGTERM, SIGINT or an
    /// unmount, and then writes its counters as a line of JSON to stderr. The flash remembers what
    /// is cached, through crashes too.
    Tier(Box<TierArgs>),
    /// Have a flash say that its cache is empty, whatever was on it: dirty blocks are lost.
    ///
    /// `flashdev tier` begins a new cache only on such a flash; one with no metadata at all may have
    /// been erased, and is refused.
    Format(FormatArgs),
    /// Write what a damaged cache holds and its origin lacks to the origin, as far as it is proven.
    ///
    /// Takes the options that its `flashdev tier` had. The cache is only read. Without --write this
    /// tells what is proven, and where the newest data may be lost. With it, it can be interrupted
    /// and repeated: it writes the same again. Exit codes: 0 nothing is unknown, 2 refused, 4 failed, 5
    /// something is unknown or cannot be read.
    Salvage(Box<SalvageArgs>),
    /// Print what a model promises: random IOPS by queue depth, sequential rates.
    Expect(ExpectArgs),
    /// Measure this machine's speed at a database's kind of work.
    Cpu(CpuArgs),
    /// Copy one device onto another sequentially, reads and writes overlapping.
    ///
    /// Prints `copied BYTES` about once a second and a line of JSON at the end.
    Copy(CopyArgs),
    /// Compare parts of two devices, and print how many differ as a line of JSON.
    Compare(CompareArgs),
    /// Ask a running tier, and print its reply as lines of JSON.
    Ask(AskArgs),
    /// Count the hits and misses of a cache policy on a trace of requests.
    ///
    /// All work that the policy asks for is done at once; with models of both devices it takes
    /// their time, and response times are told.
    Simulate(SimulateArgs),
    /// Print what LRU caches of all sizes hit of a trace, as JSON.
    Mrc(MrcArgs),
    /// Make and look at traces.
    #[command(subcommand)]
    Trace(TraceCommand),
    /// Make the requests of a trace on a device, each at its time; the device's data is lost.
    ///
    /// Prints a line of JSON: how many, how long, and how late the device let them become.
    Replay(ReplayArgs),
    /// Carry TCP connections into the network namespace that this process was started in.
    Relay {
        /// A listening socket, handed down as an open descriptor, and where it leads.
        #[arg(required = true, value_name = "FD=ADDRESS:PORT")]
        routes: Vec<Route>,
    },
    /// List the models of the library, or print one as JSON.
    Models {
        /// The model to print.
        name: Option<String>,
    },
}

#[derive(Args)]
struct ModelArgs {
    /// JSON file, or the name of a model in the library (see `flashdev models`).
    #[arg(long, value_name = "FILE|NAME")]
    model: String,
    /// Real seconds per second of the device: 5 makes it five times slower.
    #[arg(long, default_value = "1", value_parser = parse_scale)]
    time_scale: TimeScale,
}

#[derive(Args)]
struct ServeArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// The file that holds the data; its size is the device's.
    #[arg(long, value_name = "FILE")]
    backing: PathBuf,
    /// An empty directory to mount on.
    #[arg(long, value_name = "DIR")]
    mount: PathBuf,
    /// Name of the file in the mounted directory.
    #[arg(long, default_value = "disk")]
    name: OsString,
    /// Make the last so many bytes a file of their own, `volume`; of flash models.
    #[arg(long, value_name = "BYTES", value_parser = parse_size, default_value = "0", conflicts_with = "trace")]
    volume: u64,
    /// A flush does not sync the backing file: data survives this process, not the computer.
    #[arg(long)]
    volatile: bool,
    /// Write down every read and write, one a line: `SECONDS R|W OFFSET BYTES`.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Listen here for `flashdev ask`: members of an array fail and are replaced by it.
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// What a small request's way here and back takes, measured, microseconds: the device is so
    /// much faster [default: 110 of flash, which is through a loop device; 0 of disks].
    #[arg(long, value_name = "MICROSECONDS", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    path_us: Option<u32>,
    /// Let other users use the file, as far as its permissions go (always so for root).
    #[arg(long)]
    allow_other: bool,
    /// End when the thread that started this process ends.
    #[arg(long)]
    die_with_parent: bool,
}

#[derive(Args)]
struct FormatArgs {
    /// The flash, a file or block device.
    #[arg(long, value_name = "FILE|DEVICE")]
    flash: PathBuf,
    /// A part of it in bytes, START:SIZE; those that the tier has, or just its METADATA's [default:
    /// all of it].
    #[arg(long, value_name = "PART")]
    flash_part: Vec<Part>,
    /// Note first which blocks the cache holds, for the `--refill` of its `flashdev tier` [default:
    /// they are forgotten].
    #[arg(long, value_name = "FILE", requires = "origin_id")]
    refill: Option<PathBuf>,
    /// With --refill: the `--origin-id` of that tier; what belongs to another origin is not noted.
    #[arg(long, value_name = "ID", value_parser = parse_id, requires = "refill")]
    origin_id: Option<OriginId>,
}

#[derive(Args)]
struct CpuArgs {
    /// How long to run.
    #[arg(long, default_value = "2", value_parser = parse_seconds)]
    seconds: Duration,
    /// Threads [default: one per core].
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=4096))]
    threads: Option<u16>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct CopyArgs {
    /// The block device or file to read.
    #[arg(long, value_name = "DEVICE")]
    from: PathBuf,
    /// The device or file to write [default: only read].
    #[arg(long, value_name = "DEVICE")]
    to: Option<PathBuf>,
    /// How much, bytes or with K, M, G, T (powers of 1024) [default: the whole source].
    #[arg(long, value_parser = parse_size)]
    bytes: Option<u64>,
    /// File with the parts to copy, one `OFFSET BYTES [TARGET_OFFSET]` a line; without a target's
    /// offset a part goes behind the one before it.
    #[arg(long, value_name = "FILE", conflicts_with = "bytes")]
    runs: Option<PathBuf>,
    /// At most so many bytes a second, with K, M or G (powers of 1024) if you like.
    #[arg(long, value_name = "BYTES", value_parser = parse_rate)]
    rate: Option<NonZeroU64>,
    /// No read larger than so many bytes, with K or M (powers of 1024) [default: 4M].
    #[arg(long, value_name = "BYTES", value_parser = parse_piece)]
    piece: Option<NonZeroU64>,
    /// Claim both devices, so that nobody can mount them or build on them meanwhile.
    #[arg(long)]
    exclusive: bool,
}

#[derive(Args)]
struct CompareArgs {
    /// A block device or file.
    one: PathBuf,
    /// Another one.
    other: PathBuf,
    /// File with the parts, one `OFFSET BYTES [OFFSET_IN_THE_OTHER]` a line.
    #[arg(long, value_name = "FILE")]
    runs: PathBuf,
}

#[derive(Args)]
struct AskArgs {
    /// The tier's control socket.
    socket: PathBuf,
    /// One JSON object, such as '{"counters": {}}'.
    question: String,
}

#[derive(Args)]
struct ReplayArgs {
    /// The block device or file; whatever the trace writes is overwritten without meaning.
    #[arg(long, value_name = "DEVICE")]
    overwrite: PathBuf,
    /// The trace.
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    /// Real seconds per second of the trace: 2 takes twice as long.
    #[arg(long, default_value = "1", value_parser = parse_scale)]
    time_scale: TimeScale,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Salvage(args) => {
            return run_salvage(*args).unwrap_or_else(|error| failed(&error, 4));
        }
        Command::Serve(args) => run_serve(args),
        Command::Tier(args) => run_tier(*args),
        Command::Format(args) => run_format(args),
        Command::Expect(args) => run_expect(&args),
        Command::Cpu(args) => run_cpu(&args),
        Command::Copy(args) => run_copy(args),
        Command::Compare(args) => run_compare(&args),
        Command::Ask(args) => ask(&args.socket, &args.question, &mut std::io::stdout().lock()),
        Command::Simulate(args) => run_simulate(&args),
        Command::Mrc(args) => run_mrc(&args),
        Command::Trace(command) => run_trace(&command),
        Command::Replay(args) => run_replay(&args),
        Command::Relay { routes } => relay(&routes),
        Command::Models { name } => run_models(name.as_deref()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error, 1),
    }
}

/// Says why, and gives the code: this one, unless it was refused.
fn failed(error: &anyhow::Error, code: u8) -> ExitCode {
    eprintln!("flashdev: {error:#}");
    ExitCode::from(if is_refusal(error) { 2 } else { code })
}

/// Whether what was asked for cannot be, rather than has failed.
fn is_refusal(error: &anyhow::Error) -> bool {
    let metadata = error.downcast_ref().is_some_and(MetadataError::is_refusal);
    let trace = error.downcast_ref().is_some_and(TraceError::is_refusal);
    let simulation = error.downcast_ref().is_some_and(|error| match error {
        SimulationError::Trace(error) => error.is_refusal(),
        SimulationError::Setup(_) => true,
    });
    metadata
        || trace
        || simulation
        || error.is::<ModelError>()
        || error.is::<Refusal>()
        || error.is::<LayoutError>()
}

fn run_serve(args: ServeArgs) -> anyhow::Result<()> {
    serve(ServeOptions {
        spec: ModelSpec::load(&args.model.model)?,
        backing: args.backing,
        mount: args.mount,
        name: args.name,
        volume_bytes: args.volume,
        trace: args.trace,
        control: args.control,
        durability: durability(args.volatile),
        scale: args.model.time_scale,
        path_ns: args.path_us.map(|us| u64::from(us) * 1000),
        allow_other: args.allow_other,
        die_with_parent: args.die_with_parent,
    })
}

fn run_tier(args: TierArgs) -> anyhow::Result<()> {
    match args.check {
        true => check_tier(&args.options()?),
        false => serve_tier(&args.options()?),
    }
}

fn run_format(args: FormatArgs) -> anyhow::Result<()> {
    let refill = args.refill.zip(args.origin_id);
    let refill = refill.map(|(path, origin_id)| RefillFile { path, origin_id });
    let noted = format_flash(&args.flash, &args.flash_part, refill.as_ref())?;
    if let Some(noted) = noted {
        println!("{noted}");
    }
    Ok(())
}

fn durability(volatile: bool) -> Durability {
    match volatile {
        true => Durability::Volatile,
        false => Durability::Synced,
    }
}

fn run_copy(args: CopyArgs) -> anyhow::Result<()> {
    let from_start = args.bytes.map(|bytes| {
        vec![Run {
            offset: 0,
            bytes,
            to: None,
        }]
    });
    let options = CopyOptions {
        from: args.from,
        to: args.to,
        runs: match args.runs {
            Some(list) => Some(read_runs(&list)?),
            None => from_start,
        },
        bytes_per_s: args.rate,
        piece_bytes: args.piece,
        exclusive: args.exclusive,
    };
    let copied = copy(&options, |bytes| println!("copied {bytes}"))?;
    println!("{}", serde_json::to_string(&copied)?);
    Ok(())
}

fn run_compare(args: &CompareArgs) -> anyhow::Result<()> {
    let compared = compare(&args.one, &args.other, &read_runs(&args.runs)?)?;
    println!("{}", serde_json::to_string(&compared)?);
    Ok(())
}

fn run_cpu(args: &CpuArgs) -> anyhow::Result<()> {
    let threads = match args.threads {
        Some(threads) => usize::from(threads),
        None => std::thread::available_parallelism()?.get(),
    };
    let result = cpu::run(threads, args.seconds);
    if args.json {
        println!("{}", serde_json::to_string(&result)?);
    } else {
        println!("ops_per_second {:.0}", result.ops_per_second);
    }
    Ok(())
}

fn run_replay(args: &ReplayArgs) -> anyhow::Result<()> {
    let requests = whole(&args.trace, "a replay")?;
    let replayed = replay(&args.overwrite, &requests, args.time_scale)?;
    println!("{}", serde_json::to_string(&replayed)?);
    Ok(())
}

fn run_models(name: Option<&str>) -> anyhow::Result<()> {
    let Some(name) = name else {
        for (name, _) in LIBRARY {
            println!("{name}");
        }
        return Ok(());
    };
    match library::json(name) {
        Some(json) => {
            print!("{json}");
            Ok(())
        }
        None => Err(Refusal(format!(
            "no model `{name}` in the library: `flashdev models` lists them"
        ))
        .into()),
    }
}

fn parse_scale(text: &str) -> Result<TimeScale, String> {
    let factor = text
        .parse()
        .map_err(|_| "give a number such as 1 or 5".to_owned())?;
    TimeScale::new(factor)
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => Err("give 0.01 to 3600 seconds".to_owned()),
    }
}

/// Bytes, optionally with a suffix for a power of 1024.
fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.strip_suffix("iB").unwrap_or(text);
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 10),
        Some(b'M') => (&text[..text.len() - 1], 20),
        Some(b'G') => (&text[..text.len() - 1], 30),
        Some(b'T') => (&text[..text.len() - 1], 40),
        _ => (text, 0),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| "give bytes, or a number with K, M, G or T, such as 2G".to_owned())
}

fn parse_piece(text: &str) -> Result<NonZeroU64, String> {
    NonZeroU64::new(parse_size(text)?)
        .filter(|bytes| bytes.get() % DIRECT_ALIGN as u64 == 0)
        .ok_or_else(|| format!("a piece is a multiple of {DIRECT_ALIGN} bytes"))
}

fn parse_rate(text: &str) -> Result<NonZeroU64, String> {
    NonZeroU64::new(parse_size(text)?)
        .ok_or_else(|| "a rate is at least 1 byte a second".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_have_suffixes() {
        assert_eq!(parse_size("2G"), Ok(2 << 30));
        assert_eq!(parse_size("1000"), Ok(1000));
        for bad in ["", "G", "2GB", "-1", "99999999T"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }
}
