//! The command line of `hotset-engine salvage`.

use std::process::ExitCode;
use std::time::Instant;

use clap::Args;

use super::output::say;
use super::tier::CacheArgs;
use crate::tier::{SalvageOptions, Salvaged, Stretch, salvage_cache};

/// Stretches of the origin that are told as text; JSON has all.
const STRETCHES_SHOWN: usize = 20;

/// Done, but the origin may lack some of its newest data.
const INCOMPLETE: u8 = 5;

/// Which cache, and what to do with what is proven of it.
#[derive(Args)]
pub struct SalvageArgs {
    #[command(flatten)]
    files: CacheArgs,
    /// Write what is provably dirty to the origin, and sync it [default: only tell].
    #[arg(long)]
    write: bool,
    /// With --write: do it though no superblock says whose cache it is.
    #[arg(long, requires = "write")]
    unidentified: bool,
    /// Print JSON, with all stretches of the origin.
    #[arg(long)]
    json: bool,
}

/// Runs it, and prints what it found; the code says whether all is known.
///
/// # Errors
/// As [`salvage_cache`].
pub fn run_salvage(args: SalvageArgs) -> anyhow::Result<ExitCode> {
    let options = SalvageOptions {
        named_origin: args.files.named_origin(),
        layout: args.files.layout(),
        durability: args.files.durability(),
        witness: args.files.witness,
        origin: args.files.origin,
        flash: args.files.flash,
        flash_parts: args.files.flash_part,
        write: args.write,
        unidentified: args.unidentified,
    };
    let begun = Instant::now();
    let salvaged = salvage_cache(&options, |done, all| {
        let seconds = begun.elapsed().as_secs_f64();
        eprintln!("progress: {seconds:.1} s, {done} of {all} bytes written");
    })?;
    match args.json {
        true => say(serde_json::to_string(&salvaged)?)?,
        false => say(text_of(&salvaged).trim_end_matches('\n'))?,
    }
    Ok(match salvaged.is_complete() {
        true => ExitCode::SUCCESS,
        false => ExitCode::from(INCOMPLETE),
    })
}

fn text_of(salvaged: &Salvaged) -> String {
    let Salvaged {
        superblocks_lost,
        table_pages_damaged,
        records_damaged,
        dirty,
        clean,
        unknown,
        ..
    } = salvaged;
    let mut text = format!(
        "damaged: {superblocks_lost} of 2 superblocks, {table_pages_damaged} pages of tables, \
         {records_damaged} records of journals\n\
         dirty, proven: {} slots, {} bytes that the origin lacks\n\
         clean or free, proven: {} slots, {} bytes\n\
         unknown: {} slots, {} bytes: any of them may hold what the origin lacks\n",
        dirty.slots, dirty.bytes, clean.slots, clean.bytes, unknown.slots, unknown.bytes,
    );
    if salvaged.is_usable {
        text += "`hotset-engine tier` takes this cache up as it is, dirty blocks and all: start it instead\n";
    }
    if !salvaged.is_identified {
        text += "nothing on the flash says whose cache it is: no superblock is left\n";
    }
    text += &listed("last seen in unknown slots", &salvaged.last_seen);
    text += &listed(
        "the newest data may be lost anywhere in",
        &salvaged.may_be_lost,
    );
    text += &listed("lost, the flash cannot be read", &salvaged.unreadable);
    text += &match salvaged.written_bytes {
        Some(bytes) => format!("written to the origin: {bytes} bytes, synced\n"),
        None => "nothing was written: --write writes what is dirty to the origin\n".to_owned(),
    };
    text
}

fn listed(what: &str, stretches: &[Stretch]) -> String {
    if stretches.is_empty() {
        return String::new();
    }
    let mut text = format!("{what} (offset and bytes on the origin):\n");
    for Stretch { offset, bytes } in stretches.iter().take(STRETCHES_SHOWN) {
        text += &format!("  {offset} {bytes}\n");
    }
    if stretches.len() > STRETCHES_SHOWN {
        let more = stretches.len() - STRETCHES_SHOWN;
        text += &format!("  and {more} more: --json lists all\n");
    }
    text
}
