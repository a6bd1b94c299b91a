//! Pinned and excluded blocks, and shares of the cache: set over the control socket, and kept in a
//! file, so that the cache that starts next honours them before the first request.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, ensure};
use cache_core::engine::Engine;
use cache_core::policy::Geometry;
use cache_core::policy::shares::{Part, Right, Share, Shares, SharesError, available};
use serde::{Deserialize, Serialize};

use super::Tier;
use super::protocol::{Division, OwnerPart, Run, Wanted};

/// Version of the file.
const VERSION: u32 = 1;

/// What the cache is divided into, and where that is kept.
#[derive(Debug, Default)]
pub(super) struct Sharing {
    wanted: Wanted,
    /// Not all of it fitted when the engine started: a resize need not make it fit, either.
    is_cut: bool,
    file: Option<PathBuf>,
}

/// The file. What it says of another origin, or of blocks of another size, is nothing to this tier.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    version: u32,
    origin: String,
    block_bytes: u64,
    shares: Wanted,
}

impl Sharing {
    /// What the file says, if there is one; what of it fits no more is cut down ([`Shares::fitted`]).
    pub(super) fn read(file: Option<PathBuf>, tier: &Identified, geometry: Geometry) -> Sharing {
        let read = |path: &PathBuf| match kept(path, tier, geometry) {
            Ok(wanted) => wanted,
            Err(error) => {
                eprintln!(
                    "hotset-engine: pins and shares of {} are left out: {error:#}: set them again",
                    path.display()
                );
                Wanted::default()
            }
        };
        let wanted = file.as_ref().map(read).unwrap_or_default();
        Sharing {
            is_cut: Shares::new(&shares(&wanted), geometry).is_err(),
            wanted,
            file,
        }
    }

    /// As an engine takes them that starts, or in whose place another comes.
    ///
    /// # Errors
    /// They do not fit, as they did before.
    pub(super) fn checked(&self, geometry: Geometry) -> Result<Shares, SharesError> {
        let all = shares(&self.wanted);
        match self.is_cut {
            true => Shares::fitted(&all, geometry),
            false => Shares::new(&all, geometry),
        }
    }
}

/// What tells a tier's blocks from those of others.
pub(super) struct Identified {
    pub(super) origin_id: cache_core::metadata::OriginId,
    pub(super) block_bytes: u64,
}

impl Identified {
    fn origin(&self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.origin_id))
    }
}

fn kept(path: &Path, tier: &Identified, geometry: Geometry) -> anyhow::Result<Wanted> {
    let text = match std::fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Wanted::default()),
        read => read?,
    };
    let kept: Kept = serde_json::from_slice(&text)?;
    ensure!(
        kept.version == VERSION,
        "version {} is unknown",
        kept.version
    );
    ensure!(
        kept.origin == tier.origin() && kept.block_bytes == tier.block_bytes,
        "they are of another disk"
    );
    Shares::fitted(&shares(&kept.shares), geometry)?;
    Ok(kept.shares)
}

/// Puts it in the place of what was there, whole or not at all.
fn keep(path: &Path, tier: &Identified, wanted: &Wanted) -> io::Result<()> {
    let kept = Kept {
        version: VERSION,
        origin: tier.origin(),
        block_bytes: tier.block_bytes,
        shares: wanted.clone(),
    };
    durable::write(path, &serde_json::to_vec(&kept)?)
}

fn shares(wanted: &Wanted) -> Vec<Share> {
    let share = |runs: &[Run], right| Share {
        blocks: runs
            .iter()
            .map(|&(first, count)| first..first.saturating_add(count))
            .collect(),
        right,
    };
    let excluded = wanted.excluded.iter();
    let mut all: Vec<Share> = excluded
        .map(|owner| share(&owner.runs, Right::Excluded))
        .collect();
    all.extend(
        wanted
            .pinned
            .iter()
            .map(|owner| share(&owner.runs, Right::Pinned)),
    );
    all.extend(wanted.shares.iter().map(|owner| {
        let right = Right::Share {
            guaranteed: owner.guaranteed,
            most: owner.most,
        };
        share(&owner.runs, right)
    }));
    all
}

impl Tier {
    /// Divides the cache from now on.
    ///
    /// # Errors
    /// It cannot be so, or cannot be kept: all is as it was.
    pub(super) fn share(self: &Arc<Self>, wanted: Wanted) -> anyhow::Result<Division> {
        let _undisturbed = self.undisturbed.read();
        let mut sharing = self.sharing.lock();
        let geometry = geometry_of(&self.lock().engine);
        let checked = Shares::new(&shares(&wanted), geometry)
            .map_err(|error| self.explained(&error, geometry, &wanted))?;
        if let Some(path) = &sharing.file {
            keep(path, &self.identified(), &wanted)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        self.tell(|shared, _| shared.engine.begin_shares(&checked));
        // Little by little: requests come in between.
        while !self.tell(|shared, now| shared.engine.continue_shares(now)) {}
        sharing.wanted = wanted;
        sharing.is_cut = false;
        drop(sharing);
        Ok(self.division())
    }

    /// What was wanted last.
    pub(super) fn shared(&self) -> Wanted {
        self.sharing.lock().wanted.clone()
    }

    /// How the cache is divided now.
    pub(super) fn division(&self) -> Division {
        let sharing = self.sharing.lock();
        let engine = &self.lock().engine;
        let (usage, slots) = (engine.usage(), engine.policy().capacity());
        let part = |name: &str, part: Part| OwnerPart {
            name: name.to_owned(),
            blocks: part.blocks,
            resident: part.resident,
            guaranteed: part.guaranteed,
            most: part.most.min(slots),
        };
        let named = sharing.wanted.shares.iter().zip(usage.shares);
        Division {
            block_bytes: self.block_bytes,
            total: slots,
            available: available(slots),
            pinned: part("pinned", usage.pinned),
            excluded: part("excluded", usage.excluded),
            shares: named.map(|(share, of)| part(&share.name, of)).collect(),
            to_leave: usage.to_leave,
        }
    }

    /// Gives a new engine the shares of the one before.
    ///
    /// # Errors
    /// They do not fit.
    pub(super) fn checked_shares(&self, geometry: Geometry) -> anyhow::Result<Shares> {
        let sharing = self.sharing.lock();
        let checked = sharing.checked(geometry);
        checked.map_err(|error| self.explained(&error, geometry, &sharing.wanted))
    }

    fn explained(&self, error: &SharesError, geometry: Geometry, wanted: &Wanted) -> anyhow::Error {
        let size = |blocks: u64| size(blocks * self.block_bytes);
        match *error {
            SharesError::DoNotFit {
                pinned,
                guaranteed,
                available,
            } => anyhow!(
                "{} pinned and {} guaranteed do not fit: of a cache of {}, {} can be promised. Pin \
                 less, lower the guarantees, or make the cache larger",
                size(pinned),
                size(guaranteed),
                size(geometry.slots.into()),
                size(available.into()),
            ),
            SharesError::Inside {
                share,
                promised,
                most,
            } => anyhow!(
                "{} pinned and guaranteed inside {} do not fit: it has at most {}, and no more can be \
                 promised in it. Raise its limit, pin less, or lower the guarantees",
                size(promised),
                wanted.shares[share].name,
                size(most.into()),
            ),
            _ => anyhow!("{error}"),
        }
    }

    fn identified(&self) -> Identified {
        Identified {
            origin_id: self.origin_id.id,
            block_bytes: self.block_bytes,
        }
    }
}

/// Bytes, to be read; as everywhere in hotset an exact size has no point.
fn size(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    match bytes {
        _ if bytes % MIB == 0 => format!("{} MiB", bytes / MIB),
        ..MIB => format!("{} KiB", bytes >> 10),
        _ => format!("{:.1} MiB", bytes as f64 / MIB as f64),
    }
}

fn geometry_of(engine: &Engine) -> Geometry {
    Geometry {
        origin_blocks: engine.config().origin_blocks(),
        slots: engine.policy().capacity(),
    }
}
