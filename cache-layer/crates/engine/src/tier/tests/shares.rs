//! A cache that is divided while it serves, and when it starts again.

use std::time::{Duration, Instant};

use super::*;
use crate::tier::protocol::{Reconfigure, Wanted};

fn wanted(json: &str) -> Wanted {
    serde_json::from_str(json).unwrap()
}

fn settled(rig: &Rig) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while rig.tier.division().to_leave > 0 {
        assert!(Instant::now() < deadline, "{:?}", rig.tier.division());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn resident(rig: &Rig) -> Vec<u32> {
    let runs = rig.tier.resident().runs.into_iter();
    runs.flat_map(|(first, count)| first..first + count)
        .collect()
}

/// Reads the whole disk, which is three times the cache.
fn scan(rig: &Rig) {
    for block in 0..ORIGIN_BLOCKS {
        rig.read(block * BLOCK_BYTES, 4096);
    }
}

#[test]
fn pins_and_exclusions_hold_under_load_after_a_restart_and_with_another_policy() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::make(dir.path());
    let trial = Trial::of(PolicyKind::Lru, Mode::Writeback);
    let mut rig = Rig::start(&place, trial);
    rig.write(5 * BLOCK_BYTES, &[7; BLOCK_BYTES as usize]);
    scan(&rig);
    let division = rig
        .tier
        .share(wanted(r#"{"pinned": [{"name": "table:a", "runs": [[20, 3]]}], "excluded": [{"name": "table:a", "runs": [[4, 10]]}]}"#))
        .unwrap();
    assert_eq!((division.pinned.blocks, division.available), (3, 7));
    settled(&rig);
    let pinned = |blocks: &[u32]| [20, 21, 22].iter().all(|block| blocks.contains(block));
    // One that the scan is still fetching, on a loaded computer, is passed over.
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let blocks = [20, 21, 22, 4].into_iter().collect();
        let warmed = rig.tier.warm(blocks, None, |_| true);
        assert!(warmed.error.is_none() && warmed.skipped >= 1, "{warmed:?}");
        let blocks = resident(&rig);
        if pinned(&blocks) {
            break;
        }
        assert!(Instant::now() < deadline, "{blocks:?}");
    }
    let held = |rig: &Rig| {
        scan(rig);
        let blocks = resident(rig);
        assert!(pinned(&blocks), "{blocks:?}");
        assert!(
            blocks.iter().all(|block| !(4..14).contains(block)),
            "{blocks:?}"
        );
        let read = rig.read(5 * BLOCK_BYTES, BLOCK_BYTES as usize);
        assert_eq!(read.bytes(), [7; BLOCK_BYTES as usize]);
    };
    held(&rig);
    rig.stop();
    rig = Rig::start(&place, trial);
    held(&rig);
    let other: Reconfigure = serde_json::from_str(r#"{"policy": "hotset"}"#).unwrap();
    rig.tier.reconfigure(&other).unwrap();
    held(&rig);
    assert_eq!(rig.tier.division().pinned.resident, 3);
    rig.tier.share(Wanted::default()).unwrap();
    assert_eq!(rig.tier.division().pinned.blocks, 0);
    rig.stop();
}

#[test]
fn a_share_is_kept_to_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::make(dir.path());
    let rig = Rig::start(&place, Trial::of(PolicyKind::S3Fifo, Mode::Writeback));
    let shares = r#"{"shares": [
        {"name": "database:shop", "runs": [[0, 12]], "guaranteed": 4, "most": 8},
        {"name": "database:log", "runs": [[12, 12]], "guaranteed": 1, "most": 2}
    ]}"#;
    rig.tier.share(wanted(shares)).unwrap();
    for _ in 0..3 {
        scan(&rig);
    }
    let division = rig.tier.division();
    let [shop, log] = &division.shares[..] else {
        panic!("{division:?}");
    };
    assert_eq!(
        (shop.name.as_str(), shop.guaranteed, log.most),
        ("database:shop", 4, 2)
    );
    assert!(shop.resident >= 4 && log.resident <= 2, "{division:?}");
    rig.stop();
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::make(dir.path());
    let rig = Rig::start(&place, Trial::of(PolicyKind::Lru, Mode::Writeback));
    rig.tier
        .share(wanted(
            r#"{"pinned": [{"name": "table:a", "runs": [[0, 5]]}]}"#,
        ))
        .unwrap();
    let refused = |json: &str, words: &[&str]| {
        let error = rig.tier.share(wanted(json)).unwrap_err().to_string();
        for word in words {
            assert!(error.contains(word), "{error} lacks {word}");
        }
    };
    let size = format!("{} KiB pinned", (8 * BLOCK_BYTES) >> 10);
    refused(
        r#"{"pinned": [{"name": "table:a", "runs": [[0, 8]]}]}"#,
        &[&size, "Pin less", "larger"],
    );
    refused(
        r#"{"pinned": [{"name": "table:a", "runs": [[23, 2]]}]}"#,
        &["25", "24"],
    );
    let share = |name: &str, first: u32, count: u32, most: u32| {
        format!(
            r#"{{"name": "{name}", "runs": [[{first}, {count}]], "guaranteed": 4, "most": {most}}}"#
        )
    };
    let (a, b) = (share("a", 0, 9, 8), share("b", 9, 9, 8));
    refused(&format!(r#"{{"shares": [{a}, {b}]}}"#), &["guaranteed"]);
    let (in_a, also) = (share("in a", 0, 4, 8), share("also", 4, 4, 8));
    let a = share("a", 0, 9, 7);
    refused(
        &format!(r#"{{"shares": [{in_a}, {a}, {also}]}}"#),
        &["inside a", "Raise its limit"],
    );
    // Nor can the cache become too small for what is pinned.
    let smaller: Reconfigure = serde_json::from_str(r#"{"cache_bytes": 65536}"#).unwrap();
    let error = rig.tier.reconfigure(&smaller).unwrap_err().to_string();
    assert!(error.contains("pinned"), "{error}");
    assert_eq!(rig.tier.division().pinned.blocks, 5);
    rig.stop();
}

/// Better a cache without pins than none.
#[test]
fn a_file_of_another_disk_or_of_nothing_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::make(dir.path());
    let trial = Trial::of(PolicyKind::Lru, Mode::Writeback);
    let path = dir.path().join("shares");
    let rig = Rig::start(&place, trial);
    rig.tier
        .share(wanted(
            r#"{"pinned": [{"name": "table:a", "runs": [[0, 5]]}]}"#,
        ))
        .unwrap();
    rig.stop();
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, after) = text.split_once(r#""origin":""#).unwrap();
    let of_another = format!("{before}\"origin\":\"{}{}", "0".repeat(32), &after[32..]);
    for kept in [of_another.as_str(), "{", ""] {
        std::fs::write(&path, kept).unwrap();
        let rig = Rig::start(&place, trial);
        assert_eq!(rig.tier.division().pinned.blocks, 0, "{kept}");
        rig.stop();
    }
    std::fs::write(&path, &text).unwrap();
    let rig = Rig::start(&place, trial);
    assert_eq!(rig.tier.division().pinned.blocks, 5);
    rig.stop();
}
