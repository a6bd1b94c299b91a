//! What a migration is there for, and what it has to keep of that.

use smallvec::SmallVec;

use crate::engine::Waiting;
use crate::engine::action::Errno;
use crate::layout::Mask;
use crate::policy::{Block, Slot};

/// What a migration does.
#[derive(Debug)]
pub(in crate::engine) enum Task {
    Fetch(Fetch),
    Overwrite(Overwrite),
    Fill(Fill),
    Discard(Discard),
    Demote {
        block: Block,
        slot: Slot,
    },
    Clean {
        block: Block,
        slot: Slot,
        for_policy: bool,
    },
}

/// Blocks that follow one another, on their way to the flash.
#[derive(Debug)]
pub(in crate::engine) struct Fetch {
    pub(in crate::engine) blocks: SmallVec<[(Block, Slot); 1]>,
    /// Which warm-up wants them; none: the policy.
    pub(in crate::engine) job: Option<usize>,
    /// Blocks that writes are on their way to.
    pub(in crate::engine) busy: u32,
    /// Blocks that have neither arrived nor failed.
    pub(in crate::engine) left: usize,
}

/// A write that brings its block to the flash.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Overwrite {
    pub(in crate::engine) block: Block,
    pub(in crate::engine) slot: Slot,
    pub(in crate::engine) waiting: Waiting,
}

/// The fetching of what is missing in a slot.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Fill {
    pub(in crate::engine) block: Block,
    pub(in crate::engine) slot: Slot,
    /// Where the part of the block begins that is read.
    pub(in crate::engine) from: u64,
    pub(in crate::engine) stores_left: u32,
    pub(in crate::engine) error: Option<Errno>,
}

/// A cached block that is being discarded, for a request.
#[derive(Clone, Copy, Debug)]
pub(in crate::engine) struct Discard {
    pub(in crate::engine) block: Block,
    pub(in crate::engine) slot: Slot,
    pub(in crate::engine) waiting: Waiting,
}

/// A dirty block on its way to the origin: one write for each run of sub-blocks that are there.
#[derive(Debug, Default)]
pub(in crate::engine) struct CopyBack {
    pub(in crate::engine) present: Mask,
    pub(in crate::engine) writes_left: u32,
    pub(in crate::engine) error: Option<Errno>,
}
