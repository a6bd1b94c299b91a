//! What the engine does, one thing at a time.

use super::super::action::{Buffer, Device, Direction};
use super::super::*;
use super::bench::{Bench, OK, in_background, io_of, moves, syncs, writes_metadata};
use super::world::{BLOCK_BYTES, LAYOUT, SLOTS, fresh_engine};
use crate::policy::PolicyKind;

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

#[test]
fn what_a_request_waits_for_is_not_in_the_background_and_a_write_back_is() {
    let is_background = |bench: &Bench, device, way| {
        let action = bench
            .wanted
            .iter()
            .find(|action| moves(device, way)(action));
        match action {
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
    bench.end(syncs(Device::Flash), OK);
    assert!(is_background(&bench, Device::Origin, Direction::Write));
}
