//! Warm-up: wanted blocks are fetched in the order of the origin, as one long sequential read.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::Tier;
use super::block_set::BlockSet;
use super::core::Core;
use crate::policy::{Block, Slot, Work};
use crate::serve::handler::{Answer, Handler, Outcome};

/// What is read at a time, bytes: the largest request of the kernel's.
pub(super) const READ_BYTES: u64 = 1 << 20;

/// How many such reads are under way: the model's read-ahead must not run dry while one of them
/// is stored.
pub(super) const READS: usize = 4;

/// How often there is word of the progress.
const PROGRESS: Duration = Duration::from_millis(500);

/// What a warm-up has done.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Warmed {
    /// How long it took, real time.
    pub(super) seconds: f64,
    /// How much was fetched.
    pub(super) bytes: u64,
    /// Blocks fetched.
    pub(super) blocks: u32,
    /// Blocks left alone: they were there already, no place was free, or they failed.
    pub(super) skipped: u32,
    /// Why some failed, if any did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
}

/// Blocks that follow one another, with their places, on their way.
struct Fetch {
    claims: Vec<(Block, Slot)>,
    bytes: Receiver<Outcome>,
}

/// How far a warm-up has come.
struct Warming {
    wanted: BlockSet,
    /// Where to go on.
    next: Option<Block>,
    ahead: VecDeque<Fetch>,
    warmed: Warmed,
}

impl Tier {
    /// Fetches the wanted blocks, as long as `progress` (bytes seen to, bytes wanted) agrees.
    pub(super) fn warm(
        self: &Arc<Self>,
        wanted: BlockSet,
        mut progress: impl FnMut(u64, u64) -> bool,
    ) -> Warmed {
        let began = Instant::now();
        let mut told = began;
        let block_bytes = self.layout.block_bytes;
        let total = wanted.len();
        let mut warming = Warming {
            wanted,
            next: Some(0),
            ahead: VecDeque::new(),
            warmed: Warmed::default(),
        };
        while let Some(fetch) = self.fetch_ahead(&mut warming) {
            self.finish(fetch, &mut warming.warmed);
            if told.elapsed() < PROGRESS {
                continue;
            }
            told = Instant::now();
            let seen = warming.warmed.blocks + warming.warmed.skipped;
            let agreed = progress(
                u64::from(seen) * block_bytes,
                u64::from(total) * block_bytes,
            );
            if !agreed {
                warming.next = None;
            }
        }
        let mut warmed = warming.warmed;
        warmed.seconds = began.elapsed().as_secs_f64();
        warmed.skipped = total - warmed.blocks;
        warmed
    }

    /// Sees to it that enough reads are under way; the first of them.
    fn fetch_ahead(&self, warming: &mut Warming) -> Option<Fetch> {
        while warming.ahead.len() < READS && warming.next.is_some() {
            let claims = self.claim_run(warming);
            let (Some(&(first, _)), Some(&(last, _))) = (claims.first(), claims.last()) else {
                continue;
            };
            drop(self.until(|core| (first..=last).all(|block| core.is_quiet(block))));
            let (offset, end) = (self.span(first).0, self.span(last));
            let len = (end.0 - offset) as u32 + end.1;
            let (sender, bytes) = sync_channel(1);
            let arrive = move |outcome| {
                // The receiver waits for it.
                let _ = sender.send(outcome);
            };
            self.origin.read(offset, len, Answer::then(arrive));
            warming.ahead.push_back(Fetch { claims, bytes });
        }
        warming.ahead.pop_front()
    }

    /// Claims wanted blocks that follow one another, as many as make one read.
    fn claim_run(&self, warming: &mut Warming) -> Vec<(Block, Slot)> {
        let most = (READ_BYTES / self.layout.block_bytes).max(1) as usize;
        let mut claims: Vec<(Block, Slot)> = Vec::with_capacity(most);
        let mut core = self.lock();
        for _ in 0..most {
            let wanted = warming.next.and_then(|from| warming.wanted.next(from));
            let Some(block) = wanted else {
                warming.next = None;
                break;
            };
            if claims.last().is_some_and(|&(last, _)| last + 1 != block) {
                break;
            }
            warming.next = block.checked_add(1);
            if let Some(slot) = core.insert(block) {
                claims.push((block, slot));
                continue;
            }
            warming.warmed.skipped += 1;
            if !claims.is_empty() {
                break;
            }
        }
        claims
    }

    /// Stores what was read.
    fn finish(self: &Arc<Self>, fetch: Fetch, warmed: &mut Warmed) {
        let gone = |_| Err(io::Error::other("the read was dropped"));
        let read = fetch.bytes.recv().unwrap_or_else(gone);
        let mut rest = read.as_ref().map(|buffer| buffer.bytes());
        for (block, slot) in fetch.claims {
            let len = self.span(block).1;
            let copied = match &mut rest {
                Ok(bytes) => {
                    let (block_bytes, after) = bytes.split_at(len as usize);
                    *bytes = after;
                    self.store(slot, block_bytes)
                        .map_err(|error| error.to_string())
                }
                Err(error) => Err(error.to_string()),
            };
            let (arrived, waiting) = self.lock().end_promotion(block, slot, copied.is_ok());
            self.changed.notify_all();
            self.resume_all(waiting);
            warmed.error = copied.err().or(warmed.error.take());
            match arrived {
                true => {
                    warmed.blocks += 1;
                    warmed.bytes += u64::from(len);
                }
                false => warmed.skipped += 1,
            }
        }
    }
}

impl Core {
    /// Claims a block that is to be brought in without a miss: its slot, if it can come.
    fn insert(&mut self, block: Block) -> Option<Slot> {
        if self.pool.stopping {
            return None;
        }
        let work = self.policy.insert(block)?;
        match work {
            Work::Promote { slot, .. } if self.begin_promotion(block) => Some(slot),
            _ => {
                self.policy.finished(work, false);
                None
            }
        }
    }
}
