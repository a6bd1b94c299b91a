//! One hard disk: a command queue, one arm, a read buffer and a little write gathering.

use std::collections::VecDeque;

use super::mechanics::{Mechanics, MechanicsSpec};
use super::read_ahead::Segments;
use super::write_gather::{BulkWrite, WriteGather};
use super::{Agenda, Completion, Device, Op, Request, earlier};
use crate::time::Nanos;

/// What one disk is built from; the model checks the values.
#[derive(Clone, Debug, PartialEq)]
pub struct HddSpec {
    /// Seek curve, rotation and media rate.
    pub mechanics: MechanicsSpec,
    /// Commands the drive can choose among (NCQ); 1 = in order of arrival.
    pub queue_depth: usize,
    /// How far a stream is read ahead, bytes; 0 turns it off.
    pub read_ahead_bytes: u64,
    /// How much of a bulk write stream is accepted before it is on the medium, bytes; 0 = none.
    pub write_gather_bytes: u64,
    /// A queued command older than this goes first, nanoseconds.
    pub age_max: Nanos,
}

/// Media work: a host's command, or (without tag) the drain of gathered writes.
#[derive(Debug)]
struct Job {
    sequence: u64,
    tag: Option<u64>,
    op: Op,
    start: u64,
    end: u64,
    /// When the drive's own queue took it in; ages from then on.
    queued_at: Nanos,
}

#[derive(Debug)]
enum Arm {
    Idle,
    /// Positioning for or transferring a job; runs to its end.
    Serving {
        job: Job,
        until: Nanos,
    },
    /// Reading on for a stream; given up when a job comes.
    ReadingAhead {
        segment: u64,
        from: u64,
        to: u64,
        transfer_at: Nanos,
    },
}

#[derive(Debug)]
struct Flush {
    tag: u64,
    /// Waits for the writes up to this sequence.
    after: u64,
}

/// A modelled hard disk.
#[derive(Debug)]
pub struct Hdd {
    mechanics: Mechanics,
    spec: HddSpec,
    now: Nanos,
    arm: Arm,
    head: u64,
    /// What the drive can choose among, at most `queue_depth`.
    queue: Vec<Job>,
    /// What the drive has not taken in yet.
    waiting: VecDeque<Job>,
    flushes: Vec<Flush>,
    segments: Segments,
    gather: WriteGather,
    sequence: u64,
    done: Agenda<u64>,
}

impl Hdd {
    /// A disk at rest, its arm over byte 0.
    pub fn new(spec: HddSpec) -> Hdd {
        Hdd {
            mechanics: Mechanics::new(&spec.mechanics),
            segments: Segments::new(spec.read_ahead_bytes),
            gather: WriteGather::new(spec.write_gather_bytes),
            spec,
            now: 0,
            arm: Arm::Idle,
            head: 0,
            queue: Vec::new(),
            waiting: VecDeque::new(),
            flushes: Vec::new(),
            sequence: 0,
            done: Agenda::default(),
        }
    }

    fn submit_read(&mut self, request: Request) {
        let (start, end) = (request.offset, request.offset + request.len);
        self.note_read_ahead();
        self.segments.consume(start, end);
        if self.segments.buffered_to(start) >= Some(end) {
            self.done.push(self.now, request.tag);
            if matches!(self.arm, Arm::Idle) {
                self.start_next();
            }
        } else {
            self.enqueue(request.tag, Op::Read, start, end);
        }
    }

    fn submit_write(&mut self, request: Request) {
        let (start, end) = (request.offset, request.offset + request.len);
        self.segments.invalidate(start, end);
        if self.gather.wants(start, end, request.host_len) {
            let sequence = self.next_sequence();
            self.gather.push(BulkWrite {
                sequence,
                tag: request.tag,
                start,
                end,
            });
            self.accept_bulk_writes();
        } else {
            self.enqueue(request.tag, Op::Write, start, end);
        }
    }

    /// Completes bulk writes for which there is room, and queues them to be drained.
    fn accept_bulk_writes(&mut self) {
        while let Some(accepted) = self.gather.accept() {
            self.done.push(self.now, accepted.tag);
            self.drain(&accepted);
        }
    }

    /// Joins an accepted write to the drain before it, or queues a new drain.
    fn drain(&mut self, accepted: &BulkWrite) {
        let bytes_max = self.gather.drain_bytes_max();
        let adjacent = self
            .queue
            .iter_mut()
            .chain(&mut self.waiting)
            .find(|job| job.tag.is_none() && job.end == accepted.start)
            .filter(|job| accepted.end - job.start <= bytes_max);
        match adjacent {
            Some(drain) => drain.end = accepted.end,
            None => self.enqueue_job(Job {
                sequence: accepted.sequence,
                tag: None,
                op: Op::Write,
                start: accepted.start,
                end: accepted.end,
                queued_at: self.now,
            }),
        }
    }

    fn enqueue(&mut self, tag: u64, op: Op, start: u64, end: u64) {
        let job = Job {
            sequence: self.next_sequence(),
            tag: Some(tag),
            op,
            start,
            end,
            queued_at: self.now,
        };
        self.enqueue_job(job);
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    fn enqueue_job(&mut self, job: Job) {
        self.waiting.push_back(job);
        self.take_in();
        self.stop_read_ahead();
        if matches!(self.arm, Arm::Idle) {
            self.start_next();
        }
    }

    /// Moves commands from the host's queue to the drive's as far as there is room.
    fn take_in(&mut self) {
        while self.queue.len() < self.spec.queue_depth {
            let Some(mut job) = self.waiting.pop_front() else {
                return;
            };
            job.queued_at = self.now;
            self.queue.push(job);
        }
    }

    /// Gives the idle arm its next job, or lets it read ahead, or leaves it at rest.
    fn start_next(&mut self) {
        while let Some(index) = self.choose() {
            let job = self.queue.swap_remove(index);
            self.take_in();
            let from = self.media_start(&job);
            if from >= job.end {
                self.segments.consume(job.start, job.end);
                self.finish(&job);
                continue;
            }
            let until = self.now
                + self.mechanics.positioning_ns(self.now, self.head, from)
                + self.mechanics.transfer_ns(job.end - from);
            self.arm = Arm::Serving { job, until };
            return;
        }
        self.start_read_ahead();
    }

    /// Shortest positioning first, unless the oldest command has waited too long.
    fn choose(&self) -> Option<usize> {
        let age = |&index: &usize| (self.queue[index].queued_at, self.queue[index].sequence);
        let oldest = (0..self.queue.len()).min_by_key(age)?;
        if self.now - self.queue[oldest].queued_at > self.spec.age_max {
            return Some(oldest);
        }
        let cost = |&index: &usize| {
            let job = &self.queue[index];
            let from = self.media_start(job);
            let positioning_ns = self.mechanics.positioning_ns(self.now, self.head, from);
            (positioning_ns, job.sequence)
        };
        (0..self.queue.len()).min_by_key(cost)
    }

    /// First byte of a job that has to come from, or go to, the medium.
    fn media_start(&self, job: &Job) -> u64 {
        match job.op {
            Op::Read => self.segments.buffered_to(job.start).unwrap_or(job.start),
            Op::Write | Op::Flush => job.start,
        }
    }

    fn start_read_ahead(&mut self) {
        let Some(stream) = self.segments.hungry() else {
            return;
        };
        let (segment, from) = (stream.id, stream.end);
        let to = self.read_ahead_end(segment);
        if from >= to {
            return;
        }
        let transfer_at = self.now + self.mechanics.positioning_ns(self.now, self.head, from);
        self.arm = Arm::ReadingAhead {
            segment,
            from,
            to,
            transfer_at,
        };
    }

    fn read_ahead_end(&self, segment: u64) -> u64 {
        let target = self.segments.target(segment).unwrap_or(0);
        target.min(self.spec.mechanics.capacity_bytes)
    }

    /// Brings the books up to date with what read-ahead has fetched by now, and lets it go on
    /// if the host has meanwhile taken some.
    fn note_read_ahead(&mut self) {
        if let Some((segment, reached)) = self.read_ahead_reached() {
            self.segments.extend(segment, reached);
            let end = self.read_ahead_end(segment);
            if let Arm::ReadingAhead { to, .. } = &mut self.arm {
                *to = end.max(*to);
            }
        }
    }

    fn stop_read_ahead(&mut self) {
        if let Some((segment, reached)) = self.read_ahead_reached() {
            self.segments.extend(segment, reached);
            self.head = reached;
            self.arm = Arm::Idle;
        }
    }

    /// The segment being read ahead and the end of what has passed under the head.
    fn read_ahead_reached(&self) -> Option<(u64, u64)> {
        let Arm::ReadingAhead {
            segment,
            from,
            to,
            transfer_at,
        } = self.arm
        else {
            return None;
        };
        let passed = self
            .mechanics
            .bytes_passed(self.now.saturating_sub(transfer_at));
        Some((segment, to.min(from + passed)))
    }

    fn arm_event(&self) -> Option<Nanos> {
        match &self.arm {
            Arm::Idle => None,
            Arm::Serving { until, .. } => Some(*until),
            Arm::ReadingAhead {
                from,
                to,
                transfer_at,
                ..
            } => Some(transfer_at + self.mechanics.transfer_ns(to - from)),
        }
    }

    /// The arm has reached the end of what it was doing.
    fn finish_arm(&mut self) {
        match std::mem::replace(&mut self.arm, Arm::Idle) {
            Arm::Idle => {}
            Arm::Serving { job, .. } => {
                self.head = job.end;
                if job.op == Op::Read {
                    self.segments.fill(job.start, job.end);
                }
                self.finish(&job);
            }
            Arm::ReadingAhead { segment, to, .. } => {
                self.head = to;
                self.segments.extend(segment, to);
            }
        }
        self.accept_bulk_writes();
        if matches!(self.arm, Arm::Idle) {
            self.start_next();
        }
    }

    fn finish(&mut self, job: &Job) {
        match job.tag {
            Some(tag) => self.done.push(self.now, tag),
            None => self.gather.release(job.end - job.start),
        }
        self.finish_flushes();
    }

    /// Completes the flushes that have no write left to wait for.
    fn finish_flushes(&mut self) {
        if self.flushes.is_empty() {
            return;
        }
        let oldest = self.oldest_write().unwrap_or(u64::MAX);
        let (now, done) = (self.now, &mut self.done);
        self.flushes.retain(|flush| {
            let waits = oldest <= flush.after;
            if !waits {
                done.push(now, flush.tag);
            }
            waits
        });
    }

    /// Sequence of the oldest write that is not on the medium.
    fn oldest_write(&self) -> Option<u64> {
        let serving = match &self.arm {
            Arm::Serving { job, .. } => Some(job),
            Arm::Idle | Arm::ReadingAhead { .. } => None,
        };
        let jobs = self.queue.iter().chain(&self.waiting).chain(serving);
        let writes = jobs.filter(|job| job.op == Op::Write);
        let blocked = self.gather.blocked_sequences();
        writes.map(|job| job.sequence).chain(blocked).min()
    }
}

impl Device for Hdd {
    fn submit(&mut self, now: Nanos, request: Request) {
        debug_assert!(now >= self.now, "time runs backwards");
        self.now = now;
        match request.op {
            Op::Read => self.submit_read(request),
            Op::Write => self.submit_write(request),
            Op::Flush => {
                self.flushes.push(Flush {
                    tag: request.tag,
                    after: self.sequence,
                });
                self.finish_flushes();
            }
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        earlier(self.done.next_at(), self.arm_event())
    }

    fn advance(&mut self, to: Nanos, done: &mut Vec<Completion>) {
        while let Some(at) = self.arm_event().filter(|&at| at <= to) {
            self.now = at;
            self.finish_arm();
        }
        self.now = self.now.max(to);
        while let Some((at, tag)) = self.done.pop_due(to) {
            done.push(Completion { tag, at });
        }
    }
}

#[cfg(test)]
#[path = "hdd_tests.rs"]
mod tests;
