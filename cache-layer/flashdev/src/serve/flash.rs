//! The flash: bytes move at once, in the thread that asks; answers come when the model says so.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use nix::fcntl::{FallocateFlags, fallocate};

use super::backing::{Durability, PageBuffer};
use super::handler::{Answer, Handler, Outcome};
use super::ledger::Counters;
use super::timed::Timed;
use crate::device::Op;
use crate::model::Model;
use crate::time::TimeScale;

thread_local! {
    /// Where a hit lies on its way to the kernel.
    static SCRATCH: RefCell<PageBuffer> = const { RefCell::new(PageBuffer::empty()) };
}

/// What the flash's own thread does, so that a flush holds up no hit.
enum Job {
    Sync(Answer),
    /// For the flush of this tag in the model.
    SyncTagged(u64),
    Allocate {
        mode: FallocateFlags,
        offset: u64,
        len: u64,
        answer: Answer,
    },
}

/// The flash file, as fast as it is or as its model says.
///
/// I/O goes through the page cache: the flash stands for a device that is faster than the
/// host's disks are likely to be.
pub(crate) struct Flash {
    file: Arc<File>,
    model: Option<Arc<Timed<Model>>>,
    jobs: Sender<Job>,
    durability: Durability,
}

impl Flash {
    /// Starts the threads of the flash; they last as long as the process.
    pub(crate) fn start(
        file: Arc<File>,
        model: Option<Model>,
        scale: TimeScale,
        durability: Durability,
    ) -> io::Result<Arc<Flash>> {
        let (jobs, queue) = channel();
        let start_model = |model| {
            let syncs = jobs.clone();
            let sync = move |tag| {
                // Fails only without its thread, and that lasts as long as the process.
                let _ = syncs.send(Job::SyncTagged(tag));
            };
            Timed::start(model, scale, Box::new(sync))
        };
        let flash = Arc::new(Flash {
            file,
            model: model.map(start_model).transpose()?,
            jobs,
            durability,
        });
        let worker = flash.clone();
        thread::Builder::new()
            .name("flash".to_owned())
            .spawn(move || worker.work(&queue))?;
        Ok(flash)
    }

    /// Fills the buffer from this place on; no business of the model's.
    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    /// Stores the bytes from this place on; no business of the model's.
    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    /// Reads: `fill` gets the bytes, from wherever on the flash they are, before this returns;
    /// the model is charged with one request.
    pub(crate) fn read(
        &self,
        offset: u64,
        len: u32,
        fill: impl FnOnce(&mut [u8]) -> io::Result<()>,
        answer: Answer,
    ) {
        match (&self.model, answer) {
            (None, answer @ Answer::Data(_)) => {
                with_scratch(len as usize, |buffer| match fill(buffer) {
                    Ok(()) => answer.give_bytes(buffer),
                    Err(error) => answer.give(Err(error)),
                })
            }
            (None, answer) => answer.give(filled(len, fill)),
            (Some(model), answer) => {
                let tag = model.admit(Op::Read, offset, len, answer);
                model.moved(tag, filled(len, fill));
            }
        }
    }

    /// Writes: `store` puts the bytes wherever on the flash they belong, before this returns;
    /// the model is charged with one request.
    pub(crate) fn write(
        &self,
        offset: u64,
        len: u32,
        store: impl FnOnce() -> io::Result<()>,
        answer: Answer,
    ) {
        let Some(model) = &self.model else {
            return answer.give(no_bytes(store()));
        };
        let tag = model.admit(Op::Write, offset, len, answer);
        model.moved(tag, no_bytes(store()));
    }

    /// Makes everything written so far as durable as was asked for.
    pub(crate) fn flush(&self, answer: Answer) {
        match (&self.model, self.durability) {
            (Some(model), _) => {
                model.admit(Op::Flush, 0, 0, answer);
            }
            (None, Durability::Volatile) => answer.give_bytes(&[]),
            (None, Durability::Synced) => self.hand_out(Job::Sync(answer)),
        }
    }

    /// Has everything written so far on the medium before anything that follows, as durable as
    /// was asked for; waits for it.
    pub(crate) fn barrier(&self) -> io::Result<()> {
        match self.durability {
            Durability::Synced => self.file.sync_data(),
            Durability::Volatile => Ok(()),
        }
    }

    /// Waits until nothing is in the model, or the time is up.
    pub(crate) fn wait_for_rest(&self, limit: Duration) {
        if let Some(model) = &self.model {
            model.wait_for_rest(limit);
        }
    }

    /// What has gone through so far, as far as a model has counted it.
    pub(crate) fn counters(&self) -> Option<Counters> {
        self.model.as_ref().map(|model| model.counters())
    }

    fn hand_out(&self, job: Job) {
        // Fails only without the thread, and that lasts as long as the process.
        let _ = self.jobs.send(job);
    }

    fn work(&self, queue: &Receiver<Job>) {
        while let Ok(first) = queue.recv() {
            // Flushes that came together share one sync: each began before it.
            let (allocations, syncs): (Vec<_>, Vec<_>) = std::iter::once(first)
                .chain(queue.try_iter())
                .partition(|job| matches!(job, Job::Allocate { .. }));
            allocations
                .into_iter()
                .for_each(|job| self.finish(job, Ok(())));
            if syncs.is_empty() {
                continue;
            }
            let synced = self.barrier().map_err(|error| error.raw_os_error());
            for job in syncs {
                self.finish(job, synced.map_err(same_error));
            }
        }
    }

    fn finish(&self, job: Job, synced: io::Result<()>) {
        match job {
            Job::Sync(answer) => answer.give(no_bytes(synced)),
            Job::SyncTagged(tag) => {
                if let Some(model) = &self.model {
                    model.moved(tag, no_bytes(synced));
                }
            }
            Job::Allocate {
                mode,
                offset,
                len,
                answer,
            } => {
                let result = fallocate(self.file.as_fd(), mode, offset as i64, len as i64);
                answer.give(no_bytes(result.map_err(io::Error::from)));
            }
        }
    }
}

/// An error that goes to several askers.
fn same_error(code: Option<i32>) -> io::Error {
    io::Error::from_raw_os_error(code.unwrap_or(libc::EIO))
}

fn filled(len: u32, fill: impl FnOnce(&mut [u8]) -> io::Result<()>) -> Outcome {
    let mut buffer = PageBuffer::zeroed(len as usize);
    fill(buffer.bytes_mut()).map(|()| buffer)
}

fn no_bytes(result: io::Result<()>) -> Outcome {
    result.map(|()| PageBuffer::empty())
}

fn with_scratch(len: usize, work: impl FnOnce(&mut [u8])) {
    SCRATCH.with_borrow_mut(|scratch| {
        if scratch.bytes().len() < len {
            *scratch = PageBuffer::zeroed(len.next_power_of_two());
        }
        work(&mut scratch.bytes_mut()[..len]);
    });
}

/// A slice of the flash that is a device of its own.
pub(crate) struct Slice {
    /// The flash it lies on.
    pub(crate) flash: Arc<Flash>,
    /// Where it begins, bytes from the start of the flash.
    pub(crate) start: u64,
}

impl Handler for Slice {
    fn read(&self, offset: u64, len: u32, answer: Answer) {
        let offset = self.start + offset;
        let fill = |buffer: &mut [u8]| self.flash.read_at(buffer, offset);
        self.flash.read(offset, len, fill, answer);
    }

    fn write(&self, offset: u64, data: &[u8], answer: Answer) {
        let offset = self.start + offset;
        let store = || self.flash.write_at(data, offset);
        self.flash.write(offset, data.len() as u32, store, answer);
    }

    fn flush(&self, answer: Answer) {
        self.flash.flush(answer);
    }

    fn allocate(&self, mode: FallocateFlags, offset: u64, len: u64, answer: Answer) {
        self.flash.hand_out(Job::Allocate {
            mode,
            offset: self.start + offset,
            len,
            answer,
        });
    }
}
