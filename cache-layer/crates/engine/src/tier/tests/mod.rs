//! The tier without FUSE: requests are made as the file system makes them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::run::{Files, TierOptions, check_tier, format_flash};
use super::{Mode, Tier};
use crate::backing::{Backing, Durability};
use crate::direct_io::PageBuffer;
use crate::flash_file::Part;
use crate::real_time::DeviceModel;
use crate::real_time::slow::{DISK, Slow};
use crate::reply::wait_for;
use cache_core::layout::Layout;
use cache_core::policy::PolicyKind;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

mod kill;
mod load;
mod reconfigure;
mod refill;
mod salvage;
mod shares;
mod start;
mod stress;
mod verbs;

/// Blocks of 16 KiB: few enough that all of them meet all the time.
const ORIGIN_BLOCKS: u64 = 24;
const SLOTS: u64 = 8;
const BLOCK_BYTES: u64 = 16 << 10;

const FLASH_BYTES: u64 = (32 << 10) + SLOTS * BLOCK_BYTES + 4096;

const LAYOUT: Layout = Layout {
    block_bytes: BLOCK_BYTES,
    metadata_bytes: 32 << 10,
    cache_bytes: SLOTS * BLOCK_BYTES,
    volume_bytes: 0,
};

/// How a tier under test behaves.
#[derive(Clone, Copy, Debug)]
struct Trial {
    policy: PolicyKind,
    mode: Mode,
    dirty_target: u8,
    durability: Durability,
    /// Its flash is a part of a larger one, so that it is read and written directly.
    on_a_part: bool,
    volume_bytes: u64,
    /// How slow it is, or as fast as its file.
    flash_model: Option<Slow>,
    /// Real seconds per second of the cache; a disk takes some 10 ms of the latter.
    scale: f64,
}

impl Trial {
    fn of(policy: PolicyKind, mode: Mode) -> Trial {
        Trial {
            policy,
            mode,
            dirty_target: 50,
            durability: Durability::Volatile,
            on_a_part: false,
            volume_bytes: 0,
            flash_model: None,
            scale: 0.001,
        }
    }

    fn scaled(self, slow: Slow) -> Arc<dyn DeviceModel> {
        Arc::new(Slow(slow.0.mul_f64(self.scale)))
    }
}

/// The files of a tier, locked as long as the process lives: the threads of a device do.
struct Place {
    dir: PathBuf,
    files: Files,
}

impl Place {
    /// A new, empty tier.
    fn make(dir: &Path) -> Place {
        Place::make_for(dir, Trial::of(PolicyKind::Lru, Mode::Writeback))
    }

    /// The same, as such a tier wants it.
    fn make_for(dir: &Path, trial: Trial) -> Place {
        Place::make_of(dir, trial, ORIGIN_BLOCKS * BLOCK_BYTES)
    }

    /// The same with an origin of so many bytes.
    fn make_of(dir: &Path, trial: Trial, origin_bytes: u64) -> Place {
        make_files(dir, origin_bytes);
        Place::open_for(dir, trial)
    }

    fn resize_origin(&self, bytes: u64) {
        let file = File::options().write(true).open(self.dir.join("origin"));
        file.unwrap().set_len(bytes).unwrap();
    }

    /// Whatever is there.
    fn open(dir: &Path) -> Place {
        Place::open_for(dir, Trial::of(PolicyKind::Lru, Mode::Writeback))
    }

    fn open_for(dir: &Path, trial: Trial) -> Place {
        Place {
            dir: dir.to_owned(),
            files: Files::open(&options(dir, trial)).unwrap(),
        }
    }
}

/// An origin, and a flash that says that it is empty.
fn make_files(dir: &Path, origin_bytes: u64) {
    for (name, bytes) in [("origin", origin_bytes), ("flash", FLASH_BYTES)] {
        let file = File::create(dir.join(name)).unwrap();
        file.set_len(bytes).unwrap();
    }
    format_flash(&dir.join("flash"), &[], None).unwrap();
}

fn options(dir: &Path, trial: Trial) -> TierOptions {
    TierOptions {
        origin_model: Some(trial.scaled(DISK)),
        named_origin: None,
        origin: dir.join("origin"),
        flash_model: trial.flash_model.map(|slow| trial.scaled(slow)),
        flash: dir.join("flash"),
        flash_parts: match trial.on_a_part {
            true => vec![Part {
                start: 0,
                size: FLASH_BYTES,
            }],
            false => Vec::new(),
        },
        layout: Layout {
            volume_bytes: trial.volume_bytes,
            ..LAYOUT
        },
        policy: trial.policy,
        mode: trial.mode,
        dirty_target: trial.dirty_target,
        shares: Some(dir.join("shares")),
        refill: Some(dir.join("refill")),
        discard: false,
        durability: trial.durability,
        speed: 1.0 / trial.scale,
        mount: dir.join("mount"),
        control: dir.join("control"),
        witness: Some(dir.join("witness")),
        front: None,
        die_with_parent: false,
    }
}

/// A tier that runs.
struct Rig {
    tier: Arc<Tier>,
}

impl Rig {
    /// Takes up the tier in this place.
    fn start(place: &Place, trial: Trial) -> Rig {
        let tier = Tier::start(&options(&place.dir, trial), &place.files).unwrap();
        tier.start_ticker().unwrap();
        Rig { tier }
    }

    fn stop(self) {
        self.tier.stop().unwrap();
    }

    fn read(&self, offset: u64, len: usize) -> PageBuffer {
        wait_for(|reply| self.tier.read(offset, len as u32, reply)).unwrap()
    }

    fn write(&self, offset: u64, bytes: &[u8]) {
        wait_for(|reply| self.tier.write(offset, bytes, reply)).unwrap();
    }

    fn punch(&self, offset: u64, len: u64) {
        wait_for(|reply| self.tier.punch(offset, len, reply)).unwrap();
    }

    fn flush(&self) {
        wait_for(|reply| self.tier.flush(reply)).unwrap();
    }
}

/// Pseudo-random numbers, the same ones for the same seed.
struct Dice(SplitMix64);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(SplitMix64::seed_from_u64(seed))
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0.next_u64() % bound
    }
}
