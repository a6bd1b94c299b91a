//! A sequential copy between block devices (or files) that keeps the slower side busy all the time.
//!
//! `dd` reads, then writes, then reads: the source idles while the target is written, and an array
//! has one request to do at a time. Here several pieces are under way at once, past the page cache.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Serialize;

use crate::Refusal;
use crate::direct_io::{DIRECT_ALIGN, PageBuffer};

/// Bytes read and written at a time: several stripes of an array.
const PIECE_BYTES: u64 = 4 << 20;
const SMALLEST_PIECE_BYTES: u64 = 64 << 10;
/// Pieces under way.
const AT_ONCE: usize = 4;
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// What to copy.
pub struct CopyOptions {
    /// Block device or file to read.
    pub from: PathBuf,
    /// Where to write it; none only reads (to measure the source, or to warm what lies before it).
    pub to: Option<PathBuf>,
    /// Which parts of the source, in the order in which they are begun; none means all of it. No
    /// two go to the same place.
    pub runs: Option<Vec<Run>>,
    /// At most so many bytes a second; none means as fast as it goes.
    pub bytes_per_s: Option<NonZeroU64>,
    /// No read is larger than this; none means 4 MiB.
    pub piece_bytes: Option<NonZeroU64>,
    /// Claim both devices, so that nobody can mount them or build on them meanwhile.
    pub exclusive: bool,
}

/// A part of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its first byte.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Where it goes on the target; none means behind the run before it.
    pub to: Option<u64>,
}

/// Reads a list of runs: one a line, `OFFSET BYTES [TARGET_OFFSET]`, all multiples of 4096.
///
/// # Errors
/// The file cannot be read, or a line is something else; the text names the line.
pub fn read_runs(path: &Path) -> anyhow::Result<Vec<Run>> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let parse = |(number, line): (usize, &str)| {
        parse_run(line).ok_or_else(|| {
            Refusal(format!(
                "{} line {}: `{line}` is no run: write OFFSET BYTES [TARGET_OFFSET], multiples of {DIRECT_ALIGN}",
                path.display(),
                number + 1
            ))
            .into()
        })
    };
    text.lines().enumerate().map(parse).collect()
}

fn parse_run(line: &str) -> Option<Run> {
    let numbers: Vec<u64> = line
        .split(' ')
        .map(|word| word.parse().ok())
        .collect::<Option<_>>()?;
    let (offset, bytes, to) = match numbers[..] {
        [offset, bytes] => (offset, bytes, None),
        [offset, bytes, to] => (offset, bytes, Some(to)),
        _ => return None,
    };
    let aligned = (offset | bytes | to.unwrap_or(0)) % DIRECT_ALIGN as u64 == 0;
    aligned.then_some(Run { offset, bytes, to })
}

/// What a copy came to.
#[derive(Serialize)]
pub struct Copied {
    /// Bytes copied.
    pub bytes: u64,
    /// From the first read to the last write being on the target.
    pub seconds: f64,
}

/// Copies; `progress` gets the bytes written so far about once a second, and at the end.
///
/// A copy that fails brings what was written onto the medium first, and its last `progress` says how
/// much that is: all of it, in the order of the runs, is good.
///
/// # Errors
/// The source or target cannot be opened, read or written; the text names it and the offset.
pub fn copy(options: &CopyOptions, mut progress: impl FnMut(u64)) -> anyhow::Result<Copied> {
    let claim = options.exclusive;
    let source = open(&options.from, OpenOptions::new().read(true), claim)?;
    let target = match &options.to {
        Some(path) => Some((open(path, OpenOptions::new().write(true), claim)?, path)),
        None => None,
    };
    let runs = match &options.runs {
        Some(runs) => runs.clone(),
        None => vec![Run {
            offset: 0,
            bytes: size_of(&source, &options.from)?,
            to: None,
        }],
    };
    let begun = Instant::now();
    let pace = Pace {
        begun,
        bytes_per_s: options.bytes_per_s,
    };
    let piece_bytes = options
        .piece_bytes
        .map_or(PIECE_BYTES, NonZeroU64::get)
        .min(pace.piece());
    let copy_piece = |buffer: &mut [u8], piece: &Piece| {
        let Piece { offset, to, .. } = piece;
        source
            .read_exact_at(buffer, *offset)
            .with_context(|| format!("reading {} at byte {offset}", options.from.display()))?;
        if let Some((file, path)) = &target {
            file.write_all_at(buffer, *to)
                .with_context(|| format!("writing {} at byte {to}", path.display()))?;
        }
        Ok(())
    };
    let pieces = pieces_of(&runs, piece_bytes);
    let (done, outcome) = copy_pieces(pieces, piece_bytes, &pace, copy_piece, &mut progress);
    pace.keep(done);
    if let Some((file, path)) = &target {
        file.sync_data()
            .with_context(|| format!("flushing {}", path.display()))?;
    }
    progress(done);
    outcome?;
    Ok(Copied {
        bytes: done,
        seconds: begun.elapsed().as_secs_f64(),
    })
}

/// Copies runs by `one`, which is given memory for a piece, several at once and as fast as it goes.
///
/// # Errors
/// What `one` fails with.
pub(crate) fn copy_runs(
    runs: &[Run],
    copy_piece: impl Fn(&mut [u8], &Piece) -> anyhow::Result<()> + Sync,
    mut progress: impl FnMut(u64),
) -> anyhow::Result<u64> {
    let pace = Pace {
        begun: Instant::now(),
        bytes_per_s: None,
    };
    let pieces = pieces_of(runs, PIECE_BYTES);
    let (done, outcome) = copy_pieces(pieces, PIECE_BYTES, &pace, copy_piece, &mut progress);
    outcome?;
    progress(done);
    Ok(done)
}

/// A limit on the rate of reading.
struct Pace {
    begun: Instant,
    bytes_per_s: Option<NonZeroU64>,
}

impl Pace {
    /// How much to copy at a time: little at a low rate, so that it is even.
    fn piece(&self) -> u64 {
        let tenth = self.bytes_per_s.map_or(PIECE_BYTES, |rate| rate.get() / 10);
        let align = DIRECT_ALIGN as u64;
        (tenth / align * align).clamp(SMALLEST_PIECE_BYTES, PIECE_BYTES)
    }

    /// Waits until so many bytes may have been read.
    fn keep(&self, bytes: u64) {
        if let Some(rate) = self.bytes_per_s {
            let due = Duration::from_secs_f64(bytes as f64 / rate.get() as f64);
            thread::sleep(due.saturating_sub(self.begun.elapsed()));
        }
    }
}

/// What is copied at a time; `before` are the bytes of all pieces before it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    pub(crate) to: u64,
    before: u64,
}

fn pieces_of(runs: &[Run], piece_bytes: u64) -> impl Iterator<Item = Piece> + '_ {
    let (mut behind, mut before) = (0, 0);
    runs.iter()
        .flat_map(move |run| {
            let start = run.to.unwrap_or(behind);
            behind = start + run.bytes;
            (0..run.bytes)
                .step_by(piece_bytes as usize)
                .map(move |at| (run.offset + at, piece_bytes.min(run.bytes - at), start + at))
        })
        .map(move |(offset, bytes, to)| {
            let piece = Piece {
                offset,
                bytes,
                to,
                before,
            };
            before += bytes;
            piece
        })
}

/// Copies the pieces by `one`, several at once, until one fails.
///
/// Returns how many bytes were copied without a gap from the first piece on, and the failure of the
/// piece behind them.
fn copy_pieces(
    pieces: impl Iterator<Item = Piece> + Send,
    piece_bytes: u64,
    pace: &Pace,
    copy_piece: impl Fn(&mut [u8], &Piece) -> anyhow::Result<()> + Sync,
    progress: &mut impl FnMut(u64),
) -> (u64, anyhow::Result<()>) {
    let pieces = Mutex::new(pieces);
    let (sender, receiver) = channel();
    let failed = AtomicBool::new(false);
    let work = |sender: Sender<(Piece, anyhow::Result<()>)>| {
        let mut buffer = PageBuffer::zeroed(piece_bytes as usize);
        let next = || match failed.load(Ordering::Relaxed) {
            true => None,
            false => pieces.lock().expect("a worker does not panic").next(),
        };
        while let Some(piece) = next() {
            pace.keep(piece.before);
            let was = copy_piece(&mut buffer.bytes_mut()[..piece.bytes as usize], &piece);
            failed.fetch_or(was.is_err(), Ordering::Relaxed);
            sender.send((piece, was)).expect("they are all received");
        }
    };
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            let sender = sender.clone();
            scope.spawn(|| work(sender));
        }
        drop(sender);
        in_order(&receiver, progress)
    })
}

/// Takes in what was copied, in whatever order, as far as it makes a whole from the beginning.
fn in_order(
    copied: &Receiver<(Piece, anyhow::Result<()>)>,
    progress: &mut impl FnMut(u64),
) -> (u64, anyhow::Result<()>) {
    let (mut ahead, mut done) = (BTreeMap::new(), 0);
    let mut outcome = Ok(());
    let mut reported_at = Instant::now();
    for (piece, was) in copied {
        ahead.insert(piece.before, (piece.bytes, was));
        while outcome.is_ok() {
            let Some((bytes, was)) = ahead.remove(&done) else {
                break;
            };
            done += if was.is_ok() { bytes } else { 0 };
            outcome = was;
        }
        if reported_at.elapsed() >= PROGRESS_INTERVAL {
            reported_at = Instant::now();
            progress(done);
        }
    }
    (done, outcome)
}

pub(crate) fn open(path: &Path, options: &mut OpenOptions, claim: bool) -> anyhow::Result<File> {
    // O_EXCL on a block device claims it as a mount or a device-mapper table would; a file cannot
    // be claimed and takes the flag without a word.
    let flags = if claim { libc::O_EXCL } else { 0 };
    // Direct I/O where the file system takes it (tmpfs does not): block devices always do.
    let opened = options
        .clone()
        .custom_flags(libc::O_DIRECT | flags)
        .open(path);
    let opened = match opened {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            options.custom_flags(flags).open(path)
        }
        other => other,
    };
    opened.map_err(|error| match error.raw_os_error() {
        Some(libc::EBUSY) => Refusal(format!(
            "{} is in use: it is mounted, or another device is built on it",
            path.display()
        ))
        .into(),
        _ => anyhow::Error::from(error).context(format!("opening {}", path.display())),
    })
}

/// Size of a file or block device (a device's metadata says 0, its end does not).
fn size_of(mut file: &File, path: &Path) -> anyhow::Result<u64> {
    use std::io::{Seek, SeekFrom};
    let size = file
        .seek(SeekFrom::End(0))
        .with_context(|| format!("size of {}", path.display()))?;
    anyhow::ensure!(
        size % DIRECT_ALIGN as u64 == 0,
        "{} has {size} bytes, not a multiple of {DIRECT_ALIGN}",
        path.display()
    );
    Ok(size)
}

#[cfg(test)]
#[path = "copy_tests.rs"]
mod tests;
