//! fio's log of what it asked for (`write_iolog`); HOWTO, "Trace file format", and iolog.c.

use std::io::BufRead;
use std::path::Path;

use virtual_time::Nanos;

use super::super::text::{Lines, number};
use super::super::{About, Request, Trace, TraceError};
use super::{Disk, InOrder};

/// Version 3 has microseconds before each action. Version 2 has none, but may say how long to wait:
/// without any such word its requests have no times.
pub(super) fn open(
    path: &Path,
    mut input: Box<dyn BufRead + Send>,
    disk: Disk,
) -> Result<Trace, TraceError> {
    let mut first = String::new();
    input
        .read_line(&mut first)
        .map_err(TraceError::io("read", path))?;
    let timed = match first.trim_end() {
        "fio version 3 iolog" => true,
        "fio version 2 iolog" => false,
        other => {
            return Err(TraceError::Line {
                path: path.to_owned(),
                number: 1,
                line: other.to_owned(),
                reason: "give a log that begins with `fio version 2 iolog` or 3".to_owned(),
            });
        }
    };
    let mut log = Log {
        timed,
        disk,
        now: 0,
    };
    let lines = Lines::new(path, input, move |line: &str| log.line(line));
    let about = About {
        timed,
        requests: None,
        end: None,
        lasts: None,
    };
    Ok(Trace::new(about, InOrder::new(path, Box::new(lines))))
}

struct Log {
    timed: bool,
    disk: Disk,
    now: Nanos,
}

impl Log {
    fn line(&mut self, line: &str) -> Result<Option<Request>, String> {
        let mut words: Vec<&str> = line.split_whitespace().collect();
        if self.timed && !words.is_empty() {
            let micros = words.remove(0);
            self.now = micros
                .parse::<u64>()
                .ok()
                .and_then(|micros| micros.checked_mul(1000))
                .ok_or_else(|| format!("give microseconds, not `{micros}`"))?;
        }
        let (file, action, offset, bytes) = match words[..] {
            [_, "add" | "open" | "close"] => return Ok(None),
            [file, action, offset, bytes] => (file, action, offset, bytes),
            _ => return Err("give FILE ACTION OFFSET LENGTH".to_owned()),
        };
        let write = match action {
            "read" => false,
            "write" => true,
            "sync" | "datasync" | "trim" => return Ok(None),
            "wait" => {
                return Err(
                    "waits, which only fio's version 3 says as times of requests: write the log \
                     with fio 3.31 or later"
                        .to_owned(),
                );
            }
            _ => return Err(format!("has an action that is not known, `{action}`")),
        };
        if !self.disk.is(file)? {
            return Ok(None);
        }
        Ok(Some(Request {
            at: self.now,
            write,
            offset: number(offset, "an offset")?,
            bytes: number(bytes, "a length")?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::tests::{from_text, tried};

    #[test]
    fn both_versions_are_read() {
        let third = "fio version 3 iolog
10 /dev/sdb add
12 /dev/sdb open
100 /dev/sdb read 4096 8192
350 /dev/sdb write 0 512
360 /dev/sdb sync 0 0
400 /dev/sdb close
";
        let requests = from_text(third, Format::Iolog, None);
        let shapes: Vec<_> = requests
            .iter()
            .map(|r| (r.at, r.write, r.offset, r.bytes))
            .collect();
        assert_eq!(shapes, [(0, false, 4096, 8192), (250_000, true, 0, 512)]);
        let second =
            "fio version 2 iolog\n/f add\n/f open\n/f read 0 4096\n/f write 4096 4096\n/f close\n";
        assert_eq!(from_text(second, Format::Iolog, None).len(), 2);
    }

    #[test]
    fn what_is_not_known_is_named() {
        for bad in [
            "5 /f fsync 0 0",
            "x /f read 0 0",
            "5 /f read 0",
            "5 /g read 0 1",
            "5 /f wait 1 0",
        ] {
            let text = format!("fio version 3 iolog\n1 /f add\n2 /f read 0 512\n{bad}\n");
            let error = tried(&text, Format::Iolog, None).unwrap_err();
            assert!(error.is_refusal(), "{bad}");
        }
        let error = tried("fio version 4 iolog\n", Format::Iolog, None).unwrap_err();
        assert!(error.to_string().contains("line 1"), "{error}");
    }
}
