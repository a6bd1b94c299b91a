//! What a cache held that begins empty: fetched again from the origin, in the background.
//!
//! A cache is emptied where its bytes may be old, as the origin was changed while it was down. Which
//! blocks were worth keeping is known all the same. Their numbers, never their bytes, go to a file
//! before the flash is emptied; the tier that starts then fetches them into free slots, and removes
//! the file once it is through. A refill that a stop or a kill cut short is taken up by the next
//! start: what is cached by then is passed over.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use anyhow::{Context, ensure};
use cache_core::engine::{Health, JobProgress, JobResult, Warmed};
use cache_core::metadata::{self, OriginId};
use cache_core::policy::{Block, Geometry, HOTTEST};
use parking_lot::Mutex;
use roaring::RoaringBitmap;
use serde::{Deserialize, Serialize};

use super::Tier;
use super::files::boot_id;
use super::jobs::text_of;
use crate::flash_file::FlashFile;

/// Version of the file.
const VERSION: u32 = 1;

/// Blocks are fetched by bands of heat, the hottest first, each band in the origin's order.
const BANDS: usize = 4;

/// Longest first line of the file, bytes.
const HEAD_BYTES_MAX: u64 = 1 << 10;

/// Where the numbers are kept, and of which origin they are.
#[derive(Clone, Debug)]
pub struct RefillFile {
    /// The file.
    pub path: PathBuf,
    /// What tells the origin from others.
    pub origin_id: OriginId,
}

/// What is known of a cache that has been emptied.
#[derive(Debug)]
pub struct Noted {
    /// Blocks that the next tier fetches again: those noted now, and by an earlier refill.
    pub blocks: u64,
    /// Why nothing is known of what was on the flash just now, or of what an earlier refill had left.
    pub unknown: Option<String>,
}

impl fmt::Display for Noted {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match (&self.unknown, self.blocks) {
            (Some(why), 0) => write!(out, "nothing is known of what it held: {why}"),
            (None, 0) => write!(out, "it held nothing"),
            (None, blocks) => write!(
                out,
                "{blocks} blocks that it held are fetched again from the origin in the background"
            ),
            (Some(why), blocks) => write!(
                out,
                "nothing is known of what it held: {why}; {blocks} blocks that were noted before are \
                 fetched again from the origin in the background"
            ),
        }
    }
}

/// The first line of the file; the bands follow, as portable roaring bitmaps. What it says of
/// another origin, or of blocks of another size, is nothing to this tier.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    version: u32,
    origin: String,
    block_bytes: u64,
    bands: usize,
}

impl Head {
    pub(super) fn of(origin_id: &OriginId, block_bytes: u64) -> Head {
        Head {
            version: VERSION,
            origin: format!("{:032x}", u128::from_be_bytes(*origin_id)),
            block_bytes,
            bands: BANDS,
        }
    }
}

pub(super) type Bands = [RoaringBitmap; BANDS];

impl RefillFile {
    /// Notes which blocks the cache on the flash holds, beside those that an earlier refill has not
    /// come to. Nothing that goes wrong here keeps a cache from being emptied.
    pub fn note(&self, flash: &FlashFile) -> Noted {
        let unknown = self.try_note(flash).err();
        let (blocks, unread) = match self.noted() {
            Ok(blocks) => (blocks, None),
            Err(error) => (0, Some(error)),
        };
        Noted {
            blocks,
            unknown: unknown.or(unread).map(|error| format!("{error:#}")),
        }
    }

    /// How many blocks of this origin the file names; none where it is missing or another's. Of what
    /// size a block is, the next tier looks at.
    fn noted(&self) -> anyhow::Result<u64> {
        match self.read() {
            Ok((head, bands)) => {
                let is_ours = head == Head::of(&self.origin_id, head.block_bytes);
                Ok(if is_ours { count(&bands) } else { 0 })
            }
            Err(error) if is_missing(&error) => Ok(0),
            Err(error) => Err(error.context(format!("cannot read {}", self.path.display()))),
        }
    }

    fn try_note(&self, flash: &FlashFile) -> anyhow::Result<()> {
        let Some(held) = metadata::numbers(flash, self.origin_id, boot_id()?)? else {
            return Ok(());
        };
        let head = Head::of(&self.origin_id, held.block_bytes);
        let mut bands = by_heat(&held.blocks);
        if let Ok((_, before)) = self.read().and_then(|note| of_head(note, &head)) {
            // What is cached now has a heat of now.
            let known = bands
                .iter()
                .fold(RoaringBitmap::new(), |all, band| all | band);
            for (band, before) in bands.iter_mut().zip(before) {
                *band |= before - &known;
            }
        }
        self.write(&head, &bands)
            .with_context(|| format!("cannot write {}", self.path.display()))
    }

    fn read(&self) -> anyhow::Result<(Head, Bands)> {
        let mut file = BufReader::new(File::open(&self.path)?);
        let mut line = Vec::new();
        io::Read::take(&mut file, HEAD_BYTES_MAX).read_until(b'\n', &mut line)?;
        let head: Head = serde_json::from_slice(&line)?;
        ensure!(
            head.version == VERSION,
            "version {} is unknown",
            head.version
        );
        let mut bands = Bands::default();
        ensure!(head.bands == BANDS, "it has {} bands", head.bands);
        for band in &mut bands {
            *band = RoaringBitmap::deserialize_from(&mut file)?;
        }
        Ok((head, bands))
    }

    /// Puts it in the place of what was there, whole or not at all.
    pub(super) fn write(&self, head: &Head, bands: &Bands) -> anyhow::Result<()> {
        let mut bytes = serde_json::to_vec(head)?;
        bytes.push(b'\n');
        for band in bands {
            band.serialize_into(&mut bytes)?;
        }
        Ok(durable::write(&self.path, &bytes)?)
    }

    /// Of a cache that is forgotten, nothing is fetched again.
    pub(super) fn forget(&self) -> Refill {
        self.remove();
        Refill::default()
    }

    fn remove(&self) {
        // If it stays, the next start finds all of it cached.
        let _ = durable::remove(&self.path);
    }
}

fn is_missing(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}

fn of_head((head, bands): (Head, Bands), wanted: &Head) -> anyhow::Result<(Head, Bands)> {
    ensure!(head == *wanted, "it is of another disk");
    Ok((head, bands))
}

pub(super) fn by_heat(held: &[(Block, u8)]) -> Bands {
    let mut bands = Bands::default();
    for &(block, heat) in held {
        let coldness = usize::from(HOTTEST.saturating_sub(heat));
        bands[coldness * BANDS / (usize::from(HOTTEST) + 1)].insert(block);
    }
    bands
}

/// The highest heat of a band's blocks, the hottest being the first: it is in that band again.
fn heat_of(band: usize) -> u8 {
    let heats = (usize::from(HOTTEST) + 1) / BANDS;
    HOTTEST - (band * heats) as u8
}

fn count(bands: &Bands) -> u64 {
    bands.iter().map(RoaringBitmap::len).sum()
}

/// How far a refill is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum RefillState {
    /// Blocks are being fetched.
    Fetching,
    /// It is through.
    Done,
    /// A stop or a device that failed has ended it; the next start goes on.
    Stopped,
}

/// What has come of a refill since the tier was started, in blocks.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RefillStatus {
    pub(super) state: RefillState,
    /// Fetched, or left alone: they were there already, no slot was free, or they failed.
    pub(super) seen_to: u64,
    /// Those of them that were fetched from the origin.
    pub(super) fetched: u64,
    /// To be fetched when it began.
    pub(super) total: u64,
    /// Noted, but beyond the end of the origin now, or more than the cache holds.
    pub(super) left_out: u64,
    /// Why some failed, if any did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

/// A refill, or that there is none.
#[derive(Debug, Default)]
pub(super) struct Refill {
    pub(super) work: Mutex<Option<(RefillFile, Bands)>>,
    status: Mutex<Option<RefillStatus>>,
    /// How many want to replace the engine, which no job may outlast.
    gives_way: AtomicU32,
}

impl Refill {
    /// What the file names and the cache can and does not hold, the hottest that fit. `held`: what
    /// it holds.
    pub(super) fn find(
        file: RefillFile,
        block_bytes: u64,
        geometry: Geometry,
        held: &RoaringBitmap,
    ) -> Refill {
        let note = file.read();
        let wanted = Head::of(&file.origin_id, block_bytes);
        let (_, mut bands) = match note.and_then(|note| of_head(note, &wanted)) {
            Ok(note) => note,
            Err(error) if is_missing(&error) => return Refill::default(),
            Err(error) => {
                eprintln!(
                    "hotset-engine: what the cache held is not fetched again: {}: {error:#}",
                    file.path.display()
                );
                return file.forget();
            }
        };
        let noted = count(&bands);
        let mut room = u64::from(geometry.slots);
        for band in &mut bands {
            band.remove_range(geometry.origin_blocks..);
            *band = band.iter().take(room as usize).collect();
            room -= band.len();
        }
        let left_out = noted - count(&bands);
        bands.iter_mut().for_each(|band| *band -= held);
        let total = count(&bands);
        if total == 0 {
            return file.forget();
        }
        eprintln!(
            "hotset-engine: {total} blocks that the cache held are fetched again in the background"
        );
        Refill {
            work: Mutex::new(Some((file, bands))),
            status: Mutex::new(Some(RefillStatus {
                state: RefillState::Fetching,
                seen_to: 0,
                fetched: 0,
                total,
                left_out,
                error: None,
            })),
            gives_way: AtomicU32::new(0),
        }
    }

    /// Whether one is under way, which gives way to whoever asks it to.
    pub(super) fn is_under_way(&self) -> bool {
        let status = self.status.lock();
        status
            .as_ref()
            .is_some_and(|status| status.state == RefillState::Fetching)
    }

    /// Somebody wants it to make way, or no longer does: each says both.
    pub(super) fn give_way(&self, wanted: bool) {
        match wanted {
            true => self.gives_way.fetch_add(1, Ordering::Relaxed),
            false => self.gives_way.fetch_sub(1, Ordering::Relaxed),
        };
    }

    fn gives_way(&self) -> bool {
        self.gives_way.load(Ordering::Relaxed) > 0
    }

    pub(super) fn status(&self) -> Option<RefillStatus> {
        self.status.lock().clone()
    }

    fn change(&self, change: impl FnOnce(&mut RefillStatus)) {
        if let Some(status) = &mut *self.status.lock() {
            change(status);
        }
    }
}

impl Tier {
    /// Starts the thread that fetches again what the cache held, if it is to be.
    pub(super) fn start_refill(self: &Arc<Self>) -> io::Result<()> {
        let Some((file, bands)) = self.refill.work.lock().take() else {
            return Ok(());
        };
        let tier = self.clone();
        let run = move || tier.refill_all(&file, &bands);
        let thread = thread::Builder::new().name("refill".to_owned());
        thread.spawn(run).map(drop)
    }

    fn refill_all(self: &Arc<Self>, file: &RefillFile, bands: &Bands) {
        for (number, band) in bands.iter().enumerate() {
            if !self.refill_band(band, heat_of(number)) {
                return self
                    .refill
                    .change(|status| status.state = RefillState::Stopped);
            }
        }
        file.remove();
        self.refill.change(|status| {
            status.state = RefillState::Done;
            eprintln!(
                "hotset-engine: {} of {} blocks that the cache held were fetched again",
                status.fetched, status.total
            );
        });
    }

    /// Whether it came to its end.
    fn refill_band(self: &Arc<Self>, band: &RoaringBitmap, heat: u8) -> bool {
        let before = self.refill.status().map_or(0, |status| status.seen_to);
        let mut left = band.clone();
        loop {
            // Whoever wants the engine gets it between two turns; one that he stops to replace it is
            // not seen here.
            let undisturbed = self.undisturbed.read();
            let (warmed, made_way) = self.fetch_again(left.clone(), heat);
            {
                let engine = &self.lock().engine;
                if engine.is_stopping() || !matches!(engine.health(), Health::Healthy) {
                    return false;
                }
                left -= engine.resident();
            }
            drop(undisturbed);
            let is_over = !made_way;
            self.refill.change(|status| {
                status.fetched += warmed.blocks;
                status.error = warmed.error.map(text_of).or(status.error.take());
                status.seen_to = before + band.len() - if is_over { 0 } else { left.len() };
            });
            if is_over {
                return true;
            }
        }
    }

    /// Fetches blocks into free slots, as long as nobody wants the engine for himself; whether
    /// somebody did, so that there may be blocks that it did not come to.
    fn fetch_again(self: &Arc<Self>, wanted: RoaringBitmap, heat: u8) -> (Warmed, bool) {
        let before = self.refill.status().map_or(0, |status| status.seen_to);
        let mut made_way = false;
        let result = self.run_job(
            |shared, now| shared.engine.begin_refill(now, wanted, heat),
            |JobProgress { done, .. }| {
                self.refill.change(|status| status.seen_to = before + done);
                // Those who are refused meanwhile do not bring back what was cancelled.
                made_way |= self.refill.gives_way();
                !made_way
            },
        );
        match result {
            JobResult::Warmed(warmed) => (warmed, made_way),
            other => unreachable!("{other:?} of a refill"),
        }
    }
}
