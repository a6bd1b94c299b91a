//! Whose the cache is: blocks that are always kept, blocks that never enter, and owners that have a
//! guaranteed and a largest part of it, such as the databases of one disk.
//!
//! All three are limits of an owner: of what is pinned, nothing may be taken; what is excluded may
//! have nothing; a share lies in between. Shares may lie in one another, and pinned blocks in shares:
//! a table in its database. What the inner one has counts for the outer one as well, so that a limit
//! is one of everything inside, and the order in which they were said means nothing.
//!
//! They stand around a policy, whichever it is. It goes on choosing victims, but a victim that an
//! owner's guarantee protects is set aside ([`Owners::park`]): it is the first to go once its owner may
//! lose one, and is back in the policy's lists as soon as it is touched. So a hit costs nothing, and a
//! block is set aside at most once between two touches.
//!
//! Room for pinned blocks that are not there yet is kept free, so that each comes when it is asked
//! for.

use std::ops::Range;

use virtual_time::{NANOS_PER_S, Nanos};

use super::{Block, Geometry, Slot};

mod owners;
#[cfg(test)]
mod tests;
mod tree;

pub(in crate::policy) use owners::Owners;

/// Share of the slots that cannot be promised: one in so many, and no more than the most. Blocks on
/// their way come and go there.
const WORKING_SHARE: u32 = 64;
const WORKING_MOST: u32 = 256;

/// Demotions under way at a time that nobody waits for.
const VACATING_MOST: u64 = 64;

/// How long they rest when one has failed, or could not be begun.
const REST: Nanos = NANOS_PER_S as Nanos / 10;

/// What a set of blocks may have of the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// All of them are kept once they have come, and there is always room for them.
    Pinned,
    /// They never enter; what is there of them leaves.
    Excluded,
    /// Other owners leave it `guaranteed` slots, and it gets no more than `most`.
    Share {
        /// Slots.
        guaranteed: u32,
        /// Slots.
        most: u32,
    },
}

/// A set of blocks and its right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// In any order; they may overlap.
    pub blocks: Vec<Range<Block>>,
    /// What they may have.
    pub right: Right,
}

/// Shares that cannot be; sizes in blocks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SharesError {
    /// More is promised than there is.
    #[error(
        "{pinned} pinned and {guaranteed} guaranteed blocks do not fit {available} of the cache"
    )]
    DoNotFit {
        /// Pinned blocks.
        pinned: u64,
        /// The sum of all guarantees.
        guaranteed: u64,
        /// What can be promised.
        available: u32,
    },
    /// More is promised inside a share than its limit.
    #[error("{promised} blocks are pinned or guaranteed inside a share of at most {most}")]
    Inside {
        /// Number of the share, in the order in which they were given.
        share: usize,
        /// What is pinned and guaranteed in it.
        promised: u64,
        /// Its limit.
        most: u32,
    },
    /// A guarantee above its own limit.
    #[error("a share of {guaranteed} guaranteed blocks and at most {most}")]
    Limits {
        /// The guarantee.
        guaranteed: u32,
        /// The limit.
        most: u32,
    },
    /// Blocks that are not there.
    #[error("blocks up to {end} of an origin of {origin_blocks}")]
    BeyondOrigin {
        /// One behind the last block named.
        end: Block,
        /// Blocks of the origin.
        origin_blocks: u32,
    },
}

/// Slots of a cache that can be promised to pinned blocks and guarantees.
pub fn available(slots: u32) -> u32 {
    slots - slots.div_ceil(WORKING_SHARE).min(WORKING_MOST)
}

/// Number of an owner: of these, of a share in the order in which they were given, or of what is
/// pinned inside one.
pub(super) type OwnerId = usize;
pub(super) const OTHERS: OwnerId = 0;
const PINNED: OwnerId = 1;
const EXCLUDED: OwnerId = 2;
const FIRST_SHARE: OwnerId = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    first: Block,
    end: Block,
    owner: OwnerId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limits {
    guaranteed: u32,
    most: u32,
}

/// Whose blocks they are, and in which share this owner lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rights {
    limits: Limits,
    /// Nothing of it may be taken.
    pinned: bool,
    /// The smallest share around it: whatever it has, that one has as well.
    around: Option<OwnerId>,
}

/// Shares that fit a cache: 24 bytes for each run of blocks of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares {
    /// In order, disjoint.
    pieces: Vec<Piece>,
    rights: Vec<Rights>,
    /// The shares' owners, each before those around it.
    inner_first: Vec<OwnerId>,
}

impl Shares {
    /// What is excluded wins over what is pinned, and that over shares. A share most of whose blocks
    /// belong to another lies in it, whichever was given first: what it has, what it is guaranteed and
    /// what is pinned in it count for both.
    ///
    /// # Errors
    /// They do not fit the cache, the origin, or one another.
    pub fn new(shares: &[Share], geometry: Geometry) -> Result<Shares, SharesError> {
        tree::build(shares, geometry, Fit::Whole)
    }

    /// As [`Shares::new`], with as much of what is pinned and guaranteed as fits: of an earlier time,
    /// when the cache was larger or a table smaller. A limit is kept whatever it costs.
    ///
    /// # Errors
    /// They do not fit the origin.
    pub fn fitted(shares: &[Share], geometry: Geometry) -> Result<Shares, SharesError> {
        tree::build(shares, geometry, Fit::AsFarAsPossible)
    }

    /// Whether no block has a right of its own.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    fn of(&self, block: Block) -> OwnerId {
        let behind = self.pieces.partition_point(|piece| piece.end <= block);
        match self.pieces.get(behind) {
            Some(piece) if piece.first <= block => piece.owner,
            _ => OTHERS,
        }
    }
}

/// What becomes of promises that do not fit.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// They are refused.
    Whole,
    /// They are cut down.
    AsFarAsPossible,
}

/// How much of the cache an owner has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Blocks of the origin that are its own, or of owners inside it, as in what follows.
    pub blocks: u64,
    /// Those that are in the cache.
    pub resident: u32,
    /// Slots that others leave it.
    pub guaranteed: u32,
    /// Slots that it may have.
    pub most: u32,
}

impl Part {
    /// The sum of two that have no block in common.
    fn with(self, other: Part) -> Part {
        Part {
            blocks: self.blocks + other.blocks,
            resident: self.resident + other.resident,
            guaranteed: self.guaranteed + other.guaranteed,
            most: self.most + other.most,
        }
    }
}

/// How the cache is divided now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// All that is pinned.
    pub pinned: Part,
    /// All that is excluded.
    pub excluded: Part,
    /// The shares, in the order in which they were given.
    pub shares: Vec<Part>,
    /// Blocks that have still to leave, so that everybody has what is theirs.
    pub to_leave: u64,
}

/// For whom a victim makes room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beneficiary {
    /// Whoever comes.
    Anyone,
    /// What is pinned and not there yet.
    Pinned,
    /// A block of this owner, who may have more.
    Owner(OwnerId),
    /// A block of this owner; it, or a share around it, has all that it may have: `full`, which has
    /// to lose one.
    Itself {
        /// Who has all it may have.
        full: OwnerId,
        /// Whose block comes.
        owner: OwnerId,
    },
}

/// What has to leave without anybody waiting for its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    Block(Block, Slot),
    Victim(Beneficiary),
}
