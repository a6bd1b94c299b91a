//! Runs a trace of requests through a cache policy: the misses, without any data or waiting.

use crate::outcome::Outcome;
use crate::policies::{Bcache, BcacheSettings, Kind};
use crate::trace::{Request, TraceError};
use cache_core::engine::Mode;
use cache_core::policy::{
    Access, AdaptiveReplacement, AtOnce, Block, Geometry, HOTTEST, Hotset, Lru, Mapping, Policy,
    PolicyKind, S3Fifo, Sieve, Slot, Smq, Textbook, Work,
};
use fixedbitset::FixedBitSet;
use std::ops::Deref;
use virtual_time::{NANOS_PER_S, Nanos};

/// A gap between two requests from which on the cache counts as idle: dm-cache's, one second.
const IDLE_AFTER: Nanos = NANOS_PER_S as Nanos;

/// Pieces that are looked at together, before each is simulated.
const AHEAD: usize = 64;

/// First block number that a trace may not have: policies keep tables over all blocks below.
const BLOCK_LIMIT: u64 = 1 << 28;

/// The blocks of a request; of one of no bytes, that of its offset.
///
/// # Errors
/// [`TraceError::TooFar`]: a block number that is too large.
pub fn blocks(request: &Request, block_bytes: u64) -> Result<std::ops::Range<Block>, TraceError> {
    let end = request.offset + request.bytes.max(1);
    let end = end.div_ceil(block_bytes);
    if end > BLOCK_LIMIT {
        return Err(TraceError::TooFar {
            offset: request.offset,
            limit: BLOCK_LIMIT,
            block_bytes,
        });
    }
    Ok((request.offset / block_bytes) as Block..end as Block)
}

/// What a request wants of one block.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// As a policy sees it.
    pub access: Access,
    /// How much it reads or writes.
    pub bytes: u64,
}

/// Of one byte.
impl From<Access> for Piece {
    fn from(access: Access) -> Piece {
        Piece { access, bytes: 1 }
    }
}

impl Deref for Piece {
    type Target = Access;

    fn deref(&self) -> &Access {
        &self.access
    }
}

/// Cuts the requests of a trace at the boundaries of blocks, as the tier does.
///
/// # Errors
/// [`TraceError::TooFar`]: a block number that is too large.
pub fn pieces(trace: &[Request], block_bytes: u64) -> Result<Vec<Piece>, TraceError> {
    let mut pieces = Vec::with_capacity(trace.len());
    for request in trace {
        let blocks = blocks(request, block_bytes)?;
        pieces.extend(blocks.map(|block| piece(request, block, block_bytes)));
    }
    Ok(pieces)
}

fn piece(request: &Request, block: Block, block_bytes: u64) -> Piece {
    let access = Access {
        now: request.at,
        block,
        write: request.write,
        whole: false,
    };
    Piece {
        access,
        bytes: request.bytes_in(block.into(), block_bytes),
    }
}

/// The blocks that are asked for, those that are most first.
pub fn most_wanted(pieces: &[Piece]) -> Vec<Block> {
    let highest = pieces.iter().map(|piece| piece.block).max();
    let mut counts = vec![0u32; highest.map_or(0, |block| block as usize + 1)];
    for piece in pieces {
        counts[piece.block as usize] += 1;
    }
    let mut blocks: Vec<Block> = (0..counts.len() as Block)
        .filter(|&block| counts[block as usize] > 0)
        .collect();
    blocks.sort_by_key(|&block| std::cmp::Reverse(counts[block as usize]));
    blocks
}

/// The blocks that are asked for most, as many as there are slots: what a warm-up by heat fetches.
pub fn warm_blocks(past: &[Piece], slots: u32) -> Vec<Mapping> {
    let mut blocks = most_wanted(past);
    blocks.truncate(slots as usize);
    // The hottest last: a policy that knows no more than the order gives up the first.
    let mapping = |(slot, &block): (u32, &Block)| Mapping {
        block,
        slot,
        dirty: false,
        heat: HOTTEST,
        missing: 0,
    };
    (0..).zip(blocks.iter().rev()).map(mapping).collect()
}

/// A cache that is simulated.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// Which blocks it caches.
    pub kind: Kind,
    /// How many.
    pub slots: u32,
    /// How large they are.
    pub block_bytes: u64,
    /// What becomes of writes.
    pub mode: Mode,
    /// Of [`Kind::Bcache`].
    pub bcache: BcacheSettings,
}

/// Why a simulation cannot be.
#[derive(Debug, thiserror::Error)]
pub enum SimulationError {
    /// A request is none.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The cache cannot be so.
    #[error("{0}")]
    Setup(String),
}

/// Runs a trace, as it is read, through a cache that holds these blocks when it begins.
///
/// # Errors
/// A request of the trace is none, or goes on behind `origin_bytes`; a [`SimulationError::Setup`]
/// where the cache is too small, or cannot begin warm.
pub fn run(
    setup: &Setup,
    origin_bytes: u64,
    warm: &[Mapping],
    trace: impl Iterator<Item = Result<Request, TraceError>>,
) -> Result<Outcome, SimulationError> {
    let last = Request {
        at: 0,
        write: false,
        offset: origin_bytes.saturating_sub(1),
        bytes: 1,
    };
    let geometry = Geometry {
        origin_blocks: blocks(&last, setup.block_bytes)?.end,
        slots: setup.slots,
    };
    let Some(live) = setup.kind.live() else {
        require_cold(setup, warm)?;
        return whole_requests(setup, geometry.origin_blocks, trace);
    };
    let mut pieces = Pieces {
        trace,
        block_bytes: setup.block_bytes,
        request: None,
        left: 0..0,
        failed: None,
    };
    let outcome = outcome(live, setup.mode, geometry, warm, &mut pieces);
    match pieces.failed {
        Some(error) => Err(error.into()),
        None => Ok(outcome),
    }
}

/// All of bcache, which looks at whole requests.
fn whole_requests(
    setup: &Setup,
    origin_blocks: Block,
    mut trace: impl Iterator<Item = Result<Request, TraceError>>,
) -> Result<Outcome, SimulationError> {
    let Setup {
        slots,
        block_bytes,
        mode,
        bcache,
        ..
    } = *setup;
    let mut cache = Bcache::new(origin_blocks, slots, block_bytes, mode, bcache)
        .map_err(SimulationError::Setup)?;
    let mut outcome = Outcome::default();
    trace.try_for_each(|request| {
        cache.serve(&request?, &mut outcome);
        Ok::<_, TraceError>(())
    })?;
    cache.finish(&mut outcome);
    Ok(outcome.with_ratio())
}

fn require_cold(setup: &Setup, warm: &[Mapping]) -> Result<(), SimulationError> {
    match warm {
        [] => Ok(()),
        _ => Err(SimulationError::Setup(format!(
            "{} is simulated from an empty cache only: leave out --warm-by",
            setup.kind.name()
        ))),
    }
}

/// The pieces of a trace's requests, until one cannot be read.
struct Pieces<T> {
    trace: T,
    block_bytes: u64,
    request: Option<Request>,
    left: std::ops::Range<Block>,
    failed: Option<TraceError>,
}

impl<T: Iterator<Item = Result<Request, TraceError>>> Iterator for Pieces<T> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        loop {
            if let (Some(request), Some(block)) = (&self.request, self.left.next()) {
                return Some(piece(request, block, self.block_bytes));
            }
            let next = self.trace.next()?;
            let cut = next.and_then(|request| Ok((request, blocks(&request, self.block_bytes)?)));
            match cut {
                Ok((request, blocks)) => (self.request, self.left) = (Some(request), blocks),
                Err(error) => {
                    self.failed = Some(error);
                    return None;
                }
            }
        }
    }
}

/// Runs a trace in memory through a cache of `slots` blocks that holds these when it begins, and
/// writes back.
pub fn simulate(kind: PolicyKind, slots: u32, warm: &[Mapping], trace: &[Piece]) -> Outcome {
    let blocks = trace.iter().map(|piece| piece.block);
    let highest = blocks.chain(warm.iter().map(|mapping| mapping.block)).max();
    let geometry = Geometry {
        origin_blocks: highest.map_or(0, |block| block + 1),
        slots,
    };
    let pieces = &mut trace.iter().copied();
    outcome(kind, Mode::Writeback, geometry, warm, pieces)
}

/// One copy of the loop per policy, so that its calls are static.
fn outcome(
    kind: PolicyKind,
    mode: Mode,
    geometry: Geometry,
    warm: &[Mapping],
    trace: &mut impl Iterator<Item = Piece>,
) -> Outcome {
    macro_rules! at_once {
        ($replacement:ty) => {
            textbook(
                AtOnce::<$replacement>::new(geometry, warm),
                mode,
                geometry.origin_blocks,
                trace,
            )
        };
    }
    match kind {
        PolicyKind::Hotset => drive(Hotset::new(geometry), mode, warm, trace),
        PolicyKind::Lru => at_once!(Lru),
        PolicyKind::Sieve => at_once!(Sieve),
        PolicyKind::S3Fifo => at_once!(S3Fifo),
        PolicyKind::Arc => at_once!(AdaptiveReplacement),
        PolicyKind::Smq => drive(Smq::new(geometry), mode, warm, trace),
    }
}

/// The live engine's policy: it asks for work, which is done at once.
struct Driven<P> {
    policy: P,
    /// By slot: the flash has what the origin has not.
    dirty: Vec<bool>,
    outcome: Outcome,
}

fn drive<P: Policy>(
    policy: P,
    mode: Mode,
    warm: &[Mapping],
    trace: &mut impl Iterator<Item = Piece>,
) -> Outcome {
    let mut driven = Driven {
        dirty: vec![false; policy.capacity() as usize],
        policy,
        outcome: Outcome::default(),
    };
    for &mapping in warm {
        driven.policy.load(mapping);
    }
    let mut idle_at = Nanos::MAX;
    for piece in trace {
        if piece.now >= idle_at {
            driven.work_off(idle_at, true);
        }
        idle_at = piece.now + IDLE_AFTER;
        driven.touch(piece, mode);
        driven.work_off(piece.now, false);
        if driven.policy.carries_tick() {
            driven.policy.tick(piece.now);
        }
    }
    driven.outcome.with_ratio()
}

impl<P: Policy> Driven<P> {
    fn touch(&mut self, piece: Piece, mode: Mode) {
        let slot = self.policy.access(piece.access);
        self.outcome.count(slot.is_some(), piece.write, piece.bytes);
        let Some(slot) = slot.filter(|_| piece.write) else {
            return;
        };
        if mode == Mode::Writeback {
            self.outcome.absorbed += 1;
            self.dirty[slot as usize] = true;
            self.policy.set_dirty(slot, true);
        }
    }

    /// Does all the work there is.
    fn work_off(&mut self, now: Nanos, idle: bool) {
        while let Some(work) = self.policy.next_work(now, idle) {
            match work {
                Work::Promote { .. } => {
                    self.outcome.promotions += 1;
                }
                Work::Demote { slot, .. } => {
                    self.outcome.demotions += 1;
                    self.clean(slot);
                }
                Work::WriteBack { slot, .. } => {
                    self.clean(slot);
                    self.policy.set_dirty(slot, false);
                }
            }
            self.policy.finished(work, true);
        }
    }

    fn clean(&mut self, slot: Slot) {
        let dirty = &mut self.dirty[slot as usize];
        self.outcome.write_backs += u64::from(std::mem::replace(dirty, false));
    }
}

/// An algorithm that says itself what comes and goes.
fn textbook(
    mut policy: impl Textbook,
    mode: Mode,
    origin_blocks: u32,
    trace: &mut impl Iterator<Item = Piece>,
) -> Outcome {
    let mut outcome = Outcome::default();
    let mut dirty = FixedBitSet::with_capacity(origin_blocks as usize);
    let mut next = Vec::with_capacity(AHEAD);
    loop {
        next.clear();
        next.extend(trace.by_ref().take(AHEAD));
        if next.is_empty() {
            return outcome.with_ratio();
        }
        policy.prepare(next.iter().map(|piece: &Piece| piece.block));
        for piece in &next {
            let touch = policy.touch(piece.block);
            outcome.count(touch.hit, piece.write, piece.bytes);
            outcome.promotions += u64::from(touch.came);
            if let Some(left) = touch.left {
                outcome.demotions += 1;
                outcome.write_backs += u64::from(dirty.contains(left as usize));
                dirty.remove(left as usize);
            }
            if touch.hit && piece.write {
                let back = mode == Mode::Writeback;
                outcome.absorbed += u64::from(back);
                dirty.set(piece.block as usize, back);
            }
        }
    }
}

#[cfg(test)]
mod tests;
