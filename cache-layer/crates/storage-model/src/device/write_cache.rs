//! A controller's write-back cache in front of an array (or of anything else).
//!
//! A write is answered when it lies in the cache. From there it goes to the array in the order of
//! addresses, whole rows first: that is what makes parity cheap.

use std::collections::{BTreeMap, VecDeque};

use slab::Slab;

use crate::device::{Agenda, Completion, Device, Op, Request, earlier};
use virtual_time::Nanos;

/// What a controller's cache is built from; the model checks the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WriteCacheSpec {
    /// What it holds, bytes.
    pub bytes: u64,
    /// With a battery (or flash and capacitors) the content outlives a loss of power, and a flush
    /// has nothing to wait for.
    pub battery: bool,
    /// Until a write is in it.
    pub latency: Nanos,
    /// Into the cache and out of it, nanoseconds a byte.
    pub ns_per_byte: f64,
    /// What a read that is not in it costs beside the array's work.
    pub miss: Nanos,
    /// Data in a row of the array, bytes: what is written back in one go.
    pub row_bytes: u64,
    /// Commands of the write-back under way at most.
    pub depth: usize,
    /// How long a part of a row waits for the rest.
    pub gather: Nanos,
}

/// A range that has been written and not been written back.
#[derive(Clone, Copy, Debug)]
struct Dirty {
    end: u64,
    since: Nanos,
}

/// Where a command to the array came from.
#[derive(Clone, Copy, Debug)]
enum Command {
    /// The host, with this tag; it is not answered earlier than that.
    Host { tag: u64, not_before: Nanos },
    /// The write-back of a range.
    WriteBack { start: u64, end: u64 },
}

/// A device behind a write-back cache.
#[derive(Debug)]
pub struct WriteCache<D> {
    far: D,
    spec: WriteCacheSpec,
    now: Nanos,
    dirty: BTreeMap<u64, Dirty>,
    dirty_bytes: u64,
    /// On its way to the array, bytes.
    leaving_bytes: u64,
    leaving: usize,
    /// Where the write-back went last.
    position: u64,
    commands: Slab<Command>,
    /// Writes for which there is no room and flushes, in order.
    waiting: VecDeque<Request>,
    /// When the last write so far is answered.
    answered_at: Nanos,
    /// When the memory has taken in all writes so far.
    copied_at: Nanos,
    /// Reads on their way to the array.
    missed: VecDeque<(Nanos, Request)>,
    done: Agenda<u64>,
    scratch: Vec<Completion>,
}

impl<D: Device> WriteCache<D> {
    /// Puts a cache in front of a device.
    pub fn new(far: D, spec: WriteCacheSpec) -> WriteCache<D> {
        WriteCache {
            far,
            spec,
            now: 0,
            dirty: BTreeMap::new(),
            dirty_bytes: 0,
            leaving_bytes: 0,
            leaving: 0,
            position: 0,
            commands: Slab::new(),
            waiting: VecDeque::new(),
            answered_at: 0,
            copied_at: 0,
            missed: VecDeque::new(),
            done: Agenda::default(),
            scratch: Vec::new(),
        }
    }

    /// The device behind it.
    pub fn far(&self) -> &D {
        &self.far
    }

    /// The device behind it.
    pub fn far_mut(&mut self) -> &mut D {
        &mut self.far
    }

    fn held_bytes(&self) -> u64 {
        self.dirty_bytes + self.leaving_bytes
    }

    fn pass_on(&mut self, request: Request) {
        let host = Command::Host {
            tag: request.tag,
            not_before: match request.op {
                // A fast array may have all of a write before the host is told of the write.
                Op::Flush => self.answered_at,
                _ => 0,
            },
        };
        let tag = self.commands.insert(host) as u64;
        self.far.submit(self.now, Request { tag, ..request });
    }

    fn accept(&mut self, mut request: Request) {
        self.add(request.offset, request.offset + request.len);
        let latency = request.shorten(self.spec.latency);
        self.copied_at = self.copied_at.max(self.now) + self.copying(request.len);
        self.answered_at = self.answered_at.max(self.copied_at + latency);
        self.done.push(self.answered_at, request.tag);
    }

    fn copying(&self, bytes: u64) -> Nanos {
        (bytes as f64 * self.spec.ns_per_byte).ceil() as Nanos
    }

    /// Marks a range dirty, and joins it with what it meets.
    fn add(&mut self, mut start: u64, mut end: u64) {
        let mut since = self.now;
        while let Some((
            &other,
            &Dirty {
                end: other_end,
                since: other_since,
            },
        )) = self.dirty.range(..=end).next_back()
        {
            if other_end < start {
                break;
            }
            self.dirty.remove(&other);
            self.dirty_bytes -= other_end - other;
            (start, end) = (start.min(other), end.max(other_end));
            since = since.min(other_since);
        }
        self.dirty.insert(start, Dirty { end, since });
        self.dirty_bytes += end - start;
    }

    /// Takes in what has room, in order; a flush waits until nothing is volatile, and what comes
    /// after it waits with it.
    fn accept_waiting(&mut self) {
        while let Some(request) = self.waiting.front().copied() {
            let held_bytes = self.held_bytes();
            let is_ready = match request.op {
                Op::Flush => self.spec.battery || held_bytes == 0,
                _ => held_bytes == 0 || held_bytes + request.len <= self.spec.bytes,
            };
            if !is_ready {
                return;
            }
            self.waiting.pop_front();
            match (request.op, self.spec.battery) {
                (Op::Flush, true) => self.done.push(self.answered_at.max(self.now), request.tag),
                (Op::Flush, false) => self.pass_on(request),
                _ => self.accept(request),
            }
        }
    }

    /// Whether everything dirty is wanted on the array now.
    fn is_pressed(&self) -> bool {
        !self.waiting.is_empty() || self.dirty_bytes > self.spec.bytes / 2
    }

    /// The next range to write back: the next in the order of addresses that is a whole row, or
    /// has waited for the rest of its row long enough.
    fn choose(&self) -> Option<(u64, u64)> {
        let pressed = self.is_pressed();
        let onwards = self.dirty.range(self.position..);
        let from_start = self.dirty.range(..self.position);
        onwards.chain(from_start).find_map(|(&start, dirty)| {
            let row = self.spec.row_bytes;
            let whole_from = start.next_multiple_of(row);
            if whole_from + row <= dirty.end {
                return Some((whole_from, whole_from + row));
            }
            let is_due = pressed || dirty.since + self.spec.gather <= self.now;
            let row_end = (start / row + 1) * row;
            is_due.then_some((start, dirty.end.min(row_end)))
        })
    }

    fn write_back(&mut self) {
        while self.leaving < self.spec.depth {
            let Some((start, end)) = self.choose() else {
                return;
            };
            self.take_out(start, end);
            self.position = end;
            self.leaving += 1;
            self.leaving_bytes += end - start;
            let number = self.commands.insert(Command::WriteBack { start, end });
            let request = Request::whole(number as u64, Op::Write, start, end - start);
            self.far.submit(self.now, request);
        }
    }

    /// Takes a part out of the one range it lies in.
    fn take_out(&mut self, start: u64, end: u64) {
        let Some((&first, &dirty)) = self.dirty.range(..=start).next_back() else {
            return;
        };
        self.dirty.remove(&first);
        if first < start {
            self.dirty.insert(
                first,
                Dirty {
                    end: start,
                    ..dirty
                },
            );
        }
        if end < dirty.end {
            self.dirty.insert(end, dirty);
        }
        self.dirty_bytes -= end - start;
    }

    /// Whether a read finds all it wants here.
    fn holds(&self, start: u64, end: u64) -> bool {
        let before = self.dirty.range(..=start).next_back();
        let dirty = before.is_some_and(|(_, dirty)| end <= dirty.end);
        let leaving = |command: &Command| matches!(command, Command::WriteBack { start: from, end: to } if *from <= start && end <= *to);
        dirty || self.commands.iter().any(|(_, command)| leaving(command))
    }

    fn take_in_answers(&mut self, at: Nanos, done: &mut Vec<Completion>) {
        let mut answers = std::mem::take(&mut self.scratch);
        self.far.advance(at, &mut answers);
        for answer in answers.drain(..) {
            match self.commands.remove(answer.tag as usize) {
                Command::Host { tag, not_before } if !answer.failed && answer.at < not_before => {
                    self.done.push(not_before, tag);
                }
                Command::Host { tag, .. } => done.push(Completion { tag, ..answer }),
                Command::WriteBack { start, end } => {
                    self.leaving -= 1;
                    self.leaving_bytes -= end - start;
                }
            }
        }
        self.scratch = answers;
    }

    /// When a part of a row has waited long enough.
    fn due_at(&self) -> Option<Nanos> {
        if self.leaving == self.spec.depth {
            return None;
        }
        let oldest = self.dirty.values().map(|dirty| dirty.since).min();
        oldest.map(|since| (since + self.spec.gather).max(self.now))
    }
}

impl<D: Device> Device for WriteCache<D> {
    fn submit(&mut self, now: Nanos, request: Request) {
        self.now = now;
        match request.op {
            Op::Write | Op::Flush => {
                self.waiting.push_back(request);
                self.accept_waiting();
                self.write_back();
            }
            Op::Read if self.holds(request.offset, request.offset + request.len) => {
                let mut request = request;
                let latency = request.shorten(self.spec.latency) + self.copying(request.len);
                self.done.push(now + latency, request.tag);
            }
            Op::Read if self.spec.miss > 0 => {
                let mut request = request;
                let at = now + request.shorten(self.spec.miss);
                self.missed.push_back((at, request));
            }
            Op::Read | Op::Discard => self.pass_on(request),
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        let missed = self.missed.front().map(|&(at, _)| at);
        let own = earlier(self.done.next_at(), earlier(missed, self.due_at()));
        earlier(own, self.far.next_event())
    }

    fn advance(&mut self, to: Nanos, done: &mut Vec<Completion>) {
        while let Some(at) = self.next_event().filter(|&at| at <= to) {
            self.now = at;
            while let Some((at, tag)) = self.done.pop_due(at) {
                done.push(Completion::done(tag, at));
            }
            self.take_in_answers(at, done);
            while let Some(&(_, request)) = self.missed.front().filter(|(due, _)| *due <= at) {
                self.missed.pop_front();
                self.pass_on(request);
            }
            self.accept_waiting();
            self.write_back();
        }
        self.now = self.now.max(to);
    }

    fn volatile_bytes(&self, now: Nanos) -> u64 {
        let held = match self.spec.battery {
            true => 0,
            false => self.held_bytes(),
        };
        held + self.far.volatile_bytes(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::ssd::{DirectionSpec, Ssd, SsdSpec};

    const MS: Nanos = 1_000_000;

    /// In front of something that takes 1 ms for each request, one after the other.
    fn cache(battery: bool) -> WriteCache<Ssd> {
        let slow = DirectionSpec {
            latency: MS,
            iops: 1000,
            mb_per_s: 1e6,
        };
        let spec = WriteCacheSpec {
            bytes: 64 * 1024,
            battery,
            latency: 100_000,
            ns_per_byte: 0.0,
            miss: 0,
            row_bytes: 16 * 1024,
            depth: 4,
            gather: 5 * MS,
        };
        WriteCache::new(Ssd::new(&SsdSpec::of_data_sheet(slow, slow)), spec)
    }

    fn finish(cache: &mut WriteCache<Ssd>) -> Vec<(u64, Nanos)> {
        let mut done = Vec::new();
        while let Some(at) = cache.next_event() {
            cache.advance(at, &mut done);
        }
        done.iter().map(|c| (c.tag, c.at)).collect()
    }

    fn write(tag: u64, offset_kib: u64, kib: u64) -> Request {
        Request::whole(tag, Op::Write, offset_kib * 1024, kib * 1024)
    }

    #[test]
    fn a_write_is_answered_from_the_cache() {
        let mut cache = cache(true);
        cache.submit(0, write(1, 0, 4));
        assert_eq!(finish(&mut cache), [(1, 100_000)]);
        assert_eq!(cache.held_bytes(), 0, "it was written back in the end");
    }

    #[test]
    fn small_writes_leave_as_whole_rows() {
        let mut cache = cache(true);
        for tag in 0..8 {
            cache.submit(0, write(tag, tag * 4, 4));
        }
        finish(&mut cache);
        assert_eq!(cache.far().wear().host_bytes, 32 * 1024);
        // Two rows, 1 ms each: as eight writes they would have taken 8 ms.
        assert_eq!(cache.now, 2 * MS);
    }

    #[test]
    fn a_full_cache_makes_writes_wait_for_the_array() {
        let mut cache = cache(true);
        for tag in 0..17 {
            cache.submit(0, write(tag, tag * 100, 4));
        }
        let done = finish(&mut cache);
        assert!(done[..16].iter().all(|(_, at)| *at == 100_000));
        assert!(done[16].1 > MS);
    }

    #[test]
    fn only_without_a_battery_a_flush_waits_for_the_array() {
        for (battery, flushed_after) in [(true, 100_000), (false, MS)] {
            let mut cache = cache(battery);
            cache.submit(0, write(1, 0, 4));
            assert_eq!(cache.volatile_bytes(0), if battery { 0 } else { 4096 });
            cache.submit(0, Request::whole(2, Op::Flush, 0, 0));
            let done = finish(&mut cache);
            assert_eq!(done[1], (2, flushed_after));
        }
    }

    #[test]
    fn a_flush_is_not_answered_before_a_write_that_a_fast_array_has_already() {
        let mut cache = cache(false);
        cache.spec.ns_per_byte = 100.0;
        cache.submit(0, write(1, 0, 64));
        cache.submit(0, Request::whole(2, Op::Flush, 0, 0));
        let done = finish(&mut cache);
        assert!(done[0].1 > 6 * MS, "the copying alone takes as long");
        assert_eq!(done, [(1, done[0].1), (2, done[0].1)]);
    }

    #[test]
    fn what_is_dirty_is_read_from_the_cache() {
        let mut cache = cache(true);
        cache.submit(0, write(1, 0, 8));
        cache.submit(0, Request::whole(2, Op::Read, 4096, 4096));
        cache.submit(0, Request::whole(3, Op::Read, 1 << 20, 4096));
        let done = finish(&mut cache);
        assert_eq!(done[1], (2, 100_000));
        assert!(done[2].1 >= MS);
    }
}
