//! What is pinned, guaranteed or excluded, one step at a time.

use clap::ValueEnum;

use super::super::action::{Device, Direction};
use super::super::*;
use super::bench::{Bench, FAILED, OK, full, moves, syncs};
use super::world::{BLOCK_BYTES, SLOTS, fresh_engine};
use crate::policy::shares::{Right, Share, Shares};
use crate::policy::{Geometry, PolicyKind};

fn shares(engine: &Engine, blocks: std::ops::Range<u32>, right: Right) -> Shares {
    let geometry = Geometry {
        origin_blocks: engine.config().origin_blocks(),
        slots: engine.policy().capacity(),
    };
    let blocks = vec![blocks];
    Shares::new(&[Share { blocks, right }], geometry).unwrap()
}

/// What is dirty of them is written back first, and only then forgotten.
#[test]
fn blocks_that_are_excluded_leave_the_cache_and_do_not_come_back() {
    for kind in [PolicyKind::Hotset, PolicyKind::Lru, PolicyKind::Smq] {
        let mut bench = Bench::new(Mode::Writeback);
        bench.engine = fresh_engine(Mode::Writeback, kind);
        bench.engine.begin_warm_up(0, (0..4).collect(), None);
        bench.finish();
        bench.write(1, 0);
        bench.finish();
        let excluded = shares(&bench.engine, 0..2, Right::Excluded);
        bench.engine.set_shares(bench.now, &excluded);
        assert!(bench.engine.usage().to_leave > 0, "{kind:?}");
        bench.collect();
        bench.end(moves(Device::Flash, Direction::Read), OK);
        bench.end(syncs(Device::Flash), OK);
        bench.end(moves(Device::Origin, Direction::Write), OK);
        bench.finish();
        let left: Vec<u32> = bench.engine.resident().iter().collect();
        assert_eq!(left, [2, 3], "{kind:?}");
        assert_eq!(bench.engine.usage().to_leave, 0);
        for id in 2..50 {
            bench.now += NANOS_PER_S as Nanos;
            bench.read(id, id % 2);
            bench.finish();
        }
        let (offset, len) = (BLOCK_BYTES, BLOCK_BYTES as u32);
        bench.ask(50, Request::Write { offset, len });
        bench.finish();
        assert_eq!(bench.reply(50), Some(OK));
        bench
            .engine
            .begin_warm_up(bench.now, [0, 1, 5].into_iter().collect(), None);
        bench.finish();
        let is_resident = |block| bench.engine.resident().contains(block);
        assert!(
            !is_resident(0) && !is_resident(1) && is_resident(5),
            "{kind:?}"
        );
    }
}

/// An origin that takes no writes keeps them where they are, and is not asked without end.
#[test]
fn an_excluded_block_that_cannot_be_written_back_stays_until_it_can() {
    let mut bench = Bench::warm(Mode::Writeback);
    bench.write(1, 0);
    bench.finish();
    let excluded = shares(&bench.engine, 0..1, Right::Excluded);
    bench.engine.set_shares(bench.now, &excluded);
    bench.collect();
    bench.end(moves(Device::Flash, Direction::Read), OK);
    bench.end(syncs(Device::Flash), OK);
    bench.end(moves(Device::Origin, Direction::Write), FAILED);
    bench.finish();
    assert!(bench.engine.resident().contains(0) && bench.engine.dirty().contains(0));
    bench.now += NANOS_PER_S as Nanos;
    bench.engine.on_timer(bench.now);
    bench.now += NANOS_PER_S as Nanos;
    bench.engine.on_timer(bench.now);
    bench.finish();
    assert!(!bench.engine.resident().contains(0));
}

#[test]
fn a_pinned_block_comes_into_a_full_cache_and_stays() {
    let mut bench = Bench::warm(Mode::Writeback);
    let pinned = shares(&bench.engine, 6..8, Right::Pinned);
    bench.engine.set_shares(bench.now, &pinned);
    bench.finish();
    assert_eq!(
        bench.engine.resident().len(),
        SLOTS - 2,
        "room is kept for it"
    );
    bench.read(1, 9);
    bench.finish();
    bench
        .engine
        .begin_warm_up(bench.now, (6..8).collect(), None);
    bench.finish();
    for id in 2..40 {
        bench.read(id, id % 6);
        bench.finish();
    }
    let usage = bench.engine.usage();
    assert_eq!((usage.pinned.resident, usage.pinned.guaranteed), (2, 2));
    assert!(bench.engine.resident().contains(6) && bench.engine.resident().contains(7));
}

#[test]
fn a_warm_up_takes_no_place_of_what_is_pinned_or_guaranteed() {
    let right = |guaranteed| Right::Share {
        guaranteed,
        most: u32::MAX,
    };
    for (kind, right) in PolicyKind::value_variants()
        .iter()
        .flat_map(|&kind| [(kind, Right::Pinned), (kind, right(2))])
    {
        let mut bench = full(kind);
        let capacity = bench.engine.policy().capacity();
        let kept = shares(&bench.engine, 0..2, right);
        bench.engine.set_shares(bench.now, &kept);
        bench.finish();
        bench
            .engine
            .begin_warm_up(bench.now, (capacity..2 * capacity).collect(), None);
        bench.finish();
        let resident = bench.engine.resident();
        assert!(
            resident.contains(0) && resident.contains(1),
            "{kind:?} {right:?}: {resident:?}"
        );
        assert!(
            resident.len() > 2 && resident.iter().skip(2).all(|block| block >= capacity),
            "{kind:?} {right:?}: {resident:?}"
        );
    }
}
