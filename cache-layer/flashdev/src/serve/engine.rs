//! A modelled device over a backing file: moves the data at once, answers when the model says so.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nix::fcntl::FallocateFlags;

use super::backing::{Backing, PageBuffer};
use super::handler::{Answer, Handler, Outcome};
use super::ledger::Counters;
use super::timed::Timed;
use crate::device::{Device, Op};
use crate::time::TimeScale;

/// Threads that move data. The backing file is much faster than what is modelled on it; a few
/// are enough to keep it so when some of them wait for a real disk.
const WORKERS: usize = 8;

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
        answer: Answer,
    },
}

/// The device that requests are handed to.
pub(crate) struct Engine<D> {
    timed: Arc<Timed<D>>,
    jobs: Sender<Job>,
}

impl<D: Device + 'static> Engine<D> {
    /// Starts the threads that move data and keep time; they last as long as the process.
    pub(crate) fn start(
        device: D,
        backing: Arc<Backing>,
        scale: TimeScale,
    ) -> io::Result<Arc<Engine<D>>> {
        let (jobs, queue) = channel();
        let syncs = jobs.clone();
        let sync = move |tag| {
            // Fails only without workers, and those last as long as the process.
            let _ = syncs.send(Job::Sync { tag });
        };
        let timed = Timed::start(device, scale, Box::new(sync))?;
        let queue = Arc::new(Mutex::new(queue));
        for number in 0..WORKERS {
            let (timed, queue, backing) = (timed.clone(), queue.clone(), backing.clone());
            thread::Builder::new()
                .name(format!("worker-{number}"))
                .spawn(move || work(&timed, &queue, &backing))?;
        }
        Ok(Arc::new(Engine { timed, jobs }))
    }

    /// Takes a write, with the buffer that holds its data.
    pub(crate) fn write_buffer(&self, offset: u64, data: PageBuffer, answer: Answer) {
        let len = data.bytes().len() as u32;
        let tag = self.timed.admit(Op::Write, offset, len, answer);
        self.hand_out(Job::Write { tag, offset, data });
    }

    /// Waits until nothing is in the device, or the time is up.
    pub(crate) fn wait_for_rest(&self, limit: Duration) {
        self.timed.wait_for_rest(limit);
    }

    /// What has gone through so far.
    pub(crate) fn counters(&self) -> Counters {
        self.timed.counters()
    }

    fn hand_out(&self, job: Job) {
        // Fails only without workers, and those last as long as the process.
        let _ = self.jobs.send(job);
    }
}

impl<D: Device + 'static> Handler for Engine<D> {
    fn read(&self, offset: u64, len: u32, answer: Answer) {
        let tag = self.timed.admit(Op::Read, offset, len, answer);
        self.hand_out(Job::Read { tag, offset, len });
    }

    fn write(&self, offset: u64, data: &[u8], answer: Answer) {
        self.write_buffer(offset, PageBuffer::copy_of(data), answer);
    }

    /// The modelled disk has its volatile write cache off, so a flush costs the drain of the
    /// writes before it and no more.
    fn flush(&self, answer: Answer) {
        self.timed.admit(Op::Flush, 0, 0, answer);
    }

    fn allocate(&self, mode: FallocateFlags, offset: u64, len: u64, answer: Answer) {
        self.hand_out(Job::Allocate {
            mode,
            offset,
            len,
            answer,
        });
    }
}

fn work<D: Device + 'static>(timed: &Timed<D>, queue: &Mutex<Receiver<Job>>, backing: &Backing) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = job else { return };
        match job {
            Job::Read { tag, offset, len } => {
                timed.moved(tag, backing.read(offset, len as usize));
            }
            Job::Write { tag, offset, data } => {
                timed.moved(tag, no_bytes(backing.write(offset, &data)));
            }
            Job::Sync { tag } => timed.moved(tag, no_bytes(backing.sync())),
            Job::Allocate {
                mode,
                offset,
                len,
                answer,
            } => answer.give(no_bytes(backing.allocate(mode, offset, len))),
        }
    }
}

fn no_bytes(result: io::Result<()>) -> Outcome {
    result.map(|()| PageBuffer::empty())
}
