//! The place of the mount: checked before, freed after.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::mount::{MntFlags, umount2};

/// Checks that a directory can be mounted on; its full path, or what is wrong with it.
pub fn check_directory(dir: &Path) -> Result<PathBuf, String> {
    let shown = dir.display();
    let dir = dir.canonicalize().map_err(|error| match error.raw_os_error() {
        Some(libc::ENOTCONN) => format!(
            "mount directory {shown} holds a mount whose server is gone: free it with `fusermount3 -uz {shown}`"
        ),
        _ => format!("mount directory {shown}: {error}; make it with `mkdir -p {shown}`"),
    })?;
    let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    if is_mount_point(&dir, &mounts) {
        return Err(format!(
            "{shown} is a mount point already: unmount it (`fusermount3 -uz {shown}` frees one that was left behind), or give another directory"
        ));
    }
    let mut entries = std::fs::read_dir(&dir)
        .map_err(|error| format!("{shown}: {error}; give an empty directory"))?;
    if entries.next().is_some() {
        return Err(format!(
            "mount directory {shown} is not empty: what is in it would be hidden; give an empty one"
        ));
    }
    Ok(dir)
}

/// Whether the kernel's table of mounts has this directory.
fn is_mount_point(dir: &Path, mountinfo: &[u8]) -> bool {
    const MOUNT_POINT_FIELD: usize = 4;
    let wanted = escape(dir.as_os_str());
    mountinfo
        .split(|&byte| byte == b'\n')
        .filter_map(|line| line.split(|&byte| byte == b' ').nth(MOUNT_POINT_FIELD))
        .any(|mount_point| mount_point == wanted)
}

/// A path as mountinfo spells it: blanks and backslashes in octal.
fn escape(path: &OsStr) -> Vec<u8> {
    path.as_bytes()
        .iter()
        .flat_map(|&byte| match byte {
            b' ' | b'\t' | b'\n' | b'\\' => format!("\\{byte:03o}").into_bytes(),
            _ => vec![byte],
        })
        .collect()
}

/// Takes the mount out of the name space though somebody still has the file open; what they do
/// with it fails from the moment this process ends.
pub(crate) fn detach(dir: &Path) {
    if umount2(dir, MntFlags::MNT_DETACH).is_ok() {
        return;
    }
    // A normal user may not call umount2, but may have the set-uid helper do it.
    let _ = Command::new("fusermount3")
        .args(["-u", "-z", "-q", "--"])
        .arg(dir)
        .status();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_found_in_the_kernels_table() {
        let table = b"22 1 0:20 / / rw - ext4 /dev/root rw\n\
            23 22 0:21 / /mnt/two\\040words rw - tmpfs none rw\n";
        assert!(is_mount_point(Path::new("/"), table));
        assert!(is_mount_point(Path::new("/mnt/two words"), table));
        assert!(!is_mount_point(Path::new("/mnt"), table));
    }

    #[test]
    fn a_directory_must_be_there_empty_and_not_mounted_on() {
        let parent = tempfile::tempdir().unwrap();
        let missing = check_directory(&parent.path().join("none")).unwrap_err();
        assert!(missing.contains("mkdir -p"), "{missing}");
        let mounted = check_directory(Path::new("/proc")).unwrap_err();
        assert!(mounted.contains("mount point already"), "{mounted}");
        std::fs::write(parent.path().join("file"), "").unwrap();
        let full = check_directory(parent.path()).unwrap_err();
        assert!(full.contains("not empty"), "{full}");
        let file = check_directory(&parent.path().join("file")).unwrap_err();
        assert!(file.contains("give an empty directory"), "{file}");
    }
}
