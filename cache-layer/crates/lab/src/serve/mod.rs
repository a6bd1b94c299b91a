//! The served device: a FUSE mount with one file that has the model's timing.
//!
//! The way to a request and back takes its time ([`storage_model::spec::SERVING_PATH_NS`]). With a disk it
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

use anyhow::Context;

use crate::in_flight::Counters;
use crate::timed::Timed;
use hotset_engine::Refusal;
use hotset_engine::backing::{Backing, Durability};
use hotset_engine::daemon::Daemon;
use hotset_engine::direct_io::DIRECT_ALIGN;
use hotset_engine::fuse::file_system::ServedFile;
use hotset_engine::fuse::mount;
use hotset_engine::real_time::disk::Disk;
use hotset_engine::real_time::flash::{Flash, Slice};
use hotset_engine::real_time::meter::{DeviceCounters, Meter};
use hotset_engine::real_time::{Pacer, REST_LIMIT, StartPacer};
use hotset_engine::reply::Handler;
use power::{Power, Powered};
use recorded::Recorded;
use storage_model::device::Device;
use storage_model::spec::{Model, ModelSpec};
use virtual_time::Nanos;
use whatif::trace::Recorder;

mod control;
mod power;
mod recorded;

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
    /// Where to listen for those who let members of an array fail, if anywhere.
    pub control: Option<PathBuf>,
    /// What a flush does on the host.
    pub durability: Durability,
    /// What the way here and back takes, where that has been measured, real nanoseconds.
    pub path_ns: Option<u64>,
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
    let running = Arc::new(Running::start(&backing, &options)?);
    let power = Power::new(backing.clone(), options.spec.device.is_volatile());
    let _control = options
        .control
        .as_deref()
        .map(|path| control::listen(path, running.clone(), power.clone()))
        .transpose()?;

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
    // Without a socket nobody can cut the power.
    if options.control.is_some() {
        files = powered(files, &running, &power, &backing, options.volume_bytes);
    }
    let result = daemon.run(&dir, files, false);
    let counters = running.rest();
    if let Some(recorder) = recorder {
        recorder.finish().context("the trace is not whole")?;
    }
    let synced = backing.sync().context("cannot sync the backing file");
    eprintln!("{}", serde_json::to_string(&counters)?);
    result.and(synced)
}

/// The same files, of a device that can lose its power.
fn powered(
    files: Vec<ServedFile>,
    running: &Arc<Running>,
    power: &Arc<Power>,
    backing: &Backing,
    volume_bytes: u64,
) -> Vec<ServedFile> {
    let starts = [0, backing.size_bytes() - volume_bytes];
    let each = files.into_iter().zip(starts);
    each.map(|(file, start)| {
        let running = running.clone();
        ServedFile {
            view: file.view,
            handler: Arc::new(Powered {
                handler: file.handler,
                power: power.clone(),
                start,
                volatile_bytes: move || running.volatile_bytes(),
            }),
        }
    })
    .collect()
}

/// A device on the real clock.
struct Running {
    model: Arc<Timed<Model>>,
    device: Served,
}

/// A disk's data is moved by threads of its own, since the host's disk below may be slow as well; a
/// flash's at once, since nothing may add to its latency.
enum Served {
    Disk(Arc<Disk>),
    Flash {
        flash: Arc<Flash>,
        /// Of the file, and of the volume behind it.
        meters: [Arc<Meter>; 2],
    },
}

impl Running {
    fn start(backing: &Arc<Backing>, options: &ServeOptions) -> anyhow::Result<Running> {
        let spec = &options.spec;
        let device = spec.build_served(backing.size_bytes(), options.path_ns)?;
        let mut started = None;
        let start: StartPacer<'_> = Box::new(|sync| {
            let model = Timed::start(device, sync)?;
            started = Some(model.clone());
            Ok(model)
        });
        let device = match options.spec.is_flash() {
            false => Served::Disk(Disk::start(Some(start), backing.clone())?),
            true => Served::Flash {
                flash: Flash::start(backing.share()?, Some(start), options.durability)?,
                meters: [Meter::new(), Meter::new()],
            },
        };
        let model = started.context("the device has not started its model")?;
        Ok(Running { model, device })
    }

    /// The whole device as one file, or as two: the kernel lets a flush of a file wait for the
    /// writes to it, and those to one part of a flash device are none of the other's business.
    fn files(&self, backing: &Backing, options: &ServeOptions) -> anyhow::Result<Vec<ServedFile>> {
        let mut first = backing.view(options.name.clone())?;
        if options.volume_bytes == 0 {
            let handler: Arc<dyn Handler> = match &self.device {
                Served::Disk(disk) => disk.clone(),
                Served::Flash { flash, meters } => slice(flash, 0, &meters[0]),
            };
            return Ok(vec![ServedFile {
                view: first,
                handler,
            }]);
        }
        let Served::Flash { flash, meters } = &self.device else {
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
        let mut second = backing.view(OsString::from("volume"))?;
        second.size_bytes = options.volume_bytes;
        let [of_first, of_second] = meters;
        Ok([(first, 0, of_first), (second, start, of_second)]
            .map(|(view, start, meter)| ServedFile {
                view,
                handler: slice(flash, start, meter),
            })
            .into())
    }

    /// Does something with the model at its time.
    fn with_model<R>(&self, act: impl FnOnce(&mut Model, Nanos) -> R) -> R {
        self.model.with_device(act)
    }

    /// Bytes of answered writes that a loss of power would take now.
    fn volatile_bytes(&self) -> u64 {
        self.with_model(|model, now| model.volatile_bytes(now))
    }

    /// What went through the served files, `disk` being the first of them.
    fn devices(&self) -> Vec<DeviceCounters> {
        match &self.device {
            Served::Disk(disk) => vec![disk.meter().counters("disk")],
            Served::Flash {
                meters: [disk, volume],
                ..
            } => vec![disk.counters("disk"), volume.counters("volume")],
        }
    }

    fn counters(&self) -> Counters {
        self.model.counters()
    }

    /// Waits for what is in the device; what has gone through it.
    fn rest(&self) -> Counters {
        self.model.wait_for_rest(REST_LIMIT);
        self.counters()
    }
}

/// The flash from a place on.
fn slice(flash: &Arc<Flash>, start: u64, meter: &Arc<Meter>) -> Arc<dyn Handler> {
    let (flash, meter) = (flash.clone(), meter.clone());
    Arc::new(Slice {
        flash,
        start,
        meter,
    })
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
