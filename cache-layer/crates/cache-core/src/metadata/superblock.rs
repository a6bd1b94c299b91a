//! The superblock: whose cache this is, and which generation of table and journal counts.

use std::io;

use super::MetadataError;
use super::store::{FlashStore, is_sealed, seal, take};
use super::{journal, table};
use crate::layout::{Layout, PAGE_BYTES};

/// Superblocks are as large as the unit that a device writes whole or not at all, bytes: losing
/// power cannot tear one.
const SUPERBLOCK_BYTES: usize = 512;

const MAGIC: [u8; 8] = *b"HOTSET\r\n";

/// That of before the first release, with versions of its own in the same place. Whoever begins a
/// cache in its place loses what is dirty there.
const MAGIC_BEFORE_RELEASE: [u8; 8] = *b"hotset\r\n";

/// Version of the whole format. Whatever it is, magic, version and checksum stay in their places.
const VERSION: u32 = 1;

/// A number that a computer draws whenever it starts.
pub type BootId = [u8; 16];

/// A number that a program draws whenever it begins to serve a cache.
pub type SessionId = [u8; 16];

/// A number that an origin keeps for life.
pub type OriginId = [u8; 16];

/// Origin and layout, as they must stay for the metadata to mean anything; but for the origin's
/// size, which may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// How the flash is cut up.
    pub layout: Layout,
    /// What tells the origin from others.
    pub origin_id: OriginId,
    /// Its size, bytes.
    pub origin_bytes: u64,
}

/// A run of the program that serves a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session {
    /// Which cache.
    pub identity: Identity,
    /// Commits are made durable.
    pub sync: bool,
    /// The computer's run.
    pub boot_id: BootId,
    /// Its own number.
    pub id: SessionId,
    /// The session of which a witness says that both devices still have all that it wrote. That the
    /// computer has not stopped since says nothing of a drive that was reset, or of a failed sync.
    pub witnessed: Option<SessionId>,
}

/// One superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Superblock {
    pub(super) identity: Identity,
    pub(super) generation: u64,
    /// Nothing was to follow when it was written.
    pub(super) closed: bool,
    /// Commits are made durable.
    pub(super) sync: bool,
    /// The computer's run during which it was written.
    pub(super) boot_id: BootId,
    /// Who wrote it.
    pub(super) session: SessionId,
}

/// What was found in the place of a superblock.
#[derive(Debug)]
pub(super) enum SuperblockCopy {
    /// Zeros: none was ever written, or it was erased.
    Blank,
    /// Something that is no superblock.
    Damaged,
    /// The cache was emptied: superblocks up to this generation do not count any more.
    Empty(u64),
    /// A superblock.
    Whole(Superblock),
}

impl Superblock {
    /// What this run writes, but for the generation and how it ends.
    pub(super) fn of(session: &Session) -> Superblock {
        Superblock {
            identity: session.identity,
            generation: 0,
            closed: false,
            sync: session.sync,
            boot_id: session.boot_id,
            session: session.id,
        }
    }

    /// Whether all that was written since is known to be there still.
    pub(super) fn is_witnessed(&self, session: &Session) -> bool {
        self.boot_id == session.boot_id && session.witnessed == Some(self.session)
    }

    /// Where it lies, bytes from the start of the flash.
    pub(super) fn offset(&self) -> u64 {
        self.identity.layout.superblock_offset(self.generation)
    }

    pub(super) fn encode(&self) -> [u8; SUPERBLOCK_BYTES] {
        let layout = &self.identity.layout;
        let fields: [&[u8]; 13] = [
            &MAGIC,
            &VERSION.to_le_bytes(),
            &[u8::from(self.closed)],
            &[u8::from(self.sync)],
            &self.generation.to_le_bytes(),
            &layout.block_bytes.to_le_bytes(),
            &layout.metadata_bytes.to_le_bytes(),
            &layout.cache_bytes.to_le_bytes(),
            &layout.volume_bytes.to_le_bytes(),
            &self.identity.origin_bytes.to_le_bytes(),
            &self.identity.origin_id,
            &self.boot_id,
            &self.session,
        ];
        let mut bytes = [0; SUPERBLOCK_BYTES];
        let mut end = 0;
        for field in fields {
            bytes[end..end + field.len()].copy_from_slice(field);
            end += field.len();
        }
        seal(&mut bytes);
        bytes
    }

    fn decode(bytes: &[u8; SUPERBLOCK_BYTES]) -> Result<SuperblockCopy, MetadataError> {
        let mut rest = bytes.as_slice();
        if bytes.iter().all(|&byte| byte == 0) {
            return Ok(SuperblockCopy::Blank);
        }
        let magic = take(&mut rest);
        let version = u32::from_le_bytes(take(&mut rest));
        if magic == MAGIC_BEFORE_RELEASE {
            return Err(MetadataError::BeforeRelease { stored: version });
        }
        if magic != MAGIC || !is_sealed(bytes) {
            return Ok(SuperblockCopy::Damaged);
        }
        if version != VERSION {
            return Err(MetadataError::Version {
                stored: version,
                known: VERSION,
            });
        }
        if let Some(generation) = generation_of_empty(bytes) {
            return Ok(SuperblockCopy::Empty(generation));
        }
        let [closed] = take(&mut rest);
        let [sync] = take(&mut rest);
        let mut number = || u64::from_le_bytes(take(&mut rest));
        let generation = number();
        let layout = Layout {
            block_bytes: number(),
            metadata_bytes: number(),
            cache_bytes: number(),
            volume_bytes: number(),
        };
        let identity = Identity {
            layout,
            origin_bytes: number(),
            origin_id: take(&mut rest),
        };
        Ok(SuperblockCopy::Whole(Superblock {
            identity,
            generation,
            closed: closed != 0,
            sync: sync != 0,
            boot_id: take(&mut rest),
            session: take(&mut rest),
        }))
    }
}

/// Where the generation lies in every superblock.
const GENERATION: std::ops::Range<usize> = 14..22;

/// What says that a cache is empty, as wanted: a superblock with a generation and nothing else.
/// Programs that do not know of it take it for another origin's, and refuse it.
fn empty(generation: u64) -> [u8; SUPERBLOCK_BYTES] {
    let mut bytes = [0; SUPERBLOCK_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[GENERATION].copy_from_slice(&generation.to_le_bytes());
    seal(&mut bytes);
    bytes
}

fn generation_of_empty(bytes: &[u8; SUPERBLOCK_BYTES]) -> Option<u64> {
    let generation = u64::from_le_bytes(bytes[GENERATION].try_into().expect("eight bytes"));
    (empty(generation) == *bytes).then_some(generation)
}

/// Has the flash say for good that its cache is empty; returns the generation up to which nothing
/// counts any more. Killed in between, it says so as well, or the old cache is still there. A cache
/// in another format is refused, and stays.
pub(super) fn write_empty(store: &impl FlashStore) -> Result<u64, MetadataError> {
    let copies = read_copies(store)?;
    let (mut newest, mut is_known) = (0, true);
    for copy in &copies {
        newest = newest.max(match copy {
            SuperblockCopy::Whole(superblock) => superblock.generation,
            SuperblockCopy::Empty(generation) => *generation,
            SuperblockCopy::Blank | SuperblockCopy::Damaged => {
                is_known = false;
                0
            }
        });
    }
    let mut write = || {
        if !is_known {
            // What a lost superblock was of must not come back to life.
            newest = newest.max(newest_of_all(store)?);
        }
        for place in 0..2 {
            store.write_at(&empty(newest), place * PAGE_BYTES)?;
        }
        store.sync_flash()?;
        Ok(newest)
    };
    write().map_err(MetadataError::io("empty the cache on the flash"))
}

/// How much of a flash is searched for what is left of a cache whose layout nobody knows, bytes.
const SEARCHED_BYTES: u64 = 256 << 20;

/// More than a cache goes on in its life, generations: each takes a table.
const LIFE: u64 = 1 << 32;

/// A generation that is not older than any table or journal on the flash.
fn newest_of_all(store: &impl FlashStore) -> io::Result<u64> {
    let size = store.size_bytes()?;
    let mut newest = 0;
    for start in (0..size.min(SEARCHED_BYTES)).step_by(PAGE_BYTES as usize) {
        let mut page = [0; PAGE_BYTES as usize];
        let len = (size - start).min(PAGE_BYTES);
        // What cannot be read is written over, or is refused then.
        if store.read_at(&mut page[..len as usize], start).is_ok() && page != [0; 4096] {
            let generation = table::generation_of(&page).max(journal::newest_in(&page));
            newest = newest.max(generation.unwrap_or(0));
        }
    }
    // Blocks of the cache may hold anything.
    let newest = newest.min(u64::MAX >> 1);
    match size > SEARCHED_BYTES {
        true => Ok(newest.saturating_add(LIFE)),
        false => Ok(newest),
    }
}

fn read(store: &impl FlashStore, place: u64) -> io::Result<[u8; SUPERBLOCK_BYTES]> {
    let mut bytes = [0; SUPERBLOCK_BYTES];
    store.read_at(&mut bytes, place * PAGE_BYTES)?;
    Ok(bytes)
}

/// Both superblocks. They lie at the start of the flash whatever its layout is.
pub(super) fn read_copies(store: &impl FlashStore) -> Result<[SuperblockCopy; 2], MetadataError> {
    let copy = |place: u64| -> Result<SuperblockCopy, MetadataError> {
        let bytes =
            read(store, place).map_err(MetadataError::io("read the superblocks of the flash"))?;
        Superblock::decode(&bytes)
    };
    Ok([copy(0)?, copy(1)?])
}

/// The same of a flash that may not be readable everywhere: what is not, reads as damaged.
pub(super) fn read_each(store: &impl FlashStore) -> Result<[SuperblockCopy; 2], MetadataError> {
    let copy = |place| {
        read(store, place).map_or(Ok(SuperblockCopy::Damaged), |it| Superblock::decode(&it))
    };
    Ok([copy(0)?, copy(1)?])
}

/// The superblock that counts, if any can be read.
pub(super) fn newest(copies: &[SuperblockCopy; 2]) -> Option<Superblock> {
    let emptied = emptied_up_to(copies).unwrap_or(0);
    let whole = copies.iter().filter_map(|copy| match copy {
        SuperblockCopy::Whole(superblock) if superblock.generation > emptied => Some(*superblock),
        _ => None,
    });
    whole.max_by_key(|superblock| superblock.generation)
}

/// Up to which generation superblocks do not count, if the cache was ever emptied.
pub(super) fn emptied_up_to(copies: &[SuperblockCopy; 2]) -> Option<u64> {
    let generations = copies.iter().filter_map(|copy| match copy {
        SuperblockCopy::Empty(generation) => Some(*generation),
        _ => None,
    });
    generations.max()
}

/// Whether the flash says that its cache is empty. It does not if one of the superblocks cannot be
/// read: that one may be newer.
pub(super) fn is_empty(copies: &[SuperblockCopy; 2]) -> bool {
    let Some(emptied) = emptied_up_to(copies) else {
        return false;
    };
    copies.iter().all(|copy| match copy {
        SuperblockCopy::Empty(_) => true,
        SuperblockCopy::Whole(superblock) => superblock.generation <= emptied,
        SuperblockCopy::Blank | SuperblockCopy::Damaged => false,
    })
}

impl Identity {
    /// Refuses metadata that was made for something else. The origin may have grown since.
    pub(super) fn check_stored(&self, stored: &Identity) -> Result<(), MetadataError> {
        let (ours, theirs) = (&self.layout, &stored.layout);
        let sizes = [
            ("block size", ours.block_bytes, theirs.block_bytes),
            ("metadata size", ours.metadata_bytes, theirs.metadata_bytes),
            ("cache size", ours.cache_bytes, theirs.cache_bytes),
            ("volume size", ours.volume_bytes, theirs.volume_bytes),
        ];
        if self.origin_id != stored.origin_id {
            return Err(MetadataError::OtherOrigin);
        }
        if let Some((what, given, stored)) =
            sizes.into_iter().find(|(_, given, stored)| given != stored)
        {
            return Err(MetadataError::OtherSize {
                what,
                stored,
                given,
            });
        }
        if self.origin_bytes < stored.origin_bytes {
            return Err(MetadataError::Shrunk {
                stored: stored.origin_bytes,
                given: self.origin_bytes,
            });
        }
        Ok(())
    }
}
