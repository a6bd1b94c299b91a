//! Whose the cache is: blocks that are always kept, blocks that never enter, and owners that have a
//! guaranteed and a largest part of it, such as the databases of one disk.
//!
//! All three are limits of an owner: of what is pinned, nothing may be taken; what is excluded may
//! have nothing; a share lies in between. They stand around a policy, whichever it is. It goes on
//! choosing victims, but a victim that an owner's guarantee protects is set aside ([`Owners::park`]):
//! it is the first to go once its owner may lose one, and is back in the policy's lists as soon as
//! it is touched. So a hit costs nothing, and a block is set aside at most once between two touches.
//!
//! Room for pinned blocks that are not there yet is kept free, so that each comes when it is asked
//! for.

use std::ops::Range;

use roaring::RoaringBitmap;
use virtual_time::{NANOS_PER_S, Nanos};

use super::list::{Links, List};
use super::{Block, Geometry, Slot};

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

/// Number of an owner: of these, or of a share in the order in which they were given.
pub(super) type OwnerId = usize;
pub(super) const OTHERS: OwnerId = 0;
pub(super) const PINNED: OwnerId = 1;
pub(super) const EXCLUDED: OwnerId = 2;
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

/// Shares that fit a cache: 24 bytes for each run of blocks of an owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shares {
    /// In order, disjoint.
    pieces: Vec<Piece>,
    limits: Vec<Limits>,
}

impl Shares {
    /// Where two sets have a block in common, it is of the one that comes first.
    ///
    /// # Errors
    /// They do not fit the cache or the origin.
    pub fn new(shares: &[Share], geometry: Geometry) -> Result<Shares, SharesError> {
        let mut limits = vec![
            Limits {
                guaranteed: 0,
                most: u32::MAX,
            };
            FIRST_SHARE
        ];
        limits[EXCLUDED].most = 0;
        let mut taken = RoaringBitmap::new();
        let mut pieces = Vec::new();
        for share in shares {
            let owner = match share.right {
                Right::Pinned => PINNED,
                Right::Excluded => EXCLUDED,
                Right::Share { guaranteed, most } => {
                    if guaranteed > most {
                        return Err(SharesError::Limits { guaranteed, most });
                    }
                    limits.push(Limits { guaranteed, most });
                    limits.len() - 1
                }
            };
            let mut blocks = RoaringBitmap::new();
            for run in &share.blocks {
                if run.end > geometry.origin_blocks {
                    return Err(SharesError::BeyondOrigin {
                        end: run.end,
                        origin_blocks: geometry.origin_blocks,
                    });
                }
                blocks.insert_range(run.clone());
            }
            blocks -= &taken;
            taken |= &blocks;
            pieces.extend(pieces_of(&blocks, owner));
        }
        pieces.sort_unstable_by_key(|piece| piece.first);
        let blocks_of = |owner| -> u64 {
            let of = pieces.iter().filter(|piece: &&Piece| piece.owner == owner);
            of.map(|piece| u64::from(piece.end - piece.first)).sum()
        };
        let pinned = blocks_of(PINNED);
        let guarantees = limits[FIRST_SHARE..].iter();
        let guaranteed = guarantees.map(|limits| u64::from(limits.guaranteed)).sum();
        let available = available(geometry.slots);
        if pinned + guaranteed > u64::from(available) {
            return Err(SharesError::DoNotFit {
                pinned,
                guaranteed,
                available,
            });
        }
        limits[PINNED] = Limits {
            guaranteed: pinned as u32,
            most: pinned as u32,
        };
        Ok(Shares { pieces, limits })
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

fn pieces_of(blocks: &RoaringBitmap, owner: OwnerId) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for block in blocks {
        match pieces.last_mut() {
            Some(piece) if piece.end == block => piece.end += 1,
            _ => pieces.push(Piece {
                first: block,
                end: block + 1,
                owner,
            }),
        }
    }
    pieces
}

/// How much of the cache an owner has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Blocks of the origin that are its own.
    pub blocks: u64,
    /// Those that are in the cache.
    pub resident: u32,
    /// Slots that others leave it.
    pub guaranteed: u32,
    /// Slots that it may have.
    pub most: u32,
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
    /// A block of this owner, who may have more.
    Owner(OwnerId),
    /// A block of this owner, who has all it may have.
    Itself(OwnerId),
}

/// What has to leave without anybody waiting for its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    Block(Block, Slot),
    Victim(Beneficiary),
}

#[derive(Clone, Copy)]
struct Owner {
    limits: Limits,
    /// In slots, those that are leaving among them.
    resident: u32,
    /// On their way in; not counted for [`OTHERS`].
    incoming: u32,
    leaving: u32,
    /// Victims that were set aside, the first one first.
    parked: List,
}

impl Owner {
    fn staying(&self) -> u32 {
        self.resident - self.leaving
    }
}

/// The owners of the blocks of a cache, and what they have of it: 8 bytes per slot.
pub(super) struct Owners {
    shares: Shares,
    owners: Vec<Owner>,
    links: Links,
    /// Excluded blocks that are in slots.
    doomed: RoaringBitmap,
    /// Slots of demotions that nobody waits for.
    vacating: RoaringBitmap,
    /// One of those has failed, or could not be begun.
    needs_rest: bool,
    rest_until: Nanos,
}

impl Owners {
    /// Owners that nothing has been counted for; before one is set aside, there must be
    /// [links](Owners::link).
    pub fn new(shares: Shares, slots: u32) -> Owners {
        let owner = |&limits| Owner {
            limits,
            resident: 0,
            incoming: 0,
            leaving: 0,
            parked: List::EMPTY,
        };
        Owners {
            owners: shares.limits.iter().map(owner).collect(),
            shares,
            links: Links::with_room_for(slots),
            doomed: RoaringBitmap::new(),
            vacating: RoaringBitmap::new(),
            needs_rest: false,
            rest_until: 0,
        }
    }

    pub fn shares(&self) -> &Shares {
        &self.shares
    }

    /// A run of blocks that have a right of their own; they are in order.
    pub fn run(&self, index: usize) -> Option<Range<Block>> {
        let piece = self.shares.pieces.get(index)?;
        Some(piece.first..piece.end)
    }

    /// Makes links for so many more slots, up to all of them; whether all have some.
    pub fn link(&mut self, more: u32, slots: u32) -> bool {
        self.links.grow(more, slots)
    }

    pub fn of(&self, block: Block) -> OwnerId {
        self.shares.of(block)
    }

    // What they have.

    pub fn expect(&mut self, block: Block) {
        let owner = self.of(block);
        self.owners[owner].incoming += u32::from(owner != OTHERS);
    }

    pub fn cancel(&mut self, block: Block) {
        let owner = self.of(block);
        self.owners[owner].incoming -= u32::from(owner != OTHERS);
    }

    /// A block is in a slot; it was not expected.
    pub fn add(&mut self, block: Block) {
        let owner = self.of(block);
        self.owners[owner].resident += 1;
        if owner == EXCLUDED {
            self.doomed.insert(block);
        }
    }

    /// Of so many blocks in slots, so many of them leaving, those that were not counted have no right
    /// of their own.
    pub fn count_others(&mut self, resident: u32, leaving: u32) {
        let counted = |of: fn(&Owner) -> u32| self.owners.iter().map(of).sum::<u32>();
        let (owned, owned_leaving) = (counted(|owner| owner.resident), counted(|o| o.leaving));
        self.owners[OTHERS].resident = resident - owned;
        self.owners[OTHERS].leaving = leaving - owned_leaving;
    }

    pub fn leave(&mut self, block: Block) {
        let owner = self.of(block);
        self.owners[owner].leaving += 1;
    }

    /// Nobody waits for the slot of a block that leaves.
    pub fn vacate(&mut self, slot: Slot) {
        self.vacating.insert(slot);
    }

    pub fn stay(&mut self, block: Block, slot: Slot) {
        let owner = self.of(block);
        self.owners[owner].leaving -= 1;
        self.needs_rest |= self.vacating.remove(slot);
        if owner == EXCLUDED {
            self.doomed.insert(block);
        }
    }

    pub fn remove(&mut self, block: Block, slot: Slot) {
        let owner = self.of(block);
        let owner = &mut self.owners[owner];
        owner.resident -= 1;
        owner.leaving -= 1;
        self.vacating.remove(slot);
    }

    // What they may have.

    /// Slots that are kept for pinned blocks.
    pub fn reserved(&self) -> u32 {
        let pinned = &self.owners[PINNED];
        let there = pinned.resident + pinned.incoming;
        pinned.limits.guaranteed.saturating_sub(there)
    }

    /// Whether a block may take one of so many free slots.
    pub fn may_take(&self, block: Block, free: u32) -> bool {
        let owner = self.of(block);
        !self.has_all(owner) && (free > self.reserved() || (owner == PINNED && free > 0))
    }

    /// For whom room is to be made when a block comes; nobody, if it must not.
    pub fn beneficiary(&self, block: Block) -> Option<Beneficiary> {
        let owner = self.of(block);
        match self.has_all(owner) {
            _ if owner == EXCLUDED => None,
            true => Some(Beneficiary::Itself(owner)),
            false => Some(Beneficiary::Owner(owner)),
        }
    }

    fn has_all(&self, owner: OwnerId) -> bool {
        let owner = &self.owners[owner];
        owner.resident + owner.incoming >= owner.limits.most
    }

    /// The owner of a block that has just come or wanted to, if it is about to reach its limit:
    /// within so many slots of it.
    pub fn close_to_limit(&self, block: Block, most_spare: u32) -> Option<Beneficiary> {
        let id = self.of(block);
        let owner = &self.owners[id];
        if id < FIRST_SHARE {
            return None;
        }
        let spare = owner.limits.most.div_ceil(WORKING_SHARE).min(most_spare);
        let close = owner.staying() + owner.incoming + spare > owner.limits.most;
        close.then_some(Beneficiary::Itself(id))
    }

    /// Whether an owner may lose a block so that another has room.
    pub fn may_lose(&self, id: OwnerId, whom: Beneficiary) -> bool {
        let owner = &self.owners[id];
        let has_more = owner.staying() > owner.limits.guaranteed;
        match whom {
            _ if id == PINNED => false,
            Beneficiary::Anyone => has_more,
            Beneficiary::Owner(other) => has_more || id == other,
            Beneficiary::Itself(other) => id == other,
        }
    }

    /// What is to leave by itself, by numbers alone.
    pub fn excess(&mut self, now: Nanos, free: u32) -> Option<Beneficiary> {
        if self.is_resting(now) {
            return None;
        }
        let over = |owner: &Owner| owner.staying() > owner.limits.most;
        if let Some(owner) = self.owners[FIRST_SHARE..].iter().position(over) {
            return Some(Beneficiary::Itself(FIRST_SHARE + owner));
        }
        let coming = u64::from(free) + self.vacating.len();
        (coming < u64::from(self.reserved())).then_some(Beneficiary::Owner(PINNED))
    }

    /// An excluded block could not be made to leave: once there has been a rest.
    pub fn doom(&mut self, block: Block) {
        self.doomed.insert(block);
        self.needs_rest = true;
    }

    /// Nothing can be made to leave just now.
    pub fn rest(&mut self) {
        self.needs_rest = true;
    }

    /// The next excluded block that has to leave.
    pub fn next_doomed(&mut self, now: Nanos) -> Option<Block> {
        if self.is_resting(now) {
            return None;
        }
        let block = self.doomed.min()?;
        self.doomed.remove(block);
        Some(block)
    }

    fn is_resting(&mut self, now: Nanos) -> bool {
        if std::mem::take(&mut self.needs_rest) {
            self.rest_until = now + REST;
        }
        now < self.rest_until || self.vacating.len() >= VACATING_MOST
    }

    // Victims that were set aside.

    /// Sets a victim aside that its owner may not lose.
    pub fn park(&mut self, owner: OwnerId, slot: Slot) {
        self.owners[owner].parked.push_back(&mut self.links, slot);
    }

    pub fn is_parked(&self, slot: Slot) -> bool {
        self.links.is_linked(slot)
    }

    pub fn unpark(&mut self, owner: OwnerId, slot: Slot) {
        self.owners[owner].parked.remove(&mut self.links, slot);
    }

    /// Takes out one of them, of one owner after the other, each in its order.
    pub fn pop_parked(&mut self) -> Option<Slot> {
        let links = &mut self.links;
        let mut lists = self.owners.iter_mut().map(|owner| &mut owner.parked);
        lists.find_map(|list| list.pop_front(links))
    }

    /// Takes out the one that goes first: of the owner that is furthest above its guarantee.
    pub fn parked_victim(&mut self, whom: Beneficiary) -> Option<Slot> {
        let may = |&id: &OwnerId| !self.owners[id].parked.is_empty() && self.may_lose(id, whom);
        let above = |&id: &OwnerId| {
            let owner = &self.owners[id];
            i64::from(owner.staying()) - i64::from(owner.limits.guaranteed)
        };
        let id = (0..self.owners.len()).filter(may).max_by_key(above)?;
        self.owners[id].parked.pop_front(&mut self.links)
    }

    /// How the cache is divided, with so many free slots.
    pub fn usage(&self, free: u32) -> Usage {
        let mut parts = vec![Part::default(); self.owners.len()];
        for piece in &self.shares.pieces {
            parts[piece.owner].blocks += u64::from(piece.end - piece.first);
        }
        for (part, owner) in parts.iter_mut().zip(&self.owners) {
            part.resident = owner.resident;
            part.guaranteed = owner.limits.guaranteed;
            part.most = owner.limits.most;
        }
        let over = self.owners[FIRST_SHARE..].iter();
        let over = over.map(|owner| owner.resident.saturating_sub(owner.limits.most));
        let excluded = self.owners[EXCLUDED].resident;
        let room = self.reserved().saturating_sub(free);
        Usage {
            pinned: parts[PINNED],
            excluded: parts[EXCLUDED],
            to_leave: over.chain([excluded, room]).map(u64::from).sum(),
            shares: parts.split_off(FIRST_SHARE),
        }
    }
}
