//! What is in each slot, and how that may change.

use crate::policy::{Block, Mapping, Slot};

/// What a slot holds. Codes are those on the flash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Content {
    /// Nothing.
    #[default]
    Free = 0,
    /// What the origin holds too.
    Clean = 1,
    /// What the origin does not hold yet.
    Dirty = 2,
}

impl Content {
    pub(super) fn from_code(code: u8) -> Option<Content> {
        [Content::Free, Content::Clean, Content::Dirty]
            .into_iter()
            .find(|&content| content as u8 == code)
    }
}

/// One slot: 8 bytes of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) block: Block,
    pub(super) content: Content,
    pub(super) heat: u8,
}

/// What can happen to a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Map(Block),
    Unmap,
    Dirty,
    Clean,
}

impl Entry {
    /// The slot after the change; `None` if the change makes no sense.
    pub(super) fn after(self, change: Change) -> Option<Entry> {
        match (change, self.content) {
            (Change::Map(block), Content::Free) => Some(Entry {
                block,
                content: Content::Clean,
                heat: 0,
            }),
            (Change::Map(_), _) | (Change::Dirty | Change::Clean, Content::Free) => None,
            (Change::Unmap, _) => Some(Entry::default()),
            (Change::Dirty, _) => Some(Entry {
                content: Content::Dirty,
                ..self
            }),
            (Change::Clean, _) => Some(Entry {
                content: Content::Clean,
                ..self
            }),
        }
    }
}

/// The slots in use, in order.
pub(super) fn mappings(entries: &[Entry]) -> Vec<Mapping> {
    let used = (0..)
        .zip(entries)
        .filter(|(_, entry)| entry.content != Content::Free);
    used.map(|(slot, entry): (Slot, _)| Mapping {
        block: entry.block,
        slot,
        dirty: entry.content == Content::Dirty,
        heat: entry.heat,
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_costs_eight_bytes() {
        assert_eq!(size_of::<Entry>(), 8);
    }

    #[test]
    fn what_makes_no_sense_has_no_outcome() {
        let free = Entry::default();
        let used = free.after(Change::Map(7)).unwrap();
        assert_eq!(used.after(Change::Map(7)), None);
        assert_eq!(free.after(Change::Dirty), None);
        assert_eq!(free.after(Change::Clean), None);
        assert_eq!(free.after(Change::Unmap), Some(free));
        assert_eq!(used.after(Change::Unmap), Some(free));
    }
}
