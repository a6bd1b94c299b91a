//! A sequential copy between block devices (or files) that keeps the slower side busy all the time.
//!
//! `dd` reads, then writes, then reads: the source idles while the target is written. Here one
//! thread reads and another writes, with a few chunks between them, both past the page cache.

use std::fs::{File, OpenOptions};
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
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);

/// What to copy.
pub struct CopyOptions {
    /// Block device or file to read.
    pub from: PathBuf,
    /// Where to write it, from its start on without gaps; none only reads (to measure the source).
    pub to: Option<PathBuf>,
    /// Which parts of the source, in the order in which they are copied; none means all of it.
    pub runs: Option<Vec<Run>>,
}

/// A part of the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Its first byte.
    pub offset: u64,
    /// Its length in bytes.
    pub bytes: u64,
}

/// Reads a list of runs: one a line, `OFFSET BYTES`, both multiples of 4096.
///
/// # Errors
/// The file cannot be read, or a line is something else; the text names the line.
pub fn read_runs(path: &Path) -> anyhow::Result<Vec<Run>> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    let parse = |(number, line): (usize, &str)| {
        parse_run(line).ok_or_else(|| {
            Refusal(format!(
                "{} line {}: `{line}` is no run: write OFFSET BYTES, multiples of {DIRECT_ALIGN}",
                path.display(),
                number + 1
            ))
            .into()
        })
    };
    text.lines().enumerate().map(parse).collect()
}

fn parse_run(line: &str) -> Option<Run> {
    let (offset, bytes) = line.split_once(' ')?;
    let (offset, bytes) = (offset.parse().ok()?, bytes.parse().ok()?);
    let aligned = (offset | bytes) % DIRECT_ALIGN as u64 == 0;
    aligned.then_some(Run { offset, bytes })
}

/// What a copy came to.
#[derive(Serialize)]
pub struct Copied {
    /// Bytes copied.
    pub bytes: u64,
    /// From the first read to the last write being on the target.
    pub seconds: f64,
}

/// Copies; `progress` gets the bytes written so far about once a second.
///
/// # Errors
/// The source or target cannot be opened, read or written; the text names it and the offset.
pub fn copy(options: &CopyOptions, mut progress: impl FnMut(u64)) -> anyhow::Result<Copied> {
    let source = open(&options.from, OpenOptions::new().read(true))?;
    let target = match &options.to {
        Some(path) => Some((open(path, OpenOptions::new().write(true))?, path)),
        None => None,
    };
    let runs = match &options.runs {
        Some(runs) => runs.clone(),
        None => vec![Run {
            offset: 0,
            bytes: size_of(&source, &options.from)?,
        }],
    };
    let bytes = runs.iter().map(|run| run.bytes).sum();
    let begun = Instant::now();
    let (sender, receiver) = sync_channel(CHUNKS_AHEAD);
    thread::scope(|scope| {
        // The reader owns the sender: the channel closes when it ends.
        let reader = scope.spawn(move || read_all(&source, &options.from, &runs, &sender));
        let written = write_all(target.as_ref(), &receiver, &mut progress);
        // A writer that failed hangs up, which ends the reader; its own error says more.
        drop(receiver);
        let read = reader.join().expect("the reader does not panic");
        written.and(read)
    })?;
    if let Some((file, path)) = &target {
        file.sync_data()
            .with_context(|| format!("flushing {}", path.display()))?;
    }
    Ok(Copied {
        bytes,
        seconds: begun.elapsed().as_secs_f64(),
    })
}

fn read_all(
    source: &File,
    path: &Path,
    runs: &[Run],
    chunks: &SyncSender<PageBuffer>,
) -> anyhow::Result<()> {
    for run in runs {
        for offset in (run.offset..run.offset + run.bytes).step_by(CHUNK_BYTES as usize) {
            let length = CHUNK_BYTES.min(run.offset + run.bytes - offset);
            let mut buffer = PageBuffer::zeroed(length as usize);
            source
                .read_exact_at(buffer.bytes_mut(), offset)
                .with_context(|| format!("reading {} at byte {offset}", path.display()))?;
            if chunks.send(buffer).is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn write_all(
    target: Option<&(File, &PathBuf)>,
    chunks: &Receiver<PageBuffer>,
    progress: &mut impl FnMut(u64),
) -> anyhow::Result<()> {
    let (mut told, mut offset) = (Instant::now(), 0);
    for buffer in chunks {
        if let Some((file, path)) = target {
            file.write_all_at(buffer.bytes(), offset)
                .with_context(|| format!("writing {} at byte {offset}", path.display()))?;
        }
        offset += buffer.bytes().len() as u64;
        if told.elapsed() >= PROGRESS_INTERVAL {
            told = Instant::now();
            progress(offset);
        }
    }
    Ok(())
}

fn open(path: &Path, options: &mut OpenOptions) -> anyhow::Result<File> {
    // Direct I/O where the file system takes it (tmpfs does not): block devices always do.
    options
        .clone()
        .custom_flags(libc::O_DIRECT)
        .open(path)
        .or_else(|_| options.open(path))
        .with_context(|| format!("opening {}", path.display()))
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
            runs: None,
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
        };
        assert_eq!(copy(&options, |_| ()).unwrap().bytes, 5_251_072);
        let expected = [&data[4096..12288], &data[1 << 20..6 << 20]].concat();
        assert!(std::fs::read(to).unwrap() == expected);
    }

    #[test]
    fn a_line_that_is_no_run_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let list = folder.path().join("runs");
        for bad in ["", "4096", "4096 x", "4096 100", "4096 8192 1"] {
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
            to: None,
            runs: Some(vec![Run {
                offset: 0,
                bytes: 1 << 20,
            }]),
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
            runs: None,
        };
        let error = format!("{:#}", copy(&options, |_| ()).err().unwrap());
        assert!(error.contains("nowhere/to"), "{error}");
    }
}
