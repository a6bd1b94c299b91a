//! The block device of a tier: the kernel's ublk, where it has that.
//!
//! A device outlives its server. One that is killed leaves it with its requests waiting, and the next
//! server of the same disk takes it over; those that were taken and not answered come once more,
//! which changes nothing, as each says what the bytes at its place are to be. It is known by a mark
//! that the kernel keeps, made of the origin's id.

mod control;
mod kernel;
mod queue;

use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, bail};
use cache_core::metadata::OriginId;

use crate::reply::Handler;
use control::Control;
use kernel::{Info, Params};
use queue::Queue;

/// Largest request, bytes: the same as by FUSE.
const REQUEST_BYTES_MAX: u32 = 1 << 20;

/// Queues, and so threads that take requests, where there are as many cores. Replies that need no
/// waiting are given by them, so that more would fight for the engine.
const QUEUES_MAX: usize = 4;

/// Requests that a queue has under way at a time: as many as a loop device has.
const QUEUE_DEPTH: u16 = 128;

/// The same of sectors and of discards as a loop device over a file has.
const SECTOR_SHIFT: u8 = 9;
const DISCARD_GRANULARITY: u32 = 4096;
const DISCARD_SECTORS_MAX: u32 = u32::MAX >> SECTOR_SHIFT;

/// How long the kernel may take to remove one: it waits for the requests under way.
const REMOVAL_LIMIT: Duration = Duration::from_secs(30);

/// A block device that is served.
pub struct Device {
    control: Control,
    number: u32,
    mark: u64,
    threads: Vec<JoinHandle<()>>,
}

impl Device {
    /// Serves a disk as a block device: the one that its last server left behind, or a new one.
    ///
    /// # Errors
    /// Why there is none, in words; nothing is left of it, and another front is to serve the disk.
    pub fn serve(
        origin: &OriginId,
        size_bytes: u64,
        handler: &Arc<dyn Handler>,
    ) -> Result<Device, String> {
        let mut device = Device {
            control: Control::open()?,
            number: 0,
            mark: mark_of(origin),
            threads: Vec::new(),
        };
        for left in device.control.marked(device.mark) {
            if left.state == kernel::STATE_DEAD || !device.threads.is_empty() {
                let _ = remove(&mut device.control, left.device);
                continue;
            }
            device.number = left.device;
            if let Err(error) = device.take_over(&left, handler) {
                eprintln!(
                    "hotset-engine: {}: not taken over: {error}",
                    device.path().display()
                );
                device.give_up();
            }
        }
        if device.threads.is_empty() {
            device.make(size_bytes, handler)?;
        }
        Ok(device)
    }

    /// The block device.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        format!("/dev/ublkb{}", self.number).into()
    }

    fn make(&mut self, size_bytes: u64, handler: &Arc<dyn Handler>) -> Result<(), String> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let asked = Info {
            queues: cores.min(QUEUES_MAX) as u16,
            depth: QUEUE_DEPTH,
            request_bytes_max: REQUEST_BYTES_MAX,
            mark: self.mark,
            ..Info::default()
        };
        let info = self.control.add(&asked).map_err(|error| unadded(&error))?;
        self.number = info.device;
        let shown = (|| {
            self.control.set_params(self.number, params(size_bytes))?;
            self.start_threads(&info, handler)?;
            self.control.start(self.number)
        })();
        shown.map_err(|error| {
            self.give_up();
            format!("the kernel's ublk made no device: {error}")
        })
    }

    fn take_over(&mut self, left: &Info, handler: &Arc<dyn Handler>) -> io::Result<()> {
        self.control.begin_recovery(self.number)?;
        self.start_threads(left, handler)?;
        self.control.end_recovery(self.number)
    }

    fn start_threads(&mut self, info: &Info, handler: &Arc<dyn Handler>) -> io::Result<()> {
        let path = format!("/dev/ublkc{}", self.number);
        // By one only: the kernel takes the end of the last copy for the server's.
        let device = OpenOptions::new().read(true).write(true).open(path)?;
        for number in 0..info.queues {
            let (device, handler) = (device.try_clone()?, handler.clone());
            let (opened, is_open) = channel();
            let info = *info;
            let serve = move || serve_queue(device, number, &info, handler, opened);
            let thread = thread::Builder::new()
                .name("ublk".to_owned())
                .spawn(serve)?;
            self.threads.push(thread);
            is_open.recv().map_err(io::Error::other)??;
        }
        Ok(())
    }

    /// Removes what was begun.
    fn give_up(&mut self) {
        let _ = self.control.stop(self.number);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        let _ = self.control.delete(self.number);
    }

    /// Removes it; those who have it open get errors from then on.
    ///
    /// # Errors
    /// The kernel does not, or not while requests are under way that a device does not answer: they
    /// wait for the next server.
    pub fn remove(mut self) -> anyhow::Result<()> {
        let (ended, end) = channel();
        let remove = move || ended.send(remove_marked(&mut self.control, self.mark));
        thread::Builder::new().spawn(remove)?;
        let removed = end.recv_timeout(REMOVAL_LIMIT);
        let removed = removed.context("requests are under way, and a device does not answer")?;
        removed.context("cannot remove the ublk device")
    }
}

/// Removes the block device of a disk, served or not; nothing where it has none.
///
/// # Errors
/// The kernel does not.
pub fn remove_device(origin: &OriginId) -> anyhow::Result<()> {
    let mut control = match Control::open() {
        Ok(control) => control,
        Err(_) if control::devices().is_empty() => return Ok(()),
        Err(why) => bail!("nobody can tell whether the disk has a ublk device: {why}"),
    };
    remove_marked(&mut control, mark_of(origin)).context("cannot remove the ublk device")
}

fn remove_marked(control: &mut Control, mark: u64) -> io::Result<()> {
    // Looked up anew: its number may be another disk's by now.
    let marked = control.marked(mark);
    marked
        .iter()
        .try_for_each(|info| remove(control, info.device))
}

fn remove(control: &mut Control, number: u32) -> io::Result<()> {
    let gone_is_well = |result: io::Result<()>| match result {
        Err(error) if error.raw_os_error() == Some(libc::ENODEV) => Ok(()),
        result => result,
    };
    gone_is_well(control.stop(number))?;
    gone_is_well(control.delete(number))
}

fn serve_queue(
    device: File,
    number: u16,
    info: &Info,
    handler: Arc<dyn Handler>,
    opened: Sender<io::Result<()>>,
) {
    match Queue::open(device, number, info, handler) {
        Ok(queue) => {
            let _ = opened.send(Ok(()));
            queue.serve();
        }
        Err(error) => drop(opened.send(Err(error))),
    }
}

fn params(size_bytes: u64) -> Params {
    Params {
        len: size_of::<Params>() as u32,
        types: kernel::PARAM_BASIC | kernel::PARAM_DISCARD,
        attrs: kernel::ATTR_VOLATILE_CACHE,
        logical_block_shift: SECTOR_SHIFT,
        physical_block_shift: SECTOR_SHIFT,
        io_min_shift: SECTOR_SHIFT,
        io_opt_shift: SECTOR_SHIFT,
        max_sectors: REQUEST_BYTES_MAX >> SECTOR_SHIFT,
        device_sectors: size_bytes >> SECTOR_SHIFT,
        discard_granularity: DISCARD_GRANULARITY,
        discard_sectors_max: DISCARD_SECTORS_MAX,
        // Zeros are written by the kernel: a request for them may forbid what a hole gives up.
        write_zeroes_sectors_max: 0,
        discard_segments_max: 1,
        ..Params::default()
    }
}

/// What tells the device of a disk from others, those of other programs too: theirs mostly say 0.
fn mark_of(origin: &OriginId) -> u64 {
    let number = u128::from_be_bytes(*origin);
    (number >> 64) as u64 ^ number as u64 ^ u64::from_be_bytes(*b"hotset\0\0")
}

fn unadded(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => "the kernel's ublk is not permitted here".to_owned(),
        _ => format!("the kernel's ublk adds no device: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_permits_no_device_is_said_to() {
        let message = |code| unadded(&io::Error::from_raw_os_error(code));
        assert!(message(libc::EPERM).contains("not permitted"));
        assert!(message(libc::EACCES).contains("not permitted"));
        assert!(message(libc::ENOMEM).contains("adds no device: "));
    }

    /// A program that marks nothing leaves 0, and its devices are not to be removed.
    #[test]
    fn a_disk_is_known_by_a_mark_that_other_programs_do_not_leave() {
        assert_ne!(mark_of(&OriginId::default()), 0);
        let (mut first, mut other) = (OriginId::default(), OriginId::default());
        (first[0], other[15]) = (1, 1);
        assert_ne!(mark_of(&first), mark_of(&other));
    }
}
