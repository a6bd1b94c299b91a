//! Traces: what was asked of a device, and when.
//!
//! A trace is read as a stream, whatever its length: [`open`] tells by its first bytes whether it is
//! [`binary`] or [`text`]; [`foreign`] reads what other programs have recorded.

pub mod binary;
pub mod foreign;
mod recorder;
mod text;

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::Serialize;
use virtual_time::{NANOS_PER_S, Nanos};

pub use recorder::Recorder;

/// In place of a file's name: standard input.
pub const STDIN: &str = "-";
/// Bytes read from a file at a time.
const BUFFER_BYTES: usize = 1 << 18;
/// No request of a trace ends beyond this byte.
const BYTES_LIMIT: u64 = 1 << 60;

/// Why a trace cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read or written.
    #[error("cannot {what} trace {path}: {source}")]
    Io {
        /// Read or write.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A line is no request.
    #[error("{path} line {number}, `{line}`: {reason}")]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        number: u64,
        /// What it says.
        line: String,
        /// What is wrong with it, and what would do.
        reason: String,
    },
    /// A binary trace is damaged, or of a version that is not known.
    #[error("{path} byte {byte}, after {requests} requests: {reason}")]
    Binary {
        /// Which file.
        path: PathBuf,
        /// Where in it.
        byte: u64,
        /// How many requests before that are sound.
        requests: u64,
        /// What is wrong, and what would do.
        reason: String,
    },
    /// A block number that no policy has a table for.
    #[error(
        "the trace has a request at byte {offset}, beyond the {limit} blocks of {block_bytes} \
         bytes that can be simulated: give a larger --block"
    )]
    TooFar {
        /// Where the request is.
        offset: u64,
        /// How many blocks there may be.
        limit: u64,
        /// How large they are.
        block_bytes: u64,
    },
    /// A policy or a replay that goes by time, and a trace that has none.
    #[error("{what} goes by time, and the trace has no times: record one that has them")]
    NoTimes {
        /// What needs them.
        what: String,
    },
    /// Something that a whole pass over a trace is needed for, of a stream.
    #[error("a stream cannot be read twice: write the trace to a file first")]
    Stream,
    /// The disk was slower than the requests.
    #[error(
        "{0} requests came faster than the disk took the trace, and are not in it: put it on a \
         faster disk"
    )]
    Lost(u64),
}

impl TraceError {
    /// Whether it is for the user to mend, rather than a failing disk.
    pub fn is_refusal(&self) -> bool {
        !matches!(self, TraceError::Io { .. } | TraceError::Lost(_))
    }

    fn io(what: &'static str, path: &Path) -> impl Fn(io::Error) -> TraceError + use<> {
        let path = path.to_owned();
        move |source| TraceError::Io {
            what,
            path: path.clone(),
            source,
        }
    }
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// When, since the start of the trace.
    pub at: Nanos,
    /// Whether it writes.
    pub write: bool,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u64,
}

/// As a line of a text trace.
impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let second = NANOS_PER_S as Nanos;
        let (whole, part) = (self.at / second, self.at % second);
        let kind = if self.write { 'W' } else { 'R' };
        write!(f, "{whole}.{part:09} {kind} {} {}", self.offset, self.bytes)
    }
}

impl Request {
    /// The byte behind its last.
    pub fn end(&self) -> u64 {
        self.offset + self.bytes
    }

    /// How many of its bytes lie in a block.
    pub fn bytes_in(&self, block: u64, block_bytes: u64) -> u64 {
        let begin = block * block_bytes;
        let end = self.end().min(begin + block_bytes);
        end.saturating_sub(self.offset.max(begin))
    }
}

/// What is known of a trace before its requests are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// Whether its requests have times; without them all are at 0.
    pub timed: bool,
    /// Number of its requests, if that is known.
    pub requests: Option<u64>,
    /// The byte behind the last that any request touches, if that is known.
    pub end: Option<u64>,
    /// When it ends, if that is known.
    pub lasts: Option<Nanos>,
}

/// The requests of a trace, in order of time, as they are read.
pub struct Trace {
    /// What is known beforehand.
    pub about: About,
    requests: Box<dyn Iterator<Item = Result<Request, TraceError>> + Send>,
}

impl Trace {
    /// A trace of requests that come from anywhere.
    pub fn new(
        about: About,
        requests: impl Iterator<Item = Result<Request, TraceError>> + Send + 'static,
    ) -> Trace {
        Trace {
            about,
            requests: Box::new(requests),
        }
    }
}

impl Iterator for Trace {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.requests.next()
    }
}

/// Opens a trace of our own, binary or text; [`STDIN`] is standard input.
///
/// # Errors
/// A [`TraceError`]: the file cannot be read, or is a binary trace that is truncated or of another
/// version. What is wrong with a request is told when it is read.
pub fn open(path: &Path) -> Result<Trace, TraceError> {
    let cannot_read = TraceError::io("read", path);
    let (mut input, file): (Box<dyn BufRead + Send>, _) = if path == Path::new(STDIN) {
        (Box::new(BufReader::new(io::stdin())), None)
    } else {
        let file = File::open(path).map_err(&cannot_read)?;
        let other = file.try_clone().map_err(&cannot_read)?;
        let is_file = other.metadata().map_err(&cannot_read)?.is_file();
        let input = BufReader::with_capacity(BUFFER_BYTES, file);
        (Box::new(input), is_file.then_some(other))
    };
    let first = input.fill_buf().map_err(&cannot_read)?;
    // A text trace begins with a digit, so the first letter tells them apart, however little a
    // pipe has delivered by now.
    if first.first() == binary::MAGIC.first() {
        let about = match file {
            Some(file) => Some(binary::closing(path, &file)?),
            None => None,
        };
        return binary::open(path, input, about);
    }
    Ok(text::open(path, input))
}

/// Reads a whole trace into memory.
///
/// # Errors
/// As [`open`], or a request that is out of order or none.
pub fn read(path: &Path) -> Result<Vec<Request>, TraceError> {
    open(path)?.collect()
}

/// What a pass over a trace finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Number of requests.
    pub requests: u64,
    /// Those that write.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// The byte behind the last that any request touches.
    pub end: u64,
    /// Time of the last request.
    pub seconds: f64,
    /// Whether the requests have times.
    pub timed: bool,
    /// Whether those are whole seconds, with several requests in one.
    pub whole_seconds: bool,
    #[serde(skip)]
    parts: bool,
}

impl Summary {
    /// Of a trace, before its first request.
    #[must_use]
    pub fn begin(timed: bool) -> Summary {
        Summary {
            timed,
            ..Summary::default()
        }
    }

    /// Counts a request.
    pub fn add(&mut self, request: &Request) {
        self.requests += 1;
        self.end = self.end.max(request.end());
        self.seconds = request.at as f64 / NANOS_PER_S;
        self.parts |= request.at % NANOS_PER_S as Nanos != 0;
        let several = self.requests as f64 > self.seconds + 1.0;
        self.whole_seconds = self.timed && several && !self.parts;
        if request.write {
            self.writes += 1;
            self.written_bytes += request.bytes;
        } else {
            self.read_bytes += request.bytes;
        }
    }

    /// Reads a trace to its end.
    ///
    /// # Errors
    /// A [`TraceError`]: a request is none.
    pub fn of(trace: Trace) -> Result<Summary, TraceError> {
        let mut summary = Summary::begin(trace.about.timed);
        for request in trace {
            summary.add(&request?);
        }
        Ok(summary)
    }
}

/// Reads as many bytes as there are, up to the buffer's length.
fn fill(input: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
