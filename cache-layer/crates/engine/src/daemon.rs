//! A process that serves a disk until it is told to stop: files on a mount, or a block device.

use std::io::Write;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use anyhow::{Context, anyhow};
use fuser::{Config, MountOption, Session};
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Uid, getppid};
use sd_notify::NotifyState;

use crate::fuse::file_system::{Directory, ServedFile};
use crate::fuse::mount;
use crate::ublk;

/// Threads that take requests from the kernel. Where replies need no waiting, as with a cache
/// hit, they do all the work; more of them would only fight for the queue.
const SESSIONS: usize = 2;

/// The same where a cache hit waits for a device: as many are under way at a time.
const SESSIONS_THAT_WAIT: usize = 16;

/// From linux/prctl.h; marks a process that the kernel's write-back depends on.
const PR_SET_IO_FLUSHER: libc::c_int = 57;

/// Why serving comes to an end.
enum End {
    Signal,
    Unmounted(std::io::Result<()>),
}

/// The process, ready to serve.
pub struct Daemon {
    signals: SigSet,
}

impl Daemon {
    /// Arranges the process; before it starts a thread, so that all of them inherit it.
    pub fn prepare(die_with_its_parent: bool) -> anyhow::Result<Daemon> {
        end_on_panic();
        // Signals are blocked, and taken by one thread only.
        let signals = block_signals()?;
        if die_with_its_parent {
            die_with_parent()?;
        }
        keep_out_of_reclaim();
        Ok(Daemon { signals })
    }

    /// Mounts the files, says so, and serves them until a signal or an unmount.
    ///
    /// `wait`: whoever serves a request may have to wait for a device.
    pub fn run(self, dir: &Path, files: Vec<ServedFile>, wait: bool) -> anyhow::Result<()> {
        let ready = ready_line(dir, &files);
        let mut session = Session::new(Directory::new(files), dir, &session_config(wait))
            .with_context(|| format!("cannot mount on {}", dir.display()))?;
        let mut unmounter = session.unmount_callable();
        let (ends, end) = channel();
        watch_signals(self.signals, ends.clone())?;
        run_session(session, ends)?;
        announce(&ready);
        match end.recv().context("all threads are gone")? {
            End::Signal => {
                // Refused while somebody has a file open.
                if unmounter.unmount().is_err() {
                    mount::detach(dir);
                }
                Ok(())
            }
            End::Unmounted(result) => result.context("the connection to the kernel broke"),
        }
    }

    /// Says that a block device is there, and has it served until a signal.
    pub fn run_device(self, device: ublk::Device, size_bytes: u64) -> anyhow::Result<()> {
        let (ends, end) = channel();
        watch_signals(self.signals, ends)?;
        announce(&format!("ready {} {size_bytes}", device.path().display()));
        end.recv().context("all threads are gone")?;
        device.remove()
    }
}

/// Has a panic of any thread end the process. What is half changed must not be used any more, and a
/// thread that is gone leaves others waiting; a start after a kill is what the metadata are made for.
fn end_on_panic() {
    let say = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        say(panic);
        std::process::abort();
    }));
}

fn block_signals() -> anyhow::Result<SigSet> {
    let signals = SigSet::from_iter([
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGUSR1,
    ]);
    signals.thread_block().context("cannot block signals")?;
    Ok(signals)
}

/// The parent here is the thread that started this process: a parent that starts it from a
/// short-lived thread would end it with that thread.
fn die_with_parent() -> anyhow::Result<()> {
    let parent = getppid();
    nix::sys::prctl::set_pdeathsig(Signal::SIGTERM).context("cannot ask to die with the parent")?;
    // It may have gone in between.
    if getppid() == parent {
        Ok(())
    } else {
        Err(anyhow!("the parent process is gone"))
    }
}

/// Keeps this process from waiting for the memory that only its own work can free. Needs
/// capabilities; without them it runs as it is, and says so.
fn keep_out_of_reclaim() {
    use nix::sys::mman::{MlockAllFlags, mlockall};
    let on_fault = MlockAllFlags::from_bits_retain(libc::MCL_ONFAULT);
    let all = MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE | on_fault;
    let is_locked = may_lock_all() && mlockall(all).is_ok();
    if !is_locked && Uid::effective().is_root() {
        eprintln!(
            "hotset-engine: warning: the engine's memory is not locked, as it has not the capability \
             CAP_IPC_LOCK: where memory is short, it may have to wait for itself"
        );
    }
    // SAFETY: this prctl takes numbers only and sets a flag of the calling thread, which those
    // it starts inherit.
    unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) };
}

/// Under a limit, locking would make later allocations fail. Root in a container has the name of root
/// and not all that it may.
fn may_lock_all() -> bool {
    const CAP_IPC_LOCK: u64 = 1 << 14;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let capabilities = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    let limit = getrlimit(Resource::RLIMIT_MEMLOCK);
    capabilities.is_some_and(|all| all & CAP_IPC_LOCK != 0)
        || limit.is_ok_and(|(soft, _)| soft == RLIM_INFINITY)
}

/// Nobody but this user comes in: a loop device over a file of root's is root's, too.
fn session_config(wait: bool) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("hotset".to_owned()),
        MountOption::Subtype("hotset".to_owned()),
        MountOption::DefaultPermissions,
        MountOption::NoAtime,
    ];
    config.n_threads = Some(if wait { SESSIONS_THAT_WAIT } else { SESSIONS });
    config.clone_fd = true;
    config
}

fn watch_signals(signals: SigSet, ends: Sender<End>) -> anyhow::Result<()> {
    let watch = move || {
        while let Ok(signal) = signals.wait() {
            // SIGUSR1 is accepted for those who send it out of habit; counters come at the end.
            if signal != Signal::SIGUSR1 && ends.send(End::Signal).is_err() {
                return;
            }
        }
    };
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(watch)?;
    Ok(())
}

fn run_session(session: Session<Directory>, ends: Sender<End>) -> anyhow::Result<()> {
    thread::Builder::new()
        .name("session".to_owned())
        .spawn(move || ends.send(End::Unmounted(session.run())))?;
    Ok(())
}

/// One line for whoever waits for the files: `ready`, then path and size of each.
fn ready_line(dir: &Path, files: &[ServedFile]) -> String {
    let views = files.iter().map(|file| &file.view);
    let shown =
        views.map(|view| format!(" {} {}", dir.join(&view.name).display(), view.size_bytes));
    format!("ready{}", shown.collect::<String>())
}

/// Nobody need be listening.
fn announce(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}");
    let _ = out.flush();
    let _ = sd_notify::notify(&[NotifyState::Ready]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Has a child of this very test run the part that does not return.
    const CHILD: &str = "FLASHDEV_PANIC_CHILD";

    #[test]
    fn a_panic_of_any_thread_ends_the_process() {
        use std::os::unix::process::ExitStatusExt;
        if std::env::var_os(CHILD).is_some() {
            end_on_panic();
            let _ = thread::spawn(|| panic!("on purpose")).join();
            std::process::exit(0);
        }
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--nocapture"])
            .arg("daemon::tests::a_panic_of_any_thread_ends_the_process")
            .env(CHILD, "1")
            .output()
            .unwrap();
        assert_eq!(child.status.signal(), Some(libc::SIGABRT));
        let message = String::from_utf8_lossy(&child.stderr);
        assert!(message.contains("on purpose"), "{message}");
    }
}
