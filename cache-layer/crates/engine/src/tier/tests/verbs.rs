//! What a tier does, one thing at a time.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::*;
use crate::reply::Reply;
use cache_core::engine::{Counters, Health};
use cache_core::policy::HOTTEST;
use roaring::RoaringBitmap;

const PAGE: usize = 4096;

/// A tier with LRU in a directory that goes when the test does.
fn with_rig(mode: Mode, change: impl FnOnce(&mut Trial), test: impl FnOnce(&Rig, &Place)) {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::make(dir.path());
    let mut trial = Trial::of(PolicyKind::Lru, mode);
    trial.dirty_target = 100;
    change(&mut trial);
    let rig = Rig::start(&place, trial);
    test(&rig, &place);
    rig.stop();
}

fn blocks(wanted: impl IntoIterator<Item = u32>) -> RoaringBitmap {
    wanted.into_iter().collect()
}

fn warm(rig: &Rig, wanted: impl IntoIterator<Item = u32>) {
    let warmed = rig.tier.warm(blocks(wanted), None, |_| true);
    assert_eq!(warmed.error, None);
}

fn eventually(what: &str, ready: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while !ready() {
        assert!(Instant::now() < deadline, "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn origin_bytes(place: &Place, offset: u64, len: usize) -> Vec<u8> {
    let origin = std::fs::read(place.dir.join("origin")).unwrap();
    origin[offset as usize..offset as usize + len].to_vec()
}

fn counted(rig: &Rig) -> Counters {
    rig.tier.status().counters
}

#[test]
fn a_request_counts_once_for_each_block_it_touches() {
    with_rig(
        Mode::Writeback,
        |_| (),
        |rig, _| {
            warm(rig, [1, 3]);
            rig.read(BLOCK_BYTES - 1, 3 * BLOCK_BYTES as usize + 2);
            rig.write(3 * BLOCK_BYTES + 5, &[1; BLOCK_BYTES as usize]);
            let counters = counted(rig);
            assert_eq!((counters.read_hits, counters.read_misses), (2, 3));
            assert_eq!(counters.write_hits + counters.write_misses, 2);
            assert!(counters.write_hits >= 1);
        },
    );
}

/// Bytes read and written, and whether requests, latencies and time agree.
fn moved(rig: &Rig, name: &str) -> (u64, u64) {
    let devices = serde_json::to_value(rig.tier.devices()).unwrap();
    let device = devices.as_array().unwrap().iter();
    let device = device.clone().find(|row| row["name"] == name).unwrap();
    for side in [&device["read"], &device["write"]] {
        let buckets = side["latencies_us"].as_array().unwrap().iter();
        let counted: u64 = buckets.map(|bucket| bucket[1].as_u64().unwrap()).sum();
        assert_eq!(side["requests"], counted);
        assert!(side["ns"].as_u64() >= Some(counted));
        assert!(device["busy_ns"].as_u64() >= Some(u64::from(counted > 0)));
    }
    let bytes = |side: &str| device[side]["bytes"].as_u64().unwrap();
    (bytes("read"), bytes("write"))
}

#[test]
fn each_device_counts_what_goes_through_it() {
    with_rig(
        Mode::Writeback,
        |_| (),
        |rig, _| {
            assert_eq!(moved(rig, "cache"), (0, 0));
            warm(rig, [1]);
            assert_eq!(
                moved(rig, "origin"),
                (BLOCK_BYTES, 0),
                "the warm-up read it"
            );
            assert_eq!(moved(rig, "cache"), (0, BLOCK_BYTES), "and put it there");
            rig.read(BLOCK_BYTES, PAGE);
            rig.write(BLOCK_BYTES, &[1; PAGE]);
            let page = PAGE as u64;
            assert_eq!(moved(rig, "cache"), (page, BLOCK_BYTES + page), "hits");
            assert_eq!(moved(rig, "origin"), (BLOCK_BYTES, 0), "no hit goes there");
            assert_eq!(moved(rig, "volume"), (0, 0));
        },
    );
}

#[test]
fn regions_add_up_to_the_counters() {
    with_rig(
        Mode::Writeback,
        |_| (),
        |rig, _| {
            warm(rig, [1, 3]);
            rig.read(BLOCK_BYTES, 10);
            rig.read(BLOCK_BYTES - 1, 3 * BLOCK_BYTES as usize + 2);
            rig.write(2 * BLOCK_BYTES - 5, &[1; 10]);
            let report = rig.tier.regions();
            assert_eq!(report.region_bytes, BLOCK_BYTES);
            let expected = [
                (0, 0, 1, 0, 0),
                (1, 2, 0, 1, 0),
                (2, 0, 1, 0, 1),
                (3, 1, 0, 0, 0),
                (4, 0, 1, 0, 0),
            ];
            // LRU fetches what missed: whether a later request finds it there is a race.
            assert_eq!(report.regions.len(), expected.len());
            for (row, expected) in report.regions.iter().zip(expected) {
                assert_eq!(row.0, expected.0);
                assert_eq!(row.1 + row.2, expected.1 + expected.2, "reads of {}", row.0);
                assert_eq!(
                    row.3 + row.4,
                    expected.3 + expected.4,
                    "writes of {}",
                    row.0
                );
            }
            assert_eq!((report.regions[1].1, report.regions[3].1), (2, 1));
            let counters = counted(rig);
            type Row = (u32, u64, u64, u64, u64);
            let sum = |of: fn(&Row) -> u64| report.regions.iter().map(of).sum::<u64>();
            assert_eq!(counters.read_hits, sum(|region| region.1));
            assert_eq!(counters.read_misses, sum(|region| region.2));
            assert_eq!(counters.write_hits, sum(|region| region.3));
            assert_eq!(counters.write_misses, sum(|region| region.4));
        },
    );
}

#[test]
fn a_write_that_hits_reaches_the_origin_when_it_is_flushed() {
    with_rig(
        Mode::Writeback,
        |_| (),
        |rig, place| {
            warm(rig, 0..2);
            rig.write(100, &[7; PAGE]);
            assert_eq!(rig.tier.status().dirty, 1);
            assert_eq!(origin_bytes(place, 100, PAGE), vec![0; PAGE]);
            assert_eq!(rig.tier.clean_all(|_| true), Ok(1));
            assert_eq!(rig.tier.status().dirty, 0);
            assert_eq!(origin_bytes(place, 100, PAGE), vec![7; PAGE]);
            assert_eq!(counted(rig).write_backs, 1);
            assert_eq!(rig.read(100, PAGE).bytes(), [7; PAGE]);
        },
    );
}

#[test]
fn a_write_through_is_on_both_before_it_is_answered() {
    with_rig(
        Mode::Writethrough,
        |_| (),
        |rig, place| {
            warm(rig, 0..2);
            rig.write(BLOCK_BYTES - 50, &[7; 100]);
            assert_eq!(origin_bytes(place, BLOCK_BYTES - 50, 100), [7; 100]);
            assert_eq!(rig.read(BLOCK_BYTES - 50, 100).bytes(), [7; 100]);
            let status = rig.tier.status();
            assert_eq!((status.dirty, status.counters.write_hits), (0, 2));
        },
    );
}

#[test]
fn what_was_written_through_is_clean_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::make(dir.path());
    let mut trial = Trial::of(PolicyKind::Lru, Mode::Writethrough);
    trial.durability = Durability::Synced;
    let rig = Rig::start(&place, trial);
    warm(&rig, 0..2);
    rig.write(BLOCK_BYTES - 50, &[7; 100]);
    // That a block is clean is written beside the traffic, and nobody waits for it. A flush waits for
    // what is being written when it begins; the second, for what the first left in the queue.
    rig.flush();
    rig.flush();
    // As after a kill: without stopping, so with what the journal holds.
    let after = Rig::start(&place, trial);
    let status = after.tier.status();
    assert_eq!(
        (status.used, status.dirty, status.counters.write_backs),
        (2, 0, 0)
    );
}

#[test]
fn what_was_dirty_before_is_written_back_by_a_tier_that_writes_through() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::make(dir.path());
    let mut trial = Trial::of(PolicyKind::Lru, Mode::Writeback);
    trial.dirty_target = 100;
    let rig = Rig::start(&place, trial);
    warm(&rig, 0..2);
    rig.write(0, &[7; PAGE]);
    rig.stop();
    trial.mode = Mode::Writethrough;
    trial.dirty_target = 0;
    let rig = Rig::start(&place, trial);
    eventually("clean", || rig.tier.status().dirty == 0);
    assert_eq!(origin_bytes(&place, 0, PAGE), vec![7; PAGE]);
    rig.stop();
}

#[test]
fn a_block_that_is_only_written_comes_to_the_flash_with_the_last_write() {
    with_rig(
        Mode::Writeback,
        |_| (),
        |rig, _| {
            for round in 1..4 {
                rig.write(0, &[round; PAGE]);
            }
            eventually("resident", || rig.tier.status().used == 1);
            assert_eq!(rig.read(0, PAGE).bytes(), [3; PAGE]);
            assert_eq!(counted(rig).read_hits, 1);
        },
    );
}

#[test]
fn the_cleaner_keeps_to_its_target() {
    let target = |trial: &mut Trial| (trial.dirty_target, trial.scale) = (50, 0.01);
    with_rig(Mode::Writeback, target, |rig, _| {
        warm(rig, 0..SLOTS as u32);
        for block in 0..SLOTS {
            rig.write(block * BLOCK_BYTES, &[7; 1]);
        }
        eventually("half of it clean", || rig.tier.status().dirty <= 4);
        // And without requests, all of it: a second of the device's is 10 ms here.
        eventually("clean", || rig.tier.status().dirty == 0);
    });
}

#[test]
fn a_flush_ends_though_the_same_blocks_are_written_all_the_time() {
    with_rig(
        Mode::Writeback,
        |_| (),
        |rig, _| {
            warm(rig, 0..SLOTS as u32);
            let (stop, stopped) = channel::<()>();
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    let mut dice = Dice::new(1);
                    while stopped.try_recv().is_err() {
                        rig.write(dice.below(SLOTS) * BLOCK_BYTES, &[7; 512]);
                    }
                });
                eventually("dirty", || rig.tier.status().dirty == SLOTS);
                assert_eq!(rig.tier.clean_all(|_| true), Ok(SLOTS));
                stop.send(()).unwrap();
            });
        },
    );
}

#[test]
fn a_warm_up_fetches_what_is_wanted_and_all_of_it_hits() {
    with_rig(
        Mode::Writeback,
        |_| (),
        |rig, place| {
            let marks: Vec<u8> = (0..ORIGIN_BLOCKS * BLOCK_BYTES)
                .map(|at| (at / 4096) as u8)
                .collect();
            std::fs::write(place.dir.join("origin"), &marks).unwrap();
            warm(rig, [2]);
            let warmed = rig.tier.warm(blocks([0, 1, 2, 3, 23]), None, |_| true);
            assert_eq!((warmed.blocks, warmed.skipped), (4, 1));
            assert_eq!(warmed.bytes, 4 * BLOCK_BYTES);
            for block in [0, 1, 2, 3, 23] {
                let offset = block * BLOCK_BYTES;
                let bytes = rig.read(offset, BLOCK_BYTES as usize);
                assert_eq!(
                    bytes.bytes(),
                    &marks[offset as usize..][..BLOCK_BYTES as usize]
                );
            }
            assert_eq!(counted(rig).read_misses, 0);
            // No more than there is room for, and nothing is driven out.
            let warmed = rig
                .tier
                .warm(blocks(0..ORIGIN_BLOCKS as u32), None, |_| true);
            assert_eq!((warmed.blocks, warmed.skipped), (3, 21));
            assert_eq!(counted(rig).demotions, 0);
        },
    );
}

#[test]
fn a_warm_up_stops_when_nobody_wants_it_any_more() {
    // So slow that the first fetches take longer than it is until the first word of progress.
    with_rig(
        Mode::Writeback,
        |trial| trial.scale = 300.0,
        |rig, _| {
            let warmed = rig
                .tier
                .warm(blocks([1, 5, 9, 13, 17, 21]), None, |_| false);
            assert!((1..6).contains(&warmed.blocks), "{warmed:?}");
            assert_eq!(rig.tier.status().used, warmed.blocks);
            assert!(rig.tier.lock().engine.is_idle());
        },
    );
}

#[test]
fn a_restart_keeps_what_is_cached_and_how_hot_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::make(dir.path());
    // In real time, or the policy would find the blocks cooler by then.
    let trial = Trial {
        dirty_target: 100,
        scale: 1.0,
        ..Trial::of(PolicyKind::Smq, Mode::Writeback)
    };
    let heat = |rig: &Rig, block| {
        let shared = rig.tier.lock();
        let policy = shared.engine.policy();
        policy.resident(block).map(|slot| policy.heat(slot))
    };
    let rig = Rig::start(&place, trial);
    warm(&rig, [7]);
    rig.write(7 * BLOCK_BYTES, &[7; PAGE]);
    // After the write, whose answer is a tick of the policy's clock.
    warm(&rig, [4]);
    let before = heat(&rig, 4);
    assert_eq!(before, Some(HOTTEST));
    rig.stop();
    let rig = Rig::start(&place, trial);
    let status = rig.tier.status();
    assert_eq!((status.used, status.dirty), (2, 1));
    assert_eq!(heat(&rig, 4), before);
    assert_eq!(rig.read(7 * BLOCK_BYTES, PAGE).bytes(), [7; PAGE]);
    assert_eq!(counted(&rig).read_misses, 0);
    rig.stop();
}

#[test]
fn who_comes_after_the_end_is_turned_away() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::make(dir.path());
    let rig = Rig::start(&place, Trial::of(PolicyKind::Lru, Mode::Writeback));
    let tier = rig.tier.clone();
    rig.stop();
    let error = wait_for(|answer| tier.read(0, 10, answer)).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ESHUTDOWN));
    let error = wait_for(|answer| tier.write(0, &[1; 10], answer)).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ESHUTDOWN));
}

/// Every write that hits is two changes here, so that a checkpoint is due before long.
#[test]
fn a_cache_whose_checkpoints_end_unanswered_is_given_up_and_keeps_nobody_waiting() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::make(dir.path());
    let rig = Rig::start(&place, Trial::of(PolicyKind::Lru, Mode::Writethrough));
    warm(&rig, [1]);
    let dies = Reply::then(|_| panic!("as a test wants it"));
    rig.tier.flash.write_in_background(Vec::new(), 0, dies);
    let answered = Arc::new(AtomicU64::new(0));
    for number in 1..=1000 {
        let last = answered.clone();
        let reply = Reply::then(move |outcome| {
            let () = outcome.map(drop).unwrap();
            last.store(number, Ordering::Relaxed);
        });
        rig.tier.write(BLOCK_BYTES, &[number as u8; PAGE], reply);
        eventually("the write is answered", || {
            answered.load(Ordering::Relaxed) == number
        });
    }
    let health = rig.tier.lock().engine.health().clone();
    assert!(matches!(health, Health::PassThrough(_)), "{health:?}");
    assert_eq!(rig.read(BLOCK_BYTES, PAGE).bytes(), [1000_u32 as u8; PAGE]);
    // Wherever the flash goes, with an end of the tier or without: nobody takes its old blocks for new.
    eventually("the flash says that its cache is empty", || {
        cache_core::metadata::is_empty(&*place.files.flash).unwrap()
    });
    rig.stop();
    assert!(cache_core::metadata::is_empty(&*place.files.flash).unwrap());
}

#[test]
fn what_is_punched_reads_as_zeros_whether_it_was_cached_or_not() {
    for mode in [Mode::Writeback, Mode::Writethrough] {
        with_rig(
            mode,
            |_| (),
            |rig, place| {
                let all = ORIGIN_BLOCKS * BLOCK_BYTES;
                rig.write(0, &vec![7; all as usize]);
                warm(rig, [1, 2, 3]);
                rig.write(2 * BLOCK_BYTES, &[8; PAGE]);
                // Cached blocks, dirty and clean, one that is not, and a part of a block at either end.
                let (from, to) = (BLOCK_BYTES - 1000, 6 * BLOCK_BYTES + 1000);
                rig.punch(from, to - from);
                assert_eq!(rig.tier.lock().engine.dirty().range_cardinality(1..6), 0);
                let seen = rig.read(0, all as usize);
                let is_hole = |at: u64| (from..to).contains(&at);
                for (at, &byte) in (0..).zip(seen.bytes()) {
                    assert_eq!(byte == 0, is_hole(at), "{mode:?} {at}");
                }
                rig.tier.clean_all(|_| true).unwrap();
                assert_eq!(origin_bytes(place, 0, all as usize), seen.bytes());
            },
        );
    }
}
