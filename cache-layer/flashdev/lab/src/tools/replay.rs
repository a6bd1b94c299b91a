//! Replays a trace on a device, each request at its own time (open loop, as it was recorded).

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Serialize;

use hotset_engine::direct_io::PageBuffer;
use virtual_time::TimeScale;
use whatif::trace::Request;

/// Requests that can be under way at a time; more than any queue of the traced devices held.
const WORKERS: usize = 64;

/// What came of a replay.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct Replayed {
    /// Requests done.
    pub requests: u64,
    /// How long it took.
    pub seconds: f64,
    /// How much later than its time a request was begun: the mean, in milliseconds.
    pub late_ms_mean: f64,
    /// The latest, in milliseconds. A device that cannot keep up shows here.
    pub late_ms_max: f64,
}

/// Replays a trace; `scale` 2 takes twice as long. What is written is without meaning: the data
/// of the device is lost.
///
/// # Errors
/// The device cannot be opened, or a request fails; the text names it.
pub fn replay(device: &Path, trace: &[Request], scale: TimeScale) -> anyhow::Result<Replayed> {
    let shown = device.display();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(device)
        .with_context(|| format!("opening {shown}"))?;
    let (due, queue) = channel::<(Instant, Request)>();
    let queue = Mutex::new(queue);
    let begun = Instant::now();
    let lates = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| scope.spawn(|| work(&file, &queue)))
            .collect();
        dispatch(trace, scale, begun, &due);
        drop(due);
        let join = |worker: thread::ScopedJoinHandle<_>| worker.join().expect("no worker panics");
        workers.into_iter().map(join).collect::<Result<Vec<_>, _>>()
    })
    .with_context(|| format!("replaying on {shown}"))?;
    Ok(Replayed {
        requests: trace.len() as u64,
        seconds: begun.elapsed().as_secs_f64(),
        late_ms_mean: lates
            .iter()
            .map(|late| late.sum)
            .sum::<Duration>()
            .as_secs_f64()
            * 1e3
            / trace.len().max(1) as f64,
        late_ms_max: lates
            .iter()
            .map(|late| late.max.as_secs_f64() * 1e3)
            .fold(0.0, f64::max),
    })
}

#[derive(Default)]
struct Late {
    sum: Duration,
    max: Duration,
}

/// Hands out each request when it is due.
fn dispatch(trace: &[Request], scale: TimeScale, begun: Instant, due: &Sender<(Instant, Request)>) {
    for request in trace {
        let at = begun + Duration::from_nanos(scale.to_real(request.at));
        thread::sleep(at.saturating_duration_since(Instant::now()));
        if due.send((at, *request)).is_err() {
            return;
        }
    }
}

fn work(file: &File, queue: &Mutex<Receiver<(Instant, Request)>>) -> std::io::Result<Late> {
    let mut late = Late::default();
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((at, request)) = next else {
            return Ok(late);
        };
        let this = at.elapsed();
        late.sum += this;
        late.max = late.max.max(this);
        let mut buffer = PageBuffer::zeroed(request.bytes as usize);
        if request.write {
            file.write_all_at(buffer.bytes(), request.offset)?;
        } else {
            file.read_exact_at(buffer.bytes_mut(), request.offset)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use virtual_time::NANOS_PER_S;

    fn request(seconds: f64, write: bool, offset: u64) -> Request {
        Request {
            at: (seconds * NANOS_PER_S) as u64,
            write,
            offset,
            bytes: 4096,
        }
    }

    #[test]
    fn every_request_is_made_at_its_time() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let device = folder.path().join("device");
        std::fs::write(&device, vec![7; 4 * 4096]).unwrap();
        let trace = [
            request(0.0, false, 0),
            request(0.05, true, 4096),
            request(0.1, true, 8192),
        ];
        let replayed = replay(&device, &trace, TimeScale::new(2.0).unwrap()).unwrap();
        assert_eq!(replayed.requests, 3);
        assert!(replayed.seconds >= 0.2, "{replayed:?}");
        let expected = [vec![7; 4096], vec![0; 8192], vec![7; 4096]].concat();
        assert!(std::fs::read(&device).unwrap() == expected);
    }

    #[test]
    fn a_request_beyond_the_device_is_an_error_that_names_it() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let device = folder.path().join("device");
        std::fs::write(&device, vec![7; 4096]).unwrap();
        let error = replay(&device, &[request(0.0, false, 4096)], TimeScale::ONE).unwrap_err();
        assert!(format!("{error:#}").contains("device"), "{error:#}");
    }
}
