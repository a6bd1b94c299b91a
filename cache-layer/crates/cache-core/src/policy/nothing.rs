//! No cache: what the origin does alone, to compare with. Not for a cache that holds something.

use super::shares::{Shares, Usage};
use super::{Access, Block, Geometry, Mapping, Policy, Slot, Work};
use virtual_time::Nanos;

/// Caches nothing.
pub struct Nothing {
    slots: u32,
}

impl Nothing {
    /// A cache that stays empty.
    pub fn new(geometry: Geometry) -> Nothing {
        Nothing {
            slots: geometry.slots,
        }
    }
}

impl Policy for Nothing {
    fn access(&mut self, _access: Access) -> Option<Slot> {
        None
    }

    fn resident(&self, _block: Block) -> Option<Slot> {
        None
    }

    fn next_work(&mut self, _now: Nanos, _idle: bool) -> Option<Work> {
        None
    }

    fn finished(&mut self, work: Work, _success: bool) {
        unreachable!("{work:?} was never handed out");
    }

    fn make_way(&mut self, _block: Block, _wanted: Block) -> bool {
        false
    }

    fn owner(&self, _block: Block) -> Option<usize> {
        None
    }

    fn discard(&mut self, _block: Block) -> Option<Work> {
        None
    }

    fn leaving(&self) -> u32 {
        0
    }

    fn insert(&mut self, _block: Block, _heat: u8) -> Option<Work> {
        None
    }

    fn load(&mut self, mapping: Mapping) {
        unreachable!("{mapping:?} would not be found any more");
    }

    fn set_dirty(&mut self, _slot: Slot, _dirty: bool) {}

    fn heat(&self, _slot: Slot) -> u8 {
        0
    }

    fn begin_shares(&mut self, _shares: &Shares) {}

    fn continue_shares(&mut self, _steps: u32) -> bool {
        true
    }

    fn usage(&self) -> Usage {
        Usage::default()
    }

    fn used(&self) -> u32 {
        0
    }

    fn capacity(&self) -> u32 {
        self.slots
    }
}
