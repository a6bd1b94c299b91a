//! The model: what the slots hold, in the simplest terms, and random calls that make sense.

use super::*;
pub(super) use crate::dice::Dice;

/// A call of the interface.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    Map(Slot, Block),
    Unmap(Slot),
    Dirty(Slot),
    Clean(Slot),
    Commit,
}

impl Call {
    pub(super) fn make<S: Store>(self, metadata: &Metadata<S>) -> io::Result<()> {
        match self {
            Call::Map(slot, block) => metadata.map(slot, block),
            Call::Unmap(slot) => metadata.unmap(slot),
            Call::Dirty(slot) => metadata.dirty(slot),
            Call::Clean(slot) => metadata.clean(slot),
            Call::Commit => metadata.commit(),
        }
    }
}

/// Block and whether it is dirty, per slot.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Model(pub(super) Vec<Option<(Block, bool)>>);

impl Model {
    pub(super) fn empty(layout: &Layout) -> Model {
        Model(vec![None; layout.slots() as usize])
    }

    pub(super) fn of(recovered: &Recovered, layout: &Layout) -> Model {
        let mut model = Model::empty(layout);
        for mapping in &recovered.mappings {
            model.0[mapping.slot as usize] = Some((mapping.block, mapping.dirty));
        }
        model
    }

    pub(super) fn random_call(&self, dice: &mut Dice) -> Call {
        let slot = dice.below(self.0.len() as u64) as Slot;
        if self.0[slot as usize].is_none() {
            // There are more blocks than slots.
            let mut block = dice.below(u64::from(BLOCKS)) as Block;
            while self.0.iter().flatten().any(|held| held.0 == block) {
                block = (block + 1) % BLOCKS;
            }
            return Call::Map(slot, block);
        }
        match dice.below(16) {
            0..5 => Call::Unmap(slot),
            5..10 => Call::Dirty(slot),
            10..15 => Call::Clean(slot),
            _ => Call::Commit,
        }
    }

    pub(super) fn apply(&mut self, call: Call) {
        match call {
            Call::Map(slot, block) => self.0[slot as usize] = Some((block, false)),
            Call::Unmap(slot) => self.0[slot as usize] = None,
            Call::Dirty(slot) => self.set_dirty(slot, true),
            Call::Clean(slot) => self.set_dirty(slot, false),
            Call::Commit => {}
        }
    }

    fn set_dirty(&mut self, slot: Slot, dirty: bool) {
        if let Some((_, is_dirty)) = &mut self.0[slot as usize] {
            *is_dirty = dirty;
        }
    }
}
