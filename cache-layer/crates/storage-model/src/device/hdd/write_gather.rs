//! The little a drive accepts of bulk write streams before it is on the medium.

use std::collections::VecDeque;

/// Host requests shorter than this are never gathered, bytes.
///
/// The modelled drive has its volatile write cache off: a write is complete when it is on the
/// medium, a flush costs only the drain. Taken literally that makes one long sequential write
/// lose a turn per request, which no NAS does, since its controller joins adjacent writes. So
/// bulk streams, and only those, are gathered. A database's log record (8-60 KiB) stays below the
/// limit and pays its turn of the platter, even where the path drops flushes.
const HOST_LEN_MIN: u64 = 65_536;

/// How many recent ends of writes are remembered in order to recognise a stream.
pub(super) const STREAMS_MAX: usize = 32;

/// A write of a bulk stream.
#[derive(Debug)]
pub(super) struct BulkWrite {
    pub sequence: u64,
    pub tag: u64,
    pub start: u64,
    pub end: u64,
}

/// The gather buffer and the streams that may use it; or the write cache, which takes everything.
#[derive(Debug)]
pub(super) struct WriteGather {
    limit_bytes: u64,
    bulk_only: bool,
    held_bytes: u64,
    recent_ends: VecDeque<u64>,
    /// Bulk writes for which there is no room yet.
    blocked: VecDeque<BulkWrite>,
}

impl WriteGather {
    /// For a drive whose write cache is off.
    pub(super) fn of_bulk_streams(limit_bytes: u64) -> WriteGather {
        WriteGather::new(limit_bytes, true)
    }

    /// A write cache that is on.
    pub(super) fn of_everything(limit_bytes: u64) -> WriteGather {
        WriteGather::new(limit_bytes, false)
    }

    fn new(limit_bytes: u64, bulk_only: bool) -> WriteGather {
        WriteGather {
            limit_bytes,
            bulk_only,
            held_bytes: 0,
            recent_ends: VecDeque::new(),
            blocked: VecDeque::new(),
        }
    }

    /// Takes note of a write; whether it is one to gather: part of a bulk request, going on
    /// where an earlier write ended, and no larger than the buffer.
    pub(super) fn wants(&mut self, start: u64, end: u64, host_len: u64) -> bool {
        if !self.bulk_only {
            return end - start <= self.limit_bytes;
        }
        let known = self.recent_ends.iter().position(|&known| known == start);
        if let Some(index) = known {
            self.recent_ends.remove(index);
        }
        self.recent_ends.push_back(end);
        if self.recent_ends.len() > STREAMS_MAX {
            self.recent_ends.pop_front();
        }
        known.is_some() && host_len >= HOST_LEN_MIN && end - start <= self.limit_bytes
    }

    /// Accepted and not on the medium yet.
    pub(super) fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Queues a write for the buffer.
    pub(super) fn push(&mut self, write: BulkWrite) {
        self.blocked.push_back(write);
    }

    /// Accepts the next write in line if there is room for it.
    pub(super) fn accept(&mut self) -> Option<BulkWrite> {
        let first = self.blocked.front()?;
        let held_bytes = self.held_bytes + first.end - first.start;
        if held_bytes > self.limit_bytes {
            return None;
        }
        self.held_bytes = held_bytes;
        self.blocked.pop_front()
    }

    /// So many accepted bytes are on the medium.
    pub(super) fn release(&mut self, bytes: u64) {
        self.held_bytes -= bytes;
    }

    /// Longest run to drain in one go, bytes: room comes back in quarters, and while the host
    /// fills one, the arm is kept on the track by the others.
    pub(super) fn drain_bytes_max(&self) -> u64 {
        self.limit_bytes / 4
    }

    /// Sequences of the writes that wait for room.
    pub(super) fn blocked_sequences(&self) -> impl Iterator<Item = u64> {
        self.blocked.iter().map(|write| write.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(sequence: u64, start: u64, end: u64) -> BulkWrite {
        BulkWrite {
            sequence,
            tag: sequence,
            start,
            end,
        }
    }

    #[test]
    fn only_bulk_streams_are_wanted() {
        let mut gather = WriteGather::of_bulk_streams(1 << 20);
        assert!(!gather.wants(0, 65_536, 65_536), "nothing went before");
        assert!(gather.wants(65_536, 131_072, 65_536));
        assert!(!gather.wants(131_072, 139_264, 8192), "too short");
        assert!(!gather.wants(500_000, 600_000, 100_000), "elsewhere");
        assert!(!gather.wants(600_000, 2_000_000, 1_400_000), "too large");
    }

    #[test]
    fn writes_wait_in_line_for_room() {
        let mut gather = WriteGather::of_bulk_streams(100);
        for (sequence, end) in [(1, 80), (2, 60), (3, 10)] {
            gather.push(write(sequence, 0, end));
        }
        assert_eq!(gather.accept().map(|write| write.sequence), Some(1));
        assert!(gather.accept().is_none(), "the third would fit, but waits");
        assert_eq!(gather.blocked_sequences().collect::<Vec<_>>(), [2, 3]);
        gather.release(80);
        assert_eq!(gather.accept().map(|write| write.sequence), Some(2));
        assert_eq!(gather.accept().map(|write| write.sequence), Some(3));
    }
}
