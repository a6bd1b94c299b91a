//! A tier from start to end.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use clap::ValueEnum;

use super::Tier;
use super::control::Control;
use super::core::{Core, Manner, Mode};
use super::layout::Layout;
use super::metadata::{Metadata, Recovered};
use super::origin::Origin;
use super::request::Data;
use crate::Refusal;
use crate::model::ModelSpec;
use crate::policy::{self, Geometry, Mapping, PolicyKind};
use crate::serve::backing::{Backing, Durability};
use crate::serve::daemon::Daemon;
use crate::serve::engine::Engine;
use crate::serve::file_system::ServedFile;
use crate::serve::flash::{Flash, Slice};
use crate::serve::{REST_LIMIT, mount};
use crate::time::TimeScale;

/// What to serve, and how.
#[derive(Debug)]
pub struct TierOptions {
    /// The behaviour of the origin.
    pub origin_spec: ModelSpec,
    /// The file that holds the origin's data; its size is that of the accelerated file.
    pub origin: PathBuf,
    /// The behaviour of the flash; `None` leaves it as fast as its file.
    pub flash_spec: Option<ModelSpec>,
    /// The flash file.
    pub flash: PathBuf,
    /// How the flash is cut up.
    pub layout: Layout,
    /// What decides which blocks are cached.
    pub policy: PolicyKind,
    /// What becomes of a write that hits.
    pub mode: Mode,
    /// How much of the cache may be dirty before the tier cleans it of its own accord, percent.
    pub dirty_target: u8,
    /// Whether what is on the flash is forgotten, dirty blocks and all.
    pub discard: bool,
    /// What a flush does on the host.
    pub durability: Durability,
    /// Real seconds per device second, for both devices.
    pub scale: TimeScale,
    /// The directory to mount on.
    pub mount: PathBuf,
    /// Where the control socket is put.
    pub control: PathBuf,
    /// Whether users other than this one may use the files.
    pub allow_other: bool,
    /// Whether to end when the parent process does.
    pub die_with_parent: bool,
}

/// The files below a tier.
pub(super) struct Files {
    origin: Arc<Backing>,
    flash: Backing,
}

/// Serves a tier until a signal or an unmount, then writes its state and counters.
///
/// # Errors
/// A [`Refusal`] or [`ModelError`](crate::model::ModelError) for what cannot be served as asked.
pub fn serve_tier(options: &TierOptions) -> anyhow::Result<()> {
    let daemon = Daemon::prepare(options.die_with_parent)?;
    let dir = mount::check_directory(&options.mount).map_err(Refusal)?;
    let files = Files::open(options)?;
    let tier = Tier::start(options, &files)?;
    let control = Control::listen(&options.control, tier.clone())?;
    let migrators = tier.start_migrators()?;
    let served = served_files(&tier, &files)?;
    let result = daemon.run(&dir, served, options.allow_other);
    drop(control);
    let closed = tier.stop(migrators);
    eprintln!("{}", serde_json::to_string(&tier.status())?);
    result.and(closed)
}

impl Files {
    /// Opens and locks them.
    pub(super) fn open(options: &TierOptions) -> anyhow::Result<Files> {
        let files = Files {
            origin: Arc::new(open(&options.origin, options.durability)?),
            flash: open(&options.flash, options.durability)?,
        };
        options.layout.check(files.flash.size_bytes())?;
        Ok(files)
    }
}

fn open(path: &Path, durability: Durability) -> anyhow::Result<Backing> {
    let refused = |error: anyhow::Error| Refusal(format!("{error:#}"));
    Ok(Backing::open(path, durability).map_err(refused)?)
}

/// The accelerated file, and the VOLUME if there is one.
fn served_files(tier: &Arc<Tier>, files: &Files) -> anyhow::Result<Vec<ServedFile>> {
    let mut served = vec![ServedFile {
        look: files.origin.look("data".into())?,
        handler: Arc::new(Data(tier.clone())),
    }];
    if tier.layout.volume_bytes > 0 {
        let mut look = files.flash.look("volume".into())?;
        look.size_bytes = tier.layout.volume_bytes;
        let volume = Slice {
            flash: tier.flash.clone(),
            start: tier.layout.volume_offset(),
        };
        let handler = Arc::new(volume);
        served.push(ServedFile { look, handler });
    }
    Ok(served)
}

/// The cache that is on the flash, or a new one.
fn open_metadata(
    options: &TierOptions,
    flash: Arc<File>,
) -> anyhow::Result<(Metadata, Vec<Mapping>)> {
    let origin = Origin::open(&options.origin)?;
    let (layout, sync) = (options.layout, options.durability == Durability::Synced);
    if options.discard || !Metadata::is_formatted(&flash)? {
        return Ok((Metadata::format(flash, layout, origin, sync)?, Vec::new()));
    }
    let (metadata, Recovered { mappings, .. }) = Metadata::open(flash, layout, origin, sync)?;
    Ok((metadata, mappings))
}

impl Tier {
    /// A tier over the files; it serves requests, and moves blocks once it has migrators.
    pub(super) fn start(options: &TierOptions, files: &Files) -> anyhow::Result<Arc<Tier>> {
        let (layout, scale) = (options.layout, options.scale);
        let origin_bytes = files.origin.size_bytes();
        let geometry = Geometry {
            origin_blocks: layout.origin_blocks(origin_bytes)?,
            slots: layout.slots(),
        };
        let device = |spec: &ModelSpec, bytes| spec.build_served(bytes, scale);
        let origin_device = device(&options.origin_spec, origin_bytes)?;
        let flash_spec = options.flash_spec.as_ref();
        let flash_device = flash_spec.map(|spec| device(spec, files.flash.size_bytes()));
        let file = files.flash.share()?;
        let (meta, mappings) = open_metadata(options, file.clone())?;
        let meta = Arc::new(meta);
        let manner = Manner {
            mode: options.mode,
            block_bytes: layout.block_bytes,
            origin_blocks: geometry.origin_blocks,
            dirty_target: options.dirty_target,
        };
        let policy = policy::make(options.policy, geometry);
        Ok(Arc::new(Tier {
            core: Mutex::new(Core::new(manner, policy, meta.clone(), &mappings)),
            work: Condvar::new(),
            changed: Condvar::new(),
            meta,
            origin: Engine::start(origin_device, files.origin.clone(), scale)?,
            flash: Flash::start(file, flash_device.transpose()?, scale, options.durability)?,
            layout,
            origin_bytes,
            policy_name: name_of(options.policy),
            start: Instant::now(),
            begun: since_1970(),
            scale,
        }))
    }

    /// Brings what is under way to an end and writes down the state. Requests that still come,
    /// from somebody who has kept a file open, are turned away.
    pub(super) fn stop(&self, migrators: Vec<JoinHandle<()>>) -> anyhow::Result<()> {
        self.lock().pool.stopping = true;
        self.work.notify_all();
        for migrator in migrators {
            // One that has panicked has said so.
            let _ = migrator.join();
        }
        drop(self.until(Core::is_calm));
        self.origin.wait_for_rest(REST_LIMIT);
        self.flash.wait_for_rest(REST_LIMIT);
        let mut core = self.lock();
        core.closed = true;
        self.meta
            .close(|slot| core.policy.heat(slot))
            .context("cannot write the metadata of the flash")
    }
}

/// A clock that is set before 1970 reads 0.
fn since_1970() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default()
}

fn name_of(policy: PolicyKind) -> String {
    let value = policy.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}
