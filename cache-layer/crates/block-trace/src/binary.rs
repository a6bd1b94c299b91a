//! A binary trace: some 8 bytes a request, with an index of times. All numbers are little-endian.
//!
//! | part | holds |
//! |---|---|
//! | header, 32 bytes | `HOTSETTR`, version (u16), flags (u16, 1: requests have times), 16 zeros, CRC-32C of those 28 |
//! | chunks of up to 65,536 requests | `CHNK`, requests (u32), payload bytes (u32), shift (u8), 3 zeros, time of the first (u64), CRC-32C of payload and those 24 (u32), payload |
//! | index | `INDX`, chunks (u32), and for each its byte (u64), time of its first request (u64), requests before it (u64) |
//! | end, 48 bytes | the index's byte (u64), requests (u64), the byte behind the last touched (u64), time of the last (u64), CRC-32C of the index and those 32 (u32), 4 zeros, `HOTSETEN` |
//!
//! A request in a payload is three numbers in LEB128: nanoseconds since the one before it; how far
//! its offset is from the end of the one before it (zigzag); its length doubled, plus 1 for a write.
//! Offsets and lengths are shifted right by what all of the chunk have in common.

use std::fs::File;
use std::io::{self, BufRead, BufWriter, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use virtual_time::Nanos;

use super::{About, BYTES_LIMIT, Request, Trace, TraceError, fill};

/// Removes the part of a trace that could not be written to its end. Where a link leads, such as
/// `/dev/stdout`, the file is emptied; devices and pipes stay as they are.
pub fn remove_part(to: &Path) {
    let _ = match to.symlink_metadata() {
        Ok(own) if own.is_file() => std::fs::remove_file(to),
        Ok(_) if to.is_file() => File::create(to).map(drop),
        _ => Ok(()),
    };
}

/// The first bytes of a binary trace.
pub(super) const MAGIC: &[u8; 8] = b"HOTSETTR";
const END_MAGIC: &[u8; 8] = b"HOTSETEN";
const CHUNK_MAGIC: &[u8; 4] = b"CHNK";
const INDEX_MAGIC: &[u8; 4] = b"INDX";
const VERSION: u16 = 1;
const TIMED: u16 = 1;
const HEADER: usize = 32;
const CHUNK_HEADER: usize = 28;
const INDEX_HEADER: usize = 8;
const INDEX_ENTRY: usize = 24;
const END: usize = 48;
const CHUNK_REQUESTS: usize = 1 << 16;
/// Three numbers of at most ten bytes each.
const REQUEST_BYTES_MAX: usize = 30;
const SHIFT_MAX: u32 = 12;

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// A chunk as the index has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    byte: u64,
    at: Nanos,
    before: u64,
}

/// Writes a trace, chunk by chunk.
pub struct Writer<W: Write> {
    out: BufWriter<W>,
    byte: u64,
    chunk: Vec<Request>,
    payload: Vec<u8>,
    entries: Vec<Entry>,
    requests: u64,
    end: u64,
    last: Nanos,
}

impl<W: Write> Writer<W> {
    /// Starts a trace.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn new(out: W, timed: bool) -> io::Result<Writer<W>> {
        let mut header = Vec::with_capacity(HEADER);
        header.extend(MAGIC);
        header.extend(VERSION.to_le_bytes());
        header.extend((if timed { TIMED } else { 0 }).to_le_bytes());
        header.resize(HEADER - 4, 0);
        header.extend(crc32c::crc32c(&header).to_le_bytes());
        let mut writer = Writer {
            out: BufWriter::new(out),
            byte: 0,
            chunk: Vec::with_capacity(CHUNK_REQUESTS),
            payload: Vec::new(),
            entries: Vec::new(),
            requests: 0,
            end: 0,
            last: 0,
        };
        writer.write(&header)?;
        Ok(writer)
    }

    /// Adds a request, which is not earlier than the one before it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add(&mut self, request: Request) -> io::Result<()> {
        assert!(request.at >= self.last, "requests come in order of time");
        self.last = request.at;
        self.end = self.end.max(request.end());
        self.chunk.push(request);
        match self.chunk.len() < CHUNK_REQUESTS {
            true => Ok(()),
            false => self.end_chunk(),
        }
    }

    /// Writes what is left, the index and the end.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        self.end_chunk()?;
        let index_byte = self.byte;
        let mut index = Vec::with_capacity(INDEX_HEADER + INDEX_ENTRY * self.entries.len() + END);
        index.extend(INDEX_MAGIC);
        index.extend((self.entries.len() as u32).to_le_bytes());
        for entry in &self.entries {
            for number in [entry.byte, entry.at, entry.before] {
                index.extend(number.to_le_bytes());
            }
        }
        for number in [index_byte, self.requests, self.end, self.last] {
            index.extend(number.to_le_bytes());
        }
        index.extend(crc32c::crc32c(&index).to_le_bytes());
        index.extend([0; 4]);
        index.extend(END_MAGIC);
        self.write(&index)?;
        self.out
            .into_inner()
            .map_err(io::IntoInnerError::into_error)
    }

    fn end_chunk(&mut self) -> io::Result<()> {
        let Some(first) = self.chunk.first().copied() else {
            return Ok(());
        };
        let common = |bits, request: &Request| bits | request.offset | request.bytes;
        let shift = self
            .chunk
            .iter()
            .fold(1 << SHIFT_MAX, common)
            .trailing_zeros();
        self.payload.clear();
        let (mut at, mut end) = (first.at, 0);
        for request in &self.chunk {
            let offset = request.offset >> shift;
            push(&mut self.payload, request.at - at);
            push(&mut self.payload, zigzag(offset.wrapping_sub(end) as i64));
            let length = request.bytes >> shift;
            push(&mut self.payload, length << 1 | u64::from(request.write));
            (at, end) = (request.at, offset + length);
        }
        let mut header = Vec::with_capacity(CHUNK_HEADER);
        header.extend(CHUNK_MAGIC);
        header.extend((self.chunk.len() as u32).to_le_bytes());
        header.extend((self.payload.len() as u32).to_le_bytes());
        header.extend([shift as u8, 0, 0, 0]);
        header.extend(first.at.to_le_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&self.payload), &header);
        header.extend(crc.to_le_bytes());
        self.entries.push(Entry {
            byte: self.byte,
            at: first.at,
            before: self.requests,
        });
        self.requests += self.chunk.len() as u64;
        self.chunk.clear();
        self.write(&header)?;
        let payload = std::mem::take(&mut self.payload);
        let written = self.write(&payload);
        self.payload = payload;
        written
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.byte += bytes.len() as u64;
        self.out.write_all(bytes)
    }
}

fn push(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

fn pull(payload: &[u8], at: &mut usize) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *payload.get(*at)?;
        *at += 1;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// What the end of a whole file tells.
///
/// # Errors
/// [`TraceError::Binary`]: the file has no end, as it is truncated.
pub(super) fn closing(path: &Path, file: &File) -> Result<About, TraceError> {
    let cannot_read = TraceError::io("read", path);
    let size = file.metadata().map_err(&cannot_read)?.len();
    let mut end = [0; END];
    let read = match size.checked_sub(END as u64) {
        Some(byte) => file.read_exact_at(&mut end, byte).map(|()| true),
        None => Ok(false),
    };
    if !read.map_err(&cannot_read)? || &end[40..] != END_MAGIC {
        return Err(TraceError::Binary {
            path: path.to_owned(),
            byte: size,
            requests: whole_requests(file, size).map_err(&cannot_read)?,
            reason: "the file ends here, before the trace does; copy or record it again".to_owned(),
        });
    }
    Ok(About {
        timed: true,
        requests: Some(u64_at(&end, 8)),
        end: Some(u64_at(&end, 16)),
        lasts: None,
    })
}

/// The requests in the chunks that a truncated file still has.
fn whole_requests(file: &File, size: u64) -> io::Result<u64> {
    let (mut byte, mut requests) = (HEADER as u64, 0);
    let mut header = [0; CHUNK_HEADER];
    while byte + CHUNK_HEADER as u64 <= size {
        file.read_exact_at(&mut header, byte)?;
        byte += CHUNK_HEADER as u64 + u64::from(u32_at(&header, 8));
        if &header[..4] != CHUNK_MAGIC || byte > size {
            break;
        }
        requests += u64::from(u32_at(&header, 4));
    }
    Ok(requests)
}

/// Opens a trace; `about`: what [`closing`] has found, where the input is a file.
pub(super) fn open(
    path: &Path,
    input: Box<dyn BufRead + Send>,
    about: Option<About>,
) -> Result<Trace, TraceError> {
    let mut reader = Reader {
        path: path.to_owned(),
        input,
        byte: 0,
        requests: 0,
        chunk: Vec::new().into_iter(),
        last: 0,
        entries: Vec::new(),
        end: 0,
        payload: Vec::new(),
        over: false,
    };
    let flags = reader.header()?;
    let about = About {
        timed: flags & TIMED != 0,
        requests: about.and_then(|about| about.requests),
        end: about.and_then(|about| about.end),
        lasts: None,
    };
    Ok(Trace::new(about, reader))
}

struct Reader {
    path: PathBuf,
    input: Box<dyn BufRead + Send>,
    byte: u64,
    requests: u64,
    chunk: std::vec::IntoIter<Request>,
    last: Nanos,
    entries: Vec<Entry>,
    end: u64,
    payload: Vec<u8>,
    /// The end was reached, or something that cannot be read.
    over: bool,
}

impl Reader {
    fn damaged(&self, reason: impl Into<String>) -> TraceError {
        TraceError::Binary {
            path: self.path.clone(),
            byte: self.byte,
            requests: self.requests,
            reason: reason.into(),
        }
    }

    fn exactly(&mut self, bytes: &mut [u8]) -> Result<(), TraceError> {
        let filled = fill(&mut self.input, bytes).map_err(TraceError::io("read", &self.path))?;
        if filled < bytes.len() {
            self.byte += filled as u64;
            let reason = "the trace is truncated here; copy or record it again";
            return Err(self.damaged(reason));
        }
        self.byte += filled as u64;
        Ok(())
    }

    fn header(&mut self) -> Result<u16, TraceError> {
        let mut header = [0; HEADER];
        self.exactly(&mut header)?;
        self.byte = 0;
        if &header[..8] != MAGIC {
            return Err(self.damaged("is neither a binary nor a text trace"));
        }
        let version = u16_at(&header, 8);
        if version != VERSION {
            return Err(self.damaged(format!(
                "has version {version}, and this hotset reads {VERSION}: use the hotset that wrote it"
            )));
        }
        if u32_at(&header, HEADER - 4) != crc32c::crc32c(&header[..HEADER - 4]) {
            return Err(self.damaged("the header's checksum is wrong"));
        }
        let flags = u16_at(&header, 10);
        if flags & !TIMED != 0 || header[12..HEADER - 4].iter().any(|&byte| byte != 0) {
            return Err(self.damaged("the header has a field that this hotset does not know"));
        }
        self.byte = HEADER as u64;
        Ok(flags)
    }

    /// Reads the next chunk; false: the trace ends.
    fn next_chunk(&mut self) -> Result<bool, TraceError> {
        let begun = self.byte;
        let mut magic = [0; 4];
        self.exactly(&mut magic)?;
        if &magic == INDEX_MAGIC {
            self.index(begun)?;
            return Ok(false);
        }
        if &magic != CHUNK_MAGIC {
            self.byte = begun;
            return Err(self.damaged("here should be a chunk of requests or the index"));
        }
        let mut header = [0; CHUNK_HEADER];
        header[..4].copy_from_slice(&magic);
        self.exactly(&mut header[4..])?;
        let (count, bytes) = (u32_at(&header, 4) as usize, u32_at(&header, 8) as usize);
        let shift = u32::from(header[12]);
        let possible = (1..=CHUNK_REQUESTS).contains(&count)
            && (3 * count..=REQUEST_BYTES_MAX * count).contains(&bytes);
        if !possible || shift > SHIFT_MAX || header[13..16] != [0; 3] {
            self.byte = begun;
            return Err(self.damaged("the chunk's header has a value that it cannot have"));
        }
        let mut payload = std::mem::take(&mut self.payload);
        payload.resize(bytes, 0);
        self.exactly(&mut payload)?;
        let crc = crc32c::crc32c_append(crc32c::crc32c(&payload), &header[..CHUNK_HEADER - 4]);
        let first = u64_at(&header, 16);
        let chunk = match crc == u32_at(&header, CHUNK_HEADER - 4) {
            true => self.decoded(&payload, count, shift, first),
            false => Err("the chunk's checksum is wrong: the file is damaged".to_owned()),
        };
        self.payload = payload;
        let ended = std::mem::replace(&mut self.byte, begun);
        let chunk = chunk.map_err(|reason| self.damaged(reason))?;
        self.byte = ended;
        self.entries.push(Entry {
            byte: begun,
            at: first,
            before: self.requests,
        });
        self.requests += count as u64;
        self.last = chunk[count - 1].at;
        self.chunk = chunk.into_iter();
        Ok(true)
    }

    fn decoded(
        &mut self,
        payload: &[u8],
        count: usize,
        shift: u32,
        first: Nanos,
    ) -> Result<Vec<Request>, String> {
        if first < self.last {
            return Err("the chunk is earlier than the one before it".to_owned());
        }
        let (mut place, mut at, mut end) = (0, first, 0u64);
        let mut chunk = Vec::with_capacity(count);
        let wrong = || "the chunk holds no requests".to_owned();
        for _ in 0..count {
            let mut number = || pull(payload, &mut place);
            let (Some(wait), Some(step), Some(length)) = (number(), number(), number()) else {
                return Err(wrong());
            };
            let offset = end.wrapping_add_signed(unzigzag(step));
            end = offset.wrapping_add(length >> 1);
            at = at.checked_add(wait).ok_or_else(wrong)?;
            if offset > end || end > BYTES_LIMIT >> shift {
                return Err(wrong());
            }
            self.end = self.end.max(end << shift);
            chunk.push(Request {
                at,
                write: length & 1 != 0,
                offset: offset << shift,
                bytes: length >> 1 << shift,
            });
        }
        match place == payload.len() {
            true => Ok(chunk),
            false => Err(wrong()),
        }
    }

    /// The index says what was read.
    fn index(&mut self, begun: u64) -> Result<(), TraceError> {
        let mut count = [0; 4];
        self.exactly(&mut count)?;
        let mut expected = Vec::with_capacity(INDEX_HEADER + INDEX_ENTRY * self.entries.len());
        expected.extend(INDEX_MAGIC);
        expected.extend((self.entries.len() as u32).to_le_bytes());
        for entry in &self.entries {
            for number in [entry.byte, entry.at, entry.before] {
                expected.extend(number.to_le_bytes());
            }
        }
        for number in [begun, self.requests, self.end, self.last] {
            expected.extend(number.to_le_bytes());
        }
        expected.extend(crc32c::crc32c(&expected).to_le_bytes());
        expected.extend([0; 4]);
        expected.extend(END_MAGIC);
        let mut stored = vec![0; expected.len()];
        stored[..4].copy_from_slice(INDEX_MAGIC);
        stored[4..8].copy_from_slice(&count);
        if stored[..8] == expected[..8] {
            self.exactly(&mut stored[8..])?;
        }
        if stored != expected {
            self.byte = begun;
            return Err(self.damaged("the index is not that of these requests"));
        }
        let mut more = [0];
        if self
            .input
            .read(&mut more)
            .map_err(TraceError::io("read", &self.path))?
            > 0
        {
            return Err(self.damaged("something comes behind the trace's end"));
        }
        Ok(())
    }
}

impl Iterator for Reader {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(request) = self.chunk.next() {
            return Some(Ok(request));
        }
        if self.over {
            return None;
        }
        let next = self.next_chunk();
        self.over = !matches!(next, Ok(true));
        match next {
            Ok(true) => self.chunk.next().map(Ok),
            Ok(false) => None,
            Err(error) => Some(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests;
