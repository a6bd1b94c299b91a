//! A text trace: one request a line, in order of time: `SECONDS R|W OFFSET BYTES`, offset and length
//! in bytes.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use virtual_time::{NANOS_PER_S, Nanos};

use super::{About, BYTES_LIMIT, Request, Trace, TraceError};

/// Reads requests line by line.
pub(super) fn open(path: &Path, input: Box<dyn BufRead + Send>) -> Trace {
    let about = About {
        timed: true,
        requests: None,
        end: None,
        lasts: None,
    };
    let mut last = 0;
    let lines = Lines::new(path, input, move |line: &str| {
        let request = parse(line)?;
        if request.at < last {
            return Err("is earlier than the line before; sort by time".to_owned());
        }
        last = request.at;
        Ok(Some(request))
    });
    Trace::new(about, lines)
}

/// Requests from a text, by what a dialect makes of each line: a request, nothing, or why it is
/// neither.
pub(super) struct Lines<D> {
    path: PathBuf,
    input: Box<dyn BufRead + Send>,
    line: String,
    number: u64,
    dialect: D,
}

impl<D: FnMut(&str) -> Result<Option<Request>, String>> Lines<D> {
    pub(super) fn new(path: &Path, input: Box<dyn BufRead + Send>, dialect: D) -> Lines<D> {
        Lines {
            path: path.to_owned(),
            input,
            line: String::new(),
            number: 0,
            dialect,
        }
    }

    fn refused(&self, reason: String) -> TraceError {
        TraceError::Line {
            path: self.path.clone(),
            number: self.number,
            line: self.line.trim_end_matches(['\n', '\r']).to_owned(),
            reason,
        }
    }
}

impl<D: FnMut(&str) -> Result<Option<Request>, String>> Iterator for Lines<D> {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            self.line.clear();
            self.number += 1;
            match self.input.read_line(&mut self.line) {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    return Some(Err(self.refused("is not text".to_owned())));
                }
                Err(error) => return Some(Err(TraceError::io("read", &self.path)(error))),
            }
            let line = self.line.trim_end_matches(['\n', '\r']);
            match (self.dialect)(line) {
                Ok(None) => {}
                Ok(Some(request)) => return Some(Ok(request)),
                Err(reason) => return Some(Err(self.refused(reason))),
            }
        }
    }
}

pub(super) fn parse(line: &str) -> Result<Request, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [at, kind, offset, bytes] = words[..] else {
        return Err("give SECONDS R|W OFFSET BYTES".to_owned());
    };
    let write = match kind {
        "R" => false,
        "W" => true,
        _ => return Err(format!("give R or W, not `{kind}`")),
    };
    Ok(Request {
        at: seconds(at)?,
        write,
        offset: number(offset, "an offset")?,
        bytes: number(bytes, "a length")?,
    })
}

/// Seconds as nanoseconds.
pub(super) fn seconds(word: &str) -> Result<Nanos, String> {
    match word.parse::<f64>() {
        Ok(seconds) if (0.0..1e10).contains(&seconds) => {
            Ok((seconds * NANOS_PER_S).round() as Nanos)
        }
        _ => Err(format!("give seconds from 0 to 10^10, not `{word}`")),
    }
}

/// A number of bytes.
pub(super) fn number(word: &str, what: &str) -> Result<u64, String> {
    let parsed = word.parse::<u64>().ok().filter(|&n| n < BYTES_LIMIT / 2);
    parsed.ok_or_else(|| format!("give {what} in bytes, not `{word}`"))
}

/// Writes a request as a line.
pub(super) fn write_line(out: &mut dyn Write, request: &Request) -> io::Result<()> {
    let seconds = request.at as f64 / NANOS_PER_S;
    let kind = if request.write { 'W' } else { 'R' };
    let Request { offset, bytes, .. } = request;
    writeln!(out, "{seconds:.6} {kind} {offset} {bytes}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;
    use proptest::prelude::*;

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
            assert!(error.is_refusal(), "{bad}");
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
