//! The books of a served device: which requests are in it, and when each may be answered.
//!
//! A read or write is answered when both are done: the model has completed it and its data has
//! moved. A flush is answered when the model has completed it, all earlier writes have reached
//! the backing file, and that file has then been synced.

use std::collections::{BTreeSet, HashMap};
use std::io;

use serde::Serialize;

use hotset_engine::reply::Outcome;
use storage_model::device::Op;

/// What has gone through the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Counters {
    /// Reads answered.
    pub reads: u64,
    /// Writes answered.
    pub writes: u64,
    /// Flushes answered.
    pub flushes: u64,
    /// Requests answered with an error of the backing file.
    pub errors: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Real time with at least one request in the device, milliseconds.
    pub busy_ms: f64,
    /// How much later than the model asked replies went out, mean, microseconds.
    pub late_us_mean: f64,
    /// The latest one, microseconds.
    pub late_us_max: f64,
}

struct Pending<R> {
    reply: R,
    op: Op,
    len: u64,
    /// When the model asked to reply, real nanoseconds; unknown until it has.
    due_ns: Option<u64>,
    moved: Option<Outcome>,
    sync_started: bool,
    /// The model could not do it.
    failed: bool,
}

/// A request that may be answered now.
pub(super) struct Ready<R> {
    pub reply: R,
    pub moved: Outcome,
}

/// What there is to do after something has changed.
pub(super) struct Due<R> {
    /// Requests to reply.
    pub ready: Vec<Ready<R>>,
    /// Flushes for which the backing file is to be synced.
    pub syncs: Vec<u64>,
}

/// The books; `R` is where an reply goes.
pub(super) struct InFlight<R> {
    pending: HashMap<u64, Pending<R>>,
    /// Writes whose data has not reached the backing file.
    unwritten: BTreeSet<u64>,
    /// Flushes held up by those.
    held_flushes: Vec<u64>,
    /// Requests to check again: something about them has changed.
    touched: Vec<u64>,
    next_tag: u64,
    counters: Counters,
    busy_since_ns: u64,
    busy_ns: u64,
    late_ns_sum: u64,
    late_ns_max: u64,
}

impl<R> InFlight<R> {
    pub(super) fn new() -> InFlight<R> {
        InFlight {
            pending: HashMap::new(),
            unwritten: BTreeSet::new(),
            held_flushes: Vec::new(),
            touched: Vec::new(),
            next_tag: 0,
            counters: Counters::default(),
            busy_since_ns: 0,
            busy_ns: 0,
            late_ns_sum: 0,
            late_ns_max: 0,
        }
    }

    /// Enters a request and gives it its tag.
    pub(super) fn admit(&mut self, now_ns: u64, op: Op, len: u64, reply: R) -> u64 {
        let tag = self.next_tag;
        self.next_tag += 1;
        if self.pending.is_empty() {
            self.busy_since_ns = now_ns;
        }
        if op == Op::Write {
            self.unwritten.insert(tag);
        }
        let pending = Pending {
            reply,
            op,
            len,
            due_ns: None,
            moved: None,
            sync_started: false,
            failed: false,
        };
        self.pending.insert(tag, pending);
        tag
    }

    /// The model asks for a reply at `due_ns`; an error if it could not do the request.
    pub(super) fn completed(&mut self, tag: u64, due_ns: u64, failed: bool) {
        if let Some(pending) = self.pending.get_mut(&tag) {
            pending.due_ns = Some(due_ns);
            pending.failed = failed;
            self.touched.push(tag);
        }
    }

    /// The data of a read or write has moved, or the sync of a flush is done.
    pub(super) fn moved(&mut self, tag: u64, moved: Outcome) {
        if let Some(pending) = self.pending.get_mut(&tag) {
            pending.moved = Some(moved);
            self.touched.push(tag);
        }
        if self.unwritten.remove(&tag) {
            self.touched.append(&mut self.held_flushes);
        }
    }

    /// Takes out what can be answered.
    pub(super) fn settle(&mut self, now_ns: u64) -> Due<R> {
        let mut due = Due {
            ready: Vec::new(),
            syncs: Vec::new(),
        };
        for tag in std::mem::take(&mut self.touched) {
            if self.wants_sync(tag) {
                due.syncs.push(tag);
            }
            due.ready.extend(self.take_ready(tag, now_ns));
        }
        due
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// What has gone through until now.
    pub(super) fn counters(&self, now_ns: u64) -> Counters {
        let running_ns = match self.pending.is_empty() {
            true => 0,
            false => now_ns - self.busy_since_ns,
        };
        let answered = self.counters.reads + self.counters.writes + self.counters.flushes;
        Counters {
            busy_ms: (self.busy_ns + running_ns) as f64 / 1e6,
            late_us_mean: self.late_ns_sum as f64 / answered.max(1) as f64 / 1e3,
            late_us_max: self.late_ns_max as f64 / 1e3,
            ..self.counters
        }
    }

    /// True once for a flush that the model has completed, when no earlier write is left.
    fn wants_sync(&mut self, tag: u64) -> bool {
        let Some(flush) = self.pending.get_mut(&tag) else {
            return false;
        };
        if flush.op != Op::Flush || flush.due_ns.is_none() || flush.sync_started {
            return false;
        }
        if self.unwritten.first().is_some_and(|&write| write < tag) {
            self.held_flushes.push(tag);
            return false;
        }
        flush.sync_started = true;
        true
    }

    fn take_ready(&mut self, tag: u64, now_ns: u64) -> Option<Ready<R>> {
        let pending = self.pending.get(&tag)?;
        if pending.due_ns.is_none() || pending.moved.is_none() {
            return None;
        }
        let pending = self.pending.remove(&tag)?;
        if self.pending.is_empty() {
            self.busy_ns += now_ns - self.busy_since_ns;
        }
        let moved = match pending.failed {
            true => Err(io::Error::from_raw_os_error(libc::EIO)),
            false => pending.moved?,
        };
        self.count(pending.op, pending.len, moved.is_err());
        let late_ns = now_ns.saturating_sub(pending.due_ns?);
        self.late_ns_sum += late_ns;
        self.late_ns_max = self.late_ns_max.max(late_ns);
        Some(Ready {
            reply: pending.reply,
            moved,
        })
    }

    fn count(&mut self, op: Op, len: u64, failed: bool) {
        let counters = &mut self.counters;
        counters.errors += u64::from(failed);
        let bytes = if failed { 0 } else { len };
        match op {
            Op::Read => {
                counters.reads += 1;
                counters.read_bytes += bytes;
            }
            Op::Write => {
                counters.writes += 1;
                counters.write_bytes += bytes;
            }
            Op::Flush => counters.flushes += 1,
            Op::Discard => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotset_engine::direct_io::PageBuffer;

    fn no_bytes() -> Outcome {
        Ok(PageBuffer::empty())
    }

    fn replies<R>(in_flight: &mut InFlight<R>, now_ns: u64) -> Vec<R> {
        let due = in_flight.settle(now_ns);
        due.ready.into_iter().map(|ready| ready.reply).collect()
    }

    #[test]
    fn an_answer_needs_both_the_model_and_the_data() {
        let mut in_flight = InFlight::new();
        let first = in_flight.admit(0, Op::Read, 10, "data first");
        let second = in_flight.admit(0, Op::Read, 10, "model first");
        in_flight.moved(first, no_bytes());
        in_flight.completed(second, 5, false);
        assert!(replies(&mut in_flight, 5).is_empty());
        in_flight.completed(first, 6, false);
        assert_eq!(replies(&mut in_flight, 6), ["data first"]);
        in_flight.moved(second, no_bytes());
        assert_eq!(replies(&mut in_flight, 9), ["model first"]);
        assert!(in_flight.is_empty());
    }

    #[test]
    fn a_flush_waits_for_earlier_writes_and_its_sync() {
        let mut in_flight = InFlight::new();
        let write = in_flight.admit(0, Op::Write, 10, "write");
        let flush = in_flight.admit(0, Op::Flush, 0, "flush");
        let later = in_flight.admit(0, Op::Write, 10, "later write");
        in_flight.completed(flush, 5, false);
        assert!(in_flight.settle(5).syncs.is_empty(), "a write is missing");
        in_flight.moved(write, no_bytes());
        assert_eq!(in_flight.settle(6).syncs, [flush]);
        in_flight.completed(write, 6, false);
        assert_eq!(replies(&mut in_flight, 6), ["write"]);
        in_flight.moved(flush, no_bytes());
        assert_eq!(replies(&mut in_flight, 8), ["flush"]);
        in_flight.completed(later, 9, false);
        in_flight.moved(later, no_bytes());
        assert_eq!(replies(&mut in_flight, 9), ["later write"]);
    }

    #[test]
    fn counters_tell_errors_from_bytes() {
        let mut in_flight = InFlight::new();
        for (len, moved) in [
            (10, no_bytes()),
            (20, Err(io::ErrorKind::StorageFull.into())),
        ] {
            let tag = in_flight.admit(1_000_000, Op::Write, len, ());
            in_flight.completed(tag, 2_000_000, false);
            in_flight.moved(tag, moved);
        }
        assert_eq!(in_flight.settle(3_000_000).ready.len(), 2);
        let expected = Counters {
            writes: 2,
            errors: 1,
            write_bytes: 10,
            busy_ms: 2.0,
            late_us_mean: 1000.0,
            late_us_max: 1000.0,
            ..Counters::default()
        };
        assert_eq!(in_flight.counters(9_000_000), expected);
    }
}
