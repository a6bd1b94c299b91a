//! A disk with some flash in front of it as one device: a hybrid disk, or a tier that is simulated.
//!
//! What the flash keeps is decided by the very engine that the tier runs on files; here it is driven
//! in virtual time. Its metadata are left out: firmware keeps them with the flash's own tables, and
//! a tier writes them to the page cache.

use std::collections::VecDeque;
use std::fmt;

use cache_core::engine::{Action, Device as Side, Direction, Engine, Errno, Mode};
use slab::Slab;

use crate::device::{Completion, Device, Op, Request, earlier};
use virtual_time::{NANOS_PER_S, Nanos};

/// How often the engine is told that time passes …
const TICK: Nanos = NANOS_PER_S as Nanos / 10;
/// … as long as it has something to do, and for so long after that: what it does when nobody wants
/// anything it begins within a second.
const TICKS_ON: Nanos = 2 * NANOS_PER_S as Nanos;

/// A host's request that the engine has not answered.
#[derive(Clone, Copy, Debug)]
struct Pending {
    tag: u64,
    /// Of a write: how many flushes came before it.
    flushes_before: Option<u64>,
}

/// Flushes that wait for the writes that came before them.
#[derive(Debug)]
struct Flushes {
    /// The tags of those that wait.
    tags: VecDeque<u64>,
    /// How many no longer wait.
    begun: u64,
    /// Writes that have not been answered: those before the first flush that waits, those before the
    /// second, …, and those after the last.
    writes: VecDeque<u32>,
}

impl Flushes {
    fn new() -> Flushes {
        Flushes {
            tags: VecDeque::new(),
            begun: 0,
            writes: VecDeque::from([0]),
        }
    }

    /// A write begins; how many flushes came before it.
    fn begin_write(&mut self) -> u64 {
        let last = self.writes.len() - 1;
        self.writes[last] += 1;
        self.begun + last as u64
    }

    fn end_write(&mut self, flushes_before: u64) {
        self.writes[(flushes_before - self.begun) as usize] -= 1;
    }

    fn wait(&mut self, tag: u64) {
        self.tags.push_back(tag);
        self.writes.push_back(0);
    }

    /// The tag of a flush that has nothing to wait for any more.
    fn next(&mut self) -> Option<u64> {
        if self.writes[0] > 0 {
            return None;
        }
        let tag = self.tags.pop_front()?;
        self.writes.pop_front();
        self.begun += 1;
        Some(tag)
    }
}

/// A flush that is on both devices.
#[derive(Clone, Copy, Debug)]
struct Flushing {
    tag: u64,
    answers_left: u8,
    failed: bool,
}

/// In the tag of a command to one of the two devices: it is part of the flush with this number in
/// `flushing`. Without it, it is the I/O of the engine's with this number.
const FLUSH: u64 = 1 << 63;

/// A flash and the disk behind it as one device.
pub struct Hybrid<F, D> {
    flash: F,
    disk: D,
    /// When each of them has something to do: asking an array takes time.
    flash_at: Option<Nanos>,
    disk_at: Option<Nanos>,
    /// Somebody else may have changed that.
    disk_touched: bool,
    engine: Engine,
    /// By the number that the engine knows them by.
    pending: Slab<Pending>,
    flushes: Flushes,
    flushing: Slab<Flushing>,
    tick_at: Option<Nanos>,
    ticks_until: Nanos,
    /// Answers that have not been fetched, in the order of time.
    done: VecDeque<Completion>,
    actions: Vec<Action>,
    scratch: Vec<Completion>,
}

impl<F: Device, D: Device> Hybrid<F, D> {
    /// A flash and a disk that an engine without a log makes one of.
    pub fn new(engine: Engine, flash: F, disk: D) -> Hybrid<F, D> {
        Hybrid {
            flash_at: flash.next_event(),
            disk_at: disk.next_event(),
            disk_touched: false,
            flash,
            disk,
            engine,
            pending: Slab::new(),
            flushes: Flushes::new(),
            flushing: Slab::new(),
            tick_at: None,
            ticks_until: 0,
            done: VecDeque::new(),
            actions: Vec::new(),
            scratch: Vec::new(),
        }
    }

    /// The cache.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The fast device.
    pub fn flash(&self) -> &F {
        &self.flash
    }

    /// The device behind it.
    pub fn disk(&self) -> &D {
        &self.disk
    }

    /// The device behind it.
    pub fn disk_mut(&mut self) -> &mut D {
        self.disk_touched = true;
        &mut self.disk
    }

    fn disk_at(&self) -> Option<Nanos> {
        match self.disk_touched {
            true => self.disk.next_event(),
            false => self.disk_at,
        }
    }

    fn submit_to(&mut self, side: Side, now: Nanos, request: Request) {
        match side {
            Side::Flash => {
                self.flash.submit(now, request);
                self.flash_at = self.flash.next_event();
            }
            Side::Origin => {
                self.disk.submit(now, request);
                (self.disk_at, self.disk_touched) = (self.disk.next_event(), false);
            }
        }
    }

    /// Lets the engine know of time for a while from now on.
    fn keep_ticking(&mut self, now: Nanos) {
        self.ticks_until = now + TICKS_ON;
        self.tick_at.get_or_insert((now / TICK + 1) * TICK);
    }

    fn tick(&mut self, at: Nanos) {
        if self.tick_at.is_none_or(|due| due > at) {
            return;
        }
        let goes_on = at < self.ticks_until || !self.engine.is_quiet();
        self.tick_at = goes_on.then_some(at + TICK);
        self.engine.on_timer(at);
        self.begin_actions(at);
    }

    fn ask_engine(&mut self, now: Nanos, request: &Request) {
        let (tag, offset) = (request.tag, request.offset);
        let len = u32::try_from(request.len).expect("no request has 4 GiB");
        let (wanted, flushes_before) = match request.op {
            Op::Write => (
                cache_core::engine::Request::Write { offset, len },
                Some(self.flushes.begin_write()),
            ),
            _ => (cache_core::engine::Request::Read { offset, len }, None),
        };
        let id = self.pending.insert(Pending {
            tag,
            flushes_before,
        });
        self.engine.on_request(now, id as u64, wanted);
        self.keep_ticking(now);
        self.begin_actions(now);
    }

    fn begin_actions(&mut self, now: Nanos) {
        let mut actions = std::mem::take(&mut self.actions);
        loop {
            self.engine.take_actions(&mut actions);
            if actions.is_empty() {
                break;
            }
            self.keep_ticking(now);
            for action in actions.drain(..) {
                self.begin(now, action);
            }
        }
        self.actions = actions;
    }

    fn begin(&mut self, now: Nanos, action: Action) {
        match action {
            Action::Transfer {
                io,
                device,
                direction,
                offset,
                len,
                ..
            } => {
                let op = match direction {
                    Direction::Read => Op::Read,
                    Direction::Write => Op::Write,
                };
                let request = Request::whole(io as u64, op, offset, len.into());
                self.submit_to(device, now, request);
            }
            Action::Discard { io, offset, len } => {
                let request = Request::whole(io as u64, Op::Discard, offset, len.into());
                self.submit_to(Side::Origin, now, request);
            }
            Action::Reply { id, result } => self.answer(now, id, result.is_err()),
            Action::JobDone { job } => drop(self.engine.finish_job(job)),
            Action::Release { .. } | Action::HealthChanged => {}
            Action::WriteMetadata { io, .. } | Action::Sync { io, .. } | Action::Detach { io } => {
                self.engine.on_completion(now, io, Ok(()));
            }
        }
    }

    fn answer(&mut self, now: Nanos, id: u64, failed: bool) {
        let pending = self.pending.remove(id as usize);
        self.tell(now, pending.tag, failed);
        if let Some(flushes_before) = pending.flushes_before {
            self.flushes.end_write(flushes_before);
            self.begin_flushes(now);
        }
    }

    fn tell(&mut self, at: Nanos, tag: u64, failed: bool) {
        self.done.push_back(Completion { tag, at, failed });
    }

    /// Flushes the two devices for those whose writes have all been answered.
    fn begin_flushes(&mut self, now: Nanos) {
        while let Some(tag) = self.flushes.next() {
            let number = self.flushing.insert(Flushing {
                tag,
                answers_left: 2,
                failed: false,
            });
            let command = Request::whole(FLUSH | number as u64, Op::Flush, 0, 0);
            self.submit_to(Side::Flash, now, command);
            self.submit_to(Side::Origin, now, command);
        }
    }

    fn flushed(&mut self, now: Nanos, number: usize, failed: bool) {
        let flushing = &mut self.flushing[number];
        flushing.answers_left -= 1;
        flushing.failed |= failed;
        if flushing.answers_left == 0 {
            let Flushing { tag, failed, .. } = self.flushing.remove(number);
            self.tell(now, tag, failed);
        }
    }

    fn take_in_answers(&mut self, at: Nanos) {
        let mut answers = std::mem::take(&mut self.scratch);
        let due = |next: Option<Nanos>| next.is_some_and(|next| next <= at);
        if due(self.flash_at) {
            self.flash.advance(at, &mut answers);
            self.flash_at = self.flash.next_event();
        }
        if due(self.disk_at()) {
            self.disk.advance(at, &mut answers);
            (self.disk_at, self.disk_touched) = (self.disk.next_event(), false);
        }
        for answer in answers.drain(..) {
            if answer.tag & FLUSH != 0 {
                self.flushed(at, (answer.tag & !FLUSH) as usize, answer.failed);
                continue;
            }
            let result = match answer.failed {
                true => Err(Errno::EIO),
                false => Ok(()),
            };
            self.engine.on_completion(at, answer.tag as usize, result);
        }
        self.scratch = answers;
        self.begin_actions(at);
    }
}

impl<F: Device, D: Device> Device for Hybrid<F, D> {
    fn submit(&mut self, now: Nanos, request: Request) {
        match request.op {
            Op::Read | Op::Write => self.ask_engine(now, &request),
            Op::Flush => {
                self.flushes.wait(request.tag);
                self.begin_flushes(now);
            }
            // What is cached of it goes by and by, as nobody reads it.
            Op::Discard => self.tell(now, request.tag, false),
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        let devices = earlier(self.flash_at, self.disk_at());
        let answered_at = self.done.front().map(|answer| answer.at);
        earlier(devices, earlier(answered_at, self.tick_at))
    }

    fn advance(&mut self, to: Nanos, done: &mut Vec<Completion>) {
        while let Some(at) = self.next_event().filter(|&at| at <= to) {
            self.take_in_answers(at);
            self.tick(at);
            // All are of now or earlier.
            done.extend(self.done.drain(..));
        }
    }

    /// What is written through is safe as soon as one of the two has it.
    fn volatile_bytes(&self, now: Nanos) -> u64 {
        let (flash, disk) = (
            self.flash.volatile_bytes(now),
            self.disk.volatile_bytes(now),
        );
        match self.engine.config().mode {
            Mode::Writeback => flash + disk,
            Mode::Writethrough => disk,
        }
    }
}

impl<F: fmt::Debug, D: fmt::Debug> fmt::Debug for Hybrid<F, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hybrid")
            .field("flash", &self.flash)
            .field("disk", &self.disk)
            .field("pending", &self.pending)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{DeviceSpec, ModelSpec, Placement};
    use cache_core::policy::PolicyKind;
    use virtual_time::splitmix64;

    const FILE_BYTES: u64 = 256 << 20;
    const MS: f64 = 1e6;

    fn hybrid(cache_bytes: u64, mode: Mode) -> crate::spec::Model {
        let mut spec = ModelSpec::load("hybrid-disk-2014").unwrap();
        let DeviceSpec::Hybrid(fields) = &mut spec.device else {
            panic!("it is a hybrid disk");
        };
        // The file stands for one 64 times as large, so that the arm has its ways.
        fields.cache_bytes = 64 * cache_bytes;
        fields.mode = mode;
        // Without the disk's own write cache, so that times are those of the platters.
        let DeviceSpec::Hdd(hdd) = &mut fields.disk else {
            panic!("it has a hard disk");
        };
        hdd.write_cache_kb = 0;
        spec.placement = Placement::Spread;
        spec.span_bytes = Some(64 * FILE_BYTES);
        spec.build(FILE_BYTES).unwrap()
    }

    /// Mean milliseconds of requests of 8 KiB, one at a time, to each block of so much of the file
    /// in no order; the time goes on.
    fn pass(device: &mut impl Device, now: &mut Nanos, op: Op, span: u64) -> f64 {
        let mut state = 2014;
        let mut blocks: Vec<u64> = (0..span >> 16).collect();
        blocks.sort_by_cached_key(|_| splitmix64(&mut state));
        let (mut waited, mut done) = (0, Vec::new());
        for block in &blocks {
            device.submit(*now, Request::whole(0, op, block << 16, 8192));
            while done.is_empty() {
                device.advance(device.next_event().unwrap(), &mut done);
            }
            waited += done[0].at - *now;
            *now = done[0].at;
            done.clear();
        }
        waited as f64 / blocks.len() as f64 / MS
    }

    #[test]
    fn what_is_read_again_comes_from_the_flash_and_new_data_from_the_platters() {
        let mut disk = hybrid(64 << 20, Mode::Writethrough);
        let mut now = 0;
        let mut read = |span| pass(&mut disk, &mut now, Op::Read, span);
        let (first, again) = (read(32 << 20), read(32 << 20));
        assert!(first > 5.0, "{first} ms");
        assert!((0.25..0.3).contains(&again), "{again} ms");
        let each_block_once = (32 << 20) >> 16;
        let reads = disk.status().reads.expect("it is a hybrid disk");
        assert_eq!(
            (reads.flash, reads.disk),
            (each_block_once, each_block_once)
        );
    }

    #[test]
    fn what_does_not_fit_stays_on_the_platters() {
        let mut disk = hybrid(2 << 20, Mode::Writethrough);
        let mut now = 0;
        let mut read = |span| pass(&mut disk, &mut now, Op::Read, span);
        let (first, again) = (read(32 << 20), read(32 << 20));
        assert!(again > 0.7 * first, "{first} ms, {again} ms");
    }

    #[test]
    fn a_write_goes_to_the_platters_unless_it_is_written_back_later() {
        for (mode, least, most) in [
            (Mode::Writethrough, 5.0, 30.0),
            (Mode::Writeback, 0.05, 1.0),
        ] {
            let mut disk = hybrid(64 << 20, mode);
            let mut now = 0;
            pass(&mut disk, &mut now, Op::Write, 32 << 20);
            let ms = pass(&mut disk, &mut now, Op::Write, 32 << 20);
            assert!((least..most).contains(&ms), "{mode:?}: {ms} ms");
        }
    }

    #[test]
    fn what_was_written_back_later_is_on_the_platters_when_the_disk_rests() {
        let engine_at_rest = |requests: u64| {
            let spec = ModelSpec::load("hybrid-disk-2014").unwrap();
            let DeviceSpec::Hybrid(mut fields) = spec.device else {
                panic!("it is a hybrid disk");
            };
            // It puts a write that misses on the flash at once.
            fields.policy = PolicyKind::Hotset;
            fields.mode = Mode::Writeback;
            let device = |name: &str| ModelSpec::load(name).unwrap().build(FILE_BYTES).unwrap();
            let engine = fields.engine(FILE_BYTES, 1.0);
            let mut hybrid = Hybrid::new(engine, device("dc500m"), device("hdd-7200"));
            let mut done = Vec::new();
            for tag in 0..requests {
                hybrid.submit(0, Request::whole(tag, Op::Write, tag << 16, 65_536));
            }
            hybrid.advance(1_000_000, &mut done);
            let dirty_before = hybrid.engine().dirty().len();
            while let Some(at) = hybrid.next_event() {
                hybrid.advance(at, &mut done);
            }
            assert_eq!(done.len() as u64, requests);
            (dirty_before, hybrid.engine().dirty().len())
        };
        let (before, after) = engine_at_rest(8);
        assert!(before > 0);
        assert_eq!(after, 0);
    }

    #[test]
    fn a_failing_disk_fails_the_request() {
        let json = r#"{"name": "x", "device": {"hybrid": {"flash": "dc500m", "cache_bytes": 1000000,
            "disk": {"raid": {"level": "0", "members": {"alike": {"count": 2, "device": "hdd-7200"}}}}}}}"#;
        let mut disk = ModelSpec::parse("x", json)
            .unwrap()
            .build(FILE_BYTES)
            .unwrap();
        disk.fail(0, 1).unwrap();
        let mut done = Vec::new();
        disk.submit(0, Request::whole(7, Op::Read, 0, 1 << 20));
        while let Some(at) = disk.next_event() {
            disk.advance(at, &mut done);
        }
        assert_eq!(done.len(), 1);
        assert!(done[0].failed);
    }
}
