//! A sequential copy between block devices (or files) that keeps the slower side busy all the time.
//!
//! `dd` reads, then writes, then reads: the source idles while the target is written. Here one
//! thread reads and another writes, with a few chunks between them, both past the page cache.

use std::fs::{File, OpenOptions};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Serialize;

use crate::Refusal;
use crate::serve::backing::{DIRECT_ALIGN, PageBuffer};

/// Bytes read and written at a time: several stripes of an array, several requests in flight.
const CHUNK_BYTES: u64 = 4 << 20;
/// Chunks that may lie between reader and writer.
const CHUNKS_AHEAD: usize = 4;
const SMALLEST_CHUNK_BYTES: u64 = 64 << 10;
/// Reads in flight where their size is bounded.
const PIECES_AT_ONCE: u64 = 4;
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// What to copy.
pub struct CopyOptions {
    /// Block device or file to read.
    pub from: PathBuf,
    /// Where to write it; none only reads (to measure the source, or to warm what lies before it).
    pub to: Option<PathBuf>,
    /// Which parts of the source, in the order in which they are copied; none means all of it.
    pub runs: Option<Vec<Run>>,
    /// At most so many bytes a second; none means as fast as it goes.
    pub bytes_per_s: Option<NonZeroU64>,
    /// No read is larger than this, [`PIECES_AT_ONCE`] of them in flight; none leaves the size of
    /// requests to the kernel.
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
    let bytes = runs.iter().map(|run| run.bytes).sum();
    let begun = Instant::now();
    let pace = Pace {
        begun,
        bytes_per_s: options.bytes_per_s,
        piece_bytes: options.piece_bytes.map_or(CHUNK_BYTES, NonZeroU64::get),
    };
    let (sender, receiver) = sync_channel(CHUNKS_AHEAD);
    let mut written = 0;
    let outcome = thread::scope(|scope| {
        // The reader owns the sender: the channel closes when it ends.
        let reader = scope.spawn(move || read_all(&source, &options.from, &runs, &pace, &sender));
        let wrote = write_all(target.as_ref(), &receiver, &mut written, &mut progress);
        // A writer that failed hangs up, which ends the reader; its own error says more.
        drop(receiver);
        let read = reader.join().expect("the reader does not panic");
        wrote.and(read)
    });
    if let Some((file, path)) = &target {
        file.sync_data()
            .with_context(|| format!("flushing {}", path.display()))?;
    }
    progress(written);
    outcome?;
    Ok(Copied {
        bytes,
        seconds: begun.elapsed().as_secs_f64(),
    })
}

/// Limits on the rate of reading and on the size of a read.
struct Pace {
    begun: Instant,
    bytes_per_s: Option<NonZeroU64>,
    piece_bytes: u64,
}

impl Pace {
    /// How much to read at a time: little at a low rate, so that it is even.
    fn chunk(&self) -> u64 {
        let most = CHUNK_BYTES.min(self.piece_bytes * PIECES_AT_ONCE);
        let tenth = self.bytes_per_s.map_or(most, |rate| rate.get() / 10);
        let align = DIRECT_ALIGN as u64;
        (tenth / align * align).clamp(SMALLEST_CHUNK_BYTES.min(most), most)
    }

    /// Waits until so many bytes may have been read.
    fn keep(&self, bytes: u64) {
        if let Some(rate) = self.bytes_per_s {
            let due = Duration::from_secs_f64(bytes as f64 / rate.get() as f64);
            thread::sleep(due.saturating_sub(self.begun.elapsed()));
        }
    }
}

/// A part that was read, and where it goes.
struct Chunk {
    buffer: PageBuffer,
    to: u64,
}

fn read_all(
    source: &File,
    path: &Path,
    runs: &[Run],
    pace: &Pace,
    chunks: &SyncSender<Chunk>,
) -> anyhow::Result<()> {
    let (mut behind, mut bytes) = (0, 0);
    for run in runs {
        let start = run.to.unwrap_or(behind);
        behind = start + run.bytes;
        for done in (0..run.bytes).step_by(pace.chunk() as usize) {
            let (offset, length) = (run.offset + done, pace.chunk().min(run.bytes - done));
            pace.keep(bytes);
            let mut buffer = PageBuffer::zeroed(length as usize);
            read_pieces(source, buffer.bytes_mut(), offset, pace.piece_bytes)
                .with_context(|| format!("reading {} at byte {offset}", path.display()))?;
            bytes += length;
            let to = start + done;
            if chunks.send(Chunk { buffer, to }).is_err() {
                return Ok(());
            }
        }
    }
    pace.keep(bytes);
    Ok(())
}

/// Fills a buffer by reads of at most `piece_bytes`, all at once.
fn read_pieces(source: &File, buffer: &mut [u8], offset: u64, piece_bytes: u64) -> io::Result<()> {
    let read = |(number, piece): (usize, &mut [u8])| {
        source.read_exact_at(piece, offset + number as u64 * piece_bytes)
    };
    let mut pieces = buffer.chunks_mut(piece_bytes as usize).enumerate();
    let first = pieces.next();
    thread::scope(|scope| {
        let others: Vec<_> = pieces
            .map(|piece| scope.spawn(move || read(piece)))
            .collect();
        let begun = first.map_or(Ok(()), read);
        others.into_iter().fold(begun, |so_far, other| {
            so_far.and(other.join().expect("a read does not panic"))
        })
    })
}

fn write_all(
    target: Option<&(File, &PathBuf)>,
    chunks: &Receiver<Chunk>,
    written: &mut u64,
    progress: &mut impl FnMut(u64),
) -> anyhow::Result<()> {
    let mut told = Instant::now();
    for Chunk { buffer, to } in chunks {
        if let Some((file, path)) = target {
            file.write_all_at(buffer.bytes(), to)
                .with_context(|| format!("writing {} at byte {to}", path.display()))?;
        }
        *written += buffer.bytes().len() as u64;
        if told.elapsed() >= PROGRESS_INTERVAL {
            told = Instant::now();
            progress(*written);
        }
    }
    Ok(())
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
mod tests {
    use super::*;

    fn whole() -> CopyOptions {
        CopyOptions {
            from: PathBuf::new(),
            to: None,
            runs: None,
            bytes_per_s: None,
            piece_bytes: None,
            exclusive: false,
        }
    }

    fn patterned(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|at| (at / 4096 * 31 + at) as u8).collect()
    }

    #[test]
    fn the_target_holds_what_the_source_held() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let data = patterned(9 << 20);
        std::fs::write(&from, &data).unwrap();
        std::fs::write(&to, vec![0; 10 << 20]).unwrap();
        let options = CopyOptions {
            from,
            to: Some(to.clone()),
            ..whole()
        };
        assert_eq!(copy(&options, |_| ()).unwrap().bytes, 9 << 20);
        let copied = std::fs::read(to).unwrap();
        assert!(copied[..9 << 20] == data[..]);
        assert!(copied[9 << 20..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn runs_are_laid_one_behind_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let list = folder.path().join("runs");
        let data = patterned(9 << 20);
        std::fs::write(&from, &data).unwrap();
        std::fs::write(&to, []).unwrap();
        std::fs::write(&list, "4096 8192\n1048576 5242880\n").unwrap();
        let options = CopyOptions {
            from,
            to: Some(to.clone()),
            runs: Some(read_runs(&list).unwrap()),
            ..whole()
        };
        assert_eq!(copy(&options, |_| ()).unwrap().bytes, 5_251_072);
        let expected = [&data[4096..12288], &data[1 << 20..6 << 20]].concat();
        assert!(std::fs::read(to).unwrap() == expected);
    }

    #[test]
    fn pieces_make_up_the_whole() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let data = patterned((5 << 20) + 8192);
        std::fs::write(&from, &data).unwrap();
        std::fs::write(&to, []).unwrap();
        let options = CopyOptions {
            from,
            to: Some(to.clone()),
            piece_bytes: NonZeroU64::new(256 << 10),
            ..whole()
        };
        copy(&options, |_| ()).unwrap();
        assert!(std::fs::read(to).unwrap() == data);
    }

    #[test]
    fn a_line_that_is_no_run_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("runs");
        for bad in [
            "",
            "4096",
            "4096 x",
            "4096 100",
            "4096 8192 1",
            "0 4096 0 0",
        ] {
            std::fs::write(&list, format!("0 4096\n{bad}\n")).unwrap();
            let error = read_runs(&list).unwrap_err();
            assert!(error.is::<Refusal>(), "{bad}");
            assert!(error.to_string().contains("line 2"), "{error}");
        }
    }

    #[test]
    fn a_source_that_ends_early_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("short");
        std::fs::write(&from, vec![1; 8192]).unwrap();
        let options = CopyOptions {
            from,
            runs: Some(vec![Run {
                offset: 0,
                bytes: 1 << 20,
                to: None,
            }]),
            ..whole()
        };
        let error = format!("{:#}", copy(&options, |_| ()).err().unwrap());
        assert!(error.contains("short at byte 0"), "{error}");
    }

    #[test]
    fn a_target_that_is_missing_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("from");
        std::fs::write(&from, vec![1; 8192]).unwrap();
        let options = CopyOptions {
            from,
            to: Some(folder.path().join("nowhere/to")),
            ..whole()
        };
        let error = format!("{:#}", copy(&options, |_| ()).err().unwrap());
        assert!(error.contains("nowhere/to"), "{error}");
    }

    #[test]
    fn a_run_goes_where_the_list_says() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let list = folder.path().join("runs");
        let data = patterned(64 << 10);
        std::fs::write(&from, &data).unwrap();
        std::fs::write(&to, vec![7; 64 << 10]).unwrap();
        std::fs::write(&list, "0 8192 40960\n12288 4096\n16384 4096 0\n").unwrap();
        let options = CopyOptions {
            from,
            to: Some(to.clone()),
            runs: Some(read_runs(&list).unwrap()),
            ..whole()
        };
        assert_eq!(copy(&options, |_| ()).unwrap().bytes, 16384);
        let copied = std::fs::read(to).unwrap();
        assert!(copied[40960..49152] == data[..8192]);
        assert!(copied[49152..53248] == data[12288..16384]);
        assert!(copied[..4096] == data[16384..20480]);
        assert!(copied[4096..40960].iter().all(|byte| *byte == 7));
    }

    #[test]
    fn a_rate_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("from");
        std::fs::write(&from, vec![1; 4 << 20]).unwrap();
        let options = CopyOptions {
            from,
            bytes_per_s: NonZeroU64::new(8 << 20),
            ..whole()
        };
        let seconds = copy(&options, |_| ()).unwrap().seconds;
        assert!((0.5..1.0).contains(&seconds), "{seconds}");
    }

    #[test]
    fn a_copy_that_breaks_off_says_how_far_it_came() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        let data = patterned(9 << 20);
        std::fs::write(&from, &data).unwrap();
        std::fs::write(&to, []).unwrap();
        let options = CopyOptions {
            from,
            to: Some(to.clone()),
            runs: Some(vec![Run {
                offset: 0,
                bytes: 16 << 20,
                to: None,
            }]),
            ..whole()
        };
        let mut told = 0;
        assert!(copy(&options, |bytes| told = bytes).is_err());
        assert_eq!(told, 8 << 20);
        assert!(std::fs::read(to).unwrap()[..8 << 20] == data[..8 << 20]);
    }
}
