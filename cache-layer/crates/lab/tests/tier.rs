//! The engine over modelled devices, through a real mount. Skipped, with a word, where FUSE cannot be had.

use std::os::unix::fs::FileExt;

use serde_json::json;

use common::has_fuse;
use served::{BLOCK_BYTES, Served, make_place, refusal};

const PROGRAM: &str = env!("CARGO_BIN_EXE_flashdev");
const MORE: &[&str] = &["--origin-model=nvme-2024"];

#[path = "../../engine/tests/common/mod.rs"]
#[allow(dead_code)]
mod common;
#[path = "../../engine/tests/tier/served.rs"]
#[allow(dead_code)]
mod served;

#[test]
fn a_model_that_is_none_is_refused() {
    let dir = make_place();
    for which in ["--flash-model=none", "--origin-model=none"] {
        let error = refusal(dir.path(), &[which]);
        assert!(error.contains("neither in the library"), "{error}");
    }
}

#[test]
fn a_modelled_flash_serves_what_was_written() {
    let dir = make_place();
    if !has_fuse() {
        return;
    }
    let served = Served::start(dir.path(), &["--flash-model=pcie-flash-2014"]);
    served.warm(4);
    let data = served.open("data");
    data.write_all_at(&[7; 8192], BLOCK_BYTES).unwrap();
    data.sync_all().unwrap();
    let mut seen = [0; 8192];
    data.read_exact_at(&mut seen, BLOCK_BYTES).unwrap();
    assert_eq!(seen, [7; 8192]);
    drop(data);
    assert_eq!(served.stop()["dirty"], 1);
}

#[test]
fn a_long_flush_and_warm_up_tell_how_far_they_are() {
    let dir = make_place();
    if !has_fuse() {
        return;
    }
    let served = Served::start(dir.path(), &["--policy=sieve"]);
    served.warm(16);
    let data = served.open("data");
    for block in 0..16 {
        data.write_all_at(&[7; 8192], block * BLOCK_BYTES).unwrap();
    }
    drop(data);
    served.stop();
    // Slow enough that there is something to tell.
    let model = dir.path().join("slow.json");
    let fields = r#"{"rpm": 1000, "media_mb_per_s": 1, "write_gather_kb": 0, "read_ahead_kb": 0}"#;
    let words = format!(r#"{{"name": "slow", "device": {{"hdd": {fields}}}}}"#);
    std::fs::write(&model, words).unwrap();
    let slow = ["--policy=sieve", "--origin-model=slow.json"];
    let served = Served::start(dir.path(), &slow);
    let mut client = served.connect();
    let first = client.ask(r#"{"flush": {}}"#);
    assert!(first["left"].as_u64().unwrap() > 0, "{first}");
    // Others are answered meanwhile.
    assert_eq!(served.ask(json!({"counters": {}}))["state"], "flushing");
    while client.next().get("flushed").is_none() {}
    let mut client = served.connect();
    let first = client.ask(r#"{"warm": {"runs": [[64, 16]]}}"#);
    assert_eq!(first["total"], 16 * BLOCK_BYTES, "{first}");
    let last = loop {
        let answer = client.next();
        if answer.get("seconds").is_some() {
            break answer;
        }
    };
    assert_eq!((&last["blocks"], &last["skipped"]), (&json!(16), &json!(0)));
    served.stop();
}
