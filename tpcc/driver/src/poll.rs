//! Waiting for sockets: epoll(7).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

const AT_ONCE: usize = 64;

/// A set of sockets, each with a number.
pub struct Poll(OwnedFd);

impl Poll {
    /// An empty set.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes no pointers; the descriptor returned is ours alone.
        let raw = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `raw` was just opened and nobody else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(raw) }))
    }

    /// Waits for this socket's input, too.
    pub fn add(&self, socket: RawFd, number: usize) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: number as u64,
        };
        // SAFETY: `event` is valid for the call.
        let done = unsafe {
            libc::epoll_ctl(
                self.0.as_raw_fd(),
                libc::EPOLL_CTL_ADD,
                socket,
                &raw mut event,
            )
        };
        if done == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Puts the numbers of sockets with input into `ready`, after waiting so many seconds for one.
    pub fn wait(&self, timeout_s: f64, ready: &mut Vec<usize>) -> io::Result<()> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; AT_ONCE];
        let milliseconds = (timeout_s * 1e3).ceil().clamp(0.0, 1000.0) as i32;
        // SAFETY: `events` has room for AT_ONCE of them.
        let count = unsafe {
            let (epoll, first) = (self.0.as_raw_fd(), events.as_mut_ptr());
            libc::epoll_wait(epoll, first, AT_ONCE as i32, milliseconds)
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted {
                Ok(())
            } else {
                Err(error)
            };
        }
        ready.extend(
            events[..count as usize]
                .iter()
                .map(|event| event.u64 as usize),
        );
        Ok(())
    }
}
