//! Cache policies: which blocks of the origin are worth a place on the flash.
//!
//! A policy is logic in virtual time: it moves no data and holds no clock. Whoever drives it (the
//! live tier, or a simulation) tells it about every request and carries out the work it asks for:
//!
//! 1. [`Policy::access`] says whether the request hits; a miss may make the policy want work.
//! 2. [`Policy::next_work`] hands the work out, one piece at a time, and
//! 3. [`Policy::finished`] tells the policy what came of it. Until then a block that is to be
//!    promoted misses and a block that is to be demoted hits: residence always means that the
//!    bytes are there.
//!
//! Around every policy are [`shares`]: what is pinned, what never enters, and who has how much.
//!
//! The division is that of the kernel's `dm-cache-policy.h`, so that smq can be the kernel's smq.
//!
//! Blocks are dense numbers (origin offset / block size) and slots are their places on the flash
//! (0 up to the capacity), so tables indexed by them replace every hash.

mod arc;
mod backlog;
mod by_block;
mod contents;
mod demand;
mod hotset;
mod list;
mod lru;
mod nothing;
#[cfg(test)]
mod properties;
mod s3fifo;
pub mod shares;
mod sieve;
mod slots;
mod smq;

pub use arc::AdaptiveReplacement;
pub use demand::{AtOnce, DemandFill, Textbook, Touch};
pub use hotset::Hotset;
pub use lru::Lru;
pub use nothing::Nothing;
pub use s3fifo::S3Fifo;
pub use sieve::Sieve;
pub use smq::Smq;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::layout::Mask;
pub use crate::layout::{Block, Slot};
use shares::{Shares, Usage};
use virtual_time::Nanos;

/// One request, or the part of it that lies in one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// When; never before that of an earlier access.
    pub now: Nanos,
    /// Which block it touches.
    pub block: Block,
    /// Whether it writes.
    pub write: bool,
    /// Whether it writes all of the block, so that nothing would have to be copied in first.
    pub whole: bool,
}

/// What a policy wants done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// Copy the block from the origin into the slot, which is free.
    Promote {
        /// The block to fetch.
        block: Block,
        /// Where it goes.
        slot: Slot,
    },
    /// Give up the block's slot; if it is dirty, write it back first.
    Demote {
        /// The block to give up.
        block: Block,
        /// The slot that becomes free.
        slot: Slot,
    },
    /// Write the dirty block back; it stays.
    WriteBack {
        /// The block to clean.
        block: Block,
        /// Where it is.
        slot: Slot,
    },
}

impl Work {
    /// The block that it is about.
    pub fn block(self) -> Block {
        match self {
            Work::Promote { block, .. }
            | Work::Demote { block, .. }
            | Work::WriteBack { block, .. } => block,
        }
    }
}

/// A block that is on the flash, as metadata keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Which block.
    pub block: Block,
    /// Where it is.
    pub slot: Slot,
    /// Whether the flash holds what the origin does not.
    pub dirty: bool,
    /// The policy's own measure of worth, as [`Policy::heat`] gave it.
    pub heat: u8,
    /// Sub-blocks that are not in the slot.
    pub missing: Mask,
}

/// Highest [`Mapping::heat`]: what a warm-up gives the blocks that somebody has asked for.
pub const HOTTEST: u8 = 63;

/// Decides what is cached. Pieces of work for one slot are handed out in the order in which they
/// must be done (a demotion before the promotion that takes the slot over).
pub trait Policy: Send {
    /// A request touches a block: its slot if it hits.
    fn access(&mut self, access: Access) -> Option<Slot>;

    /// The block of the access that has just missed is to be brought in by that very request: the
    /// promotion of that block to carry out, into a free slot. A write puts its bytes there and nothing is read;
    /// a read reads the block in place of its bytes.
    fn admit(&mut self, _access: Access) -> Option<Work> {
        None
    }

    /// Where a block is, without touching it.
    fn resident(&self, block: Block) -> Option<Slot>;

    /// Whether the request that was routed last carries a tick of the policy's clock: then
    /// [`Policy::tick`] is due when it has been answered.
    ///
    /// Only smq wants ticks, as the kernel's does: one request at a time carries one.
    fn carries_tick(&mut self) -> bool {
        false
    }

    /// The request that carried a tick has been answered.
    fn tick(&mut self, _now: Nanos) {}

    /// The next piece of work, if there is any; [`Policy::finished`] may have made some.
    ///
    /// `idle`: nobody has asked for anything lately, so cleaning disturbs nobody.
    fn next_work(&mut self, now: Nanos, idle: bool) -> Option<Work>;

    /// Work that [`Policy::next_work`] or [`Policy::insert`] handed out is done, or, without
    /// `success`, has been given up and changed nothing.
    fn finished(&mut self, work: Work, success: bool);

    /// Whoever warms the cache wants this block: the promotion to carry out, into a free slot
    /// and as hot as that ([`Mapping::heat`]); `None` if the block is there, on its way, or no slot is
    /// free.
    fn insert(&mut self, block: Block, heat: u8) -> Option<Work>;

    /// A resident block is to leave, so that the `wanted` one can come: its demotion is queued, unless
    /// its owner must not lose it, or it cannot leave now; whether it was.
    fn make_way(&mut self, block: Block, wanted: Block) -> bool;

    /// Number of the owner of a block, of whatever shares there are; `None` if it must never enter.
    fn owner(&self, block: Block) -> Option<usize>;

    /// Nobody wants a resident block's data any more: its demotion, to carry out at once, whoever's it
    /// is. `None` as long as it has pending work, or there is too much of that: to be asked again.
    fn discard(&mut self, block: Block) -> Option<Work>;

    /// Number of blocks whose demotion is queued or under way.
    fn leaving(&self) -> u32;

    /// Takes over a block found in the metadata, before the first access; its slot is free.
    fn load(&mut self, mapping: Mapping);

    /// The flash now holds what the origin does not (or no longer does).
    fn set_dirty(&mut self, slot: Slot, dirty: bool);

    /// How much a resident block is worth, 0 to [`HOTTEST`]; kept with the metadata.
    fn heat(&self, slot: Slot) -> u8;

    /// Whose the cache is to be, as soon as [`Policy::continue_shares`] has counted who has how much.
    fn begin_shares(&mut self, shares: &Shares);

    /// Goes on with that, by so many slots or blocks; whether it is done. What has no place any more
    /// leaves by and by.
    fn continue_shares(&mut self, steps: u32) -> bool;

    /// Both at once, however long that takes.
    fn set_shares(&mut self, shares: &Shares) {
        self.begin_shares(shares);
        while !self.continue_shares(u32::MAX) {}
    }

    /// How the cache is divided; nothing if there are no shares.
    fn usage(&self) -> Usage;

    /// Number of slots with a block in them.
    fn used(&self) -> u32;

    /// Number of slots.
    fn capacity(&self) -> u32;
}

/// How large the origin and the cache are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// Number of blocks of the origin; all blocks are below it.
    pub origin_blocks: u32,
    /// Number of slots.
    pub slots: u32,
}

/// The policies there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyKind {
    /// hotset's own: S3-FIFO, and blocks that come with the request that misses them.
    Hotset,
    /// Least recently used.
    Lru,
    /// SIEVE (NSDI 2024).
    Sieve,
    /// S3-FIFO (SOSP 2023).
    S3Fifo,
    /// Adaptive replacement cache (FAST 2003).
    Arc,
    /// Stochastic multi-queue, dm-cache's own.
    Smq,
}

/// An empty cache of a kind.
pub fn make(kind: PolicyKind, geometry: Geometry) -> Box<dyn Policy> {
    match kind {
        PolicyKind::Hotset => Box::new(Hotset::new(geometry)),
        PolicyKind::Lru => Box::new(DemandFill::<Lru>::new(geometry)),
        PolicyKind::Sieve => Box::new(DemandFill::<Sieve>::new(geometry)),
        PolicyKind::S3Fifo => Box::new(DemandFill::<S3Fifo>::new(geometry)),
        PolicyKind::Arc => Box::new(DemandFill::<AdaptiveReplacement>::new(geometry)),
        PolicyKind::Smq => Box::new(Smq::new(geometry)),
    }
}
