//! What every modelled device is: something that is handed requests with the time and says when
//! they complete. Disks, flash, arrays and links are all devices, so they stack.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use virtual_time::Nanos;

pub(crate) mod hdd;
pub mod hybrid;
pub(crate) mod link;
pub mod node;
pub(crate) mod raid;
pub(crate) mod ssd;
pub(crate) mod write_cache;

pub use node::Node;

/// What a request asks of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Fetch bytes.
    Read,
    /// Store bytes.
    Write,
    /// Complete when every write accepted before would survive a loss of power; carries no bytes.
    Flush,
    /// The bytes are no longer needed (TRIM, UNMAP); completes at once where a device knows none.
    Discard,
}

/// A request to a device. Offsets are bytes from the start of the device it is handed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Chosen by the caller; comes back in the [`Completion`]. Devices compare it with nothing.
    pub tag: u64,
    /// What to do.
    pub op: Op,
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
    /// Size of the host's request that this one is a part of. An array cuts a host's request
    /// into one per disk; the disk still needs to know whether a bulk stream is behind it.
    pub host_len: u64,
    /// How much of the answer's latency the way here and back takes in real life already, device
    /// time: who serves a model over a path of its own hands that in here, and the first fixed
    /// latencies on the request's way are shorter by it. No throughput changes.
    pub head_start: Nanos,
}

impl Request {
    /// A host's request that is not cut into parts.
    pub fn whole(tag: u64, op: Op, offset: u64, len: u64) -> Request {
        Request {
            tag,
            op,
            offset,
            len,
            host_len: len,
            head_start: 0,
        }
    }

    /// Takes the head start off a fixed latency; what is left of that.
    pub(crate) fn shorten(&mut self, latency: Nanos) -> Nanos {
        let saved = latency.min(self.head_start);
        self.head_start -= saved;
        latency - saved
    }
}

/// A finished request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The tag of the request.
    pub tag: u64,
    /// When it was finished, in device time; not later than the time that was advanced to.
    pub at: Nanos,
    /// The device could not do it: too many members of an array have failed.
    pub failed: bool,
}

impl Completion {
    /// A request that went well.
    pub fn done(tag: u64, at: Nanos) -> Completion {
        Completion {
            tag,
            at,
            failed: false,
        }
    }
}

/// A modelled device: pure logic in virtual time, without clock or I/O.
///
/// The caller advances it to `now` before it submits at `now`, and advances it again no later
/// than it cares to learn of completions. Advancing late is harmless: whatever happened in
/// between happened at its own exact time, so a tardy caller never slows the device down.
pub trait Device: Send {
    /// Hands over a request at `now`, which is not before any earlier `now`.
    fn submit(&mut self, now: Nanos, request: Request);

    /// When the device will next have something to do or to say; `None` when it is at rest.
    fn next_event(&self) -> Option<Nanos>;

    /// Lets the device live until `to` and appends what it finished, in order of time.
    fn advance(&mut self, to: Nanos, done: &mut Vec<Completion>);

    /// Bytes of completed writes that a loss of power at `now` would take, the latest ones first.
    fn volatile_bytes(&self, now: Nanos) -> u64;
}

/// Things that become due, earliest first; those due at the same time in order of insertion.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    inserted: u64,
}

#[derive(Debug)]
struct Entry<T> {
    key: (Nanos, u64),
    item: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Agenda {
            heap: BinaryHeap::new(),
            inserted: 0,
        }
    }
}

impl<T> Agenda<T> {
    pub(crate) fn push(&mut self, at: Nanos, item: T) {
        self.inserted += 1;
        self.heap.push(Reverse(Entry {
            key: (at, self.inserted),
            item,
        }));
    }

    pub(crate) fn next_at(&self) -> Option<Nanos> {
        self.heap.peek().map(|Reverse(entry)| entry.key.0)
    }

    /// Takes the earliest thing if it is due by `to`.
    pub(crate) fn pop_due(&mut self, to: Nanos) -> Option<(Nanos, T)> {
        if self.next_at()? > to {
            return None;
        }
        self.heap
            .pop()
            .map(|Reverse(entry)| (entry.key.0, entry.item))
    }
}

/// The earlier of two events that may not come.
pub(crate) fn earlier(a: Option<Nanos>, b: Option<Nanos>) -> Option<Nanos> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (first, other) => first.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agenda_is_ordered_by_time_then_insertion() {
        let mut agenda = Agenda::default();
        for (at, item) in [(5, 'c'), (1, 'a'), (5, 'd'), (2, 'b')] {
            agenda.push(at, item);
        }
        let order: Vec<_> = std::iter::from_fn(|| agenda.pop_due(5)).collect();
        assert_eq!(order, [(1, 'a'), (2, 'b'), (5, 'c'), (5, 'd')]);
    }

    #[test]
    fn nothing_is_due_before_its_time() {
        let mut agenda = Agenda::default();
        agenda.push(7, ());
        assert_eq!(agenda.pop_due(6), None);
        assert_eq!(agenda.pop_due(7), Some((7, ())));
    }
}
