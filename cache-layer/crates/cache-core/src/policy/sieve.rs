//! SIEVE: a queue in order of arrival and a hand that passes over it, sparing what was touched.
//!
//! Zhang, Yang, Yue, Vigfusson, Rashmi: "SIEVE is Simpler than LRU: an Efficient Turn-Key Eviction
//! Algorithm for Web Caches", NSDI 2024, algorithm 1.

use super::contents::Replacement;
use super::list::{Links, List};
use super::slots::Slots;
use super::{Block, Geometry, HOTTEST, Slot};

/// SIEVE: 9 bytes per slot.
pub struct Sieve {
    links: Links,
    queue: List,
    visited: Vec<bool>,
    /// The next candidate; none: the oldest block.
    hand: Option<Slot>,
}

impl Replacement for Sieve {
    fn new(geometry: Geometry) -> Sieve {
        Sieve {
            links: Links::new(geometry.slots),
            queue: List::EMPTY,
            visited: vec![false; geometry.slots as usize],
            hand: None,
        }
    }

    fn touch(&mut self, slot: Slot) {
        self.visited[slot as usize] = true;
    }

    fn recall(&mut self, _block: Block, _slots: &mut Slots) -> bool {
        false
    }

    fn evict(&mut self, _slots: &Slots) -> Slot {
        loop {
            let slot = self.hand.or(self.queue.front()).expect("a candidate");
            self.hand = self.links.newer(slot);
            if !std::mem::replace(&mut self.visited[slot as usize], false) {
                self.queue.remove(&mut self.links, slot);
                return slot;
            }
        }
    }

    fn remove(&mut self, slot: Slot) {
        if self.hand == Some(slot) {
            self.hand = self.links.newer(slot);
        }
        self.queue.remove(&mut self.links, slot);
    }

    fn insert(&mut self, _block: Block, slot: Slot, hot: bool) {
        self.visited[slot as usize] = hot;
        self.queue.push_back(&mut self.links, slot);
    }

    fn next_victim(&self) -> Option<Slot> {
        self.hand.or(self.queue.front())
    }

    fn heat(&self, slot: Slot) -> u8 {
        if self.visited[slot as usize] {
            HOTTEST
        } else {
            0
        }
    }
}
