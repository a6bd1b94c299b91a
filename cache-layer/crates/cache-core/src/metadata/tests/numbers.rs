//! Which blocks a cache holds whose bytes are not wanted any more.

use super::memory::{Memory, new_cache};
use super::*;

/// Those of the tests' origin, seen by this run of the computer.
fn seen(memory: &Memory, boot: u8) -> Result<Option<Vec<(Block, u8)>>, MetadataError> {
    let numbered = numbers(memory, [7; 16], [boot; 16])?;
    Ok(numbered.map(|numbered| {
        assert_eq!(numbered.block_bytes, TINY.block_bytes);
        numbered.blocks
    }))
}

#[test]
fn clean_blocks_are_known_by_number_though_a_power_cut_has_them_forgotten() {
    let (memory, metadata) = new_cache(true);
    metadata.map(0, 4).unwrap();
    metadata.map(2, 8).unwrap();
    metadata.dirty(2).unwrap();
    metadata.commit().unwrap();
    let before = memory.flash();
    assert_eq!(seen(&memory, 1).unwrap().unwrap(), [(4, 0), (8, 0)]);
    assert_eq!(seen(&memory, 2).unwrap().unwrap(), [(4, 0), (8, 0)]);
    assert_eq!(memory.flash(), before, "nothing is written");
    let (_, recovered) = Metadata::open_on(memory, own(TINY, true, 2)).unwrap();
    assert_eq!(recovered.mappings.len(), 1, "those are taken up");
}

#[test]
fn their_heat_is_known_and_an_emptied_cache_has_none() {
    let (memory, metadata) = new_cache(true);
    metadata.map(1, 3).unwrap();
    metadata.close(|_| 50).unwrap();
    assert_eq!(seen(&memory, 9).unwrap().unwrap(), [(3, 50)]);
    make_empty(&memory).unwrap();
    assert_eq!(seen(&memory, 9).unwrap(), None);
}

#[test]
fn of_damage_and_of_another_origin_nothing_is_known() {
    let (memory, metadata) = new_cache(true);
    metadata.map(0, 4).unwrap();
    let stranger = numbers(&memory, [8; 16], [1; 16]).unwrap_err();
    assert!(matches!(stranger, MetadataError::OtherOrigin), "{stranger}");
    for damaged in [0..8192, 8192..8192 + 4 * 4096] {
        let mut flash = memory.flash();
        flash[damaged].fill(0x5a);
        let error = seen(&Memory::new(flash, Vec::new()), 1).unwrap_err();
        assert!(matches!(error, MetadataError::Damaged(_)), "{error}");
    }
}
