//! An origin that grows while blocks of it are cached.

use super::memory::{Memory, Place};
use super::*;

/// Four sub-blocks of a page.
const LARGE: Layout = Layout {
    block_bytes: 4 * 4096,
    metadata_bytes: 6 * 4096,
    cache_bytes: 3 * 4 * 4096,
    volume_bytes: 0,
};

/// What was in the slots before, and what the origin holds.
const OLD: u8 = 0xaa;
const ORIGIN: u8 = 0x11;

fn session(origin_bytes: u64) -> Session {
    let mut session = own(LARGE, true, 1);
    session.identity.origin_bytes = origin_bytes;
    session
}

/// A cache with the second block, which the origin's end cuts short, in slot 1, and the first one,
/// dirty, in slot 0.
fn cut_short(origin_bytes: u64, dirty: bool, missing: u16) -> Memory {
    let flash = vec![OLD; (LARGE.metadata_bytes + LARGE.cache_bytes) as usize];
    let memory = Memory::new(flash, vec![ORIGIN; 8 * 4096]);
    let metadata = Metadata::format_on(memory.clone(), session(origin_bytes)).unwrap();
    let map = |block, missing, dirty| Change::Map {
        block,
        heat: 0,
        missing,
        dirty,
    };
    metadata.change(0, map(0, 0, true)).unwrap();
    metadata.change(1, map(1, missing, dirty)).unwrap();
    metadata.close(|_| 0).unwrap();
    memory
}

#[test]
fn a_clean_block_that_the_old_end_cut_short_is_forgotten() {
    let memory = cut_short(6 * 4096, false, 0);
    let (_, recovered) = Metadata::open_on(memory.clone(), session(6 * 4096)).unwrap();
    assert_eq!(recovered.mappings.len(), 2, "as large as it was, it stays");
    let (_, recovered) = Metadata::open_on(memory.clone(), session(8 * 4096)).unwrap();
    let blocks: Vec<Block> = recovered
        .mappings
        .iter()
        .map(|mapping| mapping.block)
        .collect();
    assert_eq!(blocks, [0]);
    // For good, and with the new size on record.
    let (_, recovered) = Metadata::open_on(memory.clone(), session(8 * 4096)).unwrap();
    assert_eq!(recovered.mappings.len(), 1);
    let error = Metadata::open_on(memory, session(6 * 4096)).unwrap_err();
    assert!(error.to_string().contains("shrunk"), "{error}");
}

#[test]
fn a_whole_last_block_stays_as_it_is() {
    let memory = cut_short(8 * 4096, false, 0);
    let (_, recovered) = Metadata::open_on(memory, session(9 * 4096)).unwrap();
    assert_eq!(recovered.mappings.len(), 2);
}

#[test]
fn a_dirty_block_that_the_old_end_cut_short_keeps_what_was_written_and_no_more() {
    // In the middle of its third sub-block, and of a sector; the origin grows to within that
    // sub-block, to its end, and beyond.
    let old = 6 * 4096 + 1000;
    for new in [old + 500, 7 * 4096, 8 * 4096] {
        let memory = cut_short(old, true, 0);
        let (_, recovered) = Metadata::open_on(memory.clone(), session(new)).unwrap();
        let cut = recovered.mappings[1];
        assert!(cut.dirty);
        assert_eq!(cut.missing, 0b1000, "what lies behind is the origin's");
        let slot = LARGE.slot_offset(1) as usize;
        let third = memory.read(Place::Flash, slot + 2 * 4096, 4096);
        let until = (new - 6 * 4096).min(4096) as usize;
        assert!(third[..1000].iter().all(|&byte| byte == OLD));
        assert!(third[1000..until].iter().all(|&byte| byte == ORIGIN));
        assert!(third[until..].iter().all(|&byte| byte == OLD));
    }
}

#[test]
fn what_is_missing_in_a_block_cut_short_stays_missing() {
    let memory = cut_short(6 * 4096 + 1000, true, 0b0101);
    let (_, recovered) = Metadata::open_on(memory.clone(), session(8 * 4096)).unwrap();
    assert_eq!(recovered.mappings[1].missing, 0b1101);
    let slot = LARGE.slot_offset(1) as usize;
    let untouched = memory.read(Place::Flash, slot, 4 * 4096);
    assert!(untouched.iter().all(|&byte| byte == OLD));
}
