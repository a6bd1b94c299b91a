//! What the tests of mounts share.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A `flashdev` that serves a mount; killed and unmounted when dropped, whatever the test did.
pub struct Daemon {
    child: Child,
    mount: PathBuf,
    /// The line it said when it was ready.
    pub ready: String,
}

impl Daemon {
    pub fn start(command: &mut Command, mount: PathBuf) -> Daemon {
        let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let mut ready = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut ready).unwrap();
        let daemon = Daemon {
            child,
            mount,
            ready,
        };
        assert!(daemon.ready.starts_with("ready "), "it did not get ready");
        daemon
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(status.unwrap().success());
    }

    /// Waits for the end; exit code and what it had to say.
    pub fn wait(&mut self) -> (Option<i32>, String) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.child.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut errors = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut errors).unwrap();
        (self.child.wait().unwrap().code(), errors)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        free_mount(&self.mount);
    }
}

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
fn free_mount(dir: &Path) {
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
