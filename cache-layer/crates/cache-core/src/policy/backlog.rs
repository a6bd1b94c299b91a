//! Work that a policy wants: queued until it is handed out, pending until it is finished.

use std::collections::VecDeque;

use super::{Block, Work};

/// Most pieces of work that may be pending: the kernel's `btracker_create(4096)`.
pub(super) const MOST_PENDING: u32 = 4096;

/// The pending work of one policy.
pub(super) struct Backlog {
    queued: VecDeque<Work>,
    /// The promotion that the request which made it may carry out by itself.
    offered: Option<Work>,
    pending: u32,
    demotions: u32,
}

impl Backlog {
    /// Nothing to do; room for all there may ever be.
    pub fn new() -> Backlog {
        Backlog {
            queued: VecDeque::with_capacity(MOST_PENDING as usize),
            offered: None,
            pending: 0,
            demotions: 0,
        }
    }

    /// Whether no more work may be added.
    pub fn is_full(&self) -> bool {
        self.pending >= MOST_PENDING
    }

    /// Number of demotions that are not finished.
    pub fn demotions(&self) -> u32 {
        self.demotions
    }

    /// Adds work to be handed out.
    pub fn queue(&mut self, work: Work) {
        self.start(work);
        self.queued.push_back(work);
    }

    /// Adds work that its caller hands out by itself.
    pub fn start(&mut self, work: Work) {
        debug_assert!(!self.is_full());
        self.pending += 1;
        self.demotions += u32::from(is_demotion(work));
    }

    /// Offers work that was started to the request that made it, as [`super::Policy::admit`] has
    /// it; what was offered before is queued.
    pub fn offer(&mut self, work: Option<Work>) {
        self.queued
            .extend(std::mem::replace(&mut self.offered, work));
    }

    /// Hands out what was offered to the request for this block.
    pub fn take_offered(&mut self, block: Block) -> Option<Work> {
        self.offered.take_if(|work| work.block() == block)
    }

    /// Hands out what nobody took up, or else what was queued first.
    pub fn oldest(&mut self) -> Option<Work> {
        self.offered.take().or_else(|| self.queued.pop_front())
    }

    /// Hands out what nobody took up, or else what was queued last.
    pub fn newest(&mut self) -> Option<Work> {
        self.offered.take().or_else(|| self.queued.pop_back())
    }

    /// Work that was handed out is over.
    pub fn finish(&mut self, work: Work) {
        self.pending -= 1;
        self.demotions -= u32::from(is_demotion(work));
    }
}

fn is_demotion(work: Work) -> bool {
    matches!(work, Work::Demote { .. })
}
