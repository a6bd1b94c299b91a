//! What owners have of a cache, and what they may lose.

use std::iter;
use std::ops::Range;

use roaring::RoaringBitmap;
use smallvec::SmallVec;
use virtual_time::Nanos;

use super::{
    Beneficiary, EXCLUDED, FIRST_SHARE, OTHERS, OwnerId, PINNED, Part, REST, Rights, Shares, Usage,
    VACATING_MOST, WORKING_SHARE,
};
use crate::policy::list::{Links, List};
use crate::policy::{Block, Slot};

#[derive(Clone, Copy)]
struct Owner {
    rights: Rights,
    /// In slots, those that are leaving among them; also what those inside have.
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

    fn part(&self) -> Part {
        Part {
            blocks: 0,
            resident: self.resident,
            guaranteed: self.rights.limits.guaranteed,
            most: self.rights.limits.most,
        }
    }

    /// Of what is pinned, what is neither there nor on its way.
    fn missing_pins(&self) -> u32 {
        match self.rights.pinned {
            true => self.missing_guaranteed(),
            false => 0,
        }
    }

    /// Of what others leave it, what is neither there nor on its way.
    fn missing_guaranteed(&self) -> u32 {
        let present = self.resident + self.incoming;
        self.rights.limits.guaranteed.saturating_sub(present)
    }

    fn is_over(&self) -> bool {
        self.staying() > self.rights.limits.most
    }
}

/// The owners of the blocks of a cache, and what they have of it: 8 bytes per slot.
pub(in crate::policy) struct Owners {
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
        let owner = |&rights| Owner {
            rights,
            resident: 0,
            incoming: 0,
            leaving: 0,
            parked: List::EMPTY,
        };
        Owners {
            owners: shares.rights.iter().map(owner).collect(),
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
        if owner != OTHERS {
            self.note(owner, |owner| owner.incoming += 1);
        }
    }

    pub fn cancel(&mut self, block: Block) {
        let owner = self.of(block);
        if owner != OTHERS {
            self.note(owner, |owner| owner.incoming -= 1);
        }
    }

    /// An owner, and the shares around it.
    fn upwards(&self, id: OwnerId) -> impl Iterator<Item = OwnerId> {
        iter::successors(Some(id), |&id| self.owners[id].rights.around)
    }

    fn note(&mut self, id: OwnerId, note: impl Fn(&mut Owner)) {
        let mut next = Some(id);
        while let Some(id) = next {
            note(&mut self.owners[id]);
            next = self.owners[id].rights.around;
        }
    }

    /// A block is in a slot; it was not expected.
    pub fn add(&mut self, block: Block) {
        let owner = self.of(block);
        self.note(owner, |owner| owner.resident += 1);
        if owner == EXCLUDED {
            self.doomed.insert(block);
        }
    }

    /// Of so many blocks in slots, so many of them leaving, those that were not counted have no right
    /// of their own.
    pub fn count_others(&mut self, resident: u32, leaving: u32) {
        let outermost = || {
            let owners = self.owners.iter();
            owners.filter(|owner| owner.rights.around.is_none())
        };
        let owned: u32 = outermost().map(|owner| owner.resident).sum();
        let owned_leaving: u32 = outermost().map(|owner| owner.leaving).sum();
        self.owners[OTHERS].resident = resident - owned;
        self.owners[OTHERS].leaving = leaving - owned_leaving;
    }

    pub fn leave(&mut self, block: Block) {
        self.note(self.of(block), |owner| owner.leaving += 1);
    }

    /// Nobody waits for the slot of a block that leaves.
    pub fn vacate(&mut self, slot: Slot) {
        self.vacating.insert(slot);
    }

    pub fn stay(&mut self, block: Block, slot: Slot) {
        let owner = self.of(block);
        self.note(owner, |owner| owner.leaving -= 1);
        self.needs_rest |= self.vacating.remove(slot);
        if owner == EXCLUDED {
            self.doomed.insert(block);
        }
    }

    pub fn remove(&mut self, block: Block, slot: Slot) {
        self.note(self.of(block), |owner| {
            owner.resident -= 1;
            owner.leaving -= 1;
        });
        self.vacating.remove(slot);
    }

    // What they may have.

    /// Slots that are kept free for pinned blocks. Where a share has the slots that it was promised,
    /// those pinned in it take the place of others of its own.
    pub fn reserved(&self) -> u32 {
        let missing = self.owners.iter().map(Owner::missing_pins);
        self.sum_outwards(missing.collect(), |owner, inside| {
            inside.min(owner.missing_guaranteed())
        })
    }

    /// A sum over all owners, in which each share replaces that of what lies in it.
    fn sum_outwards(
        &self,
        mut of: SmallVec<[u32; 16]>,
        replace: impl Fn(&Owner, u32) -> u32,
    ) -> u32 {
        let pinned = (0..self.owners.len()).filter(|&id| self.is_pinned(id));
        for id in pinned.chain(self.shares.inner_first.iter().copied()) {
            let owner = &self.owners[id];
            if !owner.rights.pinned {
                of[id] = replace(owner, of[id]);
            }
            if let Some(around) = owner.rights.around {
                of[around] += std::mem::take(&mut of[id]);
            }
        }
        of.iter().sum()
    }

    pub fn is_pinned(&self, id: OwnerId) -> bool {
        self.owners[id].rights.pinned
    }

    /// Whether a block may take one of so many free slots.
    pub fn may_take(&self, block: Block, free: u32) -> bool {
        let owner = self.of(block);
        self.full(owner).is_none()
            && ((self.is_pinned(owner) && free > 0) || free > self.reserved())
    }

    /// For whom room is to be made when a block comes; nobody, if it must not.
    pub fn beneficiary(&self, block: Block) -> Option<Beneficiary> {
        let owner = self.of(block);
        match self.full(owner) {
            _ if owner == EXCLUDED => None,
            Some(full) => Some(Beneficiary::Itself { full, owner }),
            None => Some(Beneficiary::Owner(owner)),
        }
    }

    /// The innermost of an owner and the shares around it that has all it may have.
    fn full(&self, id: OwnerId) -> Option<OwnerId> {
        self.upwards(id).find(|&id| {
            let owner = &self.owners[id];
            owner.resident + owner.incoming >= owner.rights.limits.most
        })
    }

    /// Of the owner of a block that has just come or wanted to, and the shares around it, the
    /// innermost that is about to reach its limit: within so many slots of it.
    pub fn close_to_limit(&self, block: Block, most_spare: u32) -> Option<Beneficiary> {
        let id = self.of(block);
        let close = |&id: &OwnerId| {
            let owner = &self.owners[id];
            let most = owner.rights.limits.most;
            let spare = most.div_ceil(WORKING_SHARE).min(most_spare);
            id >= FIRST_SHARE
                && !owner.rights.pinned
                && owner.staying() + owner.incoming + spare > most
        };
        let full = self.upwards(id).find(close)?;
        Some(Beneficiary::Itself { full, owner: id })
    }

    /// Whether an owner may lose a block so that another has room: it and the shares around it keep
    /// their guarantees. A share that the other lies in as well loses nothing by it.
    pub fn may_lose(&self, id: OwnerId, whom: Beneficiary) -> bool {
        let is_asked = match whom {
            Beneficiary::Itself { full, .. } => self.lies_in(id, full),
            Beneficiary::Anyone | Beneficiary::Pinned | Beneficiary::Owner(_) => true,
        };
        let may_spare = |share: OwnerId| {
            let owner = &self.owners[share];
            owner.staying() > owner.rights.limits.guaranteed || self.gains(share, whom)
        };
        !self.is_pinned(id) && is_asked && self.upwards(id).all(may_spare)
    }

    /// Whether room for somebody is room in a share.
    fn gains(&self, share: OwnerId, whom: Beneficiary) -> bool {
        match whom {
            Beneficiary::Anyone => false,
            Beneficiary::Owner(owner) | Beneficiary::Itself { owner, .. } => {
                self.lies_in(owner, share)
            }
            Beneficiary::Pinned => (0..self.owners.len())
                .any(|id| self.owners[id].missing_pins() > 0 && self.lies_in(id, share)),
        }
    }

    fn lies_in(&self, id: OwnerId, share: OwnerId) -> bool {
        self.upwards(id).any(|around| around == share)
    }

    /// What is to leave by itself, by numbers alone.
    pub fn excess(&mut self, now: Nanos, free: u32) -> Option<Beneficiary> {
        if self.is_resting(now) {
            return None;
        }
        let mut shares = self.shares.inner_first.iter();
        if let Some(&full) = shares.find(|&&share| self.owners[share].is_over()) {
            return Some(Beneficiary::Itself { full, owner: full });
        }
        let coming = u64::from(free) + self.vacating.len();
        (coming < u64::from(self.reserved())).then_some(Beneficiary::Pinned)
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
            i64::from(owner.staying()) - i64::from(owner.rights.limits.guaranteed)
        };
        let id = (0..self.owners.len()).filter(may).max_by_key(above)?;
        self.owners[id].parked.pop_front(&mut self.links)
    }

    /// How the cache is divided, with so many free slots.
    pub fn usage(&self, free: u32) -> Usage {
        let mut parts: Vec<Part> = self.owners.iter().map(Owner::part).collect();
        for piece in &self.shares.pieces {
            for owner in self.upwards(piece.owner) {
                parts[owner].blocks += u64::from(piece.end - piece.first);
            }
        }
        let all_pinned = (PINNED + 1..parts.len()).filter(|&id| self.is_pinned(id));
        let pinned = all_pinned.fold(parts[PINNED], |sum, id| sum.with(parts[id]));
        let excluded = parts[EXCLUDED];
        let room = self.reserved().saturating_sub(free);
        parts.truncate(FIRST_SHARE + self.shares.inner_first.len());
        Usage {
            pinned,
            excluded,
            to_leave: [self.over(), excluded.resident, room]
                .map(u64::from)
                .iter()
                .sum(),
            shares: parts.split_off(FIRST_SHARE),
        }
    }

    /// Blocks of shares above their limits; one that leaves an inner share leaves those around it.
    fn over(&self) -> u32 {
        let none = SmallVec::from_elem(0, self.owners.len());
        self.sum_outwards(none, |owner, inside| {
            inside.max(owner.resident.saturating_sub(owner.rights.limits.most))
        })
    }
}
