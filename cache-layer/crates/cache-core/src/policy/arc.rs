//! ARC: two LRU lists, of blocks touched once and of blocks touched again, and their memories.
//!
//! Megiddo, Modha: "ARC: A Self-Tuning, Low Overhead Replacement Cache", FAST 2003, figure 4, in
//! its names: T1 and T2 hold the resident blocks, B1 and B2 what was evicted from them, and p is
//! the size that T1 should have, a real number.

use super::by_block::ByBlock;
use super::contents::Replacement;
use super::list::{Links, List, NONE};
use super::slots::Slots;
use super::{Block, Geometry, HOTTEST, Slot};

/// Where the block last recalled was remembered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Recalled {
    Nowhere,
    B1,
    B2,
}

/// What was evicted, by numbers of its own: as many as are remembered at a time.
struct Ghosts {
    numbers: ByBlock,
    blocks: Vec<Block>,
    in_b2: Vec<bool>,
    links: Links,
    unused: Vec<u32>,
    b1: List,
    b2: List,
}

impl Ghosts {
    fn new(geometry: Geometry) -> Ghosts {
        Ghosts {
            numbers: ByBlock::new(geometry.origin_blocks, geometry.slots),
            blocks: Vec::new(),
            in_b2: Vec::new(),
            links: Links::new(0),
            unused: Vec::new(),
            b1: List::EMPTY,
            b2: List::EMPTY,
        }
    }

    fn of(&self, block: Block) -> Recalled {
        match self.numbers.get(block) {
            NONE => Recalled::Nowhere,
            ghost if self.in_b2[ghost as usize] => Recalled::B2,
            _ => Recalled::B1,
        }
    }

    fn remember(&mut self, block: Block, in_b2: bool) {
        let ghost = self.unused.pop().unwrap_or_else(|| {
            let ghost = self.blocks.len() as u32;
            self.blocks.push(block);
            self.in_b2.push(in_b2);
            self.links.grow(1, ghost + 1);
            ghost
        });
        self.numbers.set(block, ghost);
        (self.blocks[ghost as usize], self.in_b2[ghost as usize]) = (block, in_b2);
        let memory = if in_b2 { &mut self.b2 } else { &mut self.b1 };
        memory.push_back(&mut self.links, ghost);
    }

    fn forget(&mut self, block: Block) {
        let memory = match self.of(block) {
            Recalled::Nowhere => return,
            Recalled::B1 => &mut self.b1,
            Recalled::B2 => &mut self.b2,
        };
        let ghost = self.numbers.get(block);
        memory.remove(&mut self.links, ghost);
        self.release(ghost);
    }

    /// Forgets the oldest; whether there was one.
    fn forget_oldest(&mut self, in_b2: bool) -> bool {
        let memory = if in_b2 { &mut self.b2 } else { &mut self.b1 };
        let oldest = memory.pop_front(&mut self.links);
        oldest.map(|ghost| self.release(ghost)).is_some()
    }

    fn release(&mut self, ghost: u32) {
        self.numbers.set(self.blocks[ghost as usize], NONE);
        self.unused.push(ghost);
    }
}

/// ARC: 9 bytes per slot, and 17 and what [`ByBlock`] takes for each block that is remembered.
pub struct AdaptiveReplacement {
    capacity: u32,
    p: f64,
    links: Links,
    in_t2: Vec<bool>,
    t1: List,
    t2: List,
    ghosts: Ghosts,
    recalled: Recalled,
}

impl AdaptiveReplacement {
    /// Moves the target towards the list whose memory has just proved useful.
    fn adapt(&mut self) {
        let (b1, b2) = (&self.ghosts.b1, &self.ghosts.b2);
        let (b1, b2) = (f64::from(b1.len()), f64::from(b2.len()));
        match self.recalled {
            Recalled::Nowhere => {}
            Recalled::B1 => self.p = (self.p + (b2 / b1).max(1.0)).min(self.capacity.into()),
            Recalled::B2 => self.p = (self.p - (b1 / b2).max(1.0)).max(0.0),
        }
    }

    /// Case IV of the figure: keeps T1 + B1 within the capacity and all four lists within twice
    /// that. The loops run once unless pending work has let the lists grow.
    fn trim(&mut self) {
        let ghosts = &mut self.ghosts;
        if self.t1.len() + ghosts.b1.len() >= self.capacity {
            while self.t1.len() + ghosts.b1.len() >= self.capacity && ghosts.forget_oldest(false) {}
            return;
        }
        while self.t1.len() + self.t2.len() + ghosts.b1.len() + ghosts.b2.len()
            >= self.capacity.saturating_mul(2)
            && ghosts.forget_oldest(true)
        {}
    }

    /// `REPLACE` of the figure.
    fn replace(&mut self, slots: &Slots) -> Slot {
        let t1 = f64::from(self.t1.len());
        let above = t1 > self.p || (t1 == self.p && self.recalled == Recalled::B2);
        // Either list may be empty while blocks are on their way out: then it is the other's turn.
        if t1 > 0.0 && (above || self.t2.is_empty()) {
            let slot = self.t1.pop_front(&mut self.links).expect("not empty");
            self.ghosts.remember(slots.block(slot), false);
            return slot;
        }
        let slot = self.t2.pop_front(&mut self.links).expect("a candidate");
        self.ghosts.remember(slots.block(slot), true);
        slot
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
            ghosts: Ghosts::new(geometry),
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
        self.recalled = self.ghosts.of(block);
        self.adapt();
        self.ghosts.forget(block);
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
        self.ghosts.forget(block);
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
