//! Writes a trace while a device is served.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use crossbeam_channel::{Sender, TrySendError, bounded};
use parking_lot::Mutex;
use virtual_time::Nanos;

use super::text::write_line;
use super::{Request, TraceError};

/// Requests that may wait for the disk that a trace is written to: 2 MiB of them.
const QUEUE_REQUESTS: usize = 1 << 16;

/// Writes a trace while a device is served; `record` never blocks on the disk.
pub struct Recorder {
    path: PathBuf,
    begun: Instant,
    requests: Mutex<Option<Sender<Request>>>,
    lost: AtomicU64,
    writer: Mutex<Option<JoinHandle<io::Result<()>>>>,
}

impl Recorder {
    /// Starts a trace in a new file; its time begins now.
    ///
    /// # Errors
    /// [`TraceError::Io`]: the file cannot be made.
    pub fn start(path: &Path) -> Result<Recorder, TraceError> {
        let cannot_write = TraceError::io("write", path);
        let file = File::create(path).map_err(&cannot_write)?;
        Recorder::start_into(path, file, QUEUE_REQUESTS).map_err(&cannot_write)
    }

    fn start_into(
        path: &Path,
        out: impl Write + Send + 'static,
        queue_requests: usize,
    ) -> io::Result<Recorder> {
        let (requests, queue) = bounded::<Request>(queue_requests);
        let write = move || {
            let mut out = BufWriter::new(out);
            for request in queue {
                write_line(&mut out, &request)?;
            }
            out.flush()
        };
        let writer = thread::Builder::new()
            .name("trace".to_owned())
            .spawn(write)?;
        Ok(Recorder {
            path: path.to_owned(),
            begun: Instant::now(),
            requests: Mutex::new(Some(requests)),
            lost: AtomicU64::new(0),
            writer: Mutex::new(Some(writer)),
        })
    }

    /// Enters a request; after [`Recorder::finish`] it is not recorded any more.
    pub fn record(&self, write: bool, offset: u64, bytes: u64) {
        // Sent under the lock, so that the times are in order.
        if let Some(requests) = &*self.requests.lock() {
            let at = self.begun.elapsed().as_nanos() as Nanos;
            let sent = requests.try_send(Request {
                at,
                write,
                offset,
                bytes,
            });
            // Without a receiver the file could not be written, which `finish` reports.
            if matches!(sent, Err(TrySendError::Full(_))) {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Writes what is still to be written.
    ///
    /// # Errors
    /// A [`TraceError`]: the disk is full, for instance, or too slow; the trace is not whole then.
    pub fn finish(&self) -> Result<(), TraceError> {
        drop(self.requests.lock().take());
        let cannot_write = TraceError::io("write", &self.path);
        match self.writer.lock().take().map(JoinHandle::join) {
            Some(Ok(written)) => written.map_err(cannot_write)?,
            _ => return Err(cannot_write(io::Error::other("its writer is gone"))),
        }
        match self.lost.load(Ordering::Relaxed) {
            0 => Ok(()),
            lost => Err(TraceError::Lost(lost)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;

    #[test]
    fn what_is_recorded_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let recorder = Recorder::start(&path).unwrap();
        recorder.record(false, 8192, 4096);
        recorder.record(true, 0, 1 << 20);
        recorder.finish().unwrap();
        let trace = read(&path).unwrap();
        let shapes: Vec<_> = trace.iter().map(|r| (r.write, r.offset, r.bytes)).collect();
        assert_eq!(shapes, [(false, 8192, 4096), (true, 0, 1 << 20)]);
    }

    /// A disk that takes nothing until it is told to.
    struct Stalled(crossbeam_channel::Receiver<()>);

    impl Write for Stalled {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.0.recv();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_disk_that_stalls_costs_no_more_memory_than_the_queue_and_is_reported() {
        let (go_on, stalled) = bounded::<()>(0);
        let recorder = Recorder::start_into(Path::new("t"), Stalled(stalled), 100).unwrap();
        for _ in 0..100_000 {
            recorder.record(true, 1 << 50, 4096);
        }
        drop(go_on);
        let lost = recorder.finish().unwrap_err();
        assert!(matches!(lost, TraceError::Lost(1..=99_999)), "{lost}");
    }
}
