//! What the tests of mounts share.

use std::fs::OpenOptions;
use std::path::Path;
use std::process::Command;

/// Whether FUSE can be had; says so if not.
pub fn has_fuse() -> bool {
    let opened = OpenOptions::new().read(true).write(true).open("/dev/fuse");
    if opened.is_err() {
        eprintln!("skipped: /dev/fuse cannot be opened here");
    }
    opened.is_ok()
}

/// Whether something is mounted on the directory.
pub fn is_mounted(dir: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
    let dir = dir.to_str().unwrap();
    mounts
        .lines()
        .any(|line| line.split(' ').nth(1) == Some(dir))
}

/// Frees a mount whose server may be gone.
pub fn free_mount(dir: &Path) {
    if is_mounted(dir) {
        let _ = Command::new("fusermount3").arg("-uz").arg(dir).status();
    }
}

/// A small file system in memory; unmounted when dropped.
pub struct SmallDisk<'a>(&'a Path);

impl SmallDisk<'_> {
    /// Mounts it on a new directory; `None`, with a word, where only root could.
    pub fn mount<'a>(dir: &'a Path, size: &str) -> Option<SmallDisk<'a>> {
        if !nix::unistd::Uid::effective().is_root() {
            eprintln!("skipped: only root can mount a small file system");
            return None;
        }
        std::fs::create_dir(dir).unwrap();
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "none"])
            .arg(dir)
            .status();
        assert!(status.unwrap().success());
        Some(SmallDisk(dir))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}
