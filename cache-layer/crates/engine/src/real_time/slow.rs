//! A device of the tests that takes its time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::{DeviceModel, Op, Pacer, SyncBacking};
use crate::reply::{Outcome, Reply};

/// Requests that are under way at a time, as in an array of so many disks.
const LANES: usize = 6;

/// A device whose requests all take as long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slow(pub(crate) Duration);

/// As a disk that seeks each time.
pub(crate) const DISK: Slow = Slow(Duration::from_millis(10));
/// As a flash device.
pub(crate) const FLASH: Slow = Slow(Duration::from_micros(100));

struct Pending {
    op: Op,
    due: Instant,
    reply: Reply,
    moved: Option<Outcome>,
    sync_started: bool,
}

struct State {
    /// When each lane is free again.
    lanes: [Instant; LANES],
    pending: BTreeMap<u64, Pending>,
    next_tag: u64,
}

struct SlowPacer {
    latency: Duration,
    state: Mutex<State>,
    changed: Condvar,
    sync: SyncBacking,
}

impl DeviceModel for Slow {
    fn start(&self, _bytes: u64, sync: SyncBacking) -> anyhow::Result<Arc<dyn Pacer>> {
        let pacer = Arc::new(SlowPacer {
            latency: self.0,
            state: Mutex::new(State {
                lanes: [Instant::now(); LANES],
                pending: BTreeMap::new(),
                next_tag: 0,
            }),
            changed: Condvar::new(),
            sync,
        });
        let clock = pacer.clone();
        thread::spawn(move || {
            loop {
                clock.answer_what_is_due();
            }
        });
        Ok(pacer)
    }
}

impl Pacer for SlowPacer {
    fn admit(&self, op: Op, _offset: u64, _len: u64, reply: Reply) -> u64 {
        let state = &mut *self.state.lock();
        let now = Instant::now();
        let due = match op {
            // After all before it, which its sync sees to.
            Op::Flush | Op::Discard => now,
            Op::Read | Op::Write => {
                let lane = state.lanes.iter_mut().min().expect("there are lanes");
                *lane = now.max(*lane) + self.latency;
                *lane
            }
        };
        let tag = state.next_tag;
        state.next_tag += 1;
        let pending = Pending {
            op,
            due,
            reply,
            moved: None,
            sync_started: false,
        };
        state.pending.insert(tag, pending);
        self.changed.notify_all();
        tag
    }

    fn moved(&self, tag: u64, outcome: Outcome) {
        if let Some(pending) = self.state.lock().pending.get_mut(&tag) {
            pending.moved = Some(outcome);
        }
        self.changed.notify_all();
    }

    fn discard(&self, _offset: u64, _len: u64) {}

    fn wait_for_rest(&self, limit: Duration) {
        let mut state = self.state.lock();
        self.changed
            .wait_while_for(&mut state, |state| !state.pending.is_empty(), limit);
    }
}

impl SlowPacer {
    /// Answers what can be, or else sleeps until something has changed or is due.
    fn answer_what_is_due(&self) {
        let mut state = self.state.lock();
        let now = Instant::now();
        let first = state.pending.keys().next().copied();
        let flush = state.pending.iter_mut().find(|(tag, pending)| {
            pending.op == Op::Flush && !pending.sync_started && Some(**tag) == first
        });
        if let Some((&tag, flush)) = flush {
            flush.sync_started = true;
            drop(state);
            return (self.sync)(tag);
        }
        let ready = |pending: &Pending| pending.due <= now && pending.moved.is_some();
        let entry = state.pending.iter().find(|(_, pending)| ready(pending));
        if let Some(tag) = entry.map(|(&tag, _)| tag) {
            let Some(pending) = state.pending.remove(&tag) else {
                return;
            };
            drop(state);
            self.changed.notify_all();
            let outcome = pending.moved.expect("it is ready");
            return pending.reply.give(outcome);
        }
        let moved = state
            .pending
            .values()
            .filter(|pending| pending.moved.is_some());
        match moved.map(|pending| pending.due).min() {
            Some(due) => {
                self.changed.wait_until(&mut state, due);
            }
            None => self.changed.wait(&mut state),
        }
    }
}
