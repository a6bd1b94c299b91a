//! Warm-ups and flushes of the cache, for somebody who waits and wants to know how far they are.
//!
//! The engine gets on by itself: whoever does not listen holds up nobody.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cache_core::engine::{Errno, JobId, JobProgress, JobResult};
use crossbeam_channel::bounded;
use roaring::RoaringBitmap;
use serde::Serialize;
use virtual_time::Nanos;

use super::Tier;
use super::driver::Shared;

/// How often there is word of the progress.
pub(super) const PROGRESS: Duration = Duration::from_millis(500);

/// What a warm-up has done.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Warmed {
    /// How long it took, real time.
    pub(super) seconds: f64,
    /// How much was fetched.
    pub(super) bytes: u64,
    /// Blocks fetched.
    pub(super) blocks: u64,
    /// Blocks left alone: they were there already, no place could be had, or they failed.
    pub(super) skipped: u64,
    /// Why some failed, if any did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

impl Tier {
    /// Fetches the wanted blocks, at a rate at most, as long as `progress` agrees.
    pub(super) fn warm(
        self: &Arc<Self>,
        wanted: RoaringBitmap,
        bytes_per_s: Option<NonZeroU64>,
        progress: impl FnMut(JobProgress) -> bool,
    ) -> Warmed {
        let began = Instant::now();
        let begin = |shared: &mut Shared, now| {
            let engine = &mut shared.engine;
            engine.begin_warm_up(now, wanted, bytes_per_s)
        };
        match self.job(begin, progress) {
            JobResult::Warmed(warmed) => Warmed {
                seconds: began.elapsed().as_secs_f64(),
                bytes: warmed.bytes,
                blocks: warmed.blocks,
                skipped: warmed.skipped,
                error: warmed.error.map(text_of),
            },
            other => unreachable!("{other:?} of a warm-up"),
        }
    }

    /// Writes back what is dirty now and waits for it, as long as `progress` agrees; how many blocks
    /// were dirty, or what went wrong.
    pub(super) fn clean_all(
        self: &Arc<Self>,
        progress: impl FnMut(JobProgress) -> bool,
    ) -> Result<u64, String> {
        flushed(self.job(|shared, now| shared.engine.begin_flush(now), progress))
    }

    /// The same for whoever is about to replace the engine.
    pub(super) fn clean_all_undisturbed(self: &Arc<Self>) -> Result<u64, String> {
        flushed(self.run_job(|shared, now| shared.engine.begin_flush(now), |_| true))
    }

    /// A job that no change of the engine comes in the way of.
    pub(super) fn job(
        self: &Arc<Self>,
        begin: impl FnOnce(&mut Shared, Nanos) -> JobId,
        progress: impl FnMut(JobProgress) -> bool,
    ) -> JobResult {
        let _undisturbed = self.undisturbed.read();
        self.run_job(begin, progress)
    }

    /// The same for whoever holds `undisturbed` already.
    pub(super) fn run_job(
        self: &Arc<Self>,
        begin: impl FnOnce(&mut Shared, Nanos) -> JobId,
        mut progress: impl FnMut(JobProgress) -> bool,
    ) -> JobResult {
        let (done, is_done) = bounded(1);
        let job = self.tell(|shared, now| {
            let job = begin(shared, now);
            shared.jobs.insert(job, done);
            job
        });
        while is_done.recv_timeout(PROGRESS).is_err() {
            let how_far = self.lock().engine.job_progress(job);
            if !progress(how_far) {
                self.tell(|shared, now| shared.engine.cancel_job(now, job));
            }
        }
        self.lock().engine.finish_job(job)
    }
}

fn flushed(result: JobResult) -> Result<u64, String> {
    match result {
        JobResult::Flushed(blocks) => Ok(blocks),
        JobResult::NotFlushed(left, error) => Err(format!(
            "{left} blocks are still dirty: {}",
            error.map_or("the flush was given up".to_owned(), text_of)
        )),
        other => unreachable!("{other:?} of a flush"),
    }
}

pub(super) fn text_of(Errno(code): Errno) -> String {
    std::io::Error::from_raw_os_error(code).to_string()
}
