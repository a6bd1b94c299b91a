//! The drive's buffer: which runs it holds, which of them are streams, and how far to read on.

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

/// The buffer's segments, by most recent use.
#[derive(Debug)]
pub(super) struct Segments {
    list: Vec<Segment>,
    ahead_bytes: u64,
    uses: u64,
}

impl Segments {
    pub(super) fn new(ahead_bytes: u64) -> Segments {
        Segments {
            list: Vec::new(),
            ahead_bytes,
            uses: 0,
        }
    }

    /// End of the buffered run that begins at or before `start` and reaches it.
    pub(super) fn buffered_to(&self, start: u64) -> Option<u64> {
        self.reaching(start).map(|segment| segment.end)
    }

    /// The host asked for this range: if it goes on where a run ends, that run is a stream.
    pub(super) fn consume(&mut self, start: u64, end: u64) {
        self.uses += 1;
        let uses = self.uses;
        if let Some(segment) = self.reaching_mut(start) {
            segment.stream |= end > segment.consumed;
            segment.consumed = segment.consumed.max(end);
            segment.used = uses;
        }
    }

    /// This range came from the medium.
    pub(super) fn fill(&mut self, start: u64, end: u64) {
        self.consume(start, end);
        if let Some(segment) = self.reaching_mut(start) {
            segment.end = segment.end.max(end);
        } else {
            self.insert(start, end);
        }
        self.trim();
    }

    /// Read-ahead has brought the run up to `end`.
    pub(super) fn extend(&mut self, id: u64, end: u64) {
        if let Some(segment) = self.list.iter_mut().find(|segment| segment.id == id) {
            segment.end = segment.end.max(end);
        }
        self.trim();
    }

    /// Forgets runs that a write makes stale.
    pub(super) fn invalidate(&mut self, start: u64, end: u64) {
        self.list
            .retain(|segment| segment.end <= start || end <= segment.start);
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
        self.list
            .iter()
            .filter(|segment| segment.start <= start && start <= segment.end)
            .max_by_key(|segment| segment.end)
    }

    fn reaching_mut(&mut self, start: u64) -> Option<&mut Segment> {
        self.list
            .iter_mut()
            .filter(|segment| segment.start <= start && start <= segment.end)
            .max_by_key(|segment| segment.end)
    }

    fn insert(&mut self, start: u64, end: u64) {
        if self.list.len() == SEGMENTS_MAX {
            // Single random reads go first, so that they do not push a running stream out.
            let victim =
                (0..SEGMENTS_MAX).min_by_key(|&i| (self.list[i].stream, self.list[i].used));
            self.list.swap_remove(victim.unwrap_or(0));
        }
        self.list.push(Segment {
            id: self.uses,
            start,
            end,
            consumed: end,
            stream: false,
            used: self.uses,
        });
    }

    /// A segment has room for the read-ahead twice over: the part the host has not taken yet and
    /// as much behind it.
    fn trim(&mut self) {
        for segment in &mut self.list {
            segment.start = segment
                .start
                .max(segment.end.saturating_sub(2 * self.ahead_bytes.max(65_536)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reading_on_makes_a_stream() {
        let mut segments = Segments::new(1000);
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
        let mut segments = Segments::new(1000);
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
        let mut segments = Segments::new(1000);
        segments.fill(0, 100);
        segments.fill(100, 200);
        for i in 1..=100 {
            segments.fill(i * 1_000_000, i * 1_000_000 + 8192);
        }
        assert_eq!(segments.buffered_to(200), Some(200));
    }

    #[test]
    fn a_write_makes_the_run_stale() {
        let mut segments = Segments::new(1000);
        segments.fill(0, 100);
        segments.invalidate(100, 200);
        assert_eq!(segments.buffered_to(50), Some(100));
        segments.invalidate(99, 200);
        assert_eq!(segments.buffered_to(50), None);
    }
}
