//! Who is using the slots: requests under way. Few slots are in use at a time, so only those take
//! memory.

use crate::number_map::NumberMap;
use crate::policy::Slot;

/// Requests under way, by the slot that they use.
#[derive(Debug, Default)]
pub(super) struct SlotUsers(NumberMap<Users>);

#[derive(Clone, Copy, Debug, Default)]
struct Users {
    readers: u32,
    writers: u32,
}

impl SlotUsers {
    /// How many requests read a slot.
    pub(super) fn readers(&self, slot: Slot) -> u32 {
        self.0.get(&slot).map_or(0, |users| users.readers)
    }

    /// How many write to it.
    pub(super) fn writers(&self, slot: Slot) -> u32 {
        self.0.get(&slot).map_or(0, |users| users.writers)
    }

    /// One more reads it.
    pub(super) fn enter_read(&mut self, slot: Slot) {
        self.0.entry(slot).or_default().readers += 1;
    }

    /// One more writes to it.
    pub(super) fn enter_write(&mut self, slot: Slot) {
        self.0.entry(slot).or_default().writers += 1;
    }

    /// One is through with reading; whether nobody reads it any more.
    pub(super) fn leave_read(&mut self, slot: Slot) -> bool {
        self.leave(slot, |users| &mut users.readers)
    }

    /// One is through with writing; whether nobody writes to it any more.
    pub(super) fn leave_write(&mut self, slot: Slot) -> bool {
        self.leave(slot, |users| &mut users.writers)
    }

    fn leave(&mut self, slot: Slot, which: fn(&mut Users) -> &mut u32) -> bool {
        let users = self.0.get_mut(&slot).expect("it is in use");
        *which(users) -= 1;
        let was_last = *which(users) == 0;
        if users.readers + users.writers == 0 {
            self.0.remove(&slot);
        }
        was_last
    }
}
