//! 2Q: Johnson, Shasha, "2Q: A low overhead high performance buffer management replacement
//! algorithm", VLDB 1994: the full version, in its names, with a quarter of the slots for A1in and a
//! memory of half as many blocks as there are slots for A1out.

use cache_core::policy::list::{Links, List};
use cache_core::policy::{Block, Textbook, Touch};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Queue {
    None,
    A1In,
    A1Out,
    Am,
}

/// 2Q.
pub struct TwoQueues {
    links: Links,
    queues: Vec<Queue>,
    a1_in: List,
    a1_out: List,
    am: List,
    slots: u32,
    k_in: u32,
    k_out: u32,
}

impl TwoQueues {
    fn push(&mut self, block: Block, queue: Queue) {
        self.queues[block as usize] = queue;
        let list = match queue {
            Queue::A1In => &mut self.a1_in,
            Queue::A1Out => &mut self.a1_out,
            Queue::Am | Queue::None => &mut self.am,
        };
        list.push_back(&mut self.links, block);
    }

    /// `reclaimfor` of the paper.
    fn reclaim(&mut self) -> Option<Block> {
        if self.a1_in.len() + self.am.len() < self.slots {
            return None;
        }
        if !self.am.is_empty() && self.a1_in.len() <= self.k_in {
            let left = self.am.pop_front(&mut self.links)?;
            self.queues[left as usize] = Queue::None;
            return Some(left);
        }
        let left = self.a1_in.pop_front(&mut self.links)?;
        self.push(left, Queue::A1Out);
        if self.a1_out.len() > self.k_out {
            let forgotten = self.a1_out.pop_front(&mut self.links)?;
            self.queues[forgotten as usize] = Queue::None;
        }
        Some(left)
    }
}

impl TwoQueues {
    /// An empty cache of at least one slot, for blocks below `origin_blocks`.
    pub fn new(origin_blocks: u32, slots: u32) -> TwoQueues {
        TwoQueues {
            links: Links::new(origin_blocks),
            queues: vec![Queue::None; origin_blocks as usize],
            a1_in: List::EMPTY,
            a1_out: List::EMPTY,
            am: List::EMPTY,
            slots,
            k_in: (slots / 4).max(1),
            k_out: (slots / 2).max(1),
        }
    }
}

impl Textbook for TwoQueues {
    fn touch(&mut self, block: Block) -> Touch {
        match self.queues[block as usize] {
            Queue::Am => {
                self.am.move_to_back(&mut self.links, block);
                Touch::HIT
            }
            Queue::A1In => Touch::HIT,
            Queue::A1Out => {
                self.a1_out.remove(&mut self.links, block);
                self.queues[block as usize] = Queue::None;
                let left = self.reclaim();
                self.push(block, Queue::Am);
                Touch::came(left)
            }
            Queue::None => {
                let left = self.reclaim();
                self.push(block, Queue::A1In);
                Touch::came(left)
            }
        }
    }
}
