//! Least recently used: the victim is the block that nobody has touched for longest.

use super::contents::Replacement;
use super::list::{Links, List};
use super::slots::Slots;
use super::{Block, Geometry, Slot};

/// LRU: one list in the order of the last touch; 8 bytes per slot.
pub struct Lru {
    links: Links,
    order: List,
}

impl Replacement for Lru {
    fn new(geometry: Geometry) -> Lru {
        Lru {
            links: Links::new(geometry.slots),
            order: List::EMPTY,
        }
    }

    fn touch(&mut self, slot: Slot) {
        self.order.move_to_back(&mut self.links, slot);
    }

    fn recall(&mut self, _block: Block, _slots: &mut Slots) -> bool {
        false
    }

    fn evict(&mut self, _slots: &Slots) -> Slot {
        let oldest = self.order.pop_front(&mut self.links);
        oldest.expect("a candidate")
    }

    fn remove(&mut self, slot: Slot) {
        self.order.remove(&mut self.links, slot);
    }

    fn insert(&mut self, _block: Block, slot: Slot, _hot: bool) {
        self.order.push_back(&mut self.links, slot);
    }

    /// All the same: an order is no measure, so a restart forgets it.
    fn heat(&self, _slot: Slot) -> u8 {
        0
    }

    fn next_victim(&self) -> Option<Slot> {
        self.order.front()
    }

    fn peek(&self, slot: Slot) -> u32 {
        self.links.peek(slot)
    }
}
