//! However large the cache, no call looks at more than some of it: users wait for each.

use clap::ValueEnum;

use super::super::*;
use super::bench::{Bench, full};
use super::world::{BLOCKS, SLOTS};
use crate::policy::shares::{Right, Share, Shares};
use crate::policy::{Geometry, PolicyKind};

#[test]
fn a_warm_up_of_what_is_there_passes_over_some_blocks_at_a_time() {
    let mut bench = Bench::warm(Mode::Writeback);
    let wanted = (0..SLOTS as u32).collect();
    let job = bench.engine.begin_warm_up(0, wanted, None);
    let mut calls = 1;
    let mut before = 0;
    while bench.engine.has_more_to_do() {
        let done = bench.engine.job_progress(job).done;
        let more = done - before;
        assert!(
            more <= u64::from(STEPS_AT_ONCE),
            "{more} blocks in one call"
        );
        before = done;
        calls += 1;
        bench.engine.on_timer(0);
    }
    assert_eq!(calls, SLOTS.div_ceil(STEPS_AT_ONCE.into()));
    let JobResult::Warmed(warmed) = bench.engine.finish_job(job) else {
        panic!("it was a warm-up");
    };
    assert_eq!((warmed.blocks, warmed.skipped), (0, SLOTS));
}

/// Nothing leaves before all of the cache has been looked at, or it might not be the coldest.
#[test]
fn what_makes_way_for_a_warm_up_is_looked_for_some_blocks_at_a_time() {
    for &kind in PolicyKind::value_variants() {
        let mut bench = full(kind);
        let capacity = bench.engine.policy().capacity();
        let wanted: RoaringBitmap = (capacity..capacity + 2).collect();
        bench.engine.begin_warm_up(0, wanted.clone(), None);
        for _ in 0..capacity / STEPS_AT_ONCE {
            assert!(bench.engine.has_more_to_do(), "{kind:?}");
            assert_eq!(bench.engine.policy().leaving(), 0, "{kind:?}");
            bench.engine.on_timer(0);
        }
        bench.finish();
        assert!(wanted.is_subset(bench.engine.resident()), "{kind:?}");
    }
}

/// Until they are counted the shares of before hold, and those who hit do so.
#[test]
fn the_blocks_of_shares_are_counted_some_at_a_time() {
    for &kind in PolicyKind::value_variants() {
        let mut bench = full(kind);
        let geometry = Geometry {
            origin_blocks: BLOCKS as u32,
            slots: bench.engine.policy().capacity(),
        };
        let all = 0..BLOCKS as u32;
        let share = Share {
            blocks: vec![all],
            right: Right::Share {
                guaranteed: 1,
                most: 2,
            },
        };
        let shares = Shares::new(&[share], geometry).unwrap();
        bench.engine.begin_shares(&shares);
        let mut calls = 0;
        while !bench.engine.continue_shares(bench.now) {
            calls += 1;
            bench.read(100 + calls, 1);
            let division = bench.engine.usage().shares;
            let counted = division.iter().map(|part| u64::from(part.resident));
            assert!(counted.sum::<u64>() <= SLOTS, "{kind:?}");
        }
        assert!(
            calls >= BLOCKS / u64::from(STEPS_AT_ONCE),
            "{kind:?}: {calls}"
        );
        bench.finish();
        assert!((101..=100 + calls).all(|id| bench.reply(id).is_some()));
        assert_eq!(bench.engine.usage().shares[0].resident, 2, "{kind:?}");
    }
}
