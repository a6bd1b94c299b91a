//! The process is killed: at every write, and at every byte of it.

use super::memory::{Event, Memory, new_cache, reopen};
use super::model::{Call, Dice, Model};
use super::*;
use proptest::prelude::*;

/// The flash after each write of a run, cut short at some of its bytes.
fn for_each_crash(
    before: Vec<u8>,
    log: &[Event],
    mut cuts: impl FnMut(usize) -> Vec<usize>,
    mut check: impl FnMut(usize, Vec<u8>),
) {
    let mut flash = before;
    for (at, event) in log.iter().enumerate() {
        let Event::Write(_, offset, data) = event else {
            continue;
        };
        for cut in cuts(data.len()) {
            let mut torn = flash.clone();
            torn[*offset..offset + cut].copy_from_slice(&data[..cut]);
            check(at, torn);
        }
        flash[*offset..offset + data.len()].copy_from_slice(data);
    }
}

/// A run of random calls: the state after each, and how long the log was by then.
struct Run {
    before: Vec<u8>,
    log: Vec<Event>,
    states: Vec<(usize, Model)>,
}

fn run(seed: u64, calls: usize, sync: bool) -> Run {
    let (memory, metadata) = new_cache(sync);
    let (before, begin) = (memory.flash(), memory.log_len());
    let mut model = Model::empty(&TINY);
    let mut states = vec![(0, model.clone())];
    let mut dice = Dice::new(seed);
    for _ in 0..calls {
        let call = model.random_call(&mut dice);
        call.make(&metadata).unwrap();
        model.apply(call);
        states.push((memory.log_len() - begin, model.clone()));
    }
    metadata.close(|_| 1).unwrap();
    let log = memory.log().split_off(begin);
    states.push((log.len(), model));
    Run {
        before,
        log,
        states,
    }
}

impl Run {
    /// The states that may be found when the write at this place of the log was interrupted.
    fn allowed(&self, at: usize) -> [&Model; 2] {
        let interrupted = self.states.partition_point(|&(len, _)| len <= at);
        [interrupted - 1, interrupted].map(|index| &self.states[index].1)
    }

    fn check(&self, cuts: impl FnMut(usize) -> Vec<usize>) {
        for_each_crash(self.before.clone(), &self.log, cuts, |at, torn| {
            let (_, recovered) = reopen(torn).unwrap();
            let state = Model::of(&recovered, &TINY);
            let allowed = self.allowed(at);
            assert!(
                allowed.contains(&&state),
                "write {at}: {state:?} is none of {allowed:?}"
            );
        });
    }
}

#[test]
fn a_call_torn_at_any_byte_is_found_or_not() {
    // Over a checkpoint: torn records at every byte, torn pages at every 37th.
    run(1, 320, false).check(|len| match len {
        0..=32 => (0..=len).collect(),
        _ => (0..=len).step_by(37).chain([len]).collect(),
    });
}

#[test]
fn a_torn_superblock_leaves_the_checkpoint_before() {
    run(2, 320, true).check(|len| match len {
        512 => (0..=len).collect(),
        _ => Vec::new(),
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_call_that_returned_is_found(seed: u64, calls in 1..500usize, sync: bool) {
        let mut dice = Dice::new(!seed);
        run(seed, calls, sync).check(|len| vec![0, dice.below(len as u64) as usize, len]);
    }

    #[test]
    fn recovery_may_be_killed_too(seed: u64, calls in 1..200usize) {
        let run = run(seed, calls, false);
        let mut dice = Dice::new(!seed);
        let crash = dice.below(run.log.len() as u64) as usize;
        let mut crashed = None;
        for_each_crash(run.before.clone(), &run.log, |len| vec![len / 2], |at, torn| {
            if at <= crash {
                crashed = Some(torn);
            }
        });
        let Some(crashed) = crashed else { return Ok(()) };
        let memory = Memory::new(crashed.clone(), Vec::new());
        let (_, first) = Metadata::open_on(memory.clone(), own(TINY, false, 1)).unwrap();
        let every_32nd = |len| (0..=len).step_by(32).collect();
        for_each_crash(crashed, &memory.log(), every_32nd, |at, torn| {
            let (_, second) = reopen(torn).unwrap();
            assert_eq!(second.mappings, first.mappings, "write {at} of the recovery");
        });
    }

    #[test]
    fn after_a_failed_write_nothing_is_written_and_all_before_it_is_found(
        seed: u64,
        room in 0..30_000usize,
    ) {
        let (memory, metadata) = new_cache(false);
        let mut model = Model::empty(&TINY);
        let mut dice = Dice::new(seed);
        memory.set_room(room);
        let interrupted = loop {
            let call = model.random_call(&mut dice);
            if call.make(&metadata).is_err() {
                break call;
            }
            model.apply(call);
        };
        memory.set_room(usize::MAX);
        let len = memory.log_len();
        let slot = model.0.iter().position(Option::is_none).unwrap_or(0) as Slot;
        prop_assert!(metadata.unmap(slot).is_err() || model.0[slot as usize].is_none());
        prop_assert!(metadata.close(|_| 2).is_err());
        prop_assert_eq!(memory.log_len(), len);
        let (_, recovered) = reopen(memory.flash()).unwrap();
        let state = Model::of(&recovered, &TINY);
        if state != model {
            model.apply(interrupted);
            prop_assert_eq!(state, model);
        }
    }
}

#[test]
fn an_interrupted_format_leaves_the_old_cache_or_none() {
    let (old, metadata) = new_cache(false);
    metadata.map(2, 6).unwrap();
    metadata.dirty(2).unwrap();
    let memory = Memory::new(old.flash(), Vec::new());
    let (_, kept) = reopen(old.flash()).unwrap();
    Metadata::format_on(memory.clone(), own(TINY, false, 1)).unwrap();
    let every_64th = |len| (0..=len).step_by(64).collect();
    let mut outcomes = [0; 3];
    for_each_crash(
        old.flash(),
        &memory.log(),
        every_64th,
        |_, torn| match reopen(torn) {
            Err(_) => outcomes[0] += 1,
            Ok((_, recovered)) if recovered.mappings.is_empty() => outcomes[1] += 1,
            Ok((_, recovered)) => {
                assert_eq!(recovered.mappings, kept.mappings);
                outcomes[2] += 1;
            }
        },
    );
    assert!(outcomes.iter().all(|&count| count > 0), "{outcomes:?}");
}

#[test]
fn closing_keeps_heat_and_tells_an_orderly_end() {
    let (memory, metadata) = new_cache(false);
    metadata.map(1, 8).unwrap();
    metadata.map(4, 3).unwrap();
    metadata.dirty(4).unwrap();
    let (_, unclean) = reopen(memory.flash()).unwrap();
    assert!(!unclean.clean_shutdown);
    metadata.close(|slot| 10 + slot as u8).unwrap();
    let (again, closed) = reopen(memory.flash()).unwrap();
    assert!(closed.clean_shutdown);
    let heat: Vec<_> = closed.mappings.iter().map(|mapping| mapping.heat).collect();
    assert_eq!(heat, [11, 14]);
    // A run that was killed keeps the heat of the one before.
    let (_, killed) = reopen(again.store.flash()).unwrap();
    assert_eq!(killed.mappings, closed.mappings);
    assert!(!killed.clean_shutdown);
    Call::Unmap(1).make(&metadata).unwrap();
    let (_, changed) = reopen(memory.flash()).unwrap();
    assert!(!changed.clean_shutdown);
    assert_eq!(changed.mappings.len(), 1);
}

#[test]
fn a_call_that_changes_nothing_writes_nothing() {
    let (memory, metadata) = new_cache(false);
    metadata.map(0, 1).unwrap();
    metadata.dirty(0).unwrap();
    let len = memory.log_len();
    metadata.dirty(0).unwrap();
    metadata.unmap(3).unwrap();
    metadata.commit().unwrap();
    assert_eq!(memory.log_len(), len);
}

#[test]
#[should_panic(expected = "makes no sense")]
fn a_slot_cannot_be_mapped_twice() {
    let (_, metadata) = new_cache(false);
    metadata.map(0, 1).unwrap();
    let _ = metadata.map(0, 2);
}
