//! Which starts of this computer there were: one line each in a file on the root disk, written
//! early in every boot by a unit that waits for no device.
//!
//! The file says in its first line when it was written. One that was not written then, but put
//! there, such as with all of /etc from a backup, lacks starts: it counts for nothing.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use crate::lock::private;

const FILE: &str = "/etc/hotset/boots";
/// Where systemd finds that it is to be written in every boot.
const WANTED: &str = "/etc/systemd/system/sysinit.target.wants/hotset-boots.service";
/// When the computer started by the clock as it was when that was put down first, seconds.
const STARTED: &str = "/run/hotset/started";
const KEPT: usize = 64;
const WRITTEN: &str = "# ";
/// Between the time in the file and those of the file.
const SLACK_S: i64 = 60;

/// Put this boot down, if it is not yet.
pub fn note() -> Result<()> {
    let (path, now) = (Path::new(FILE), boot_id());
    if now.is_empty() || listed(path).last() == Some(&now) {
        return Ok(());
    }
    // Before the clock is set right, by which a write in this boot may seem to be of an earlier one.
    let _ = note_clock(Path::new(STARTED));
    note_in(path, &now)
}

fn note_clock(path: &Path) -> Result<()> {
    if let (Some(started), false) = (boot_time(), path.exists()) {
        private(path.parent().context("no folder")?)?;
        fs::write(path, format!("{started}\n"))?;
    }
    Ok(())
}

/// This boot's id; empty: not known.
pub fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().into()
}

/// Whether the computer is going down, by systemd's word.
pub fn is_ending() -> bool {
    let asked = Command::new("systemctl").arg("is-system-running").output();
    // Its code is that of a failure then.
    asked.is_ok_and(|output| output.stdout.starts_with(b"stopping"))
}

/// When the computer started by its clock as that is now, seconds.
pub fn boot_time() -> Option<i64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().find(|line| line.starts_with("btime "))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// When the computer started, by whatever its clock said in this boot: the earliest, seconds.
pub fn started() -> Option<i64> {
    let noted = fs::read_to_string(STARTED).ok();
    earliest(boot_time(), noted.as_deref())
}

fn earliest(by_the_clock: Option<i64>, noted: Option<&str>) -> Option<i64> {
    let noted = noted.and_then(|text| text.trim().parse().ok());
    by_the_clock.map(|now| noted.map_or(now, |then: i64| then.min(now)))
}

fn note_in(path: &Path, now: &str) -> Result<()> {
    let mut boots = listed(path);
    boots.push(now.into());
    let kept = boots[boots.len().saturating_sub(KEPT)..].join("\n");
    let text = format!("{WRITTEN}{:020}\n{kept}\n", seconds_now());
    fs::create_dir_all(path.parent().context("no folder")?)?;
    durable::write(path, text.as_bytes())
        // A start that is not counted would be missed later: where no new file fits, the old one
        // has room for a line.
        .or_else(|_| rewrite(path, &text))
        .with_context(|| path.display().to_string())
}

fn rewrite(path: &Path, text: &str) -> io::Result<()> {
    let file = OpenOptions::new().write(true).open(path)?;
    file.write_all_at(text.as_bytes(), 0)?;
    file.set_len(text.len() as u64)?;
    file.sync_all()
}

fn seconds_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_secs()
}

/// The starts that a file has; none where it is not as it was written.
fn listed(path: &Path) -> Vec<String> {
    let Ok(text) = fs::read_to_string(path) else {
        return Vec::new();
    };
    let Ok(about) = fs::metadata(path) else {
        return Vec::new();
    };
    let (head, lines) = match text.split_once('\n') {
        Some((head, rest)) if head.starts_with(WRITTEN) => (Some(head), rest),
        // As an earlier hotset has it.
        _ => (None, &*text),
    };
    let begun = head.map_or(Some(about.mtime()), |head| {
        head.strip_prefix(WRITTEN)?.trim().parse().ok()
    });
    let is_own = begun.is_some_and(|begun: i64| {
        [about.mtime(), about.ctime()]
            .iter()
            .all(|time| (time - begun).abs() <= SLACK_S)
    });
    if is_own {
        lines.lines().map(str::to_owned).collect()
    } else {
        Vec::new()
    }
}

/// How many starts lie between one and this; None: nobody counted.
pub fn between(earlier: &str) -> Option<usize> {
    fs::symlink_metadata(WANTED).ok()?;
    count(&listed(Path::new(FILE)), earlier, &boot_id())
}

fn count(boots: &[String], earlier: &str, now: &str) -> Option<usize> {
    let boots: Vec<&String> = boots.iter().filter(|boot| *boot != now).collect();
    let at = boots.iter().rposition(|boot| *boot == earlier)?;
    Some(boots.len() - at - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_counted_whether_this_one_is_on_the_list_or_not() {
        let count = |lines: &str, earlier, now| {
            let boots: Vec<String> = lines.lines().map(str::to_owned).collect();
            count(&boots, earlier, now)
        };
        assert_eq!(count("a\nb\nc\n", "b", "c"), Some(0));
        assert_eq!(count("a\nb\n", "b", "c"), Some(0));
        assert_eq!(count("a\nb\nc\n", "a", "c"), Some(1));
        assert_eq!(count("a\nb\nc\n", "x", "c"), None, "it is too long ago");
        assert_eq!(count("", "a", "c"), None);
    }

    fn run(words: &[&str]) {
        assert!(
            Command::new(words[0])
                .args(&words[1..])
                .status()
                .unwrap()
                .success()
        );
    }

    #[test]
    fn the_newest_starts_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hotset/boots");
        for number in 0..KEPT + 3 {
            note_in(&path, &number.to_string()).unwrap();
        }
        let boots = listed(&path);
        assert_eq!((boots.len(), &*boots[0]), (KEPT, "3"));
        fs::write(&path, "a\nb\n").unwrap();
        assert_eq!(listed(&path), ["a", "b"], "of an earlier hotset");
    }

    /// It lacks a start in which somebody may have written to the origin.
    #[test]
    fn a_list_that_came_from_a_backup_counts_for_nothing() {
        let keeping = ["cp", "-p"].as_slice();
        let fresh = ["cp"].as_slice();
        for (words, written) in [(keeping, true), (fresh, true), (keeping, false)] {
            let folder = tempfile::tempdir().unwrap();
            let [path, backup] = ["boots", "backup"].map(|name| folder.path().join(name));
            note_in(&path, "a").unwrap();
            // As if it had been taken a day ago.
            let text = fs::read_to_string(&path).unwrap();
            let (head, rest) = text.split_once('\n').unwrap();
            let day = head.strip_prefix(WRITTEN).unwrap().parse::<u64>().unwrap() - 86400;
            let old = format!("{WRITTEN}{day:020}\n{rest}");
            fs::write(&backup, if written { &old } else { rest }).unwrap();
            run(&["touch", "-d", &format!("@{day}"), backup.to_str().unwrap()]);
            note_in(&path, "b").unwrap();
            let both = [backup.to_str().unwrap(), path.to_str().unwrap()];
            run(&[words, &both].concat());
            assert_eq!(listed(&path), [""; 0], "{words:?}");
            note_in(&path, "c").unwrap();
            assert_eq!(listed(&path), ["c"], "{words:?}");
        }
    }

    #[test]
    fn a_start_is_put_down_where_no_new_file_fits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("boots");
        note_in(&path, "a").unwrap();
        // In the way of a new one, as a full disk is.
        fs::create_dir(path.with_extension("new")).unwrap();
        note_in(&path, "b").unwrap();
        assert_eq!(listed(&path), ["a", "b"]);
    }

    #[test]
    fn a_clock_that_was_set_makes_no_write_one_of_an_earlier_boot() {
        assert_eq!(earliest(Some(100), Some("7\n")), Some(7), "set forward");
        assert_eq!(earliest(Some(7), Some("100\n")), Some(7), "set back");
        assert_eq!(earliest(Some(7), None), Some(7));
        assert_eq!(earliest(None, Some("7\n")), None, "not known");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hotset/started");
        note_clock(&path).unwrap();
        let first = fs::read_to_string(&path).unwrap();
        assert_eq!(first.trim().parse().ok(), boot_time());
        fs::write(&path, "7\n").unwrap();
        note_clock(&path).unwrap();
        assert_eq!(
            fs::read_to_string(&path).unwrap(),
            "7\n",
            "the first counts"
        );
    }
}
