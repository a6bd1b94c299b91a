//! What is in each slot, and how that may change.

use crate::layout::Mask;
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
    /// Sub-blocks that are not in the slot; the origin has them.
    pub(super) missing: Mask,
}

/// What can happen to a slot.
///
/// `Map` and `Present` come after the bytes were written to the slot; `Unmap` before other bytes are;
/// `Dirty` before the first write into a clean slot; `Clean`, and `Unmap` of a dirty slot, after its
/// bytes were written to the origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The block is in the slot now.
    Map {
        /// Which block.
        block: Block,
        /// What it is worth to the policy.
        heat: u8,
        /// Sub-blocks that are not there.
        missing: Mask,
        /// The origin does not hold what the slot holds.
        dirty: bool,
    },
    /// These sub-blocks are in the slot now.
    Present(Mask),
    /// The slot is free.
    Unmap,
    /// The slot is about to hold what the origin does not.
    Dirty,
    /// The origin holds what the slot holds.
    Clean,
}

impl Entry {
    /// A slot that holds what the origin does.
    pub(super) fn clean(mapping: &Mapping) -> Entry {
        Entry {
            block: mapping.block,
            content: Content::Clean,
            heat: mapping.heat,
            missing: mapping.missing,
        }
    }

    /// The slot after the change; `None` if the change makes no sense.
    pub(super) fn after(self, change: Change) -> Option<Entry> {
        match (change, self.content) {
            (
                Change::Map {
                    block,
                    heat,
                    missing,
                    dirty,
                },
                Content::Free,
            ) => Some(Entry {
                block,
                content: if dirty {
                    Content::Dirty
                } else {
                    Content::Clean
                },
                heat,
                missing,
            }),
            (Change::Map { .. }, _) => None,
            (Change::Dirty | Change::Clean | Change::Present(_), Content::Free) => None,
            (Change::Present(mask), _) => Some(Entry {
                missing: self.missing & !mask,
                ..self
            }),
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
        missing: entry.missing,
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
    fn invalid_transitions_are_refused() {
        let free = Entry::default();
        let map = Change::Map {
            block: 7,
            heat: 0,
            missing: 0b110,
            dirty: false,
        };
        let used = free.after(map).unwrap();
        assert_eq!(used.after(map), None);
        assert_eq!(free.after(Change::Present(1)), None);
        assert_eq!(used.after(Change::Present(0b11)).unwrap().missing, 0b100);
        assert_eq!(free.after(Change::Dirty), None);
        assert_eq!(free.after(Change::Clean), None);
        assert_eq!(free.after(Change::Unmap), Some(free));
        assert_eq!(used.after(Change::Unmap), Some(free));
    }
}
