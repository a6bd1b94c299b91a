//! Direct I/O that no thread waits for: io_uring(7), where the kernel has it.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use io_uring::types::Fd;
use io_uring::{IoUring, opcode, squeue};
use parking_lot::{Mutex, MutexGuard};
use slab::Slab;

use crate::direct_io::PageBuffer;

/// Places for I/Os that are handed in but not taken by the kernel yet.
const SUBMISSIONS: u32 = 256;

/// Completions that may wait to be taken: more than FUSE has requests and a tier has migrations.
const COMPLETIONS: u32 = 4096;

/// From linux/io_uring.h: wait for completions.
const ENTER_GETEVENTS: u32 = 1;

/// What came of an I/O: the bytes of a read, none of a write. Must not take long: it holds up the
/// completions behind it.
type Then = Box<dyn FnOnce(io::Result<PageBuffer>) + Send>;

/// An I/O of so many bytes at most may be waited for.
const WAITED_FOR: usize = 64 << 10;

thread_local! {
    /// Which ring the thread's I/Os go to.
    static NUMBER: usize = THREADS.fetch_add(1, Ordering::Relaxed);
    /// Whether the thread has completions to take, and so must not wait for an I/O.
    static COMPLETES: Cell<bool> = const { Cell::new(false) };
}

/// Threads that have handed in an I/O.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// Queues of I/Os on a file that is open for direct I/O, one a core: threads that serve requests
/// side by side have one each.
///
/// An I/O that comes alone is done by the thread that asks, which then need not be woken by another:
/// the next one finds the rings.
pub(crate) struct Rings {
    file: File,
    rings: Vec<Arc<Ring>>,
    /// Somebody waits for one.
    waiting: AtomicBool,
}

struct Ring {
    uring: IoUring,
    file: File,
    /// Locked while an I/O is handed in, too: the submission queue has one writer at a time.
    under_way: Mutex<Slab<UnderWay>>,
    /// How many are in there.
    count: AtomicUsize,
    /// Whoever takes the completions was asked whether they still do, and has not answered.
    asked: AtomicBool,
}

/// The tag of that question, which no I/O has.
const QUESTION: u64 = u64::MAX;

/// An I/O and its memory, which the kernel uses until the completion has come.
struct UnderWay {
    bytes: Bytes,
    offset: u64,
    then: Then,
}

enum Bytes {
    Read(PageBuffer),
    Write(Arc<PageBuffer>, Range<usize>),
}

impl Rings {
    /// Queues for this file; `None` where the kernel has no io_uring, or does not allow it.
    /// Their threads last as long as the process.
    pub(crate) fn open(file: &File) -> Option<Rings> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let rings = (0..cores).map(|_| Ring::start(file.try_clone()?));
        Some(Rings {
            file: file.try_clone().ok()?,
            rings: rings.collect::<io::Result<_>>().ok()?,
            waiting: AtomicBool::new(false),
        })
    }

    /// Reads so many bytes, whole sectors.
    pub(crate) fn read(
        &self,
        offset: u64,
        len: u32,
        then: impl FnOnce(io::Result<PageBuffer>) + Send + 'static,
    ) {
        self.submit(UnderWay {
            bytes: Bytes::Read(PageBuffer::recycled(len as usize)),
            offset,
            then: Box::new(then),
        });
    }

    /// Writes a part of the buffer that begins at a page's boundary, whole sectors.
    pub(crate) fn write(
        &self,
        offset: u64,
        data: Arc<PageBuffer>,
        range: Range<usize>,
        then: impl FnOnce(io::Result<PageBuffer>) + Send + 'static,
    ) {
        self.submit(UnderWay {
            bytes: Bytes::Write(data, range),
            offset,
            then: Box::new(then),
        });
    }

    /// Whether all that was asked of the rings' threads has been answered; asks again. No device
    /// is asked: one that hangs is no fault of theirs.
    pub(crate) fn are_alive(&self) -> bool {
        // Each of them, whatever the others say.
        self.rings.iter().filter(|ring| !ring.is_alive()).count() == 0
    }

    fn submit(&self, io: UnderWay) {
        if io.len() <= WAITED_FOR && !COMPLETES.get() && self.wait_alone() {
            let then = io.wait(&self.file);
            self.waiting.store(false, Ordering::Release);
            return then();
        }
        let number = NUMBER.with(|number| *number);
        self.rings[number % self.rings.len()].submit(io);
    }

    /// Whether nothing is under way; then the caller may wait, and nobody else meanwhile.
    fn wait_alone(&self) -> bool {
        let is_quiet = |ring: &Arc<Ring>| ring.count.load(Ordering::Relaxed) == 0;
        self.rings.iter().all(is_quiet) && !self.waiting.swap(true, Ordering::Acquire)
    }
}

impl Ring {
    fn start(file: File) -> io::Result<Arc<Ring>> {
        let ring = Arc::new(Ring {
            uring: IoUring::builder()
                .setup_cqsize(COMPLETIONS)
                .build(SUBMISSIONS)?,
            file,
            under_way: Mutex::new(Slab::new()),
            count: AtomicUsize::new(0),
            asked: AtomicBool::new(false),
        });
        let worker = ring.clone();
        thread::Builder::new()
            .name("ring".to_owned())
            .spawn(move || worker.complete())?;
        Ok(ring)
    }

    fn submit(&self, io: UnderWay) {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut under_way = self.under_way.lock();
        let entry = under_way.vacant_entry();
        let tag = entry.key();
        let entry = entry.insert(io).entry(&self.file).user_data(tag as u64);
        // The memory and the file that it names belong to `under_way` and `self` until its completion
        // is taken.
        self.push(&under_way, &entry);
        drop(under_way);
        self.enter();
    }

    fn is_alive(&self) -> bool {
        if self.asked.swap(true, Ordering::AcqRel) {
            return false;
        }
        let question = opcode::Nop::new().build().user_data(QUESTION);
        self.push(&self.under_way.lock(), &question);
        self.enter();
        true
    }

    fn push(&self, _alone: &MutexGuard<'_, Slab<UnderWay>>, entry: &squeue::Entry) {
        // SAFETY: the queue is written by one thread at a time, under the lock; what the entry names
        // lasts, as its maker sees to.
        while unsafe { self.uring.submission_shared().push(entry) }.is_err() {
            self.enter();
        }
    }

    /// Has the kernel take what was handed in.
    fn enter(&self) {
        // What it cannot take now (EAGAIN, EBUSY, EINTR) stays in the queue.
        while self.uring.submit().is_err() {
            thread::yield_now();
        }
    }

    /// Takes completions, as long as the process lasts.
    fn complete(&self) {
        COMPLETES.set(true);
        let mut done = Vec::new();
        loop {
            // SAFETY: no argument points to memory. An error (EINTR) means that there may be none.
            let _ = unsafe {
                let submitter = self.uring.submitter();
                submitter.enter::<libc::sigset_t>(0, 1, ENTER_GETEVENTS, None)
            };
            // SAFETY: no other thread takes completions.
            let completions = unsafe { self.uring.completion_shared() };
            {
                let mut under_way = self.under_way.lock();
                for completion in completions {
                    match completion.user_data() {
                        QUESTION => self.asked.store(false, Ordering::Release),
                        tag => {
                            let io = under_way.remove(tag as usize);
                            done.push((io, completion.result()));
                        }
                    }
                }
            }
            for (io, result) in done.drain(..) {
                self.count.fetch_sub(1, Ordering::Relaxed);
                io.finish(&self.file, result);
            }
        }
    }
}

impl UnderWay {
    fn entry(&mut self, file: &File) -> squeue::Entry {
        let file = Fd(file.as_raw_fd());
        match &mut self.bytes {
            Bytes::Read(buffer) => {
                let bytes = buffer.bytes_mut();
                opcode::Read::new(file, bytes.as_mut_ptr(), bytes.len() as u32)
                    .offset(self.offset)
                    .build()
            }
            Bytes::Write(buffer, range) => {
                let bytes = &buffer.bytes()[range.clone()];
                opcode::Write::new(file, bytes.as_ptr(), bytes.len() as u32)
                    .offset(self.offset)
                    .build()
            }
        }
    }

    fn len(&self) -> usize {
        match &self.bytes {
            Bytes::Read(buffer) => buffer.bytes().len(),
            Bytes::Write(_, range) => range.len(),
        }
    }

    /// The kernel is through with it: `result` is a number of bytes, or an error's, negative.
    fn finish(self, file: &File, result: i32) {
        match result {
            result if result == self.len() as i32 => (self.then)(Ok(self.bytes.read())),
            // What came short is done once more, by this thread.
            result if result >= 0 || matches!(-result, libc::EAGAIN | libc::EINTR) => {
                self.wait(file)();
            }
            errno => (self.then)(Err(io::Error::from_raw_os_error(-errno))),
        }
    }

    /// Does it in this thread; what is to be done then.
    fn wait(mut self, file: &File) -> impl FnOnce() {
        let moved = match &mut self.bytes {
            Bytes::Read(buffer) => file.read_exact_at(buffer.bytes_mut(), self.offset),
            Bytes::Write(buffer, range) => {
                file.write_all_at(&buffer.bytes()[range.clone()], self.offset)
            }
        };
        move || (self.then)(moved.map(|()| self.bytes.read()))
    }
}

impl Bytes {
    /// What has been read.
    fn read(self) -> PageBuffer {
        match self {
            Bytes::Read(buffer) => buffer,
            Bytes::Write(..) => PageBuffer::empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::direct_io::Direct;
    use std::sync::mpsc::channel;

    const PAGE: usize = 4096;

    fn rings(file: &tempfile::NamedTempFile) -> Option<Rings> {
        let rings = Direct::open(file.path()).and_then(|direct| Rings::open(direct.file()));
        if rings.is_none() {
            eprintln!("skipped: no direct I/O here, or no io_uring");
        }
        rings
    }

    #[test]
    fn more_ios_than_a_ring_has_places_are_all_done() {
        let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        let pages = 2 * SUBMISSIONS as usize + 1;
        file.as_file().set_len((pages * PAGE) as u64).unwrap();
        let Some(rings) = rings(&file) else { return };
        let (sender, done) = channel();
        for page in 0..pages {
            let bytes = PageBuffer::copy_of(&[page as u8; PAGE]);
            let done = sender.clone();
            rings.write((page * PAGE) as u64, Arc::new(bytes), 0..PAGE, move |end| {
                done.send(end.map(drop)).unwrap();
            });
        }
        (0..pages).for_each(|_| done.recv().unwrap().unwrap());
        let (sender, read) = channel();
        for page in 0..pages {
            let read = sender.clone();
            rings.read((page * PAGE) as u64, PAGE as u32, move |end| {
                read.send((page, end)).unwrap();
            });
        }
        for (page, end) in read.into_iter().take(pages) {
            assert_eq!(end.unwrap().bytes(), [page as u8; PAGE], "page {page}");
        }
    }

    #[test]
    fn a_ring_whose_thread_is_held_up_is_not_alive_until_it_goes_on() {
        let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let Some(rings) = rings(&file) else { return };
        let ((let_go, held_up), (entered, is_in)) = (channel::<()>(), channel());
        // More than is waited for, so that the ring's thread has to take it.
        rings.read(0, 2 * WAITED_FOR as u32, move |_| {
            entered.send(()).unwrap();
            held_up.recv().unwrap();
        });
        is_in.recv().unwrap();
        // Whatever was asked before, this is not answered.
        rings.are_alive();
        thread::sleep(std::time::Duration::from_millis(50));
        assert!(!rings.are_alive());
        let_go.send(()).unwrap();
        while !rings.are_alive() {
            thread::yield_now();
        }
    }

    #[test]
    fn what_cannot_be_read_is_an_error_and_not_zeros() {
        let file = tempfile::NamedTempFile::new_in("/var/tmp").unwrap();
        file.as_file().set_len(3 * PAGE as u64).unwrap();
        let Some(rings) = rings(&file) else { return };
        let (sender, read) = channel();
        // Beyond the end, and across it.
        for (offset, pages) in [(4, 1), (2, 2)] {
            let read = sender.clone();
            let len = (pages * PAGE) as u32;
            rings.read((offset * PAGE) as u64, len, move |end| {
                read.send(end.map(drop)).unwrap();
            });
        }
        (0..2).for_each(|_| assert!(read.recv().unwrap().is_err()));
    }
}
