//! S3-FIFO: a small queue that most blocks leave soon, a main queue, and a memory of the former.
//!
//! Yang, Zhang, Qiu, Yue, Rashmi: "FIFO queues are all you need for cache eviction", SOSP 2023,
//! algorithm 1, with the sizes and the threshold of its authors' libCacheSim. As there, the main
//! queue takes what the small one has no room for until the cache has filled once.

use fixedbitset::FixedBitSet;

use super::contents::Replacement;
use super::list::{Links, List};
use super::slots::Slots;
use super::{Block, Geometry, HOTTEST, Slot};

/// Touches after which a block leaves the small queue for the main one.
const PROVEN: i8 = 2;
/// Touches are counted up to here.
const MOST_TOUCHES: i8 = 3;

/// As many of those that left the small queue as this share of the slots have left it lately: one in
/// so many. Simulations of TPC-C in caches of 5 to 75 % of it hardly tell 4 from 10; a working set that
/// has moved is there sooner with 4.
const LATELY_SHARE: u32 = 4;

#[derive(Clone, Copy, Default)]
struct Entry {
    /// Below zero: turns of the main queue for which it was spared without a touch.
    touches: i8,
    in_main: bool,
}

/// S3-FIFO: 21 bytes per slot.
pub struct S3Fifo {
    links: Links,
    entries: Vec<Entry>,
    small: List,
    main: List,
    ghosts: Ghosts,
    small_target: u32,
    main_target: u32,
    /// Whether the cache has ever been full.
    filled: bool,
}

impl S3Fifo {
    fn push(&mut self, slot: Slot, in_main: bool, touches: i8) {
        self.entries[slot as usize] = Entry { touches, in_main };
        let queue = if in_main {
            &mut self.main
        } else {
            &mut self.small
        };
        queue.push_back(&mut self.links, slot);
    }

    /// Number of blocks in the small queue.
    pub(super) fn small(&self) -> u32 {
        self.small.len()
    }

    /// The block that has been in the main queue for longest, once that is as long as it may be.
    pub(super) fn oldest_of_full_main(&self) -> Option<Slot> {
        let is_full = self.filled && self.main.len() >= self.main_target;
        self.main.front().filter(|_| is_full)
    }

    /// For how many turns of the main queue a block was spared without a touch.
    pub(super) fn untouched_turns(&self, slot: Slot) -> i8 {
        -self.entries[slot as usize].touches.min(0)
    }

    /// Recalls a block that left the small queue: whether it did so lately.
    pub(super) fn recall_lately(&mut self, block: Block, slots: &mut Slots) -> Option<bool> {
        self.ghosts.recall(block, slots)
    }

    /// Whether a block of the main queue was touched in its last turn; it then has a touch less, and
    /// stays for another.
    pub(super) fn withstands(&mut self, slot: Slot) -> bool {
        let touches = self.entries[slot as usize].touches;
        if touches > 0 {
            self.spare(slot);
        }
        touches > 0
    }

    /// A block of the main queue stays for another turn.
    pub(super) fn spare(&mut self, slot: Slot) {
        self.main.remove(&mut self.links, slot);
        let touches = self.entries[slot as usize].touches;
        self.push(slot, true, touches.saturating_sub(1));
    }

    /// A block of the main queue is to go next.
    pub(super) fn demote(&mut self, slot: Slot) {
        self.main.remove(&mut self.links, slot);
        self.entries[slot as usize] = Entry::default();
        self.small.push_front(&mut self.links, slot);
    }

    /// The oldest block of the small queue that is not proven; those before it move to main.
    pub(super) fn evict_small(&mut self) -> Option<Slot> {
        while let Some(slot) = self.small.pop_front(&mut self.links) {
            if self.entries[slot as usize].touches < PROVEN {
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
                ..=0 => return Some(slot),
                touches => self.push(slot, true, touches - 1),
            }
        }
        None
    }
}

/// Blocks that have left the small queue: as many as make up the main queue, at 12 bytes each. Which
/// number a block has is noted in its place, where its slot would be.
struct Ghosts {
    links: Links,
    /// Those that left lately, the oldest first, …
    late: List,
    /// … and those before them.
    early: List,
    /// Numbers that are not in use.
    free: List,
    /// By number.
    blocks: Vec<Block>,
    /// By number: whether it is among the early ones.
    is_early: FixedBitSet,
    late_most: u32,
}

impl Ghosts {
    fn new(slots: u32) -> Ghosts {
        let most = (u64::from(slots) * 9 / 10) as u32;
        let most = most.min(Slots::most_memories(slots));
        let (mut links, mut free) = (Links::new(most), List::EMPTY);
        (0..most).for_each(|number| free.push_back(&mut links, number));
        Ghosts {
            links,
            late: List::EMPTY,
            early: List::EMPTY,
            free,
            blocks: vec![0; most as usize],
            is_early: FixedBitSet::with_capacity(most as usize),
            late_most: slots / LATELY_SHARE,
        }
    }

    fn remember(&mut self, block: Block, slots: &mut Slots) {
        let number = self.free.pop_front(&mut self.links).or_else(|| {
            let oldest = self.early.pop_front(&mut self.links);
            let oldest = oldest.or_else(|| self.late.pop_front(&mut self.links))?;
            slots.forget(self.blocks[oldest as usize]);
            Some(oldest)
        });
        // A cache of a single slot remembers nothing.
        let Some(number) = number else { return };
        self.late.push_back(&mut self.links, number);
        self.is_early.set(number as usize, false);
        self.blocks[number as usize] = block;
        slots.remember(block, number);
        self.grow_old();
    }

    fn grow_old(&mut self) {
        if self.late.len() <= self.late_most {
            return;
        }
        if let Some(number) = self.late.pop_front(&mut self.links) {
            self.early.push_back(&mut self.links, number);
            self.is_early.insert(number as usize);
        }
    }

    /// Forgets a block; whether it had left lately, if it was remembered.
    fn recall(&mut self, block: Block, slots: &mut Slots) -> Option<bool> {
        let number = slots.memory(block)?;
        let is_early = self.is_early[number as usize];
        let list = if is_early {
            &mut self.early
        } else {
            &mut self.late
        };
        list.remove(&mut self.links, number);
        self.free.push_back(&mut self.links, number);
        slots.forget(block);
        Some(!is_early)
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
            ghosts: Ghosts::new(geometry.slots),
            small_target,
            main_target: geometry.slots.saturating_sub(small_target),
            filled: false,
        }
    }

    fn touch(&mut self, slot: Slot) {
        let touches = &mut self.entries[slot as usize].touches;
        *touches = ((*touches).max(0) + 1).min(MOST_TOUCHES);
    }

    fn recall(&mut self, block: Block, slots: &mut Slots) -> bool {
        self.recall_lately(block, slots).is_some()
    }

    fn evict(&mut self, _slots: &Slots) -> Slot {
        self.filled = true;
        let from_small = if self.main.len() > self.main_target {
            None
        } else {
            self.evict_small()
        };
        let victim = from_small.or_else(|| self.evict_main());
        // Above its target, main may be all there is; at it, small may be.
        victim.expect("a candidate")
    }

    fn remove(&mut self, slot: Slot) {
        let queue = match self.entries[slot as usize].in_main {
            true => &mut self.main,
            false => &mut self.small,
        };
        queue.remove(&mut self.links, slot);
    }

    /// What leaves the small queue is remembered.
    fn gone(&mut self, block: Block, slot: Slot, slots: &mut Slots) {
        if !self.entries[slot as usize].in_main {
            self.ghosts.remember(block, slots);
        }
    }

    fn insert(&mut self, _block: Block, slot: Slot, hot: bool) {
        let overflows = !self.filled && self.small.len() >= self.small_target;
        self.push(slot, hot || overflows, 0);
    }

    fn next_victim(&self) -> Option<Slot> {
        self.small.front()
    }

    /// In quarters: a block in the small queue by its touches, one in main at least half.
    fn heat(&self, slot: Slot) -> u8 {
        let entry = self.entries[slot as usize];
        let base = if entry.in_main { HOTTEST / 2 + 1 } else { 0 };
        base + entry.touches.max(0) as u8 * 8
    }
}
