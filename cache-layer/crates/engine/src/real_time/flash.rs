//! The flash: bytes move at once, in the thread that asks; with a pacer, replies come when that says so.

use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use nix::fcntl::FallocateFlags;

use super::disk::is_discard;
use super::meter::{Meter, Timing};
use super::{Op, Pacer, StartPacer};
use crate::backing::Durability;
use crate::direct_io::PageBuffer;
use crate::flash_file::FlashFile;
use crate::reply::{Handler, Outcome, Reply};
use crate::ring::Rings;

thread_local! {
    /// Where a hit lies on its way to the kernel.
    static SCRATCH: RefCell<PageBuffer> = const { RefCell::new(PageBuffer::empty()) };
}

/// What the flash's own thread does, so that a flush holds up no hit.
enum Job {
    Sync(Reply),
    /// The same, whatever was asked for.
    SyncForced(Reply),
    /// For the flush of this tag, which the pacer has.
    SyncTagged(u64),
    Allocate {
        mode: FallocateFlags,
        offset: u64,
        len: u64,
        reply: Reply,
    },
}

/// Something to be written beside the traffic, which a sync takes too long for.
struct BackgroundWrite {
    bytes: Vec<u8>,
    offset: u64,
    reply: Reply,
}

/// The flash file, as fast as it is or as its pacer says.
///
/// I/O on a whole file goes through the page cache: it stands for a device that is faster than the
/// host's disks are likely to be. Parts of a real flash without a pacer are read and written
/// directly, and nobody waits for them ([`Rings`]).
pub struct Flash {
    file: Arc<FlashFile>,
    pacer: Option<Arc<dyn Pacer>>,
    /// For direct I/O that nobody waits for.
    rings: Option<Rings>,
    jobs: Sender<Job>,
    background: Sender<BackgroundWrite>,
    durability: Durability,
}

impl Flash {
    /// Starts the threads of the flash; they last as long as the process.
    ///
    /// # Errors
    /// The pacer cannot be started, or a thread.
    pub fn start(
        file: Arc<FlashFile>,
        start_pacer: Option<StartPacer<'_>>,
        durability: Durability,
    ) -> anyhow::Result<Arc<Flash>> {
        let (jobs, queue) = channel();
        let (background, writes) = channel();
        let syncs = jobs.clone();
        let sync = move |tag| {
            // Fails only without its thread, and that lasts as long as the process.
            let _ = syncs.send(Job::SyncTagged(tag));
        };
        let pacer = start_pacer.map(|start| start(Box::new(sync))).transpose()?;
        let direct = file.direct().filter(|_| pacer.is_none());
        let flash = Arc::new(Flash {
            rings: direct.and_then(Rings::open),
            file,
            pacer,
            jobs,
            background,
            durability,
        });
        let worker = flash.clone();
        thread::Builder::new()
            .name("flash".to_owned())
            .spawn(move || worker.work(&queue))?;
        let writer = flash.clone();
        thread::Builder::new()
            .name("flash-background".to_owned())
            .spawn(move || writer.write_all(&writes))?;
        Ok(flash)
    }

    /// Fills the buffer from this place on; no business of the pacer's.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    /// Stores the bytes from this place on; no business of the pacer's.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    /// Stores the bytes in a thread of its own; no business of the pacer's.
    pub fn write_in_background(&self, bytes: Vec<u8>, offset: u64, reply: Reply) {
        // Fails only without the thread: whoever drops the reply then says so.
        let _ = self.background.send(BackgroundWrite {
            bytes,
            offset,
            reply,
        });
    }

    fn write_all(&self, writes: &Receiver<BackgroundWrite>) {
        while let Ok(write) = writes.recv() {
            let written = self.write_at(&write.bytes, write.offset);
            write.reply.give(no_bytes(written));
        }
    }

    /// Moves bytes by `moving`, before this returns. What came of it is returned without a pacer, or else
    /// given to `later` when that says so.
    pub fn transfer(
        &self,
        op: Op,
        offset: u64,
        len: u32,
        moving: impl FnOnce() -> io::Result<()>,
        later: impl FnOnce(io::Result<()>) + Send + 'static,
    ) -> Option<io::Result<()>> {
        let Some(pacer) = &self.pacer else {
            return Some(moving());
        };
        let done = Reply::then(move |outcome: Outcome| later(outcome.map(drop)));
        let tag = pacer.admit(op, offset, len.into(), done);
        pacer.moved(tag, no_bytes(moving()));
        None
    }

    /// Queues for I/O that nobody need wait for, if there are any, and where in them an I/O goes.
    pub(crate) fn rings(&self, offset: u64, len: usize) -> Option<(&Rings, u64)> {
        let rings = self.rings.as_ref()?;
        Some((rings, self.file.direct_place(offset, len)?))
    }

    /// Whether those who take what has been done still do.
    pub fn is_alive(&self) -> bool {
        self.rings.as_ref().is_none_or(Rings::are_alive)
    }

    /// Whether whoever asks has to wait for the device.
    pub fn has_to_wait(&self) -> bool {
        self.file.direct().is_some() && self.rings.is_none()
    }

    /// Whether I/O goes on when whoever asked for it has returned.
    pub fn is_asynchronous(&self) -> bool {
        self.rings.is_some()
    }

    /// Reads: `fill` gets the bytes, from wherever on the flash they are, before this returns;
    /// the pacer is told of one request.
    fn read(
        &self,
        offset: u64,
        len: u32,
        fill: impl FnOnce(&mut [u8]) -> io::Result<()>,
        reply: Reply,
    ) {
        match (&self.pacer, reply) {
            (None, reply @ Reply::Data(_)) => {
                with_scratch(len as usize, |buffer| match fill(buffer) {
                    Ok(()) => reply.give_bytes(buffer),
                    Err(error) => reply.give(Err(error)),
                })
            }
            (None, reply) => reply.give(filled(len, fill)),
            (Some(pacer), reply) => {
                let tag = pacer.admit(Op::Read, offset, len.into(), reply);
                pacer.moved(tag, filled(len, fill));
            }
        }
    }

    /// Writes: `store` puts the bytes wherever on the flash they belong, before this returns;
    /// the pacer is told of one request.
    fn write(&self, offset: u64, len: u32, store: impl FnOnce() -> io::Result<()>, reply: Reply) {
        let Some(pacer) = &self.pacer else {
            return reply.give(no_bytes(store()));
        };
        let tag = pacer.admit(Op::Write, offset, len.into(), reply);
        pacer.moved(tag, no_bytes(store()));
    }

    /// Makes everything written so far as durable as was asked for, or durable in any case; in the
    /// flash's own thread, and no business of the pacer's.
    pub fn sync(&self, forced: bool, reply: Reply) {
        match (self.durability, forced) {
            (Durability::Volatile, false) => reply.give_bytes(&[]),
            (_, true) => self.hand_out(Job::SyncForced(reply)),
            (Durability::Synced, false) => self.hand_out(Job::Sync(reply)),
        }
    }

    /// Makes everything written so far as durable as was asked for.
    pub fn flush(&self, reply: Reply) {
        match (&self.pacer, self.durability) {
            (Some(pacer), _) => {
                pacer.admit(Op::Flush, 0, 0, reply);
            }
            (None, Durability::Volatile) => reply.give_bytes(&[]),
            (None, Durability::Synced) => self.hand_out(Job::Sync(reply)),
        }
    }

    /// Waits until no reply waits for its time, or the time is up.
    pub fn wait_for_rest(&self, limit: Duration) {
        if let Some(pacer) = &self.pacer {
            pacer.wait_for_rest(limit);
        }
    }

    /// A reply that ends a request with a pacer; without one the request ends before `read` and
    /// `write` return, so the caller keeps its timing, and the reply its fast way.
    fn ending(&self, timing: Timing, reply: Reply) -> (Reply, Option<Timing>) {
        match self.pacer {
            Some(_) => (timing.until(reply), None),
            None => (reply, Some(timing)),
        }
    }

    fn hand_out(&self, job: Job) {
        // Fails only without the thread: whoever drops the reply then says so.
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
            let forced = syncs.iter().any(|job| matches!(job, Job::SyncForced(_)));
            let synced = match self.durability {
                Durability::Volatile if !forced => Ok(()),
                _ => self.file.sync_data(),
            };
            let synced = synced.map_err(|error| error.raw_os_error());
            for job in syncs {
                self.finish(job, synced.map_err(same_error));
            }
        }
    }

    fn finish(&self, job: Job, synced: io::Result<()>) {
        match job {
            Job::Sync(reply) | Job::SyncForced(reply) => reply.give(no_bytes(synced)),
            Job::SyncTagged(tag) => {
                if let Some(pacer) = &self.pacer {
                    pacer.moved(tag, no_bytes(synced));
                }
            }
            Job::Allocate {
                mode,
                offset,
                len,
                reply,
            } => {
                reply.give(no_bytes(self.file.allocate(mode, offset, len)));
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
pub struct Slice {
    /// The flash it lies on.
    pub flash: Arc<Flash>,
    /// Where it begins, bytes from the start of the flash.
    pub start: u64,
    /// Its reads and writes.
    pub meter: Arc<Meter>,
}

impl Handler for Slice {
    fn read(&self, offset: u64, len: u32, reply: Reply) {
        let offset = self.start + offset;
        let timing = self.meter.begin(Op::Read, len.into());
        if let Some((rings, at)) = self.flash.rings(offset, len as usize) {
            let reply = timing.until(reply);
            return rings.read(at, len, |outcome| reply.give(outcome));
        }
        let fill = |buffer: &mut [u8]| self.flash.read_at(buffer, offset);
        let (reply, _timing) = self.flash.ending(timing, reply);
        self.flash.read(offset, len, fill, reply);
    }

    fn write(&self, offset: u64, data: &[u8], reply: Reply) {
        let offset = self.start + offset;
        let timing = self.meter.begin(Op::Write, data.len() as u64);
        if let Some((rings, at)) = self.flash.rings(offset, data.len()) {
            let reply = timing.until(reply);
            let (copy, range) = (PageBuffer::copy_of(data), 0..data.len());
            return rings.write(at, Arc::new(copy), range, |outcome| reply.give(outcome));
        }
        let store = || self.flash.write_at(data, offset);
        let (reply, _timing) = self.flash.ending(timing, reply);
        self.flash.write(offset, data.len() as u32, store, reply);
    }

    fn flush(&self, reply: Reply) {
        self.flash.flush(reply);
    }

    fn allocate(&self, mode: FallocateFlags, offset: u64, len: u64, reply: Reply) {
        let offset = self.start + offset;
        if let Some(pacer) = self.flash.pacer.as_ref().filter(|_| is_discard(mode)) {
            pacer.discard(offset, len);
        }
        self.flash.hand_out(Job::Allocate {
            mode,
            offset,
            len,
            reply,
        });
    }
}
