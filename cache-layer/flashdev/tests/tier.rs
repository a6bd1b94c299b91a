//! The tier through a real mount and its socket. Skipped, with a word, where FUSE cannot be had.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{SmallDisk, free_mount, has_fuse, is_mounted};
use nix::fcntl::{FallocateFlags, fallocate};
use serde_json::{Value, json};

mod common;

const ORIGIN_BYTES: u64 = 8 << 20;
const BLOCK_BYTES: u64 = 64 << 10;
const SLOTS: u64 = 32;
const FLASH_BYTES: u64 = (1 << 20) + SLOTS * BLOCK_BYTES + (1 << 20);

/// The arguments that every tier here has; later ones of the same name win.
const USUAL: [&str; 14] = [
    "--origin-model=nas-2014",
    "--origin=origin",
    "--flash=flash",
    "--metadata=1M",
    "--cache=2M",
    "--volume=1M",
    "--policy=lru",
    "--dirty-target=100",
    "--mount=mount",
    "--control=control",
    "--time-scale=0.01",
    "--volatile",
    "--block=64K",
    "--mode=writeback",
];

/// A directory with the files of a tier.
fn make_place() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in [("origin", ORIGIN_BYTES), ("flash", FLASH_BYTES)] {
        let file = File::create(dir.path().join(name)).unwrap();
        file.set_len(bytes).unwrap();
    }
    std::fs::create_dir(dir.path().join("mount")).unwrap();
    dir
}

fn command(dir: &Path, changes: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flashdev"));
    let name_of = |argument: &str| argument.split('=').next().unwrap().to_owned();
    let changed = |usual: &&&str| {
        !changes
            .iter()
            .any(|change| name_of(change) == name_of(usual))
    };
    command
        .arg("tier")
        .args(USUAL.iter().filter(changed))
        .args(changes)
        .current_dir(dir);
    command
}

/// A running tier; killed and unmounted when dropped, whatever the test did.
struct Served {
    dir: PathBuf,
    child: Child,
    ready: String,
}

impl Served {
    fn start(dir: &Path, changes: &[&str]) -> Served {
        let mut child = command(dir, changes)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut ready).unwrap();
        let served = Served {
            dir: dir.to_owned(),
            child,
            ready,
        };
        assert!(served.ready.starts_with("ready "), "it did not get ready");
        served
    }

    fn open(&self, name: &str) -> File {
        let mut options = OpenOptions::new();
        let path = self.dir.join("mount").join(name);
        options.read(true).write(true).open(path).unwrap()
    }

    fn connect(&self) -> Client {
        let stream = UnixStream::connect(self.dir.join("control")).unwrap();
        Client(BufReader::new(stream))
    }

    fn ask(&self, request: Value) -> Value {
        self.connect().ask(&request.to_string())
    }

    /// Fetches the first blocks of the origin.
    fn warm(&self, count: u64) {
        let mut client = self.connect();
        let mut answer = client.ask(&json!({"warm": {"runs": [[0, count]]}}).to_string());
        while answer.get("total").is_some() {
            answer = client.next();
        }
        assert_eq!(answer["blocks"], count, "{answer}");
    }

    fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(status.unwrap().success());
    }

    /// Ends it in order; what it had to say.
    fn stop(mut self) -> Value {
        self.signal("TERM");
        self.wait()
    }

    fn wait(&mut self) -> Value {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut errors = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut errors).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{errors}");
        assert!(!is_mounted(&self.dir.join("mount")));
        assert!(!self.dir.join("control").exists());
        serde_json::from_str(&errors).unwrap_or_else(|_| panic!("{errors}"))
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        free_mount(&self.dir.join("mount"));
    }
}

struct Client(BufReader<UnixStream>);

impl Client {
    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"))
    }

    fn ask(&mut self, line: &str) -> Value {
        self.0.get_mut().write_all(line.as_bytes()).unwrap();
        self.0.get_mut().write_all(b"\n").unwrap();
        self.next()
    }
}

fn refusal(dir: &Path, changes: &[&str]) -> String {
    let output = command(dir, changes).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{changes:?}: {error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    error
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
        served.ready,
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
    let refused = fallocate(served.open("data"), punch, 0, 65536).unwrap_err();
    assert_eq!(refused, nix::errno::Errno::EOPNOTSUPP);
    fallocate(served.open("volume"), punch, 0, 65536).unwrap();
    let mut seen = [1; 2];
    served
        .open("volume")
        .read_exact_at(&mut seen, 65535)
        .unwrap();
    assert_eq!(seen, [0, 4]);
    let counters = served.stop();
    assert_eq!(counters["write_misses"], 2);
    let flash = std::fs::read(dir.path().join("flash")).unwrap();
    let volume = &flash[(FLASH_BYTES - (1 << 20)) as usize..];
    assert_eq!((volume[65535], volume[65536]), (0, 4));
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
    served.kill();

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
    assert!(refusal(dir, &["--flash-model=none"]).contains("neither built in"));
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
fn the_socket_answers_what_it_is_asked_and_complains_about_the_rest() {
    let dir = make_place();
    if !has_fuse() {
        return;
    }
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
    let counters = client.ask(r#"{"counters": {}}"#);
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
    let slow = ["--policy=sieve", "--time-scale=60"];
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
    let served = Served::start(dir.path(), &["--flash=small/flash"]);
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
    assert!(served.stop()["dirty"].as_u64().unwrap() > 0);
}
