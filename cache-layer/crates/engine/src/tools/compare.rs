//! Are parts of two devices the same? Both are read past the page cache.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;

use crate::direct_io::PageBuffer;
use crate::tools::copy::{Run, open};

/// What a comparison found.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// Runs compared.
    pub runs: usize,
    /// Runs that are not the same, byte for byte.
    pub differing: usize,
}

/// Compares runs of one device with those of another: a run of the other begins where `to` says,
/// without it where the run itself begins. A run is read at once.
///
/// # Errors
/// A device cannot be opened or read; the text names it and the offset.
pub fn compare(first: &Path, other: &Path, runs: &[Run]) -> anyhow::Result<Compared> {
    let read = |path: &PathBuf| open(path, OpenOptions::new().read(true), false);
    let (first, other) = (first.to_path_buf(), other.to_path_buf());
    let (here, second) = (read(&first)?, read(&other)?);
    let mut differing = 0;
    for run in runs {
        let mut buffers = [(); 2].map(|()| PageBuffer::zeroed(run.bytes as usize));
        let places = [
            (&here, &first, run.offset),
            (&second, &other, run.to.unwrap_or(run.offset)),
        ];
        for (buffer, (file, path, offset)) in buffers.iter_mut().zip(places) {
            file.read_exact_at(buffer.bytes_mut(), offset)
                .with_context(|| format!("reading {} at byte {offset}", path.display()))?;
        }
        differing += usize::from(buffers[0].bytes() != buffers[1].bytes());
    }
    Ok(Compared {
        runs: runs.len(),
        differing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_byte_makes_a_run_differ() {
        let folder = tempfile::tempdir().unwrap();
        let (first, other) = (folder.path().join("one"), folder.path().join("other"));
        let mut data: Vec<u8> = (0..32768_u32).map(|at| (at / 7) as u8).collect();
        std::fs::write(&first, &data).unwrap();
        data.rotate_right(8192);
        data[16383] ^= 1;
        std::fs::write(&other, &data).unwrap();
        let run = |offset, to| Run {
            offset,
            bytes: 4096,
            to,
        };
        let moved = [
            run(0, Some(8192)),
            run(4096, Some(12288)),
            run(8192, Some(16384)),
        ];
        let compared = compare(&first, &other, &moved).unwrap();
        assert_eq!((compared.runs, compared.differing), (3, 1));
        assert_eq!(
            compare(&first, &first, &[run(0, None)]).unwrap().differing,
            0
        );
        let error = compare(&first, &other, &[run(32768, None)]).unwrap_err();
        assert!(format!("{error:#}").contains("at byte 32768"), "{error:#}");
    }
}
