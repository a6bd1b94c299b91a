//! The cached device: blocks of a slow origin kept on a flash.
//!
//! What happens is decided by a [`cache_core::engine::Engine`]; here it meets real files and the
//! real clock. `driver` carries out what the engine wants, `request` is the mounted device's side,
//! `discard` cuts what is punched, `jobs` are warm-ups and flushes for somebody who waits,
//! `control` lets others watch and steer, `status` is what they are told, `files` and `origin` are
//! what lies below, `reconfigure` changes a tier while it serves, `shares` divides its cache, `run`
//! is a tier from start to end. `refill` fetches again what a cache held that had to begin empty.
//! `salvage` gets back what a cache holds that no tier can take up.

use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};

use crate::backing::{Backing, Durability};
use crate::flash_file::FlashFile;
use crate::flash_file::witness::Witness;
use crate::front::Front;
use crate::real_time::disk::Disk;
use crate::real_time::flash::Flash;
use crate::real_time::meter::Meter;
use cache_core::metadata::SessionId;
use driver::Shared;
use virtual_time::Nanos;

mod control;
mod driver;
mod files;
mod jobs;
mod origin;
mod protocol;
mod rate;
mod reconfigure;
mod refill;
mod request;
mod run;
mod salvage;
mod shares;
mod status;
#[cfg(test)]
mod tests;

pub use cache_core::engine::Mode;
pub use origin::NamedOrigin;
pub use refill::{Noted, RefillFile};
pub use run::{TierOptions, check_tier, dirty_target, format_flash, run_tier, serve_tier};
pub use salvage::{SalvageOptions, Salvaged, Stretch, salvage_cache};

/// A cache over an origin.
struct Tier {
    shared: Mutex<Shared>,
    origin: Arc<Disk>,
    flash: Arc<Flash>,
    /// Of CACHE, and of the VOLUME; the origin has its own.
    cache_meter: Arc<Meter>,
    volume_meter: Arc<Meter>,
    /// The origin's file, to be told when the cache is given up.
    origin_id: origin::OriginFile,
    /// Whether the flash says that its cache, which was given up, is empty.
    is_emptied: Mutex<bool>,
    /// What tells the next start that both devices have all that this one wrote.
    witness: Arc<Witness>,
    session: SessionId,
    /// Nothing that the run before has answered can be missing.
    is_whole: bool,
    /// The origin's bytes.
    origin_file: Arc<Backing>,
    flash_file: Arc<FlashFile>,
    block_bytes: u64,
    /// Size of the served device, bytes.
    served_bytes: AtomicU64,
    durability: Durability,
    flash_path: PathBuf,
    /// Wakes requests that were held while the engine was replaced.
    released: Condvar,
    /// How the cache is divided.
    sharing: Mutex<shares::Sharing>,
    /// What the cache held before it was emptied.
    refill: refill::Refill,
    /// How the disk is served, where that was chosen.
    front: OnceLock<Front>,
    /// Held by jobs; whoever replaces the engine has it alone.
    undisturbed: RwLock<()>,
    start: Instant,
    speed: f64,
}

impl Tier {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock()
    }

    /// The same for a new request: it waits while the engine is being replaced.
    fn lock_unheld(&self) -> MutexGuard<'_, Shared> {
        let mut shared = self.lock();
        self.released
            .wait_while(&mut shared, |shared| shared.is_held);
        shared
    }

    /// The engine's time.
    fn now(&self) -> Nanos {
        (self.start.elapsed().as_nanos() as f64 * self.speed) as Nanos
    }
}
