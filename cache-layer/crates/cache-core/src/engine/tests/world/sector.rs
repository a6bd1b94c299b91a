//! What users know of each sector: which versions it may hold.

use crate::layout::SECTOR_BYTES;

/// What a sector may hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Sector {
    /// The last version that was begun.
    pub(super) begun: u32,
    /// The last one that may be there; a crash decides about what was not answered, for good.
    pub(super) newest: u32,
    /// The last one whose write was answered, and what a flush has promised.
    pub(super) answered: u32,
    pub(super) flushed: u32,
    /// Which versions are discards: they read as zeros.
    pub(super) discards: Vec<u32>,
    /// A write is under way.
    pub(super) busy: bool,
}

impl Sector {
    /// Another version is on its way.
    pub(super) fn begin(&mut self) -> u32 {
        self.begun += 1;
        self.newest = self.begun;
        self.begun
    }

    /// Zeros are taken for the newest version that they can be.
    pub(super) fn version(&self, number: u64, bytes: &[u8]) -> Result<u32, String> {
        let newest = self.discards.last().copied();
        match version_of(number, bytes)? {
            0 => Ok(newest.unwrap_or(0)),
            version => Ok(version),
        }
    }
}

/// What an end has left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Left {
    /// All that was answered, flushed or not.
    pub(super) answered: bool,
    /// Nothing but what is on the medium.
    pub(super) stored: bool,
}

/// Every sector says whose it is, and how new.
pub(super) fn stamp(sector: u64, version: u32) -> Vec<u8> {
    let words = [(sector as u32).to_le_bytes(), version.to_le_bytes()].concat();
    words.repeat(SECTOR_BYTES as usize / words.len())
}

/// What a sector holds; nothing if it was never written.
fn version_of(sector: u64, bytes: &[u8]) -> Result<u32, String> {
    let word = &bytes[..8];
    if bytes.chunks(8).any(|other| other != word) {
        return Err(format!("sector {sector} is torn"));
    }
    let number = |at: usize| u32::from_le_bytes(word[at..at + 4].try_into().expect("four"));
    match (number(0), number(4)) {
        (0, 0) => Ok(0),
        (of, version) if u64::from(of) == sector => Ok(version),
        (of, _) => Err(format!("sector {sector} holds sector {of}")),
    }
}

pub(super) fn promise(sectors: &mut [Sector], answered: &[u32]) {
    for (sector, &answered) in sectors.iter_mut().zip(answered) {
        sector.flushed = sector.flushed.max(answered);
    }
}

pub(super) fn take_stock(sectors: &mut [Sector], bytes: &[u8], left: Left) -> Result<(), String> {
    let stored = bytes.chunks(SECTOR_BYTES as usize);
    for ((number, sector), bytes) in (0..).zip(sectors).zip(stored) {
        let version = sector.version(number, bytes)?;
        let least = match left.answered {
            true => sector.answered,
            false => sector.flushed,
        };
        if !(least..=sector.newest).contains(&version) {
            return Err(format!(
                "sector {number} holds version {version}, not {least} to {}",
                sector.newest
            ));
        }
        // It is what later reads must find; but what a power cut would leave, only a flush tells.
        (sector.answered, sector.newest) = (version, version);
        sector.discards.retain(|&discard| discard <= version);
        if left.stored {
            sector.flushed = version;
        }
        sector.busy = false;
    }
    Ok(())
}
