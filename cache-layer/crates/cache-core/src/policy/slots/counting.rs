//! Other shares of a cache that is in use: who has how much of it is counted block by block, some of
//! them at a time, so that no request waits for all. Until that is done the shares of before hold.
//!
//! What happens to a block that has been counted is counted as well; what happens to others is found
//! when they are come to. Victims that were set aside move to their new owners one by one, once the new
//! shares hold.

use super::{Block, OTHERS, Owners, Place, Slot, Slots};
use crate::policy::shares::Shares;

/// Owners whose blocks are being counted.
pub(super) struct Counting {
    owners: Box<Owners>,
    /// Which of their runs is being counted, and where to go on; all blocks of runs before it are.
    run: usize,
    next: Block,
}

impl Counting {
    fn of(shares: &Shares, slots: u32) -> Counting {
        Counting {
            owners: Box::new(Owners::new(shares.clone(), slots)),
            run: 0,
            next: 0,
        }
    }

    /// The owners, if the block has been counted for one of them.
    pub(super) fn counted(&mut self, block: Block) -> Option<&mut Owners> {
        let is_counted = block < self.next && self.owners.of(block) != OTHERS;
        is_counted.then_some(&mut *self.owners)
    }

    /// The next block to count.
    fn next_block(&mut self) -> Option<Block> {
        while let Some(run) = self.owners.run(self.run) {
            let block = self.next.max(run.start);
            if block < run.end {
                self.next = block + 1;
                return Some(block);
            }
            self.run += 1;
        }
        None
    }
}

impl Slots {
    /// Blocks are to have these owners: [`Slots::count_shares`] has them so.
    pub fn begin_shares(&mut self, shares: &Shares) {
        let is_so = match &self.owners {
            Some(owners) => owners.shares() == shares,
            None => shares.is_empty(),
        };
        let counting = || Box::new(Counting::of(shares, self.capacity()));
        self.counting = (!is_so).then(counting);
    }

    /// Counts so many blocks, or makes room for so many slots; whether the new shares hold from now
    /// on. Victims that were set aside stay so: [`Slots::next_parked_before`] has them.
    pub fn count_shares(&mut self, steps: u32) -> bool {
        let Some(mut counting) = self.counting.take() else {
            return false;
        };
        let mut is_done = false;
        if counting.owners.link(steps, self.capacity()) {
            let mut left = steps;
            while left > 0 && !is_done {
                match counting.next_block() {
                    Some(block) => self.count(&mut counting.owners, block),
                    None => is_done = true,
                }
                left -= 1;
            }
        }
        if !is_done {
            self.counting = Some(counting);
            return false;
        }
        let mut owners = counting.owners;
        owners.count_others(self.used(), self.leaving());
        self.owners_before = self.owners.replace(owners);
        true
    }

    fn count(&self, owners: &mut Owners, block: Block) {
        match self.place(block) {
            Place::Resident(slot) => {
                owners.add(block);
                if self.is_leaving(slot) {
                    owners.leave(block);
                }
            }
            Place::Incoming { .. } => owners.expect(block),
            Place::Absent => {}
        }
    }

    /// A victim that was set aside under the shares of before, and that has to be so under these.
    pub fn next_parked_before(&mut self) -> Option<Slot> {
        let parked = self.owners_before.as_mut()?.pop_parked();
        if parked.is_none() {
            self.owners_before = None;
        }
        parked
    }

    /// Whether there may be such victims.
    pub fn has_parked_before(&self) -> bool {
        self.owners_before.is_some()
    }

    /// Whether all is as the shares want that were set last.
    pub fn is_divided(&self) -> bool {
        self.counting.is_none() && self.owners_before.is_none()
    }
}
