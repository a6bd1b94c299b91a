//! What lies in the first mebibyte of a flash device: the label, twice, and a record of each disk, twice.
//!
//! The form of the label is `block/label.py`'s. A record is one line, which says how a disk was
//! left and what its origin looked like then; whatever cuts a change short, one of its two copies
//! is whole.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::media::{Medium, digest};
use crate::origin::Seen;

const MAGIC: &str = "HOTSET-LABEL";
/// Those of before the first release, with versions of their own.
const MAGICS_BEFORE_RELEASE: [&str; 2] = ["HOTSET-CARD-LABEL", "HOTSET-FLASH-LABEL"];
const VERSION: u64 = 1;
const COPY: u64 = 64 * 1024;
const FIRST: u64 = 256 * 1024;
const RECORD_MAGIC: &str = "HOTSET-DISK-RECORD";
const RECORD: u64 = 4096;
const RECORDS_AT: [u64; 2] = [512 * 1024, 768 * 1024];

/// The body of the newest whole label: the flash device as JSON.
pub fn read(flash: &Medium, name: &Path) -> Result<String> {
    let text = flash
        .read(FIRST, 2 * COPY as usize)
        .with_context(|| format!("{} cannot be read", name.display()))?;
    let copies = text.chunks(COPY as usize).map(parse);
    let mut newest: Option<(u64, String)> = None;
    for copy in copies {
        let Some(copy) = copy? else { continue };
        if newest.as_ref().is_none_or(|known| copy.0 > known.0) {
            newest = Some(copy);
        }
    }
    match newest {
        Some((_, body)) => Ok(body),
        None => bail!(
            "{} has no label of hotset's: it was overwritten, or is another device: hotset tier scan",
            name.display()
        ),
    }
}

/// Generation and body of one copy; None if it is none, or torn. One of another version is an error:
/// nobody but the hotset that wrote it knows what it says.
fn parse(copy: &[u8]) -> Result<Option<(u64, String)>> {
    let Some(end) = copy.iter().position(|byte| *byte == b'\n') else {
        return Ok(None);
    };
    let head = String::from_utf8_lossy(&copy[..end]);
    let words: Vec<&str> = head.split(' ').collect();
    if MAGICS_BEFORE_RELEASE.contains(&words[0]) {
        bail!(
            "the label was written by a hotset of before its first release, and this hotset-boot \
             does not read it: run `hotset tier activate` of the hotset that wrote it"
        );
    }
    if words.first() != Some(&MAGIC) {
        return Ok(None);
    }
    match words.get(1).and_then(|word| word.parse::<u64>().ok()) {
        Some(VERSION) => {}
        Some(other) => bail!(
            "the label is of version {other}, and this hotset-boot reads version {VERSION}: \
             run `hotset tier activate` of the hotset that wrote it"
        ),
        None => return Ok(None),
    }
    let [_, _, generation, length, checksum] = words[..] else {
        return Ok(None);
    };
    let (Ok(generation), Ok(length)) = (generation.parse::<u64>(), length.parse::<usize>()) else {
        return Ok(None);
    };
    let Some(body) = copy.get(end + 1..).and_then(|rest| rest.get(..length)) else {
        return Ok(None);
    };
    let head = format!("{VERSION} {generation} ");
    if digest([head.as_bytes(), body]) != checksum {
        return Ok(None);
    }
    Ok(String::from_utf8(body.to_vec())
        .ok()
        .map(|body| (generation, body)))
}

/// How a tier was left. `Active` is written before it can take its first write, so whoever finds
/// that on a tier that is down knows that it ended by a crash; `Ended`, that the computer went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    Active,
    Ended,
    Dirty,
    Clean,
}

impl Word {
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "active" => Some(Self::Active),
            "ended" => Some(Self::Ended),
            "dirty" => Some(Self::Dirty),
            "clean" => Some(Self::Clean),
            _ => None,
        }
    }

    pub fn text(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Ended => "ended",
            Self::Dirty => "dirty",
            Self::Clean => "clean",
        }
    }
}

/// A disk's record. `seen`: what its origin looked like then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    pub word: Word,
    pub seen: Seen,
}

/// What a record ends with.
#[derive(Serialize, Deserialize)]
struct Tail {
    sequence: u64,
    seen: Seen,
}

/// The newest whole record in a slot that has this key. One that another version wrote is an error:
/// the copy beside it says how the disk was left before.
pub fn read_record(flash: &Medium, slot: u64, key: &str) -> Result<Option<Record>> {
    let copies = both(flash, slot, key)?;
    Ok(newest(copies)
        .filter(|copy| copy.key == key)
        .map(|copy| copy.record))
}

struct RecordCopy {
    key: String,
    sequence: u64,
    record: Record,
}

fn both(flash: &Medium, slot: u64, key: &str) -> Result<[Option<RecordCopy>; 2]> {
    let mut copies = [None, None];
    for (at, copy) in RECORDS_AT.iter().zip(&mut copies) {
        let bytes = flash
            .read(at + slot * RECORD, RECORD as usize)
            .context("the record")?;
        *copy = parse_record(&String::from_utf8_lossy(&bytes), key)?;
    }
    Ok(copies)
}

fn newest([first, second]: [Option<RecordCopy>; 2]) -> Option<RecordCopy> {
    match (first, second) {
        (Some(first), Some(second)) => Some(if second.sequence > first.sequence {
            second
        } else {
            first
        }),
        (first, second) => first.or(second),
    }
}

/// None: there is none, it is torn, or it is another disk's and not known.
fn parse_record(text: &str, key: &str) -> Result<Option<RecordCopy>> {
    let Some(body) = sealed(text) else {
        return Ok(None);
    };
    let record = understood(body);
    if record.is_none() && body.split(' ').next() == Some(key) {
        bail!(
            "how the disk was left was put down by another version of hotset: use that one. To give \
             the disk up without it, which loses what only the flash holds: `hotset tier detach \
             --flash-is-dead`"
        );
    }
    Ok(record)
}

/// What a record says, if it is whole.
fn sealed(text: &str) -> Option<&str> {
    let line = text.split('\n').next()?;
    let body = line.strip_prefix(RECORD_MAGIC)?.strip_prefix(' ')?;
    let (body, checksum) = body.rsplit_once(' ')?;
    (digest([body.as_bytes()])[..32] == *checksum).then_some(body)
}

fn understood(body: &str) -> Option<RecordCopy> {
    let words: Vec<&str> = body.splitn(3, ' ').collect();
    let [key, word, tail] = words[..] else {
        return None;
    };
    let word = Word::parse(word)?;
    let Tail { sequence, seen } = serde_json::from_str(tail).ok()?;
    Some(RecordCopy {
        key: key.into(),
        sequence,
        record: Record { word, seen },
    })
}

/// Write both copies, the older first: a whole one is there at every moment.
pub fn write_record(flash: &Medium, slot: u64, key: &str, word: Word, seen: &Seen) -> Result<()> {
    let [first, second] = both(flash, slot, key)?;
    let number = |copy: &Option<RecordCopy>| copy.as_ref().map(|copy| copy.sequence);
    let sequence = number(&first).max(number(&second)).unwrap_or(0) + 1;
    let second_is_older = number(&second) < number(&first);
    let mut order = RECORDS_AT;
    if second_is_older {
        order.reverse();
    }
    let text = render(key, word, seen, sequence)?;
    for at in order {
        flash
            .write(at + slot * RECORD, text.as_bytes())
            .context("the record cannot be written")?;
    }
    Ok(())
}

fn render(key: &str, word: Word, seen: &Seen, sequence: u64) -> Result<String> {
    let tail = serde_json::to_string(&Tail {
        sequence,
        seen: seen.clone(),
    })?;
    let body = format!("{key} {} {tail}", word.text());
    let line = format!(
        "{RECORD_MAGIC} {body} {}\n",
        &digest([body.as_bytes()])[..32]
    );
    if line.len() > RECORD as usize {
        bail!("the record does not fit its place ({} bytes)", line.len());
    }
    Ok(format!("{line:<4096}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flash() -> (tempfile::TempDir, Medium) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("flash");
        std::fs::File::create(&path)
            .unwrap()
            .set_len(1 << 20)
            .unwrap();
        let medium = Medium::open(&path, true).unwrap();
        (folder, medium)
    }

    fn seen(fingerprint: &str) -> Seen {
        Seen {
            fingerprint: fingerprint.into(),
            boot: "b".into(),
            ..Seen::default()
        }
    }

    #[test]
    fn a_record_survives_a_torn_write_of_either_copy() {
        let (_folder, flash) = flash();
        write_record(&flash, 3, "k", Word::Active, &seen("-")).unwrap();
        write_record(&flash, 3, "k", Word::Dirty, &seen("f")).unwrap();
        for at in RECORDS_AT {
            let kept = flash.read(at + 3 * RECORD, 4096).unwrap();
            let mut torn = kept.clone();
            torn[20..40].fill(0);
            flash.write(at + 3 * RECORD, &torn).unwrap();
            let record = read_record(&flash, 3, "k").unwrap().unwrap();
            assert_eq!((record.word, record.seen), (Word::Dirty, seen("f")));
            flash.write(at + 3 * RECORD, &kept).unwrap();
        }
        assert!(read_record(&flash, 3, "another").unwrap().is_none());
        assert!(read_record(&flash, 4, "k").unwrap().is_none());
    }

    /// The later one was passed over, and the copy of before it counted: a disk that it had left
    /// dirty, as clean.
    #[test]
    fn a_record_of_another_hotset_is_neither_passed_over_nor_overwritten() {
        let (_folder, flash) = flash();
        write_record(&flash, 0, "k", Word::Clean, &seen("f")).unwrap();
        for body in ["k suspended {}", "k dirty {\"hereafter\":1}", "k clean"] {
            let seal = &digest([body.as_bytes()])[..32];
            let line = format!("{RECORD_MAGIC} {body} {seal}\n");
            let later = format!("{line:<4096}");
            flash.write(RECORDS_AT[1], later.as_bytes()).unwrap();
            let message = read_record(&flash, 0, "k").unwrap_err().to_string();
            assert!(message.contains("another version"), "{message}");
            write_record(&flash, 0, "k", Word::Active, &seen("-")).unwrap_err();
            assert_eq!(flash.read(RECORDS_AT[1], 4096).unwrap(), later.as_bytes());
            assert!(read_record(&flash, 0, "another").unwrap().is_none());
        }
    }

    /// As it lies on the flash: whatever differs is another version.
    #[test]
    fn a_record_is_written_as_it_ever_was() {
        let (_folder, flash) = flash();
        write_record(&flash, 0, "k", Word::Dirty, &seen("f")).unwrap();
        let bytes = flash.read(RECORDS_AT[0], 4096).unwrap();
        let golden = include_str!("../../../tests/data/record-1.txt");
        assert_eq!(
            String::from_utf8(bytes).unwrap().trim_end(),
            golden.trim_end()
        );
        flash
            .write(RECORDS_AT[0], format!("{golden:<4096}").as_bytes())
            .unwrap();
        assert_eq!(
            read_record(&flash, 0, "k").unwrap().unwrap().word,
            Word::Dirty
        );
    }

    #[test]
    fn a_label_of_another_version_is_refused_by_its_name() {
        let (_folder, flash) = flash();
        for (head, words) in [
            ("HOTSET-LABEL 7 3", "version 7"),
            ("HOTSET-LABEL 0 3", "version 0"),
            ("HOTSET-FLASH-LABEL 1 3", "before its first release"),
            ("HOTSET-CARD-LABEL 1 3", "before its first release"),
        ] {
            let mut copy = format!("{head} 2 x\n{{}}").into_bytes();
            copy.resize(4096, b' ');
            flash.write(FIRST + COPY, &copy).unwrap();
            let message = read(&flash, Path::new("/dev/flash"))
                .unwrap_err()
                .to_string();
            assert!(message.contains(words), "{message}");
        }
        flash.write(FIRST + COPY, &[0; 4096]).unwrap();
        let message = read(&flash, Path::new("/dev/flash"))
            .unwrap_err()
            .to_string();
        assert!(message.contains("no label"), "{message}");
    }
}
