//! ARC: two LRU lists, of blocks touched once and of blocks touched again, and their memories.
//!
//! Megiddo, Modha: "ARC: A Self-Tuning, Low Overhead Replacement Cache", FAST 2003, figure 4, in
//! its names: T1 and T2 hold the resident blocks, B1 and B2 what was evicted from them, and p is
//! the size that T1 should have, a real number.

use super::contents::Replacement;
use super::list::{Links, List};
use super::slots::Slots;
use super::{Block, Geometry, HOTTEST, Slot};

/// Where the block last recalled was remembered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Recalled {
    Nowhere,
    B1,
    B2,
}

/// ARC: 9 bytes per slot and per block of the origin.
pub struct AdaptiveReplacement {
    capacity: u32,
    p: f64,
    links: Links,
    in_t2: Vec<bool>,
    t1: List,
    t2: List,
    ghost_links: Links,
    in_b2: Vec<bool>,
    b1: List,
    b2: List,
    recalled: Recalled,
}

impl AdaptiveReplacement {
    /// Moves the target towards the list whose memory has just proved useful.
    fn adapt(&mut self) {
        let (b1, b2) = (f64::from(self.b1.len()), f64::from(self.b2.len()));
        match self.recalled {
            Recalled::Nowhere => {}
            Recalled::B1 => self.p = (self.p + (b2 / b1).max(1.0)).min(self.capacity.into()),
            Recalled::B2 => self.p = (self.p - (b1 / b2).max(1.0)).max(0.0),
        }
    }

    fn forget(&mut self, block: Block) {
        if !self.ghost_links.is_linked(block) {
            return;
        }
        let memory = if self.in_b2[block as usize] {
            &mut self.b2
        } else {
            &mut self.b1
        };
        memory.remove(&mut self.ghost_links, block);
    }

    /// Case IV of the figure: keeps T1 + B1 within the capacity and all four lists within twice
    /// that. The loops run once unless pending work has let the lists grow.
    fn trim(&mut self) {
        let ghost_links = &mut self.ghost_links;
        if self.t1.len() + self.b1.len() >= self.capacity {
            while self.t1.len() + self.b1.len() >= self.capacity
                && self.b1.pop_front(ghost_links).is_some()
            {}
            return;
        }
        while self.t1.len() + self.t2.len() + self.b1.len() + self.b2.len()
            >= self.capacity.saturating_mul(2)
            && self.b2.pop_front(ghost_links).is_some()
        {}
    }

    /// `REPLACE` of the figure.
    fn replace(&mut self, slots: &Slots) -> Slot {
        let t1 = f64::from(self.t1.len());
        let above = t1 > self.p || (t1 == self.p && self.recalled == Recalled::B2);
        // Either list may be empty while blocks are on their way out: then it is the other's turn.
        if t1 > 0.0 && (above || self.t2.is_empty()) {
            let slot = self.t1.pop_front(&mut self.links).expect("not empty");
            self.remember(slots.block(slot), false);
            return slot;
        }
        let slot = self.t2.pop_front(&mut self.links).expect("a candidate");
        self.remember(slots.block(slot), true);
        slot
    }

    fn remember(&mut self, block: Block, in_b2: bool) {
        self.in_b2[block as usize] = in_b2;
        let memory = if in_b2 { &mut self.b2 } else { &mut self.b1 };
        memory.push_back(&mut self.ghost_links, block);
    }
}

impl Replacement for AdaptiveReplacement {
    fn new(geometry: Geometry) -> AdaptiveReplacement {
        AdaptiveReplacement {
            capacity: geometry.slots,
            p: 0.0,
            links: Links::new(geometry.slots),
            in_t2: vec![false; geometry.slots as usize],
            t1: List::EMPTY,
            t2: List::EMPTY,
            ghost_links: Links::new(geometry.origin_blocks),
            in_b2: vec![false; geometry.origin_blocks as usize],
            b1: List::EMPTY,
            b2: List::EMPTY,
            recalled: Recalled::Nowhere,
        }
    }

    fn touch(&mut self, slot: Slot) {
        if std::mem::replace(&mut self.in_t2[slot as usize], true) {
            self.t2.move_to_back(&mut self.links, slot);
        } else {
            self.t1.remove(&mut self.links, slot);
            self.t2.push_back(&mut self.links, slot);
        }
    }

    fn recall(&mut self, block: Block, _slots: &mut Slots) -> bool {
        self.recalled = match self.ghost_links.is_linked(block) {
            false => Recalled::Nowhere,
            true if self.in_b2[block as usize] => Recalled::B2,
            true => Recalled::B1,
        };
        self.adapt();
        self.forget(block);
        self.recalled != Recalled::Nowhere
    }

    fn evict(&mut self, slots: &Slots) -> Slot {
        if self.recalled != Recalled::Nowhere {
            return self.replace(slots);
        }
        if self.t1.len() >= self.capacity {
            // T1 alone fills the cache, B1 is empty: the block leaves without being remembered.
            return self.t1.pop_front(&mut self.links).expect("not empty");
        }
        self.trim();
        self.replace(slots)
    }

    fn remove(&mut self, slot: Slot) {
        let list = match self.in_t2[slot as usize] {
            true => &mut self.t2,
            false => &mut self.t1,
        };
        list.remove(&mut self.links, slot);
    }

    fn insert(&mut self, block: Block, slot: Slot, hot: bool) {
        self.forget(block);
        self.in_t2[slot as usize] = hot;
        let list = if hot { &mut self.t2 } else { &mut self.t1 };
        list.push_back(&mut self.links, slot);
    }

    fn heat(&self, slot: Slot) -> u8 {
        if self.in_t2[slot as usize] {
            HOTTEST
        } else {
            0
        }
    }
}
