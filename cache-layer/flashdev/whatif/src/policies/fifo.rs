//! First in, first out.

use cache_core::policy::list::{Links, List};
use cache_core::policy::{Block, Textbook, Touch};

/// FIFO: a queue in order of arrival.
pub struct Fifo {
    links: Links,
    queue: List,
    slots: u32,
}

impl Fifo {
    /// An empty cache of at least one slot, for blocks below `origin_blocks`.
    pub fn new(origin_blocks: u32, slots: u32) -> Fifo {
        Fifo {
            links: Links::new(origin_blocks),
            queue: List::EMPTY,
            slots,
        }
    }
}

impl Textbook for Fifo {
    fn touch(&mut self, block: Block) -> Touch {
        if self.links.is_linked(block) {
            return Touch::HIT;
        }
        let full = self.queue.len() == self.slots;
        let left = full
            .then(|| self.queue.pop_front(&mut self.links))
            .flatten();
        self.queue.push_back(&mut self.links, block);
        Touch::came(left)
    }
}
