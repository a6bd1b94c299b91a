//! The served device: a FUSE mount with one file that has the model's timing.
//!
//! What the model does not ask for, and FUSE adds, is some 40 µs per request. Of a disk it is left
//! in: it is under 1 % of an access. A flash gives it up, see
//! [`ModelSpec::served`](crate::model::ModelSpec::served).
//!
//! Put the process in a memory control group of its own, apart from whoever writes to the
//! device: if the group is short of memory, the writer waits for write-back, and that for this
//! process. As root it also locks its memory and tells the kernel that it is part of the I/O
//! path.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;

use crate::Refusal;
use crate::model::ModelSpec;
use crate::time::TimeScale;
use backing::{Backing, Durability};
use daemon::Daemon;
use engine::Engine;
use file_system::ServedFile;

pub mod backing;
pub(crate) mod daemon;
pub(crate) mod engine;
pub(crate) mod file_system;
pub(crate) mod handler;
mod ledger;
pub(crate) mod mount;
pub(crate) mod timed;

/// How long requests in flight are waited for after an unmount, real time. A full queue of the
/// slowest disk is through in less.
pub(crate) const REST_LIMIT: Duration = Duration::from_secs(10);

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
    /// What a flush does on the host.
    pub durability: Durability,
    /// Real seconds per device second.
    pub scale: TimeScale,
    /// Let other users in, where that is not so anyhow.
    pub allow_other: bool,
    /// End when the parent process does.
    pub die_with_parent: bool,
}

/// Serves until a signal or an unmount, then puts everything back.
pub fn serve(options: ServeOptions) -> anyhow::Result<()> {
    let daemon = Daemon::prepare(options.die_with_parent)?;
    let dir = mount::check_directory(&options.mount).map_err(Refusal)?;
    check_name(&options.name)?;
    let backing = Backing::open(&options.backing, options.durability)
        .map_err(|error| Refusal(format!("{error:#}")))?;
    let backing = Arc::new(backing);
    let spec = options.spec.served(options.scale);
    let device = spec.build(backing.size_bytes())?;
    let engine = Engine::start(device, backing.clone(), options.scale)?;

    let file = ServedFile {
        look: backing.look(options.name)?,
        handler: engine.clone(),
    };
    let result = daemon.run(&dir, vec![file], options.allow_other);
    engine.wait_for_rest(REST_LIMIT);
    let synced = backing.sync().context("cannot sync the backing file");
    eprintln!("{}", serde_json::to_string(&engine.counters())?);
    result.and(synced)
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
