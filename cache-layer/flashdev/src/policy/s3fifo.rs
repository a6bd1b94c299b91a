//! S3-FIFO: a small queue that most blocks leave soon, a main queue, and a memory of the former.
//!
//! Yang, Zhang, Qiu, Yue, Rashmi: "FIFO queues are all you need for cache eviction", SOSP 2023,
//! algorithm 1, with the sizes and the threshold of its authors' libCacheSim. As there, the main
//! queue takes what the small one has no room for until the cache has filled once.

use super::demand::Replacement;
use super::list::{Links, List};
use super::slots::Slots;
use super::{Block, Geometry, HOTTEST, Slot};

/// Touches after which a block leaves the small queue for the main one.
const PROVEN: u8 = 2;
/// Touches are counted up to here.
const MOST_TOUCHES: u8 = 3;

#[derive(Clone, Copy, Default)]
struct Entry {
    touches: u8,
    in_main: bool,
}

/// S3-FIFO: 10 bytes per slot, 8 per block of the origin.
pub struct S3Fifo {
    links: Links,
    entries: Vec<Entry>,
    small: List,
    main: List,
    ghost_links: Links,
    ghosts: List,
    small_target: u32,
    main_target: u32,
    most_ghosts: u32,
    /// Whether the cache has ever been full.
    filled: bool,
}

impl S3Fifo {
    fn push(&mut self, slot: Slot, in_main: bool, touches: u8) {
        self.entries[slot as usize] = Entry { touches, in_main };
        let queue = if in_main {
            &mut self.main
        } else {
            &mut self.small
        };
        queue.push_back(&mut self.links, slot);
    }

    /// The oldest block of the small queue that is not proven; those before it move to main.
    fn evict_small(&mut self, slots: &Slots) -> Option<Slot> {
        while let Some(slot) = self.small.pop_front(&mut self.links) {
            if self.entries[slot as usize].touches < PROVEN {
                self.remember(slots.block(slot));
                return Some(slot);
            }
            self.push(slot, true, 0);
        }
        None
    }

    /// The oldest block of the main queue without a touch left; those before it lose one.
    fn evict_main(&mut self) -> Option<Slot> {
        while let Some(slot) = self.main.pop_front(&mut self.links) {
            match self.entries[slot as usize].touches {
                0 => return Some(slot),
                touches => self.push(slot, true, touches - 1),
            }
        }
        None
    }

    fn remember(&mut self, block: Block) {
        if self.ghosts.len() >= self.most_ghosts {
            self.ghosts.pop_front(&mut self.ghost_links);
        }
        if self.most_ghosts > 0 {
            self.ghosts.push_back(&mut self.ghost_links, block);
        }
    }

    fn forget(&mut self, block: Block) -> bool {
        let remembered = self.ghost_links.is_linked(block);
        if remembered {
            self.ghosts.remove(&mut self.ghost_links, block);
        }
        remembered
    }
}

impl Replacement for S3Fifo {
    fn new(geometry: Geometry) -> S3Fifo {
        let small_target = (geometry.slots / 10).max(1);
        S3Fifo {
            links: Links::new(geometry.slots),
            entries: vec![Entry::default(); geometry.slots as usize],
            small: List::EMPTY,
            main: List::EMPTY,
            ghost_links: Links::new(geometry.origin_blocks),
            ghosts: List::EMPTY,
            small_target,
            main_target: geometry.slots.saturating_sub(small_target),
            most_ghosts: (u64::from(geometry.slots) * 9 / 10) as u32,
            filled: false,
        }
    }

    fn touch(&mut self, slot: Slot) {
        let touches = &mut self.entries[slot as usize].touches;
        *touches = (*touches + 1).min(MOST_TOUCHES);
    }

    fn recall(&mut self, block: Block) -> bool {
        self.forget(block)
    }

    fn evict(&mut self, slots: &Slots) -> Slot {
        self.filled = true;
        let from_small = if self.main.len() > self.main_target {
            None
        } else {
            self.evict_small(slots)
        };
        let victim = from_small.or_else(|| self.evict_main());
        // Above its target, main may be all there is; at it, small may be.
        victim.expect("a candidate")
    }

    fn insert(&mut self, block: Block, slot: Slot, hot: bool) {
        self.forget(block);
        let overflows = !self.filled && self.small.len() >= self.small_target;
        self.push(slot, hot || overflows, 0);
    }

    /// In quarters: a block in the small queue by its touches, one in main at least half.
    fn heat(&self, slot: Slot) -> u8 {
        let entry = self.entries[slot as usize];
        let base = if entry.in_main { HOTTEST / 2 + 1 } else { 0 };
        base + entry.touches * 8
    }
}
