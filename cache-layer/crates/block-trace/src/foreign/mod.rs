//! What other programs have recorded, as requests. Times begin with the first request.

mod block_layer;
mod cloud;
mod csv;
mod fio;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use virtual_time::Nanos;

use super::text::Lines;
use super::{About, Request, STDIN, Trace, TraceError};

/// Requests that may be out of order with each other, as CPUs write their events down.
const WINDOW: usize = 1 << 16;

/// Who recorded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// blkparse's text, of what blktrace has recorded.
    Blkparse,
    /// The kernel's text of block events, from trace_pipe or trace-cmd report.
    Ftrace,
    /// fio's write_iolog, version 2 or 3.
    Iolog,
    /// MSR Cambridge (SNIA): TIME,HOST,DISK,TYPE,OFFSET,SIZE,RESPONSE.
    Msr,
    /// Systor '17 (SNIA): TIME,RESPONSE,TYPE,LUN,OFFSET,SIZE, with a line of headings.
    Systor,
    /// libCacheSim's oracleGeneral: all are reads, an id is a sector.
    OracleGeneral,
}

/// How to read it.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only this disk, as the trace names it; needed if it has several.
    pub disk: Option<String>,
    /// Bytes of an oracleGeneral id; 512 if not given.
    pub id_bytes: Option<u64>,
}

/// Opens what another program has recorded; [`STDIN`] is standard input.
///
/// # Errors
/// [`TraceError::Io`]: the file cannot be read. What is wrong with a line is told when it is read.
pub fn open(path: &Path, format: Format, options: &Options) -> Result<Trace, TraceError> {
    let input: Box<dyn BufRead + Send> = match path == Path::new(STDIN) {
        true => Box::new(BufReader::new(io::stdin())),
        false => {
            let file = File::open(path).map_err(TraceError::io("read", path))?;
            Box::new(BufReader::with_capacity(super::BUFFER_BYTES, file))
        }
    };
    parsed(path, input, format, options)
}

fn parsed(
    path: &Path,
    input: Box<dyn BufRead + Send>,
    format: Format,
    options: &Options,
) -> Result<Trace, TraceError> {
    let mut disk = Disk::new(options.disk.clone());
    let timed = |requests: Box<dyn Iterator<Item = _> + Send>| {
        let about = About {
            timed: true,
            requests: None,
            end: None,
            lasts: None,
        };
        Trace::new(about, InOrder::new(path, requests))
    };
    Ok(match format {
        Format::Blkparse => {
            let mut events = block_layer::Blkparse::default();
            timed(Box::new(Lines::new(path, input, move |line: &str| {
                events.line(line, &mut disk)
            })))
        }
        Format::Ftrace => {
            let mut events = block_layer::Ftrace::default();
            timed(Box::new(Lines::new(path, input, move |line: &str| {
                events.line(line, &mut disk)
            })))
        }
        Format::Msr => timed(Box::new(Lines::new(path, input, move |line: &str| {
            csv::msr(line, &mut disk)
        }))),
        Format::Systor => timed(Box::new(Lines::new(path, input, move |line: &str| {
            csv::systor(line, &mut disk)
        }))),
        Format::OracleGeneral => {
            let id_bytes = options.id_bytes.unwrap_or(512);
            timed(Box::new(cloud::Oracle::new(path, input, id_bytes)))
        }
        Format::Iolog => return fio::open(path, input, disk),
    })
}

/// What the kernel writes to a pipe about one disk and its partitions, as requests to the disk.
pub fn events(path: &Path, input: Box<dyn BufRead + Send>) -> Trace {
    let mut events = block_layer::Ftrace::default();
    let lines = Lines::new(path, input, move |line: &str| {
        events.line(line, &mut Disk::Any)
    });
    let about = About {
        timed: true,
        requests: None,
        end: None,
        lasts: None,
    };
    Trace::new(about, InOrder::new(path, Box::new(lines)))
}

/// Which disk of a trace is meant.
enum Disk {
    Named(String),
    /// The only one, once it was seen.
    Only(Option<String>),
    Any,
}

impl Disk {
    fn new(named: Option<String>) -> Disk {
        named.map_or(Disk::Only(None), Disk::Named)
    }

    /// Whether a request to this disk counts. A second one is an error where none is named.
    fn is(&mut self, name: &str) -> Result<bool, String> {
        match self {
            Disk::Any => Ok(true),
            Disk::Named(meant) => Ok(meant == name),
            Disk::Only(Some(first)) if first == name => Ok(true),
            Disk::Only(Some(first)) => Err(format!(
                "is of disk {name}, and those before it are of {first}: name one with --of-disk"
            )),
            Disk::Only(seen) => {
                *seen = Some(name.to_owned());
                Ok(true)
            }
        }
    }
}

/// A request by when it was made and the how manyth it is: its kind, offset and bytes.
type Waiting = (Nanos, u64, bool, u64, u64);

/// Puts requests in order that are nearly so, and lets time begin with the first.
struct InOrder {
    path: PathBuf,
    requests: Box<dyn Iterator<Item = Result<Request, TraceError>> + Send>,
    waiting: BinaryHeap<Reverse<Waiting>>,
    number: u64,
    begun: Option<Nanos>,
    last: Nanos,
    failed: bool,
}

impl InOrder {
    fn new(
        path: &Path,
        requests: Box<dyn Iterator<Item = Result<Request, TraceError>> + Send>,
    ) -> InOrder {
        InOrder {
            path: path.to_owned(),
            requests,
            waiting: BinaryHeap::new(),
            number: 0,
            begun: None,
            last: 0,
            failed: false,
        }
    }

    fn earlier(&self, request: &Request) -> TraceError {
        let ms = (self.last - request.at) as f64 / virtual_time::NANOS_PER_MS;
        TraceError::Line {
            path: self.path.clone(),
            number: self.number,
            line: format!(
                "{} at byte {}",
                if request.write { "write" } else { "read" },
                request.offset
            ),
            reason: format!(
                "request {} of the disk is {ms:.3} ms earlier than one that is more than {WINDOW} \
                 requests before it; sort by time",
                self.number
            ),
        }
    }
}

impl Iterator for InOrder {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.failed && self.waiting.len() < WINDOW {
            match self.requests.next() {
                None => break,
                Some(Err(error)) => {
                    self.failed = true;
                    return Some(Err(error));
                }
                Some(Ok(request)) => {
                    self.number += 1;
                    if request.at < self.last {
                        self.failed = true;
                        return Some(Err(self.earlier(&request)));
                    }
                    let Request {
                        at,
                        write,
                        offset,
                        bytes,
                    } = request;
                    self.waiting
                        .push(Reverse((at, self.number, write, offset, bytes)));
                }
            }
        }
        if self.failed {
            return None;
        }
        let Reverse((at, _, write, offset, bytes)) = self.waiting.pop()?;
        self.last = at;
        Some(Ok(Request {
            at: at - *self.begun.get_or_insert(at),
            write,
            offset,
            bytes,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn from_text(text: &str, format: Format, disk: Option<&str>) -> Vec<Request> {
        tried(text, format, disk).unwrap()
    }

    pub(super) fn tried(
        text: &str,
        format: Format,
        disk: Option<&str>,
    ) -> Result<Vec<Request>, TraceError> {
        let options = Options {
            disk: disk.map(str::to_owned),
            ..Options::default()
        };
        let input = Box::new(io::Cursor::new(text.as_bytes().to_vec()));
        parsed(Path::new("t"), input, format, &options)?.collect()
    }

    #[test]
    fn a_little_disorder_is_put_right_and_much_is_named() {
        let mut text = String::from("200,h,0,Read,0,512,1\n100,h,0,Write,512,512,1\n");
        let requests = from_text(&text, Format::Msr, None);
        let shapes: Vec<_> = requests.iter().map(|r| (r.at, r.write, r.offset)).collect();
        assert_eq!(shapes, [(0, true, 512), (10_000, false, 0)]);
        for number in 0..=WINDOW {
            text += &format!("{},h,0,Read,0,512,1\n", 1000 + number);
        }
        text += "500,h,0,Read,0,512,1\n";
        let error = tried(&text, Format::Msr, None).unwrap_err();
        let named = format!("request {}", WINDOW + 4);
        assert!(error.to_string().contains(&named), "{error}");
    }
}
