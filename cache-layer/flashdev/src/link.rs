//! A network between the host and a device: a rate each way and a round trip.

use std::collections::HashMap;

use crate::device::{Agenda, Completion, Device, Op, Request, earlier};
use crate::time::{Nanos, nanos_from_ms, nanos_per_byte};

/// What a link is built from; the model checks the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkSpec {
    /// Payload rate each way, MB/s.
    pub mb_per_s: f64,
    /// Time of an empty request and its answer, milliseconds.
    pub round_trip_ms: f64,
}

/// One direction of a full-duplex wire: payloads follow one another, none overtakes.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    free_at: Nanos,
}

impl Lane {
    fn send(&mut self, ready_at: Nanos, bytes: u64, ns_per_byte: f64) -> Nanos {
        let start = self.free_at.max(ready_at);
        self.free_at = start + (bytes as f64 * ns_per_byte).ceil() as Nanos;
        self.free_at
    }
}

/// A device at the far end of a link.
///
/// Requests are stored and forwarded whole: an iSCSI target writes when it has all the data, and
/// answers a read when it has all of it. Headers are small beside the payload and weigh nothing.
#[derive(Debug)]
pub struct Linked<D> {
    far: D,
    ns_per_byte: f64,
    one_way_ns: Nanos,
    up: Lane,
    down: Lane,
    /// Requests on their way to the far end.
    arriving: Agenda<Request>,
    /// Bytes that the answer to a request carries back.
    answer_bytes: HashMap<u64, u64>,
    /// Answers on their way back.
    returning: Agenda<u64>,
    scratch: Vec<Completion>,
}

impl<D: Device> Linked<D> {
    /// Puts a link in front of a device.
    pub fn new(far: D, spec: LinkSpec) -> Linked<D> {
        Linked {
            far,
            ns_per_byte: nanos_per_byte(spec.mb_per_s),
            one_way_ns: nanos_from_ms(spec.round_trip_ms) / 2,
            up: Lane::default(),
            down: Lane::default(),
            arriving: Agenda::default(),
            answer_bytes: HashMap::new(),
            returning: Agenda::default(),
            scratch: Vec::new(),
        }
    }

    /// Lets the far end live until `at` and sends off its answers.
    fn advance_far(&mut self, at: Nanos) {
        self.far.advance(at, &mut self.scratch);
        for ready in self.scratch.drain(..) {
            let bytes = self.answer_bytes.remove(&ready.tag).unwrap_or(0);
            let sent_at = self.down.send(ready.at, bytes, self.ns_per_byte);
            self.returning.push(sent_at + self.one_way_ns, ready.tag);
        }
    }
}

impl<D: Device> Device for Linked<D> {
    fn submit(&mut self, now: Nanos, request: Request) {
        let (up_bytes, down_bytes) = match request.op {
            Op::Read => (0, request.len),
            Op::Write => (request.len, 0),
            Op::Flush => (0, 0),
        };
        // Every request takes its turn in the lane, with payload or without, so that a flush
        // cannot overtake the writes before it.
        let sent_at = self.up.send(now, up_bytes, self.ns_per_byte);
        self.arriving.push(sent_at + self.one_way_ns, request);
        self.answer_bytes.insert(request.tag, down_bytes);
    }

    fn next_event(&self) -> Option<Nanos> {
        let far = earlier(self.arriving.next_at(), self.far.next_event());
        earlier(self.returning.next_at(), far)
    }

    fn advance(&mut self, to: Nanos, done: &mut Vec<Completion>) {
        while let Some(at) =
            earlier(self.arriving.next_at(), self.far.next_event()).filter(|&at| at <= to)
        {
            self.advance_far(at);
            while let Some((at, request)) = self.arriving.pop_due(at) {
                self.far.submit(at, request);
            }
        }
        self.advance_far(to);
        while let Some((at, tag)) = self.returning.pop_due(to) {
            done.push(Completion { tag, at });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A far end that takes no time at all.
    #[derive(Default)]
    struct Instant(Agenda<u64>);

    impl Device for Instant {
        fn submit(&mut self, now: Nanos, request: Request) {
            self.0.push(now, request.tag);
        }
        fn next_event(&self) -> Option<Nanos> {
            self.0.next_at()
        }
        fn advance(&mut self, to: Nanos, done: &mut Vec<Completion>) {
            while let Some((at, tag)) = self.0.pop_due(to) {
                done.push(Completion { tag, at });
            }
        }
    }

    fn request(tag: u64, op: Op, len: u64) -> Request {
        Request::whole(tag, op, 0, len)
    }

    fn gigabit() -> Linked<Instant> {
        let spec = LinkSpec {
            mb_per_s: 100.0,
            round_trip_ms: 0.2,
        };
        Linked::new(Instant::default(), spec)
    }

    #[test]
    fn payloads_queue_up_and_headers_cost_the_round_trip() {
        let mut link = gigabit();
        link.submit(0, request(1, Op::Read, 1000));
        link.submit(0, request(2, Op::Read, 1000));
        link.submit(0, request(3, Op::Flush, 0));
        let mut done = Vec::new();
        link.advance(1_000_000, &mut done);
        let times: Vec<_> = done.iter().map(|c| (c.tag, c.at)).collect();
        assert_eq!(times, [(1, 210_000), (2, 220_000), (3, 220_000)]);
    }

    #[test]
    fn the_directions_do_not_share() {
        let mut link = gigabit();
        link.submit(0, request(1, Op::Write, 10_000));
        link.submit(0, request(2, Op::Write, 10_000));
        let mut done = Vec::new();
        link.advance(1_000_000, &mut done);
        let times: Vec<_> = done.iter().map(|c| (c.tag, c.at)).collect();
        assert_eq!(times, [(1, 300_000), (2, 400_000)]);
    }

    #[test]
    fn a_flush_does_not_overtake_a_write() {
        let mut link = gigabit();
        link.submit(0, request(1, Op::Write, 10_000));
        link.submit(0, request(2, Op::Flush, 0));
        let mut done = Vec::new();
        link.advance(1_000_000, &mut done);
        assert_eq!(done.iter().map(|c| c.tag).collect::<Vec<_>>(), [1, 2]);
    }
}
