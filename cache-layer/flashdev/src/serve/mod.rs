//! The served device: a FUSE mount with one file that has the model's timing.
//!
//! The way to a request and back takes its time ([`crate::model::SERVING_PATH_NS`]). With a disk it
//! is left in, being some 1 % of an access; a flash model has it taken off its latencies
//! ([`ModelSpec::build_served`]).
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
use crate::model::{Model, ModelSpec};
use crate::time::TimeScale;
use crate::trace::Recorder;
use backing::{Backing, DIRECT_ALIGN, Durability};
use daemon::Daemon;
use engine::Engine;
use file_system::ServedFile;
use flash::{Flash, Slice};
use handler::Handler;
use ledger::Counters;
use recorded::Recorded;

pub mod backing;
pub(crate) mod daemon;
pub(crate) mod engine;
pub(crate) mod file_system;
pub(crate) mod flash;
pub(crate) mod handler;
mod ledger;
pub(crate) mod mount;
mod recorded;
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
    /// So many bytes at the end are a second file, `volume`, on the same device.
    pub volume_bytes: u64,
    /// Where to write down every request, if anywhere.
    pub trace: Option<PathBuf>,
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
    let running = Running::start(&backing, &options)?;

    let recorder = options.trace.as_deref().map(Recorder::start).transpose()?;
    let recorder = recorder.map(Arc::new);
    let mut files = running.files(&backing, &options)?;
    if let Some(recorder) = &recorder {
        for file in &mut files {
            file.handler = Arc::new(Recorded {
                handler: file.handler.clone(),
                recorder: recorder.clone(),
            });
        }
    }
    let result = daemon.run(&dir, files, options.allow_other);
    let counters = running.rest();
    if let Some(recorder) = recorder {
        recorder.finish().context("the trace is not whole")?;
    }
    let synced = backing.sync().context("cannot sync the backing file");
    eprintln!("{}", serde_json::to_string(&counters)?);
    result.and(synced)
}

/// A device on the real clock. A disk's data is moved by threads of its own, since the host's disk
/// below may be slow as well; a flash's at once, since nothing may add to its latency.
enum Running {
    Disk(Arc<Engine<Model>>),
    Flash(Arc<Flash>),
}

impl Running {
    fn start(backing: &Arc<Backing>, options: &ServeOptions) -> anyhow::Result<Running> {
        let device = options
            .spec
            .build_served(backing.size_bytes(), options.scale)?;
        Ok(match options.spec {
            ModelSpec::Disks(_) => {
                Running::Disk(Engine::start(device, backing.clone(), options.scale)?)
            }
            ModelSpec::Flash(_) => Running::Flash(Flash::start(
                backing.share()?,
                Some(device),
                options.scale,
                options.durability,
            )?),
        })
    }

    /// The whole device as one file, or as two: the kernel lets a flush of a file wait for the
    /// writes to it, and those to one part of a flash card are none of the other's business.
    fn files(&self, backing: &Backing, options: &ServeOptions) -> anyhow::Result<Vec<ServedFile>> {
        let mut first = backing.look(options.name.clone())?;
        if options.volume_bytes == 0 {
            let handler: Arc<dyn Handler> = match self {
                Running::Disk(engine) => engine.clone(),
                Running::Flash(flash) => slice(flash, 0),
            };
            return Ok(vec![ServedFile {
                look: first,
                handler,
            }]);
        }
        let Running::Flash(flash) = self else {
            return Err(Refusal("volume: only a flash model can be split".to_owned()).into());
        };
        let start = first.size_bytes.checked_sub(options.volume_bytes);
        let Some(start) = start.filter(|start| *start > 0 && start % DIRECT_ALIGN as u64 == 0)
        else {
            return Err(Refusal(format!(
                "volume of {} bytes: give less than the device's {}, and leave a multiple of \
                 {DIRECT_ALIGN}",
                options.volume_bytes, first.size_bytes
            ))
            .into());
        };
        first.size_bytes = start;
        let mut second = backing.look(OsString::from("volume"))?;
        second.size_bytes = options.volume_bytes;
        Ok([(first, 0), (second, start)]
            .map(|(look, start)| ServedFile {
                look,
                handler: slice(flash, start),
            })
            .into())
    }

    /// Waits for what is in the device; what has gone through it.
    fn rest(&self) -> Option<Counters> {
        match self {
            Running::Disk(engine) => {
                engine.wait_for_rest(REST_LIMIT);
                Some(engine.counters())
            }
            Running::Flash(flash) => {
                flash.wait_for_rest(REST_LIMIT);
                flash.counters()
            }
        }
    }
}

/// The flash from a place on.
fn slice(flash: &Arc<Flash>, start: u64) -> Arc<dyn Handler> {
    let flash = flash.clone();
    Arc::new(Slice { flash, start })
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
