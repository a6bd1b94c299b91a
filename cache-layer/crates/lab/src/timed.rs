//! A modelled device on the real clock: replies when the model says so and the data has moved.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use hotset_engine::direct_io::PageBuffer;
use hotset_engine::real_time::{self, Pacer, SyncBacking};
use hotset_engine::reply::{Outcome, Reply};
use storage_model::device::{Completion, Device, Op, Request};
use virtual_time::Nanos;

use crate::in_flight::{Counters, InFlight};

struct State<D> {
    device: D,
    in_flight: InFlight<Reply>,
    timer: Timer,
    scratch: Vec<Completion>,
}

/// What the timer thread is doing, for those who may have to wake it.
#[derive(Clone, Copy, PartialEq)]
enum Timer {
    /// Will check the device before it sleeps again.
    Awake,
    /// Sleeps until a point of device time, or until woken.
    Asleep(Option<Nanos>),
}

/// The model, its books and its clock. Whoever moves the data tells it so.
pub struct Timed<D> {
    state: Mutex<State<D>>,
    /// The timer has to get up earlier than it thinks.
    rouse: Condvar,
    /// Nothing is left in the device.
    rest: Condvar,
    start: Instant,
    sync: SyncBacking,
}

impl<D: Device + 'static> Timed<D> {
    /// Starts the thread that keeps time; it lasts as long as the process.
    ///
    /// `sync` is called for a flush once the model has completed it and all earlier writes have
    /// moved.
    pub fn start(device: D, sync: SyncBacking) -> io::Result<Arc<Timed<D>>> {
        let timed = Arc::new(Timed {
            state: Mutex::new(State {
                device,
                in_flight: InFlight::new(),
                timer: Timer::Awake,
                scratch: Vec::new(),
            }),
            rouse: Condvar::new(),
            rest: Condvar::new(),
            start: Instant::now(),
            sync,
        });
        let timer = timed.clone();
        thread::Builder::new()
            .name("timer".to_owned())
            .spawn(move || timer.keep_time())?;
        Ok(timed)
    }

    /// Does something with the device at its time, and replies to what that completed.
    pub fn with_device<R>(&self, act: impl FnOnce(&mut D, Nanos) -> R) -> R {
        let mut state = self.lock();
        let now = self.real_ns();
        self.advance(&mut state, now);
        let result = act(&mut state.device, now);
        self.advance(&mut state, now);
        if oversleeps(state.timer, state.device.next_event()) {
            self.rouse.notify_one();
        }
        self.answer_ready(state);
        result
    }

    /// What has gone through so far.
    pub fn counters(&self) -> Counters {
        self.lock().in_flight.counters(self.real_ns())
    }

    /// Lets the model live until `now` and enters what it completed. The timer, if it sleeps,
    /// was to get up for that anyhow.
    fn advance(&self, state: &mut State<D>, now: Nanos) {
        state.device.advance(now, &mut state.scratch);
        for completion in state.scratch.drain(..) {
            let due_ns = completion.at;
            let failed = completion.failed;
            state.in_flight.completed(completion.tag, due_ns, failed);
        }
    }

    /// Sleeps from event to event of the model, and replies what has become ready.
    fn keep_time(&self) {
        // The kernel may otherwise delay a wake-up by 50 us to bundle it with others.
        let _ = nix::sys::prctl::set_timerslack(1);
        loop {
            let mut state = self.lock();
            let now = self.real_ns();
            self.advance(&mut state, now);
            let state = self.answer_ready(state);
            if let Some(state) = state {
                self.sleep(state);
            }
        }
    }

    /// Answers what can be answered, with the books closed meanwhile; gives them back untouched
    /// if there was nothing.
    fn answer_ready<'a>(
        &self,
        mut state: MutexGuard<'a, State<D>>,
    ) -> Option<MutexGuard<'a, State<D>>> {
        let due = state.in_flight.settle(self.real_ns());
        if due.ready.is_empty() && due.syncs.is_empty() {
            return Some(state);
        }
        if state.in_flight.is_empty() {
            self.rest.notify_all();
        }
        drop(state);
        for tag in due.syncs {
            (self.sync)(tag);
        }
        for ready in due.ready {
            ready.reply.give(ready.moved);
        }
        None
    }

    fn sleep(&self, mut state: MutexGuard<'_, State<D>>) {
        let until = state.device.next_event();
        state.timer = Timer::Asleep(until);
        let mut state = match until {
            None => self
                .rouse
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner),
            Some(until) => {
                let nap_ns = until.saturating_sub(self.real_ns());
                let woken = self.rouse.wait_timeout(state, Duration::from_nanos(nap_ns));
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        state.timer = Timer::Awake;
    }

    fn lock(&self) -> MutexGuard<'_, State<D>> {
        // A thread that panicked has left one request unanswered, not the books unreadable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn real_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}

impl<D: Device + 'static> Pacer for Timed<D> {
    fn admit(&self, op: real_time::Op, offset: u64, len: u64, reply: Reply) -> u64 {
        let op = model_op(op);
        let mut state = self.lock();
        let now = self.real_ns();
        self.advance(&mut state, now);
        let tag = state.in_flight.admit(now, op, len, reply);
        let request = Request::whole(tag, op, offset, len);
        state.device.submit(now, request);
        let at_once = state.device.next_event().is_some_and(|event| event <= now);
        if at_once {
            self.advance(&mut state, now);
        }
        if oversleeps(state.timer, state.device.next_event()) {
            self.rouse.notify_one();
        }
        if at_once {
            self.answer_ready(state);
        }
        tag
    }

    fn discard(&self, offset: u64, len: u64) {
        let tag = self.admit(real_time::Op::Discard, offset, len, Reply::then(drop));
        self.moved(tag, Ok(PageBuffer::empty()));
    }

    fn moved(&self, tag: u64, outcome: Outcome) {
        let mut state = self.lock();
        state.in_flight.moved(tag, outcome);
        self.answer_ready(state);
    }

    fn wait_for_rest(&self, limit: Duration) {
        let state = self.lock();
        let _ = self
            .rest
            .wait_timeout_while(state, limit, |state| !state.in_flight.is_empty());
    }
}

fn model_op(op: real_time::Op) -> Op {
    match op {
        real_time::Op::Read => Op::Read,
        real_time::Op::Write => Op::Write,
        real_time::Op::Flush => Op::Flush,
        real_time::Op::Discard => Op::Discard,
    }
}

fn oversleeps(timer: Timer, event: Option<Nanos>) -> bool {
    match (timer, event) {
        (Timer::Asleep(None), Some(_)) => true,
        (Timer::Asleep(Some(until)), Some(event)) => event < until,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// Completes everything so long after it was submitted.
    struct Delay {
        delay: Nanos,
        queue: Vec<(Nanos, u64)>,
    }

    impl Device for Delay {
        fn submit(&mut self, now: Nanos, request: Request) {
            self.queue.push((now + self.delay, request.tag));
        }

        fn next_event(&self) -> Option<Nanos> {
            self.queue.first().map(|(at, _)| *at)
        }

        fn advance(&mut self, to: Nanos, done: &mut Vec<Completion>) {
            let due = self.queue.partition_point(|&(at, _)| at <= to);
            let completions = self.queue.drain(..due);
            done.extend(completions.map(|(at, tag)| Completion::done(tag, at)));
        }

        fn volatile_bytes(&self, _now: Nanos) -> u64 {
            0
        }
    }

    /// Has something to do at once, and completes later: as what lies behind a link does.
    struct TwoSteps {
        arrives: Option<(Nanos, u64)>,
        rest: Delay,
    }

    impl Device for TwoSteps {
        fn submit(&mut self, now: Nanos, request: Request) {
            self.arrives = Some((now, request.tag));
        }

        fn next_event(&self) -> Option<Nanos> {
            self.arrives.map(|(at, _)| at).or(self.rest.next_event())
        }

        fn advance(&mut self, to: Nanos, done: &mut Vec<Completion>) {
            if let Some((at, tag)) = self.arrives.take() {
                self.rest.submit(at, Request::whole(tag, Op::Read, 0, 10));
            }
            self.rest.advance(to, done);
        }

        fn volatile_bytes(&self, _now: Nanos) -> u64 {
            0
        }
    }

    #[test]
    fn the_timer_is_roused_for_what_a_first_step_leaves_to_do() {
        let rest = Delay {
            delay: 3_000_000,
            queue: Vec::new(),
        };
        let device = TwoSteps {
            arrives: None,
            rest,
        };
        let timed = Timed::start(device, Box::new(|_| ())).unwrap();
        // Asleep by then, without an event to wake up for.
        thread::sleep(Duration::from_millis(50));
        let (sender, replies) = channel();
        let reply = Reply::then(move |outcome| sender.send(outcome).unwrap());
        let tag = timed.admit(real_time::Op::Read, 0, 10, reply);
        timed.moved(tag, Ok(PageBuffer::empty()));
        let outcome = replies.recv_timeout(Duration::from_secs(10));
        assert!(outcome.expect("it must be replied to").is_ok());
    }

    #[test]
    fn whatever_the_device_takes_every_request_is_answered_and_not_before() {
        for delay in [0, 1, 3_000_000] {
            let (syncs, to_sync) = channel();
            let sync = Box::new(move |tag| syncs.send(tag).unwrap());
            let queue = Vec::new();
            let timed = Timed::start(Delay { delay, queue }, sync).unwrap();
            for op in [
                real_time::Op::Read,
                real_time::Op::Write,
                real_time::Op::Flush,
            ] {
                let (sender, replies) = channel();
                let began = Instant::now();
                let reply = Reply::then(move |outcome| sender.send(outcome).unwrap());
                let tag = timed.admit(op, 0, 10, reply);
                if op == real_time::Op::Flush {
                    let synced = to_sync.recv_timeout(Duration::from_secs(10));
                    assert_eq!(synced, Ok(tag));
                }
                timed.moved(tag, Ok(PageBuffer::empty()));
                let reply = replies.recv_timeout(Duration::from_secs(10));
                assert!(reply.expect("it must be answered").is_ok());
                assert!(began.elapsed() >= Duration::from_nanos(delay));
            }
            timed.wait_for_rest(Duration::from_secs(10));
            assert_eq!(timed.counters().flushes, 1);
        }
    }
}
