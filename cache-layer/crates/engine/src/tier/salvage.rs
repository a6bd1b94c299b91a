//! Getting back what the origin lacks of a cache that is refused because its metadata is damaged.
//!
//! The cache is only read. What is written to the origin is what a flush would write, so it can be
//! cut short and done again.

use std::path::PathBuf;

use anyhow::Context;
use cache_core::layout::{Layout, PAGE_BYTES};
use cache_core::metadata::{self, Salvage};
use cache_core::policy::Mapping;
use parking_lot::Mutex;
use serde::Serialize;

use super::files::StoreFiles;
use super::origin::{NamedOrigin, OriginFile};
use super::run::{refused, session};
use crate::Refusal;
use crate::backing::{Backing, Durability};
use crate::flash_file::witness::Witness;
use crate::flash_file::{FlashFile, Part};
use crate::tools::copy::{Piece, Run, copy_runs};

/// Version of what is told as JSON.
const SCHEMA_VERSION: u32 = 1;

/// A cache, and what to do with it.
#[derive(Debug)]
pub struct SalvageOptions {
    /// The file or block device that holds the origin's data.
    pub origin: PathBuf,
    /// How the origin is told from others, if not by an attribute of its own.
    pub named_origin: Option<NamedOrigin>,
    /// The flash: a file or block device.
    pub flash: PathBuf,
    /// The parts of it that are the tier's; none means all of it.
    pub flash_parts: Vec<Part>,
    /// How the flash is cut up.
    pub layout: Layout,
    /// What a flush did on the host.
    pub durability: Durability,
    /// What the tier's last run put down for the next.
    pub witness: Option<PathBuf>,
    /// Whether what is proven is written to the origin.
    pub write: bool,
    /// Whether that is done without a superblock that says whose cache it is.
    pub unidentified: bool,
}

/// Slots, and what they hold, bytes.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Count {
    /// How many.
    pub slots: u64,
    /// Of dirty ones what the origin lacks, of others their size.
    pub bytes: u64,
}

/// A stretch of the origin, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Stretch {
    /// Where it begins.
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
}

/// What was found and done.
#[derive(Debug, Serialize)]
pub struct Salvaged {
    /// Of this structure.
    pub schema_version: u32,
    /// Superblocks that cannot be read, of two.
    pub superblocks_lost: usize,
    /// Pages of the tables of slots that are damaged.
    pub table_pages_damaged: usize,
    /// Records of the journals that are damaged.
    pub records_damaged: usize,
    /// A tier takes the cache up as it is: nothing has to be salvaged.
    pub is_usable: bool,
    /// A superblock says that the cache is this origin's.
    pub is_identified: bool,
    /// Slots that hold what the origin lacks.
    pub dirty: Count,
    /// Slots that hold nothing that the origin lacks.
    pub clean: Count,
    /// Slots that may hold what the origin lacks.
    pub unknown: Count,
    /// What was last seen in those: most likely to be lost.
    pub last_seen: Vec<Stretch>,
    /// Where the origin may lack its newest data: whatever is not proven to be elsewhere, as soon as
    /// one slot is unknown.
    pub may_be_lost: Vec<Stretch>,
    /// What was written to the origin, and synced, bytes; none if that was not asked for.
    pub written_bytes: Option<u64>,
    /// What the origin lacks still, as the flash cannot be read there.
    pub unreadable: Vec<Stretch>,
}

impl Salvaged {
    /// Whether the origin has, or can be given, all of its newest data.
    pub fn is_complete(&self) -> bool {
        self.unknown.slots == 0 && self.unreadable.is_empty()
    }
}

/// Tells what can be proven of a cache, and writes what is proven dirty to the origin if wanted;
/// `progress` gets the bytes written so far, and of how many, about once a second.
///
/// # Errors
/// A [`Refusal`] or [`metadata::MetadataError`] if the cache or origin is in use, or they do not
/// belong together, or the cache was given up; else what failed on the origin.
pub fn salvage_cache(
    options: &SalvageOptions,
    mut progress: impl FnMut(u64, u64),
) -> anyhow::Result<Salvaged> {
    let file = Backing::open(&options.origin, Durability::Synced).map_err(refused)?;
    let flash = FlashFile::open_read_only(&options.flash, &options.flash_parts).map_err(refused)?;
    let origin = OriginFile::look_at(&options.origin, options.named_origin.as_ref())?;
    origin.check_not_given_up()?;
    let witness = Witness::find(options.witness.as_deref(), flash.file(), file.file());
    let store = StoreFiles {
        flash: flash.into(),
        origin: &origin,
    };
    let session = session(options.layout, options.durability, &origin, &witness)?;
    let salvage = metadata::salvage(&store, &session)?;
    let runs = runs(&options.layout, &salvage);
    let mut report = summarize(&options.layout, &salvage, &runs, origin.bytes);
    report.is_usable = metadata::check(&store, &session).is_ok();
    if options.write {
        if !salvage.is_identified && !options.unidentified {
            return Err(unidentified().into());
        }
        let all = report.dirty.bytes;
        let (written, unreadable) =
            write_back(&store.flash, &file, &runs, |done| progress(done, all)).context(
                "what is on the origin now is the cache's own; salvage again once it is mended",
            )?;
        report.written_bytes = Some(written);
        report.unreadable = unreadable;
    }
    Ok(report)
}

fn unidentified() -> Refusal {
    Refusal(
        "no superblock is left to say whose cache it is, and another origin's would destroy this \
         one: give --unidentified if you know that the cache is this origin's, that the sizes given \
         are the cache's, and that the origin has neither grown nor been written to past its cache; \
         or leave the origin as it is, which loses what is dirty"
            .to_owned(),
    )
}

/// Where what the origin lacks lies, and where it belongs, in the origin's order.
pub(super) fn runs(layout: &Layout, salvage: &Salvage) -> Vec<Run> {
    let sub_blocks = layout.sub_blocks();
    let mut dirty: Vec<&Mapping> = salvage.dirty.iter().collect();
    dirty.sort_unstable_by_key(|mapping| mapping.block);
    let of_block = |mapping: &&Mapping| {
        let slot = layout.slot_offset(mapping.slot);
        let block = u64::from(mapping.block) * layout.block_bytes;
        // The last block may be cut short.
        let len = layout.block_bytes.min(salvage.origin_bytes - block);
        let present = sub_blocks.all() & !mapping.missing;
        let within = sub_blocks.runs(present).map(move |(start, end)| Run {
            offset: slot + start,
            bytes: end.min(len).saturating_sub(start),
            to: Some(block + start),
        });
        within.filter(|run| run.bytes > 0).collect::<Vec<_>>()
    };
    dirty.iter().flat_map(of_block).collect()
}

pub(super) fn summarize(
    layout: &Layout,
    salvage: &Salvage,
    runs: &[Run],
    origin_bytes: u64,
) -> Salvaged {
    let (dirty, unknown) = (salvage.dirty.len() as u64, salvage.unknown.len() as u64);
    let of_size = |slots| Count {
        slots,
        bytes: slots * layout.block_bytes,
    };
    let mut proven: Vec<_> = salvage.dirty.iter().map(|mapping| mapping.block).collect();
    proven.sort_unstable();
    let stretch = |blocks: std::ops::Range<u64>| {
        let offset = blocks.start * layout.block_bytes;
        let bytes = origin_bytes.min(blocks.end * layout.block_bytes) - offset;
        Stretch { offset, bytes }
    };
    let blocks = origin_bytes.div_ceil(layout.block_bytes);
    Salvaged {
        schema_version: SCHEMA_VERSION,
        superblocks_lost: salvage.superblocks_lost,
        table_pages_damaged: salvage.table_pages_damaged,
        records_damaged: salvage.records_damaged,
        is_usable: false,
        is_identified: salvage.is_identified,
        dirty: Count {
            slots: dirty,
            bytes: runs.iter().map(|run| run.bytes).sum(),
        },
        clean: of_size(u64::from(layout.slots()) - dirty - unknown),
        unknown: of_size(unknown),
        last_seen: joined(&salvage.last_seen)
            .into_iter()
            .map(stretch)
            .collect(),
        may_be_lost: match unknown {
            0 => Vec::new(),
            _ => others(&joined(&proven), blocks).map(stretch).collect(),
        },
        written_bytes: None,
        unreadable: Vec::new(),
    }
}

/// Blocks in order, those that follow on one another together.
fn joined(blocks: &[u32]) -> Vec<std::ops::Range<u64>> {
    let mut ranges: Vec<std::ops::Range<u64>> = Vec::new();
    for block in blocks.iter().map(|&block| u64::from(block)) {
        match ranges.last_mut() {
            Some(last) if last.end == block => last.end += 1,
            _ => ranges.push(block..block + 1),
        }
    }
    ranges
}

/// What lies between and around the ranges.
fn others(ranges: &[std::ops::Range<u64>], end: u64) -> impl Iterator<Item = std::ops::Range<u64>> {
    let starts = [0].into_iter().chain(ranges.iter().map(|range| range.end));
    let ends = ranges.iter().map(|range| range.start).chain([end]);
    starts
        .zip(ends)
        .filter(|(start, end)| start < end)
        .map(|(start, end)| start..end)
}

/// Writes the runs to the origin and syncs it; how many bytes, and which it lacks still.
pub(super) fn write_back(
    flash: &FlashFile,
    origin: &Backing,
    runs: &[Run],
    progress: impl FnMut(u64),
) -> anyhow::Result<(u64, Vec<Stretch>)> {
    let unreadable = Mutex::new(Vec::new());
    let write = |bytes: &[u8], to| {
        let written = origin.write(to, bytes);
        written.with_context(|| format!("writing the origin at byte {to}"))
    };
    let copy_piece = |buffer: &mut [u8], piece: &Piece| {
        if flash.read_exact_at(buffer, piece.offset).is_ok() {
            return write(buffer, piece.to);
        }
        // As much of it as can be had.
        for (at, page) in (0..)
            .step_by(PAGE_BYTES as usize)
            .zip(buffer.chunks_mut(PAGE_BYTES as usize))
        {
            let (offset, bytes) = (piece.to + at, page.len() as u64);
            match flash.read_exact_at(page, piece.offset + at) {
                Ok(()) => write(page, offset)?,
                Err(_) => unreadable.lock().push(Stretch { offset, bytes }),
            }
        }
        Ok(())
    };
    let done = copy_runs(runs, copy_piece, progress)?;
    origin.sync_forced().context("syncing the origin")?;
    let mut unreadable = unreadable.into_inner();
    unreadable.sort_unstable_by_key(|stretch| stretch.offset);
    let lost: u64 = unreadable.iter().map(|stretch| stretch.bytes).sum();
    Ok((done - lost, unreadable))
}
