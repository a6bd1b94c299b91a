//! libCacheSim's oracleGeneral: 24 bytes a request, little-endian: seconds (u32), id (u64), bytes
//! (u32), when the id comes again (i64). Ids of its block traces are sectors.

use std::io::BufRead;
use std::path::{Path, PathBuf};

use virtual_time::{NANOS_PER_S, Nanos};

use super::super::{BYTES_LIMIT, Request, TraceError, fill};

const RECORD: usize = 24;

pub(super) struct Oracle {
    path: PathBuf,
    input: Box<dyn BufRead + Send>,
    id_bytes: u64,
    number: u64,
}

impl Oracle {
    pub(super) fn new(path: &Path, input: Box<dyn BufRead + Send>, id_bytes: u64) -> Oracle {
        Oracle {
            path: path.to_owned(),
            input,
            id_bytes,
            number: 0,
        }
    }

    fn damaged(&self, reason: String) -> TraceError {
        TraceError::Binary {
            path: self.path.clone(),
            byte: self.number * RECORD as u64,
            requests: self.number,
            reason,
        }
    }
}

impl Iterator for Oracle {
    type Item = Result<Request, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut record = [0; RECORD];
        match fill(&mut self.input, &mut record) {
            Err(error) => return Some(Err(TraceError::io("read", &self.path)(error))),
            Ok(0) => return None,
            Ok(RECORD) => {}
            Ok(part) => {
                let reason =
                    format!("the trace is truncated: {part} of a request's {RECORD} bytes");
                return Some(Err(self.damaged(reason)));
            }
        }
        let part = |from: usize, to: usize| {
            let bytes = record[from..to].iter().rev();
            bytes.fold(0u64, |number, &byte| number << 8 | u64::from(byte))
        };
        let (seconds, id, bytes) = (part(0, 4), part(4, 12), part(12, 16));
        let offset = id.checked_mul(self.id_bytes);
        let Some(offset) = offset.filter(|offset| offset + bytes < BYTES_LIMIT) else {
            let reason = format!(
                "id {id} of {} bytes each is no address of a disk: give another --id-size, or a \
                 trace of block storage",
                self.id_bytes
            );
            return Some(Err(self.damaged(reason)));
        };
        self.number += 1;
        Some(Ok(Request {
            at: seconds * NANOS_PER_S as Nanos,
            write: false,
            offset,
            bytes,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Vec<Request>, TraceError> {
        Oracle::new(
            Path::new("t"),
            Box::new(std::io::Cursor::new(bytes.to_vec())),
            512,
        )
        .collect()
    }

    fn record(seconds: u32, id: u64, bytes: u32) -> Vec<u8> {
        [
            &seconds.to_le_bytes()[..],
            &id.to_le_bytes(),
            &bytes.to_le_bytes(),
            &(-1i64).to_le_bytes(),
        ]
        .concat()
    }

    #[test]
    fn ids_are_sectors() {
        let bytes = [record(5, 42_932_745, 4096), record(6, 8, 512)].concat();
        let shapes: Vec<_> = read(&bytes)
            .unwrap()
            .iter()
            .map(|r| (r.at, r.offset, r.bytes))
            .collect();
        let second = 1_000_000_000;
        assert_eq!(
            shapes,
            [
                (5 * second, 42_932_745 * 512, 4096),
                (6 * second, 4096, 512)
            ]
        );
    }

    #[test]
    fn what_is_no_trace_is_named_by_position() {
        let sound = record(5, 1, 512);
        for (bad, named) in [
            (record(5, u64::MAX, 1), "--id-size"),
            (vec![0; 23], "truncated"),
        ] {
            let error = read(&[sound.clone(), bad].concat())
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("byte 24, after 1 requests") && error.contains(named),
                "{error}"
            );
        }
    }
}
