//! Which starts of this computer there were: one line each in a file on the root disk, written
//! early in every boot by a unit that waits for no device.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};

use crate::origin::boot_id;

const FILE: &str = "/etc/hotset/boots";
/// Where systemd finds that it is to be written in every boot.
const WANTED: &str = "/etc/systemd/system/sysinit.target.wants/hotset-boots.service";
const KEPT: usize = 64;

/// Put this boot down, if it is not yet.
pub fn note() -> Result<()> {
    let (now, known) = (boot_id(), fs::read_to_string(FILE).unwrap_or_default());
    if now.is_empty() || known.lines().last() == Some(&*now) {
        return Ok(());
    }
    let lines: Vec<&str> = known.lines().chain([&*now]).collect();
    let kept = lines[lines.len().saturating_sub(KEPT)..].join("\n") + "\n";
    let path = Path::new(FILE);
    fs::create_dir_all(path.parent().context("no folder")?)?;
    let new = path.with_extension("new");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&new)?;
    file.write_all(kept.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path).with_context(|| FILE.to_owned())
}

/// How many starts lie between one and this; None: nobody counted.
pub fn between(earlier: &str) -> Option<usize> {
    fs::symlink_metadata(WANTED).ok()?;
    count(&fs::read_to_string(FILE).ok()?, earlier, &boot_id())
}

fn count(lines: &str, earlier: &str, now: &str) -> Option<usize> {
    let boots: Vec<&str> = lines.lines().filter(|one| *one != now).collect();
    let at = boots.iter().rposition(|one| *one == earlier)?;
    Some(boots.len() - at - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_are_counted_whether_this_one_is_on_the_list_or_not() {
        assert_eq!(count("a\nb\nc\n", "b", "c"), Some(0));
        assert_eq!(count("a\nb\n", "b", "c"), Some(0));
        assert_eq!(count("a\nb\nc\n", "a", "c"), Some(1));
        assert_eq!(count("a\nb\nc\n", "x", "c"), None, "it is too long ago");
        assert_eq!(count("", "a", "c"), None);
    }
}
