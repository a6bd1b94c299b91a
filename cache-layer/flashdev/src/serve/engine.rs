//! A modelled device in real time: moves the data at once, answers when the model says so.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};
use nix::fcntl::FallocateFlags;

use super::backing::{Backing, PageBuffer};
use super::ledger::{Counters, Ledger, Moved, Ready};
use crate::device::{Completion, Device, Op, Request};
use crate::time::{Nanos, TimeScale};

/// Threads that move data. The backing file is much faster than what is modelled on it; a few
/// are enough to keep it so when some of them wait for a real disk.
const WORKERS: usize = 8;

/// Where the answer to a request goes.
enum Reply {
    Read(ReplyData),
    Write(ReplyWrite),
    Flush(ReplyEmpty),
}

/// What a worker has to do.
enum Job {
    Read {
        tag: u64,
        offset: u64,
        len: u32,
    },
    Write {
        tag: u64,
        offset: u64,
        data: PageBuffer,
    },
    Sync {
        tag: u64,
    },
    /// Outside the model: a disk of this kind knows no discard, so it costs no device time.
    Allocate {
        mode: FallocateFlags,
        offset: u64,
        len: u64,
        reply: ReplyEmpty,
    },
}

struct State<D> {
    device: D,
    ledger: Ledger<Reply>,
    timer: Timer,
    scratch: Vec<Completion>,
}

/// What the timer thread is doing, for those who may have to wake it.
#[derive(Clone, Copy, PartialEq)]
enum Timer {
    /// Will look at the device before it sleeps again.
    Awake,
    /// Sleeps until a point of device time, or until woken.
    Asleep(Option<Nanos>),
}

/// The device that requests are handed to.
pub(super) struct Engine<D> {
    state: Mutex<State<D>>,
    /// The timer has to get up earlier than it thinks.
    rouse: Condvar,
    /// Nothing is left in the device.
    rest: Condvar,
    start: Instant,
    scale: TimeScale,
    jobs: Sender<Job>,
}

impl<D: Device + 'static> Engine<D> {
    /// Starts the threads that move data and keep time; they last as long as the process.
    pub(super) fn start(
        device: D,
        backing: Arc<Backing>,
        scale: TimeScale,
    ) -> io::Result<Arc<Engine<D>>> {
        let (jobs, queue) = channel();
        let engine = Arc::new(Engine {
            state: Mutex::new(State {
                device,
                ledger: Ledger::new(),
                timer: Timer::Awake,
                scratch: Vec::new(),
            }),
            rouse: Condvar::new(),
            rest: Condvar::new(),
            start: Instant::now(),
            scale,
            jobs,
        });
        engine.start_workers(queue, &backing)?;
        let timer = engine.clone();
        thread::Builder::new()
            .name("timer".to_owned())
            .spawn(move || timer.keep_time())?;
        Ok(engine)
    }

    fn start_workers(
        self: &Arc<Self>,
        queue: Receiver<Job>,
        backing: &Arc<Backing>,
    ) -> io::Result<()> {
        let queue = Arc::new(Mutex::new(queue));
        for number in 0..WORKERS {
            let (engine, queue, backing) = (self.clone(), queue.clone(), backing.clone());
            thread::Builder::new()
                .name(format!("worker-{number}"))
                .spawn(move || engine.work(&queue, &backing))?;
        }
        Ok(())
    }

    /// Takes a read.
    pub(super) fn read(&self, offset: u64, len: u32, reply: ReplyData) {
        let tag = self.submit(Op::Read, offset, len, Reply::Read(reply));
        self.hand_out(Job::Read { tag, offset, len });
    }

    /// Takes a write.
    pub(super) fn write(&self, offset: u64, data: &[u8], reply: ReplyWrite) {
        let tag = self.submit(Op::Write, offset, data.len() as u32, Reply::Write(reply));
        let data = PageBuffer::copy_of(data);
        self.hand_out(Job::Write { tag, offset, data });
    }

    /// Takes a flush. The modelled disk has its volatile write cache off, so a flush costs the
    /// drain of the writes before it and no more.
    pub(super) fn flush(&self, reply: ReplyEmpty) {
        self.submit(Op::Flush, 0, 0, Reply::Flush(reply));
    }

    /// Takes a fallocate.
    pub(super) fn allocate(&self, mode: FallocateFlags, offset: u64, len: u64, reply: ReplyEmpty) {
        self.hand_out(Job::Allocate {
            mode,
            offset,
            len,
            reply,
        });
    }

    /// Waits until nothing is in the device, or the time is up.
    pub(super) fn wait_for_rest(&self, limit: Duration) {
        let state = self.lock();
        let _ = self
            .rest
            .wait_timeout_while(state, limit, |state| !state.ledger.is_empty());
    }

    /// What has gone through so far.
    pub(super) fn counters(&self) -> Counters {
        self.lock().ledger.counters(self.real_ns())
    }

    fn submit(&self, op: Op, offset: u64, len: u32, reply: Reply) -> u64 {
        let mut state = self.lock();
        let real_ns = self.real_ns();
        let now = self.scale.to_device(real_ns);
        self.advance(&mut state, now);
        let tag = state.ledger.admit(real_ns, op, len, reply);
        let len = u64::from(len);
        let request = Request {
            tag,
            op,
            offset,
            len,
            host_len: len,
        };
        state.device.submit(now, request);
        if oversleeps(state.timer, state.device.next_event()) {
            self.rouse.notify_one();
        }
        tag
    }

    /// Lets the model live until `now` and enters what it completed. The timer, if it sleeps,
    /// was to get up for that anyhow.
    fn advance(&self, state: &mut State<D>, now: Nanos) {
        state.device.advance(now, &mut state.scratch);
        for completion in state.scratch.drain(..) {
            let due_ns = self.scale.to_real(completion.at);
            state.ledger.completed(completion.tag, due_ns);
        }
    }

    /// Sleeps from event to event of the model, and answers what has become ready.
    fn keep_time(&self) {
        // The kernel may otherwise delay a wake-up by 50 us to bundle it with others.
        let _ = nix::sys::prctl::set_timerslack(1);
        loop {
            let mut state = self.lock();
            let now = self.scale.to_device(self.real_ns());
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
        let due = state.ledger.settle(self.real_ns());
        if due.ready.is_empty() && due.syncs.is_empty() {
            return Some(state);
        }
        if state.ledger.is_empty() {
            self.rest.notify_all();
        }
        drop(state);
        for tag in due.syncs {
            self.hand_out(Job::Sync { tag });
        }
        for ready in due.ready {
            answer(ready);
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
                let nap_ns = self.scale.to_real(until).saturating_sub(self.real_ns());
                let woken = self.rouse.wait_timeout(state, Duration::from_nanos(nap_ns));
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        state.timer = Timer::Awake;
    }

    fn work(&self, queue: &Mutex<Receiver<Job>>, backing: &Backing) {
        loop {
            let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(job) = job else { return };
            let Some((tag, moved)) = move_data(job, backing) else {
                continue;
            };
            let mut state = self.lock();
            state.ledger.moved(tag, moved);
            self.answer_ready(state);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<D>> {
        // A thread that panicked has left one request unanswered, not the books unreadable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hand_out(&self, job: Job) {
        // Fails only without workers, and those last as long as the process.
        let _ = self.jobs.send(job);
    }

    fn real_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }
}

fn oversleeps(timer: Timer, event: Option<Nanos>) -> bool {
    match (timer, event) {
        (Timer::Asleep(None), Some(_)) => true,
        (Timer::Asleep(Some(until)), Some(event)) => event < until,
        _ => false,
    }
}

/// Does a job; what came of it, unless nobody keeps books about it.
fn move_data(job: Job, backing: &Backing) -> Option<(u64, Moved)> {
    match job {
        Job::Read { tag, offset, len } => Some((tag, backing.read(offset, len as usize).map(Some))),
        Job::Write { tag, offset, data } => {
            Some((tag, backing.write(offset, &data).map(|()| None)))
        }
        Job::Sync { tag } => Some((tag, backing.sync().map(|()| None))),
        Job::Allocate {
            mode,
            offset,
            len,
            reply,
        } => {
            match backing.allocate(mode, offset, len) {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(Errno::from(error)),
            }
            None
        }
    }
}

fn answer(ready: Ready<Reply>) {
    match (ready.reply, ready.moved) {
        (Reply::Read(reply), Ok(data)) => {
            reply.data(data.as_ref().map_or(&[], PageBuffer::bytes));
        }
        (Reply::Write(reply), Ok(_)) => reply.written(ready.len),
        (Reply::Flush(reply), Ok(_)) => reply.ok(),
        (Reply::Read(reply), Err(error)) => reply.error(Errno::from(error)),
        (Reply::Write(reply), Err(error)) => reply.error(Errno::from(error)),
        (Reply::Flush(reply), Err(error)) => reply.error(Errno::from(error)),
    }
}
