//! Warm-ups, one step at a time.

use std::num::NonZeroU64;

use clap::ValueEnum;

use super::super::action::{Device, Direction};
use super::super::*;
use super::bench::{Bench, FAILED, OK, full, io_of, moves};
use super::world::BLOCK_BYTES;
use crate::policy::{HOTTEST, PolicyKind};

#[test]
fn a_job_goes_on_though_nobody_looks_at_it_and_ends_when_it_is_cancelled() {
    let mut bench = Bench::new(Mode::Writeback);
    let job = bench
        .engine
        .begin_warm_up(0, [0, 2, 4, 6, 8, 10].into_iter().collect(), None);
    bench.collect();
    let actions = std::mem::take(&mut bench.wanted);
    assert_eq!(actions.len(), 4, "so many reads at a time");
    bench.engine.cancel_job(0, job);
    for action in actions {
        bench.engine.on_completion(0, io_of(&action), OK);
    }
    let mut done = false;
    for _ in 0..100 {
        let mut actions = Vec::new();
        bench.engine.take_actions(&mut actions);
        for action in actions {
            match action {
                Action::JobDone { job: ended } => done |= ended == job,
                Action::Release { .. } => {}
                action => bench.engine.on_completion(0, io_of(&action), OK),
            }
        }
    }
    assert!(done);
    let JobResult::Warmed(warmed) = bench.engine.finish_job(job) else {
        panic!("it was a warm-up");
    };
    assert_eq!((warmed.blocks, warmed.skipped), (4, 2));
    let policy = bench.engine.policy();
    assert!(policy.resident(0).is_some() && policy.resident(8).is_none());
}

/// What is dirty of them is written back first, and what is wanted and there already stays.
#[test]
fn in_a_full_cache_others_make_way_for_a_warm_up() {
    for &kind in PolicyKind::value_variants() {
        let mut bench = full(kind);
        let capacity = bench.engine.policy().capacity();
        let wanted: RoaringBitmap = (1..=capacity)
            .filter(|&block| block != capacity - 1)
            .collect();
        bench.engine.begin_warm_up(bench.now, wanted.clone(), None);
        bench.finish();
        assert!(
            wanted.is_subset(bench.engine.resident()),
            "{kind:?}: {:?}",
            bench.engine.resident()
        );
        let mut bench = full(kind);
        let wanted: RoaringBitmap = (capacity..2 * capacity).collect();
        bench.engine.begin_warm_up(bench.now, wanted.clone(), None);
        bench.finish();
        assert_eq!(bench.engine.resident(), &wanted, "{kind:?}");
        assert!(bench.engine.dirty().is_empty(), "{kind:?}");
        assert_eq!(bench.engine.health(), &Health::Healthy);
    }
}

#[test]
fn for_a_refill_nothing_makes_way() {
    for &kind in PolicyKind::value_variants() {
        let mut bench = full(kind);
        let capacity = bench.engine.policy().capacity();
        let before = bench.engine.resident().clone();
        let wanted = (capacity..2 * capacity).collect();
        bench.engine.begin_refill(bench.now, wanted, HOTTEST);
        bench.finish();
        assert_eq!(bench.engine.resident(), &before, "{kind:?}");
        let mut bench = Bench::new(Mode::Writeback);
        let wanted: RoaringBitmap = (0..2 * capacity).collect();
        bench.engine.begin_refill(bench.now, wanted, HOTTEST);
        bench.finish();
        let held = (0..capacity).collect::<RoaringBitmap>();
        assert_eq!(bench.engine.resident(), &held, "no more than it holds");
    }
}

/// A dirty block that cannot be written back stays, and the warm-up ends all the same.
#[test]
fn a_block_that_cannot_leave_holds_up_no_warm_up() {
    let mut bench = full(PolicyKind::Lru);
    let capacity = bench.engine.policy().capacity();
    bench
        .engine
        .begin_warm_up(bench.now, (capacity..2 * capacity).collect(), None);
    bench.collect();
    while bench
        .wanted
        .iter()
        .any(|action| !moves(Device::Origin, Direction::Write)(action))
    {
        bench.end(
            |action: &Action| !moves(Device::Origin, Direction::Write)(action),
            OK,
        );
    }
    bench.end(moves(Device::Origin, Direction::Write), FAILED);
    bench.finish();
    assert!(bench.engine.dirty().contains(capacity - 1));
    assert_eq!(
        bench.engine.resident().range_cardinality(capacity..),
        u64::from(capacity) - 1
    );
}

#[test]
fn a_warm_up_keeps_to_its_rate() {
    let mut bench = Bench::new(Mode::Writeback);
    let rate = NonZeroU64::new(2 * BLOCK_BYTES);
    bench
        .engine
        .begin_warm_up(0, [0, 2, 4, 6].into_iter().collect(), rate);
    for half_second in 0..8 {
        bench.now = half_second * NANOS_PER_S as Nanos / 2;
        bench.engine.on_timer(bench.now);
        bench.finish();
        assert_eq!(bench.engine.resident().len(), (half_second + 1).min(4));
    }
}
