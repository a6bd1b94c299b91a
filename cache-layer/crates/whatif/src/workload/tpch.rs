//! What TPC-H asks of a disk: the scans of its 22 queries (TPC-H 3.0, clause 2.4), one query after
//! the other, as fast as is given. A table that is larger than a quarter of the database's cache is
//! read past it (PostgreSQL's ring of `initscan`, heapam.c), a smaller one is read once.
//!
//! Left out: indexes, temporary files and updates.

use virtual_time::{NANOS_PER_S, Nanos};

use super::PAGE;
use crate::trace::{About, Request, Trace};

/// How much is read at a time.
const READ_BYTES: u64 = 128 << 10;

/// Bytes of the tables at scale 1, in PostgreSQL.
const TABLES: [(&str, u64); 8] = [
    ("lineitem", 879 << 20),
    ("orders", 204 << 20),
    ("partsupp", 136 << 20),
    ("customer", 28 << 20),
    ("part", 32 << 20),
    ("supplier", 1792 << 10),
    ("nation", PAGE),
    ("region", PAGE),
];

/// By query: the tables that it reads, one as often as it is named there; by their first letters, PS
/// is partsupp.
const QUERIES: [&str; 22] = [
    "L",
    "P S PS N R PS S N R",
    "C O L",
    "O L",
    "C O L S N R",
    "L",
    "S L O C N N",
    "P S L O C N N R",
    "P S L PS O N",
    "C O L N",
    "PS S N PS S N",
    "O L",
    "C O",
    "L P",
    "L L S",
    "PS P S",
    "L P L",
    "C O L L",
    "L P",
    "S N PS P L",
    "S L O N L L",
    "C C O",
];

/// What is generated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scans {
    /// Its scale factor.
    pub scale: f64,
    /// The database's own cache.
    pub buffer_bytes: u64,
    /// How fast it reads.
    pub bytes_per_s: u64,
    /// How often all queries are run.
    pub rounds: u32,
}

impl Scans {
    /// The requests, as they are made.
    pub fn trace(self) -> Trace {
        let about = About {
            timed: true,
            requests: None,
            end: Some(place(self.scale, TABLES.len()).0),
            lasts: None,
        };
        let mut cached = [false; TABLES.len()];
        let rounds = (0..self.rounds).flat_map(|_| QUERIES);
        let tables = rounds.flat_map(|query| query.split(' ').map(number));
        let scans = tables.filter(move |&table| {
            let small = place(self.scale, table).1 <= self.buffer_bytes / 4;
            !(small && std::mem::replace(&mut cached[table], true))
        });
        let requests = scans.flat_map(move |table| scan(self.scale, table));
        let mut read = 0;
        let timed = requests.map(move |(offset, bytes)| {
            let at =
                (u128::from(read) * NANOS_PER_S as u128 / u128::from(self.bytes_per_s)) as Nanos;
            read += bytes;
            Ok(Request {
                at,
                write: false,
                offset,
                bytes,
            })
        });
        Trace::new(about, timed)
    }
}

fn number(letter: &str) -> usize {
    let letters = ["L", "O", "PS", "C", "P", "S", "N", "R"];
    letters
        .iter()
        .position(|&known| known == letter)
        .expect("a table's letter")
}

/// Where a table begins and how large it is; one behind the other.
fn place(scale: f64, table: usize) -> (u64, u64) {
    let size = |bytes: u64| {
        ((bytes as f64 * scale) as u64)
            .max(PAGE)
            .next_multiple_of(PAGE)
    };
    let before = TABLES[..table].iter().map(|&(_, bytes)| size(bytes)).sum();
    (
        before,
        TABLES.get(table).map_or(0, |&(_, bytes)| size(bytes)),
    )
}

fn scan(scale: f64, table: usize) -> impl Iterator<Item = (u64, u64)> {
    let (first, size) = place(scale, table);
    (0..size.div_ceil(READ_BYTES)).map(move |part| {
        let done = part * READ_BYTES;
        (first + done, READ_BYTES.min(size - done))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Summary;

    fn scans(buffer_bytes: u64, rounds: u32) -> Scans {
        Scans {
            scale: 0.1,
            buffer_bytes,
            bytes_per_s: 100 << 20,
            rounds,
        }
    }

    #[test]
    fn large_tables_are_read_by_every_query_and_small_ones_once() {
        let database = place(0.1, TABLES.len()).0;
        let all = Summary::of(scans(database * 4, 3).trace()).unwrap();
        assert_eq!(all.read_bytes, database);
        let none = |rounds| Summary::of(scans(0, rounds).trace()).unwrap();
        assert_eq!(none(2).read_bytes, 2 * none(1).read_bytes);
        let lineitem = place(0.1, 0).1;
        let reads = QUERIES
            .iter()
            .flat_map(|query| query.split(' '))
            .filter(|&t| t == "L")
            .count();
        assert!(none(1).read_bytes > reads as u64 * lineitem);
        let seconds = none(1).read_bytes as f64 / f64::from(100 << 20);
        assert!((none(1).seconds - seconds).abs() < 0.01 * seconds);
        assert_eq!(none(1).end, database);
    }

    #[test]
    fn a_trace_tells_its_end_beforehand() {
        let trace = scans(0, 1).trace();
        let end = trace.about.end;
        assert_eq!(end, Some(Summary::of(trace).unwrap().end));
    }
}
