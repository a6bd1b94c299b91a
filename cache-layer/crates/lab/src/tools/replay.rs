//! Replays a trace on a device, each request at its own time (open loop, as it was recorded).

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Serialize;

use hotset_engine::Refusal;
use hotset_engine::direct_io::PageBuffer;
use whatif::trace::{Recorder, Request};

/// Requests that can be under way at a time; more than any queue of the traced devices held.
const WORKERS: usize = 64;

const SECTOR_BYTES_MIN: u64 = 512;

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

/// Replays a trace. What is written is without meaning: the data of the device is lost. `made` becomes a trace of when the requests were made, in real time: a
/// computer that is slow to wake up makes many at once.
///
/// # Errors
/// The device cannot be opened, or a request fails; the text names it. Refused, before anything is
/// written: the trace is of a disk of smaller sectors.
pub fn replay(device: &Path, trace: &[Request], made: Option<&Path>) -> anyhow::Result<Replayed> {
    let shown = device.display();
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_DIRECT)
        .open(device)
        .with_context(|| format!("opening {shown}"))?;
    require_whole_sectors(trace, sector_bytes(device)?, device)?;
    let (due, queue) = channel::<(Instant, Request)>();
    let queue = Mutex::new(queue);
    let recorder = made.map(Recorder::start).transpose()?;
    let begun = Instant::now();
    let lates = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| scope.spawn(|| work(&file, &queue, recorder.as_ref())))
            .collect();
        dispatch(trace, begun, &due);
        drop(due);
        let join = |worker: thread::ScopedJoinHandle<_>| worker.join().expect("no worker panics");
        workers.into_iter().map(join).collect::<Result<Vec<_>, _>>()
    })
    .with_context(|| format!("replaying on {shown}"))?;
    if let Some(recorder) = recorder {
        recorder.finish()?;
    }
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

/// The logical sectors of a device, bytes; of a file the smallest that there are, as what it lies
/// on decides.
fn sector_bytes(device: &Path) -> anyhow::Result<u64> {
    if !std::fs::metadata(device)?.file_type().is_block_device() {
        return Ok(SECTOR_BYTES_MIN);
    }
    let own = std::fs::canonicalize(device)?;
    let known = Path::new("/sys/class/block").join(own.file_name().unwrap_or_default());
    // A partition has the queue of its disk.
    let text = std::fs::read_to_string(known.join("queue/logical_block_size"))
        .or_else(|_| std::fs::read_to_string(known.join("../queue/logical_block_size")))
        .context("asking for its sectors")?;
    Ok(text.trim().parse()?)
}

/// Refuses a trace with a request that the device cannot be given.
fn require_whole_sectors(trace: &[Request], sector: u64, device: &Path) -> Result<(), Refusal> {
    let torn = |request: &&Request| request.offset % sector != 0 || request.bytes % sector != 0;
    let Some(request) = trace.iter().find(torn) else {
        return Ok(());
    };
    Err(Refusal(format!(
        "the trace has a request of {} bytes at byte {}, and {} has sectors of {sector} bytes: the \
         trace is of a disk of other sectors; replay it on one with sectors of {SECTOR_BYTES_MIN} \
         bytes, or record one here",
        request.bytes,
        request.offset,
        device.display()
    )))
}

#[derive(Default)]
struct Late {
    sum: Duration,
    max: Duration,
}

/// Hands out each request when it is due.
fn dispatch(trace: &[Request], begun: Instant, due: &Sender<(Instant, Request)>) {
    for request in trace {
        let at = begun + Duration::from_nanos(request.at);
        thread::sleep(at.saturating_duration_since(Instant::now()));
        if due.send((at, *request)).is_err() {
            return;
        }
    }
}

fn work(
    file: &File,
    queue: &Mutex<Receiver<(Instant, Request)>>,
    recorder: Option<&Recorder>,
) -> std::io::Result<Late> {
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
        if let Some(recorder) = recorder {
            recorder.record(request.write, request.offset, request.bytes);
        }
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
            request(0.1, true, 4096),
            request(0.2, true, 8192),
        ];
        let made = folder.path().join("made");
        let replayed = replay(&device, &trace, Some(&made)).unwrap();
        assert_eq!(replayed.requests, 3);
        let made = whatif::trace::open(&made)
            .unwrap()
            .collect::<Result<Vec<_>, _>>()
            .unwrap();
        for (made, request) in made.iter().zip(&trace) {
            assert_eq!((made.write, made.offset), (request.write, request.offset));
            assert!(made.at >= request.at, "{made:?}");
        }
        assert_eq!(made.len(), 3);
        assert!(replayed.seconds >= 0.2, "{replayed:?}");
        let expected = [vec![7; 4096], vec![0; 8192], vec![7; 4096]].concat();
        assert!(std::fs::read(&device).unwrap() == expected);
    }

    fn of_bytes(offset: u64, bytes: u64) -> Request {
        Request {
            bytes,
            ..request(0.0, true, offset)
        }
    }

    /// It ended in "Invalid argument", after the requests before had overwritten the disk.
    #[test]
    fn a_trace_of_smaller_sectors_is_refused_before_anything_is_written() {
        let disk = Path::new("/dev/sdx");
        let whole = [of_bytes(4096, 8192)];
        require_whole_sectors(&whole, 4096, disk).unwrap();
        for torn in [of_bytes(512, 4096), of_bytes(8192, 512)] {
            require_whole_sectors(&[torn], 512, disk).unwrap();
            let refused = require_whole_sectors(&[whole[0], torn], 4096, disk).unwrap_err();
            let message = refused.to_string();
            assert!(
                message.contains("/dev/sdx has sectors of 4096 bytes"),
                "{message}"
            );
            assert!(message.contains(&format!("{} bytes at byte {}", torn.bytes, torn.offset)));
        }
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let device = folder.path().join("device");
        std::fs::write(&device, vec![7; 4 * 4096]).unwrap();
        let trace = [request(0.0, true, 0), of_bytes(4096, 100)];
        let error = replay(&device, &trace, None).unwrap_err();
        assert!(error.is::<Refusal>(), "{error:#}");
        assert_eq!(std::fs::read(&device).unwrap(), vec![7; 4 * 4096]);
    }

    #[test]
    fn a_request_beyond_the_device_is_an_error_that_names_it() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let device = folder.path().join("device");
        std::fs::write(&device, vec![7; 4096]).unwrap();
        let error = replay(&device, &[request(0.0, false, 4096)], None).unwrap_err();
        assert!(format!("{error:#}").contains("device"), "{error:#}");
    }
}
