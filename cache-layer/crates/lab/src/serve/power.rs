//! A served device can lose its power: what it has answered but not stored is lost then, as the
//! model says, and nothing is served any more.
//!
//! Bytes move to the backing file when they come, so what they replace is kept until they are safe.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Duration;

use nix::fcntl::FallocateFlags;
use parking_lot::{Condvar, Mutex};

use hotset_engine::backing::Backing;
use hotset_engine::direct_io::PageBuffer;
use hotset_engine::reply::{Handler, Outcome, Reply};

/// How long requests under way are waited for, real time.
const REST_LIMIT: Duration = Duration::from_secs(10);

/// A sector is written or not: what is lost of a write is lost by sectors, bytes.
const SECTOR_BYTES: usize = 512;

/// What a write has replaced.
struct Replaced {
    offset: u64,
    bytes: PageBuffer,
}

#[derive(Default)]
struct State {
    off: bool,
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
        self.state.lock().off = true;
        let volatile = volatile_bytes();
        let mut state = self.state.lock();
        while !state.under_way.is_empty() {
            // Ended means that their data has moved, so that it can be taken back.
            let waited = self.ended.wait_for(&mut state, REST_LIMIT);
            if waited.timed_out() {
                return Err(io::Error::other("requests under way do not end"));
            }
        }
        let (mut left, mut lost) = (volatile as usize, 0);
        while let Some(Replaced { offset, bytes }) = state.answered.pop_back().filter(|_| left > 0)
        {
            let len = left.next_multiple_of(SECTOR_BYTES).min(bytes.bytes().len());
            let kept = bytes.bytes().len() - len;
            self.backing
                .write(offset + kept as u64, &bytes.bytes()[kept..])?;
            left = left.saturating_sub(len);
            lost += len as u64;
        }
        state.answered.clear();
        Ok(lost)
    }

    /// Counts a request in; its number, unless the power is off.
    fn begin(&self, replaced: Option<Replaced>) -> io::Result<u64> {
        let mut state = self.state.lock();
        if state.off {
            return Err(no_power());
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
                self.backing
                    .write(offset, bytes.bytes())
                    .and(Err(no_power()))
            }
            (true, None) => Err(no_power()),
            (false, replaced) => {
                state.answered.extend(replaced);
                outcome
            }
        };
        self.ended.notify_all();
        outcome
    }

    /// Writes answered so far: a flush that begins now makes these safe.
    fn answered(&self) -> u64 {
        let state = self.state.lock();
        state.first_answered + state.answered.len() as u64
    }

    /// The first so many writes are safe.
    fn are_safe(&self, count: u64) {
        let mut state = self.state.lock();
        let safe = count.saturating_sub(state.first_answered);
        state.forget(safe as usize);
    }

    /// All writes are safe but the last so many bytes.
    fn are_safe_but(&self, volatile_bytes: u64) {
        let mut state = self.state.lock();
        let mut bytes = 0;
        let unsafe_ones = state.answered.iter().rev().take_while(|one| {
            let is_unsafe = bytes < volatile_bytes;
            bytes += one.bytes.bytes().len() as u64;
            is_unsafe
        });
        let safe = state.answered.len() - unsafe_ones.count();
        state.forget(safe);
    }
}

fn no_power() -> io::Error {
    io::Error::from_raw_os_error(libc::EIO)
}

/// A file of a device that can lose its power.
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
        self.power.are_safe_but((self.volatile_bytes)());
        let offset = self.start + offset;
        let bytes = self.power.backing.read(offset, len)?;
        Ok(Some(Replaced { offset, bytes }))
    }
}

impl<V: Fn() -> u64 + Send + Sync> Handler for Powered<V> {
    fn read(&self, offset: u64, len: u32, reply: Reply) {
        self.pass_on(None, reply, |reply| self.handler.read(offset, len, reply));
    }

    fn write(&self, offset: u64, data: &[u8], reply: Reply) {
        match self.replaced(offset, data.len()) {
            Err(error) => reply.give(Err(error)),
            Ok(replaced) => self.pass_on(replaced, reply, |reply| {
                self.handler.write(offset, data, reply);
            }),
        }
    }

    fn flush(&self, reply: Reply) {
        let (power, answered) = (self.power.clone(), self.power.answered());
        self.pass_on(None, reply, |reply| {
            self.handler.flush(Reply::then(move |outcome| {
                if outcome.is_ok() {
                    power.are_safe(answered);
                }
                reply.give(outcome);
            }));
        });
    }

    fn allocate(&self, mode: FallocateFlags, offset: u64, len: u64, reply: Reply) {
        self.pass_on(None, reply, |reply| {
            self.handler.allocate(mode, offset, len, reply);
        });
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

        fn allocate(&self, _: FallocateFlags, _: u64, _: u64, reply: Reply) {
            reply.give(Ok(PageBuffer::empty()));
        }
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
