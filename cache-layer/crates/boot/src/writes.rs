//! What the kernel has counted of writes to a device (Documentation/block/stat.rst).
//!
//! A count says that nobody wrote only where it goes on: a partition's begins at 0 whenever the
//! table is read anew, as after every program that had the whole disk open for writing.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

const BLOCK: &str = "/sys/block";
const LOOKS: usize = 5;

/// Of a device, since it is there.
#[derive(Debug, PartialEq, Eq)]
pub struct Writes {
    /// Sectors written and discarded, as far as they may be its own.
    pub sectors: u64,
    /// Those past a multipath device, by its paths' own names, and all that went through it.
    pub by_a_path: u64,
    /// The kernel counts none (`queue/iostats` is 0), so nobody knows.
    pub uncounted: bool,
}

impl Writes {
    /// Whether there were any, by whatever way to it.
    pub fn any(&self) -> bool {
        self.sectors > 0 || self.by_a_path > 0
    }
}

/// `at`: the device's folder in sysfs.
pub fn to(at: &Path) -> Result<Writes> {
    among(at, Path::new(BLOCK))
}

/// `block`: where sysfs has all disks.
fn among(at: &Path, block: &Path) -> Result<Writes> {
    let at = fs::canonicalize(at).with_context(|| at.display().to_string())?;
    let (disk, others) = whole(&at);
    let sectors = if disk == at {
        of_disk(&disk, block)?
    } else {
        let of_disk = || of_disk(&disk, block);
        sectors(&at)?.max(not_of_others(of_disk, &others)?)
    };
    let by_a_path = not_of_others(|| sum(&mapped_paths(&disk)), &others)?;
    let counts = fs::read_to_string(disk.join("queue/iostats")).unwrap_or_default();
    Ok(Writes {
        sectors,
        by_a_path,
        uncounted: counts.trim() == "0",
    })
}

/// The disk that a partition is of, and its other partitions; else the device itself, without
/// others.
fn whole(at: &Path) -> (PathBuf, Vec<PathBuf>) {
    let (disk, mut others) = match at.parent() {
        Some(parent) if is_partition(at) => {
            let mut others = children(parent);
            others.retain(|other| is_partition(other));
            (parent.to_owned(), others)
        }
        _ => match mapped_whole(at) {
            Some(disk) => {
                let others = children(&disk.join("holders"));
                (disk, others)
            }
            None => (at.to_owned(), Vec::new()),
        },
    };
    others.retain(|other| fs::canonicalize(other).is_ok_and(|other| other != at));
    (disk, others)
}

/// The multipath device that kpartx has made this partition of: `part1-mpath-360…`.
fn mapped_whole(at: &Path) -> Option<PathBuf> {
    let uuid = dm_uuid(at);
    let (part, _) = uuid.split_once("-mpath-")?;
    part.strip_prefix("part")?.parse::<u32>().ok()?;
    let below = children(&at.join("slaves"));
    fs::canonicalize(below.first()?).ok()
}

fn sectors(at: &Path) -> Result<u64> {
    let path = at.join("stat");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let figures: Vec<u64> = text
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    let Some(written) = figures.get(6) else {
        bail!("{} says {text:?}", path.display())
    };
    Ok(written + figures.get(13).unwrap_or(&0))
}

fn sum(devices: &[PathBuf]) -> Result<u64> {
    devices.iter().map(|device| sectors(device)).sum()
}

/// An NVMe disk that has several paths counts itself only since Linux 6.4, its paths always.
fn of_disk(disk: &Path, block: &Path) -> Result<u64> {
    Ok(sectors(disk)?.max(sum(&nvme_paths(disk, block))?))
}

/// What of a disk's count is no other partition's: this one's under every count that it had, and
/// what was written by the whole disk's name.
fn not_of_others(of_disk: impl Fn() -> Result<u64>, others: &[PathBuf]) -> Result<u64> {
    let mut most = 0;
    for _ in 0..LOOKS {
        // First: what is written to the others meanwhile is theirs.
        let whole = of_disk()?;
        most = most.max(whole.saturating_sub(sum(others)?));
    }
    Ok(most)
}

fn is_partition(at: &Path) -> bool {
    at.join("partition").exists()
}

/// The disks that a multipath device of the device mapper leads to: whoever has one of them by its
/// own name writes past its count.
fn mapped_paths(at: &Path) -> Vec<PathBuf> {
    if dm_uuid(at).starts_with("mpath-") {
        children(&at.join("slaves"))
    } else {
        Vec::new()
    }
}

fn dm_uuid(at: &Path) -> String {
    fs::read_to_string(at.join("dm/uuid")).unwrap_or_default()
}

/// The hidden disks that an NVMe disk with several paths leads to: `nvme0c1n2` of `nvme0n2`.
fn nvme_paths(disk: &Path, block: &Path) -> Vec<PathBuf> {
    let name = |path: &Path| {
        path.file_name()
            .map(|name| name.to_string_lossy().into_owned())
    };
    let own = name(disk).unwrap_or_default();
    let Some((subsystem, number)) = own.strip_prefix("nvme").and_then(|own| own.split_once('n'))
    else {
        return Vec::new();
    };
    let (before, behind) = (format!("nvme{subsystem}c"), format!("n{number}"));
    let mut paths = children(block);
    paths.retain(|path| {
        let other = name(path).unwrap_or_default();
        let between = other.strip_prefix(&before);
        let between = between.and_then(|rest| rest.strip_suffix(&behind));
        between.is_some_and(|id| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit()))
    });
    paths
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Folders as sysfs has them, with what was written to each.
    struct Sysfs(tempfile::TempDir);

    impl Sysfs {
        fn of(devices: &[(&str, u64)]) -> Self {
            let sysfs = Self(tempfile::tempdir().unwrap());
            devices
                .iter()
                .for_each(|(at, written)| sysfs.wrote(at, *written));
            sysfs
        }

        fn at(&self, device: &str) -> PathBuf {
            self.0.path().join(device)
        }

        fn wrote(&self, device: &str, sectors: u64) {
            let at = self.at(device);
            fs::create_dir_all(&at).unwrap();
            let rest = "0 0 0 0 0 0 2 0 0 0";
            fs::write(at.join("stat"), format!("1 0 8 0 1 0 {sectors} {rest}\n")).unwrap();
            if device.contains('/') {
                fs::write(at.join("partition"), "1\n").unwrap();
            }
        }

        fn writes(&self, device: &str) -> Writes {
            among(&self.at(device), self.0.path()).unwrap()
        }
    }

    #[test]
    fn what_is_written_and_what_is_discarded_counts() {
        let sysfs = Sysfs::of(&[("sda", 40)]);
        let writes = sysfs.writes("sda");
        assert_eq!((writes.sectors, writes.any()), (42, true));
        fs::write(sysfs.at("sda/stat"), "1 0 8 0 0 0 0 0 0 0 0\n").unwrap();
        assert!(!sysfs.writes("sda").any(), "before Linux 4.18");
    }

    #[test]
    fn a_partition_whose_count_began_anew_was_written_to() {
        // All of them with 2 discarded.
        let sysfs = Sysfs::of(&[("sda", 102), ("sda/sda1", 40), ("sda/sda2", 60)]);
        assert_eq!(sysfs.writes("sda/sda1").sectors, 42, "its own");
        sysfs.wrote("sda/sda1", 0);
        assert_eq!(sysfs.writes("sda/sda1").sectors, 42, "under another count");
        sysfs.wrote("sda", 110);
        let writes = sysfs.writes("sda/sda1");
        assert_eq!(writes.sectors, 50, "or by the disk's name");
        sysfs.wrote("sda/sda2", 900);
        assert_eq!(
            sysfs.writes("sda/sda1").sectors,
            2,
            "others are not its own"
        );
    }

    #[test]
    fn where_the_kernel_does_not_count_nobody_knows() {
        let sysfs = Sysfs::of(&[("sda", 0), ("sda/sda1", 0)]);
        fs::create_dir(sysfs.at("sda/queue")).unwrap();
        for (text, uncounted) in [("1\n", false), ("0\n", true)] {
            fs::write(sysfs.at("sda/queue/iostats"), text).unwrap();
            for device in ["sda", "sda/sda1"] {
                assert_eq!(sysfs.writes(device).uncounted, uncounted, "{device}");
            }
        }
    }

    #[test]
    fn a_disk_of_several_paths_was_written_to_by_each_of_them() {
        let sysfs = Sysfs::of(&[
            ("nvme0n1", 0),
            ("nvme0c0n1", 6),
            ("nvme0c12n1", 3),
            ("nvme0c1n11", 50),
            ("nvme1c0n1", 70),
        ]);
        let writes = sysfs.writes("nvme0n1");
        assert_eq!(
            (writes.sectors, writes.any()),
            (13, true),
            "two paths are its own"
        );
        let sysfs = Sysfs::of(&[("dm-0", 0), ("dm-0/slaves/sda", 5)]);
        fs::create_dir(sysfs.at("dm-0/dm")).unwrap();
        for (uuid, any) in [("mpath-360\n", true), ("LVM-x\n", false)] {
            fs::write(sysfs.at("dm-0/dm/uuid"), uuid).unwrap();
            fs::write(sysfs.at("dm-0/stat"), "1 0 8 0 0 0 0 0 0 0 0\n").unwrap();
            let writes = sysfs.writes("dm-0");
            assert_eq!((writes.sectors, writes.any()), (0, any), "{uuid}");
        }
    }

    /// Made by kpartx, which the kernel knows nothing of.
    #[test]
    fn a_partition_of_a_multipath_device_was_written_to_by_the_names_below_it() {
        let sysfs = Sysfs::of(&[("sda", 0), ("dm-0", 0), ("dm-1", 0), ("dm-2", 0)]);
        let link = |at: &str, to: &str| {
            fs::create_dir_all(sysfs.at(at).parent().unwrap()).unwrap();
            std::os::unix::fs::symlink(sysfs.at(to), sysfs.at(at)).unwrap();
        };
        link("dm-0/slaves/sda", "sda");
        for (part, uuid) in [("dm-1", "part1-mpath-360\n"), ("dm-2", "part2-mpath-360\n")] {
            link(&format!("{part}/slaves/dm-0"), "dm-0");
            link(&format!("dm-0/holders/{part}"), part);
            fs::create_dir(sysfs.at(part).join("dm")).unwrap();
            fs::write(sysfs.at(part).join("dm/uuid"), uuid).unwrap();
        }
        fs::create_dir(sysfs.at("dm-0/dm")).unwrap();
        fs::write(sysfs.at("dm-0/dm/uuid"), "mpath-360\n").unwrap();
        for device in ["sda", "dm-0", "dm-1", "dm-2"] {
            fs::write(sysfs.at(device).join("stat"), "1 0 8 0 0 0 0 0 0 0 0\n").unwrap();
        }
        assert!(!sysfs.writes("dm-1").any());
        // Both counted above and below, with 2 discarded.
        for device in ["sda", "dm-0", "dm-2"] {
            sysfs.wrote(device, 8);
        }
        assert!(!sysfs.writes("dm-1").any(), "to the other partition");
        sysfs.wrote("sda", 16);
        let writes = sysfs.writes("dm-1");
        assert_eq!((writes.sectors, writes.any()), (0, true), "by a path");
        sysfs.wrote("dm-0", 16);
        assert_eq!(sysfs.writes("dm-1").sectors, 8, "by the map's name");
    }
}
