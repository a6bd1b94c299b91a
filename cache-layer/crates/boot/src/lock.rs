//! The lock of a disk, as `machines/locks.py` takes it: the machine's shared, the disk's alone.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

const FOLDER: &str = "/run/hotset";
const WAIT: Duration = Duration::from_secs(120);

/// Held until it is dropped; programs that are started do not inherit it.
pub struct Lock {
    _files: [File; 2],
}

/// Makes `/run/hotset`, or what of it lies there already, root's alone: to lock a file one only has
/// to open it.
pub fn private(folder: &Path) -> io::Result<()> {
    let mut maker = DirBuilder::new();
    maker.recursive(true).mode(0o700).create(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(0o700))
}

/// Wait for whoever works on the disk.
pub fn take(disk: &str) -> Result<Lock> {
    take_in(Path::new(FOLDER), disk, WAIT)
}

fn take_in(folder: &Path, disk: &str, wait: Duration) -> Result<Lock> {
    private(folder).context(FOLDER)?;
    let until = Instant::now() + wait;
    let locked = |name: &str, how| locked(&folder.join(name), how, until);
    let machine = locked("machine.lock", libc::LOCK_SH)?;
    let own = locked(&format!("disk-{disk}.lock"), libc::LOCK_EX)?;
    // Commands of an operation that was killed end by themselves.
    for name in ["machine.running".into(), format!("disk-{disk}.running")] {
        if folder.join(&name).exists() {
            locked(&name, libc::LOCK_EX)?;
        }
    }
    let holder = folder.join(format!("disk-{disk}.holder"));
    fs::write(holder, format!("hotset-tier-{disk}.service\n"))?;
    Ok(Lock {
        _files: [machine, own],
    })
}

fn locked(path: &Path, how: libc::c_int, until: Instant) -> Result<File> {
    let name = || path.display().to_string();
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
        .with_context(name)?;
    loop {
        // SAFETY: a descriptor that is open.
        if unsafe { libc::flock(file.as_raw_fd(), how | libc::LOCK_NB) } == 0 {
            return Ok(file);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::WouldBlock {
            return Err(error).with_context(name);
        }
        if Instant::now() > until {
            bail!("hotset is at work on this disk: wait for it and try again");
        }
        sleep(Duration::from_millis(100));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_but_root_can_open_a_lock() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("hotset");
        for made_before in [false, true] {
            if made_before {
                fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
            }
            drop(take_in(&folder, "one", Duration::ZERO).unwrap());
            let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&folder), 0o700);
            for name in ["machine.lock", "disk-one.lock"] {
                assert_eq!(mode(&folder.join(name)), 0o600, "{name}");
            }
        }
    }

    #[test]
    fn a_disk_is_alone_and_another_is_not_in_its_way() {
        let folder = tempfile::tempdir().unwrap();
        let take = |disk| take_in(folder.path(), disk, Duration::ZERO);
        let held = take("one").unwrap();
        assert!(take("one").is_err());
        assert!(take("one-2").is_ok(), "a name that begins the same");
        drop(held);
        assert!(take("one").is_ok());
        let running = folder.path().join("disk-one.running");
        let _command = locked(&running, libc::LOCK_SH, Instant::now()).unwrap();
        assert!(
            take("one").is_err(),
            "a command of an operation that was killed"
        );
    }
}
