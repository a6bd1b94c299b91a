//! A device over a backing file: moves the data at once, and replies when it has moved; with a pacer, no
//! earlier than that says.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, TryRecvError, select, unbounded};
use nix::fcntl::FallocateFlags;

use super::meter::Meter;
use super::{Op, Pacer, StartPacer};
use crate::backing::Backing;
use crate::direct_io::PageBuffer;
use crate::reply::{Handler, Outcome, Reply};

/// Threads that move data below a pacer. The backing file is much faster than what is paced on it;
/// a few are enough to keep it so when some of them wait for a real disk.
const WORKERS: usize = 8;

/// The same without one: as many I/Os are under way on a real disk at most. Some of them leave what
/// nobody waits for to the others, so that it cannot keep users from the disk.
const WORKERS_OF_A_REAL_DISK: usize = 32;
const WORKERS_FOR_USERS: usize = 128;

/// Whether somebody waits for an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// A user does.
    User,
    /// Nobody: users come first.
    Background,
}

impl Urgency {
    /// As an I/O says of itself.
    pub fn of(in_background: bool) -> Urgency {
        match in_background {
            true => Urgency::Background,
            false => Urgency::User,
        }
    }
}

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
    /// Durable whatever was asked for; no business of the pacer's.
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
    /// The pacer, which replies in its own time.
    Paced(u64),
    /// Whoever asked.
    Direct(Reply),
}

/// Where the data lies.
pub trait Medium: Send + Sync {
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
pub struct Disk {
    pacer: Option<Arc<dyn Pacer>>,
    jobs: Sender<Job>,
    background: Sender<Job>,
    meter: Arc<Meter>,
}

impl Disk {
    /// Starts the threads that move data; they last as long as the process.
    ///
    /// `start_pacer`: without one it is as fast as the backing file.
    ///
    /// # Errors
    /// The pacer cannot be started, or a thread.
    pub fn start(
        start_pacer: Option<StartPacer<'_>>,
        backing: Arc<dyn Medium>,
    ) -> anyhow::Result<Arc<Disk>> {
        let (jobs, queue) = unbounded();
        let (background, later) = unbounded();
        let syncs = jobs.clone();
        let sync = move |tag| {
            // Fails only without workers, and those last as long as the process.
            let _ = syncs.send(Job::Sync {
                ticket: Ticket::Paced(tag),
            });
        };
        let pacer = start_pacer.map(|start| start(Box::new(sync))).transpose()?;
        let (of_all, of_users) = match pacer {
            Some(_) => (WORKERS, 0),
            None => (WORKERS_OF_A_REAL_DISK, WORKERS_FOR_USERS),
        };
        for number in 0..of_all + of_users {
            let (pacer, queue, backing) = (pacer.clone(), queue.clone(), backing.clone());
            let later = (number < of_all).then(|| later.clone());
            thread::Builder::new()
                .name(format!("worker-{number}"))
                .spawn(move || {
                    while let Some(job) = next_job(&queue, later.as_ref()) {
                        work(pacer.as_deref(), job, &*backing);
                    }
                })?;
        }
        Ok(Arc::new(Disk {
            pacer,
            jobs,
            background,
            meter: Meter::new(),
        }))
    }

    /// Takes a write of a part of the buffer.
    pub fn write_part(
        &self,
        urgency: Urgency,
        offset: u64,
        data: Arc<PageBuffer>,
        range: Range<usize>,
        reply: Reply,
    ) {
        let reply = self.meter.begin(Op::Write, range.len() as u64).until(reply);
        let ticket = self.admit(Op::Write, offset, range.len() as u32, reply);
        let job = Job::Write {
            ticket,
            offset,
            data,
            range,
        };
        self.hand_out(urgency, job);
    }

    /// Reads a range.
    pub fn read_as(&self, urgency: Urgency, offset: u64, len: u32, reply: Reply) {
        let reply = self.meter.begin(Op::Read, len.into()).until(reply);
        let ticket = self.admit(Op::Read, offset, len, reply);
        let job = Job::Read {
            ticket,
            offset,
            len,
        };
        self.hand_out(urgency, job);
    }

    /// Makes everything written so far durable, whatever was asked for.
    pub fn sync_forced(&self, reply: Reply) {
        self.hand_out(Urgency::User, Job::SyncForced(reply));
    }

    /// Waits until no reply waits for its time, or the time is up.
    pub fn wait_for_rest(&self, limit: Duration) {
        if let Some(pacer) = &self.pacer {
            pacer.wait_for_rest(limit);
        }
    }

    /// Reads and writes, whoever asked for them.
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    fn admit(&self, op: Op, offset: u64, len: u32, reply: Reply) -> Ticket {
        match &self.pacer {
            Some(pacer) => Ticket::Paced(pacer.admit(op, offset, len.into(), reply)),
            None => Ticket::Direct(reply),
        }
    }

    fn hand_out(&self, urgency: Urgency, job: Job) {
        let queue = match urgency {
            Urgency::User => &self.jobs,
            Urgency::Background => &self.background,
        };
        // Fails only without workers, and those last as long as the process.
        let _ = queue.send(job);
    }
}

impl Handler for Disk {
    fn read(&self, offset: u64, len: u32, reply: Reply) {
        self.read_as(Urgency::User, offset, len, reply);
    }

    fn write(&self, offset: u64, data: &[u8], reply: Reply) {
        let data = Arc::new(PageBuffer::copy_of(data));
        let range = 0..data.bytes().len();
        self.write_part(Urgency::User, offset, data, range, reply);
    }

    /// All that was answered is synced; with a pacer when that says so.
    fn flush(&self, reply: Reply) {
        // The pacer asks for the sync itself, when its time has come.
        if let Ticket::Direct(reply) = self.admit(Op::Flush, 0, 0, reply) {
            let ticket = Ticket::Direct(reply);
            self.hand_out(Urgency::User, Job::Sync { ticket });
        }
    }

    fn allocate(&self, mode: FallocateFlags, offset: u64, len: u64, reply: Reply) {
        if let Some(pacer) = self.pacer.as_ref().filter(|_| is_discard(mode)) {
            pacer.discard(offset, len);
        }
        let job = Job::Allocate {
            mode,
            offset,
            len,
            reply,
        };
        self.hand_out(Urgency::User, job);
    }
}

/// Whether a range is not needed any more: what a loop device makes of a discard.
pub fn is_discard(mode: FallocateFlags) -> bool {
    mode.contains(FallocateFlags::FALLOC_FL_PUNCH_HOLE)
}

/// What a worker does next, users' first; nothing once the device is gone.
fn next_job(queue: &Receiver<Job>, later: Option<&Receiver<Job>>) -> Option<Job> {
    let Some(later) = later else {
        return queue.recv().ok();
    };
    match queue.try_recv() {
        Ok(job) => Some(job),
        Err(TryRecvError::Disconnected) => None,
        Err(TryRecvError::Empty) => select! {
            recv(queue) -> job => job.ok(),
            recv(later) -> job => job.ok(),
        },
    }
}

fn work(pacer: Option<&dyn Pacer>, job: Job, backing: &dyn Medium) {
    let moved = |ticket, outcome| match (ticket, pacer) {
        (Ticket::Paced(tag), Some(pacer)) => pacer.moved(tag, outcome),
        (Ticket::Paced(_), None) => unreachable!("only a pacer gives out tags"),
        (Ticket::Direct(reply), _) => reply.give(outcome),
    };
    match job {
        Job::Read {
            ticket,
            offset,
            len,
        } => moved(ticket, backing.read(offset, len as usize)),
        Job::Write {
            ticket,
            offset,
            data,
            range,
        } => {
            let written = backing.write(offset, &data.bytes()[range]);
            moved(ticket, no_bytes(written));
        }
        Job::Sync { ticket } => moved(ticket, no_bytes(backing.sync())),
        Job::SyncForced(reply) => reply.give(no_bytes(backing.sync_forced())),
        Job::Allocate {
            mode,
            offset,
            len,
            reply,
        } => reply.give(no_bytes(backing.allocate(mode, offset, len))),
    }
}

fn no_bytes(result: io::Result<()>) -> Outcome {
    result.map(|()| PageBuffer::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::wait_for;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Instant;

    use crate::real_time::slow::FLASH;
    use crate::real_time::{DeviceModel, pacer_of};

    /// How long a request takes on the disk below.
    const LATENCY: Duration = Duration::from_millis(10);

    /// A disk that takes any number of requests side by side, each as long as the other; one beyond
    /// the first GiB fails.
    struct Distant;

    impl Distant {
        fn take(&self, offset: u64) -> io::Result<()> {
            thread::sleep(LATENCY);
            match offset < 1 << 30 {
                true => Ok(()),
                false => Err(io::Error::from_raw_os_error(libc::ENOSPC)),
            }
        }
    }

    impl Medium for Distant {
        fn read(&self, offset: u64, len: usize) -> io::Result<PageBuffer> {
            self.take(offset).map(|()| PageBuffer::zeroed(len))
        }

        fn write(&self, offset: u64, _bytes: &[u8]) -> io::Result<()> {
            self.take(offset)
        }

        fn sync(&self) -> io::Result<()> {
            self.take(0)
        }

        fn sync_forced(&self) -> io::Result<()> {
            self.take(0)
        }

        fn allocate(&self, _: FallocateFlags, offset: u64, _: u64) -> io::Result<()> {
            self.take(offset)
        }
    }

    #[test]
    fn an_error_of_the_disk_is_the_requests() {
        let slow: Arc<dyn DeviceModel> = Arc::new(FLASH);
        for model in [Some(slow), None] {
            let pacer = pacer_of(&model, 1 << 20);
            let disk = Disk::start(pacer, Arc::new(Distant)).unwrap();
            let full = wait_for(|reply| disk.read(1 << 30, 4096, reply));
            assert_eq!(full.unwrap_err().raw_os_error(), Some(libc::ENOSPC));
            assert!(wait_for(|reply| disk.read(8192, 4096, reply)).is_ok());
        }
    }

    /// Requests a second with so many under way at a time.
    fn rate(depth: usize, request: impl Fn() + Sync) -> f64 {
        let (done, began) = (AtomicUsize::new(0), Instant::now());
        thread::scope(|scope| {
            for _ in 0..depth {
                scope.spawn(|| {
                    while began.elapsed() < 30 * LATENCY {
                        request();
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
        });
        done.into_inner() as f64 / began.elapsed().as_secs_f64()
    }

    /// Of a real disk's rate, users have nearly all, however much is to be done in the background. On
    /// an idle computer it is all but a few percent, which `--nocapture` shows.
    #[test]
    fn users_have_the_rate_of_a_real_disk_whatever_goes_on_in_the_background() {
        let disk = Disk::start(None, Arc::new(Distant)).unwrap();
        for depth in [32, 128] {
            let (mut alone, mut through) = (0.0, 0.0);
            for _ in 0..5 {
                alone += rate(depth, || drop(Distant.read(0, 4096)));
                for _ in 0..200 {
                    let nobody = Reply::then(|_| ());
                    disk.read_as(Urgency::Background, 0, 4096, nobody);
                }
                through += rate(depth, || {
                    wait_for(|reply| disk.read(0, 4096, reply)).unwrap();
                });
            }
            let share = through / alone;
            eprintln!("{depth} at a time: {share:.3} of the disk's rate");
            assert!(share > 0.6, "{depth} at a time: {share}");
        }
    }

    #[test]
    fn what_nobody_waits_for_is_done_as_well() {
        let disk = Disk::start(None, Arc::new(Distant)).unwrap();
        let read = wait_for(|reply| disk.read_as(Urgency::Background, 0, 4096, reply));
        assert_eq!(read.unwrap().bytes().len(), 4096);
    }
}
