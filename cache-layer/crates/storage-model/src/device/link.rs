//! A network or bus between the host and a device: a rate each way, a round trip, the work of each
//! command, and how many commands a session may have under way.

use std::collections::VecDeque;

use slab::Slab;

use crate::device::{Agenda, Completion, Device, Op, Request, earlier};
use virtual_time::{Nanos, nanos_from_ms, nanos_from_us, nanos_per_byte};

/// What a link is built from; the model checks the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkSpec {
    /// Payload rate each way, MB/s.
    pub mb_per_s: f64,
    /// Time of an empty request and its answer, milliseconds.
    pub round_trip_ms: f64,
    /// What the far end's processor spends on each command, one after the other, microseconds.
    pub command_us: f64,
    /// Commands under way at most; the others wait at this end.
    pub session_depth: Option<usize>,
    /// A bus: bytes cross while the far end works on the others. Else a request and an answer are
    /// forwarded when they are whole, as an iSCSI target does.
    pub cut_through: bool,
}

/// One direction of a full-duplex wire: payloads follow one another, none overtakes.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    free_at: Nanos,
}

impl Lane {
    fn send(&mut self, ready_at: Nanos, takes: Nanos) -> Nanos {
        self.free_at = self.free_at.max(ready_at) + takes;
        self.free_at
    }
}

/// A request whose answer has not come back.
#[derive(Debug)]
struct Command {
    tag: u64,
    answer_bytes: u64,
    /// How long the answer travels.
    return_trip: Nanos,
    /// When its payload has gone up, and its bytes could begin to come down.
    sent_at: Nanos,
    failed: bool,
}

/// A device at the far end of a link.
///
/// On a network requests are stored and forwarded whole: an iSCSI target writes when it has all
/// the data, and answers a read when it has all of it. Headers are small beside the payload and
/// weigh nothing.
#[derive(Debug)]
pub struct Linked<D> {
    far: D,
    ns_per_byte: f64,
    one_way: Nanos,
    command_cost: Nanos,
    session_depth: usize,
    cut_through: bool,
    up: Lane,
    processor: Lane,
    down: Lane,
    /// Requests that the session has no room for.
    waiting: VecDeque<Request>,
    commands: Slab<Command>,
    /// Requests on their way to the far end; there their tags are numbers of commands.
    arriving: VecDeque<(Nanos, Request)>,
    /// Numbers of the commands whose answers are on their way back.
    returning: Agenda<usize>,
    scratch: Vec<Completion>,
}

impl<D: Device> Linked<D> {
    /// Puts a link in front of a device.
    pub fn new(far: D, spec: LinkSpec) -> Linked<D> {
        Linked {
            far,
            ns_per_byte: nanos_per_byte(spec.mb_per_s),
            one_way: nanos_from_ms(spec.round_trip_ms) / 2,
            command_cost: nanos_from_us(spec.command_us),
            session_depth: spec.session_depth.unwrap_or(usize::MAX),
            cut_through: spec.cut_through,
            up: Lane::default(),
            processor: Lane::default(),
            down: Lane::default(),
            waiting: VecDeque::new(),
            commands: Slab::new(),
            arriving: VecDeque::new(),
            returning: Agenda::default(),
            scratch: Vec::new(),
        }
    }

    /// The device at the far end.
    pub fn far_mut(&mut self) -> &mut D {
        &mut self.far
    }

    /// The device at the far end.
    pub fn far(&self) -> &D {
        &self.far
    }

    fn payload(&self, bytes: u64) -> Nanos {
        (bytes as f64 * self.ns_per_byte).ceil() as Nanos
    }

    /// Sends a request off.
    fn send(&mut self, now: Nanos, mut request: Request) {
        let (up_bytes, answer_bytes) = match request.op {
            Op::Read => (0, request.len),
            Op::Write => (request.len, 0),
            Op::Flush | Op::Discard => (0, 0),
        };
        // Every request takes its turn in the lane, with payload or without, so that a flush
        // cannot overtake the writes before it.
        let takes = self.payload(up_bytes);
        let round_trip = request.shorten(2 * self.one_way);
        let return_trip = round_trip.min(self.one_way);
        let sent_at = self.up.send(now, takes);
        let leaves_at = if self.cut_through {
            sent_at - takes
        } else {
            sent_at
        };
        let received_at = leaves_at + round_trip - return_trip;
        let arrives_at = self.processor.send(received_at, self.command_cost);
        let number = self.commands.insert(Command {
            tag: request.tag,
            answer_bytes,
            return_trip,
            sent_at,
            failed: false,
        });
        let tag = number as u64;
        self.arriving
            .push_back((arrives_at, Request { tag, ..request }));
    }

    /// Lets the far end live until `at` and sends off its answers.
    fn advance_far(&mut self, at: Nanos) {
        let mut ready = std::mem::take(&mut self.scratch);
        self.far.advance(at, &mut ready);
        for answer in ready.drain(..) {
            let number = answer.tag as usize;
            let command = &mut self.commands[number];
            command.failed = answer.failed;
            let takes = (command.answer_bytes as f64 * self.ns_per_byte).ceil() as Nanos;
            let sent_at = match self.cut_through {
                false => self.down.send(answer.at, takes),
                // The last byte can come no sooner than the far end has it.
                true => self.down.send(command.sent_at, takes).max(answer.at),
            };
            self.down.free_at = sent_at;
            let received_at = sent_at + command.return_trip;
            self.returning.push(received_at, number);
        }
        self.scratch = ready;
    }

    /// Hands over the answers that are back by `at`; their places go to those that wait.
    fn receive(&mut self, at: Nanos, done: &mut Vec<Completion>) {
        while let Some((at, number)) = self.returning.pop_due(at) {
            let Command { tag, failed, .. } = self.commands.remove(number);
            done.push(Completion { tag, at, failed });
            if let Some(request) = self.waiting.pop_front() {
                self.send(at, request);
            }
        }
    }

    fn arriving_at(&self) -> Option<Nanos> {
        self.arriving.front().map(|&(at, _)| at)
    }
}

impl<D: Device> Device for Linked<D> {
    fn submit(&mut self, now: Nanos, request: Request) {
        if self.commands.len() < self.session_depth {
            self.send(now, request);
        } else {
            self.waiting.push_back(request);
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        let far = earlier(self.arriving_at(), self.far.next_event());
        earlier(self.returning.next_at(), far)
    }

    fn advance(&mut self, to: Nanos, done: &mut Vec<Completion>) {
        while let Some(at) = self.next_event().filter(|&at| at <= to) {
            self.receive(at, done);
            if self.far.next_event().is_some_and(|event| event <= at) {
                self.advance_far(at);
            }
            while self.arriving_at().is_some_and(|arrival| arrival <= at) {
                if let Some((_, request)) = self.arriving.pop_front() {
                    self.far.submit(at, request);
                }
            }
        }
    }

    fn volatile_bytes(&self, now: Nanos) -> u64 {
        self.far.volatile_bytes(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::ssd::{DirectionSpec, Ssd, SsdSpec};

    /// No wait at the far end, and a link on which a byte takes 10 ns.
    fn gigabit(session_depth: Option<usize>, command_us: f64) -> Linked<Ssd> {
        let instant = DirectionSpec {
            latency: 0,
            iops: 1_000_000_000,
            mb_per_s: 1e9,
        };
        let far = Ssd::new(&SsdSpec::of_data_sheet(instant, instant));
        let spec = LinkSpec {
            mb_per_s: 100.0,
            round_trip_ms: 0.2,
            command_us,
            session_depth,
            cut_through: false,
        };
        Linked::new(far, spec)
    }

    fn request(tag: u64, op: Op, len: u64) -> Request {
        Request::whole(tag, op, 0, len)
    }

    /// Runs it until it rests; tag and time of each completion, in microseconds.
    fn finish(link: &mut Linked<Ssd>) -> Vec<(u64, Nanos)> {
        let mut done = Vec::new();
        while let Some(at) = link.next_event() {
            link.advance(at, &mut done);
        }
        done.iter().map(|c| (c.tag, c.at / 1000)).collect()
    }

    #[test]
    fn payloads_queue_on_the_wire() {
        let mut link = gigabit(None, 0.0);
        link.submit(0, request(1, Op::Read, 1000));
        link.submit(0, request(2, Op::Read, 1000));
        assert_eq!(finish(&mut link), [(1, 210), (2, 220)]);
    }

    #[test]
    fn the_directions_do_not_share() {
        let mut link = gigabit(None, 0.0);
        link.submit(0, request(1, Op::Write, 10_000));
        link.submit(0, request(2, Op::Write, 10_000));
        assert_eq!(finish(&mut link), [(1, 300), (2, 400)]);
    }

    #[test]
    fn a_flush_does_not_overtake_a_write() {
        let mut link = gigabit(None, 0.0);
        link.submit(0, request(1, Op::Write, 10_000));
        link.submit(0, request(2, Op::Flush, 0));
        assert_eq!(finish(&mut link), [(1, 300), (2, 300)]);
    }

    #[test]
    fn commands_are_worked_on_one_after_the_other() {
        let mut link = gigabit(None, 50.0);
        for tag in 1..=3 {
            link.submit(0, request(tag, Op::Read, 0));
        }
        assert_eq!(finish(&mut link), [(1, 250), (2, 300), (3, 350)]);
    }

    #[test]
    fn what_a_session_has_no_room_for_waits_for_an_answer() {
        let mut link = gigabit(Some(2), 0.0);
        for tag in 1..=3 {
            link.submit(0, request(tag, Op::Read, 0));
        }
        assert_eq!(finish(&mut link), [(1, 200), (2, 200), (3, 400)]);
    }

    #[test]
    fn on_a_bus_bytes_cross_while_the_far_end_works() {
        let rate = DirectionSpec {
            latency: 0,
            iops: 1_000_000,
            mb_per_s: 200.0,
        };
        for (cut_through, took_us) in [(false, 1500), (true, 1000)] {
            let spec = LinkSpec {
                mb_per_s: 100.0,
                round_trip_ms: 0.0,
                command_us: 0.0,
                session_depth: None,
                cut_through,
            };
            for op in [Op::Read, Op::Write] {
                let far = Ssd::new(&SsdSpec::of_data_sheet(rate, rate));
                let mut link = Linked::new(far, spec);
                link.submit(0, request(1, op, 100_000));
                let took = finish(&mut link)[0].1;
                assert!(took.abs_diff(took_us) <= 1, "{cut_through} {op:?}: {took}");
            }
        }
    }
}
