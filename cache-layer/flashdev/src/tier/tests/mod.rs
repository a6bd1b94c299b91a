//! The tier without FUSE: requests are made as the file system makes them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;

use super::layout::Layout;
use super::run::{Files, TierOptions};
use super::{Mode, Tier};
use crate::model::ModelSpec;
use crate::policy::PolicyKind;
use crate::serve::backing::{Durability, PageBuffer};
use crate::serve::handler::wait_for;
use crate::time::TimeScale;

mod kill;
mod load;
mod stress;
mod told;
mod verbs;

/// Blocks of 16 KiB: few enough that all of them meet all the time.
const ORIGIN_BLOCKS: u64 = 24;
const SLOTS: u64 = 8;
const BLOCK_BYTES: u64 = 16 << 10;

const LAYOUT: Layout = Layout {
    block_bytes: BLOCK_BYTES,
    metadata_bytes: 32 << 10,
    cache_bytes: SLOTS * BLOCK_BYTES,
    volume_bytes: 4096,
};

/// How a tier under test behaves.
#[derive(Clone, Copy, Debug)]
struct Trial {
    policy: PolicyKind,
    mode: Mode,
    dirty_target: u8,
    durability: Durability,
    /// Name of a model, or as fast as it is.
    flash_model: Option<&'static str>,
    /// Real seconds per device second; a disk takes some 10 ms of the latter.
    scale: f64,
}

impl Trial {
    fn of(policy: PolicyKind, mode: Mode) -> Trial {
        Trial {
            policy,
            mode,
            dirty_target: 50,
            durability: Durability::Volatile,
            flash_model: None,
            scale: 0.001,
        }
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
        for (name, bytes) in [
            ("origin", ORIGIN_BLOCKS * BLOCK_BYTES),
            ("flash", LAYOUT.volume_offset() + LAYOUT.volume_bytes),
        ] {
            let file = File::create(dir.join(name)).unwrap();
            file.set_len(bytes).unwrap();
        }
        Place::open(dir)
    }

    /// Whatever is there.
    fn open(dir: &Path) -> Place {
        let any = Trial::of(PolicyKind::Lru, Mode::Writeback);
        Place {
            dir: dir.to_owned(),
            files: Files::open(&options(dir, any)).unwrap(),
        }
    }
}

fn options(dir: &Path, trial: Trial) -> TierOptions {
    TierOptions {
        origin_spec: ModelSpec::load("nas-2014").unwrap(),
        origin: dir.join("origin"),
        flash_spec: trial.flash_model.map(|name| ModelSpec::load(name).unwrap()),
        flash: dir.join("flash"),
        layout: LAYOUT,
        policy: trial.policy,
        mode: trial.mode,
        dirty_target: trial.dirty_target,
        discard: false,
        durability: trial.durability,
        scale: TimeScale::new(trial.scale).unwrap(),
        mount: dir.join("mount"),
        control: dir.join("control"),
        allow_other: false,
        die_with_parent: false,
    }
}

/// A tier that runs.
struct Rig {
    tier: Arc<Tier>,
    migrators: Vec<JoinHandle<()>>,
}

impl Rig {
    /// Takes up the tier in this place.
    fn start(place: &Place, trial: Trial) -> Rig {
        let tier = Tier::start(&options(&place.dir, trial), &place.files).unwrap();
        let migrators = tier.start_migrators().unwrap();
        Rig { tier, migrators }
    }

    fn stop(self) {
        self.tier.stop(self.migrators).unwrap();
    }

    fn read(&self, offset: u64, len: usize) -> PageBuffer {
        wait_for(|answer| self.tier.read(offset, len as u32, answer)).unwrap()
    }

    fn write(&self, offset: u64, bytes: &[u8]) {
        wait_for(|answer| self.tier.write(offset, bytes, answer)).unwrap();
    }

    fn flush(&self) {
        wait_for(|answer| self.tier.flush(answer)).unwrap();
    }
}

/// Pseudo-random numbers, the same ones for the same seed (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }
}
