//! The served device through a real mount. Skipped, with a word, where FUSE cannot be had.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use common::{Daemon, SmallDisk, has_fuse, is_mounted};

#[path = "../../engine/tests/common/mod.rs"]
mod common;

const SIZE_BYTES: u64 = 16 << 20;

/// A served device.
struct Served {
    dir: tempfile::TempDir,
    daemon: Daemon,
}

impl Served {
    /// On a backing file in a fresh directory; `None` where FUSE cannot be had.
    fn start(model: &str) -> Option<Served> {
        let dir = tempfile::tempdir().unwrap();
        Served::start_in(dir, "backing", model)
    }

    fn start_in(dir: tempfile::TempDir, backing: &str, model: &str) -> Option<Served> {
        Served::start_with(dir, backing, model, &[])
    }

    fn start_with(
        dir: tempfile::TempDir,
        backing: &str,
        model: &str,
        more: &[&str],
    ) -> Option<Served> {
        if !has_fuse() {
            return None;
        }
        let backing = dir.path().join(backing);
        File::create(&backing).unwrap().set_len(SIZE_BYTES).unwrap();
        let mount = dir.path().join("mount");
        std::fs::create_dir(&mount).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_flashdev"));
        command
            .args(["serve", "--model", model])
            .arg("--backing")
            .arg(&backing)
            .arg("--mount")
            .arg(&mount)
            .args(more);
        let daemon = Daemon::start(&mut command, mount);
        Some(Served { dir, daemon })
    }

    fn mount(&self) -> PathBuf {
        self.dir.path().join("mount")
    }

    fn disk(&self) -> PathBuf {
        self.mount().join("disk")
    }

    fn open(&self, flags: i32) -> File {
        OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags)
            .open(self.disk())
            .unwrap()
    }

    /// Waits for the end; exit code and counters.
    fn wait(&mut self) -> (Option<i32>, serde_json::Value) {
        let (code, errors) = self.daemon.wait();
        let counters = serde_json::from_str(&errors).unwrap_or_else(|_| panic!("{errors}"));
        (code, counters)
    }

    fn signal(&self, name: &str) {
        self.daemon.signal(name);
    }
}

/// Pseudo-random numbers, the same ones every time.
fn draw(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn data_written_is_read_back_through_the_mount_and_in_the_backing_file() {
    let Some(mut served) = Served::start("nvme-2024") else {
        return;
    };
    let file = served.open(0);
    let mut twin = vec![0u8; SIZE_BYTES as usize];
    let mut state = 2014;
    for round in 0..200 {
        let offset = draw(&mut state) % SIZE_BYTES;
        let len = (1 + draw(&mut state) % 300_000).min(SIZE_BYTES - offset);
        // A third of them aligned, as databases write.
        let (offset, len) = match round % 3 {
            0 => (offset & !8191, 8192),
            _ => (offset, len),
        };
        let data: Vec<u8> = (0..len).map(|_| draw(&mut state) as u8).collect();
        file.write_all_at(&data, offset).unwrap();
        let range = offset as usize..(offset + len) as usize;
        twin[range.clone()].copy_from_slice(&data);
        let mut seen = vec![0; data.len()];
        file.read_exact_at(&mut seen, offset).unwrap();
        assert!(seen == data, "round {round}: offset {offset}, {len} bytes");
    }
    file.sync_all().unwrap();
    let mut whole = vec![0; SIZE_BYTES as usize];
    file.read_exact_at(&mut whole, 0).unwrap();
    assert!(whole == twin);
    drop(file);
    served.signal("TERM");
    let (code, counters) = served.wait();
    assert_eq!(code, Some(0));
    assert!(std::fs::read(served.dir.path().join("backing")).unwrap() == twin);
    assert!(counters["writes"].as_u64().unwrap() >= 200);
    assert_eq!(counters["flushes"], 1);
    assert_eq!(counters["errors"], 0);
    assert!(counters["busy_ms"].as_f64().unwrap() > 0.0);
}

#[test]
fn the_directory_shows_one_file_of_the_backing_files_size() {
    let Some(served) = Served::start("nvme-2024") else {
        return;
    };
    assert_eq!(
        served.daemon.ready,
        format!("ready {} {SIZE_BYTES}\n", served.disk().display())
    );
    let names: Vec<_> = std::fs::read_dir(served.mount())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["disk"]);
    assert_eq!(std::fs::metadata(served.disk()).unwrap().len(), SIZE_BYTES);
}

#[test]
fn a_volume_is_the_end_of_the_flash_and_none_of_its_beginning() {
    let dir = tempfile::tempdir().unwrap();
    let cut = ["--volume", "4M"];
    let Some(mut served) = Served::start_with(dir, "backing", "pcie-flash-2014", &cut) else {
        return;
    };
    const VOLUME_BYTES: u64 = 4 << 20;
    let start = SIZE_BYTES - VOLUME_BYTES;
    let volume = served.mount().join("volume");
    for (path, size, byte) in [(&served.disk(), start, 1), (&volume, VOLUME_BYTES, 2)] {
        assert_eq!(std::fs::metadata(path).unwrap().len(), size);
        let file = OpenOptions::new().write(true).open(path).unwrap();
        file.write_all_at(&vec![byte; size as usize], 0).unwrap();
        let error = file.write_at(&[3; 100], size).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    }
    served.signal("TERM");
    assert_eq!(served.wait().0, Some(0));
    let bytes = std::fs::read(served.dir.path().join("backing")).unwrap();
    let (first, second) = bytes.split_at(start as usize);
    assert!(first.iter().all(|byte| *byte == 1) && second.iter().all(|byte| *byte == 2));
}

#[test]
fn the_end_of_the_file_is_the_end_of_the_device() {
    let Some(served) = Served::start("nvme-2024") else {
        return;
    };
    let file = served.open(0);
    assert_eq!(file.read_at(&mut [0; 100], SIZE_BYTES).unwrap(), 0);
    assert_eq!(file.read_at(&mut [0; 100], SIZE_BYTES - 30).unwrap(), 30);
    let error = file.write_at(&[1; 100], SIZE_BYTES).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOSPC));
    for refused in [file.set_len(0), file.set_len(SIZE_BYTES * 2)] {
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EPERM));
    }
    let truncating = OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(served.disk());
    assert_eq!(truncating.unwrap_err().raw_os_error(), Some(libc::EPERM));
    assert!(std::fs::remove_file(served.disk()).is_err());
    assert!(File::create(served.mount().join("other")).is_err());
}

#[test]
fn a_punched_hole_reads_as_zeros() {
    use nix::fcntl::{FallocateFlags, fallocate};
    let Some(served) = Served::start("nvme-2024") else {
        return;
    };
    let file = served.open(0);
    file.write_all_at(&[7; 16384], 0).unwrap();
    let punch = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    fallocate(&file, punch, 4096, 4096).unwrap();
    let mut seen = vec![1; 16384];
    file.read_exact_at(&mut seen, 0).unwrap();
    assert!(seen[..4096].iter().all(|&byte| byte == 7));
    assert!(seen[4096..8192].iter().all(|&byte| byte == 0));
    assert!(fallocate(&file, FallocateFlags::empty(), SIZE_BYTES as i64, 4096).is_err());
}

#[test]
fn a_random_read_takes_as_long_as_the_model_says() {
    let Some(served) = Served::start("hdd-7200") else {
        return;
    };
    let file = served.open(libc::O_DIRECT);
    let memory = vec![0u8; 16384];
    let start = memory.as_ptr().align_offset(4096);
    let mut memory = memory;
    let mut state = 1;
    let began = Instant::now();
    const READS: u32 = 40;
    for _ in 0..READS {
        let offset = draw(&mut state) % (SIZE_BYTES / 8192) * 8192;
        file.read_exact_at(&mut memory[start..start + 8192], offset)
            .unwrap();
    }
    let mean_ms = began.elapsed().as_secs_f64() * 1e3 / f64::from(READS);
    // 11.9 ms by the model; what is above is for a busy machine.
    assert!((9.0..30.0).contains(&mean_ms), "{mean_ms}");
}

#[test]
fn fsync_waits_for_the_modelled_medium() {
    let Some(served) = Served::start("hdd-7200") else {
        return;
    };
    let file = served.open(0);
    file.sync_all().unwrap();
    let began = Instant::now();
    const COMMITS: u32 = 20;
    for i in 0..COMMITS {
        file.write_all_at(&[1; 8192], u64::from(i) * 8192).unwrap();
        file.sync_data().unwrap();
    }
    let mean_ms = began.elapsed().as_secs_f64() * 1e3 / f64::from(COMMITS);
    // A log record per turn of the platter: 8.3 ms, sometimes two.
    assert!((7.0..30.0).contains(&mean_ms), "{mean_ms}");
}

#[test]
fn sigterm_unmounts_even_with_the_file_open() {
    let Some(mut served) = Served::start("nas-2014") else {
        return;
    };
    let file = served.open(0);
    file.write_all_at(&[1; 8192], 0).unwrap();
    served.signal("TERM");
    let (code, _) = served.wait();
    assert_eq!(code, Some(0));
    assert!(!is_mounted(&served.mount()));
    assert!(file.read_at(&mut [0; 100], 0).is_err());
}

#[test]
fn sigusr1_does_no_harm_and_sigint_ends() {
    let Some(mut served) = Served::start("nvme-2024") else {
        return;
    };
    served.signal("USR1");
    served.open(0).write_all_at(&[1; 8192], 0).unwrap();
    assert!(is_mounted(&served.mount()));
    served.signal("INT");
    let (code, counters) = served.wait();
    assert_eq!((code, &counters["writes"]), (Some(0), &1.into()));
    assert!(!is_mounted(&served.mount()));
}

#[test]
fn an_unmount_from_outside_ends_it_well() {
    let Some(mut served) = Served::start("nvme-2024") else {
        return;
    };
    let status = Command::new("fusermount3")
        .arg("-u")
        .arg(served.mount())
        .status();
    assert!(status.unwrap().success());
    assert_eq!(served.wait().0, Some(0));
}

#[test]
fn it_dies_with_its_parent() {
    let Some(served) = Served::start("nvme-2024") else {
        return;
    };
    drop(served);
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("backing"), [0; 8192]).unwrap();
    std::fs::create_dir(dir.path().join("mount")).unwrap();
    let script = format!(
        "{} serve --model hdd-7200 --die-with-parent --backing backing --mount mount & read end",
        env!("CARGO_BIN_EXE_flashdev")
    );
    let mut parent = Command::new("sh")
        .args(["-c", &script])
        .current_dir(dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    let mut out = BufReader::new(parent.stdout.take().unwrap());
    out.read_line(&mut ready).unwrap();
    let mount = dir.path().join("mount");
    assert!(is_mounted(&mount));
    parent.kill().unwrap();
    parent.wait().unwrap();
    // Its end closes the pipe.
    out.read_to_string(&mut ready).unwrap();
    assert!(!is_mounted(&mount));
}

#[test]
fn a_full_backing_file_system_is_reported_and_survived() {
    let dir = tempfile::tempdir().unwrap();
    let small = dir.path().join("small");
    let Some(_disk) = SmallDisk::mount(&small, "1m") else {
        return;
    };
    let Some(mut served) = Served::start_in(dir, "small/backing", "nvme-2024") else {
        return;
    };
    let file = served.open(0);
    let write = |mib: u64| file.write_all_at(&[1; 1 << 20], mib << 20);
    let errors: Vec<_> = (0..4).filter_map(|mib| write(mib).err()).collect();
    assert!(!errors.is_empty());
    assert!(
        errors
            .iter()
            .all(|error| error.raw_os_error() == Some(libc::ENOSPC))
    );
    file.read_exact_at(&mut [0; 8192], 0).unwrap();
    drop(file);
    served.signal("TERM");
    let (code, counters) = served.wait();
    assert_eq!(code, Some(0));
    assert_eq!(counters["errors"], errors.len());
}

fn asked(socket: &str, question: &str) -> serde_json::Value {
    let mut said = Vec::new();
    hotset_engine::tools::ask::ask(socket.as_ref(), question, &mut said).unwrap();
    serde_json::from_slice(&said).unwrap()
}

/// Bytes to the cells for each byte that the host writes, after the second half of the file was
/// discarded (or not).
fn write_amplification(discard: bool) -> Option<f64> {
    use nix::fcntl::{FallocateFlags, fallocate};
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("control");
    let model = dir.path().join("model.json");
    std::fs::write(&model, r#"{"name": "x", "device": {"ssd": {"nand": {}}}}"#).unwrap();
    let (model, control) = (model.to_str().unwrap().to_owned(), socket.to_str().unwrap());
    let more = ["--control", control];
    let served = Served::start_with(dir, "backing", &model, &more)?;
    let file = served.open(0);
    if discard {
        let punch = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        let half = SIZE_BYTES as i64 / 2;
        fallocate(&file, punch, half, half).unwrap();
    }
    let mut state = 2014;
    for _ in 0..500 {
        let page = draw(&mut state) % (SIZE_BYTES / 2 / 4096);
        file.write_all_at(&[1; 4096], page * 4096).unwrap();
    }
    let said = asked(control, r#"{"status": {}}"#);
    let bytes = |name: &str| said["wear"][0][name].as_f64().unwrap();
    Some(bytes("cell_bytes") / bytes("host_bytes"))
}

#[test]
fn what_is_discarded_spares_the_flash_its_garbage_collection() {
    let Some(full) = write_amplification(false) else {
        return;
    };
    let half_empty = write_amplification(true).unwrap();
    assert!(half_empty < full / 2.0, "{half_empty} instead of {full}");
}

/// Writes and syncs a page, writes another one over what was there and does not, and cuts the power:
/// what the second page holds afterwards, and what the device says it has lost.
fn second_page_after_a_power_cut(device: &str) -> Option<(u8, u64)> {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("model.json");
    std::fs::write(&model, format!(r#"{{"name": "x", "device": {device}}}"#)).unwrap();
    let socket = dir.path().join("control");
    let (model, control) = (model.to_str().unwrap().to_owned(), socket.to_str().unwrap());
    let more = ["--control", control];
    let served = Served::start_with(dir, "backing", &model, &more)?;
    let file = served.open(0);
    file.write_all_at(&[1; 8192], 0).unwrap();
    file.sync_data().unwrap();
    file.write_all_at(&[2; 4096], 4096).unwrap();
    let said = asked(control, r#"{"power_cut": {}}"#);
    let error = file.read_at(&mut [0; 512], 0).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EIO), "it has no power");
    assert!(file.write_at(&[3; 512], 0).is_err());
    assert!(file.sync_data().is_err());
    let stored = std::fs::read(served.dir.path().join("backing")).unwrap();
    assert_eq!(stored[..4096], [1; 4096], "it was synced");
    assert!(stored[4096..8192].iter().all(|&byte| byte == stored[4096]));
    Some((stored[4096], said["lost_bytes"].as_u64().unwrap()))
}

#[test]
fn a_flush_that_fails_and_a_reset_lose_what_was_not_flushed_and_the_device_serves_on() {
    let dir = tempfile::tempdir().unwrap();
    let model = dir.path().join("model.json");
    let drive = r#"{"ssd": {"power_loss_protection": false, "program_us": 0}}"#;
    std::fs::write(&model, format!(r#"{{"name": "x", "device": {drive}}}"#)).unwrap();
    let socket = dir.path().join("control");
    let (model, control) = (model.to_str().unwrap().to_owned(), socket.to_str().unwrap());
    let more = ["--control", control, "--volatile"];
    let Some(served) = Served::start_with(dir, "backing", &model, &more) else {
        return;
    };
    let file = served.open(0);
    asked(control, r#"{"hold": {}}"#);
    let sectors_of = |byte: u8| {
        let mut seen = vec![0; 1 << 20];
        file.read_exact_at(&mut seen, 0).unwrap();
        seen.iter().filter(|&&found| found == byte).count() / 512
    };
    // A larger one might be cut within a sector.
    let write = |byte| {
        let write = |at: u64| file.write_all_at(&[byte; 1 << 16], at << 16).unwrap();
        (0..16).for_each(write);
    };
    write(1);
    file.sync_data().unwrap();
    write(2);
    asked(control, r#"{"fail_next": {"flushes": 1, "seed": 1}}"#);
    assert!(file.sync_data().is_err());
    file.sync_data().unwrap();
    let (before, after) = (sectors_of(1), sectors_of(2));
    assert!(before > 500 && after > 500 && before + after == 2048);
    write(3);
    let said = asked(control, r#"{"reset": {"seed": 1}}"#);
    let lost = said["lost_bytes"].as_u64().unwrap() as usize / 512;
    assert!(lost > 500 && sectors_of(3) == 2048 - lost, "{lost}");
    let left = asked(control, r#"{"fail_next": {"reads": 1}}"#);
    assert_eq!(left["flushes"], 0);
    assert!(file.read_at(&mut [0; 512], 0).is_err());
    write(4);
    file.sync_data().unwrap();
    assert_eq!(sectors_of(4), 2048);
}

#[test]
fn without_power_loss_protection_the_buffer_goes_with_the_power() {
    let drive = |protected| {
        format!(r#"{{"ssd": {{"power_loss_protection": {protected}, "program_us": 2000000}}}}"#)
    };
    let Some(unprotected) = second_page_after_a_power_cut(&drive(false)) else {
        return;
    };
    assert_eq!(unprotected, (1, 4096));
    let protected = second_page_after_a_power_cut(&drive(true));
    assert_eq!(protected, Some((2, 0)));
}

#[test]
fn a_disk_loses_its_write_cache_and_an_array_that_of_a_controller_without_a_battery() {
    let disk = r#"{"hdd": {"write_cache_kb": 8192, "rpm": 1000, "write_settle_ms": 100}}"#;
    if let Some(lost) = second_page_after_a_power_cut(disk) {
        assert_eq!(lost, (1, 4096));
    }
    for (battery, left) in [(false, (1, 4096)), (true, (2, 0))] {
        let array = format!(
            r#"{{"raid": {{"level": "5", "members": {{"alike": {{"count": 3, "device": "dc500m"}}}},
                "controller": {{"cache_kb": 65536, "battery": {battery}, "gather_ms": 1000}}}}}}"#
        );
        if let Some(found) = second_page_after_a_power_cut(&array) {
            assert_eq!(found, left);
        }
    }
}
