//! Bytes that change by themselves: found out, or without consequence.

use super::memory::{Memory, new_cache, reopen};
use super::model::{Dice, Model};
use super::*;
use crate::layout::RECORD_BYTES;

/// A cache after so many random calls, the state then and the state one record before.
fn used_cache(calls: usize, close: bool) -> (Vec<u8>, Model, Model) {
    let (memory, metadata) = new_cache(false);
    let mut model = Model::empty(&TINY);
    let mut before = model.clone();
    let mut dice = Dice::new(5);
    for _ in 0..calls {
        let call = model.random_call(&mut dice);
        call.make(&metadata).unwrap();
        let last = model.clone();
        model.apply(call);
        if model != last {
            before = last;
        }
    }
    if close {
        metadata.close(|_| 0).unwrap();
    }
    (memory.flash(), model, before)
}

/// Damages a stretch at every place and counts the outcomes: refused, without consequence, and
/// without the last record.
fn outcomes(flash: &[u8], stretch: usize, model: &Model, before: &Model) -> [usize; 3] {
    let mut outcomes = [0; 3];
    for start in (0..TINY.metadata_bytes as usize).step_by(stretch) {
        let mut damaged = flash.to_vec();
        for byte in &mut damaged[start..start + stretch] {
            *byte ^= 0x41;
        }
        let outcome = match reopen(damaged) {
            Err(error) => {
                assert!(error.to_string().contains("--discard"), "{error}");
                0
            }
            Ok((_, recovered)) => {
                let state = Model::of(&recovered, &TINY);
                assert!(
                    state == *model || state == *before,
                    "{stretch} bytes at {start}: {state:?} was never so"
                );
                if state == *model { 1 } else { 2 }
            }
        };
        outcomes[outcome] += 1;
    }
    outcomes
}

#[test]
fn a_damaged_byte_never_makes_a_wrong_mapping() {
    // Before the first checkpoint, in the middle of a journal, and soon after a checkpoint.
    for calls in [20, 290, 180] {
        let (flash, model, before) = used_cache(calls, false);
        let [refused, _, without_last] = outcomes(&flash, 1, &model, &before);
        assert!(refused > RECORD_BYTES, "{refused}");
        // The last record, damaged, looks like a call that never returned.
        assert_eq!(without_last, RECORD_BYTES, "after {calls} calls");
    }
}

#[test]
fn a_damaged_sector_never_makes_a_wrong_mapping() {
    // After an orderly end the journal holds nothing that counts.
    let (flash, model, _) = used_cache(290, true);
    let [_, without_consequence, _] = outcomes(&flash, 512, &model, &model);
    assert!(without_consequence > 0);
    let (flash, model, before) = used_cache(290, true);
    let [_, _, without_last] = outcomes(&flash, 1, &model, &before);
    assert_eq!(without_last, 0);
}

/// What a device has lost may read as zeros, and so may what was never written.
#[test]
fn a_lost_sector_is_told_from_the_end_of_the_journal() {
    for (calls, boot) in [(20, 1), (20, 2), (180, 1), (180, 2), (290, 1), (290, 2)] {
        let (memory, metadata) = new_cache(true);
        let mut model = Model::empty(&TINY);
        let mut dice = Dice::new(9);
        for _ in 0..calls {
            let call = model.random_call(&mut dice);
            call.make(&metadata).unwrap();
            model.apply(call);
        }
        metadata.commit().unwrap();
        let open = |flash| {
            let memory = Memory::new(flash, vec![0; 9 * 4096]);
            Metadata::open_on(memory, own(TINY, true, boot))
                .map(|(_, recovered)| recovered.mappings)
        };
        let whole = open(memory.flash()).unwrap();
        for fill in [0, 0xff] {
            for start in (0..TINY.metadata_bytes as usize).step_by(512) {
                let mut flash = memory.flash();
                flash[start..start + 512].fill(fill);
                if let Ok(mappings) = open(flash) {
                    assert_eq!(mappings, whole, "after {calls} calls, sector at {start}");
                }
            }
        }
    }
}

#[test]
fn a_damaged_checkpoint_falls_back_only_within_a_run_of_the_computer() {
    let (memory, metadata) = new_cache(true);
    metadata.map(0, 4).unwrap();
    metadata.close(|_| 0).unwrap();
    let mut flash = memory.flash();
    // Generation 1 was the format's, 2 the close's.
    let table = TINY.table_offset(2) as usize;
    flash[table] ^= 1;
    let (_, recovered) = reopen(flash.clone()).unwrap();
    assert_eq!(
        (recovered.mappings.len(), recovered.clean_shutdown),
        (1, false)
    );
    let elsewhere = Memory::new(flash, Vec::new());
    let error = Metadata::open_on(elsewhere, own(TINY, true, 2)).unwrap_err();
    assert!(error.to_string().contains("damaged"), "{error}");
}

#[test]
fn a_journal_whose_superblock_is_lost_is_refused() {
    let (memory, metadata) = new_cache(false);
    metadata.map(0, 4).unwrap();
    let (metadata, _) = reopen(memory.flash()).unwrap();
    metadata.unmap(0).unwrap();
    let mut flash = metadata.store.flash();
    flash[TINY.superblock_offset(2) as usize + 100] ^= 1;
    let error = reopen(flash).unwrap_err().to_string();
    assert!(error.contains("newer than the superblock"), "{error}");
}

#[test]
fn a_page_that_kept_its_old_contents_is_not_believed() {
    let (memory, metadata) = new_cache(false);
    metadata.map(0, 4).unwrap();
    metadata.close(|_| 0).unwrap();
    let table = TINY.table_offset(2) as usize..TINY.table_offset(2) as usize + 4096;
    let old_page = memory.flash()[table.clone()].to_vec();
    metadata.unmap(0).unwrap();
    metadata.close(|_| 0).unwrap();
    metadata.map(1, 5).unwrap();
    metadata.close(|_| 0).unwrap();
    let mut flash = memory.flash();
    assert_ne!(flash[table.clone()], old_page);
    flash[table].copy_from_slice(&old_page);
    let (_, recovered) = reopen(flash).unwrap();
    assert_eq!(
        (recovered.mappings[0].slot, recovered.mappings[0].block),
        (1, 5)
    );
    assert_eq!(recovered.mappings.len(), 1);
}

/// A journal that goes on with the next one, as when the power goes during a checkpoint; a commit in
/// each has promised a dirty block.
fn with_a_commit_in_both_journals() -> Vec<u8> {
    use super::super::journal::{Event, Record};
    let (memory, _) = new_cache(true);
    let mut flash = memory.flash();
    let map = |block| Change::Map {
        block,
        heat: 0,
        missing: 0,
        dirty: true,
    };
    for (generation, sequence, event) in [
        (1, 0, Event::Begin),
        (1, 1, Event::Changed(0, map(4))),
        (1, 2, Event::Committed(2)),
        (2, 0, Event::Continue(3)),
        (2, 1, Event::Changed(1, map(5))),
        (2, 2, Event::Committed(2)),
    ] {
        let record = Record {
            generation,
            sequence,
            event,
        };
        let at = Record::offset(generation, sequence, &TINY) as usize;
        flash[at..at + RECORD_BYTES].copy_from_slice(&record.encode());
    }
    flash
}

#[test]
fn damage_before_a_commit_is_refused_after_a_power_loss_during_a_checkpoint() {
    use super::super::journal::Record;
    let flash = with_a_commit_in_both_journals();
    let open = |flash: Vec<u8>| {
        let memory = Memory::new(flash, Vec::new());
        Metadata::open_on(memory, own(TINY, true, 2)).map(|(_, recovered)| recovered.mappings.len())
    };
    assert_eq!(open(flash.clone()).unwrap(), 2, "whole, both are there");
    for (generation, sequence) in [(1, 0), (1, 1), (2, 0), (2, 1)] {
        let mut damaged = flash.clone();
        damaged[Record::offset(generation, sequence, &TINY) as usize + 3] ^= 1;
        assert!(open(damaged).is_err(), "{generation} {sequence}");
    }
}
