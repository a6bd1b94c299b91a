//! The command line of `flashdev tier`.

use std::path::PathBuf;

use clap::Args;

use flashdev::model::{ModelError, ModelSpec};
use flashdev::policy::PolicyKind;
use flashdev::tier::layout::Layout;
use flashdev::tier::{Mode, TierOptions};
use flashdev::time::TimeScale;

use crate::{durability, parse_scale, parse_size};

/// What may be dirty before a policy that does not clean by itself is helped, percent: most
/// victims are then clean, and their places free at once.
const DIRTY_TARGET: u8 = 25;

#[derive(Args)]
pub struct TierArgs {
    /// Model of the origin: JSON file, or the name of a built-in one.
    #[arg(long, value_name = "FILE|NAME")]
    origin_model: String,
    /// The file that holds the origin's data; its size is the device's.
    #[arg(long, value_name = "FILE")]
    origin: PathBuf,
    /// The flash file: METADATA, CACHE and VOLUME in this order.
    #[arg(long, value_name = "FILE")]
    flash: PathBuf,
    /// Model of the flash [default: as fast as its file].
    #[arg(long, value_name = "FILE|NAME")]
    flash_model: Option<String>,
    /// Real seconds per second of the devices: 5 makes both five times slower.
    #[arg(long, default_value = "1", value_parser = parse_scale)]
    time_scale: TimeScale,
    /// Size of the METADATA, bytes or with K, M, G, T (powers of 1024).
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    metadata: u64,
    /// Size of the CACHE.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    cache: u64,
    /// Size of the VOLUME; without one there is no file `volume`.
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "0")]
    volume: u64,
    /// Size of a cache block, a power of two from 4K to 1G.
    #[arg(long, value_name = "SIZE", value_parser = parse_size, default_value = "64K")]
    block: u64,
    /// What decides which blocks are cached.
    #[arg(long, default_value = "smq")]
    policy: PolicyKind,
    /// Whether a write that hits goes to the flash first, or to both.
    #[arg(long, default_value = "writeback")]
    mode: Mode,
    /// Share of the cache that may be dirty before blocks are written back though nobody needs
    /// their place; 100 leaves it to the policy [default: 100 with smq, which cleans when idle,
    /// 0 with writethrough, else 25].
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    dirty_target: Option<u8>,
    /// An empty directory to mount on.
    #[arg(long, value_name = "DIR")]
    mount: PathBuf,
    /// Where to put the control socket.
    #[arg(long, value_name = "SOCKET")]
    control: PathBuf,
    /// Forget what is on the flash, dirty blocks and all.
    #[arg(long)]
    discard: bool,
    /// A flush does not sync the files below: data survives this process, not the computer.
    #[arg(long)]
    volatile: bool,
    /// Let other users use the files, as far as their permissions go (always so for root).
    #[arg(long)]
    allow_other: bool,
    /// End when the thread that started this process ends.
    #[arg(long)]
    die_with_parent: bool,
}

impl TierArgs {
    /// What is asked for, with the models read.
    pub fn options(self) -> Result<TierOptions, ModelError> {
        let flash_spec = self.flash_model.as_deref().map(ModelSpec::load);
        Ok(TierOptions {
            origin_spec: ModelSpec::load(&self.origin_model)?,
            flash_spec: flash_spec.transpose()?,
            dirty_target: self.dirty_target.unwrap_or(self.default_target()),
            layout: Layout {
                block_bytes: self.block,
                metadata_bytes: self.metadata,
                cache_bytes: self.cache,
                volume_bytes: self.volume,
            },
            origin: self.origin,
            flash: self.flash,
            policy: self.policy,
            mode: self.mode,
            discard: self.discard,
            durability: durability(self.volatile),
            scale: self.time_scale,
            mount: self.mount,
            control: self.control,
            allow_other: self.allow_other,
            die_with_parent: self.die_with_parent,
        })
    }

    fn default_target(&self) -> u8 {
        match (self.mode, self.policy) {
            (Mode::Writethrough, _) => 0,
            (Mode::Writeback, PolicyKind::Smq) => 100,
            (Mode::Writeback, _) => DIRTY_TARGET,
        }
    }
}
