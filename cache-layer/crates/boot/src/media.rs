//! Reading and writing devices and files past the page cache.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

const ALIGN: usize = 4096;

/// Bytes of an origin: where they begin, how many they are.
pub type Region = (u64, u64);

/// Memory that direct I/O takes.
pub struct Buffer {
    memory: Vec<u8>,
    offset: usize,
    length: usize,
}

impl Buffer {
    pub fn new(length: usize) -> Self {
        let memory = vec![0; length + ALIGN];
        let offset = memory.as_ptr().align_offset(ALIGN);
        Self {
            memory,
            offset,
            length,
        }
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.offset..self.offset + self.length]
    }
}

/// A device or file, opened past the page cache where that can be.
pub struct Medium {
    file: File,
    pub size: u64,
}

impl Medium {
    pub fn open(path: &Path, write: bool) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(write);
        let flags = libc::O_CLOEXEC | libc::O_DIRECT;
        let file = match options.custom_flags(flags).open(path) {
            // tmpfs has none.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                options.custom_flags(libc::O_CLOEXEC).open(path)
            }
            other => other,
        }
        .with_context(|| format!("{} cannot be opened", path.display()))?;
        let size = size_of(&file).with_context(|| format!("the size of {}", path.display()))?;
        Ok(Self { file, size })
    }

    /// The bytes from `at`, fewer where it ends. Both are multiples of 4096.
    pub fn read(&self, at: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut buffer = Buffer::new(length);
        let mut done = 0;
        while done < length {
            let read = self
                .file
                .read_at(&mut buffer.bytes()[done..], at + done as u64)?;
            done += read;
            // The end, which may lie within a piece.
            if read == 0 || done % ALIGN != 0 {
                break;
            }
        }
        Ok(buffer.bytes()[..done].to_vec())
    }

    /// Whole pieces of 4096 bytes, durable when it returns.
    pub fn write(&self, at: u64, data: &[u8]) -> io::Result<()> {
        let mut buffer = Buffer::new(data.len());
        buffer.bytes().copy_from_slice(data);
        self.file.write_all_at(buffer.bytes(), at)?;
        self.file.sync_data()
    }
}

fn size_of(file: &File) -> io::Result<u64> {
    use std::io::{Seek, SeekFrom};
    let mut file = file;
    file.seek(SeekFrom::End(0))
}

/// SHA-256 in hexadecimal, of the pieces one behind the other.
pub fn digest<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    pieces.into_iter().for_each(|piece| hash.update(piece));
    hex(&hash.finalize())
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
