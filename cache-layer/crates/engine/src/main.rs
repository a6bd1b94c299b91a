//! The command line: thin; the work is in the library.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use cache_core::metadata::OriginId;
use hotset_engine::cli::output::{Output, READER_GONE, is_reader_gone, say};
use hotset_engine::cli::salvage::{SalvageArgs, run_salvage};
use hotset_engine::cli::tier::{TierArgs, parse_id};
use hotset_engine::cli::{parse_duration, parse_size};
use hotset_engine::direct_io::DIRECT_ALIGN;
use hotset_engine::flash_file::Part;
use hotset_engine::is_refusal;
use hotset_engine::tier::{RefillFile, format_flash, run_tier};
use hotset_engine::tools::ask::ask;
use hotset_engine::tools::compare::compare;
use hotset_engine::tools::copy::{CopyOptions, Run, copy, read_runs};
use hotset_engine::tools::record::record;
use hotset_engine::ublk::remove_device;

/// hotset's cache engine, and what else it runs on a server.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Mount a cached device and a volume: a flash in front of a slow origin.
    ///
    /// Prints `ready DIR/data SIZE DIR/volume SIZE` when it serves; ends on SIGTERM, SIGINT or an
    /// unmount, and then writes its counters as a line of JSON to stderr. The flash remembers what
    /// is cached, through crashes too.
    Tier(Box<TierArgs>),
    /// Have a flash say that its cache is empty, whatever was on it: dirty blocks are lost.
    ///
    /// `hotset-engine tier` begins a new cache only on such a flash; one with no metadata at all may have
    /// been erased, and is refused.
    Format(FormatArgs),
    /// Remove the ublk device of a disk, whether its engine runs or not; nothing where it has none.
    ///
    /// Requests that wait for an engine, and those of whoever has the device open, get errors.
    RemoveDevice(RemoveDeviceArgs),
    /// Write what a damaged cache holds and its origin lacks to the origin, as far as it is proven.
    ///
    /// Takes the options that its `hotset-engine tier` had. The cache is only read. Without --write this
    /// tells what is proven, and where the newest data may be lost. With it, it can be interrupted
    /// and repeated: it writes the same again. Exit codes: 0 nothing is unknown, 2 refused, 4 failed, 5
    /// something is unknown or cannot be read.
    Salvage(Box<SalvageArgs>),
    /// Copy one device onto another sequentially, reads and writes overlapping.
    ///
    /// Prints `copied BYTES` about once a second and a line of JSON at the end.
    Copy(CopyArgs),
    /// Compare parts of two devices, and print how many differ as a line of JSON.
    Compare(CompareArgs),
    /// Ask a running tier or modelled device, and print its reply as lines of JSON.
    Ask(AskArgs),
    /// Record what is asked of a block device, as root; prints a line of JSON.
    Record(RecordArgs),
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
    /// Note first which blocks the cache holds, for the `--refill` of its `hotset-engine tier` [default:
    /// they are forgotten].
    #[arg(long, value_name = "FILE", requires = "origin_id")]
    refill: Option<PathBuf>,
    /// With --refill: the `--origin-id` of that tier; what belongs to another origin is not noted.
    #[arg(long, value_name = "ID", value_parser = parse_id, requires = "refill")]
    origin_id: Option<OriginId>,
}

#[derive(Args)]
struct RemoveDeviceArgs {
    /// The `--origin-id` of its `hotset-engine tier`.
    #[arg(long, value_name = "ID", value_parser = parse_id)]
    origin_id: OriginId,
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
struct RecordArgs {
    /// A disk, partition or volume.
    device: PathBuf,
    /// How long.
    #[arg(long, default_value = "60", value_parser = parse_duration)]
    seconds: f64,
    /// KiB of each core for events that wait to be read.
    #[arg(long, value_name = "KIB", default_value = "8192", value_parser = clap::value_parser!(u32).range(64..))]
    buffer_kib: u32,
    /// The trace to write, not on the device itself.
    #[arg(long, value_name = "FILE")]
    to: PathBuf,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Salvage(args) => {
            return run_salvage(*args).unwrap_or_else(|error| failed(&error, 4));
        }
        Command::Tier(args) => {
            let check = args.check;
            run_tier(&args.options(), check)
        }
        Command::Format(args) => run_format(args),
        Command::RemoveDevice(args) => remove_device(&args.origin_id),
        Command::Copy(args) => run_copy(args),
        Command::Compare(args) => run_compare(&args),
        Command::Ask(args) => ask(&args.socket, &args.question, &mut Output::new()),
        Command::Record(args) => run_record(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error, 1),
    }
}

/// Says why, and gives the code: this one, unless it was refused.
fn failed(error: &anyhow::Error, code: u8) -> ExitCode {
    if is_reader_gone(error) {
        return ExitCode::from(READER_GONE);
    }
    eprintln!("hotset-engine: {error:#}");
    ExitCode::from(if is_refusal(error) { 2 } else { code })
}

fn run_format(args: FormatArgs) -> anyhow::Result<()> {
    let refill = args.refill.zip(args.origin_id);
    let refill = refill.map(|(path, origin_id)| RefillFile { path, origin_id });
    let noted = format_flash(&args.flash, &args.flash_part, refill.as_ref())?;
    if let Some(noted) = noted {
        say(noted)?;
    }
    Ok(())
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
    // A copy goes on to its end, whoever follows it.
    let copied = copy(&options, |bytes| drop(say(format_args!("copied {bytes}"))))?;
    say(serde_json::to_string(&copied)?)?;
    Ok(())
}

fn run_compare(args: &CompareArgs) -> anyhow::Result<()> {
    let compared = compare(&args.one, &args.other, &read_runs(&args.runs)?)?;
    say(serde_json::to_string(&compared)?)?;
    Ok(())
}

fn run_record(args: &RecordArgs) -> anyhow::Result<()> {
    let recorded = record(&args.device, &args.to, args.seconds, args.buffer_kib)?;
    say(serde_json::to_string(&recorded)?)?;
    Ok(())
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
}
