//! CLOCK, or second chance: Corbato, "A paging experiment with the Multics system", 1968.

use cache_core::policy::list::{Links, List};
use cache_core::policy::{Block, Textbook, Touch};

/// CLOCK: FIFO, but what was touched since the hand passed goes round once more.
pub struct Clock {
    links: Links,
    ring: List,
    used: Vec<bool>,
    slots: u32,
}

impl Clock {
    /// An empty cache of at least one slot, for blocks below `origin_blocks`.
    pub fn new(origin_blocks: u32, slots: u32) -> Clock {
        Clock {
            links: Links::new(origin_blocks),
            ring: List::EMPTY,
            used: vec![false; origin_blocks as usize],
            slots,
        }
    }
}

impl Textbook for Clock {
    fn touch(&mut self, block: Block) -> Touch {
        if self.links.is_linked(block) {
            self.used[block as usize] = true;
            return Touch::HIT;
        }
        let mut left = None;
        while self.ring.len() == self.slots {
            let oldest = self.ring.pop_front(&mut self.links).expect("a full ring");
            if std::mem::replace(&mut self.used[oldest as usize], false) {
                self.ring.push_back(&mut self.links, oldest);
            } else {
                left = Some(oldest);
            }
        }
        self.ring.push_back(&mut self.links, block);
        Touch::came(left)
    }
}
