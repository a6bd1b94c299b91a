//! The tier through a real mount and its socket. Skipped, with a word, where FUSE cannot be had.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::fcntl::{FallocateFlags, fallocate};
use nix::sys::signal::{Signal, kill};
use serde_json::json;

use common::has_fuse;
use served::{BLOCK_BYTES, FLASH_BYTES, ORIGIN_BYTES, SLOTS, Served, check, make_place, refusal};

/// What is tested, and its options beside the usual ones.
const PROGRAM: &str = env!("CARGO_BIN_EXE_hotset-engine");
const MORE: &[&str] = &[];

#[path = "../common/mod.rs"]
mod common;
mod full_disk;
mod served;

/// Seconds since 1970.
fn clock() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs_f64()
}

#[test]
fn it_serves_data_and_volume() {
    let dir = make_place();
    if !has_fuse() {
        return;
    }
    let served = Served::start(dir.path(), &[]);
    let mount = dir.path().canonicalize().unwrap().join("mount");
    let (data, volume) = (mount.join("data"), mount.join("volume"));
    assert_eq!(
        served.ready(),
        format!(
            "ready {} {ORIGIN_BYTES} {} {}\n",
            data.display(),
            volume.display(),
            1 << 20
        )
    );
    for (name, byte) in [("data", 3), ("volume", 4)] {
        let file = served.open(name);
        file.write_all_at(&[byte; 100_000], 5000).unwrap();
        file.sync_all().unwrap();
        let mut seen = [0; 100_002];
        file.read_exact_at(&mut seen, 4999).unwrap();
        assert_eq!((seen[0], seen[100_001]), (0, 0));
        assert!(seen[1..=100_000].iter().all(|&found| found == byte));
    }
    let punch = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    let zero = FallocateFlags::FALLOC_FL_ZERO_RANGE;
    let refused = fallocate(served.open("data"), zero, 0, 65536).unwrap_err();
    assert_eq!(refused, nix::errno::Errno::EOPNOTSUPP);
    for (name, byte) in [("data", 3), ("volume", 4)] {
        fallocate(served.open(name), punch, 0, 65536).unwrap();
        let mut seen = [1; 2];
        served.open(name).read_exact_at(&mut seen, 65535).unwrap();
        assert_eq!(seen, [0, byte], "{name}");
    }
    let counters = served.stop();
    assert_eq!(counters["write_misses"], 2);
    let flash = std::fs::read(dir.path().join("flash")).unwrap();
    let volume = &flash[(FLASH_BYTES - (1 << 20)) as usize..];
    assert_eq!((volume[65535], volume[65536]), (0, 4));
}

/// As in a container: root by name, under the limit that systemd gives everybody.
#[test]
fn a_root_that_may_lock_no_memory_serves_all_the_same_and_says_so() {
    let dir = make_place();
    if !has_fuse() || !nix::unistd::Uid::effective().is_root() {
        return;
    }
    let mut served = Served::start_without_locking(dir.path());
    let data = served.open("data");
    for block in 0..ORIGIN_BYTES / BLOCK_BYTES {
        data.write_all_at(&[7; 8192], block * BLOCK_BYTES).unwrap();
    }
    drop(data);
    served.signal("TERM");
    assert!(served.said().contains("memory is not locked"));
}

#[test]
fn without_a_volume_there_is_no_such_file() {
    let dir = make_place();
    if !has_fuse() {
        return;
    }
    let served = Served::start(dir.path(), &["--volume=0"]);
    let entries = std::fs::read_dir(dir.path().join("mount")).unwrap();
    let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["data"]);
    served.stop();
}

#[test]
fn a_restart_keeps_what_is_cached_and_a_kill_what_was_written() {
    let dir = make_place();
    if !has_fuse() {
        return;
    }
    let served = Served::start(dir.path(), &[]);
    served.warm(20);
    let data = served.open("data");
    data.write_all_at(&[7; 8192], 3 * BLOCK_BYTES).unwrap();
    drop(data);
    assert_eq!(served.stop()["dirty"], 1);

    let served = Served::start(dir.path(), &[]);
    let resident = served.ask(json!({"resident": {}}));
    assert_eq!(resident, json!({"runs": [[0, 20]], "dirty": [[3, 1]]}));
    let data = served.open("data");
    for block in 10..15 {
        data.write_all_at(&[8; 8192], block * BLOCK_BYTES).unwrap();
    }
    drop(data);
    drop(served);

    let served = Served::start(dir.path(), &["--mode=writethrough"]);
    let resident = served.ask(json!({"resident": {}}));
    assert_eq!(resident["dirty"], json!([[3, 1], [10, 5]]));
    let data = served.open("data");
    for (block, byte) in [(3, 7), (10, 8), (14, 8), (15, 0)] {
        let mut seen = [1; 8192];
        data.read_exact_at(&mut seen, block * BLOCK_BYTES).unwrap();
        assert_eq!(seen, [byte; 8192], "block {block}");
    }
    assert_eq!(served.ask(json!({"flush": {}})), json!({"flushed": 6}));
    let counters = served.ask(json!({"counters": {}}));
    assert_eq!(
        (&counters["dirty"], &counters["write_backs"]),
        (&json!(0), &json!(6))
    );
    served.stop();
    let served = Served::start(dir.path(), &["--discard"]);
    assert_eq!(served.ask(json!({"counters": {}}))["used"], 0);
    served.stop();
}

#[test]
fn what_does_not_fit_is_refused_with_a_remedy() {
    let dir = make_place();
    let dir = dir.path();
    let small = refusal(dir, &["--volume=1G"]);
    assert!(small.contains("smaller than its parts"), "{small}");
    assert!(refusal(dir, &["--metadata=4K"]).contains("too small"));
    assert!(refusal(dir, &["--block=48K"]).contains("power of two"));
    assert!(refusal(dir, &["--origin=none"]).contains("truncate -s"));
    std::fs::write(dir.join("control"), "somebody's").unwrap();
    assert!(refusal(dir, &[]).contains("another path"));
}

#[test]
fn another_layout_or_origin_is_refused_until_it_is_discarded() {
    let dir = make_place();
    if !has_fuse() {
        return;
    }
    Served::start(dir.path(), &[]).stop();
    for change in ["--block=32K", "--volume=512K"] {
        let error = refusal(dir.path(), &[change]);
        assert!(error.contains("--discard"), "{error}");
        assert_eq!(refusal(dir.path(), &[change, "--check"]), error);
    }
    let origin = dir.path().join("origin");
    std::fs::remove_file(&origin).unwrap();
    File::create(&origin)
        .unwrap()
        .set_len(ORIGIN_BYTES)
        .unwrap();
    let error = refusal(dir.path(), &[]);
    assert!(error.contains("--discard"), "{error}");
    Served::start(dir.path(), &["--discard", "--block=32K"]).stop();
}

#[test]
fn a_check_writes_nothing_and_finds_what_a_start_would() {
    let dir = make_place();
    let flash = dir.path().join("flash");
    let bytes = || std::fs::read(&flash).unwrap();
    let new = bytes();
    check(dir.path());
    assert_eq!(bytes(), new);
    if !has_fuse() {
        return;
    }
    Served::start(dir.path(), &[]).stop();
    let used = bytes();
    check(dir.path());
    assert_eq!(bytes(), used);
    let mut damaged = used.clone();
    damaged[..8192].fill(0x5a);
    std::fs::write(&flash, &damaged).unwrap();
    let error = refusal(dir.path(), &["--check"]);
    assert!(error.contains("metadata on the flash"), "{error}");
    assert_eq!(bytes(), damaged);
}

#[test]
fn the_socket_answers_what_it_is_asked_and_complains_about_the_rest() {
    let dir = make_place();
    if !has_fuse() {
        return;
    }
    let before = clock();
    let served = Served::start(dir.path(), &[]);
    served.warm(4);
    let mut client = served.connect();
    for (request, words) in [
        ("counters", "one JSON object per line"),
        (r#"{"counters": {}, "x": {}}"#, "not a request"),
        (r#"{"counters": {"x": 1}}"#, "unknown field `x`"),
        (r#"{"stop": {}}"#, "unknown variant `stop`"),
        (r#"{"set": {"dirty_target": 101}}"#, "0 to 100"),
        (r#"{"warm": {"runs": [[120, 9]]}}"#, "128 blocks"),
        (r#"{"heat": {"extent_blocks": 0}}"#, "at least 1"),
    ] {
        let answer = client.ask(request);
        let error = answer["error"].as_str().unwrap();
        assert!(error.contains(words), "{request}: {error}");
    }
    let settings = client.ask(r#"{"set": {"migration_threshold": 512}}"#);
    assert_eq!(
        settings,
        json!({"migration_threshold": 512, "dirty_target": 100})
    );
    let heat = client.ask(r#"{"heat": {"extent_blocks": 3}}"#);
    // LRU keeps no levels.
    assert_eq!(
        heat,
        json!({"extent_blocks": 3, "extents": [[0, 3, 0], [3, 1, 0]]})
    );
    let mut counters = client.ask(r#"{"counters": {}}"#);
    let begun = counters.as_object_mut().unwrap().remove("begun").unwrap();
    let begun = begun.as_f64().unwrap();
    assert!((before..=clock()).contains(&begun), "{before} {begun}");
    let wanted = json!({
        "read_hits": 0, "read_misses": 0, "write_hits": 0, "write_misses": 0, "promotions": 4,
        "demotions": 0, "write_backs": 0, "dirty": 0, "used": 4, "total": SLOTS,
        "block_bytes": BLOCK_BYTES, "policy": "lru", "mode": "writeback", "state": "serving",
    });
    assert_eq!(counters, wanted);
    // A second tier may not take the socket over.
    let other = make_place();
    let path = dir.path().join("control");
    let error = refusal(other.path(), &[&format!("--control={}", path.display())]);
    assert!(error.contains("in use"), "{error}");
    served.stop();
}

#[test]
fn a_client_that_reads_nothing_holds_up_nobody() {
    let dir = make_place();
    if !has_fuse() {
        return;
    }
    let served = Served::start(dir.path(), &[]);
    let mut stalled = std::os::unix::net::UnixStream::connect(dir.path().join("control")).unwrap();
    // Replies of some megabytes, more than any socket holds, and a warm-up in between.
    stalled
        .set_write_timeout(Some(Duration::from_millis(500)))
        .unwrap();
    stalled
        .write_all(b"{\"warm\": {\"runs\": [[0, 8]]}}\n")
        .unwrap();
    let _ = stalled.write_all(&b"{\"counters\": {}}\n".repeat(20_000));
    let data = served.open("data");
    for block in 0..2 * SLOTS {
        data.write_all_at(&[7; 8192], block * BLOCK_BYTES).unwrap();
    }
    data.sync_all().unwrap();
    drop(data);
    assert!(served.ask(json!({"counters": {}}))["promotions"].as_u64() >= Some(8));
    // It is still connected, and not waited for.
    served.stop();
    drop(stalled);
}

#[test]
fn sigterm_under_load_ends_well_and_loses_nothing_that_was_answered() {
    let dir = make_place();
    if !has_fuse() {
        return;
    }
    let mut served = Served::start(dir.path(), &[]);
    let data = served.open("data");
    let mut answered = 0;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            // Every block in turn, until the server is gone.
            (0u64..)
                .find(|&count| {
                    let offset = count % (ORIGIN_BYTES / BLOCK_BYTES) * BLOCK_BYTES;
                    data.write_all_at(&count.to_le_bytes(), offset).is_err()
                })
                .unwrap()
        });
        std::thread::sleep(Duration::from_millis(300));
        served.signal("TERM");
        served.wait();
        answered = writer.join().unwrap();
    });
    drop(data);
    assert!(answered > 100, "{answered} writes");
    let served = Served::start(dir.path(), &[]);
    let data = served.open("data");
    for count in answered.saturating_sub(100)..answered {
        let mut seen = [0; 8];
        let offset = count % (ORIGIN_BYTES / BLOCK_BYTES) * BLOCK_BYTES;
        data.read_exact_at(&mut seen, offset).unwrap();
        let seen = u64::from_le_bytes(seen);
        // The one after the last may have been written though it was not answered.
        assert!(seen == count || seen == answered, "{seen}, not {count}");
    }
    drop(data);
    served.stop();
}

#[test]
fn an_unmount_from_outside_is_refused_while_it_is_in_use_and_does_no_harm() {
    let dir = make_place();
    if !has_fuse() {
        return;
    }
    let mut served = Served::start(dir.path(), &[]);
    served.warm(4);
    let data = served.open("data");
    data.write_all_at(&[7; 8192], BLOCK_BYTES).unwrap();
    let unmount = Command::new("umount")
        .arg(dir.path().join("mount"))
        .output();
    let unmount = unmount.unwrap();
    assert!(!unmount.status.success());
    data.write_all_at(&[8; 8192], 2 * BLOCK_BYTES).unwrap();
    assert_eq!(served.ask(json!({"counters": {}}))["dirty"], 2);
    drop(data);
    // Nobody uses it any more: then an unmount is as good as a signal.
    let freed = Command::new("umount")
        .arg(dir.path().join("mount"))
        .status();
    assert!(freed.unwrap().success());
    assert_eq!(served.wait()["dirty"], 2);
    let served = Served::start(dir.path(), &[]);
    let mut seen = [0; 8192];
    let data = served.open("data");
    data.read_exact_at(&mut seen, 2 * BLOCK_BYTES).unwrap();
    assert_eq!(seen, [8; 8192]);
    drop(data);
    served.stop();
}

/// The options of `hotset-engine salvage` on the files.
const SALVAGE: [&str; 8] = [
    "salvage",
    "--witness=control.witness",
    "--origin=origin",
    "--flash=flash",
    "--metadata=1M",
    "--cache=2M",
    "--volume=1M",
    "--volatile",
];

/// Runs `hotset-engine salvage` on the files; its exit code, and what it printed where.
fn salvage(dir: &Path, more: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(PROGRAM)
        .args(SALVAGE)
        .args(more)
        .current_dir(dir)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn what_a_damaged_cache_holds_is_told_and_then_written_to_the_origin() {
    let dir = make_place();
    if !has_fuse() {
        return;
    }
    let served = Served::start(dir.path(), &[]);
    served.warm(SLOTS);
    let data = served.open("data");
    data.write_all_at(&[7; 8192], 3 * BLOCK_BYTES).unwrap();
    drop(data);
    let (code, _, error) = salvage(dir.path(), &[]);
    assert!(code == Some(2) && error.contains("in use"), "{error}");
    drop(served);
    // The table; what is in every slot is in the journal as well.
    let flash = File::options().write(true).open(dir.path().join("flash"));
    let flash = flash.unwrap();
    flash.write_all_at(&[0xaa; 4096], 12288).unwrap();
    assert!(refusal(dir.path(), &[]).contains("`hotset-engine salvage`"));
    let origin = || std::fs::read(dir.path().join("origin")).unwrap();
    let old = origin();
    let (code, text, error) = salvage(dir.path(), &[]);
    assert_eq!((code, error), (Some(0), String::new()), "{text}");
    assert!(
        text.contains("dirty, proven: 1 slots, 65536 bytes"),
        "{text}"
    );
    assert!(text.contains("nothing was written"), "{text}");
    assert!(old == origin());
    let (code, text, error) = salvage(dir.path(), &["--write", "--json"]);
    assert_eq!(code, Some(0), "{error}");
    assert!(error.contains("65536 of 65536 bytes written"), "{error}");
    let told: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(told["written_bytes"], 65536);
    let start = 3 * BLOCK_BYTES as usize;
    assert_eq!(origin()[start..start + 8192], [7; 8192]);
    // Both superblocks as well: nothing says whose it is.
    flash.write_all_at(&[0; 8192], 0).unwrap();
    let (code, text, _) = salvage(dir.path(), &[]);
    assert_eq!(code, Some(5), "{text}");
    assert!(text.contains("may be lost anywhere in"), "{text}");
    let (code, text, error) = salvage(dir.path(), &["--write"]);
    assert!(code == Some(2) && text.is_empty(), "{error}");
    assert!(error.contains("--unidentified"), "{error}");
}

/// A cache that is full of dirty blocks, and whose table is damaged; what it is to be on the origin.
fn damaged_and_dirty(dir: &Path) -> Vec<u8> {
    let served = Served::start(dir, &["--dirty-target=100"]);
    served.warm(SLOTS);
    let dirty = vec![7; (SLOTS * BLOCK_BYTES) as usize];
    served.open("data").write_all_at(&dirty, 0).unwrap();
    drop(served);
    let flash = File::options().write(true).open(dir.join("flash"));
    flash.unwrap().write_all_at(&[0xaa; 4096], 12288).unwrap();
    dirty
}

/// Wherever it comes, as from Ctrl-C: files are let go of, the cache is as it was, and the next one
/// ends it.
#[test]
fn a_salvage_that_is_interrupted_is_done_by_the_next_one() {
    let dir = make_place();
    if !has_fuse() {
        return;
    }
    let dirty = damaged_and_dirty(dir.path());
    let flash = std::fs::read(dir.path().join("flash")).unwrap();
    let mut interrupted = 0;
    for round in 0..40 {
        // Whoever runs the tests in the background may have it ignored, which children inherit.
        let mut child = Command::new("env")
            .args(["--default-signal=INT", PROGRAM])
            .args(SALVAGE)
            .arg("--write")
            .current_dir(dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_micros(round * 500));
        let pid = nix::unistd::Pid::from_raw(child.id().try_into().unwrap());
        kill(pid, Signal::SIGINT).unwrap();
        let ended = child.wait().unwrap();
        let by_signal = ended.signal() == Some(Signal::SIGINT as i32);
        assert!(by_signal || ended.code() == Some(0), "{ended}");
        interrupted += u32::from(by_signal);
        let now = std::fs::read(dir.path().join("flash")).unwrap();
        assert!(now == flash, "the cache is only read");
    }
    assert!(interrupted > 0);
    let (code, text, error) = salvage(dir.path(), &["--write"]);
    assert_eq!(code, Some(0), "{text}{error}");
    let origin = std::fs::read(dir.path().join("origin")).unwrap();
    assert!(origin[..dirty.len()] == dirty);
}

#[test]
fn a_salvage_that_cannot_write_the_origin_has_failed_and_one_that_cannot_know_is_incomplete() {
    let dir = make_place();
    if !has_fuse() {
        return;
    }
    damaged_and_dirty(dir.path());
    // No file may grow or be written any more.
    let script = format!(
        "trap '' XFSZ; ulimit -f 0; exec {} {} --write",
        PROGRAM,
        SALVAGE.join(" ")
    );
    let done = Command::new("sh")
        .args(["-c", &script])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let error = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(4), "{error}");
    assert!(error.contains("salvage again once it is mended"), "{error}");
    // The first record of the journal, too: what it says is not known.
    let flash = File::options().write(true).open(dir.path().join("flash"));
    let half = vec![0x55; 1 << 19];
    flash.unwrap().write_all_at(&half, 1 << 19).unwrap();
    let (code, text, error) = salvage(dir.path(), &["--write"]);
    assert_eq!(code, Some(5), "{text}{error}");
    assert!(text.contains("may be lost anywhere in"), "{text}");
}
