//! LIRS: Jiang, Zhang, "LIRS: an efficient low inter-reference recency set replacement policy to
//! improve buffer cache performance", SIGMETRICS 2002, in its names: the stack S orders blocks by
//! their last touch, the queue Q holds the resident blocks that are not LIR. One slot in a hundred is
//! for those, as in the paper.

use cache_core::policy::list::{Links, List};
use cache_core::policy::{Block, Textbook, Touch};

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not there; it may be in S.
    Absent,
    Lir,
    Hir,
}

/// LIRS.
pub struct Lirs {
    states: Vec<State>,
    stack_links: Links,
    stack: List,
    queue_links: Links,
    queue: List,
    lir: u32,
    lir_most: u32,
    slots: u32,
}

impl Lirs {
    /// A block is touched, whether or not it is in S.
    fn raise(&mut self, block: Block) {
        if self.stack_links.is_linked(block) {
            self.stack.move_to_back(&mut self.stack_links, block);
        } else {
            self.stack.push_back(&mut self.stack_links, block);
        }
    }

    /// A block of S becomes LIR, and the LIR block at the bottom gives its place up for it.
    fn promote(&mut self, block: Block) {
        self.states[block as usize] = State::Lir;
        self.lir += 1;
        self.raise(block);
        if self.lir > self.lir_most {
            let bottom = self.stack.pop_front(&mut self.stack_links);
            let bottom = bottom.expect("the LIR blocks are in S");
            self.states[bottom as usize] = State::Hir;
            self.queue.push_back(&mut self.queue_links, bottom);
            self.lir -= 1;
        }
        self.prune();
    }

    /// The bottom of S is always LIR.
    fn prune(&mut self) {
        while let Some(bottom) = self.stack.front() {
            if self.states[bottom as usize] == State::Lir {
                return;
            }
            self.stack.pop_front(&mut self.stack_links);
        }
    }

    fn resident(&mut self, block: Block) {
        let knows = self.lir_most > 0 && self.stack_links.is_linked(block);
        if knows {
            self.queue.remove(&mut self.queue_links, block);
            self.promote(block);
            return;
        }
        self.queue.move_to_back(&mut self.queue_links, block);
        self.raise(block);
        self.prune();
    }

    fn absent(&mut self, block: Block) -> Option<Block> {
        let full = self.lir + self.queue.len() == self.slots;
        let left = full
            .then(|| self.queue.pop_front(&mut self.queue_links))
            .flatten();
        if let Some(left) = left {
            self.states[left as usize] = State::Absent;
        }
        if self.lir < self.lir_most || self.lir_most > 0 && self.stack_links.is_linked(block) {
            self.promote(block);
        } else {
            self.states[block as usize] = State::Hir;
            self.queue.push_back(&mut self.queue_links, block);
            self.raise(block);
            self.prune();
        }
        left
    }
}

impl Lirs {
    /// An empty cache of at least one slot, for blocks below `origin_blocks`.
    pub fn new(origin_blocks: u32, slots: u32) -> Lirs {
        Lirs {
            states: vec![State::Absent; origin_blocks as usize],
            stack_links: Links::new(origin_blocks),
            stack: List::EMPTY,
            queue_links: Links::new(origin_blocks),
            queue: List::EMPTY,
            lir: 0,
            lir_most: slots - (slots / 100).max(1),
            slots,
        }
    }
}

impl Textbook for Lirs {
    fn touch(&mut self, block: Block) -> Touch {
        match self.states[block as usize] {
            State::Lir => {
                self.raise(block);
                self.prune();
                Touch::HIT
            }
            State::Hir => {
                self.resident(block);
                Touch::HIT
            }
            State::Absent => Touch::came(self.absent(block)),
        }
    }
}
