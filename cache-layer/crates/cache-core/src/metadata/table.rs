//! The table: every slot at one moment, in pages that each prove themselves.
//!
//! A page is 510 entries of 8 bytes (block, content, heat, the sub-blocks that are missing), the generation,
//! the page's number and the checksum. The generation keeps pages of an older table, which lay in
//! the same place, from passing for those of this one.

use std::io;

use super::slots::{Content, Entry};
use super::store::{FlashStore, is_sealed, seal, take};
use crate::layout::{ENTRIES_PER_PAGE, ENTRY_BYTES, Layout, PAGE_BYTES};

pub(super) type Page = [u8; PAGE_BYTES as usize];

/// Writes the table of this generation.
pub(super) fn write(
    store: &impl FlashStore,
    layout: &Layout,
    generation: u64,
    entries: &[Entry],
) -> io::Result<()> {
    let start = layout.table_offset(generation);
    for (number, chunk) in (0u32..).zip(entries.chunks(ENTRIES_PER_PAGE)) {
        let page = encode(generation, number, chunk);
        store.write_at(&page, start + u64::from(number) * PAGE_BYTES)?;
    }
    Ok(())
}

/// Reads the table of this generation; `None` if a page of it is damaged.
pub(super) fn read(
    store: &impl FlashStore,
    layout: &Layout,
    generation: u64,
) -> io::Result<Option<Vec<Entry>>> {
    let start = layout.table_offset(generation);
    let mut entries = vec![Entry::default(); layout.slots() as usize];
    for (number, chunk) in (0u32..).zip(entries.chunks_mut(ENTRIES_PER_PAGE)) {
        let mut page: Page = [0; PAGE_BYTES as usize];
        store.read_at(&mut page, start + u64::from(number) * PAGE_BYTES)?;
        if decode(&page, generation, number, chunk).is_none() {
            return Ok(None);
        }
    }
    Ok(Some(entries))
}

/// The page of this number, if it can be read.
pub(super) fn read_page(
    store: &impl FlashStore,
    layout: &Layout,
    generation: u64,
    number: u32,
) -> Option<Page> {
    let mut page: Page = [0; PAGE_BYTES as usize];
    let offset = layout.table_offset(generation) + u64::from(number) * PAGE_BYTES;
    store.read_at(&mut page, offset).ok().map(|()| page)
}

/// Which generation's table a page is of, if it is whole.
pub(super) fn generation_of(page: &Page) -> Option<u64> {
    let mut trailer = &page[ENTRIES_PER_PAGE * ENTRY_BYTES..];
    is_sealed(page).then(|| u64::from_le_bytes(take(&mut trailer)))
}

/// One page of the table of this generation.
pub(super) fn encode(generation: u64, number: u32, entries: &[Entry]) -> Page {
    let mut page: Page = [0; PAGE_BYTES as usize];
    for (bytes, entry) in page.chunks_exact_mut(ENTRY_BYTES).zip(entries) {
        bytes[..4].copy_from_slice(&entry.block.to_le_bytes());
        bytes[4] = entry.content as u8;
        bytes[5] = entry.heat;
        bytes[6..].copy_from_slice(&entry.missing.to_le_bytes());
    }
    let trailer = &mut page[ENTRIES_PER_PAGE * ENTRY_BYTES..];
    trailer[..8].copy_from_slice(&generation.to_le_bytes());
    trailer[8..12].copy_from_slice(&number.to_le_bytes());
    seal(&mut page);
    page
}

/// The entries of a page of the table of this generation; `None` if it is not that.
pub(super) fn decode(
    page: &Page,
    generation: u64,
    number: u32,
    entries: &mut [Entry],
) -> Option<()> {
    let mut trailer = &page[ENTRIES_PER_PAGE * ENTRY_BYTES..];
    let stored = u64::from_le_bytes(take(&mut trailer));
    let place = u32::from_le_bytes(take(&mut trailer));
    if !is_sealed(page) || (stored, place) != (generation, number) {
        return None;
    }
    for (mut bytes, entry) in page.chunks_exact(ENTRY_BYTES).zip(entries) {
        entry.block = u32::from_le_bytes(take(&mut bytes));
        entry.content = Content::from_code(bytes[0])?;
        entry.heat = bytes[1];
        entry.missing = u16::from_le_bytes([bytes[2], bytes[3]]);
    }
    Some(())
}
