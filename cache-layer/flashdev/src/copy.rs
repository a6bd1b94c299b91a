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
    /// Where to write it, at the same offsets; none only reads (to measure the source).
    pub to: Option<PathBuf>,
    /// How many bytes from the start; none means the whole source.
    pub bytes: Option<u64>,
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
    let bytes = match options.bytes {
        Some(bytes) => bytes,
        None => size_of(&source, &options.from)?,
    };
    let begun = Instant::now();
    let (sender, receiver) = sync_channel(CHUNKS_AHEAD);
    thread::scope(|scope| {
        // The reader owns the sender: the channel closes when it ends.
        let reader = scope.spawn(move || read_all(source, &options.from, bytes, sender));
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

struct Chunk {
    offset: u64,
    buffer: PageBuffer,
}

fn read_all(
    source: File,
    path: &Path,
    bytes: u64,
    chunks: SyncSender<Chunk>,
) -> anyhow::Result<()> {
    let mut offset = 0;
    while offset < bytes {
        let length = CHUNK_BYTES.min(bytes - offset);
        let mut buffer = PageBuffer::zeroed(length as usize);
        source
            .read_exact_at(buffer.bytes_mut(), offset)
            .with_context(|| format!("reading {} at byte {offset}", path.display()))?;
        if chunks.send(Chunk { offset, buffer }).is_err() {
            return Ok(());
        }
        offset += length;
    }
    Ok(())
}

fn write_all(
    target: Option<&(File, &PathBuf)>,
    chunks: &Receiver<Chunk>,
    progress: &mut impl FnMut(u64),
) -> anyhow::Result<()> {
    let mut told = Instant::now();
    for Chunk { offset, buffer } in chunks {
        if let Some((file, path)) = target {
            file.write_all_at(buffer.bytes(), offset)
                .with_context(|| format!("writing {} at byte {offset}", path.display()))?;
        }
        if told.elapsed() >= PROGRESS_INTERVAL {
            told = Instant::now();
            progress(offset + buffer.bytes().len() as u64);
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
            bytes: None,
        };
        assert_eq!(copy(&options, |_| ()).unwrap().bytes, 9 << 20);
        let copied = std::fs::read(to).unwrap();
        assert!(copied[..9 << 20] == data[..]);
        assert!(copied[9 << 20..].iter().all(|byte| *byte == 0));
    }

    #[test]
    fn a_source_that_ends_early_is_an_error_that_names_it() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("short");
        std::fs::write(&from, vec![1; 8192]).unwrap();
        let options = CopyOptions {
            from,
            to: None,
            bytes: Some(1 << 20),
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
            bytes: None,
        };
        let error = format!("{:#}", copy(&options, |_| ()).err().unwrap());
        assert!(error.contains("nowhere/to"), "{error}");
    }
}
