//! Where a trace comes from: a file, or a built-in load that is made while it is read.

use std::path::Path;

use clap::{Args, Parser};
use hotset_engine::Refusal;
use hotset_engine::cli::{parse_duration, parse_size};
use whatif::trace::{self, Trace};
use whatif::workload::tpcc::{Load, WAREHOUSES_MOST};
use whatif::workload::tpch::Scans;

/// TPC-C's.
#[derive(Args)]
pub(crate) struct TpccLoad {
    /// The scale: some 100 MB each.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(WAREHOUSES_MOST)))]
    warehouses: u32,
    /// The database's own cache, with K, M, G.
    #[arg(long, default_value = "1G", value_parser = parse_size)]
    buffer: u64,
    /// Transactions of all kinds in a minute.
    #[arg(long, default_value = "60000", value_parser = parse_rate_per_minute)]
    tpm: f64,
    /// How long.
    #[arg(long, default_value = "900", value_parser = parse_duration)]
    seconds: f64,
    /// Seconds from one checkpoint to the next.
    #[arg(long, default_value = "300", value_parser = parse_duration)]
    checkpoint: f64,
    /// Of the random numbers.
    #[arg(long, default_value = "1")]
    seed: u64,
}

impl TpccLoad {
    /// The requests, as they are drawn.
    pub(crate) fn trace(&self) -> Trace {
        let load = Load {
            warehouses: self.warehouses,
            buffer_bytes: self.buffer,
            per_second: self.tpm / 60.0,
            seconds: self.seconds,
            checkpoint_s: self.checkpoint,
            seed: self.seed,
        };
        load.trace()
    }
}

/// TPC-H's.
#[derive(Args)]
pub(crate) struct TpchLoad {
    /// The scale factor: some 1.3 GB each.
    #[arg(long, value_parser = parse_scale_factor)]
    scale: f64,
    /// The database's own cache, with K, M, G.
    #[arg(long, default_value = "1G", value_parser = parse_size)]
    buffer: u64,
    /// How fast it reads, bytes a second, with K, M, G. By default as `hotset whatif trace tpch`.
    #[arg(long, default_value = "200000000", value_parser = parse_size)]
    rate: u64,
    /// How often all queries run.
    #[arg(long, default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
}

impl TpchLoad {
    /// The requests, as they are made.
    pub(crate) fn trace(&self) -> Trace {
        let scans = Scans {
            scale: self.scale,
            buffer_bytes: self.buffer,
            bytes_per_s: self.rate.max(1),
            rounds: self.rounds,
        };
        scans.trace()
    }
}

/// Opens a trace: a file, `-` for standard input, or `tpcc:` or `tpch:` with the options of
/// `flashdev trace tpcc`, such as `tpcc:warehouses=5000,buffer=24G`, whose requests are made anew
/// each time that it is opened.
///
/// # Errors
/// A `TraceError`, or a [`Refusal`]: the load is not written like that.
pub(crate) fn open(path: &Path) -> anyhow::Result<Trace> {
    let text = path.to_string_lossy();
    Ok(match text.split_once(':') {
        Some(("tpcc", words)) => parsed::<TpccLoad>(&text, words)?.trace(),
        Some(("tpch", words)) => parsed::<TpchLoad>(&text, words)?.trace(),
        _ => trace::open(path)?,
    })
}

#[derive(Parser)]
#[command(no_binary_name = true)]
struct Words<L: Args> {
    #[command(flatten)]
    load: L,
}

fn parsed<L: Args>(text: &str, words: &str) -> Result<L, Refusal> {
    let each = words.split(',').map(|word| format!("--{}", word.trim()));
    Words::<L>::try_parse_from(each)
        .map(|parsed| parsed.load)
        .map_err(|error| {
            let message = error.to_string();
            let lines: Vec<&str> = message
                .lines()
                .map(str::trim)
                .take_while(|line| !line.is_empty())
                .collect();
            let reason = lines.join(" ").replace("error: ", "").replace("--", "");
            Refusal(format!("trace `{text}`: {reason}"))
        })
}

fn parse_rate_per_minute(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(tpm) if (1.0..=1e9).contains(&tpm) => Ok(tpm),
        _ => Err("give 1 to 10^9 transactions a minute".to_owned()),
    }
}

fn parse_scale_factor(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(scale) if (0.01..=100_000.0).contains(&scale) => Ok(scale),
        _ => Err("give a scale factor from 0.01 to 100000".to_owned()),
    }
}
