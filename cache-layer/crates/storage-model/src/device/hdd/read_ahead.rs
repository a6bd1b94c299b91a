//! The drive's buffer: which runs it holds, which of them are streams, and how far to read on.

use std::ops::Range;

/// Number of runs a drive keeps track of. Desktop drives of 2014 split 32-64 MB of buffer into
/// some tens of segments.
const SEGMENTS_MAX: usize = 32;

/// One contiguous run of bytes in the buffer.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    pub id: u64,
    pub start: u64,
    /// End of what is in the buffer.
    pub end: u64,
    /// End of what the host has asked for.
    pub consumed: u64,
    /// The host has read on from where it stopped: worth reading ahead of.
    pub stream: bool,
    used: u64,
}

impl Segment {
    fn reaches(&self, start: u64) -> bool {
        self.start <= start && start <= self.end
    }

    fn len(&self) -> u64 {
        self.end - self.start
    }

    /// What goes last. Single random reads go first, so that they do not push a running stream out.
    fn worth(&self) -> (bool, u64) {
        (self.stream, self.used)
    }
}

/// What [`Segments::fill`] and [`Segments::extend`] made.
pub(super) struct Filled {
    /// The run that holds the range.
    pub run: Range<u64>,
    /// Other bytes had to go.
    pub evicted: bool,
}

/// The buffer's segments, by most recent use.
#[derive(Debug)]
pub(super) struct Segments {
    list: Vec<Segment>,
    ahead_bytes: u64,
    /// What all of them hold at most, and now.
    room_bytes: u64,
    held_bytes: u64,
    uses: u64,
}

impl Segments {
    pub(super) fn new(ahead_bytes: u64, room_bytes: u64) -> Segments {
        Segments {
            list: Vec::new(),
            ahead_bytes,
            room_bytes,
            held_bytes: 0,
            uses: 0,
        }
    }

    /// End of the buffered run that begins at or before `start` and reaches it.
    pub(super) fn buffered_to(&self, start: u64) -> Option<u64> {
        self.reaching(start).map(|segment| segment.end)
    }

    /// The host asked for this range: if it goes on where a run ends, that run is a stream.
    pub(super) fn consume(&mut self, start: u64, end: u64) {
        self.consume_of(start, end);
    }

    /// The same: of which run.
    fn consume_of(&mut self, start: u64, end: u64) -> Option<usize> {
        self.uses += 1;
        let uses = self.uses;
        let index = self.reaching_index(start)?;
        let segment = &mut self.list[index];
        segment.stream |= end > segment.consumed;
        segment.consumed = segment.consumed.max(end);
        segment.used = uses;
        Some(index)
    }

    /// This range came from the medium: the run it is part of now.
    pub(super) fn fill(&mut self, start: u64, end: u64) -> Filled {
        let mut evicted = false;
        let index = match self.consume_of(start, end) {
            Some(index) => index,
            None => {
                evicted = self.insert(start, end);
                self.list.len() - 1
            }
        };
        self.grow(index, end);
        let (run, trimmed) = self.trim(index);
        Filled {
            run,
            evicted: evicted || trimmed,
        }
    }

    /// Read-ahead has brought the run up to `end`: the run, if it is still there.
    pub(super) fn extend(&mut self, id: u64, end: u64) -> Option<Filled> {
        let index = self.list.iter().position(|segment| segment.id == id)?;
        self.grow(index, end);
        let (run, evicted) = self.trim(index);
        Some(Filled { run, evicted })
    }

    /// Forgets runs that a write makes stale; whether there were any.
    pub(super) fn invalidate(&mut self, start: u64, end: u64) -> bool {
        let before = self.list.len();
        self.list
            .retain(|segment| segment.end <= start || end <= segment.start);
        let changed = self.list.len() < before;
        if changed {
            self.held_bytes = self.list.iter().map(Segment::len).sum();
        }
        changed
    }

    /// The most recently read stream whose read-ahead is half used up. Half, because each refill
    /// may cost a wait for the sector: a few long ones do, where many short ones would not.
    pub(super) fn hungry(&self) -> Option<&Segment> {
        self.list
            .iter()
            .filter(|segment| segment.stream)
            .filter(|segment| segment.end.saturating_sub(segment.consumed) < self.ahead_bytes / 2)
            .max_by_key(|segment| segment.used)
    }

    /// Where read-ahead of a stream should stop.
    pub(super) fn target(&self, id: u64) -> Option<u64> {
        let segment = self.list.iter().find(|segment| segment.id == id)?;
        Some(segment.consumed + self.ahead_bytes)
    }

    fn reaching(&self, start: u64) -> Option<&Segment> {
        self.reaching_index(start).map(|index| &self.list[index])
    }

    fn reaching_index(&self, start: u64) -> Option<usize> {
        (0..self.list.len())
            .filter(|&index| self.list[index].reaches(start))
            .max_by_key(|&index| self.list[index].end)
    }

    /// Adds a run, in place of another if need be; whether it was.
    fn insert(&mut self, start: u64, end: u64) -> bool {
        let full = self.list.len() == SEGMENTS_MAX;
        if full {
            let victim = (0..SEGMENTS_MAX).min_by_key(|&index| self.list[index].worth());
            self.remove(victim.unwrap_or(0));
        }
        self.held_bytes += end - start;
        self.list.push(Segment {
            id: self.uses,
            start,
            end,
            consumed: end,
            stream: false,
            used: self.uses,
        });
        full
    }

    fn grow(&mut self, index: usize, end: u64) {
        let segment = &mut self.list[index];
        self.held_bytes += end.saturating_sub(segment.end);
        segment.end = segment.end.max(end);
    }

    fn remove(&mut self, index: usize) {
        self.held_bytes -= self.list.swap_remove(index).len();
    }

    /// A segment has room for the read-ahead twice over: the part the host has not taken yet and
    /// as much behind it. What it holds then, and whether anything went.
    fn trim(&mut self, index: usize) -> (Range<u64>, bool) {
        let segment = &mut self.list[index];
        let room = 2 * self.ahead_bytes.max(65_536);
        let start = segment.start.max(segment.end.saturating_sub(room));
        let trimmed = start > segment.start;
        self.held_bytes -= start - segment.start;
        segment.start = start;
        let (run, id) = (start..segment.end, segment.id);
        (run, self.evict_beside(id) || trimmed)
    }

    /// Makes the others fit into the buffer beside this one; whether any had to go.
    fn evict_beside(&mut self, id: u64) -> bool {
        let before = self.list.len();
        while self.held_bytes > self.room_bytes {
            let others = (0..self.list.len()).filter(|&index| self.list[index].id != id);
            let Some(victim) = others.min_by_key(|&index| self.list[index].worth()) else {
                break;
            };
            self.remove(victim);
        }
        self.list.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reading_on_makes_a_stream() {
        let mut segments = Segments::new(1000, u64::MAX);
        segments.fill(0, 100);
        segments.fill(5000, 5100);
        assert!(segments.hungry().is_none(), "two random reads");
        segments.consume(0, 100);
        assert!(segments.hungry().is_none(), "the same block again");
        segments.fill(100, 200);
        let stream = segments.hungry().expect("read on from 100");
        assert_eq!((stream.start, stream.end), (0, 200));
        assert_eq!(segments.target(stream.id), Some(1200));
    }

    #[test]
    fn a_fed_stream_is_not_hungry_until_half_is_used() {
        let mut segments = Segments::new(1000, u64::MAX);
        segments.fill(0, 100);
        segments.fill(100, 200);
        let id = segments.hungry().unwrap().id;
        segments.extend(id, 1200);
        assert!(segments.hungry().is_none());
        segments.consume(200, 600);
        assert!(segments.hungry().is_none());
        segments.consume(600, 800);
        assert!(segments.hungry().is_some());
    }

    #[test]
    fn random_reads_do_not_evict_a_stream() {
        let mut segments = Segments::new(1000, u64::MAX);
        segments.fill(0, 100);
        segments.fill(100, 200);
        for i in 1..=100 {
            segments.fill(i * 1_000_000, i * 1_000_000 + 8192);
        }
        assert_eq!(segments.buffered_to(200), Some(200));
    }

    #[test]
    fn all_runs_together_fit_into_the_buffer() {
        let mut segments = Segments::new(1000, 100_000);
        for start in [0, 1_000_000, 2_000_000] {
            segments.fill(start, start + 40_000);
        }
        assert_eq!(segments.buffered_to(0), None, "the oldest had to go");
        assert_eq!(segments.buffered_to(1_000_000), Some(1_040_000));
        assert_eq!(segments.buffered_to(2_000_000), Some(2_040_000));
    }

    #[test]
    fn a_write_makes_the_run_stale() {
        let mut segments = Segments::new(1000, u64::MAX);
        segments.fill(0, 100);
        segments.invalidate(100, 200);
        assert_eq!(segments.buffered_to(50), Some(100));
        segments.invalidate(99, 200);
        assert_eq!(segments.buffered_to(50), None);
    }
}
