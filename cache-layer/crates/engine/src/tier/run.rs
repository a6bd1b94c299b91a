//! A tier from start to end.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use cache_core::engine::{CacheConfig, Engine, Mode, Pace};
use cache_core::layout::Layout;
use cache_core::metadata::{self, Identity, Log, Recovered, Session, SessionId};
use cache_core::policy::{self, Geometry, PolicyKind};
use clap::ValueEnum;
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use parking_lot::{Condvar, Mutex, RwLock};
use roaring::RoaringBitmap;
use sd_notify::NotifyState;
use std::sync::atomic::AtomicU64;

use super::Tier;
use super::control;
use super::driver::Shared;
use super::files::{StoreFiles, boot_id};
use super::origin::{NamedOrigin, OriginFile};
use super::refill::{Noted, Refill, RefillFile};
use super::request::{Data, Volume};
use super::shares::{Identified, Sharing};
use crate::Refusal;
use crate::backing::{Backing, Durability, view_of};
use crate::daemon::Daemon;
use crate::flash_file::witness::{Witness, new_session};
use crate::flash_file::{FlashFile, Part};
use crate::front;
use crate::fuse::file_system::ServedFile;
use crate::fuse::mount;
use crate::real_time::disk::Disk;
use crate::real_time::flash::{Flash, Slice};
use crate::real_time::meter::Meter;
use crate::real_time::{DeviceModel, REST_LIMIT, pacer_of};
use crate::ublk::remove_device;

/// How often the engine is told that time passes, real time.
const TICK: Duration = Duration::from_millis(100);

/// How often it is checked whether a tier that stops has come to rest, real time.
const REST_CHECK: Duration = Duration::from_millis(1);

/// How long blocks that are on their way may take when a tier stops, real time: longer than a device
/// takes that is merely busy.
const MIGRATIONS_LIMIT: Duration = Duration::from_secs(30);

const NO_ANSWER: &str = "a device does not answer, and blocks are on their way: the next start takes up what is on the flash";

/// What to serve, and how.
#[derive(Debug)]
pub struct TierOptions {
    /// The behaviour of the origin; `None` leaves it as fast as it is.
    pub origin_model: Option<Arc<dyn DeviceModel>>,
    /// The file or block device that holds the origin's data; its size is that of the accelerated
    /// file.
    pub origin: PathBuf,
    /// How the origin is told from others, if not by an attribute of its own.
    pub named_origin: Option<NamedOrigin>,
    /// The behaviour of the flash; `None` leaves it as fast as its file.
    pub flash_model: Option<Arc<dyn DeviceModel>>,
    /// The flash: a file or block device.
    pub flash: PathBuf,
    /// The parts of it that are this tier's, one behind the other; none means all of it.
    pub flash_parts: Vec<Part>,
    /// How the flash is cut up.
    pub layout: Layout,
    /// What decides which blocks are cached.
    pub policy: PolicyKind,
    /// What becomes of a write that hits.
    pub mode: Mode,
    /// How much of the cache may be dirty before the tier cleans it of its own accord, percent.
    pub dirty_target: u8,
    /// Where pins and shares are kept; nowhere, they are gone when the tier ends.
    pub shares: Option<PathBuf>,
    /// Where it is noted which blocks the cache held before it was emptied; nowhere, it begins cold.
    pub refill: Option<PathBuf>,
    /// Whether what is on the flash is forgotten, dirty blocks and all.
    pub discard: bool,
    /// What a flush does on the host.
    pub durability: Durability,
    /// Seconds of the cache in a second: 1, but in tests, in which idle seconds go by at once.
    pub speed: f64,
    /// The directory to mount on.
    pub mount: PathBuf,
    /// Where the control socket is put.
    pub control: PathBuf,
    /// Where it is put down that both devices have all that was written; nowhere, the next start
    /// believes what a power cut would have left.
    pub witness: Option<PathBuf>,
    /// Where it is put down how the disk is served, if not by FUSE whatever the kernel has.
    pub front: Option<PathBuf>,
    /// Whether to end when the parent process does.
    pub die_with_parent: bool,
}

/// The files below a tier.
pub(super) struct Files {
    pub(super) origin: Arc<Backing>,
    pub(super) flash: Arc<FlashFile>,
}

/// Serves a tier, or only checks whether it could.
///
/// # Errors
/// As [`serve_tier`] and [`check_tier`].
pub fn run_tier(options: &TierOptions, only_check: bool) -> anyhow::Result<()> {
    match only_check {
        true => check_tier(options),
        false => serve_tier(options),
    }
}

/// Serves a tier until a signal or an unmount, then writes its state and counters.
///
/// # Errors
/// A [`Refusal`] for what cannot be served as asked, or what a model fails with.
pub fn serve_tier(options: &TierOptions) -> anyhow::Result<()> {
    let daemon = Daemon::prepare(options.die_with_parent)?;
    let dir = mount::check_directory(&options.mount).map_err(Refusal)?;
    let files = Files::open(options)?;
    let tier = Tier::start(options, &files)?;
    let control = control::listen(&options.control, tier.clone())?;
    tier.start_ticker()?;
    tier.start_refill()?;
    let served = served_files(&tier, &files, options.layout)?;
    let result = serve(&tier, options, daemon, &dir, served);
    drop(control);
    let closed = tier.stop();
    eprintln!("{}", serde_json::to_string(&tier.status())?);
    result.and(closed)
}

/// Serves the files, or the one of them that there is as a block device, until a signal.
fn serve(
    tier: &Tier,
    options: &TierOptions,
    daemon: Daemon,
    dir: &Path,
    files: Vec<ServedFile>,
) -> anyhow::Result<()> {
    let waits = tier.flash.has_to_wait();
    if let Some(note) = &options.front {
        if !tier.is_whole {
            // Those who wait there were answered what may be missing.
            remove_device(&tier.origin_id.id)?;
        }
        let (front, device) = front::choose(&tier.origin_id.id, &files, waits);
        let noted = front.note(note);
        // Nobody else sets it.
        let _ = tier.front.set(front);
        if let Some(device) = device {
            return match noted {
                Ok(()) => daemon.run_device(device, tier.served_bytes()),
                Err(error) => device.remove().and(Err(error)),
            };
        }
        noted?;
    }
    daemon.run(dir, files, waits)
}

/// Whether [`serve_tier`] could take up what is on the flash, which is only read. Prints how many of
/// its blocks the origin lacks, where the last one ended in order.
///
/// # Errors
/// The same [`Refusal`] as there, or a [`metadata::MetadataError`].
pub fn check_tier(options: &TierOptions) -> anyhow::Result<()> {
    let files = Files::open(options)?;
    let origin = OriginFile::look_at(&options.origin, options.named_origin.as_ref())?;
    let store = StoreFiles {
        flash: files.flash.clone(),
        origin: &origin,
    };
    // Asked first: one in another format is not discarded either.
    let dirty = if metadata::is_empty(&store)? || options.discard {
        Some(0)
    } else {
        origin.check_not_given_up()?;
        let witness = files.witness(options);
        let session = session(options.layout, options.durability, &origin, &witness)?;
        metadata::check(&store, &session)?
    };
    if let Some(dirty) = dirty {
        println!("{}", serde_json::json!({ "dirty": dirty }));
    }
    Ok(())
}

/// Has a flash say that its cache is empty; the next tier on it begins a new one. What was in it is
/// noted first where a file for that is given, and told.
///
/// # Errors
/// A [`Refusal`] where it is in use or is no flash, or a [`metadata::MetadataError`].
pub fn format_flash(
    flash: &Path,
    parts: &[Part],
    refill: Option<&RefillFile>,
) -> anyhow::Result<Option<Noted>> {
    let flash = FlashFile::open(flash, parts).map_err(refused)?;
    Ok(empty(&flash, refill)?)
}

/// The same of a flash that is open.
pub(super) fn empty(
    flash: &FlashFile,
    refill: Option<&RefillFile>,
) -> Result<Option<Noted>, metadata::MetadataError> {
    // A cache in another format stays, and so does what was noted of an earlier one.
    metadata::is_empty(flash)?;
    let noted = refill.map(|file| file.note(flash));
    metadata::make_empty(flash)?;
    Ok(noted)
}

impl Files {
    /// Opens and locks them.
    pub(super) fn open(options: &TierOptions) -> anyhow::Result<Files> {
        let files = Files {
            origin: Arc::new(open(&options.origin, options.durability)?),
            flash: Arc::new(
                FlashFile::open(&options.flash, &options.flash_parts).map_err(refused)?,
            ),
        };
        options.layout.check(files.flash.size_bytes())?;
        Ok(files)
    }

    /// What is known of the run before.
    fn witness(&self, options: &TierOptions) -> Arc<Witness> {
        let path = options.witness.as_deref();
        Witness::find(path, self.flash.file(), self.origin.file())
    }

    /// Has the witness go with the first sync that fails. Without one, what the page cache has may be
    /// nowhere else, and no sync would tell.
    fn watch(&self, witness: &Arc<Witness>, origin: &OriginFile) {
        let syncs = [self.flash.syncs(), self.origin.syncs(), origin.syncs()];
        syncs.iter().for_each(|syncs| syncs.by(witness));
        for file in [self.flash.file(), self.origin.file()] {
            if witness.session().is_none() {
                // Where it cannot be dropped, it is no page cache that has it.
                let _ = posix_fadvise(file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
            }
        }
    }
}

fn open(path: &Path, durability: Durability) -> anyhow::Result<Backing> {
    Ok(Backing::open(path, durability).map_err(refused)?)
}

pub(super) fn refused(error: anyhow::Error) -> Refusal {
    Refusal(format!("{error:#}"))
}

/// The accelerated file, and the VOLUME if there is one.
fn served_files(
    tier: &Arc<Tier>,
    files: &Files,
    layout: Layout,
) -> anyhow::Result<Vec<ServedFile>> {
    let mut served = vec![ServedFile {
        view: files.origin.view("data".into())?,
        handler: Arc::new(Data(tier.clone())),
    }];
    if layout.volume_bytes > 0 {
        let behind = files.flash.metadata()?;
        let view = view_of(&behind, "volume".into(), layout.volume_bytes);
        let handler = Arc::new(Volume {
            tier: tier.clone(),
            slice: Slice {
                flash: tier.flash.clone(),
                start: layout.volume_offset(),
                meter: tier.volume_meter.clone(),
            },
        });
        served.push(ServedFile { view, handler });
    }
    Ok(served)
}

pub(super) fn session(
    layout: Layout,
    durability: Durability,
    origin: &OriginFile,
    witness: &Witness,
) -> anyhow::Result<Session> {
    Ok(Session {
        identity: Identity {
            layout,
            origin_id: origin.id,
            origin_bytes: origin.bytes,
        },
        sync: durability == Durability::Synced,
        boot_id: boot_id()?,
        id: new_session()?,
        witnessed: witness.session(),
    })
}

/// The cache that is on the flash, or a new one where it says that it is empty.
fn open_metadata(
    options: &TierOptions,
    store: &StoreFiles,
    session: &Session,
) -> anyhow::Result<(Log, Recovered)> {
    if options.discard || metadata::is_empty(store)? {
        let log = metadata::format(store, session)?;
        store.origin.restart()?;
        let nothing = Recovered {
            mappings: Vec::new(),
            clean_shutdown: false,
            is_whole: session.witnessed.is_some(),
        };
        return Ok((log, nothing));
    }
    store.origin.check_not_given_up()?;
    Ok(metadata::open(store, session)?)
}

/// A cache that this run goes on with.
struct TakenUp {
    log: Log,
    recovered: Recovered,
    witness: Arc<Witness>,
    session: SessionId,
}

/// Takes it up as the run before has left it; from now on the witness tells of this one.
fn take_up(options: &TierOptions, files: &Files, origin: &OriginFile) -> anyhow::Result<TakenUp> {
    let flash = files.flash.clone();
    let witness = files.witness(options);
    files.watch(&witness, origin);
    let session = session(options.layout, options.durability, origin, &witness)?;
    let (log, recovered) = open_metadata(options, &StoreFiles { flash, origin }, &session)?;
    witness.begin(session.id);
    Ok(TakenUp {
        log,
        recovered,
        witness,
        session: session.id,
    })
}

/// What the cache held before it was emptied; `held`: what it holds.
fn refill(
    options: &TierOptions,
    tier: &Identified,
    geometry: Geometry,
    held: &RoaringBitmap,
) -> Refill {
    let Some(path) = options.refill.clone() else {
        return Refill::default();
    };
    let origin_id = tier.origin_id;
    let file = RefillFile { path, origin_id };
    match options.discard {
        true => file.forget(),
        false => Refill::find(file, tier.block_bytes, geometry, held),
    }
}

impl Tier {
    /// A tier over the files; it serves requests, and its clock goes on once it has a ticker.
    pub(super) fn start(options: &TierOptions, files: &Files) -> anyhow::Result<Arc<Tier>> {
        let layout = options.layout;
        let origin_bytes = files.origin.size_bytes();
        let geometry = Geometry {
            origin_blocks: layout.origin_blocks(origin_bytes)?,
            slots: layout.slots(),
        };
        let origin_pacer = pacer_of(&options.origin_model, origin_bytes);
        let flash_pacer = pacer_of(&options.flash_model, files.flash.size_bytes());
        let file = files.flash.clone();
        let origin_id = OriginFile::open(&options.origin, options.named_origin.as_ref())?;
        let TakenUp {
            log,
            recovered,
            witness,
            session,
        } = take_up(options, files, &origin_id)?;
        let config = CacheConfig {
            mode: options.mode,
            layout,
            origin_bytes,
            dirty_target: options.dirty_target,
            pace: Pace::of(options.policy),
        };
        let policy = policy::make(options.policy, geometry);
        let mut engine = Engine::new(config, policy, Some(log), &recovered.mappings);
        let identified = Identified {
            origin_id: origin_id.id,
            block_bytes: layout.block_bytes,
        };
        let sharing = Sharing::read(options.shares.clone(), &identified, geometry);
        engine.set_shares(0, &sharing.checked(geometry)?);
        let refill = refill(options, &identified, geometry, engine.resident());
        Ok(Arc::new(Tier {
            shared: Mutex::new(Shared::new(engine, options.policy, since_1970())),
            origin: Disk::start(origin_pacer, files.origin.clone())?,
            origin_file: files.origin.clone(),
            flash_file: file.clone(),
            cache_meter: Meter::new(),
            volume_meter: Meter::new(),
            flash: Flash::start(file, flash_pacer, options.durability)?,
            is_emptied: Mutex::new(false),
            witness,
            session,
            is_whole: recovered.is_whole,
            origin_id,
            block_bytes: layout.block_bytes,
            served_bytes: AtomicU64::new(origin_bytes),
            durability: options.durability,
            flash_path: options.flash.clone(),
            released: Condvar::new(),
            sharing: Mutex::new(sharing),
            refill,
            front: OnceLock::new(),
            undisturbed: RwLock::new(()),
            start: Instant::now(),
            speed: options.speed,
        }))
    }

    /// Starts the thread that tells the engine that time passes; it ends when the tier stops.
    pub(super) fn start_ticker(self: &Arc<Self>) -> io::Result<()> {
        let tier = self.clone();
        let tick = move || {
            // An engine that is replaced stops, too.
            while {
                let shared = tier.lock();
                shared.is_held || !shared.engine.is_stopping()
            } {
                // The engine has been asked, and answers; so do those who take what the flash has done.
                let tick = |shared: &mut Shared, now| {
                    shared.engine.on_timer(now);
                    shared.engine.has_more_to_do()
                };
                while tier.tell(tick) {}
                tier.witness.doubt_slow_syncs();
                if tier.flash.is_alive() {
                    // systemd ends one that has hung (no error without systemd).
                    let _ = sd_notify::notify(&[NotifyState::Watchdog]);
                }
                thread::sleep(TICK);
            }
        };
        thread::Builder::new()
            .name("ticker".to_owned())
            .spawn(tick)?;
        Ok(())
    }

    /// Brings what is under way to an end and writes down the state. Requests that still come,
    /// from somebody who has kept a file open, are turned away.
    ///
    /// # Errors
    /// The state could not be written, or a device does not answer: then it is as if the process
    /// were killed, which the next start puts right.
    pub(super) fn stop(self: &Arc<Self>) -> anyhow::Result<()> {
        // First: whoever waits for a job to end would be waited for otherwise.
        self.tell(|shared, now| shared.engine.stop(now));
        let alone = self.undisturbed.try_write_for(MIGRATIONS_LIMIT);
        let _alone = alone.with_context(|| NO_ANSWER)?;
        self.close_engine()
    }

    /// Brings the engine to its end.
    pub(super) fn close_engine(self: &Arc<Self>) -> anyhow::Result<()> {
        self.tell(|shared, now| shared.engine.stop(now));
        self.wait_until(Some(MIGRATIONS_LIMIT), Engine::is_idle);
        anyhow::ensure!(self.lock().engine.is_idle(), NO_ANSWER);
        self.lock().engine.turn_away();
        self.wait_until(Some(REST_LIMIT), Engine::is_quiet);
        self.origin.wait_for_rest(REST_LIMIT);
        self.flash.wait_for_rest(REST_LIMIT);
        if self.is_given_up() {
            return self.end_given_up();
        }
        self.tell(|shared, now| shared.engine.close(now));
        self.wait_until(None, |engine| engine.is_closed() || engine.log_has_failed());
        anyhow::ensure!(
            self.lock().engine.is_closed(),
            "cannot write the metadata of the flash"
        );
        Ok(())
    }

    pub(super) fn wait_until(&self, limit: Option<Duration>, ready: impl Fn(&Engine) -> bool) {
        let deadline = limit.map(|limit| Instant::now() + limit);
        while !ready(&self.lock().engine) && deadline.is_none_or(|at| Instant::now() < at) {
            thread::sleep(REST_CHECK);
        }
    }
}

/// A clock that is set before 1970 reads 0.
pub(super) fn since_1970() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default()
}

pub(super) fn name_of(policy: PolicyKind) -> String {
    let value = policy.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// What may be dirty before a policy that does not clean by itself is helped, percent: most
/// victims are then clean, and their places free at once.
const DIRTY_TARGET: u8 = 25;
/// The same for a policy that keeps clean blocks at hand.
const DIRTY_TARGET_LATE: u8 = 90;

/// The target for whoever gives none.
pub fn dirty_target(mode: Mode, policy: PolicyKind) -> u8 {
    match (mode, policy) {
        (Mode::Writethrough, _) => 0,
        // It cleans by itself.
        (Mode::Writeback, PolicyKind::Smq) => 100,
        // As late as it can while the origin is busy, so that one write carries many.
        (Mode::Writeback, PolicyKind::Hotset) => DIRTY_TARGET_LATE,
        (Mode::Writeback, _) => DIRTY_TARGET,
    }
}
