//! The computer that devices are made on. In a dry run one of which only some facts are known: what
//! it would be told is printed, on each line a JSON of a command and its standard input, or of a file.

use std::cell::RefCell;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::lock;
use crate::media::Medium;
use crate::run::{Cause, asks, failed, failure, feed, text};

/// What a dry run has to know of a computer. Sizes in bytes; `active`: its device-mapper devices.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Facts {
    pub origin_size: u64,
    pub sector_size: u64,
    pub active: Vec<String>,
}

/// This one, or one that is told nothing.
#[derive(Clone, Debug, Default)]
pub enum Computer {
    #[default]
    Here,
    Shown(RefCell<Facts>),
}

impl Computer {
    /// Run a program that changes something; its standard output.
    pub fn run(&self, words: &[&str]) -> Result<String> {
        self.feed(words, "")
    }

    /// The same, with a text for its standard input.
    pub fn feed(&self, words: &[&str], input: &str) -> Result<String> {
        match self {
            Self::Here => feed(words, input),
            Self::Shown(facts) => {
                println!("{}", serde_json::json!({"argv": words, "stdin": input}));
                match words {
                    ["dmsetup", "create", name, ..] => {
                        facts.borrow_mut().active.push((*name).into());
                    }
                    ["dmsetup", "remove", .., name] => {
                        facts.borrow_mut().active.retain(|active| active != name);
                    }
                    _ => {}
                }
                Ok(String::new())
            }
        }
    }

    /// Load modules of the kernel.
    ///
    /// # Errors
    /// [`Cause::Missing`]: it has none of that name.
    pub fn load(&self, modules: &[&str]) -> Result<()> {
        let words = [&["modprobe", "-a"], modules].concat();
        let Err(error) = self.run(&words) else {
            return Ok(());
        };
        let (release, modules) = (feed(&["uname", "-r"], "")?, modules.join(" or "));
        Err(failure(
            Cause::Missing,
            format!(
                "the kernel ({}) has no {modules}: {}; a distribution's own kernel has them",
                release.trim(),
                failed(error)?.why
            ),
        ))
    }

    /// Whether it has a device-mapper device of a name.
    pub fn has(&self, name: &str) -> Result<bool> {
        match self {
            Self::Here => asks(&["dmsetup", "info", name]),
            Self::Shown(facts) => Ok(facts.borrow().active.iter().any(|active| active == name)),
        }
    }

    /// The size of an origin, in bytes.
    pub fn size(&self, origin: &Path) -> Result<u64> {
        match self {
            Self::Here => Ok(Medium::open(origin, false)?.size),
            Self::Shown(facts) => Ok(facts.borrow().origin_size),
        }
    }

    /// The largest logical sector of some devices, in bytes.
    pub fn sector_size(&self, devices: &[&Path]) -> Result<u64> {
        let Self::Shown(facts) = self else {
            let sizes = devices.iter().map(|device| {
                let answer = feed(&["blockdev", "--getss", text(device)?], "")?;
                answer.trim().parse().context("blockdev --getss")
            });
            return Ok(sizes
                .collect::<Result<Vec<u64>>>()?
                .into_iter()
                .max()
                .unwrap_or(0));
        };
        Ok(facts.borrow().sector_size)
    }

    /// Write to a file of the kernel's.
    pub fn set(&self, file: &Path, value: &str) -> Result<()> {
        self.feed(&["tee", text(file)?], value).map(drop)
    }

    /// Put a file in the place of what was there, atomically.
    pub fn write(&self, path: &str, mode: u32, content: &str) -> Result<()> {
        if !self.is_here() {
            println!(
                "{}",
                serde_json::json!({"path": path, "mode": mode, "text": content})
            );
            return Ok(());
        }
        let file = Path::new(path);
        if fs::read(file).is_ok_and(|present| present == content.as_bytes()) {
            return Ok(());
        }
        let folder = file.parent().context("it lies in no folder")?;
        if file.starts_with("/etc/hotset") {
            lock::private(folder)?;
        }
        durable::write(file, content.as_bytes()).with_context(|| path.to_owned())?;
        fs::set_permissions(file, Permissions::from_mode(mode)).with_context(|| path.to_owned())
    }

    pub fn is_here(&self) -> bool {
        matches!(self, Self::Here)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_file_that_is_as_it_is_to_be_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine.sh");
        let write = |text: &str| {
            Computer::Here
                .write(path.to_str().unwrap(), 0o700, text)
                .unwrap();
            fs::metadata(&path).unwrap().ino()
        };
        // A disk is activated, too, where /etc takes no writes.
        let first = write("exit 0\n");
        assert_eq!(write("exit 0\n"), first);
        assert_ne!(write("exit 1\n"), first);
    }
}
