//! The command line: thin; the work is in the library.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use cli::expect::{ExpectArgs, run_expect};
use cli::modelled_tier::{ModelledTierArgs, run_modelled_tier};
use cli::whatif::{MrcArgs, SimulateArgs, TraceCommand, run_mrc, run_simulate, run_trace, whole};
use flashdev::serve::{ServeOptions, serve};
use flashdev::tools::relay::{Route, relay};
use flashdev::tools::replay::replay;
use hotset_engine::backing::Durability;
use hotset_engine::cli::output::{READER_GONE, is_reader_gone, say};
use hotset_engine::cli::parse_size;
use hotset_engine::{Refusal, is_refusal};
use storage_model::spec::{LIBRARY, ModelError, ModelSpec, library};
use whatif::hit_ratio::SimulationError;

mod cli;

/// Files that behave like modelled storage devices, with real timing, and what a cache would do.
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
    /// Mount a cached device and a volume: hotset's engine over modelled devices.
    ///
    /// As `hotset-engine tier`, which serves real ones.
    Tier(Box<ModelledTierArgs>),
    /// Print what a model promises: random IOPS by queue depth, sequential rates.
    Expect(ExpectArgs),
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
struct ServeArgs {
    /// JSON file, or the name of a model in the library (see `flashdev models`).
    #[arg(long, value_name = "FILE|NAME")]
    model: String,
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
    /// Listen here for `hotset disk fail`, `disk replace` and `disk status`.
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// What a small request's way here and back takes, measured, microseconds: the device is so
    /// much faster [default: 110 of flash, which is through a loop device; 0 of disks].
    #[arg(long, value_name = "MICROSECONDS", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    path_us: Option<u32>,
    /// End when the thread that started this process ends.
    #[arg(long)]
    die_with_parent: bool,
}

#[derive(Args)]
struct ReplayArgs {
    /// The block device or file; whatever the trace writes is overwritten without meaning.
    #[arg(long, value_name = "DEVICE")]
    overwrite: PathBuf,
    /// The trace.
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    /// Write down when each request was made, as a trace; the clock begins with the replay.
    #[arg(long, value_name = "FILE")]
    made: Option<PathBuf>,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Serve(args) => run_serve(args),
        Command::Tier(args) => run_modelled_tier(*args),
        Command::Expect(args) => run_expect(&args),
        Command::Simulate(args) => run_simulate(&args),
        Command::Mrc(args) => run_mrc(&args),
        Command::Trace(command) => run_trace(&command),
        Command::Replay(args) => run_replay(&args),
        Command::Relay { routes } => relay(&routes),
        Command::Models { name } => run_models(name.as_deref()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_reader_gone(&error) => ExitCode::from(READER_GONE),
        Err(error) => {
            eprintln!("flashdev: {error:#}");
            ExitCode::from(if is_for_the_user(&error) { 2 } else { 1 })
        }
    }
}

/// Whether what was asked for cannot be, rather than has failed.
fn is_for_the_user(error: &anyhow::Error) -> bool {
    let simulation = error.downcast_ref().is_some_and(|error| match error {
        SimulationError::Trace(error) => error.is_refusal(),
        SimulationError::Setup(_) => true,
    });
    simulation || error.is::<ModelError>() || is_refusal(error)
}

fn run_serve(args: ServeArgs) -> anyhow::Result<()> {
    serve(ServeOptions {
        spec: ModelSpec::load(&args.model)?,
        backing: args.backing,
        mount: args.mount,
        name: args.name,
        volume_bytes: args.volume,
        trace: args.trace,
        control: args.control,
        durability: Durability::of(args.volatile),
        path_ns: args.path_us.map(|us| u64::from(us) * 1000),
        die_with_parent: args.die_with_parent,
    })
}

fn run_replay(args: &ReplayArgs) -> anyhow::Result<()> {
    let requests = whole(&args.trace, "a replay")?;
    let made = args.made.as_deref();
    let replayed = replay(&args.overwrite, &requests, made)?;
    Ok(say(serde_json::to_string(&replayed)?)?)
}

fn run_models(name: Option<&str>) -> anyhow::Result<()> {
    let Some(name) = name else {
        for (name, _) in LIBRARY {
            say(name)?;
        }
        return Ok(());
    };
    match library::json(name) {
        Some(json) => Ok(say(json.trim_end_matches('\n'))?),
        None => Err(Refusal(format!(
            "no model `{name}` in the library: `flashdev models` lists them"
        ))
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
