//! What happens when a disk below the tier is full.

use std::fs::File;
use std::os::unix::fs::FileExt;

use serde_json::json;

use crate::common::{SmallDisk, has_fuse};
use crate::served::{BLOCK_BYTES, FLASH_BYTES, ORIGIN_BYTES, SLOTS, Served, make_place};

#[test]
fn a_full_disk_below_the_flash_is_reported_and_survived() {
    let dir = make_place();
    let small = dir.path().join("small");
    let Some(_disk) = SmallDisk::mount(&small, "2m") else {
        return;
    };
    if !has_fuse() {
        return;
    }
    let flash = File::create(small.join("flash")).unwrap();
    flash.set_len(FLASH_BYTES).unwrap();
    drop(flash);
    let served = Served::start(dir.path(), &["--flash=small/flash", "--discard"]);
    // Of the 2 MiB the metadata has one: some blocks find room, and the others stay where they are.
    let answer = served.ask(json!({"warm": {"runs": [[0, SLOTS]]}}));
    assert!(
        answer["error"].as_str().unwrap().contains("No space"),
        "{answer}"
    );
    let blocks = answer["blocks"].as_u64().unwrap();
    assert!((1..SLOTS).contains(&blocks), "{answer}");
    let error = served
        .open("volume")
        .write_all_at(&[1; 8192], 0)
        .unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    let data = served.open("data");
    for block in 0..SLOTS {
        data.write_all_at(&[7; 8192], block * BLOCK_BYTES).unwrap();
        let mut seen = [0; 8192];
        data.read_exact_at(&mut seen, block * BLOCK_BYTES).unwrap();
        assert_eq!(seen, [7; 8192]);
    }
    drop(data);
    served.stop();
}

#[test]
fn a_full_disk_below_the_origin_is_reported_and_nothing_dirty_is_lost() {
    let dir = make_place();
    let small = dir.path().join("small");
    let Some(_disk) = SmallDisk::mount(&small, "1m") else {
        return;
    };
    if !has_fuse() {
        return;
    }
    let origin = File::create(small.join("origin")).unwrap();
    origin.set_len(ORIGIN_BYTES).unwrap();
    drop(origin);
    let served = Served::start(dir.path(), &["--origin=small/origin"]);
    served.warm(SLOTS);
    let data = served.open("data");
    for block in 0..SLOTS {
        data.write_all_at(&[7; 8192], block * BLOCK_BYTES).unwrap();
    }
    let answer = served.ask(json!({"flush": {}}));
    assert!(
        answer["error"].as_str().unwrap().contains("No space"),
        "{answer}"
    );
    let missed = data
        .write_all_at(&[7; 1 << 20], ORIGIN_BYTES / 2)
        .unwrap_err();
    assert_eq!(missed.raw_os_error(), Some(libc::ENOSPC));
    for block in 0..SLOTS {
        let mut seen = [0; 8192];
        data.read_exact_at(&mut seen, block * BLOCK_BYTES).unwrap();
        assert_eq!(seen, [7; 8192]);
    }
    drop(data);
    let left = served.stop();
    assert!(left["dirty"].as_u64().unwrap() > 0);
    assert_eq!(left["write_back_failure"]["device"], "origin", "{left}");
}
