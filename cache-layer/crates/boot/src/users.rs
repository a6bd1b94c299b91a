//! Who uses a device, whoever asks from wherever: by the mounts and open files of all processes and
//! their mount namespaces, by what the kernel built on it, and by what it says when it is asked for
//! the device alone. Nothing here waits for a file system: a FUSE of which the server hangs would
//! have all who look hang with it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result};
use clap::ValueEnum;

use crate::run::{Cause, failure, run, succeeds, text};

/// For how long whoever looks into every new device, as udev does, may have it open.
const PASSING: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(50);
const SHOWN: usize = 5;
const TARGETS: [&str; 2] = [
    "/sys/kernel/config/target/core",
    "/sys/kernel/config/nvmet/subsystems",
];
const UNSEEN: &str = "somebody whom this computer does not show has it open";

/// A device is in use, in words.
fn in_use(device: &Path, uses: &[String], who: Who) -> Error {
    let more = uses.len().saturating_sub(SHOWN);
    let mut shown = uses[..uses.len() - more].join("; ");
    if more > 0 {
        shown += &format!("; and {more} more");
    }
    let name = device.display();
    let remedy = match who {
        Who::Loops => "unmount what is made of it, and run `losetup --detach` on the loop device",
        Who::All | Who::Writers => "unmount it first, and end what has it open",
    };
    let words = format!("{name} is in use: {shown}: {remedy}");
    failure(Cause::InUse, words)
}

/// Of a device that the kernel does not let go of.
pub fn still_in_use(device: &Path) -> Error {
    let mut uses = of(device, Who::All).unwrap_or_default();
    if uses.is_empty() {
        uses.push(UNSEEN.into());
    }
    in_use(device, &uses, Who::All)
}

/// Which users count.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Who {
    All,
    /// Not who has it open to read it.
    Writers,
    /// Of a file the loop devices over it alone: what serves it has it open.
    Loops,
}

/// See that nobody uses a device; one that is not there nobody does.
///
/// # Errors
/// [`Cause::InUse`]: somebody does, and is not passing by; [`Cause::Unknown`].
pub fn none(device: &Path, who: Who) -> Result<()> {
    let since = Instant::now();
    loop {
        let uses = of(device, who)?;
        if uses.is_empty() {
            return Ok(());
        }
        let is_mounted = uses.iter().any(|usage| usage.contains("mounted on"));
        if is_mounted || who == Who::Loops || since.elapsed() > PASSING {
            return Err(in_use(device, &uses, who));
        }
        sleep(PAUSE);
    }
}

/// Everybody who uses a device or a partition of it, in words.
fn of(device: &Path, who: Who) -> Result<Vec<String>> {
    let about = match fs::metadata(device) {
        Ok(about) if about.file_type().is_block_device() => about,
        Ok(about) if about.is_file() => return of_file(device, &about, who),
        _ => return Ok(Vec::new()),
    };
    let mut devices = with_partitions(about.rdev());
    // It does the same by its own name.
    let below = listed(&sysfs(about.rdev()).join("slaves"));
    for device in below
        .iter()
        .filter(|below| file_name(below).starts_with("bcache"))
    {
        devices.extend(numbered(device));
    }
    let mut uses = held(&devices);
    let mut namespaces = BTreeSet::new();
    for process in processes()? {
        uses.extend(mounted(&process, &devices, &mut namespaces));
        uses.extend(opened(&process, &devices, who));
        uses.extend(mapped(&process, &devices));
    }
    if uses.is_empty() {
        uses.extend(let_go(&devices));
    }
    // It may be open to those who only read it.
    let is_opened = || who == Who::All && is_open(device, &devices);
    if uses.is_empty() && (is_claimed(device) || is_opened()) {
        uses.push(UNSEEN.into());
    }
    Ok(uses)
}

/// Everybody who may write to a file: nothing claims one. What the kernel has of it for a loop device
/// or a target is in no list of open files.
fn of_file(file: &Path, known: &fs::Metadata, who: Who) -> Result<Vec<String>> {
    let path = fs::canonicalize(file).unwrap_or_else(|_| file.into());
    let name = file_name(file);
    let mut uses: Vec<String> = loops_over(file)?
        .iter()
        .map(|over| format!("{name} is behind {over}"))
        .collect();
    if who == Who::Loops {
        return Ok(uses);
    }
    uses.extend(exported(|word| {
        (Path::new(word) == path).then_some(name.as_str())
    }));
    let is_it = |at: &Path| {
        about(at).is_some_and(|about| {
            about.stx_ino == known.ino()
                && libc::makedev(about.stx_dev_major, about.stx_dev_minor) == known.dev()
        })
    };
    for process in processes()? {
        let opened = listed(&process.folder.join("fd"));
        let opened = opened
            .iter()
            .filter(|at| is_it(at) && is_for_writing(&process, at));
        let mapped = shared_mappings(&process, known.ino());
        for at in opened.chain(mapped.iter().filter(|at| is_it(at))) {
            let path = fs::read_link(at).unwrap_or_default();
            uses.push(format!(
                "{} may write to {}",
                process.words(),
                path.display()
            ));
        }
    }
    uses.dedup();
    Ok(uses)
}

/// What of files with this inode's number a process may write to by its memory alone: a mapping stays
/// when its file is closed (proc(5), maps).
fn shared_mappings(process: &Process, inode: u64) -> Vec<PathBuf> {
    let text = fs::read_to_string(process.folder.join("maps")).unwrap_or_default();
    let ranges = text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (range, rights) = (words.next()?, words.next()?);
        let number: u64 = words.nth(2)?.parse().ok()?;
        let is_writable = rights.contains('w') && rights.contains('s');
        (is_writable && number == inode).then_some(range)
    });
    let folder = process.folder.join("map_files");
    ranges.map(|range| folder.join(range)).collect()
}

/// The loop devices over a file.
///
/// # Errors
/// [`Cause::Unknown`]: of some nobody can tell what is behind them, and none is known to be over it.
fn loops_over(file: &Path) -> Result<Vec<String>> {
    let script = include_str!("loops_over.sh");
    let listed = run(&["sh", "-c", script, "hotset-loops", text(file)?])?;
    let named = |what: &str| {
        let lines = listed.lines().filter_map(|line| line.split_once(' '));
        lines
            .filter(|line| line.0 == what)
            .map(|line| line.1.to_owned())
            .collect::<Vec<_>>()
    };
    let (over, unknown) = (named("over"), named("unknown"));
    match unknown.first() {
        Some(first) if over.is_empty() => Err(failure(
            Cause::Unknown,
            format!(
                "whether {} is in use is not known: nothing tells which file is behind {} \
                 (`losetup {first}`): detach it if nobody needs it",
                file.display(),
                unknown.join(" and ")
            ),
        )),
        _ => Ok(over),
    }
}

/// The file or device that a loop device shows; None for another device.
fn behind(device: &Path) -> Option<String> {
    let text = fs::read_to_string(device.join("loop/backing_file")).ok()?;
    Some(text.trim_end_matches('\n').into())
}

/// By its flags, octal (proc(5)); what cannot be read may be.
fn is_for_writing(process: &Process, file: &Path) -> bool {
    let shown = process.folder.join("fdinfo").join(file_name(file));
    let text = fs::read_to_string(shown).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    flags.is_none_or(|flags| flags & libc::O_ACCMODE != libc::O_RDONLY)
}

/// Numbers and kernel's names of a device and its partitions.
type Devices = BTreeMap<u64, String>;

fn with_partitions(device: u64) -> Devices {
    let mut devices = Devices::from([(device, kernel_name(device))]);
    for part in listed(&sysfs(device)) {
        if part.join("partition").exists() {
            devices.extend(numbered(&part));
        }
    }
    devices
}

/// Number and name of a device in sysfs.
fn numbered(device: &Path) -> Option<(u64, String)> {
    let text = fs::read_to_string(device.join("dev")).ok()?;
    Some((parse_number(text.trim())?, file_name(device)))
}

fn sysfs(device: u64) -> PathBuf {
    let (major, minor) = (libc::major(device), libc::minor(device));
    format!("/sys/dev/block/{major}:{minor}").into()
}

fn kernel_name(device: u64) -> String {
    fs::canonicalize(sysfs(device)).map_or_else(|_| "it".into(), |path| file_name(&path))
}

fn parse_number(text: &str) -> Option<u64> {
    let (major, minor) = text.split_once(':')?;
    Some(libc::makedev(major.parse().ok()?, minor.parse().ok()?))
}

fn listed(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.flatten().map(|entry| entry.path()).collect()
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// File systems that are at work on it, as the kernel shows most of them, and in no list of mounts.
fn let_go(devices: &Devices) -> Vec<String> {
    let mut uses = Vec::new();
    for kind in listed(Path::new("/sys/fs")) {
        let on_it = devices.values().filter(|name| kind.join(name).exists());
        uses.extend(on_it.map(|name| {
            let kind = file_name(&kind);
            format!("{kind} on {name} was unmounted lazily, and files on it are still open")
        }));
    }
    uses
}

/// Whether somebody has it for itself alone: a mount, the device mapper, LIO, swap.
fn is_claimed(device: &Path) -> bool {
    let flags = libc::O_EXCL | libc::O_NONBLOCK | libc::O_CLOEXEC;
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(device);
    opened.is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
}

/// Whether the device mapper says so of one of its devices; others do not count.
fn is_open(device: &Path, devices: &Devices) -> bool {
    let is_mapped = devices.values().any(|name| name.starts_with("dm-"));
    let words = ["dmsetup", "info", "-c", "--noheadings", "-o", "open"];
    let asked = || run(&[&words[..], &[text(device)?]].concat());
    is_mapped && asked().is_ok_and(|output| output.trim() != "0")
}

/// What the kernel has on it: devices, swap space, loop devices, and what others on the network get.
fn held(devices: &Devices) -> Vec<String> {
    let mut uses = Vec::new();
    for (&number, name) in devices {
        for holder in listed(&sysfs(number).join("holders")) {
            if devices.values().any(|own| *own == file_name(&holder)) {
                continue;
            }
            let mapped = fs::read_to_string(holder.join("dm/name")).unwrap_or_default();
            let (holder, mapped) = (file_name(&holder), mapped.trim());
            let known = if mapped.is_empty() { &holder } else { mapped };
            uses.push(format!("{name} is held by {known}"));
        }
    }
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    for line in swaps.lines().skip(1) {
        let path = unescaped(line.split(' ').next().unwrap_or_default());
        uses.extend(named(&path, devices).map(|name| format!("{name} is swap space")));
    }
    for loop_device in listed(Path::new("/sys/block")) {
        let over = behind(&loop_device).and_then(|path| named(&path, devices));
        uses.extend(over.map(|name| format!("{name} is behind {}", file_name(&loop_device))));
    }
    uses.extend(exported(|word| named(word, devices).map(String::as_str)));
    uses
}

/// What LIO and nvmet give to other computers, of that which has a name by its path.
fn exported<'a>(named: impl Fn(&str) -> Option<&'a str>) -> Vec<String> {
    let mut uses = Vec::new();
    let mut folders: Vec<(PathBuf, u8)> = TARGETS.iter().map(|target| (target.into(), 0)).collect();
    while let Some((folder, depth)) = folders.pop() {
        for file in ["udev_path", "device_path", "info"] {
            let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
            let words = text.split_whitespace().filter(|word| word.starts_with('/'));
            let target = folder.display();
            uses.extend(
                words
                    .filter_map(&named)
                    .map(|name| format!("{name} is given to other computers ({target})")),
            );
        }
        if depth < 4 {
            let below = listed(&folder).into_iter().filter(|path| path.is_dir());
            folders.extend(below.map(|path| (path, depth + 1)));
        }
    }
    uses.dedup();
    uses
}

/// Which of the devices a path is of. One of another namespace leads nowhere here: its name counts.
fn named<'a>(path: &str, devices: &'a Devices) -> Option<&'a String> {
    let path = Path::new(path);
    let name = file_name(path);
    let alike = || devices.values().find(|known| **known == name);
    // A file on another path is looked at by nobody: its file system may hang.
    if !path.starts_with("/dev") && alike().is_none() {
        return None;
    }
    match fs::metadata(path) {
        Ok(about) if about.file_type().is_block_device() => devices.get(&about.rdev()),
        Ok(_) => None,
        Err(_) => alike(),
    }
}

struct Process {
    folder: PathBuf,
    number: u32,
}

impl Process {
    fn words(&self) -> String {
        let name = fs::read_to_string(self.folder.join("comm")).unwrap_or_default();
        let container = self
            .container()
            .map(|id| format!(", container {id}"))
            .unwrap_or_default();
        format!("process {} ({}{container})", self.number, name.trim())
    }

    /// As the container's program knows it.
    fn container(&self) -> Option<String> {
        let text = fs::read_to_string(self.folder.join("cgroup")).ok()?;
        container_of(&text)
    }
}

fn container_of(cgroup: &str) -> Option<String> {
    let parts = cgroup.split(['/', '\n']).map(|part| {
        let part = part.strip_suffix(".scope").unwrap_or(part);
        part.strip_suffix(".service").unwrap_or(part)
    });
    parts.into_iter().find_map(|part| {
        let id = part.rsplit(['-', ':']).next().unwrap_or_default();
        if id.len() == 64 && id.chars().all(|sign| sign.is_ascii_hexdigit()) {
            return Some(id[..12].to_owned());
        }
        let named = ["lxc.payload.", "machine-", "systemd-nspawn@"];
        named
            .iter()
            .find_map(|prefix| part.strip_prefix(prefix))
            .map(str::to_owned)
    })
}

/// All but this one.
fn processes() -> Result<Vec<Process>> {
    let entries = fs::read_dir("/proc").context("/proc")?;
    let mut processes: Vec<Process> = entries
        .flatten()
        .filter_map(|entry| {
            let number = entry.file_name().to_str()?.parse().ok()?;
            let folder = entry.path();
            Some(Process { folder, number })
        })
        .filter(|process| process.number != process::id())
        .collect();
    processes.sort_by_key(|process| process.number);
    Ok(processes)
}

/// The mounts of a process's namespace, unless another of it was asked before.
fn mounted(process: &Process, devices: &Devices, asked: &mut BTreeSet<PathBuf>) -> Vec<String> {
    let Ok(namespace) = fs::read_link(process.folder.join("ns/mnt")) else {
        return Vec::new();
    };
    let is_own = fs::read_link("/proc/self/ns/mnt").is_ok_and(|own| own == namespace);
    if !asked.insert(namespace) {
        return Vec::new();
    }
    let text = fs::read_to_string(process.folder.join("mountinfo")).unwrap_or_default();
    let whose = if is_own {
        String::new()
    } else {
        format!(" in the mount namespace of {}", process.words())
    };
    text.lines()
        .filter_map(|line| mount_of(line, devices))
        .map(|(name, folder)| format!("{name} is mounted on {folder}{whose}"))
        .collect()
}

/// A line of `/proc/PID/mountinfo`: which of the devices is mounted, and where. The number of some
/// file systems, as btrfs, is none of a device's.
fn mount_of<'a>(line: &str, devices: &'a Devices) -> Option<(&'a String, String)> {
    let (before, after) = line.split_once(" - ")?;
    let words: Vec<&str> = before.split(' ').collect();
    let folder = unescaped(words.get(4)?);
    let source = unescaped(after.split(' ').nth(1)?);
    let number = parse_number(words.get(2)?)?;
    let by_source = || named(&source, devices).filter(|_| libc::major(number) == 0);
    let name = devices.get(&number).or_else(by_source)?;
    Some((name, folder))
}

/// Blanks and the like are octal there.
fn unescaped(word: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = word.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let octal = after
            .get(..3)
            .filter(|_| first == b'\\')
            .and_then(|digits| u8::from_str_radix(&String::from_utf8_lossy(digits), 8).ok());
        bytes.push(octal.unwrap_or(first));
        rest = if octal.is_some() { &after[3..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn opened(process: &Process, devices: &Devices, who: Who) -> Vec<String> {
    let mut uses = BTreeSet::new();
    for file in listed(&process.folder.join("fd")) {
        let is_it = block_number(&file).is_some_and(|number| devices.contains_key(&number));
        if is_it && (who == Who::All || is_for_writing(process, &file)) {
            let path = fs::read_link(&file).unwrap_or_default();
            uses.insert(format!("{} has {} open", process.words(), path.display()));
        }
    }
    uses.into_iter().collect()
}

/// A mapping keeps a device open after its file was closed.
fn mapped(process: &Process, devices: &Devices) -> Vec<String> {
    let text = fs::read_to_string(process.folder.join("maps")).unwrap_or_default();
    let mut uses = BTreeSet::new();
    for line in text.lines() {
        let Some(at) = line.find('/') else { continue };
        let path = line[at..].trim_end_matches(" (deleted)");
        let range = line.split(' ').next().unwrap_or_default();
        let file = process.folder.join("map_files").join(range);
        let may_be = path.starts_with("/dev/") || named(path, devices).is_some();
        if may_be && block_number(&file).is_some_and(|number| devices.contains_key(&number)) {
            uses.insert(format!("{} has {path} mapped", process.words()));
        }
    }
    uses.into_iter().collect()
}

/// The number of the block device that an open file is.
fn block_number(file: &Path) -> Option<u64> {
    let about = about(file)?;
    let is_block = u32::from(about.stx_mode) & libc::S_IFMT == libc::S_IFBLK;
    is_block.then(|| libc::makedev(about.stx_rdev_major, about.stx_rdev_minor))
}

/// What is known of an open file without a word to its file system.
fn about(file: &Path) -> Option<libc::statx> {
    let path = CString::new(file.as_os_str().as_bytes()).ok()?;
    // SAFETY: all fields are numbers.
    let mut about: libc::statx = unsafe { std::mem::zeroed() };
    let (flags, wanted) = (libc::AT_STATX_DONT_SYNC, libc::STATX_TYPE | libc::STATX_INO);
    // SAFETY: a path that ends, and room for the answer.
    let done = unsafe { libc::statx(libc::AT_FDCWD, path.as_ptr(), flags, wanted, &raw mut about) };
    (done == 0).then_some(about)
}

const LOOP_CLR_FD: libc::Ioctl = 0x4C01;
const LOOP_SET_STATUS64: libc::Ioctl = 0x4C04;
const LOOP_GET_STATUS64: libc::Ioctl = 0x4C05;
/// `struct loop_info64`, and where its flags are.
const LOOP_INFO: usize = 232;
const LOOP_FLAGS: usize = 52;
const AUTOCLEAR: u8 = 4;

/// Take a loop device from under its name, so that nobody can write to it any more. The kernel has
/// it go when the last who has it open closes it, whoever that is; as long as it does not go it is
/// in use, and stays as it was. What is no loop device stays, too.
///
/// # Errors
/// [`Cause::InUse`].
pub fn shut(name: &Path) -> Result<()> {
    let Ok(device) = fs::canonicalize(name) else {
        return Ok(());
    };
    let at = Path::new("/sys/class/block").join(device.file_name().unwrap_or_default());
    let Some(was) = behind(&at) else {
        return Ok(());
    };
    clear(&device).with_context(|| device.display().to_string())?;
    let since = Instant::now();
    while behind(&at).is_some_and(|now| now == was) {
        if since.elapsed() > PASSING {
            if stays(&device).is_err() {
                break; // it went just now
            }
            return Err(still_in_use(name));
        }
        sleep(PAUSE);
    }
    let _ = fs::remove_file(name);
    if Path::new("/run/systemd/system").exists() {
        let device = device.to_string_lossy();
        let words = [
            "timeout",
            "30",
            "udevadm",
            "trigger",
            "--action=change",
            "--settle",
            &device,
        ];
        // A container may have systemd without udev.
        let _ = succeeds(&words);
    }
    Ok(())
}

fn clear(device: &Path) -> io::Result<()> {
    let file = File::open(device)?;
    // SAFETY: a descriptor that is open.
    match unsafe { libc::ioctl(file.as_raw_fd(), LOOP_CLR_FD, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// It is not to go any more when it is closed.
fn stays(device: &Path) -> io::Result<()> {
    let file = File::open(device)?;
    let mut info = [0_u8; LOOP_INFO];
    for (request, flag) in [(LOOP_GET_STATUS64, 0), (LOOP_SET_STATUS64, AUTOCLEAR)] {
        info[LOOP_FLAGS] &= !flag;
        // SAFETY: a descriptor that is open, and room for what the kernel writes.
        if unsafe { libc::ioctl(file.as_raw_fd(), request, info.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_known_by_its_cgroup() {
        let id = "0123456789abcdef".repeat(4);
        for text in [
            format!("0::/system.slice/docker-{id}.scope\n"),
            format!("12:devices:/docker/{id}\n0::/\n"),
            format!("0::/machine.slice/libpod-{id}.scope/container\n"),
            format!("0::/kubepods.slice/pod1.slice/cri-containerd-{id}.scope\n"),
        ] {
            assert_eq!(
                container_of(&text).as_deref(),
                Some("0123456789ab"),
                "{text}"
            );
        }
        let of = |text| container_of(text);
        assert_eq!(
            of("0::/lxc.payload.db/system.slice\n").as_deref(),
            Some("db")
        );
        assert_eq!(
            of("0::/machine.slice/machine-db.scope\n").as_deref(),
            Some("db")
        );
        assert_eq!(of("0::/system.slice/postgresql.service\n"), None);
    }

    #[test]
    fn a_mount_is_known_by_its_device_or_by_its_source() {
        let devices = Devices::from([(libc::makedev(7, 5), "loop5".to_owned())]);
        let of = |line| mount_of(line, &devices).map(|(_, folder)| folder);
        let plain = "36 35 7:5 / /srv/my\\040data rw shared:1 - ext4 /dev/loop5 rw";
        assert_eq!(of(plain).as_deref(), Some("/srv/my data"));
        assert_eq!(of("36 35 7:6 / /srv rw - ext4 /dev/loop5 rw"), None);
        assert_eq!(of("36 35 0:99 / /srv rw - tmpfs tmpfs rw"), None);
        let btrfs = "36 35 0:50 / /srv rw - btrfs /elsewhere/loop5 rw";
        assert_eq!(of(btrfs).as_deref(), Some("/srv"));
    }
}
