//! One hard disk: a command queue, one arm, a read buffer, and a write cache or a little gathering.

use std::collections::VecDeque;
use std::ops::Range;

pub(crate) mod mechanics;
mod read_ahead;
mod write_gather;

use super::{Completion, Device, Op, Request, earlier};
use mechanics::{Mechanics, MechanicsSpec};
use read_ahead::{Filled, Segments};
use virtual_time::Nanos;
use write_gather::{BulkWrite, STREAMS_MAX, WriteGather};

/// What one disk is built from; the model checks the values.
#[derive(Clone, Debug, PartialEq)]
pub struct HddSpec {
    /// Seek curve, rotation and media rate.
    pub mechanics: MechanicsSpec,
    /// Commands the drive can choose among (NCQ); 1 = in order of arrival.
    pub queue_depth: usize,
    /// How far a stream is read ahead, bytes; 0 turns it off.
    pub read_ahead_bytes: u64,
    /// What has been read and read ahead is kept in a buffer of this size.
    pub read_buffer_bytes: u64,
    /// How much of a bulk write stream is accepted before it is on the medium, bytes; 0 = none.
    pub write_gather_bytes: u64,
    /// The volatile write cache, bytes: any write is accepted into it; 0 = off.
    pub write_cache_bytes: u64,
    /// What the drive's electronics add to each command.
    pub command_overhead: Nanos,
    /// Between host and buffer, nanoseconds a byte; 0 = no time.
    pub interface_ns_per_byte: f64,
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
    /// First byte that has to come from, or go to, the medium; kept up to date, as the choice
    /// among the queue asks for it all the time.
    media_start: u64,
    /// Its angle.
    angle_ns: f64,
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
    /// When the interface is free.
    interface_free_at: Nanos,
    /// In order of time: whatever completes takes its turn on the interface.
    done: VecDeque<(Nanos, u64)>,
}

impl Hdd {
    /// A disk at rest, its arm over byte 0.
    pub fn new(spec: HddSpec) -> Hdd {
        Hdd {
            mechanics: Mechanics::new(&spec.mechanics),
            segments: Segments::new(spec.read_ahead_bytes, spec.read_buffer_bytes),
            gather: match spec.write_cache_bytes {
                0 => WriteGather::of_bulk_streams(spec.write_gather_bytes),
                bytes => WriteGather::of_everything(bytes),
            },
            spec,
            now: 0,
            arm: Arm::Idle,
            head: 0,
            queue: Vec::new(),
            waiting: VecDeque::new(),
            flushes: Vec::new(),
            sequence: 0,
            interface_free_at: 0,
            done: VecDeque::new(),
        }
    }

    /// Answers a command whose payload has to cross the interface now.
    fn answer(&mut self, tag: u64, bytes: u64) {
        let crossing = (bytes as f64 * self.spec.interface_ns_per_byte).ceil() as Nanos;
        self.interface_free_at = self.interface_free_at.max(self.now) + crossing;
        let at = self.interface_free_at + self.spec.command_overhead;
        self.done.push_back((at, tag));
    }

    /// Answers a command whose payload crossed while the medium passed.
    fn answer_streamed(&mut self, tag: u64) {
        self.answer(tag, 0);
    }

    fn submit_read(&mut self, request: Request) {
        let (start, end) = (request.offset, request.offset + request.len);
        self.note_read_ahead();
        self.segments.consume(start, end);
        if self.segments.buffered_to(start) >= Some(end) {
            self.answer(request.tag, request.len);
            if matches!(self.arm, Arm::Idle) {
                self.start_next();
            }
        } else {
            self.enqueue(request.tag, Op::Read, start, end);
        }
    }

    fn submit_write(&mut self, request: Request) {
        let (start, end) = (request.offset, request.offset + request.len);
        if self.segments.invalidate(start, end) {
            self.find_media_starts();
        }
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
            self.answer(accepted.tag, accepted.end - accepted.start);
            self.drain(&accepted);
        }
    }

    /// Joins an accepted write to the drain before it, or queues a new drain.
    fn drain(&mut self, accepted: &BulkWrite) {
        let bytes_max = self.gather.drain_bytes_max();
        let latest = self.waiting.iter_mut().rev().take(STREAMS_MAX);
        let adjacent = self
            .queue
            .iter_mut()
            .chain(latest)
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
                media_start: accepted.start,
                angle_ns: self.mechanics.angle_ns(accepted.start),
                queued_at: self.now,
            }),
        }
    }

    fn enqueue(&mut self, tag: u64, op: Op, start: u64, end: u64) {
        let buffered_to = match op {
            Op::Read => self.segments.buffered_to(start),
            Op::Write | Op::Flush | Op::Discard => None,
        };
        let media_start = buffered_to.unwrap_or(start);
        let job = Job {
            sequence: self.next_sequence(),
            tag: Some(tag),
            op,
            start,
            end,
            media_start,
            angle_ns: self.mechanics.angle_ns(media_start),
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
            if job.media_start >= job.end {
                self.segments.consume(job.start, job.end);
                self.finish(&job);
                continue;
            }
            let until = self.now
                + self.positioning_ns(&job)
                + self
                    .mechanics
                    .transfer_ns(job.media_start, job.end - job.media_start);
            self.arm = Arm::Serving { job, until };
            return;
        }
        self.start_read_ahead();
    }

    /// Shortest positioning first, unless the oldest command has waited too long.
    fn choose(&self) -> Option<usize> {
        let (mut oldest, mut nearest) = (None, None);
        for (index, job) in self.queue.iter().enumerate() {
            let age = (job.queued_at, job.sequence, index);
            let cost = (self.positioning_ns(job), job.sequence, index);
            oldest = Some(oldest.map_or(age, |known: (Nanos, u64, usize)| known.min(age)));
            nearest = Some(nearest.map_or(cost, |known: (Nanos, u64, usize)| known.min(cost)));
        }
        let (queued_at, _, index) = oldest?;
        if self.now - queued_at > self.spec.age_max {
            return Some(index);
        }
        nearest.map(|(_, _, index)| index)
    }

    fn positioning_ns(&self, job: &Job) -> Nanos {
        let write = job.op == Op::Write;
        self.mechanics
            .positioning_ns(self.now, self.head, job.media_start, job.angle_ns, write)
    }

    /// The buffer holds more of a run than before: queued reads that begin in it have less to
    /// fetch.
    fn note_buffered(&mut self, run: Range<u64>) {
        for job in self.queue.iter_mut().chain(&mut self.waiting) {
            let begins_in_it = run.start <= job.start && job.start <= run.end;
            if job.op == Op::Read && begins_in_it && run.end > job.media_start {
                job.media_start = run.end;
                job.angle_ns = self.mechanics.angle_ns(run.end);
            }
        }
    }

    /// The buffer has lost runs: queued reads may have more to fetch.
    fn find_media_starts(&mut self) {
        for job in self.queue.iter_mut().chain(&mut self.waiting) {
            if job.op == Op::Read && job.media_start > job.start {
                job.media_start = self.segments.buffered_to(job.start).unwrap_or(job.start);
                job.angle_ns = self.mechanics.angle_ns(job.media_start);
            }
        }
    }

    fn note_filled(&mut self, filled: Filled) {
        self.note_buffered(filled.run);
        if filled.evicted {
            self.find_media_starts();
        }
    }

    fn extend(&mut self, segment: u64, reached: u64) {
        if let Some(filled) = self.segments.extend(segment, reached) {
            self.note_filled(filled);
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
        let angle_ns = self.mechanics.angle_ns(from);
        let transfer_at = self.now
            + self
                .mechanics
                .positioning_ns(self.now, self.head, from, angle_ns, false);
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
            self.extend(segment, reached);
            let end = self.read_ahead_end(segment);
            if let Arm::ReadingAhead { to, .. } = &mut self.arm {
                *to = end.max(*to);
            }
        }
    }

    fn stop_read_ahead(&mut self) {
        if let Some((segment, reached)) = self.read_ahead_reached() {
            self.extend(segment, reached);
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
            .bytes_passed(from, self.now.saturating_sub(transfer_at));
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
            } => Some(transfer_at + self.mechanics.transfer_ns(*from, to - from)),
        }
    }

    /// The arm has reached the end of what it was doing.
    fn finish_arm(&mut self) {
        match std::mem::replace(&mut self.arm, Arm::Idle) {
            Arm::Idle => {}
            Arm::Serving { job, .. } => {
                self.head = job.end;
                if job.op == Op::Read {
                    let filled = self.segments.fill(job.start, job.end);
                    self.note_filled(filled);
                }
                self.finish(&job);
            }
            Arm::ReadingAhead { segment, to, .. } => {
                self.head = to;
                self.extend(segment, to);
            }
        }
        self.accept_bulk_writes();
        if matches!(self.arm, Arm::Idle) {
            self.start_next();
        }
    }

    fn finish(&mut self, job: &Job) {
        match job.tag {
            Some(tag) => self.answer_streamed(tag),
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
        // A flush waits for its turn like any answer, as the one before it may be on its way.
        let at = self.now.max(self.interface_free_at) + self.spec.command_overhead;
        let done = &mut self.done;
        self.flushes.retain(|flush| {
            let waits = oldest <= flush.after;
            if !waits {
                done.push_back((at, flush.tag));
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
            // Disks of this kind know no trim.
            Op::Discard => self.answer(request.tag, 0),
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        earlier(self.done.front().map(|&(at, _)| at), self.arm_event())
    }

    fn advance(&mut self, to: Nanos, done: &mut Vec<Completion>) {
        while let Some(at) = self.arm_event().filter(|&at| at <= to) {
            self.now = at;
            self.finish_arm();
        }
        self.now = self.now.max(to);
        while let Some(&(at, tag)) = self.done.front().filter(|(at, _)| *at <= to) {
            self.done.pop_front();
            done.push(Completion::done(tag, at));
        }
    }

    fn volatile_bytes(&self, _now: Nanos) -> u64 {
        self.gather.held_bytes()
    }
}

#[cfg(test)]
mod tests;
