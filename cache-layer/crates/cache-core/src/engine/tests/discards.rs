//! Discards, one step at a time.

use super::super::action::{Device, Direction};
use super::super::*;
use super::bench::{Bench, FAILED, OK, discards, io_of, moves, syncs, writes_metadata};
use super::world::{BLOCK_BYTES, SLOTS, fresh_engine};
use crate::layout::Layout;
use crate::policy::{self, Geometry, PolicyKind};

#[test]
fn a_discarded_block_leaves_the_cache_once_the_origin_has_forgotten_it_and_is_not_written_back() {
    let mut bench = Bench::warm(Mode::Writeback);
    bench.write(1, 0);
    bench.finish();
    assert!(bench.engine.dirty().contains(0));
    bench.discard(2, 0, 1);
    assert_eq!(bench.wanted.len(), 1, "{:?}", bench.wanted);
    // A read still finds it, a write has to wait.
    bench.read(3, 0);
    bench.end(moves(Device::Flash, Direction::Read), OK);
    assert_eq!(bench.reply(3), Some(OK));
    bench.write(4, 0);
    assert_eq!((bench.wanted.len(), bench.reply(2)), (1, None));
    bench.end(discards, OK);
    // It must not be found after a crash, either.
    assert_eq!(bench.reply(2), None);
    bench.end(writes_metadata, OK);
    assert!(!bench.engine.resident().contains(0));
    assert!(!bench.engine.dirty().contains(0));
    assert_eq!(bench.reply(2), Some(OK));
    bench.finish();
    assert_eq!(bench.reply(4), Some(OK));
    assert_eq!(bench.engine.counters().write_backs, 0);
}

/// Or a process that is killed in between leaves old data on the flash that nobody need write back: they
/// would be read until the block leaves the cache, and zeros from then on.
#[test]
fn a_clean_block_is_known_to_have_left_the_cache_before_the_origin_forgets_it() {
    let mut bench = Bench::warm(Mode::Writeback);
    bench.discard(1, 0, 1);
    assert!(!bench.wanted.iter().any(discards), "{:?}", bench.wanted);
    bench.end(writes_metadata, OK);
    assert!(!bench.engine.resident().contains(0));
    // From now on the origin is read, and a write has to wait.
    bench.read(2, 0);
    bench.write(3, 0);
    bench.end(moves(Device::Origin, Direction::Read), OK);
    assert_eq!((bench.reply(1), bench.reply(2)), (None, Some(OK)));
    bench.end(discards, OK);
    assert_eq!(bench.reply(1), Some(OK));
    bench.finish();
    assert_eq!(bench.reply(3), Some(OK));
}

/// An origin may have forgotten some of a block when it fails.
#[test]
fn a_clean_block_that_the_origin_cannot_forget_has_left_the_cache_all_the_same() {
    let mut bench = Bench::warm(Mode::Writeback);
    bench.discard(1, 0, 1);
    bench.end(writes_metadata, OK);
    bench.end(discards, FAILED);
    assert_eq!(bench.reply(1), Some(FAILED));
    bench.read(2, 0);
    bench.end(moves(Device::Origin, Direction::Read), OK);
    assert_eq!(bench.reply(2), Some(OK));
    bench.finish();
    assert_eq!(bench.engine.health(), &Health::Healthy);
}

/// What the log says counts after a restart: as long as it says that the block is there, it is.
#[test]
fn a_dirty_block_is_read_from_the_flash_until_it_is_known_to_have_left() {
    let mut bench = Bench::warm(Mode::Writeback);
    bench.write(1, 0);
    bench.finish();
    bench.discard(2, 0, 1);
    bench.end(discards, OK);
    bench.read(3, 0);
    bench.end(moves(Device::Flash, Direction::Read), OK);
    bench.end(writes_metadata, FAILED);
    assert_eq!((bench.reply(2), bench.reply(3)), (Some(FAILED), Some(OK)));
    bench.read(4, 0);
    bench.end(moves(Device::Flash, Direction::Read), OK);
    assert_eq!(bench.reply(4), Some(OK));
    assert!(matches!(bench.engine.health(), Health::ReadOnly(_)));
}

#[test]
fn what_is_not_cached_is_discarded_on_the_origin_in_one_go() {
    let mut bench = Bench::warm(Mode::Writeback);
    bench.discard(1, 7, 3);
    let io = io_of(&bench.wanted[0]);
    let (offset, len) = (7 * BLOCK_BYTES, 3 * BLOCK_BYTES as u32);
    assert_eq!(bench.wanted, [Action::Discard { io, offset, len }]);
    bench.end(discards, OK);
    assert_eq!(bench.reply(1), Some(OK));
    // Some of it is cached: both ways.
    bench.discard(2, SLOTS - 1, 2);
    assert_eq!(bench.wanted.len(), 2);
    bench.finish();
    assert_eq!(bench.reply(2), Some(OK));
    assert_eq!(bench.engine.resident().len(), SLOTS - 1);
}

#[test]
fn an_origin_that_cannot_discard_says_so_and_nothing_is_lost() {
    let mut bench = Bench::warm(Mode::Writeback);
    bench.write(1, 0);
    bench.finish();
    bench.discard(2, 0, 1);
    let refused = Err(Errno(95));
    bench.end(discards, refused);
    assert_eq!(bench.reply(2), Some(refused));
    assert!(bench.engine.dirty().contains(0));
    bench.read(3, 0);
    bench.end(moves(Device::Flash, Direction::Read), OK);
}

#[test]
fn a_discard_waits_for_what_is_being_done_with_the_block() {
    let mut bench = Bench::warm(Mode::Writeback);
    bench.write(1, 0);
    // The write has not reached the slot.
    bench.discard(2, 0, 1);
    assert!(!bench.wanted.iter().any(discards));
    bench.end(writes_metadata, OK);
    bench.end(moves(Device::Flash, Direction::Write), OK);
    assert_eq!(bench.reply(1), Some(OK));
    bench.end(discards, OK);
    bench.finish();
    assert_eq!(bench.reply(2), Some(OK));
    // The block is being written back.
    bench.write(3, 1);
    bench.finish();
    bench.engine.begin_flush(bench.now);
    bench.collect();
    bench.end(moves(Device::Flash, Direction::Read), OK);
    bench.end(syncs(Device::Flash), OK);
    bench.discard(4, 1, 1);
    assert!(!bench.wanted.iter().any(discards));
    bench.end(moves(Device::Origin, Direction::Write), OK);
    bench.end(writes_metadata, OK);
    assert!(bench.wanted.iter().any(discards), "{:?}", bench.wanted);
    bench.finish();
    assert_eq!(bench.reply(4), Some(OK));
    assert!(!bench.engine.resident().contains(1));
}

/// A full cache whose policy wants more blocks to leave than may at a time, and discards of all of them
/// behind that.
fn with_discards_behind_plans(kind: PolicyKind) -> Bench {
    let mut bench = super::bench::full(kind);
    bench.engine.set_migration_threshold(0);
    for id in 0..40 {
        bench.now += 30_000_000;
        bench.read(100 + id, SLOTS + id % 6);
    }
    for block in 0..SLOTS {
        bench.discard(1000 + block, block, 1);
    }
    assert!(
        !bench.engine.discards.is_empty(),
        "{kind:?}: none has to wait"
    );
    bench
}

fn all_discarded(bench: &Bench) -> bool {
    let mut replies = (0..SLOTS).map(|block| bench.reply(1000 + block));
    let resident = bench.engine.resident();
    resident.range_cardinality(..SLOTS as u32) == 0 && replies.all(|reply| reply == Some(OK))
}

#[test]
fn a_discard_of_a_block_that_is_about_to_leave_anyhow_comes_after_that() {
    for kind in [PolicyKind::Lru, PolicyKind::Arc] {
        let mut bench = with_discards_behind_plans(kind);
        for _ in 0..50 {
            bench.finish();
            bench.now += 100_000_000;
            bench.engine.on_timer(bench.now);
        }
        bench.finish();
        assert!(all_discarded(&bench), "{kind:?}");
    }
}

/// Whoever asks before it turns away is served, whatever it is that they ask for.
#[test]
fn a_cache_that_stops_discards_as_it_reads_and_writes() {
    for kind in [PolicyKind::Lru, PolicyKind::Arc] {
        let mut bench = with_discards_behind_plans(kind);
        bench.engine.stop(bench.now);
        bench.read(1, 9);
        bench.discard(2, 0, SLOTS);
        bench.engine.turn_away();
        bench.discard(3, 0, SLOTS);
        bench.read(4, 9);
        bench.finish();
        assert!(all_discarded(&bench), "{kind:?}");
        assert_eq!((bench.reply(1), bench.reply(2)), (Some(OK), Some(OK)));
        let turned_away = Some(Err(Errno::ESHUTDOWN));
        assert_eq!((bench.reply(3), bench.reply(4)), (turned_away, turned_away));
        assert!(bench.engine.is_quiet(), "{kind:?}");
    }
}

/// More than a policy may have under way, and more than are taken up at a time.
#[test]
fn thousands_of_cached_blocks_are_discarded_by_one_request() {
    let slots = 5000;
    for kind in [PolicyKind::Lru, PolicyKind::Smq, PolicyKind::Hotset] {
        let mut bench = Bench::new(Mode::Writeback);
        bench.engine = of_slots(kind, slots);
        bench.discard(1, 0, u64::from(slots));
        assert!(bench.engine.discards.len() > 64, "{kind:?}");
        bench.finish();
        assert_eq!(bench.reply(1), Some(OK), "{kind:?}");
        assert!(bench.engine.resident().is_empty() && bench.engine.is_quiet());
    }
}

/// One with so many slots, all of them taken, every third one dirty.
fn of_slots(kind: PolicyKind, slots: u32) -> Engine {
    let config = CacheConfig {
        layout: Layout::for_slots(slots, BLOCK_BYTES),
        origin_bytes: u64::from(slots) * BLOCK_BYTES,
        ..*fresh_engine(Mode::Writeback, kind).config()
    };
    let geometry = Geometry {
        origin_blocks: slots,
        slots,
    };
    let mapping = |slot| Mapping {
        block: slot,
        slot,
        dirty: slot % 3 == 0,
        heat: 0,
        missing: 0,
    };
    let mappings: Vec<Mapping> = (0..slots).map(mapping).collect();
    Engine::new(config, policy::make(kind, geometry), None, &mappings)
}
