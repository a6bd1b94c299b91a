//! A socket that clients of one daemon talk to, in the file system for its owner alone.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::Context;

use crate::Refusal;

/// The socket; gone from the file system when dropped.
pub struct ControlSocket {
    path: PathBuf,
}

impl ControlSocket {
    /// Listens at the path, for whoever may write to it: the owner.
    pub fn listen(
        path: &Path,
        mut on_client: impl FnMut(UnixStream) + Send + 'static,
    ) -> anyhow::Result<ControlSocket> {
        let shown = path.display();
        make_way(path)?;
        let listener = from_its_folder(path, UnixListener::bind).map_err(|error| {
            Refusal(format!(
                "control socket {shown}: {error}; give a path in a directory that can be written to"
            ))
        })?;
        let socket = ControlSocket {
            path: path.to_owned(),
        };
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))
            .with_context(|| format!("cannot set the permissions of {shown}"))?;
        thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || listener.incoming().flatten().for_each(&mut on_client))?;
        Ok(socket)
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Connects to a daemon's socket.
pub fn connect(path: &Path) -> io::Result<UnixStream> {
    from_its_folder(path, UnixStream::connect)
}

/// Calls with a short path to the same file: a socket's address has room for 107 bytes (unix(7)),
/// and folders of users may lie deeper than that.
fn from_its_folder<T>(path: &Path, call: impl FnOnce(PathBuf) -> io::Result<T>) -> io::Result<T> {
    let name = path
        .file_name()
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let parent = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = File::open(parent.unwrap_or(Path::new(".")))?;
    call(Path::new(&format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name))
}

/// Clears away a socket that was left behind by a process that is gone.
fn make_way(path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !metadata.file_type().is_socket() {
        return Err(Refusal(format!(
            "control socket {shown}: there is another file of that name; give another path"
        ))
        .into());
    }
    if connect(path).is_ok() {
        return Err(Refusal(format!(
            "control socket {shown} is in use by another process: stop that one, or give another path"
        ))
        .into());
    }
    fs::remove_file(path).with_context(|| format!("cannot remove the stale socket {shown}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_may_be_longer_than_an_address() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("d".repeat(150));
        fs::create_dir(&folder).unwrap();
        let path = folder.join("tier.sock");
        let (send, clients) = std::sync::mpsc::channel();
        let socket =
            ControlSocket::listen(&path, move |client| send.send(client).unwrap()).unwrap();
        connect(&path).unwrap();
        clients.recv().unwrap();
        let error = ControlSocket::listen(&path, |_| ()).err().unwrap();
        assert!(error.to_string().contains("is in use"), "{error}");
        drop(socket);
        assert!(!path.exists());
    }
}
