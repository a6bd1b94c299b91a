//! A served device can lose its power: what it has answered but not stored is lost then, as the
//! model says, and nothing is served any more. It can be reset, too, or fail a flush: some of that is
//! lost then, and it serves on.
//!
//! Bytes move to the backing file when they come, so what they replace is kept until they are safe.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use nix::fcntl::FallocateFlags;
use parking_lot::{Condvar, Mutex, MutexGuard};
use serde::{Deserialize, Serialize};

use hotset_engine::backing::Backing;
use hotset_engine::direct_io::PageBuffer;
use hotset_engine::reply::{Handler, Outcome, Reply};
use virtual_time::splitmix64;

/// How long requests under way are waited for, real time.
const REST_LIMIT: Duration = Duration::from_secs(10);

/// A sector is written or not: what is lost of a write is lost by sectors, bytes.
const SECTOR_BYTES: usize = 512;

/// What a write has replaced.
struct Replaced {
    offset: u64,
    bytes: PageBuffer,
}

impl Replaced {
    /// Piece by piece of what is lost or not.
    fn sectors(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let starts = (self.offset..).step_by(SECTOR_BYTES);
        starts.zip(self.bytes.bytes().chunks(SECTOR_BYTES))
    }
}

/// The next so many requests that fail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Failing {
    /// Each with the loss of some of what was answered and is not stored.
    flushes: u32,
    reads: u32,
    /// Nothing of them arrives.
    writes: u32,
    /// Chooses what a flush loses.
    seed: u64,
}

#[derive(Default)]
struct State {
    off: bool,
    /// Nothing is stored but by a flush, whatever the model says.
    holds: bool,
    failing: Failing,
    /// How often something was lost: no flush that was under way covers that.
    losses: u64,
    begun: u64,
    /// Requests under way, by number; writes with what they replace.
    under_way: BTreeMap<u64, Option<Replaced>>,
    /// Writes that were answered and may not be safe, in that order; the first one is number
    /// `first_answered` of all.
    answered: VecDeque<Replaced>,
    first_answered: u64,
}

impl State {
    /// Forgets writes that are safe; a flush that ends without power has made none so.
    fn forget(&mut self, count: usize) {
        if self.off {
            return;
        }
        self.answered.drain(..count.min(self.answered.len()));
        self.first_answered += count as u64;
    }

    /// Of the last so many bytes that were answered, each sector loses the last writes, or none; the
    /// rest is stored. Bytes that are lost.
    fn lose_some(&mut self, backing: &Backing, volatile: u64, mut seed: u64) -> io::Result<u64> {
        // What is under way comes over whatever is left.
        let coming = self.under_way.values().flatten();
        let mut kept: HashSet<u64> = coming
            .flat_map(|write| write.sectors().map(|(at, _)| at))
            .collect();
        let (mut left, mut lost) = (volatile as usize, 0);
        self.losses += 1;
        self.first_answered += self.answered.len() as u64;
        for write in std::mem::take(&mut self.answered).iter().rev() {
            if left == 0 {
                break;
            }
            left = left.saturating_sub(write.bytes.bytes().len());
            for (at, before) in write.sectors() {
                if kept.contains(&at) || splitmix64(&mut seed) % 2 == 0 {
                    kept.insert(at);
                    continue;
                }
                backing.write(at, before)?;
                lost += before.len() as u64;
            }
        }
        Ok(lost)
    }
}

/// Whether a device has power, and what it would lose with it.
pub(super) struct Power {
    backing: Arc<Backing>,
    /// Whether it can lose anything.
    is_volatile: bool,
    state: Mutex<State>,
    ended: Condvar,
}

impl Power {
    pub(super) fn new(backing: Arc<Backing>, is_volatile: bool) -> Arc<Power> {
        Arc::new(Power {
            backing,
            is_volatile,
            state: Mutex::default(),
            ended: Condvar::new(),
        })
    }

    /// Cuts the power: bytes of answered writes that are lost.
    ///
    /// `volatile_bytes` of the model, asked when nothing is answered any more.
    pub(super) fn cut(&self, volatile_bytes: impl FnOnce() -> u64) -> io::Result<u64> {
        let (mut state, volatile) = self.switch_off(volatile_bytes)?;
        let (mut left, mut lost) = (volatile as usize, 0);
        while let Some(Replaced { offset, bytes }) = state.answered.pop_back().filter(|_| left > 0)
        {
            let all = bytes.bytes().len();
            let len = left.min(all).next_multiple_of(SECTOR_BYTES).min(all);
            let kept = all - len;
            self.backing
                .write(offset + kept as u64, &bytes.bytes()[kept..])?;
            left = left.saturating_sub(len);
            lost += len as u64;
        }
        state.answered.clear();
        Ok(lost)
    }

    /// Resets the device, which then serves on: bytes of answered writes that are lost. What is under
    /// way fails.
    pub(super) fn reset(&self, volatile_bytes: impl FnOnce() -> u64, seed: u64) -> io::Result<u64> {
        let (mut state, volatile) = self.switch_off(volatile_bytes)?;
        state.off = false;
        state.lose_some(&self.backing, volatile, seed)
    }

    /// From now on nothing is stored but by a flush: the hardest device for whoever writes to it.
    pub(super) fn hold(&self) {
        self.state.lock().holds = true;
    }

    /// Bytes of answered writes that are not stored. The model is asked while nothing is locked.
    fn volatile(&self, of_model: impl FnOnce() -> u64) -> u64 {
        // A guard in a match would live as long as that.
        let holds = self.state.lock().holds;
        if holds { u64::MAX } else { of_model() }
    }

    /// Has requests fail from now on; those that were to and did not.
    pub(super) fn fail_next(&self, failing: Failing) -> Failing {
        std::mem::replace(&mut self.state.lock().failing, failing)
    }

    /// Nothing is served any more, nor under way; what the model would lose.
    fn switch_off(
        &self,
        volatile_bytes: impl FnOnce() -> u64,
    ) -> io::Result<(MutexGuard<'_, State>, u64)> {
        self.state.lock().off = true;
        let volatile = self.volatile(volatile_bytes);
        let mut state = self.state.lock();
        while !state.under_way.is_empty() {
            // Ended means that their data has moved, so that it can be taken back.
            let waited = self.ended.wait_for(&mut state, REST_LIMIT);
            if waited.timed_out() {
                return Err(io::Error::other("requests under way do not end"));
            }
        }
        Ok((state, volatile))
    }

    /// Whether the next request of a kind is to fail; it is one less then.
    fn fails(&self, of: impl FnOnce(&mut Failing) -> &mut u32) -> bool {
        let left = &mut *self.state.lock();
        let left = of(&mut left.failing);
        let fails = *left > 0;
        *left -= u32::from(fails);
        fails
    }

    /// Fails a flush.
    fn fail_flush(&self, volatile_bytes: impl FnOnce() -> u64) -> io::Error {
        let volatile = self.volatile(volatile_bytes);
        let state = &mut *self.state.lock();
        let seed = splitmix64(&mut state.failing.seed);
        let lost = state.lose_some(&self.backing, volatile, seed);
        lost.err().unwrap_or_else(failed)
    }

    /// Counts a request in; its number, unless the power is off.
    fn begin(&self, replaced: Option<Replaced>) -> io::Result<u64> {
        let mut state = self.state.lock();
        if state.off {
            return Err(failed());
        }
        let number = state.begun;
        state.begun += 1;
        state.under_way.insert(number, replaced);
        Ok(number)
    }

    /// A request has ended: what becomes of it.
    fn end(&self, number: u64, outcome: Outcome) -> Outcome {
        let mut state = self.state.lock();
        let replaced = state.under_way.remove(&number).flatten();
        let outcome = match (state.off, replaced) {
            (true, Some(Replaced { offset, bytes })) => {
                // Nobody was told of it: none of it need have arrived.
                self.backing.write(offset, bytes.bytes()).and(Err(failed()))
            }
            (true, None) => Err(failed()),
            (false, replaced) => {
                state.answered.extend(replaced);
                outcome
            }
        };
        self.ended.notify_all();
        outcome
    }

    /// Writes answered so far, which a flush that begins now makes safe, and losses.
    fn answered(&self) -> (u64, u64) {
        let state = self.state.lock();
        let count = state.first_answered + state.answered.len() as u64;
        (count, state.losses)
    }

    /// A flush has ended well: the first so many writes are safe, unless something was lost meanwhile.
    fn are_safe(&self, (count, losses): (u64, u64)) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.losses != losses {
            return Err(failed());
        }
        let safe = count.saturating_sub(state.first_answered);
        state.forget(safe as usize);
        Ok(())
    }

    /// All writes are safe but the last so many bytes.
    fn are_safe_but(&self, volatile_bytes: u64) {
        let mut state = self.state.lock();
        let mut bytes = 0;
        let unsafe_ones = state.answered.iter().rev().take_while(|write| {
            let is_unsafe = bytes < volatile_bytes;
            bytes += write.bytes.bytes().len() as u64;
            is_unsafe
        });
        let safe = state.answered.len() - unsafe_ones.count();
        state.forget(safe);
    }
}

fn failed() -> io::Error {
    io::Error::from_raw_os_error(libc::EIO)
}

/// A file of a device that can lose its power or fail.
pub(super) struct Powered<V> {
    pub(super) handler: Arc<dyn Handler>,
    pub(super) power: Arc<Power>,
    /// Where the file begins on the device, bytes.
    pub(super) start: u64,
    /// What the model would lose now.
    pub(super) volatile_bytes: V,
}

impl<V: Fn() -> u64 + Send + Sync> Powered<V> {
    fn pass_on(&self, replaced: Option<Replaced>, reply: Reply, ask: impl FnOnce(Reply)) {
        let number = match self.power.begin(replaced) {
            Ok(number) => number,
            Err(error) => return reply.give(Err(error)),
        };
        let power = self.power.clone();
        ask(Reply::then(move |outcome| {
            reply.give(power.end(number, outcome));
        }));
    }

    fn replaced(&self, offset: u64, len: usize) -> io::Result<Option<Replaced>> {
        if !self.power.is_volatile {
            return Ok(None);
        }
        let volatile = self.power.volatile(&self.volatile_bytes);
        self.power.are_safe_but(volatile);
        let offset = self.start + offset;
        let bytes = self.power.backing.read(offset, len)?;
        Ok(Some(Replaced { offset, bytes }))
    }
}

impl<V: Fn() -> u64 + Send + Sync> Handler for Powered<V> {
    fn read(&self, offset: u64, len: u32, reply: Reply) {
        if self.power.fails(|failing| &mut failing.reads) {
            return reply.give(Err(failed()));
        }
        self.pass_on(None, reply, |reply| self.handler.read(offset, len, reply));
    }

    fn write(&self, offset: u64, data: &[u8], reply: Reply) {
        if self.power.fails(|failing| &mut failing.writes) {
            return reply.give(Err(failed()));
        }
        match self.replaced(offset, data.len()) {
            Err(error) => reply.give(Err(error)),
            Ok(replaced) => self.pass_on(replaced, reply, |reply| {
                self.handler.write(offset, data, reply);
            }),
        }
    }

    fn flush(&self, reply: Reply) {
        if self.power.fails(|failing| &mut failing.flushes) {
            let why = self.power.fail_flush(&self.volatile_bytes);
            return reply.give(Err(why));
        }
        let (power, answered) = (self.power.clone(), self.power.answered());
        self.pass_on(None, reply, |reply| {
            self.handler.flush(Reply::then(move |outcome| {
                let safe = outcome.and_then(|done| power.are_safe(answered).map(|()| done));
                reply.give(safe);
            }));
        });
    }

    fn allocate(&self, mode: FallocateFlags, offset: u64, len: u64, reply: Reply) {
        // A model has stored it at once: a file system discards a whole device.
        let holds = self.power.state.lock().holds;
        let replaced = if holds { len as usize } else { 0 };
        match self.replaced(offset, replaced) {
            Err(error) => reply.give(Err(error)),
            Ok(replaced) => self.pass_on(replaced, reply, |reply| {
                self.handler.allocate(mode, offset, len, reply);
            }),
        }
    }

    fn grown_to(&self) -> Option<u64> {
        self.handler.grown_to()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotset_engine::backing::Durability;
    use hotset_engine::reply::wait_for;
    use proptest::prelude::*;

    const PAGE: usize = 4096;
    const PAGES: usize = 8;

    /// Stores at once.
    struct Prompt(Arc<Backing>);

    impl Handler for Prompt {
        fn read(&self, offset: u64, len: u32, reply: Reply) {
            reply.give(self.0.read(offset, len as usize));
        }

        fn write(&self, offset: u64, data: &[u8], reply: Reply) {
            let written = self.0.write(offset, data);
            reply.give(written.map(|()| PageBuffer::empty()));
        }

        fn flush(&self, reply: Reply) {
            reply.give(Ok(PageBuffer::empty()));
        }

        fn allocate(&self, mode: FallocateFlags, offset: u64, len: u64, reply: Reply) {
            let done = self.0.allocate(mode, offset, len);
            reply.give(done.map(|()| PageBuffer::empty()));
        }
    }

    struct Device {
        device: Powered<Box<dyn Fn() -> u64 + Send + Sync>>,
        _file: tempfile::NamedTempFile,
    }

    /// Which would lose so many bytes.
    fn device(volatile: u64) -> Device {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len((PAGES * PAGE) as u64).unwrap();
        let backing = Arc::new(Backing::open(file.path(), Durability::Volatile).unwrap());
        let device = Powered {
            handler: Arc::new(Prompt(backing.clone())),
            power: Power::new(backing, true),
            start: 0,
            volatile_bytes: Box::new(move || volatile) as Box<dyn Fn() -> u64 + Send + Sync>,
        };
        Device {
            device,
            _file: file,
        }
    }

    impl Device {
        fn write(&self, page: usize, byte: u8) -> io::Result<()> {
            let offset = (page * PAGE) as u64;
            wait_for(|reply| self.device.write(offset, &[byte; PAGE], reply)).map(drop)
        }

        fn flush(&self) -> io::Result<()> {
            wait_for(|reply| self.device.flush(reply)).map(drop)
        }

        /// The first byte of each sector of a page.
        fn page(&self, page: usize) -> Vec<u8> {
            let offset = (page * PAGE) as u64;
            let read = wait_for(|reply| self.device.read(offset, PAGE as u32, reply)).unwrap();
            let sectors = read.bytes().chunks(SECTOR_BYTES);
            sectors.map(|sector| sector[0]).collect()
        }

        fn lose(&self, how: Ending, seed: u64) {
            let power = &self.device.power;
            match how {
                Ending::Reset => {
                    let lost = power.reset(&self.device.volatile_bytes, seed).unwrap();
                    assert!(lost > 0);
                }
                Ending::FailedFlush => {
                    let flushes = 2;
                    power.fail_next(Failing {
                        flushes,
                        seed,
                        ..Failing::default()
                    });
                    self.flush().unwrap_err();
                    self.flush().unwrap_err();
                    let left = Failing {
                        seed: 0,
                        ..power.fail_next(Failing::default())
                    };
                    assert_eq!(left, Failing::default());
                }
            }
        }
    }

    #[derive(Clone, Copy, Debug)]
    enum Ending {
        Reset,
        FailedFlush,
    }

    #[test]
    fn a_reset_and_a_failed_flush_lose_some_sectors_of_what_was_not_flushed_and_no_others() {
        for (how, seed) in [Ending::Reset, Ending::FailedFlush].into_iter().zip(7..) {
            let device = device(u64::MAX);
            device.write(0, 1).unwrap();
            device.write(1, 2).unwrap();
            device.flush().unwrap();
            (3..6).for_each(|byte| device.write(1, byte).unwrap());
            (2..PAGES).for_each(|page| device.write(page, 6).unwrap());
            device.lose(how, seed);
            assert_eq!(device.page(0), [1; 8], "{how:?}");
            let versions = device.page(1);
            assert!(versions.iter().all(|byte| (2..6).contains(byte)), "{how:?}");
            let rest: Vec<u8> = (2..PAGES).flat_map(|page| device.page(page)).collect();
            let kept = rest.iter().filter(|byte| **byte == 6).count();
            assert!((8..40).contains(&kept), "{how:?}: {kept} of 48");
            // What is left is stored, and it serves on.
            device.write(0, 7).unwrap();
            device.flush().unwrap();
            assert!(device.device.power.reset(|| u64::MAX, 1).unwrap() == 0);
            assert_eq!((device.page(0), device.page(1)), (vec![7; 8], versions));
        }
    }

    #[test]
    fn what_the_model_has_stored_is_lost_by_a_device_that_holds_it_alone() {
        for holds in [false, true] {
            let device = device(PAGE as u64);
            if holds {
                device.device.power.hold();
            }
            (0..PAGES).for_each(|page| device.write(page, 1).unwrap());
            device.lose(Ending::Reset, 1);
            let is_whole = (0..PAGES - 1).all(|page| device.page(page) == [1; 8]);
            assert_eq!(is_whole, !holds);
            assert!(device.page(PAGES - 1) != [1; 8]);
        }
    }

    #[test]
    fn a_device_that_holds_all_loses_all_with_the_power() {
        let device = device(0);
        device.device.power.hold();
        device.write(0, 1).unwrap();
        device.flush().unwrap();
        device.write(0, 2).unwrap();
        let mode = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        wait_for(|reply| device.device.allocate(mode, 0, PAGE as u64, reply)).unwrap();
        assert_eq!(device.page(0), [0; 8]);
        assert_eq!(device.device.power.cut(|| 0).unwrap(), 2 * PAGE as u64);
        let stored = device.device.power.backing.read(0, PAGE).unwrap();
        assert_eq!(stored.bytes(), &[1; PAGE]);
    }

    #[test]
    fn a_flush_that_is_under_way_when_something_is_lost_fails() {
        let device = device(u64::MAX);
        device.write(0, 1).unwrap();
        let power = &device.device.power;
        let answered = power.answered();
        power.fail_flush(|| u64::MAX);
        power.are_safe(answered).unwrap_err();
        power.are_safe(power.answered()).unwrap();
    }

    #[test]
    fn reads_and_writes_fail_as_often_as_was_asked_for() {
        let device = device(0);
        let (reads, writes) = (1, 2);
        let failing = Failing {
            reads,
            writes,
            ..Failing::default()
        };
        device.device.power.fail_next(failing);
        device.write(0, 1).unwrap_err();
        device.write(0, 1).unwrap_err();
        let read = || wait_for(|reply| device.device.read(0, PAGE as u32, reply));
        read().unwrap_err();
        assert_eq!(
            read().unwrap().bytes(),
            &[0; PAGE],
            "no failed write has arrived"
        );
        device.write(0, 1).unwrap();
        device.flush().unwrap();
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        /// Pages are written, the number of each write into it; `None` is a flush. Whatever the
        /// model says it would lose, what is left is what some of the last writes had replaced.
        #[test]
        fn the_last_writes_since_the_last_flush_are_lost_and_no_others(
            steps in prop::collection::vec(prop::option::of(0..PAGES), 0..60),
            volatile_pages in 0usize..20,
        ) {
            let file = tempfile::NamedTempFile::new().unwrap();
            file.as_file().set_len((PAGES * PAGE) as u64).unwrap();
            let backing = Arc::new(Backing::open(file.path(), Durability::Volatile).unwrap());
            let power = Power::new(backing.clone(), true);
            let volatile = move || (volatile_pages * PAGE) as u64;
            let device = Powered {
                handler: Arc::new(Prompt(backing.clone())),
                power: power.clone(),
                start: 0,
                volatile_bytes: volatile,
            };
            let mut history = vec![[0u8; PAGES]];
            for (number, step) in steps.iter().enumerate() {
                match step {
                    None => {
                        wait_for(|reply| device.flush(reply)).unwrap();
                        history.drain(..history.len() - 1);
                    }
                    Some(page) => {
                        let value = number as u8 + 1;
                        let offset = (page * PAGE) as u64;
                        wait_for(|reply| device.write(offset, &[value; PAGE], reply)).unwrap();
                        let mut next = history[history.len() - 1];
                        next[*page] = value;
                        history.push(next);
                    }
                }
            }
            let lost = power.cut(volatile).unwrap() as usize / PAGE;
            prop_assert_eq!(lost, volatile_pages.min(history.len() - 1));
            let kept = history[history.len() - 1 - lost];
            for (page, value) in kept.into_iter().enumerate() {
                let stored = backing.read((page * PAGE) as u64, PAGE).unwrap();
                prop_assert_eq!(stored.bytes(), &[value; PAGE]);
            }
            let refused = wait_for(|reply| device.read(0, PAGE as u32, reply));
            prop_assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EIO));
        }
    }
}
