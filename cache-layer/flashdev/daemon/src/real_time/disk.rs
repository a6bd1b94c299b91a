//! A device over a backing file: moves the data at once, replies when the model says so; without a
//! model, when the data has moved.

use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};
use nix::fcntl::FallocateFlags;

use super::in_flight::Counters;
use super::meter::Meter;
use super::timed::Timed;
use crate::backing::Backing;
use crate::direct_io::PageBuffer;
use crate::fuse::reply::{Handler, Outcome, Reply};
use storage_model::device::{Device, Op};
use virtual_time::TimeScale;

/// Threads that move data. The backing file is much faster than what is modelled on it; a few
/// are enough to keep it so when some of them wait for a real disk.
const WORKERS: usize = 8;

/// What a worker has to do.
enum Job {
    Read {
        ticket: Ticket,
        offset: u64,
        len: u32,
    },
    Write {
        ticket: Ticket,
        offset: u64,
        data: Arc<PageBuffer>,
        range: Range<usize>,
    },
    Sync {
        ticket: Ticket,
    },
    /// Durable whatever was asked for; outside the model.
    SyncForced(Reply),
    Allocate {
        mode: FallocateFlags,
        offset: u64,
        len: u64,
        reply: Reply,
    },
}

/// Whom to tell that the data has moved.
enum Ticket {
    /// The model, which replies in its own time.
    Timed(u64),
    /// Whoever asked.
    Direct(Reply),
}

/// Where the data lies.
pub(crate) trait Medium: Send + Sync {
    /// Reads a range.
    fn read(&self, offset: u64, len: usize) -> io::Result<PageBuffer>;

    /// Writes a range.
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Makes everything written so far as durable as was asked for.
    fn sync(&self) -> io::Result<()>;

    /// Makes everything written so far durable, whatever was asked for.
    fn sync_forced(&self) -> io::Result<()>;

    /// Allocates, punches or zeroes a range, as fallocate(2) does.
    fn allocate(&self, mode: FallocateFlags, offset: u64, len: u64) -> io::Result<()>;
}

impl Medium for Backing {
    fn read(&self, offset: u64, len: usize) -> io::Result<PageBuffer> {
        Backing::read(self, offset, len)
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        Backing::write(self, offset, bytes)
    }

    fn sync(&self) -> io::Result<()> {
        Backing::sync(self)
    }

    fn sync_forced(&self) -> io::Result<()> {
        Backing::sync_forced(self)
    }

    fn allocate(&self, mode: FallocateFlags, offset: u64, len: u64) -> io::Result<()> {
        Backing::allocate(self, mode, offset, len)
    }
}

/// The device that requests are handed to.
pub(crate) struct Disk<D> {
    timed: Option<Arc<Timed<D>>>,
    jobs: Sender<Job>,
    meter: Arc<Meter>,
}

impl<D: Device + 'static> Disk<D> {
    /// Starts the threads that move data and keep time; they last as long as the process.
    ///
    /// `device`: the model; `None` is as fast as the backing file.
    pub(crate) fn start(
        device: Option<D>,
        backing: Arc<dyn Medium>,
        scale: TimeScale,
    ) -> io::Result<Arc<Disk<D>>> {
        let (jobs, queue) = unbounded();
        let syncs = jobs.clone();
        let sync = move |tag| {
            // Fails only without workers, and those last as long as the process.
            let _ = syncs.send(Job::Sync {
                ticket: Ticket::Timed(tag),
            });
        };
        let timed = device.map(|device| Timed::start(device, scale, Box::new(sync)));
        let timed = timed.transpose()?;
        for number in 0..WORKERS {
            let (timed, queue, backing) = (timed.clone(), queue.clone(), backing.clone());
            thread::Builder::new()
                .name(format!("worker-{number}"))
                .spawn(move || work(timed.as_deref(), &queue, &*backing))?;
        }
        let meter = Meter::new();
        Ok(Arc::new(Disk { timed, jobs, meter }))
    }

    /// Takes a write of a part of the buffer.
    pub(crate) fn write_part(
        &self,
        offset: u64,
        data: Arc<PageBuffer>,
        range: Range<usize>,
        reply: Reply,
    ) {
        let reply = self.meter.begin(Op::Write, range.len() as u64).until(reply);
        let ticket = self.admit(Op::Write, offset, range.len() as u32, reply);
        self.hand_out(Job::Write {
            ticket,
            offset,
            data,
            range,
        });
    }

    /// Makes everything written so far durable, whatever was asked for.
    pub(crate) fn sync_forced(&self, reply: Reply) {
        self.hand_out(Job::SyncForced(reply));
    }

    /// The device and its clock, if it has a model.
    pub(crate) fn timed(&self) -> Option<&Timed<D>> {
        self.timed.as_deref()
    }

    /// Waits until nothing is in the model, or the time is up.
    pub(crate) fn wait_for_rest(&self, limit: Duration) {
        if let Some(timed) = &self.timed {
            timed.wait_for_rest(limit);
        }
    }

    /// Reads and writes, whoever asked for them.
    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    /// What has gone through so far, as far as a model has counted it.
    pub(crate) fn counters(&self) -> Option<Counters> {
        self.timed.as_ref().map(|timed| timed.counters())
    }

    fn admit(&self, op: Op, offset: u64, len: u32, reply: Reply) -> Ticket {
        match &self.timed {
            Some(timed) => Ticket::Timed(timed.admit(op, offset, len.into(), reply)),
            None => Ticket::Direct(reply),
        }
    }

    fn hand_out(&self, job: Job) {
        // Fails only without workers, and those last as long as the process.
        let _ = self.jobs.send(job);
    }
}

impl<D: Device + 'static> Handler for Disk<D> {
    fn read(&self, offset: u64, len: u32, reply: Reply) {
        let reply = self.meter.begin(Op::Read, len.into()).until(reply);
        let ticket = self.admit(Op::Read, offset, len, reply);
        self.hand_out(Job::Read {
            ticket,
            offset,
            len,
        });
    }

    fn write(&self, offset: u64, data: &[u8], reply: Reply) {
        let data = Arc::new(PageBuffer::copy_of(data));
        let range = 0..data.bytes().len();
        self.write_part(offset, data, range, reply);
    }

    /// The modelled disk has its volatile write cache off, so a flush costs the drain of the
    /// writes before it and no more. Without a model all that was answered is synced.
    fn flush(&self, reply: Reply) {
        // The model asks for the sync itself, when its time has come.
        if let Ticket::Direct(reply) = self.admit(Op::Flush, 0, 0, reply) {
            self.hand_out(Job::Sync {
                ticket: Ticket::Direct(reply),
            });
        }
    }

    fn allocate(&self, mode: FallocateFlags, offset: u64, len: u64, reply: Reply) {
        if let Some(timed) = self.timed().filter(|_| is_discard(mode)) {
            timed.discard(offset, len);
        }
        self.hand_out(Job::Allocate {
            mode,
            offset,
            len,
            reply,
        });
    }
}

/// Whether a range is not needed any more: what a loop device makes of a discard.
pub(crate) fn is_discard(mode: FallocateFlags) -> bool {
    mode.contains(FallocateFlags::FALLOC_FL_PUNCH_HOLE)
}

fn work<D: Device + 'static>(
    timed: Option<&Timed<D>>,
    queue: &Receiver<Job>,
    backing: &dyn Medium,
) {
    let moved = |ticket, outcome| match (ticket, timed) {
        (Ticket::Timed(tag), Some(timed)) => timed.moved(tag, outcome),
        (Ticket::Timed(_), None) => unreachable!("only a model gives out tags"),
        (Ticket::Direct(reply), _) => reply.give(outcome),
    };
    for job in queue {
        match job {
            Job::Read {
                ticket,
                offset,
                len,
            } => {
                moved(ticket, caught(|| backing.read(offset, len as usize)));
            }
            Job::Write {
                ticket,
                offset,
                data,
                range,
            } => {
                let write = || no_bytes(backing.write(offset, &data.bytes()[range]));
                moved(ticket, caught(write));
            }
            Job::Sync { ticket } => moved(ticket, caught(|| no_bytes(backing.sync()))),
            Job::SyncForced(reply) => reply.give(caught(|| no_bytes(backing.sync_forced()))),
            Job::Allocate {
                mode,
                offset,
                len,
                reply,
            } => reply.give(caught(|| no_bytes(backing.allocate(mode, offset, len)))),
        }
    }
}

/// What came of moving data; a panic, which has said so, fails the request and not the device.
fn caught(moving: impl FnOnce() -> Outcome) -> Outcome {
    catch_unwind(AssertUnwindSafe(moving))
        .unwrap_or_else(|_| Err(io::Error::from_raw_os_error(libc::EIO)))
}

fn no_bytes(result: io::Result<()>) -> Outcome {
    result.map(|()| PageBuffer::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuse::reply::wait_for;
    use storage_model::spec::ModelSpec;

    /// Does what a test wants, by the offset.
    struct Moody;

    impl Medium for Moody {
        fn read(&self, offset: u64, len: usize) -> io::Result<PageBuffer> {
            match offset {
                0 => panic!("on purpose"),
                4096 => Err(io::Error::from_raw_os_error(libc::ENOSPC)),
                _ => Ok(PageBuffer::zeroed(len)),
            }
        }

        fn write(&self, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
            panic!("on purpose")
        }

        fn sync(&self) -> io::Result<()> {
            panic!("on purpose")
        }

        fn sync_forced(&self) -> io::Result<()> {
            panic!("on purpose")
        }

        fn allocate(&self, _: FallocateFlags, _: u64, _: u64) -> io::Result<()> {
            panic!("on purpose")
        }
    }

    #[test]
    fn a_worker_that_panics_fails_its_request_and_goes_on_with_the_next() {
        let model = ModelSpec::load("hdd-7200").unwrap().build(1 << 20).unwrap();
        check_moody(Some(model));
        check_moody(None);
    }

    fn check_moody(model: Option<storage_model::spec::Model>) {
        let scale = TimeScale::new(0.001).unwrap();
        let disk = Disk::start(model, Arc::new(Moody), scale).unwrap();
        let code = |outcome: Outcome| outcome.unwrap_err().raw_os_error();
        for _ in 0..3 * WORKERS {
            let read = wait_for(|reply| disk.read(0, 4096, reply));
            assert_eq!(code(read), Some(libc::EIO));
        }
        let written = wait_for(|reply| disk.write(0, &[1; 512], reply));
        assert_eq!(code(written), Some(libc::EIO));
        let flushed = wait_for(|reply| disk.flush(reply));
        assert_eq!(code(flushed), Some(libc::EIO));
        let full = wait_for(|reply| disk.read(4096, 4096, reply));
        assert_eq!(code(full), Some(libc::ENOSPC));
        assert!(wait_for(|reply| disk.read(8192, 4096, reply)).is_ok());
    }
}
