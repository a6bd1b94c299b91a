//! The command line of `hotset-engine tier`, and what others have of it.

use std::path::{Path, PathBuf};

use clap::Args;

use cache_core::layout::Layout;
use cache_core::metadata::OriginId;
use cache_core::policy::PolicyKind;

use super::parse_size;
use crate::backing::Durability;
use crate::flash_file::Part;
use crate::tier::{Mode, NamedOrigin, TierOptions, dirty_target};

/// Which cache: its flash, how that is cut up, and its origin.
#[derive(Args)]
pub struct CacheArgs {
    /// The file or block device that holds the origin's data; its size is the device's.
    #[arg(long, value_name = "FILE|DEVICE")]
    pub origin: PathBuf,
    /// What tells the origin from others, 32 hexadecimal digits [default: an attribute of the file].
    #[arg(long, value_name = "ID", value_parser = parse_id, requires = "given_up")]
    origin_id: Option<OriginId>,
    /// With --origin-id: a file that is made when the cache is given up, and forbids its use.
    #[arg(long, value_name = "FILE", requires = "origin_id")]
    given_up: Option<PathBuf>,
    /// The flash, a file or block device: METADATA, CACHE and VOLUME in this order.
    #[arg(long, value_name = "FILE|DEVICE")]
    pub flash: PathBuf,
    /// A part of the flash in bytes, START:SIZE; given several times, they are one behind the
    /// other [default: all of it].
    #[arg(long, value_name = "PART")]
    pub flash_part: Vec<Part>,
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
    /// The file that says, until the computer stops, that both devices have all that was written: on a
    /// file system in memory. Where it is missing, what was written since the last flush is not
    /// believed [default: with a control socket, beside it].
    #[arg(long, value_name = "FILE")]
    pub witness: Option<PathBuf>,
    /// A flush does not sync the files below: data survives this process, not the computer.
    #[arg(long)]
    volatile: bool,
}

impl CacheArgs {
    /// How the flash is cut up.
    pub fn layout(&self) -> Layout {
        Layout {
            block_bytes: self.block,
            metadata_bytes: self.metadata,
            cache_bytes: self.cache,
            volume_bytes: self.volume,
        }
    }

    /// What a flush does on the host.
    pub fn durability(&self) -> Durability {
        Durability::of(self.volatile)
    }

    /// How the origin is told from others, where it is not by its own attribute.
    pub fn named_origin(&self) -> Option<NamedOrigin> {
        let (id, given_up) = self.origin_id.zip(self.given_up.clone())?;
        Some(NamedOrigin { id, given_up })
    }
}

/// A cache, and how it is served.
#[derive(Args)]
pub struct TierArgs {
    #[command(flatten)]
    files: CacheArgs,
    /// What decides which blocks are cached.
    #[arg(long, default_value = "hotset")]
    policy: PolicyKind,
    /// Whether a write that hits goes to the flash first, or to both.
    #[arg(long, default_value = "writeback")]
    mode: Mode,
    /// Share of the cache that may be dirty before blocks are written back though nobody needs
    /// their place; 100 leaves it to the policy [default: 100 with smq, which cleans when idle,
    /// 90 with hotset, 0 with writethrough, else 25].
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    dirty_target: Option<u8>,
    /// An empty directory to mount on.
    #[arg(long, value_name = "DIR")]
    mount: PathBuf,
    /// Where to put the control socket.
    #[arg(long, value_name = "SOCKET")]
    control: PathBuf,
    /// Serve the disk as a block device by the kernel's ublk where that can be used, and write to this
    /// file which it is: `ublk DEVICE`, or `fuse WHY` [default: as a file, by FUSE].
    #[arg(long, value_name = "FILE")]
    front: Option<PathBuf>,
    /// Where to keep what is pinned, excluded and shared, for the next start [default: nowhere].
    #[arg(long, value_name = "FILE")]
    shares: Option<PathBuf>,
    /// Where `hotset-engine format --refill` has noted which blocks the cache held: they are fetched from
    /// the origin again, in the background, into free slots [default: nowhere, it begins cold].
    #[arg(long, value_name = "FILE")]
    refill: Option<PathBuf>,
    /// Forget what is on the flash, dirty blocks and all.
    #[arg(long)]
    discard: bool,
    /// Say whether what is on the flash can be used, and how much of it is dirty if the last engine
    /// ended in order; nothing is written.
    #[arg(long)]
    pub check: bool,
    /// End when the thread that started this process ends.
    #[arg(long)]
    die_with_parent: bool,
}

impl TierArgs {
    /// What is asked for: a tier over real devices, in real time.
    pub fn options(self) -> TierOptions {
        TierOptions {
            origin_model: None,
            named_origin: self.files.named_origin(),
            flash_model: None,
            dirty_target: self
                .dirty_target
                .unwrap_or(dirty_target(self.mode, self.policy)),
            layout: self.files.layout(),
            durability: self.files.durability(),
            origin: self.files.origin,
            flash: self.files.flash,
            flash_parts: self.files.flash_part,
            policy: self.policy,
            mode: self.mode,
            shares: self.shares,
            refill: self.refill,
            discard: self.discard,
            speed: 1.0,
            mount: self.mount,
            witness: Some(self.files.witness.unwrap_or_else(|| beside(&self.control))),
            control: self.control,
            front: self.front,
            die_with_parent: self.die_with_parent,
        }
    }
}

/// Where a tier with this control socket has its witness.
fn beside(control: &Path) -> PathBuf {
    control.with_extension("witness")
}

/// Reads an origin's id.
///
/// # Errors
/// It is none: what one looks like.
pub fn parse_id(text: &str) -> Result<OriginId, String> {
    match (text.len(), u128::from_str_radix(text, 16)) {
        (32, Ok(number)) => Ok(number.to_be_bytes()),
        _ => Err(format!("`{text}` is not an id of 32 hexadecimal digits")),
    }
}
