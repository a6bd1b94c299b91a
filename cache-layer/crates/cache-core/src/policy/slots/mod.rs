//! Which block lies in which slot, and which slots are free.

mod counting;

use fixedbitset::FixedBitSet;
use virtual_time::Nanos;

use self::counting::Counting;
use super::by_block::ByBlock;
use super::shares::{Excess, OTHERS, OwnerId, Owners, Usage};
use super::{Block, Geometry, Slot};

/// Where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Only on the origin, whether or not it is remembered.
    Absent,
    /// Its promotion is pending.
    Incoming {
        /// What the policy knew of it when it asked for the promotion.
        hot: bool,
    },
    /// In a slot.
    Resident(Slot),
}

// In `Slots::places`; what is below the capacity is a slot, what is between a memory's number,
// counted down from the last of these.
const ABSENT: u32 = super::list::NONE;
const INCOMING_COLD: u32 = u32::MAX - 1;
const INCOMING_HOT: u32 = u32::MAX - 2;

// In `Slots::blocks`, where a released slot keeps the one that was released next after it.
const UNTOUCHED: u32 = u32::MAX;
const NONE: u32 = u32::MAX - 1;

/// The map between blocks and slots: 4 bytes per slot, and what [`ByBlock`] takes for those that are
/// cached or remembered; 8 more where blocks have owners.
pub(super) struct Slots {
    /// Whose the blocks are, if that matters.
    pub owners: Option<Box<Owners>>,
    /// Whose they are to be.
    counting: Option<Box<Counting>>,
    /// Whose they were, as long as victims that were set aside have not moved.
    pub(super) owners_before: Option<Box<Owners>>,
    /// By slot: its block is being demoted.
    leaving: FixedBitSet,
    leaving_count: u32,
    places: ByBlock,
    blocks: Vec<u32>,
    /// The slot that was released first, and the one that was released last.
    released_first: u32,
    released_last: u32,
    /// Slots up to here have been taken or loaded at some time.
    untouched: u32,
    free: u32,
    used: u32,
}

impl Slots {
    /// An empty cache.
    pub fn new(geometry: Geometry) -> Slots {
        Slots {
            owners: None,
            counting: None,
            owners_before: None,
            leaving: FixedBitSet::with_capacity(geometry.slots as usize),
            leaving_count: 0,
            places: ByBlock::new(geometry.origin_blocks, geometry.slots),
            blocks: vec![UNTOUCHED; geometry.slots as usize],
            released_first: NONE,
            released_last: NONE,
            untouched: 0,
            free: geometry.slots,
            used: 0,
        }
    }

    /// Where a block is.
    pub fn place(&self, block: Block) -> Place {
        match self.places.get(block) {
            ABSENT => Place::Absent,
            INCOMING_COLD => Place::Incoming { hot: false },
            INCOMING_HOT => Place::Incoming { hot: true },
            slot if slot < self.capacity() => Place::Resident(slot),
            _ => Place::Absent,
        }
    }

    /// By which number an absent block is remembered.
    pub fn memory(&self, block: Block) -> Option<u32> {
        match self.places.get(block) {
            ABSENT | INCOMING_COLD | INCOMING_HOT => None,
            place => (place >= self.capacity()).then(|| INCOMING_HOT - 1 - place),
        }
    }

    /// Remembers an absent block by a number, below those that [`Slots::most_memories`] has.
    pub fn remember(&mut self, block: Block, number: u32) {
        self.places.set(block, INCOMING_HOT - 1 - number);
    }

    /// An absent block is not remembered any more.
    pub fn forget(&mut self, block: Block) {
        self.places.set(block, ABSENT);
    }

    /// How many blocks can be remembered beside so many slots.
    pub fn most_memories(slots: u32) -> u32 {
        INCOMING_HOT - slots
    }

    /// The block's slot, if it is in one.
    pub fn resident(&self, block: Block) -> Option<Slot> {
        match self.place(block) {
            Place::Resident(slot) => Some(slot),
            _ => None,
        }
    }

    /// The block that lies in a slot, which has one.
    pub fn block(&self, slot: Slot) -> Block {
        self.blocks[slot as usize]
    }

    /// Takes a free slot: the lowest that was never used, or else the one that was released first
    /// (the order of the kernel's `alloc_entry` and `free_entry`, whose list is first in, first
    /// out). Blocks that are fetched in the order of the origin so lie side by side on the flash.
    pub fn take(&mut self) -> Option<Slot> {
        self.free = self.free.checked_sub(1)?;
        let rest = self.blocks.get(self.untouched as usize..).unwrap_or(&[]);
        if let Some(loaded) = rest.iter().position(|&block| block == UNTOUCHED) {
            let slot = self.untouched + loaded as u32;
            self.untouched = slot + 1;
            return Some(slot);
        }
        self.untouched = self.capacity();
        let slot = self.released_first;
        self.released_first = self.blocks[slot as usize];
        if self.released_first == NONE {
            self.released_last = NONE;
        }
        Some(slot)
    }

    /// A slot that was taken, or whose block has been removed, is free again.
    pub fn release(&mut self, slot: Slot) {
        self.blocks[slot as usize] = NONE;
        match self.released_last {
            NONE => self.released_first = slot,
            last => self.blocks[last as usize] = slot,
        }
        self.released_last = slot;
        self.free += 1;
    }

    /// A promotion of the block is pending.
    pub fn expect(&mut self, block: Block, hot: bool) {
        self.note(block, |owners| owners.expect(block));
        self.places
            .set(block, if hot { INCOMING_HOT } else { INCOMING_COLD });
    }

    /// The promotion of the block has been given up.
    pub fn cancel(&mut self, block: Block) {
        self.note(block, |owners| owners.cancel(block));
        self.places.set(block, ABSENT);
    }

    /// The block lies in the slot, which was taken for it.
    pub fn settle(&mut self, block: Block, slot: Slot) {
        self.note(block, |owners| {
            owners.cancel(block);
            owners.add(block);
        });
        self.fill(block, slot);
    }

    fn fill(&mut self, block: Block, slot: Slot) {
        self.places.set(block, slot);
        self.blocks[slot as usize] = block;
        self.used += 1;
    }

    /// The block in the slot is going to leave it.
    pub fn leave(&mut self, slot: Slot) {
        self.leaving.insert(slot as usize);
        self.leaving_count += 1;
        let block = self.blocks[slot as usize];
        self.note(block, |owners| owners.leave(block));
    }

    /// It does not.
    pub fn stay(&mut self, slot: Slot) {
        self.leaving.remove(slot as usize);
        self.leaving_count -= 1;
        let block = self.blocks[slot as usize];
        self.note(block, |owners| owners.stay(block, slot));
    }

    /// Number of slots whose blocks are leaving.
    pub fn leaving(&self) -> u32 {
        self.leaving_count
    }

    /// Whether the block in the slot is leaving.
    pub fn is_leaving(&self, slot: Slot) -> bool {
        self.leaving[slot as usize]
    }

    /// A block that was leaving has left its slot, which is not free yet.
    pub fn remove(&mut self, block: Block) {
        let slot = self.places.get(block);
        self.leaving.remove(slot as usize);
        self.leaving_count -= 1;
        self.note(block, |owners| owners.remove(block, slot));
        self.places.set(block, ABSENT);
        self.used -= 1;
    }

    /// A block leaves its slot at once, where nothing has an owner. Its place is not read: of a block
    /// that has to go, the processor's cache does not have it.
    pub fn vacate(&mut self, block: Block) {
        debug_assert!(self.owners.is_none() && self.counting.is_none() && self.leaving_count == 0);
        self.places.set(block, ABSENT);
        self.used -= 1;
    }

    // Owners.

    /// Tells the owners of what becomes of a block, those that are being counted as well.
    fn note(&mut self, block: Block, note: impl Fn(&mut Owners)) {
        if let Some(owners) = &mut self.owners {
            note(owners);
        }
        if let Some(owners) = self.counting.as_mut().and_then(|all| all.counted(block)) {
            note(owners);
        }
    }

    /// Whose the block in a slot is.
    pub fn owner(&self, slot: Slot) -> OwnerId {
        let owners = self.owners.as_ref();
        owners.map_or(OTHERS, |owners| owners.of(self.block(slot)))
    }

    /// The slot of a block that may leave it so that the `wanted` one can come.
    pub fn expendable(&self, block: Block, wanted: Block) -> Option<Slot> {
        let slot = self
            .resident(block)
            .filter(|&slot| !self.is_leaving(slot))?;
        let may_go = self.owners.as_ref().is_none_or(|owners| {
            let whom = owners.beneficiary(wanted);
            whom.is_some_and(|whom| owners.may_lose(owners.of(block), whom))
        });
        may_go.then_some(slot)
    }

    /// The owner of a block that may enter.
    pub fn owner_of(&self, block: Block) -> Option<OwnerId> {
        let Some(owners) = &self.owners else {
            return Some(OTHERS);
        };
        owners.beneficiary(block).map(|_| owners.of(block))
    }

    /// Whether a block may take a free slot, and there is one.
    pub fn may_take(&self, block: Block) -> bool {
        match &self.owners {
            None => self.free > 0,
            Some(owners) => owners.may_take(block, self.free),
        }
    }

    /// Free slots that are kept for pinned blocks.
    pub fn reserved(&self) -> u32 {
        let owners = self.owners.as_ref();
        owners.map_or(0, |owners| owners.reserved())
    }

    /// An excluded block could not be made to leave yet.
    pub fn doom(&mut self, block: Block) {
        if let Some(owners) = &mut self.owners {
            owners.doom(block);
        }
    }

    /// What has to leave without anybody waiting for its slot.
    pub fn excess(&mut self, now: Nanos) -> Option<Excess> {
        self.owners.as_ref()?;
        while let Some(block) = self.owners.as_mut()?.next_doomed(now) {
            match self.place(block) {
                Place::Resident(slot) if !self.is_leaving(slot) => {
                    return Some(Excess::Block(block, slot));
                }
                _ => {}
            }
        }
        let excess = self.owners.as_mut()?.excess(now, self.free);
        excess.map(Excess::Victim)
    }

    /// How the cache is divided.
    pub fn usage(&self) -> Usage {
        let owners = self.owners.as_ref();
        owners.map_or_else(Usage::default, |owners| owners.usage(self.free))
    }

    /// A block found in the metadata lies in a slot that nothing has taken since the start.
    pub fn load(&mut self, block: Block, slot: Slot) {
        debug_assert_eq!(
            self.blocks[slot as usize], UNTOUCHED,
            "slot {slot} is taken"
        );
        self.note(block, |owners| owners.add(block));
        self.fill(block, slot);
        self.free -= 1;
    }

    /// Number of slots that are neither in use nor taken.
    pub fn free(&self) -> u32 {
        self.free
    }

    /// Number of slots with a block in them.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Number of slots.
    pub fn capacity(&self) -> u32 {
        self.blocks.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three_slots() -> Slots {
        Slots::new(Geometry {
            origin_blocks: 10,
            slots: 3,
        })
    }

    #[test]
    fn slots_are_handed_out_once_and_again_after_release() {
        let mut slots = three_slots();
        let taken: Vec<_> = std::iter::from_fn(|| slots.take()).collect();
        assert_eq!(taken, [0, 1, 2]);
        slots.release(2);
        slots.release(0);
        assert_eq!(slots.free(), 2);
        let taken: Vec<_> = std::iter::from_fn(|| slots.take()).collect();
        assert_eq!(taken, [2, 0], "the one released first comes first");
    }

    #[test]
    fn a_loaded_slot_is_not_handed_out_until_it_is_released() {
        let mut slots = three_slots();
        slots.load(7, 1);
        assert_eq!(slots.place(7), Place::Resident(1));
        assert_eq!((slots.free(), slots.used()), (2, 1));
        // Released before any other slot was taken: the untouched ones must not yield it twice.
        slots.leave(1);
        slots.remove(7);
        slots.release(1);
        let taken: Vec<_> = std::iter::from_fn(|| slots.take()).collect();
        assert_eq!(taken, [0, 2, 1]);
    }
}
