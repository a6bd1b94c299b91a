//! Waiting for sockets until a moment: epoll(7) and a timerfd_create(2), since epoll's own time-out
//! counts whole milliseconds, which is more than many a transaction takes.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use crate::clock;

const AT_ONCE: usize = 64;
const TIMER: u64 = u64::MAX;

/// A set of sockets, each with a number, and a clock.
pub struct Poll {
    epoll: OwnedFd,
    timer: OwnedFd,
    /// What the timer is set to (CLOCK_MONOTONIC).
    set_to: f64,
}

impl Poll {
    /// An empty set.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes no pointers; the descriptor returned is ours alone.
        let epoll = owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: as above.
        let timer = owned(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, flags) })?;
        // SAFETY: a number is all it takes. By default the kernel may be 50 µs late.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
        let poll = Self {
            epoll,
            timer,
            set_to: 0.0,
        };
        poll.watch(poll.timer.as_raw_fd(), TIMER)?;
        Ok(poll)
    }

    /// Waits for this socket's input, too.
    pub fn add(&self, socket: RawFd, number: usize) -> io::Result<()> {
        self.watch(socket, number as u64)
    }

    fn watch(&self, descriptor: RawFd, number: u64) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: number,
        };
        let epoll = self.epoll.as_raw_fd();
        // SAFETY: `event` is valid for the call.
        done(unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, descriptor, &raw mut event) })
    }

    /// Puts the numbers of sockets with input into `ready`, after waiting for one until that time
    /// at most.
    pub fn wait(&mut self, until: f64, ready: &mut Vec<usize>) -> io::Result<()> {
        self.set(until)?;
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; AT_ONCE];
        // SAFETY: `events` has room for AT_ONCE of them.
        let count = unsafe {
            let (epoll, first) = (self.epoll.as_raw_fd(), events.as_mut_ptr());
            libc::epoll_wait(epoll, first, AT_ONCE as i32, 1000)
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::Interrupted {
                Ok(())
            } else {
                Err(error)
            };
        }
        for event in &events[..count as usize] {
            match event.u64 {
                // Setting it anew makes it unread again.
                TIMER => self.set_to = 0.0,
                number => ready.push(number as usize),
            }
        }
        Ok(())
    }

    /// Sets the timer, unless it is set to that already.
    fn set(&mut self, until: f64) -> io::Result<()> {
        if until == self.set_to {
            return Ok(());
        }
        self.set_to = until;
        // A time of 0 would disarm it.
        let nanoseconds = clock::nanoseconds(until.min(1e9)).max(1);
        let setting = libc::itimerspec {
            it_interval: libc::timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: libc::timespec {
                tv_sec: (nanoseconds / 1_000_000_000) as libc::time_t,
                tv_nsec: (nanoseconds % 1_000_000_000) as libc::c_long,
            },
        };
        let timer = self.timer.as_raw_fd();
        // SAFETY: `setting` is valid for the call; the old setting is not asked for.
        done(unsafe {
            libc::timerfd_settime(
                timer,
                libc::TFD_TIMER_ABSTIME,
                &raw const setting,
                ptr::null_mut(),
            )
        })
    }
}

fn owned(raw: RawFd) -> io::Result<OwnedFd> {
    done(raw)?;
    // SAFETY: `raw` was just opened and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

fn done(result: i32) -> io::Result<()> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_at_its_time_not_at_the_next_millisecond() {
        let mut poll = Poll::new().unwrap();
        // On a busy computer many are late; with whole milliseconds all would be.
        let prompt = (0..500).any(|_| {
            let until = clock::now() + 0.002_3;
            let mut ready = Vec::new();
            while clock::now() < until {
                poll.wait(until, &mut ready).unwrap();
            }
            assert!(ready.is_empty());
            clock::now() - until < 0.000_5
        });
        assert!(prompt);
    }
}
