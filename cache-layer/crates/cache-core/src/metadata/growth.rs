//! An origin that has grown since its blocks were cached.
//!
//! Blocks keep their numbers. But the block that the old end cut short goes on behind it now, and in
//! its slot lies whatever was there before.

use std::io;

use super::slots::{Content, Entry};
use super::store::Store;
use crate::layout::Layout;

/// Has the slot of the block that the origin's old end cut short hold nothing that the origin does
/// not. What is written to the slot lies behind the old end: until the new size is on record, it
/// means nothing.
///
/// Sizes of the origin are in bytes; the new one is not less than the old one.
pub(super) fn follow(
    store: &impl Store,
    layout: &Layout,
    (old_bytes, new_bytes): (u64, u64),
    entries: &mut [Entry],
) -> io::Result<()> {
    let cut_at = old_bytes % layout.block_bytes;
    if cut_at == 0 || old_bytes == new_bytes {
        return Ok(());
    }
    let block = old_bytes / layout.block_bytes;
    let is_it = |entry: &Entry| entry.content != Content::Free && u64::from(entry.block) == block;
    let Some(slot) = entries.iter().position(is_it) else {
        return Ok(());
    };
    let entry = &mut entries[slot];
    if entry.content == Content::Clean {
        *entry = Entry::default();
        return Ok(());
    }
    let sub_blocks = layout.sub_blocks();
    let len = |from: u64| (layout.block_bytes - from) as u32;
    let cut = sub_blocks.touched(cut_at, 1) & !entry.missing;
    let behind = cut_at.next_multiple_of(sub_blocks.bytes);
    if behind < layout.block_bytes {
        entry.missing |= sub_blocks.touched(behind, len(behind));
    }
    // It may be dirty up to the old end: the rest of it comes from the origin.
    if cut != 0 && behind > cut_at {
        let end = behind.min(new_bytes - block * layout.block_bytes);
        let mut rest = vec![0; (end - cut_at) as usize];
        store.read_origin_at(&mut rest, old_bytes)?;
        store.write_at(&rest, layout.slot_offset(slot as u32) + cut_at)?;
    }
    Ok(())
}
