//! The rules of smq, on a virtual clock.

use super::*;

fn smq(slots: u32) -> Smq {
    let mut smq = Smq::new(Geometry {
        origin_blocks: 1 << 20,
        slots,
    });
    smq.next_work(0, false); // starts the clock
    smq
}

fn at(seconds: u64, block: Block) -> Access {
    Access {
        now: seconds * SECOND,
        block,
        write: false,
        whole: false,
    }
}

fn mapping(block: Block, slot: Slot, heat: u8) -> Mapping {
    Mapping {
        missing: 0,
        block,
        slot,
        dirty: false,
        heat,
    }
}

/// A full cache: block n in slot n, at a level that rises evenly with n.
fn full(slots: u32) -> Smq {
    let mut smq = smq(slots);
    for block in 0..slots {
        let heat = block * LEVELS as u32 / slots;
        smq.load(mapping(block, block, heat as u8));
    }
    smq
}

/// Misses a block, once per second, until the policy wants something or `until` is reached.
fn miss_until_work(smq: &mut Smq, block: Block, from: u64, until: u64) -> Option<Work> {
    (from..until).find_map(|seconds| {
        assert_eq!(smq.access(at(seconds, block)), None);
        smq.next_work(seconds * SECOND, false)
    })
}

#[test]
fn a_new_cache_promotes_only_after_the_first_tick() {
    let mut smq = smq(64);
    for _ in 0..100 {
        smq.access(at(0, 5));
    }
    assert_eq!(smq.next_work(0, false), None);
}

#[test]
fn a_part_that_keeps_missing_is_promoted_into_a_free_slot_at_the_top() {
    let mut smq = smq(64);
    let work = miss_until_work(&mut smq, 500_000, 0, 100).expect("a promotion");
    let Work::Promote { block, slot } = work else {
        panic!("{work:?}");
    };
    assert_eq!(block, 500_000);
    assert_eq!(smq.access(at(100, block)), None, "misses until it is there");
    assert_eq!(smq.next_work(100 * SECOND, false), None, "asked for once");
    smq.finished(work, true);
    assert_eq!(smq.access(at(100, block)), Some(slot));
    assert_eq!(smq.heat(slot), HOTTEST);
    assert_eq!(smq.used(), 1);
}

#[test]
fn a_promotion_that_fails_frees_the_slot() {
    let mut smq = smq(1);
    smq.want(5, false);
    let work = smq.next_work(0, false).expect("a promotion");
    assert_eq!(smq.slots.free(), 0);
    smq.finished(work, false);
    assert_eq!((smq.slots.free(), smq.used()), (1, 0));
    assert!(smq.insert(5, HOTTEST).is_some());
}

#[test]
fn a_block_that_is_asked_for_comes_at_the_level_it_is_given() {
    let mut smq = smq(2);
    for (block, heat) in [(5, 20), (6, HOTTEST)] {
        let work = smq.insert(block, heat).expect("a promotion");
        smq.finished(work, true);
        let slot = smq.resident(block).expect("it is there");
        assert_eq!(smq.heat(slot), heat);
    }
}

#[test]
fn writing_a_whole_block_promotes_at_once_while_slots_are_free() {
    let mut smq = smq(1);
    let write = |block, whole| Access {
        write: true,
        whole,
        ..at(0, block)
    };
    smq.access(write(1, false));
    assert_eq!(smq.next_work(0, false), None);
    smq.access(write(2, true));
    let work = smq.next_work(0, false);
    assert_eq!(work, Some(Work::Promote { block: 2, slot: 0 }));
    smq.access(write(3, true));
    assert_eq!(smq.next_work(0, false), None, "no slot is free");
}

#[test]
fn the_first_hit_of_a_period_raises_a_block_one_level() {
    let mut smq = smq(64);
    smq.load(mapping(7, 0, 10));
    for _ in 0..3 {
        smq.access(at(0, 7));
        assert_eq!(smq.heat(0), 11);
    }
    // The first tick ends the first period, the next period lasts 60 s. One block alone is
    // brought down to level 0 when a period ends.
    for (seconds, level) in [(1, 1), (30, 1), (60, 1), (61, 1), (120, 1), (122, 1)] {
        smq.access(at(seconds, 7));
        assert_eq!(smq.heat(0), level, "at {seconds} s");
    }
    smq.load(mapping(8, 1, 0));
    smq.access(at(123, 8));
    smq.access(at(124, 8));
    assert_eq!(smq.heat(1), 1);
}

#[test]
fn a_full_cache_demotes_instead_and_the_block_has_to_miss_again() {
    let mut smq = full(64);
    let work = miss_until_work(&mut smq, 500_000, 0, 100).expect("a demotion");
    assert_eq!(work, Work::Demote { block: 0, slot: 0 });
    assert_eq!(smq.access(at(100, 0)), Some(0), "there until it is gone");
    smq.finished(work, true);
    assert_eq!(smq.resident(0), None);
    assert_eq!(smq.resident(500_000), None);
    let work = miss_until_work(&mut smq, 500_000, 100, 200);
    let expected = Work::Promote {
        block: 500_000,
        slot: 0,
    };
    assert_eq!(work, Some(expected));
}

#[test]
fn a_demotion_that_fails_leaves_the_block_where_it_was() {
    let mut smq = full(64);
    let work = miss_until_work(&mut smq, 500_000, 0, 100).expect("a demotion");
    smq.finished(work, false);
    assert_eq!(smq.resident(0), Some(0));
    assert_eq!(smq.clean.len(), 64);
}

#[test]
fn demotions_stop_at_a_quarter_of_the_cache() {
    let mut smq = full(100);
    let mut demotions = 0;
    for seconds in 0..200 {
        smq.access(at(seconds, 500_000));
        demotions += usize::from(smq.next_work(seconds * SECOND, false).is_some());
    }
    assert_eq!(demotions, 25, "none of them is finished");
}

#[test]
fn half_the_cache_at_most_turns_over_in_a_period() {
    let slots = 640;
    let mut smq = full(slots);
    let mut demotions = 0;
    smq.advance(2 * SECOND);
    // Between two redistributions, misses that all want a slot; what comes in is at the top.
    for (step, block) in (0..50_000).zip(1000..) {
        let now = 2 * SECOND + step * SECOND / 1000;
        smq.want(block, false);
        while let Some(work) = smq.next_work(now, false) {
            demotions += u32::from(matches!(work, Work::Demote { .. }));
            smq.finished(work, true);
        }
    }
    assert_eq!(demotions, slots / 2);
}

#[test]
fn dirty_blocks_are_cleaned_only_when_idle() {
    let mut smq = full(64);
    smq.set_dirty(9, true);
    assert_eq!(smq.next_work(0, false), None);
    let work = smq.next_work(0, true);
    assert_eq!(work, Some(Work::WriteBack { block: 9, slot: 9 }));
    assert_eq!(smq.next_work(0, true), None, "pending once");
    smq.set_dirty(9, false);
    smq.finished(work.unwrap(), true);
    assert_eq!((smq.dirty.len(), smq.clean.len()), (0, 64));
    assert_eq!(smq.next_work(0, true), None);
}

#[test]
fn without_clean_victims_only_aged_dirty_blocks_are_cleaned() {
    let mut smq = full(64);
    for slot in 0..64 {
        smq.set_dirty(slot, true);
    }
    smq.want(500_000, false);
    assert_eq!(smq.next_work(0, false), None, "all are recent");
    smq.want(500_000, false);
    let aged = smq.next_work(20 * SECOND, false);
    assert_eq!(aged, None, "asked for before they had aged");
    smq.want(500_000, false);
    let work = smq.next_work(20 * SECOND, false);
    assert!(matches!(work, Some(Work::WriteBack { .. })), "{work:?}");
}

#[test]
fn blocks_of_the_upper_half_are_never_demoted() {
    let mut smq = smq(2);
    smq.load(mapping(1, 0, 32));
    smq.load(mapping(2, 1, 63));
    smq.queue_demotion(Beneficiary::Anyone);
    assert_eq!(smq.next_work(0, false), None);
}

#[test]
fn work_is_bounded() {
    let mut smq = smq(10_000);
    for block in 0..10_000 {
        smq.want(block, false);
    }
    let handed_out = std::iter::from_fn(|| smq.next_work(0, false)).count();
    assert_eq!(handed_out, 4096);
    assert_eq!(smq.slots.free(), 10_000 - 4096);
}

#[test]
fn an_answer_is_a_tick_one_request_at_a_time() {
    let mut smq = smq(64);
    smq.access(at(0, 5));
    assert!(smq.carries_tick());
    smq.access(at(0, 6));
    assert!(!smq.carries_tick(), "one is under way");
    smq.tick(0);
    // At one answer per request, a part rises at every miss without a second passing.
    let misses = (0..100).take_while(|_| {
        smq.access(at(0, 5));
        assert!(smq.carries_tick());
        smq.tick(0);
        smq.next_work(0, false).is_none()
    });
    assert!(misses.count() < 50);
}

#[test]
fn a_long_pause_leaves_what_its_ticks_would_have_left() {
    let mut told_often = full(640);
    let mut told_once = full(640);
    for smq in [&mut told_often, &mut told_once] {
        smq.advance(30 * SECOND);
        smq.set_dirty(7, true);
    }
    for second in 31..=987 {
        told_often.advance(second * SECOND);
    }
    told_once.advance(987 * SECOND);
    let state = |smq: &Smq| {
        let clock = smq.clock.as_ref().expect("it runs");
        let levels: Vec<u8> = (0..640).map(|slot| smq.heat(slot)).collect();
        let aged = smq.dirty.peek(&smq.members, LEVELS, true);
        let times = (clock.next_tick, clock.age_at, clock.redistribute_at);
        (times, levels, aged)
    };
    assert_eq!(state(&told_often), state(&told_once));
}
