//! The served device: a FUSE mount with one file that has the model's timing.
//!
//! What the model does not ask for, and FUSE adds: about 50 µs per request. It is left in: it
//! is under 1 % of a disk access, where a flash model would have to subtract it.
//!
//! Put the process in a memory control group of its own, apart from whoever writes to the
//! device: if the group is short of memory, the writer waits for write-back, and that for this
//! process. As root it also locks its memory and tells the kernel that it is part of the I/O
//! path.

use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow};
use fuser::{Config, MountOption, Session, SessionACL};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Uid, getppid};

use crate::Refusal;
use crate::model::ModelSpec;
use crate::time::TimeScale;
use backing::Backing;
use engine::Engine;
use file_system::{FileLook, OneFile};

pub(crate) mod backing;
mod engine;
mod file_system;
mod ledger;
mod mount;

/// How long requests in flight are waited for after an unmount, real time. A full queue of the
/// slowest disk is through in less.
const REST_LIMIT: Duration = Duration::from_secs(10);

/// From linux/prctl.h; marks a process that the kernel's write-back depends on.
const PR_SET_IO_FLUSHER: libc::c_int = 57;

/// What to serve, and where.
#[derive(Debug)]
pub struct ServeOptions {
    /// The device's behaviour.
    pub spec: ModelSpec,
    /// The file that holds the data.
    pub backing: PathBuf,
    /// The directory to mount on.
    pub mount: PathBuf,
    /// Name of the file in it.
    pub name: OsString,
    /// Real seconds per device second.
    pub scale: TimeScale,
    /// Let other users in, where that is not so anyhow.
    pub allow_other: bool,
    /// End when the parent process does.
    pub die_with_parent: bool,
}

/// Why serving comes to an end.
enum End {
    Signal,
    Unmounted(std::io::Result<()>),
}

/// Serves until a signal or an unmount, then puts everything back.
pub fn serve(options: ServeOptions) -> anyhow::Result<()> {
    // Signals are blocked before the first thread starts, so that all inherit it, and are
    // taken by one thread only.
    let signals = block_signals()?;
    if options.die_with_parent {
        die_with_parent()?;
    }
    let dir = mount::check_directory(&options.mount).map_err(Refusal)?;
    check_name(&options.name)?;
    let backing = Backing::open(&options.backing).map_err(|error| Refusal(format!("{error:#}")))?;
    let backing = Arc::new(backing);
    let device = options.spec.build(backing.size_bytes())?;
    prepare_process();
    let engine = Engine::start(device, backing.clone(), options.scale)?;

    let look = look_of(&backing, &options.name)?;
    let file_system = OneFile::new(look, engine.clone());
    let mut session = Session::new(file_system, &dir, &session_config(options.allow_other))
        .with_context(|| format!("cannot mount on {}", dir.display()))?;
    let mut unmounter = session.unmount_callable();

    let (ends, end) = channel();
    watch_signals(signals, ends.clone())?;
    run_session(session, ends)?;
    announce(&dir.join(&options.name), backing.size_bytes())?;

    let result = match end.recv().context("all threads are gone")? {
        End::Signal => {
            // Refused while somebody has the file open.
            if unmounter.unmount().is_err() {
                mount::detach(&dir);
            }
            Ok(())
        }
        End::Unmounted(result) => result.context("the connection to the kernel broke"),
    };
    engine.wait_for_rest(REST_LIMIT);
    let synced = backing.sync().context("cannot sync the backing file");
    eprintln!("{}", serde_json::to_string(&engine.counters())?);
    result.and(synced)
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

fn check_name(name: &OsString) -> Result<(), Refusal> {
    let shown = name.to_string_lossy();
    if shown.is_empty() || shown == "." || shown == ".." || shown.contains('/') || name.len() > 255
    {
        return Err(Refusal(format!(
            "name `{shown}` cannot be a file's: give a plain file name such as `disk`"
        )));
    }
    Ok(())
}

/// Keeps this process from waiting for the memory that only its own work can free. Needs
/// privileges; without them it runs as it is.
fn prepare_process() {
    if !Uid::effective().is_root() {
        // With a small limit on locked memory, locking would make later allocations fail.
        return;
    }
    use nix::sys::mman::{MlockAllFlags, mlockall};
    let on_fault = MlockAllFlags::from_bits_retain(libc::MCL_ONFAULT);
    let _ = mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE | on_fault);
    // SAFETY: this prctl takes numbers only and sets a flag of the calling thread, which those
    // it starts inherit.
    unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) };
}

fn look_of(backing: &Backing, name: &OsString) -> anyhow::Result<FileLook> {
    let (uid, gid, permissions) = backing.ownership()?;
    Ok(FileLook {
        name: name.clone(),
        size_bytes: backing.size_bytes(),
        uid,
        gid,
        permissions,
    })
}

fn session_config(allow_other: bool) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName("flashdev".to_owned()),
        MountOption::Subtype("flashdev".to_owned()),
        // Whoever may use the backing file may use the device, and nobody else.
        MountOption::DefaultPermissions,
        MountOption::NoAtime,
    ];
    if allow_other || Uid::effective().is_root() {
        config.acl = SessionACL::All;
    }
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

fn run_session(session: Session<OneFile>, ends: Sender<End>) -> anyhow::Result<()> {
    thread::Builder::new()
        .name("session".to_owned())
        .spawn(move || ends.send(End::Unmounted(session.run())))?;
    Ok(())
}

/// One line for whoever waits for the device. Nobody need be listening.
fn announce(file: &std::path::Path, size_bytes: u64) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "ready {} {size_bytes}", file.display());
    let _ = out.flush();
    Ok(())
}
