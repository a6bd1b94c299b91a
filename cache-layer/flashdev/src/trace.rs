//! Traces: what was asked of a device, and when. One request a line, in order of time:
//! `SECONDS R|W OFFSET BYTES`, offset and length in bytes.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use anyhow::Context;

use crate::Refusal;
use crate::time::{NANOS_PER_S, Nanos};

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

/// Reads a trace.
///
/// # Errors
/// The file cannot be read, or a line is no request or out of order: a [`Refusal`] that names it.
pub fn read(path: &Path) -> anyhow::Result<Vec<Request>> {
    let what = || format!("cannot read trace {}", path.display());
    let file = File::open(path).with_context(what)?;
    let mut trace: Vec<Request> = Vec::new();
    for (number, line) in (1..).zip(BufReader::new(file).lines()) {
        let line = line.with_context(what)?;
        let refusal = |reason: String| {
            let shown = path.display();
            Refusal(format!("{shown} line {number}, `{line}`: {reason}"))
        };
        let request = parse(&line).map_err(refusal)?;
        if trace.last().is_some_and(|last| last.at > request.at) {
            return Err(refusal("is earlier than the line before; sort by time".to_owned()).into());
        }
        trace.push(request);
    }
    Ok(trace)
}

fn parse(line: &str) -> Result<Request, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [seconds, kind, offset, bytes] = words[..] else {
        return Err("give SECONDS R|W OFFSET BYTES".to_owned());
    };
    let seconds: f64 = match seconds.parse() {
        Ok(seconds) if (0.0..1e10).contains(&seconds) => seconds,
        _ => return Err(format!("give seconds from 0 to 10^10, not `{seconds}`")),
    };
    let write = match kind {
        "R" => false,
        "W" => true,
        _ => return Err(format!("give R or W, not `{kind}`")),
    };
    let number = |word: &str, what: &str| {
        let parsed = word.parse::<u64>().ok().filter(|&bytes| bytes < 1 << 60);
        parsed.ok_or_else(|| format!("give {what} in bytes, not `{word}`"))
    };
    Ok(Request {
        at: (seconds * NANOS_PER_S).round() as Nanos,
        write,
        offset: number(offset, "an offset")?,
        bytes: number(bytes, "a length")?,
    })
}

/// Writes a trace while a device is served; who records never waits for the disk.
pub struct Recorder {
    begun: Instant,
    requests: Mutex<Option<Sender<Request>>>,
    writer: Mutex<Option<JoinHandle<std::io::Result<()>>>>,
}

impl Recorder {
    /// Starts a trace in a new file; its time begins now.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn start(path: &Path) -> anyhow::Result<Recorder> {
        let file =
            File::create(path).with_context(|| format!("cannot write trace {}", path.display()))?;
        let (requests, queue) = channel::<Request>();
        let write = move || {
            let mut out = BufWriter::new(file);
            for request in queue {
                let seconds = request.at as f64 / NANOS_PER_S;
                let kind = if request.write { 'W' } else { 'R' };
                let Request { offset, bytes, .. } = request;
                writeln!(out, "{seconds:.6} {kind} {offset} {bytes}")?;
            }
            out.flush()
        };
        Ok(Recorder {
            begun: Instant::now(),
            requests: Mutex::new(Some(requests)),
            writer: Mutex::new(Some(
                thread::Builder::new()
                    .name("trace".to_owned())
                    .spawn(write)?,
            )),
        })
    }

    /// Enters a request; after [`Recorder::finish`] it is not recorded any more.
    pub fn record(&self, write: bool, offset: u64, bytes: u64) {
        // Sent under the lock, so that the times are in order.
        if let Some(requests) = &*lock(&self.requests) {
            let at = self.begun.elapsed().as_nanos() as Nanos;
            // Fails when the file could not be written, which `finish` reports.
            let _ = requests.send(Request {
                at,
                write,
                offset,
                bytes,
            });
        }
    }

    /// Writes what is still to be written.
    ///
    /// # Errors
    /// The disk is full, for instance; the trace is not whole then.
    pub fn finish(&self) -> std::io::Result<()> {
        drop(lock(&self.requests).take());
        match lock(&self.writer).take().map(JoinHandle::join) {
            Some(Ok(written)) => written,
            _ => Err(std::io::Error::other("the trace's writer is gone")),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_recorded_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let recorder = Recorder::start(&path).unwrap();
        recorder.record(false, 8192, 4096);
        recorder.record(true, 0, 1 << 20);
        recorder.finish().unwrap();
        let trace = read(&path).unwrap();
        let shapes: Vec<_> = trace.iter().map(|r| (r.write, r.offset, r.bytes)).collect();
        assert_eq!(shapes, [(false, 8192, 4096), (true, 0, 1 << 20)]);
    }

    #[test]
    fn a_line_that_is_no_request_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        for bad in [
            "",
            "1 R 0",
            "x R 0 1",
            "-1 R 0 1",
            "2 r 0 1",
            "2 R -1 1",
            "2 R 0 1 1",
            "0 R 0 1",
        ] {
            std::fs::write(&path, format!("1.5 W 4096 512\n{bad}\n")).unwrap();
            let error = read(&path).unwrap_err();
            assert!(error.is::<Refusal>(), "{bad}");
            assert!(error.to_string().contains("line 2"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn times_are_kept_to_the_microsecond(micros in 0..1u64 << 40, offset in 0..1u64 << 50) {
            let line = format!("{:.6} W {offset} 512", micros as f64 / 1e6);
            let request = parse(&line).unwrap();
            prop_assert_eq!((request.at + 500) / 1000, micros);
            prop_assert_eq!(request.offset, offset);
        }
    }
}
