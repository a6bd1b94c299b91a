//! Replies to a block device's requests: whichever thread gives one, it goes to the thread that has
//! the kernel's queue.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use nix::sys::eventfd::{EfdFlags, EventFd};
use parking_lot::Mutex;

use super::Outcome;

/// What a queue's thread and those who reply share.
pub(crate) struct Replies {
    /// Where the bytes of reads go.
    pub(crate) device: File,
    done: Mutex<Done>,
    /// Readable once the thread is to wake up.
    pub(crate) wake: EventFd,
}

/// Replies that the thread has to give to the kernel: tag, and bytes or a negative error.
#[derive(Default)]
struct Done {
    replies: Vec<(u16, i32)>,
    /// The thread waits for the kernel, and has to be woken.
    is_asleep: bool,
}

/// What the kernel is due when a request has gone well.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Due {
    /// So many bytes at this place of the device's file, and then their number.
    Bytes { len: u32, place: u64 },
    /// A number: of the bytes that are written.
    Number(u32),
}

/// A request of the kernel's, to be answered exactly once; one that is dropped gets an error.
pub struct Request {
    replies: Arc<Replies>,
    tag: u16,
    due: Due,
    is_answered: bool,
}

impl Request {
    pub(crate) fn new(replies: &Arc<Replies>, tag: u16, due: Due) -> Request {
        Request {
            replies: replies.clone(),
            tag,
            due,
            is_answered: false,
        }
    }

    /// Answers it.
    pub(super) fn give(self, outcome: Outcome) {
        match outcome {
            Ok(buffer) => self.give_bytes(buffer.bytes()),
            Err(error) => self.end(-error.raw_os_error().unwrap_or(libc::EIO)),
        }
    }

    /// Answers one that has gone well; of a read, these are its bytes.
    pub(super) fn give_bytes(self, bytes: &[u8]) {
        let result = match self.due {
            Due::Number(number) => number as i32,
            Due::Bytes { len, place } => match self.bring(bytes, len, place) {
                Ok(()) => len as i32,
                Err(_) => -libc::EIO,
            },
        };
        self.end(result);
    }

    fn bring(&self, bytes: &[u8], len: u32, place: u64) -> io::Result<()> {
        if bytes.len() != len as usize {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.replies.device.write_all_at(bytes, place)
    }

    fn end(mut self, result: i32) {
        self.is_answered = true;
        self.replies.add(self.tag, result);
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        if !self.is_answered {
            self.replies.add(self.tag, -libc::EIO);
        }
    }
}

impl Replies {
    pub(crate) fn new(device: File) -> io::Result<Replies> {
        let flags = EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC;
        Ok(Replies {
            device,
            done: Mutex::default(),
            wake: EventFd::from_flags(flags)?,
        })
    }

    fn add(&self, tag: u16, result: i32) {
        let was_asleep = {
            let mut done = self.done.lock();
            done.replies.push((tag, result));
            std::mem::take(&mut done.is_asleep)
        };
        if was_asleep {
            // It fails only where the counter is full, and then the thread is woken anyway.
            let _ = self.wake.write(1);
        }
    }

    /// The replies that have come; where there are none, the thread is taken to fall asleep.
    pub(crate) fn take(&self, replies: &mut Vec<(u16, i32)>) {
        let mut done = self.done.lock();
        done.is_asleep = done.replies.is_empty();
        replies.append(&mut done.replies);
    }

    /// The thread does not sleep any more.
    pub(crate) fn awake(&self) {
        self.done.lock().is_asleep = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::direct_io::PageBuffer;

    const WRITTEN: Due = Due::Number(4096);

    /// A file in the place of the character device takes the bytes where the kernel would.
    fn replies() -> Arc<Replies> {
        Arc::new(Replies::new(tempfile::tempfile().unwrap()).unwrap())
    }

    fn read_at(place: u64) -> Due {
        Due::Bytes { len: 4096, place }
    }

    fn taken(replies: &Replies) -> Vec<(u16, i32)> {
        let mut taken = Vec::new();
        replies.take(&mut taken);
        taken
    }

    #[test]
    fn a_request_is_answered_once_also_one_that_is_dropped() {
        let replies = replies();
        drop(Request::new(&replies, 3, read_at(0)));
        Request::new(&replies, 4, WRITTEN).give(Ok(PageBuffer::empty()));
        let full = io::Error::from_raw_os_error(libc::ENOSPC);
        Request::new(&replies, 5, WRITTEN).give(Err(full));
        Request::new(&replies, 6, read_at(0)).give(Err(io::Error::other("no number")));
        let given = [
            (3, -libc::EIO),
            (4, 4096),
            (5, -libc::ENOSPC),
            (6, -libc::EIO),
        ];
        assert_eq!(taken(&replies), given);
    }

    /// Zeros, or another request's bytes, in the place of what is missing would be taken for data.
    #[test]
    fn a_read_brings_all_its_bytes_or_is_an_error() {
        let replies = replies();
        Request::new(&replies, 2, read_at(1 << 31)).give_bytes(&[7; 4096]);
        Request::new(&replies, 3, read_at(1 << 31)).give_bytes(&[8; 512]);
        assert_eq!(taken(&replies), [(2, 4096), (3, -libc::EIO)]);
        let mut bytes = [0; 4096];
        replies.device.read_exact_at(&mut bytes, 1 << 31).unwrap();
        assert_eq!(bytes, [7; 4096]);
    }

    /// One that came between the look and the sleep would wait for ever.
    #[test]
    fn a_thread_that_sleeps_is_woken_and_one_that_does_not_is_left_alone() {
        let replies = replies();
        Request::new(&replies, 0, WRITTEN).give_bytes(&[]);
        assert!(replies.wake.read().is_err(), "it was awake");
        assert_eq!(taken(&replies).len(), 1);
        assert!(taken(&replies).is_empty());
        Request::new(&replies, 1, WRITTEN).give_bytes(&[]);
        Request::new(&replies, 2, WRITTEN).give_bytes(&[]);
        assert_eq!(replies.wake.read().unwrap(), 1);
    }
}
