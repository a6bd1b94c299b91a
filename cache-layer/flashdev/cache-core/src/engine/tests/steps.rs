//! What the engine does, one thing at a time.

use super::super::action::{Buffer, Device, Direction};
use super::super::*;
use super::bench::{
    Bench, FAILED, OK, detaches, discards, in_background, io_of, moves, syncs, writes_metadata,
};
use super::world::{BLOCK_BYTES, LAYOUT, SLOTS, fresh_engine};
use crate::layout::Layout;
use crate::policy::{self, Geometry, PolicyKind};

#[test]
fn a_read_that_hits_is_one_transfer_and_a_miss_goes_to_the_origin_alone() {
    let mut bench = Bench::warm(Mode::Writeback);
    let offset = 2 * BLOCK_BYTES + 512;
    bench.ask(1, Request::Read { offset, len: 1024 });
    let slot = bench.engine.policy().resident(2).unwrap();
    let expected = Action::Transfer {
        io: io_of(&bench.wanted[0]),
        device: Device::Flash,
        direction: Direction::Read,
        offset: LAYOUT.slot_offset(slot) + 512,
        len: 1024,
        buffer: Buffer::Request { id: 1, at: 0 },
        in_background: false,
    };
    assert_eq!(bench.wanted, [expected]);
    bench.finish();
    assert_eq!(bench.reply(1), Some(OK));
    bench.ask(
        2,
        Request::Read {
            offset: 9 * BLOCK_BYTES,
            len: 512,
        },
    );
    assert!(moves(Device::Origin, Direction::Read)(&bench.wanted[0]));
    bench.end(moves(Device::Origin, Direction::Read), OK);
    assert_eq!(bench.reply(2), Some(OK));
}

#[test]
fn a_block_is_known_to_be_dirty_before_the_first_byte_is_written() {
    let mut bench = Bench::warm(Mode::Writeback);
    bench.write(1, 0);
    assert_eq!(bench.wanted.len(), 1);
    bench.end(writes_metadata, OK);
    assert_eq!(bench.reply(1), None);
    bench.end(moves(Device::Flash, Direction::Write), OK);
    assert_eq!(bench.reply(1), Some(OK));
    // From now on it is: a write is one transfer.
    bench.write(2, 0);
    bench.end(moves(Device::Flash, Direction::Write), OK);
    assert_eq!(bench.reply(2), Some(OK));
    assert!(bench.wanted.is_empty());
}

#[test]
fn what_is_written_through_is_written_to_both_at_the_same_time() {
    let mut bench = Bench::warm(Mode::Writethrough);
    bench.write(1, 0);
    bench.end(writes_metadata, OK);
    assert_eq!(bench.wanted.len(), 2);
    bench.end(moves(Device::Origin, Direction::Write), OK);
    assert_eq!(bench.reply(1), None);
    bench.end(moves(Device::Flash, Direction::Write), OK);
    assert_eq!(bench.reply(1), Some(OK));
    assert!(bench.engine.dirty().is_empty());
}

#[test]
fn a_write_to_a_block_that_arrives_waits_and_then_hits() {
    let mut bench = Bench::new(Mode::Writeback);
    bench.read(1, 9);
    bench.end(moves(Device::Origin, Direction::Read), OK);
    assert_eq!(bench.reply(1), Some(OK));
    // The block is being fetched now.
    bench.write(2, 9);
    bench.end(moves(Device::Origin, Direction::Read), OK);
    let stores = moves(Device::Flash, Direction::Write);
    assert_eq!(
        bench.wanted.iter().filter(|action| stores(action)).count(),
        1
    );
    bench.end(stores, OK);
    assert_eq!(bench.reply(2), None, "its block is not there yet");
    bench.finish();
    assert_eq!(bench.reply(2), Some(OK));
    let counters = bench.engine.counters();
    assert_eq!((counters.write_hits, counters.write_misses), (1, 0));
}

#[test]
fn a_fetch_waits_for_writes_that_are_on_their_way_to_the_origin() {
    let mut bench = Bench::new(Mode::Writeback);
    bench.write(1, 0);
    let read = moves(Device::Origin, Direction::Read);
    assert!(!bench.wanted.iter().any(&read), "{:?}", bench.wanted);
    bench.end(moves(Device::Origin, Direction::Write), OK);
    assert!(bench.wanted.iter().any(&read));
    // Meanwhile reads go to the origin, and writes wait.
    bench.read(2, 0);
    bench.write(3, 0);
    bench.finish();
    assert_eq!((bench.reply(2), bench.reply(3)), (Some(OK), Some(OK)));
    let counters = bench.engine.counters();
    assert_eq!((counters.read_misses, counters.write_hits), (1, 1));
    assert!(bench.engine.dirty().contains(0));
}

#[test]
fn a_block_that_goes_is_read_from_the_flash_as_long_as_it_is_there() {
    let mut bench = Bench::warm(Mode::Writeback);
    bench.write(1, 0);
    bench.finish();
    // Missing another one drives the oldest out, which is dirty: block 1, 0 was touched.
    bench.write(2, 1);
    bench.finish();
    for block in 2..SLOTS {
        bench.read(block, block);
    }
    bench.finish();
    bench.read(20, 9);
    let copies = moves(Device::Flash, Direction::Read);
    assert!(bench.wanted.iter().any(&copies), "{:?}", bench.wanted);
    let before = bench.engine.counters().read_hits;
    bench.read(21, 0);
    assert_eq!(bench.engine.counters().read_hits, before + 1);
    bench.finish();
    assert_eq!(bench.reply(21), Some(OK));
    assert_eq!(bench.engine.counters().write_backs, 1);
}

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

/// Linux tells of an error of write-back once: whoever syncs the flash must tell all.
#[test]
fn a_flush_of_the_volume_that_fails_is_known_to_the_cached_device() {
    let mut bench = Bench::warm(Mode::Writeback);
    bench.write(1, 0);
    bench.finish();
    bench.ask(2, Request::FlushVolume);
    bench.end(syncs(Device::Flash), FAILED);
    assert_eq!(bench.reply(2), Some(FAILED));
    bench.ask(3, Request::Flush);
    bench.finish();
    assert_eq!(bench.reply(3), Some(FAILED));
    bench.ask(4, Request::FlushVolume);
    bench.finish();
    assert_eq!(bench.reply(4), Some(FAILED));
    assert!(matches!(bench.engine.health(), Health::ReadOnly(_)));
}

/// What one sync has lost, another that was under way meanwhile does not tell.
#[test]
fn a_flush_that_began_before_a_sync_of_the_origin_failed_promises_nothing() {
    let mut bench = Bench::warm(Mode::Writethrough);
    bench.write(1, 0);
    bench.end(writes_metadata, FAILED);
    bench.finish();
    assert!(matches!(bench.engine.health(), Health::PassThrough(_)));
    bench.write(2, 1);
    bench.finish();
    bench.ask(3, Request::Flush);
    bench.ask(4, Request::Flush);
    bench.end(syncs(Device::Origin), FAILED);
    bench.end(syncs(Device::Origin), OK);
    assert_eq!(bench.reply(3), Some(FAILED));
    assert_eq!(bench.reply(4), Some(FAILED));
}

#[test]
fn a_slot_that_was_dirty_is_not_used_again_when_the_commit_fails() {
    let mut bench = Bench::warm(Mode::Writeback);
    bench.write(1, 0);
    bench.finish();
    bench.ask(2, Request::Flush);
    bench.finish();
    for block in 1..SLOTS {
        bench.read(10 + block, block);
    }
    bench.finish();
    // Block 0 makes room for 9: it is written back, and gone; its slot waits for a commit.
    let slot = bench.engine.policy().resident(0).unwrap();
    bench.read(20, 9);
    for _ in 0..100 {
        let other = |action: &Action| !syncs(Device::Flash)(action);
        match bench.wanted.iter().any(other) {
            true => bench.end(other, OK),
            false => break,
        }
        bench.engine.on_timer(bench.now);
        bench.collect();
        if bench.wanted.is_empty() {
            bench.read(30, 9);
        }
    }
    let place = LAYOUT.slot_offset(slot);
    let stores = |action: &Action| {
        let stores = moves(Device::Flash, Direction::Write);
        stores(action) && matches!(action, Action::Transfer { offset, .. } if *offset == place)
    };
    assert!(!bench.engine.resident().contains(0));
    assert!(!bench.wanted.iter().any(stores), "{:?}", bench.wanted);
    bench.end(syncs(Device::Flash), FAILED);
    bench.finish();
    assert!(!bench.engine.resident().contains(9));
    assert!(bench.engine.health() != &Health::Healthy);
}

#[test]
fn flushes_that_come_together_share_their_syncs() {
    let mut bench = Bench::warm(Mode::Writeback);
    for block in 0..SLOTS {
        bench.write(block, block);
    }
    bench.finish();
    for id in 100..150 {
        bench.ask(id, Request::Flush);
    }
    let mut count = 0;
    while !bench.wanted.is_empty() {
        count += u32::from(syncs(Device::Flash)(&bench.wanted[0]));
        bench.end(|_| true, OK);
    }
    assert!((100..150).all(|id| bench.reply(id) == Some(OK)));
    // The first flush begins at once; all others share one commit, which has nothing to add.
    assert!(count <= 3, "{count} syncs of the flash");
}

#[test]
fn a_checkpoint_holds_up_neither_hits_nor_changes() {
    let mut bench = Bench::warm(Mode::Writethrough);
    // Every write that hits is two changes, and a journal here holds 128.
    let table = LAYOUT.table_offset(0)..LAYOUT.journal_offset(0);
    let of_table = |action: &Action| matches!(action, Action::WriteMetadata { offset, .. } if table.contains(offset));
    let mut written = 0;
    for id in 0..100 {
        bench.write(id, id % SLOTS);
        bench.read(1000 + id, id % SLOTS);
        while let Some(other) = bench.wanted.iter().position(|action| !of_table(action)) {
            let other = bench.wanted.remove(other);
            assert!(!in_background(&other), "somebody waits for it: {other:?}");
            bench.engine.on_completion(0, io_of(&other), OK);
            bench.collect();
        }
        assert_eq!(bench.reply(1000 + id), Some(OK));
        written += u64::from(bench.reply(id) == Some(OK));
    }
    assert!(bench.wanted.iter().any(of_table), "a checkpoint is held up");
    assert!(bench.wanted.iter().all(in_background), "{:?}", bench.wanted);
    assert_eq!(written, 100);
}

#[test]
fn a_flash_that_fails_is_given_up_by_a_cache_that_writes_through() {
    let mut bench = Bench::warm(Mode::Writethrough);
    bench.write(1, 0);
    bench.end(writes_metadata, OK);
    bench.end(moves(Device::Flash, Direction::Write), FAILED);
    bench.end(moves(Device::Origin, Direction::Write), OK);
    // Not before it is sure that no later session takes the flash at its word.
    bench.write(2, 1);
    assert_eq!((bench.reply(1), bench.reply(2)), (None, None));
    bench.end(syncs(Device::Origin), OK);
    bench.end(detaches, OK);
    assert_eq!(bench.reply(1), Some(OK));
    bench.end(moves(Device::Origin, Direction::Write), OK);
    assert_eq!(bench.reply(2), Some(OK));
    assert!(matches!(bench.engine.health(), Health::PassThrough(_)));
    bench.read(3, 0);
    bench.end(moves(Device::Origin, Direction::Read), OK);
    assert_eq!(bench.reply(3), Some(OK));
    bench.ask(4, Request::Flush);
    bench.end(syncs(Device::Origin), OK);
    assert_eq!(bench.reply(4), Some(OK));
}

#[test]
fn a_cache_that_cannot_be_detached_is_read_only() {
    let mut bench = Bench::warm(Mode::Writethrough);
    bench.write(1, 0);
    bench.end(writes_metadata, FAILED);
    bench.end(syncs(Device::Origin), OK);
    bench.end(detaches, FAILED);
    assert_eq!(bench.reply(1), Some(Err(Errno::EROFS)));
    assert!(matches!(bench.engine.health(), Health::ReadOnly(_)));
}

#[test]
fn a_flash_that_fails_with_dirty_blocks_on_it_is_read_only() {
    let mut bench = Bench::warm(Mode::Writeback);
    bench.write(1, 0);
    bench.finish();
    bench.write(2, 1);
    bench.end(writes_metadata, FAILED);
    assert_eq!(bench.reply(2), Some(FAILED));
    bench.write(3, 0);
    bench.write(4, 9);
    assert_eq!(bench.reply(3), Some(Err(Errno::EROFS)));
    assert_eq!(bench.reply(4), Some(Err(Errno::EROFS)));
    bench.read(5, 0);
    bench.end(moves(Device::Flash, Direction::Read), OK);
    bench.read(6, 2);
    bench.end(moves(Device::Origin, Direction::Read), OK);
    assert_eq!((bench.reply(5), bench.reply(6)), (Some(OK), Some(OK)));
    bench.ask(7, Request::Flush);
    assert_eq!(bench.reply(7), Some(FAILED));
}

#[test]
fn a_clean_block_that_cannot_be_read_is_read_from_the_origin() {
    let mut bench = Bench::warm(Mode::Writeback);
    bench.read(1, 0);
    bench.end(moves(Device::Flash, Direction::Read), FAILED);
    bench.end(moves(Device::Origin, Direction::Read), OK);
    assert_eq!(bench.reply(1), Some(OK));
    assert_eq!(bench.engine.health(), &Health::Healthy);
    // A dirty one is nowhere else.
    bench.write(2, 1);
    bench.finish();
    bench.read(3, 1);
    bench.end(moves(Device::Flash, Direction::Read), FAILED);
    assert_eq!(bench.reply(3), Some(FAILED));
}

/// While no more may be under way, the policy's wishes wait: a write must not be taken for that of
/// the block which was wished for last.
#[test]
fn a_write_brings_in_no_block_but_its_own() {
    for kind in [PolicyKind::Hotset, PolicyKind::Smq] {
        let mut bench = Bench::new(Mode::Writeback);
        bench.engine = fresh_engine(Mode::Writeback, kind);
        bench.engine.set_migration_threshold(0);
        for (id, block) in (1..).zip([0, 1, 2]) {
            bench.write(id, block);
        }
        let offset = BLOCK_BYTES;
        let len = BLOCK_BYTES as u32;
        bench.ask(4, Request::Write { offset, len });
        bench.finish();
        assert_eq!(bench.reply(4), Some(OK));
        let dirty: Vec<u32> = bench.engine.dirty().iter().collect();
        assert!(
            dirty.iter().all(|&block| block == 1),
            "{kind:?}: only block 1 was written whole, and dirty are {dirty:?}"
        );
    }
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
    resident.range_cardinality(..SLOTS as u32) == 0 && replies.all(|one| one == Some(OK))
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

/// After a sync of the origin that failed, whoever asked for it, no orderly end is written down: a
/// later sync would say that all is well.
#[test]
fn no_end_is_orderly_after_a_failed_sync_of_the_origin() {
    let failing: [fn(&mut Bench); 2] = [
        |bench| bench.ask(2, Request::Flush),
        |bench| {
            bench.write(2, 0);
            bench.end(writes_metadata, OK);
            bench.end(moves(Device::Flash, Direction::Write), FAILED);
            bench.end(moves(Device::Origin, Direction::Write), OK);
        },
    ];
    for fail in failing {
        let mut bench = Bench::warm(Mode::Writethrough);
        bench.write(1, 1);
        bench.finish();
        fail(&mut bench);
        bench.end(syncs(Device::Origin), FAILED);
        bench.finish();
        assert!(matches!(bench.engine.health(), Health::ReadOnly(_)));
        assert!(bench.engine.log_has_failed());
        bench.engine.stop(bench.now);
        bench.finish();
        bench.engine.turn_away();
        bench.engine.close(bench.now);
        bench.finish();
        assert!(!bench.engine.is_closed());
    }
}

/// Two writes to one block, of which the first does not reach the flash. That the second reaches both
/// says nothing of the first: a cache that is not given up after all would be believed after a kill.
#[test]
fn a_block_is_not_called_clean_by_the_second_of_two_writes_when_the_first_has_failed() {
    let mut bench = Bench::warm(Mode::Writethrough);
    for (id, offset) in [(1, 0), (2, 8192)] {
        bench.ask(id, Request::Write { offset, len: 4096 });
    }
    while bench.wanted.iter().any(writes_metadata) {
        bench.end(writes_metadata, OK);
    }
    for result in [FAILED, OK] {
        bench.end(moves(Device::Flash, Direction::Write), result);
        bench.end(moves(Device::Origin, Direction::Write), OK);
    }
    bench.end(syncs(Device::Origin), OK);
    let before = bench.wanted.iter().filter(|action| writes_metadata(action));
    assert_eq!(before.count(), 0, "{:?}", bench.wanted);
    bench.end(detaches, FAILED);
    assert!(matches!(bench.engine.health(), Health::ReadOnly(_)));
    assert!(!bench.wanted.iter().any(writes_metadata));
    assert_eq!((bench.reply(1), bench.reply(2)), (Some(FAILED), Some(OK)));
}

#[test]
fn a_flash_that_takes_no_fetched_block_is_given_up_and_one_on_a_full_disk_is_not() {
    for (error, given_up) in [(Errno::EIO, true), (Errno(28), false)] {
        let mut bench = Bench::new(Mode::Writethrough);
        bench.engine = super::world::fresh_engine(Mode::Writethrough, PolicyKind::Hotset);
        let mut origin_reads = 0;
        for id in 1..=100 {
            bench.read(id, id % 11);
            while !bench.wanted.is_empty() {
                origin_reads += u32::from(moves(Device::Origin, Direction::Read)(&bench.wanted[0]));
                let stores = moves(Device::Flash, Direction::Write)(&bench.wanted[0]);
                bench.end(|_| true, if stores { Err(error) } else { OK });
            }
            assert_eq!(bench.reply(id), Some(OK));
        }
        let now = bench.engine.health();
        assert_eq!(matches!(now, Health::PassThrough(_)), given_up, "{now:?}");
        assert_eq!(origin_reads < 120, given_up, "{origin_reads}");
    }
}

#[test]
fn what_a_request_waits_for_is_not_in_the_background_and_a_write_back_is() {
    let is_background = |bench: &Bench, device, way| {
        let found = bench
            .wanted
            .iter()
            .find(|action| moves(device, way)(action));
        match found {
            Some(Action::Transfer { in_background, .. }) => *in_background,
            _ => panic!("not wanted: only {:?}", bench.wanted),
        }
    };
    let mut bench = Bench::new(Mode::Writeback);
    bench.engine = super::world::fresh_engine(Mode::Writeback, PolicyKind::Hotset);
    bench.read(1, 3);
    assert!(!is_background(&bench, Device::Origin, Direction::Read));
    bench.finish();
    bench
        .engine
        .begin_warm_up(bench.now, [5].into_iter().collect(), None);
    bench.collect();
    assert!(is_background(&bench, Device::Origin, Direction::Read));
    bench.finish();
    bench.write(2, 3);
    bench.finish();
    bench.engine.begin_flush(bench.now);
    bench.collect();
    assert!(is_background(&bench, Device::Flash, Direction::Read));
    bench.end(moves(Device::Flash, Direction::Read), OK);
    assert!(is_background(&bench, Device::Origin, Direction::Write));
}
