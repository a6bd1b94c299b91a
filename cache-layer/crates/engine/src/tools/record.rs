//! Records what is asked of a block device, by the kernel's own tracing: an instance of tracefs of its
//! own, so that nobody else's tracing is disturbed, with one event, filtered in the kernel. Of a
//! request its time, kind and place are read, never its content.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::sys::time::TimeValLike;
use serde::Serialize;

use block_trace::binary::{self, Writer};
use block_trace::{Request, Summary, foreign};

use crate::Refusal;

const TRACING: &str = "/sys/kernel/tracing";
const PREFIX: &str = "hotset-record-";
const EVENT: &str = "events/block/block_bio_queue";
/// How long the pipe is left alone when it is empty.
const REST: Duration = Duration::from_millis(50);
const TELL_AFTER: Duration = Duration::from_secs(1);
const SECTOR: u64 = 512;
/// Bits of a device's minor number inside the kernel (include/linux/kdev_t.h).
const MINOR_BITS: u32 = 20;

/// What was recorded.
#[derive(Debug, Serialize)]
pub struct Recorded {
    /// The trace.
    #[serde(flatten)]
    pub summary: Summary,
    /// Seconds of a core that reading and writing it took.
    pub cpu_s: f64,
    /// Seconds that it went on.
    pub recorded_s: f64,
}

static ENDED: AtomicBool = AtomicBool::new(false);

extern "C" fn end(_: libc::c_int) {
    ENDED.store(true, Ordering::Relaxed);
}

/// Records for so many seconds, or until a signal ends it; `buffer_kib`: of each core, for events
/// that wait.
///
/// # Errors
/// It is no block device, the kernel does not trace, events came faster than they were read, or the
/// trace cannot be written. None is left behind then.
pub fn record(device: &Path, to: &Path, seconds: f64, buffer_kib: u32) -> anyhow::Result<Recorded> {
    let disk = Disk::of(device)?;
    let action = SigAction::new(SigHandler::Handler(end), SaFlags::empty(), SigSet::empty());
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        // SAFETY: the handler only stores to an atomic.
        unsafe { sigaction(signal, &action) }?;
    }
    // Whoever ended it early sees by the name that the trace is whole.
    let part = PathBuf::from(format!("{}.part", to.display()));
    let written = recorded(&disk, &part, seconds, buffer_kib);
    match written {
        Err(_) => binary::remove_part(&part),
        Ok(_) => fs::rename(&part, to).with_context(|| format!("writing {}", to.display()))?,
    }
    written
}

fn recorded(disk: &Disk, to: &Path, seconds: f64, buffer_kib: u32) -> anyhow::Result<Recorded> {
    let cannot_write = || format!("writing trace {}", to.display());
    let mut writer = Writer::new(File::create(to).with_context(cannot_write)?, true)
        .with_context(cannot_write)?;
    let instance = Instance::new(disk, buffer_kib)?;
    let begun = Instant::now();
    let read = Arc::new(AtomicU64::new(0));
    let pipe = instance.pipe(begun, Duration::from_secs_f64(seconds), Arc::clone(&read))?;
    let mut summary = Summary::begin(true);
    for request in foreign::events(&instance.folder.join("trace_pipe"), Box::new(pipe)) {
        let request = request?;
        let request = Request {
            offset: request.offset - disk.begins,
            ..request
        };
        summary.add(&request);
        writer.add(request).with_context(cannot_write)?;
        read.store(summary.requests, Ordering::Relaxed);
    }
    let recorded_s = begun.elapsed().as_secs_f64();
    let lost = instance.lost()?;
    if lost > 0 {
        anyhow::bail!(
            "{lost} events came faster than they were read: record with a larger buffer than \
             {buffer_kib} KiB a core"
        );
    }
    writer.finish().with_context(cannot_write)?.sync_all()?;
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let cpu = usage.user_time() + usage.system_time();
    Ok(Recorded {
        summary,
        cpu_s: cpu.num_microseconds() as f64 / 1e6,
        recorded_s,
    })
}

/// The device and where its sectors lie on the disk that the kernel sends them to.
#[derive(Debug, PartialEq)]
struct Disk {
    /// Numbers of the devices whose requests count, as the kernel has them.
    devices: Vec<u64>,
    /// First byte and the byte behind the last, on the disk.
    begins: u64,
    ends: u64,
}

impl Disk {
    fn of(device: &Path) -> anyhow::Result<Disk> {
        let shown = device.display();
        let about = fs::metadata(device).with_context(|| format!("looking at {shown}"))?;
        if !about.file_type().is_block_device() {
            let text = format!("{shown} is no block device: name a disk, a partition or a volume");
            return Err(Refusal(text).into());
        }
        let (major, minor) = (
            nix::sys::stat::major(about.rdev()),
            nix::sys::stat::minor(about.rdev()),
        );
        let folder = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}"))?;
        Disk::in_sysfs(&folder)
    }

    /// A partition's requests may be counted as its disk's, by an older kernel; a disk's are also
    /// those of its partitions. Sectors are the disk's either way (`blk_partition_remap`, block/blk-core.c).
    fn in_sysfs(folder: &Path) -> anyhow::Result<Disk> {
        let number = |folder: &Path, name: &str| -> anyhow::Result<u64> {
            let file = folder.join(name);
            let text =
                fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
            Ok(text.trim().parse()?)
        };
        let device = |folder: &Path| -> anyhow::Result<u64> {
            let text = fs::read_to_string(folder.join("dev"))?;
            let (major, minor) = text.trim().split_once(':').context("a device's numbers")?;
            Ok(major.parse::<u64>()? << MINOR_BITS | minor.parse::<u64>()?)
        };
        let mut devices = vec![device(folder)?];
        let mut begins = 0;
        if folder.join("partition").exists() {
            begins = number(folder, "start")? * SECTOR;
            devices.push(device(
                folder.parent().context("a partition is below its disk")?,
            )?);
        }
        for entry in fs::read_dir(folder)? {
            let below = entry?.path();
            if below.join("partition").exists() {
                devices.push(device(&below)?);
            }
        }
        let ends = begins + number(folder, "size")? * SECTOR;
        Ok(Disk {
            devices,
            begins,
            ends,
        })
    }

    fn filter(&self) -> String {
        let devices: Vec<String> = self
            .devices
            .iter()
            .map(|device| format!("dev == {device}"))
            .collect();
        format!(
            "({}) && nr_sector > 0 && sector >= {} && sector < {}",
            devices.join(" || "),
            self.begins / SECTOR,
            self.ends / SECTOR
        )
    }
}

/// An instance of tracefs; it goes with its owner.
struct Instance {
    folder: PathBuf,
}

impl Instance {
    fn new(disk: &Disk, buffer_kib: u32) -> anyhow::Result<Instance> {
        let instances = Path::new(TRACING).join("instances");
        if !instances.is_dir() {
            mount_tracefs()?;
        }
        remove_stale(&instances)?;
        let folder = instances.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir(&folder).with_context(|| format!("making {}", folder.display()))?;
        let instance = Instance { folder };
        // Without names of commands, the scheduler need not note who runs.
        instance.set("trace_options", "norecord-cmd")?;
        instance.set("trace_clock", "mono")?;
        instance.set("buffer_size_kb", &buffer_kib.to_string())?;
        instance.set(&format!("{EVENT}/filter"), &disk.filter())?;
        instance.set(&format!("{EVENT}/enable"), "1")?;
        Ok(instance)
    }

    fn set(&self, name: &str, value: &str) -> anyhow::Result<()> {
        let file = self.folder.join(name);
        fs::write(&file, value).with_context(|| format!("writing `{value}` to {}", file.display()))
    }

    fn pipe(
        &self,
        begun: Instant,
        lasts: Duration,
        read: Arc<AtomicU64>,
    ) -> anyhow::Result<BufReader<Pipe>> {
        let path = self.folder.join("trace_pipe");
        let mut options = fs::OpenOptions::new();
        let file = options
            .read(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&path);
        let file = file.with_context(|| format!("opening {}", path.display()))?;
        let enable = Arc::new(self.folder.join(EVENT).join("enable"));
        let pipe = Pipe {
            file,
            begun,
            lasts,
            enable,
            over: false,
            read,
            told_at: begun,
        };
        Ok(BufReader::with_capacity(1 << 16, pipe))
    }

    /// Events that were overwritten before they were read.
    fn lost(&self) -> anyhow::Result<u64> {
        let mut lost = 0;
        for core in fs::read_dir(self.folder.join("per_cpu"))? {
            let text = fs::read_to_string(core?.path().join("stats"))?;
            for line in text.lines() {
                let number = |name: &str| {
                    line.strip_prefix(name)
                        .and_then(|n| n.trim().parse::<u64>().ok())
                };
                lost += number("overrun:")
                    .or(number("dropped events:"))
                    .unwrap_or(0);
            }
        }
        Ok(lost)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.set(&format!("{EVENT}/enable"), "0");
        let _ = fs::remove_dir(&self.folder);
    }
}

fn mount_tracefs() -> anyhow::Result<()> {
    use nix::mount::{MsFlags, mount};
    let none: Option<&str> = None;
    mount(
        Some("tracefs"),
        TRACING,
        Some("tracefs"),
        MsFlags::empty(),
        none,
    )
    .with_context(|| {
        format!("mounting {TRACING}: recording needs root and a kernel that traces (Debian's does)")
    })
}

/// Those of recorders that were killed.
fn remove_stale(instances: &Path) -> anyhow::Result<()> {
    for entry in fs::read_dir(instances)? {
        let folder = entry?.path();
        let name = folder
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("");
        let owner = name
            .strip_prefix(PREFIX)
            .and_then(|pid| pid.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            let _ = fs::remove_dir(&folder);
        }
    }
    Ok(())
}

/// The kernel's events until some time; then what is left of them.
struct Pipe {
    file: File,
    begun: Instant,
    lasts: Duration,
    enable: Arc<PathBuf>,
    over: bool,
    /// Requests that were taken out of it.
    read: Arc<AtomicU64>,
    told_at: Instant,
}

impl Pipe {
    /// Tells how many requests came, and which share of the time is over, also while none come.
    fn tell(&mut self) -> io::Result<()> {
        if self.told_at.elapsed() > TELL_AFTER {
            self.told_at = Instant::now();
            let share = self.begun.elapsed().as_secs_f64() / self.lasts.as_secs_f64();
            let read = self.read.load(Ordering::Relaxed);
            // Whoever called may be gone: then this ends, too.
            writeln!(io::stdout(), "read {read} {:.6}", share.min(1.0))?;
        }
        Ok(())
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.over {
                self.tell()?;
            }
            if !self.over && (self.begun.elapsed() >= self.lasts || ENDED.load(Ordering::Relaxed)) {
                self.over = true;
                fs::write(&*self.enable, "0")?;
            }
            match self.file.read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(0) => {}
                other => return other,
            }
            if self.over {
                return Ok(0);
            }
            thread::sleep(REST.min(self.lasts.saturating_sub(self.begun.elapsed())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sysfs(folder: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), format!("{text}\n")).unwrap();
        }
    }

    #[test]
    fn a_disk_counts_with_its_partitions_and_a_partition_by_where_it_lies() {
        let folder = tempfile::tempdir().unwrap();
        let disk = folder.path().join("sda");
        sysfs(&disk, &[("dev", "8:0"), ("size", "1000")]);
        let part = disk.join("sda1");
        sysfs(
            &part,
            &[
                ("dev", "8:1"),
                ("size", "100"),
                ("start", "64"),
                ("partition", "1"),
            ],
        );
        let whole = Disk::in_sysfs(&disk).unwrap();
        assert_eq!(
            whole.filter(),
            "(dev == 8388608 || dev == 8388609) && nr_sector > 0 && sector >= 0 && sector < 1000"
        );
        let disk = Disk::in_sysfs(&part).unwrap();
        assert_eq!(disk.begins, 64 * 512);
        assert_eq!(
            disk.filter(),
            "(dev == 8388609 || dev == 8388608) && nr_sector > 0 && sector >= 64 && sector < 164"
        );
    }

    #[test]
    fn what_is_no_block_device_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let error = record(folder.path(), &folder.path().join("t"), 1.0, 64).unwrap_err();
        assert!(error.is::<Refusal>(), "{error:#}");
    }
}
