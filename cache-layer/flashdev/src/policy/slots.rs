//! Which block lies in which slot, and which slots are free: two dense tables.

use super::{Block, Geometry, Slot};

/// Where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Only on the origin.
    Absent,
    /// Its promotion is pending.
    Incoming {
        /// What the policy knew of it when it asked for the promotion.
        hot: bool,
    },
    /// In a slot.
    Resident(Slot),
}

// In `Slots::places`; everything below is a slot.
const ABSENT: u32 = u32::MAX;
const INCOMING_COLD: u32 = u32::MAX - 1;
const INCOMING_HOT: u32 = u32::MAX - 2;

// In `Slots::blocks`, where a free slot keeps the next one that was released before it.
const UNTOUCHED: u32 = u32::MAX;
const LAST_RELEASED: u32 = u32::MAX - 1;

/// The map between blocks and slots: 4 bytes per block of the origin and 4 per slot.
pub(super) struct Slots {
    places: Vec<u32>,
    blocks: Vec<u32>,
    /// Head of the chain of released slots.
    released: u32,
    /// Slots from here on have been taken or loaded at some time.
    untouched: u32,
    free: u32,
    used: u32,
}

impl Slots {
    /// An empty cache.
    pub fn new(geometry: Geometry) -> Slots {
        Slots {
            places: vec![ABSENT; geometry.origin_blocks as usize],
            blocks: vec![UNTOUCHED; geometry.slots as usize],
            released: LAST_RELEASED,
            untouched: geometry.slots,
            free: geometry.slots,
            used: 0,
        }
    }

    /// Where a block is.
    pub fn place(&self, block: Block) -> Place {
        match self.places[block as usize] {
            ABSENT => Place::Absent,
            INCOMING_COLD => Place::Incoming { hot: false },
            INCOMING_HOT => Place::Incoming { hot: true },
            slot => Place::Resident(slot),
        }
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

    /// Takes a free slot: the one released last, or else the highest that was never used (the
    /// order of the kernel's `alloc_entry`).
    pub fn take(&mut self) -> Option<Slot> {
        self.free = self.free.checked_sub(1)?;
        if self.released != LAST_RELEASED {
            let slot = self.released;
            self.released = self.blocks[slot as usize];
            return Some(slot);
        }
        loop {
            self.untouched -= 1;
            if self.blocks[self.untouched as usize] == UNTOUCHED {
                return Some(self.untouched);
            }
        }
    }

    /// A slot that was taken, or whose block has been removed, is free again.
    pub fn release(&mut self, slot: Slot) {
        self.blocks[slot as usize] = self.released;
        self.released = slot;
        self.free += 1;
    }

    /// A promotion of the block is pending.
    pub fn expect(&mut self, block: Block, hot: bool) {
        self.places[block as usize] = if hot { INCOMING_HOT } else { INCOMING_COLD };
    }

    /// The promotion of the block has been given up.
    pub fn cancel(&mut self, block: Block) {
        self.places[block as usize] = ABSENT;
    }

    /// The block lies in the slot, which was taken for it.
    pub fn settle(&mut self, block: Block, slot: Slot) {
        self.places[block as usize] = slot;
        self.blocks[slot as usize] = block;
        self.used += 1;
    }

    /// The block has left its slot, which is not free yet.
    pub fn remove(&mut self, block: Block) {
        self.places[block as usize] = ABSENT;
        self.used -= 1;
    }

    /// A block found in the metadata lies in a slot that nothing has taken since the start.
    pub fn load(&mut self, block: Block, slot: Slot) {
        debug_assert_eq!(
            self.blocks[slot as usize], UNTOUCHED,
            "slot {slot} is taken"
        );
        self.settle(block, slot);
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
        assert_eq!(taken, [2, 1, 0]);
        slots.release(2);
        slots.release(0);
        assert_eq!(slots.free(), 2);
        let taken: Vec<_> = std::iter::from_fn(|| slots.take()).collect();
        assert_eq!(taken, [0, 2], "the one released last comes first");
    }

    #[test]
    fn a_loaded_slot_is_not_handed_out_until_it_is_released() {
        let mut slots = three_slots();
        slots.load(7, 1);
        assert_eq!(slots.place(7), Place::Resident(1));
        assert_eq!((slots.free(), slots.used()), (2, 1));
        // Released before any other slot was taken: the untouched ones must not yield it twice.
        slots.remove(7);
        slots.release(1);
        let taken: Vec<_> = std::iter::from_fn(|| slots.take()).collect();
        assert_eq!(taken, [1, 2, 0]);
    }
}
