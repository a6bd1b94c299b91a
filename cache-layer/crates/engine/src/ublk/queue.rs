//! A queue of a block device: its thread takes requests from the kernel and gives it the replies,
//! whichever thread they come from.

use std::fs::File;
use std::io;
use std::num::NonZero;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;
use std::ptr::NonNull;
use std::sync::Arc;

use io_uring::squeue::Entry128;
use io_uring::types::Fd;
use io_uring::{IoUring, cqueue, opcode};
use nix::fcntl::FallocateFlags;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use super::SECTOR_SHIFT;
use super::kernel::{self, Descriptor, Info, IoCommand};
use crate::direct_io::PageBuffer;
use crate::reply::block::{Due, Replies, Request};
use crate::reply::{Handler, Reply};

/// The tag of the wait for a wake-up, which no request has.
const WAKE: u64 = u64::MAX;

type Ring = IoUring<Entry128, cqueue::Entry>;

/// The requests of a queue, in memory that the kernel writes.
struct Descriptors {
    memory: NonNull<libc::c_void>,
    bytes: usize,
}

impl Descriptors {
    fn map(device: &File, queue: u16, depth: u16) -> io::Result<Descriptors> {
        const PAGE: usize = 4096;
        let bytes = (usize::from(depth) * size_of::<Descriptor>()).next_multiple_of(PAGE);
        let len = NonZero::new(bytes).ok_or(io::ErrorKind::InvalidInput)?;
        let (shown, kind) = (ProtFlags::PROT_READ, MapFlags::MAP_SHARED);
        let start = usize::from(queue) * kernel::DESCRIPTORS_SPACING;
        // SAFETY: a mapping of its own, wherever there is room.
        let memory = unsafe { mmap(None, len, shown, kind, device.as_fd(), start as libc::off_t) }?;
        Ok(Descriptors { memory, bytes })
    }

    /// A request that the kernel has handed over, and does not change before it is answered.
    fn read(&self, tag: u16) -> Descriptor {
        let place = usize::from(tag) * size_of::<Descriptor>();
        assert!(place + size_of::<Descriptor>() <= self.bytes, "tag {tag}");
        // SAFETY: it lies within the mapping; the kernel writes it, so the compiler may not assume
        // what it was.
        unsafe {
            self.memory
                .as_ptr()
                .byte_add(place)
                .cast::<Descriptor>()
                .read_volatile()
        }
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: nobody reads it any more.
        let _ = unsafe { munmap(self.memory, self.bytes) };
    }
}

/// A queue as its thread has it.
pub(super) struct Queue {
    number: u16,
    replies: Arc<Replies>,
    handler: Arc<dyn Handler>,
    descriptors: Descriptors,
    depth: u16,
    ring: Ring,
    /// For the bytes of a write, until its handler has taken them.
    written: PageBuffer,
}

impl Queue {
    /// To be called by the thread that serves it: the kernel knows it by that.
    ///
    /// # Errors
    /// The kernel has not enough memory, or does not allow io_uring.
    pub(super) fn open(
        device: File,
        number: u16,
        info: &Info,
        handler: Arc<dyn Handler>,
    ) -> io::Result<Queue> {
        let descriptors = Descriptors::map(&device, number, info.depth)?;
        Ok(Queue {
            number,
            replies: Arc::new(Replies::new(device)?),
            handler,
            descriptors,
            depth: info.depth,
            // All requests may be answered at a time, and the wait for a wake-up is begun anew.
            ring: IoUring::builder().build(u32::from(info.depth) + 1)?,
            written: PageBuffer::zeroed(info.request_bytes_max as usize),
        })
    }

    /// Serves until the device is stopped, and everything that was taken is answered.
    pub(super) fn serve(mut self) {
        for tag in 0..self.depth {
            self.push(&self.command(kernel::FETCH_REQ, tag, 0));
        }
        self.await_wake();
        let (mut replies, mut completed) = (Vec::new(), Vec::new());
        let mut left = self.depth;
        while left > 0 {
            self.replies.take(&mut replies);
            let waits_for = usize::from(replies.is_empty());
            for (tag, result) in replies.drain(..) {
                self.push(&self.command(kernel::COMMIT_AND_FETCH_REQ, tag, result));
            }
            // What the kernel cannot take now (EAGAIN, EBUSY, EINTR) stays in the queue.
            if self.ring.submit_and_wait(waits_for).is_err() {
                std::thread::yield_now();
            }
            self.replies.awake();
            completed.extend(
                self.ring
                    .completion()
                    .map(|completion| (completion.user_data(), completion.result())),
            );
            for (tag, result) in completed.drain(..) {
                match (tag, result) {
                    (WAKE, _) => self.await_wake(),
                    (tag, 0) => self.handle(tag as u16),
                    // The device is going: it gives no more requests this tag.
                    _ => left -= 1,
                }
            }
        }
    }

    fn command(&self, code: u32, tag: u16, result: i32) -> Entry128 {
        let command = IoCommand {
            queue: self.number,
            tag,
            result,
            addr: 0,
        };
        opcode::UringCmd80::new(Fd(self.replies.device.as_raw_fd()), code)
            .cmd(kernel::as_bytes(&command))
            .build()
            .user_data(tag.into())
    }

    fn await_wake(&mut self) {
        // What woke it is forgotten: the next wait is for the next wake-up.
        let _ = self.replies.wake.read();
        let wake = Fd(self.replies.wake.as_fd().as_raw_fd());
        let poll = opcode::PollAdd::new(wake, libc::POLLIN as u32).build();
        self.push(&Entry128::from(poll.user_data(WAKE)));
    }

    fn push(&mut self, entry: &Entry128) {
        // SAFETY: commands carry no memory of ours; the files that they name last as long as the ring.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            let _ = self.ring.submit();
        }
    }

    fn handle(&mut self, tag: u16) {
        let asked = self.descriptors.read(tag);
        let offset = asked.first_sector << SECTOR_SHIFT;
        let len = u64::from(asked.sectors) << SECTOR_SHIFT;
        let reply = Reply::Block(Request::new(
            &self.replies,
            tag,
            due(&asked, kernel::bytes_place(self.number, tag)),
        ));
        match asked.op() {
            kernel::OP_READ => self.handler.read(offset, len as u32, reply),
            kernel::OP_WRITE => self.write(tag, offset, len, reply),
            kernel::OP_FLUSH => self.handler.flush(reply),
            kernel::OP_DISCARD => self.handler.allocate(punched(), offset, len, reply),
            // Zeros, which the kernel writes where it is not told of an offer, and zones.
            _ => reply.give(Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))),
        }
    }

    fn write(&mut self, tag: u16, offset: u64, len: u64, reply: Reply) {
        let place = kernel::bytes_place(self.number, tag);
        let Some(bytes) = self.written.bytes_mut().get_mut(..len as usize) else {
            return reply.give(Err(io::Error::from_raw_os_error(libc::EINVAL)));
        };
        match self.replies.device.read_exact_at(bytes, place) {
            Ok(()) => self.handler.write(offset, bytes, reply),
            Err(_) => reply.give(Err(io::Error::from_raw_os_error(libc::EIO))),
        }
    }
}

/// What the kernel is to be given. Of flushes and discards it wants no number, and that of a large
/// discard would look like an error.
fn due(asked: &Descriptor, place: u64) -> Due {
    let len = asked.sectors << SECTOR_SHIFT;
    match asked.op() {
        kernel::OP_READ => Due::Bytes { len, place },
        kernel::OP_WRITE => Due::Number(len),
        _ => Due::Number(0),
    }
}

/// What a loop device makes of a discard.
fn punched() -> FallocateFlags {
    FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ublk::DISCARD_SECTORS_MAX;

    /// Of 4 GiB the bytes are a negative number to the kernel: mkfs and fstrim would fail.
    #[test]
    fn a_discard_of_the_largest_size_is_no_error() {
        let due_of = |op_flags, sectors| {
            let asked = Descriptor {
                op_flags,
                sectors,
                ..Descriptor::default()
            };
            due(&asked, 77)
        };
        let all = due_of(kernel::OP_DISCARD, DISCARD_SECTORS_MAX);
        assert_eq!(all, Due::Number(0));
        assert_eq!(due_of(kernel::OP_WRITE, 8), Due::Number(4096));
        let read = Due::Bytes {
            len: 4096,
            place: 77,
        };
        assert_eq!(due_of(kernel::OP_READ, 8), read);
    }
}
