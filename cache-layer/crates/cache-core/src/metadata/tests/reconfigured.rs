//! A cache that is cut up anew, and what a kill or a power cut in the middle of that leaves.

use super::memory::{Event, Memory, Place, new_cache};
use super::model::Dice;
use super::*;

/// Two slots fewer.
const SMALLER: Layout = Layout {
    cache_bytes: 3 * 4096,
    ..TINY
};

/// What was written, as far as the page cache or the medium has it.
fn write(flash: &mut [u8], event: &Event) {
    if let Event::Write(Place::Flash, offset, bytes) = event {
        flash[*offset..*offset + bytes.len()].copy_from_slice(bytes);
    }
}

/// The flash before and after each I/O of the change, with some of what was not synced.
fn left_behind(before: &[u8], events: &[Event], power: bool, dice: &mut Dice) -> Vec<u8> {
    let mut flash = before.to_vec();
    let synced = events
        .iter()
        .rposition(|event| matches!(event, Event::Sync(Place::Flash)));
    for (at, event) in events.iter().enumerate() {
        let durable = synced.is_some_and(|synced| at < synced);
        if !power || durable || dice.once_in(2) {
            write(&mut flash, event);
        }
    }
    flash
}

/// Clean blocks are all that it had, so none need be found; but those that are found are right, and
/// nothing is taken for damaged or erased.
fn check_left(flash: Vec<u8>, boot: u8, mapped: &[(Slot, Block)]) -> &'static str {
    let memory = Memory::new(flash, Vec::new());
    if is_empty(&memory).unwrap() {
        return "empty";
    }
    for (layout, which) in [(TINY, "old"), (SMALLER, "new")] {
        let Ok((_, recovered)) = Metadata::open_on(memory.clone(), own(layout, true, boot)) else {
            continue;
        };
        for mapping in recovered.mappings {
            assert!(!mapping.dirty);
            assert!(
                mapped.contains(&(mapping.slot, mapping.block)),
                "{mapping:?}"
            );
        }
        return which;
    }
    panic!("neither the cache of before, nor that of after, nor an empty one");
}

#[test]
fn whatever_cuts_a_reconfiguration_short_leaves_a_cache_that_can_be_used() {
    let (memory, metadata) = new_cache(true);
    let mapped = [(0, 4), (2, 7), (4, 1)];
    for (slot, block) in mapped {
        metadata.map(slot, block).unwrap();
    }
    metadata.close(|_| 0).unwrap();
    let (_, recovered) = Metadata::open_on(memory.clone(), own(TINY, true, 1)).unwrap();
    let (before, past) = (memory.flash(), memory.log_len());
    let mut kept = recovered.mappings;
    kept.retain(|mapping| mapping.slot < SMALLER.slots());
    format_with(&memory, &own(SMALLER, true, 1), &kept).unwrap();
    let events = memory.log().split_off(past);
    let mut dice = Dice::new(3);
    let mut seen = std::collections::BTreeSet::new();
    for until in 0..=events.len() {
        let cut = &events[..until];
        seen.insert(check_left(
            left_behind(&before, cut, false, &mut dice),
            1,
            &mapped,
        ));
        for _ in 0..50 {
            seen.insert(check_left(
                left_behind(&before, cut, true, &mut dice),
                2,
                &mapped,
            ));
        }
    }
    assert_eq!(Vec::from_iter(seen), ["empty", "new", "old"]);
}
