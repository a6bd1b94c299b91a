//! What is written back, and when, one step at a time.

use super::super::action::{Device, Direction};
use super::super::*;
use super::bench::{Bench, OK, io_of, moves};
use super::world::SLOTS;
use crate::policy::{self, Geometry, PolicyKind};

/// Hits are no reason not to clean; a request on the origin is.
#[test]
fn it_cleans_while_the_origin_is_idle() {
    let mut bench = Bench::warm(Mode::Writeback);
    bench.engine.set_dirty_target(90);
    bench.write(1, 0);
    bench.finish();
    let tenth = NANOS_PER_S as Nanos / 10;
    // A miss that takes its time.
    bench.read(2, 9);
    let miss = bench.wanted.remove(0);
    for _ in 0..20 {
        bench.now += tenth;
        bench.engine.on_timer(bench.now);
        bench.collect();
    }
    assert!(bench.engine.dirty().contains(0));
    bench.engine.on_completion(bench.now, io_of(&miss), OK);
    bench.finish();
    for id in 3..6 {
        bench.now += tenth;
        bench.read(id, 0);
        bench.finish();
        bench.engine.on_timer(bench.now);
        bench.finish();
    }
    assert!(bench.engine.resident().contains(0));
    assert!(!bench.engine.dirty().contains(0));
}

#[test]
fn busy_blocks_do_not_hide_the_others_from_the_cleaner() {
    let mut bench = Bench::warm(Mode::Writeback);
    bench.engine.set_dirty_target(100);
    for block in 0..SLOTS {
        bench.write(block, block);
    }
    bench.finish();
    for block in 0..SLOTS - 1 {
        bench.write(10 + block, block);
    }
    // They stay under way.
    bench.wanted.clear();
    bench.engine.set_dirty_target(0);
    for _ in 0..3 {
        bench.now += NANOS_PER_S as Nanos;
        bench.engine.on_timer(bench.now);
        bench.finish();
    }
    assert!(!bench.engine.dirty().contains(SLOTS as u32 - 1));
    assert_eq!(bench.engine.dirty().len(), SLOTS - 1);
}

/// As the block of a database's log is, by several at a time. Each write ends only when the next one
/// has begun.
#[test]
fn a_flush_ends_though_a_block_is_written_without_a_pause() {
    let mut bench = Bench::warm(Mode::Writeback);
    bench.engine.set_dirty_target(100);
    bench.write(1, 0);
    bench.write(2, 1);
    bench.finish();
    bench.write(3, 0);
    bench.engine.begin_flush(bench.now);
    let mut copies = 0;
    for id in 4..40 {
        let user = bench
            .wanted
            .iter()
            .position(moves(Device::Flash, Direction::Write));
        let user = bench.wanted.remove(user.expect("somebody writes"));
        bench.write(id, 0);
        bench.engine.on_completion(bench.now, io_of(&user), OK);
        bench.collect();
        let copy = |action: &Action| !moves(Device::Flash, Direction::Write)(action);
        while bench.wanted.iter().any(copy) {
            let next = bench.wanted.iter().find(|action| copy(action));
            copies += u32::from(next.is_some_and(moves(Device::Origin, Direction::Write)));
            bench.end(copy, OK);
        }
        bench.now += NANOS_PER_S as Nanos / 10;
        bench.engine.on_timer(bench.now);
        bench.collect();
    }
    assert_eq!(bench.engine.flush_left(), 0);
    assert_eq!(copies, 2, "once each, and no more");
    let dirty: Vec<Block> = bench.engine.dirty().iter().collect();
    assert_eq!(
        dirty,
        [0],
        "what is written while it is copied is not clean"
    );
    // Once it is left alone it is as any other.
    bench.finish();
    bench.engine.begin_flush(bench.now);
    bench.finish();
    assert!(bench.engine.dirty().is_empty());
}

/// Or hot blocks would be copied again and again, at the origin's full rate.
#[test]
fn while_users_hit_little_is_cleaned_and_all_of_it_once_they_are_gone() {
    let mut bench = Bench::new(Mode::Writeback);
    let config = CacheConfig {
        dirty_target: 90,
        ..*bench.engine.config()
    };
    let geometry = Geometry {
        origin_blocks: config.origin_blocks(),
        slots: SLOTS as u32,
    };
    let policy = policy::make(PolicyKind::Hotset, geometry);
    bench.engine = Engine::new(config, policy, None, &[]);
    bench.engine.begin_warm_up(0, (0..4).collect(), None);
    bench.finish();
    let millisecond = NANOS_PER_S as Nanos / 1000;
    let mut cleaned = 0;
    for id in 1..=1000 {
        bench.now += millisecond;
        bench.write(id, id % 4);
        bench.finish();
        let before = bench.engine.dirty().len();
        bench.engine.on_timer(bench.now);
        bench.finish();
        cleaned += before - bench.engine.dirty().len();
    }
    assert!((90..=110).contains(&cleaned), "{cleaned} in a second");
    assert!(bench.engine.dirty().len() >= 3);
    bench.now += 2000 * millisecond;
    bench.engine.on_timer(bench.now);
    bench.finish();
    assert!(bench.engine.dirty().is_empty());
}
