//! The emulated cache tier: blocks of a slow, modelled origin kept in a flash file.
//!
//! From the ground up: [`layout`] cuts the flash into METADATA, CACHE and VOLUME; [`metadata`]
//! remembers through crashes which block is where; `core` is the state of the blocks under one
//! lock; `request` the path of a request, `migrate` that of a block; `clean` and `warm` are what
//! cleans and fills the cache of its own accord; `control` lets others watch and steer. The
//! behaviour is dm-cache's, except where a comment says otherwise.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::model::Model;
use crate::serve::engine::Engine;
use crate::serve::flash::Flash;
use crate::time::{Nanos, TimeScale};
use core::Core;
use layout::Layout;
use metadata::Metadata;

mod block_set;
mod clean;
mod control;
mod core;
mod joint;
pub mod layout;
pub mod metadata;
mod migrate;
pub mod origin;
mod protocol;
mod rate;
mod request;
mod run;
#[cfg(test)]
mod tests;
mod warm;

pub use core::{Counters, Mode};
pub use run::{TierOptions, serve_tier};

/// A cache over an origin.
struct Tier {
    core: Mutex<Core>,
    /// There may be work for a migrator.
    work: Condvar,
    /// A block or slot has changed that somebody waits for.
    changed: Condvar,
    meta: Arc<Metadata>,
    origin: Arc<Engine<Model>>,
    flash: Arc<Flash>,
    layout: Layout,
    /// Size of the origin, bytes.
    origin_bytes: u64,
    policy_name: String,
    start: Instant,
    /// The same by the clock on the wall, since 1970.
    begun: Duration,
    scale: TimeScale,
}

impl Tier {
    fn lock(&self) -> MutexGuard<'_, Core> {
        // A thread that panicked held it for a moment between consistent states.
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The policy's time is that of the devices, so that a scaled run is the same run.
    fn now(&self) -> Nanos {
        let real_ns = self.start.elapsed().as_nanos() as u64;
        self.scale.to_device(real_ns)
    }

    /// Wakes those who wait for a block or slot, if there are any.
    fn tell(&self, awaited: bool) {
        if awaited {
            self.changed.notify_all();
        }
    }
}
