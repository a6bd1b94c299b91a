//! Events of the kernel's block layer, as blkparse and as the kernel itself print them. A request
//! counts when it is queued: what happens to it later, merges and splits included, is the disk's.

use super::super::Request;
use super::super::text::seconds;
use super::Disk;

const SECTOR: u64 = 512;

/// blkparse's default output (blktrace, blkparse_fmt.c): `MAJ,MIN CPU SEQUENCE SECONDS PID ACTION
/// RWBS [SECTOR + SECTORS] [COMMAND]`, and statistics behind it.
#[derive(Default)]
pub(super) struct Blkparse {
    /// The events are over.
    statistics: bool,
}

/// What blkparse may say happened: its manual page's trace actions.
const ACTIONS: &[&str] = &[
    "A", "B", "C", "D", "F", "G", "I", "M", "m", "P", "Q", "R", "S", "T", "U", "UT", "W", "X",
];

impl Blkparse {
    pub(super) fn line(&mut self, line: &str, disk: &mut Disk) -> Result<Option<Request>, String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        self.statistics |= matches!(words.first(), Some(word) if word.starts_with("CPU") || word.starts_with("Total"));
        if self.statistics || words.is_empty() {
            return Ok(None);
        }
        let [device, cpu, sequence, at, pid, action, rwbs, ..] = words[..] else {
            return Err("is no event of blkparse's default output".to_owned());
        };
        if device.split_once(',').is_none()
            || [cpu, sequence, pid]
                .iter()
                .any(|n| n.parse::<u64>().is_err())
        {
            return Err("is no event of blkparse's default output".to_owned());
        }
        if !ACTIONS.contains(&action) {
            return Err(format!("has an action that is not known, `{action}`"));
        }
        if action != "Q" || !disk.is(device)? {
            return Ok(None);
        }
        request(at, rwbs, words.get(7), words.get(9))
    }
}

/// The kernel's own text (`trace_pipe`): `COMMAND-PID [CPU] FLAGS SECONDS: block_bio_queue: MAJ,MIN
/// RWBS SECTOR + SECTORS [COMMAND]`; `include/trace/events/block.h`.
#[derive(Default)]
pub(super) struct Ftrace {}

impl Ftrace {
    pub(super) fn line(&mut self, line: &str, disk: &mut Disk) -> Result<Option<Request>, String> {
        if line.trim().is_empty() || line.starts_with('#') {
            return Ok(None);
        }
        if line.contains("[LOST ") || line.contains(" EVENTS]") {
            return Err(
                "events were lost: record with a larger buffer of the kernel's (buffer_size_kb)"
                    .to_owned(),
            );
        }
        // A command may be named like anything, so from the event's name to the left.
        let Some((before, event)) = line.split_once(": block_") else {
            return Err("is no event of the block layer".to_owned());
        };
        let (name, rest) = event.split_once(": ").unwrap_or((event, ""));
        if name != "bio_queue" {
            return Ok(None);
        }
        let at = before.rsplit(' ').next().unwrap_or("");
        let words: Vec<&str> = rest.split_whitespace().collect();
        let [device, rwbs, ..] = words[..] else {
            return Err("is no event block_bio_queue".to_owned());
        };
        match disk.is(device)? {
            true => request(at, rwbs, words.get(2), words.get(4)),
            false => Ok(None),
        }
    }
}

/// None for what moves no data: flushes, discards, zone commands.
fn request(
    at: &str,
    rwbs: &str,
    sector: Option<&&str>,
    sectors: Option<&&str>,
) -> Result<Option<Request>, String> {
    // Flush, Write, Flush again (FUA), sync, metadata, read-ahead: kernel/trace/blktrace.c,
    // blk_fill_rwbs. D discards, DE erases, N is none of all.
    let kind = rwbs.trim_start_matches('F').bytes().next();
    let write = match kind {
        Some(b'W') => true,
        Some(b'R') => false,
        None | Some(b'D' | b'N' | b'S' | b'Z') => return Ok(None),
        Some(_) => return Err(format!("has a kind of request that is not known, `{rwbs}`")),
    };
    let number = |word: Option<&&str>, what: &str| {
        word.and_then(|word| word.parse::<u64>().ok())
            .filter(|&sectors| sectors < 1 << 50)
            .ok_or_else(|| format!("has no {what}"))
    };
    let (offset, bytes) = (number(sector, "sector")?, number(sectors, "length")?);
    Ok((bytes > 0).then_some(Request {
        at: seconds(at)?,
        write,
        offset: offset * SECTOR,
        bytes: bytes * SECTOR,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::Format;
    use super::super::tests::{from_text, tried};
    use crate::Request;

    const BLKPARSE: &str = "  8,0    1        1     0.000000000   697  Q   R 223490 + 8 [kjournald]
  8,0    1        2     0.000001829   697  G   R 223490 + 8 [kjournald]
  8,0    1        3     0.000500000   697  Q  WS 16 + 16 [jbd2/sda1-8]
  8,0    0        0     0.000600000     0  m   N cfq697 slice expired
  8,0    1        4     0.000700000   697  Q FWFS 0 + 8 [x y]
  8,0    1        5     0.000800000   697  Q  FN [kworker]
  8,0    1        6     0.000900000   697  Q   D 4096 + 2048 [fstrim]
  8,0    1        7     0.001000000   697  C   R 223490 + 8 [0]
CPU1 (8,0):
 Reads Queued:           1,        4KiB\t Writes Queued:           2,       12KiB
Total (8,0):
";

    #[test]
    fn requests_count_when_they_are_queued() {
        let request = |at, write, sector: u64, sectors: u64| Request {
            at,
            write,
            offset: sector * 512,
            bytes: sectors * 512,
        };
        let expected = [
            request(0, false, 223_490, 8),
            request(500_000, true, 16, 16),
            request(700_000, true, 0, 8),
        ];
        assert_eq!(from_text(BLKPARSE, Format::Blkparse, None), expected);
        let ftrace = "# tracer: nop
     kjournald-697   [001] .....  1234.000000: block_bio_queue: 8,0 R 223490 + 8 [kjournald]
     kjournald-697   [001] .....  1234.000001: block_getrq: 8,0 R 223490 + 8 [kjournald]
   x: [y] -z-12      [000] d..1.  1234.000500: block_bio_queue: 8,0 WS 16 + 16 [x: [y]]
         dd-5        [000] .....  1234.000700: block_bio_queue: 8,0 FWFS 0 + 8 [dd]
         dd-5        [000] .....  1234.000800: block_bio_queue: 8,0 F 0 + 0 [dd]
";
        let requests = from_text(ftrace, Format::Ftrace, None);
        let micros: Vec<_> = requests.iter().map(|r| (r.at + 500) / 1000).collect();
        assert_eq!(micros, [0, 500, 700]);
        let shapes = |all: &[Request]| -> Vec<_> {
            all.iter().map(|r| (r.write, r.offset, r.bytes)).collect()
        };
        assert_eq!(shapes(&requests), shapes(&expected));
    }

    #[test]
    fn a_trace_of_two_disks_needs_one_named() {
        let two = BLKPARSE.replace("8,0    1        3", "8,16   1        3");
        let error = tried(&two, Format::Blkparse, None).unwrap_err().to_string();
        assert!(
            error.contains("line 3") && error.contains("--of-disk"),
            "{error}"
        );
        let other = from_text(&two, Format::Blkparse, Some("8,16"));
        assert_eq!(other.len(), 1);
        assert_eq!(other[0].offset, 16 * 512);
    }

    #[test]
    fn what_is_not_known_is_named() {
        for (format, bad) in [
            (Format::Blkparse, "8,0 1 1 0.1 697 Y R 0 + 8 [x]"),
            (Format::Blkparse, "8,0 1 1 0.1 697 Q R x + 8 [x]"),
            (Format::Blkparse, "8,0 1 1 0.1 697 Q H 0 + 8 [x]"),
            (Format::Blkparse, "hello"),
            (Format::Ftrace, "hello"),
            (Format::Ftrace, "CPU:1 [LOST 17 EVENTS]"),
            (Format::Ftrace, "a-1 [0] .. 1.0: block_bio_queue: 8,0 R 0"),
        ] {
            let error = tried(&format!("{bad}\n"), format, None).unwrap_err();
            assert!(
                error.is_refusal() && error.to_string().contains("line 1"),
                "{error}"
            );
        }
    }
}
