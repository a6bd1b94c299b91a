//! A tier that is changed while it serves.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;
use crate::tier::protocol::Reconfigure;

fn asked(json: &str) -> Reconfigure {
    serde_json::from_str(json).unwrap()
}

/// Byte of a block as of its latest write.
fn fill(block: u64, round: u8) -> Vec<u8> {
    vec![round.wrapping_mul(31) ^ block as u8; BLOCK_BYTES as usize]
}

#[test]
fn policy_mode_and_size_change_under_load_and_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::make(dir.path());
    let trial = Trial::of(PolicyKind::Lru, Mode::Writeback);
    let rig = Rig::start(&place, trial);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let load = scope.spawn(|| {
            let mut round = 0u8;
            while !is_over.load(Ordering::Relaxed) {
                round = round.wrapping_add(1);
                for block in 0..ORIGIN_BLOCKS {
                    rig.write(block * BLOCK_BYTES, &fill(block, round));
                    let other = (block * 7 + 3) % ORIGIN_BLOCKS;
                    let expected = if other <= block {
                        round
                    } else {
                        round.wrapping_sub(1)
                    };
                    let read = rig.read(other * BLOCK_BYTES, BLOCK_BYTES as usize);
                    if round > 1 || other <= block {
                        assert_eq!(read.bytes(), fill(other, expected));
                    }
                }
            }
            round
        });
        for change in [
            r#"{"policy": "arc"}"#,
            r#"{"mode": "writethrough"}"#,
            r#"{"policy": "smq", "mode": "writeback"}"#,
            r#"{"cache_bytes": 65536}"#,
            r#"{"cache_bytes": 131072, "policy": "sieve"}"#,
        ] {
            rig.tier.reconfigure(&asked(change)).unwrap();
            thread::sleep(std::time::Duration::from_millis(30));
        }
        is_over.store(true, Ordering::Relaxed);
        let round = load.join().unwrap();
        for block in 0..ORIGIN_BLOCKS {
            let read = rig.read(block * BLOCK_BYTES, BLOCK_BYTES as usize);
            assert_eq!(read.bytes(), fill(block, round));
        }
    });
    assert_eq!(rig.tier.status().policy, "sieve");
    rig.stop();
}

#[test]
fn what_is_cached_stays_and_write_through_leaves_nothing_dirty() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::make(dir.path());
    let rig = Rig::start(&place, Trial::of(PolicyKind::Lru, Mode::Writeback));
    let wanted = (0..SLOTS as u32).collect();
    assert_eq!(rig.tier.warm(wanted, None, |_| true).blocks, SLOTS);
    let before = rig.tier.resident().runs;
    rig.write(0, &fill(0, 2));
    assert_eq!(rig.tier.resident().dirty, [(0, 1)]);
    let now = rig
        .tier
        .reconfigure(&asked(r#"{"policy": "s3-fifo", "mode": "writethrough"}"#));
    assert_eq!(now.unwrap().mode, Mode::Writethrough);
    let after = rig.tier.resident();
    assert_eq!((after.runs, after.dirty), (before, vec![]));
    assert_eq!(rig.read(0, BLOCK_BYTES as usize).bytes(), fill(0, 2));
    assert_eq!(rig.tier.status().counters.read_hits, 1);
    rig.stop();
}

#[test]
fn an_origin_that_has_grown_is_taken_in() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::make(dir.path());
    let rig = Rig::start(&place, Trial::of(PolicyKind::Lru, Mode::Writeback));
    let old = ORIGIN_BLOCKS * BLOCK_BYTES;
    let file = File::options()
        .write(true)
        .open(dir.path().join("origin"))
        .unwrap();
    file.set_len(old + BLOCK_BYTES).unwrap();
    let now = rig
        .tier
        .reconfigure(&asked(r#"{"follow_origin": true}"#))
        .unwrap();
    assert_eq!(now.origin_bytes, old + BLOCK_BYTES);
    rig.write(old, &fill(3, 3));
    assert_eq!(rig.read(old, BLOCK_BYTES as usize).bytes(), fill(3, 3));
    file.set_len(old).unwrap();
    let error = rig
        .tier
        .reconfigure(&asked(r#"{"follow_origin": true}"#))
        .unwrap_err();
    assert!(error.to_string().contains("has shrunk"), "{error}");
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::make(dir.path());
    let rig = Rig::start(&place, Trial::of(PolicyKind::Lru, Mode::Writeback));
    for (change, word) in [
        (r#"{"policy": "best"}"#, "s3-fifo"),
        (r#"{"mode": "fast"}"#, "writethrough"),
        (r#"{"cache_bytes": 1}"#, "multiple"),
        (r#"{"cache_bytes": 1073741824}"#, "bytes"),
        (r#"{"flash_parts": ["0:-1"]}"#, "START:SIZE"),
    ] {
        let error = rig
            .tier
            .reconfigure(&asked(change))
            .unwrap_err()
            .to_string();
        assert!(error.contains(word), "{change}: {error}");
    }
    assert_eq!(rig.tier.status().policy, "lru");
    rig.stop();
}

/// An origin that ends in the middle of its last block, the cache full of another block's bytes, and
/// then the last block as well.
fn with_a_last_block_cut_short(dir: &Path, origin_bytes: u64) -> (Place, Rig) {
    let trial = Trial::of(PolicyKind::Lru, Mode::Writeback);
    let place = Place::make_of(dir, trial, origin_bytes);
    let rig = Rig::start(&place, trial);
    rig.write(0, &vec![0xAA; (SLOTS * BLOCK_BYTES) as usize]);
    let all = |range: std::ops::Range<u32>| range.collect();
    rig.tier.warm(all(0..SLOTS as u32), None, |_| true);
    rig.tier.clean_all(|_| true).unwrap();
    let last = ORIGIN_BLOCKS as u32 - 1;
    // A place for it is made while it is asked for.
    while !rig.tier.lock().engine.resident().contains(last) {
        rig.tier.warm(all(last..last + 1), None, |_| true);
        rig.tier.clean_all(|_| true).unwrap();
    }
    (place, rig)
}

#[test]
fn a_last_block_cut_short_holds_nothing_of_others_once_the_origin_has_grown() {
    let end = ORIGIN_BLOCKS * BLOCK_BYTES;
    for (cut, dirty) in [
        (BLOCK_BYTES / 2, false),
        (BLOCK_BYTES / 2, true),
        (BLOCK_BYTES / 2 + 512, true),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (place, rig) = with_a_last_block_cut_short(dir.path(), end - cut);
        rig.tier
            .tell(|shared, _| shared.engine.set_dirty_target(100));
        if dirty {
            rig.write(end - cut - 512, &[1; 512]);
            assert_eq!(rig.tier.status().dirty, 1);
        }
        place.resize_origin(end);
        let follow = asked(r#"{"follow_origin": true}"#);
        rig.tier.reconfigure(&follow).unwrap();
        let read = rig.read(end - cut, cut as usize);
        assert!(read.bytes().iter().all(|&byte| byte == 0), "{cut} {dirty}");
        rig.write(end - BLOCK_BYTES, &[2; 4096]);
        rig.tier.clean_all(|_| true).unwrap();
        rig.stop();
        let origin = std::fs::read(dir.path().join("origin")).unwrap();
        let (before, grown) = origin.split_at((end - cut) as usize);
        assert!(grown.iter().all(|&byte| byte == 0), "{cut} {dirty}");
        assert_eq!(before[before.len() - 1], u8::from(dirty));
    }
}

#[test]
fn reads_beyond_the_end_of_an_origin_that_has_shrunk_stay_errors() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::make(dir.path());
    let rig = Rig::start(&place, Trial::of(PolicyKind::Lru, Mode::Writeback));
    let end = ORIGIN_BLOCKS * BLOCK_BYTES;
    place.resize_origin(end - 2 * BLOCK_BYTES);
    let last = || {
        let (offset, len) = (end - BLOCK_BYTES, BLOCK_BYTES as u32);
        wait_for(|reply| rig.tier.read(offset, len, reply)).map(drop)
    };
    assert!(last().is_err());
    let follow = asked(r#"{"follow_origin": true}"#);
    rig.tier.reconfigure(&follow).unwrap_err();
    assert!(last().is_err(), "zeros for what is not there");
}

#[test]
fn a_cache_before_a_volume_keeps_its_size() {
    let dir = tempfile::tempdir().unwrap();
    let trial = Trial {
        volume_bytes: 4096,
        ..Trial::of(PolicyKind::Lru, Mode::Writeback)
    };
    let place = Place::make_for(dir.path(), trial);
    let rig = Rig::start(&place, trial);
    let (smaller, same) = (SLOTS / 2 * BLOCK_BYTES, SLOTS * BLOCK_BYTES);
    let resize = |bytes: u64| {
        rig.tier
            .reconfigure(&asked(&format!(r#"{{"cache_bytes": {bytes}}}"#)))
    };
    let error = resize(smaller).unwrap_err().to_string();
    assert!(error.contains("VOLUME"), "{error}");
    resize(same).unwrap();
    rig.stop();
}
