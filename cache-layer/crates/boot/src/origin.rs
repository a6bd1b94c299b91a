//! What an origin looks like at a moment, and which disk it is.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::process::Command;
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::boots::{boot_id, started};
use crate::flash_device::OriginId;
use crate::media::{Medium, Region, hex};
use crate::run::succeeds;
use crate::{structures, writes};

const PIECE: usize = 1024 * 1024;
/// The start of a boot is known to the second, and a clock may be set a little.
const BOOT_SLACK_S: i64 = 2;

/// What an origin looked like.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Seen {
    /// Of its regions; `-` where none was made.
    pub fingerprint: String,
    pub regions: Vec<Region>,
    /// Whoever mounts any part of it for writing changes a region.
    pub complete: bool,
    /// What lies on it is called so by its own superblock; empty: not known.
    pub content: String,
    pub boot: String,
    /// A device: sectors written to it, as the kernel counts them since it is there; a file: when
    /// it was written to last, nanoseconds.
    pub written: u64,
    /// The kernel's number of the device, which it has anew when it comes back (since Linux 5.15).
    pub diskseq: Option<u64>,
    pub file: Option<FileTimes>,
    /// When the file was made, nanoseconds, where its file system keeps that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub born: Option<u128>,
    /// Whether somebody wrote to it since the computer started.
    pub written_in_this_boot: bool,
    /// The kernel counts no writes to it, so the two above say nothing.
    pub uncounted: bool,
    /// The computer was going down, so nobody wrote to it in that boot after this.
    #[serde(skip_serializing_if = "is_false")]
    pub is_last: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_false(value: &bool) -> bool {
    !value
}

/// What every write to a file changes, and what tells it from another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTimes {
    pub size: u64,
    pub inode: u64,
    pub mtime: i128,
    pub ctime: i128,
}

impl Seen {
    /// Of an origin that could not be looked at.
    pub fn not_known() -> Self {
        Self {
            fingerprint: "-".into(),
            ..Self::default()
        }
    }
}

/// Look at an origin.
///
/// `regions`: of an earlier look, so that the same is hashed; None finds out what lies on it now.
pub fn see(origin: &Path, regions: Option<&[Region]>) -> Result<Seen> {
    let mut seen = counts(origin)?;
    let medium = Medium::open(origin, false)?;
    let contents = structures::find(&medium)?;
    seen.complete = contents.complete;
    seen.content = contents.content;
    seen.regions = match regions {
        Some(known) if !known.is_empty() => known.to_vec(),
        _ => contents.regions,
    };
    seen.fingerprint = fingerprint(&medium, &seen.regions)
        .with_context(|| format!("{} cannot be read", origin.display()))?;
    Ok(seen)
}

/// See that an origin is there, once udev has named what it knows of: as whoever wrote to a whole
/// disk closes it, udev has its partitions read again, and their names are away for a moment; after
/// a log-in they are not there yet.
pub fn require_there(origin: &Path) -> Result<()> {
    if origin.exists() {
        return Ok(());
    }
    // A container may have no udev; what counts is whether it is there.
    let _ = succeeds(&["udevadm", "settle", "--timeout=10"]);
    if origin.exists() {
        return Ok(());
    }
    bail!(
        "{} is not there: connect it (iSCSI: log in), then try again",
        origin.display()
    )
}

/// What costs no reading: counts, and for a file its times.
pub fn counts(origin: &Path) -> Result<Seen> {
    require_there(origin)?;
    let about = fs::metadata(origin).with_context(|| origin.display().to_string())?;
    let mut seen = Seen {
        fingerprint: "-".into(),
        boot: boot_id(),
        ..Seen::default()
    };
    if about.file_type().is_block_device() {
        let at = sysfs(about.rdev());
        let writes = writes::to(Path::new(&at))?;
        seen.written = writes.sectors;
        seen.written_in_this_boot = writes.any();
        seen.uncounted = writes.uncounted;
        let parent = format!("{at}/../diskseq");
        seen.diskseq = number(&format!("{at}/diskseq")).or_else(|| number(&parent));
        return Ok(seen);
    }
    let nanoseconds = |s: i64, ns: i64| i128::from(s) * 1_000_000_000 + i128::from(ns);
    let file = FileTimes {
        size: about.size(),
        inode: about.ino(),
        mtime: nanoseconds(about.mtime(), about.mtime_nsec()),
        ctime: nanoseconds(about.ctime(), about.ctime_nsec()),
    };
    seen.written = u64::try_from(file.mtime).unwrap_or(0);
    seen.written_in_this_boot = started().is_none_or(|start| about.ctime() >= start - BOOT_SLACK_S);
    seen.file = Some(file);
    let born = about.created().ok();
    seen.born = born.and_then(|at| Some(at.duration_since(UNIX_EPOCH).ok()?.as_nanos()));
    Ok(seen)
}

/// A number that every write to a device raises, by whatever name, until it is gone or the computer
/// starts anew; of a file, when it was written to. None: the kernel does not count.
pub fn written(device: &Path) -> Result<Option<u64>> {
    let about = fs::metadata(device).with_context(|| device.display().to_string())?;
    if !about.file_type().is_block_device() {
        return Ok(Some(counts(device)?.written));
    }
    let writes = writes::to(Path::new(&sysfs(about.rdev())))?;
    Ok((!writes.uncounted).then_some(writes.sectors + writes.by_a_path))
}

/// Whether a disk's origin went away since the computer started, as a rule of udev notes.
pub fn came_back(disk: &str) -> bool {
    Path::new("/run/hotset/away").join(disk).exists()
}

fn sysfs(device: u64) -> String {
    format!(
        "/sys/dev/block/{}:{}",
        libc::major(device),
        libc::minor(device)
    )
}

fn number(path: &str) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn fingerprint(medium: &Medium, regions: &[Region]) -> Result<String> {
    let mut hash = Sha256::new();
    hash.update(format!("{}\n", medium.size));
    for (start, length) in regions {
        let (mut at, end) = (*start, (start + length).min(medium.size));
        while at < end {
            let piece = medium.read(at, PIECE.min((end - at).next_multiple_of(4096) as usize))?;
            if piece.is_empty() {
                break;
            }
            hash.update(&piece[..piece.len().min((end - at) as usize)]);
            at += piece.len() as u64;
        }
    }
    Ok(hex(&hash.finalize())[..32].into())
}

/// Whether an origin is the disk that it is taken for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    Same,
    /// In words.
    Other(String),
    /// Nothing tells; in words.
    Unknown(String),
    /// It was never known by anything but its name and size.
    Nameless,
}

/// Compare what is known of an origin with what is found. Nothing found is not the same.
pub fn compare_ids(known: &OriginId, current: &OriginId) -> Identity {
    let pairs = [
        ("World Wide Name", &known.wwn, &current.wwn),
        ("serial number", &known.serial, &current.serial),
        ("partition UUID", &known.partition, &current.partition),
        ("device-mapper UUID", &known.mapper, &current.mapper),
    ];
    if current.size < known.size {
        let (has, had) = (grouped(current.size), grouped(known.size));
        return Identity::Other(format!("it has {has} bytes, fewer than {had}"));
    }
    let known_pairs = || {
        pairs
            .iter()
            .filter(|(_, known, _)| !known.trim().is_empty())
    };
    for (name, known, current) in known_pairs() {
        if !current.is_empty() && known.trim() != current.trim() {
            return Identity::Other(format!("its {name} is {current}, not {known}"));
        }
    }
    if known_pairs().next().is_none() {
        return Identity::Nameless;
    }
    if let Some((name, known, _)) = known_pairs().find(|(_, _, current)| current.is_empty()) {
        return Identity::Unknown(format!(
            "its {name} was {known}, and now the system shows none (is udev at work?)"
        ));
    }
    // A partition has its disk's numbers, too.
    if known.partition.trim().is_empty() && !current.partition.is_empty() {
        let uuid = &current.partition;
        let why = format!("it is a partition now (UUID {uuid}), which was not known of it");
        return Identity::Unknown(why);
    }
    Identity::Same
}

/// A number with a comma between thousands.
fn grouped(number: u64) -> String {
    let (above, last) = (number / 1000, number % 1000);
    if above == 0 {
        return last.to_string();
    }
    format!("{},{last:03}", grouped(above))
}

/// What lsblk and the device mapper know of a device.
pub fn identify(origin: &Path) -> Result<OriginId> {
    require_there(origin)?;
    let about = fs::metadata(origin).with_context(|| origin.display().to_string())?;
    if !about.file_type().is_block_device() {
        return Ok(OriginId {
            size: about.size(),
            ..OriginId::default()
        });
    }
    let fields = lsblk(origin)?;
    let text = |key: &str| fields[key].as_str().unwrap_or("").trim().to_owned();
    let mapper = fs::read_to_string(format!("{}/dm/uuid", sysfs(about.rdev())));
    let size = &fields["size"];
    Ok(OriginId {
        size: size
            .as_u64()
            .or_else(|| size.as_str()?.parse().ok())
            .unwrap_or(0),
        wwn: text("wwn"),
        serial: text("serial"),
        partition: text("partuuid"),
        mapper: mapper.unwrap_or_default().trim().into(),
    })
}

/// As lsblk describes a device.
pub fn lsblk(device: &Path) -> Result<serde_json::Value> {
    let output = Command::new("lsblk")
        .args([
            "--json",
            "--bytes",
            "--nodeps",
            "--output",
            "NAME,TYPE,SIZE,WWN,SERIAL,PARTUUID",
        ])
        .arg(device)
        .output()
        .context("lsblk cannot be run")?;
    if !output.status.success() {
        bail!(
            "lsblk {}: {}",
            device.display(),
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let mut listed: serde_json::Value = serde_json::from_slice(&output.stdout).context("lsblk")?;
    Ok(listed["blockdevices"][0].take())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_does_not_show_is_not_the_same() {
        #[derive(Deserialize)]
        struct Case {
            known: OriginId,
            found: OriginId,
            answer: String,
        }
        let cases: Vec<Case> = serde_json::from_str(include_str!("identities.json")).unwrap();
        for Case {
            known,
            found,
            answer,
        } in cases
        {
            let numbers = [&known.wwn, &known.serial, &known.partition, &known.mapper];
            let is_nameless = numbers.iter().all(|number| number.trim().is_empty());
            let word = match compare_ids(&known, &found) {
                Identity::Same => "same",
                Identity::Other(_) => "other",
                Identity::Unknown(_) if !is_nameless => "unknown",
                Identity::Nameless if is_nameless => "unknown",
                wrong => panic!("{known:?} {found:?} {wrong:?}"),
            };
            assert_eq!(word, answer, "{known:?} {found:?}");
        }
    }

    #[test]
    fn the_same_regions_are_hashed_whatever_lies_there_now() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("origin");
        std::fs::write(&path, vec![0; 4 << 20]).unwrap();
        let before = see(&path, None).unwrap();
        assert!(!before.complete, "nothing recognisable lies on it");
        let regions = [(2 << 20, 4096)];
        let first = see(&path, Some(&regions)).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[0] = 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(
            see(&path, Some(&regions)).unwrap().fingerprint,
            first.fingerprint
        );
        assert_ne!(see(&path, None).unwrap().fingerprint, before.fingerprint);
        bytes[2 << 20] = 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_ne!(
            see(&path, Some(&regions)).unwrap().fingerprint,
            first.fingerprint
        );
    }
}
