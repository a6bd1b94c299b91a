//! Devices that fail, one step at a time.

use super::super::action::{Device, Direction};
use super::super::*;
use super::bench::{Bench, FAILED, OK, detaches, moves, syncs, writes_metadata};
use super::world::{LAYOUT, SLOTS};
use crate::policy::PolicyKind;

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
