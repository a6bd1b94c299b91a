//! Metadata that survives a crash: which block is in which slot, and which slots are dirty.
//!
//! Every change is one small record, appended to a journal. When the journal is full, the next
//! generation's takes over, all slots are written to the idle one of two tables (a checkpoint), and
//! then a superblock names that table. Each structure carries a CRC-32C and its generation, so that
//! what a crash left half-written, or an earlier generation left behind, is told from what counts.
//!
//! [`format()`] makes a cache and [`open`] takes one up; the [`Log`] they give takes the changes from
//! then on and says which I/O makes them last, for somebody else to do. [`salvage()`] tells what can be
//! proven of a cache that [`open`] refuses as damaged, [`numbers`] which blocks one holds whose bytes are
//! not wanted any more.
//!
//! # On the flash
//!
//! Numbers are little endian, offsets in bytes; `t` is the number of pages of a table
//! (slots / 510, rounded up), `j` that of a journal: half of what METADATA has left, rounded down. What a
//! generation is written to is the first or second of its kind by its parity, even ones first. What
//! is not named is zero.
//!
//! | at | what |
//! |---|---|
//! | 0, 4096 | superblocks, 512 bytes each |
//! | 8192, 8192 + 4096 `t` | tables |
//! | 8192 + 8192 `t`, and 4096 `j` behind that | journals |
//!
//! | superblock | | journal's record | | table's page | |
//! |---|---|---|---|---|---|
//! | 0 | `HOTSET\r\n` | 0 | generation, u64 | 8 `n` | of its `n`th slot: block, u32 |
//! | 8 | version, u32: 1 | 8 | place in the journal, u64 | 8 `n` + 4 | 0 free, 1 clean, 2 dirty |
//! | 12 | 1: closed in order | 16 | kind: 1 map, 2 unmap, 3 dirty, 4 clean, 5 commit, 6 begin, 7 continue, 8 map dirty, 9 present | 8 `n` + 5 | heat |
//! | 13 | 1: flushes are durable | 17 | heat | 8 `n` + 6 | missing sub-blocks, u16 |
//! | 14 | generation, u64 | 18 | missing or present sub-blocks, u16 | 4080 | generation, u64 |
//! | 22 | size of a block, u64 | 20 | slot, u32; or records, u64 | 4088 | number of the page, u32 |
//! | 30, 38, 46 | sizes of METADATA, CACHE, VOLUME, u64 | 24 | block, u32 | 4092 | CRC-32C of the others, u32 |
//! | 54 | size of the origin, u64 | 28 | CRC-32C of the others, u32 | | |
//! | 62, 78, 94 | ids of origin, boot and session, 16 bytes each | | | | |
//! | 508 | CRC-32C of the others, u32 | | | | |
//!
//! A superblock with magic, version, generation and checksum alone says that the cache is empty:
//! superblocks up to that generation do not count. What is in another version, or has the magic
//! `hotset\r\n` of before the first release, is refused by whatever reads or writes a cache.
//!
//! # What survives
//!
//! - **The process** is killed at any instant: every change whose ticket is
//!   [recorded](Log::recorded) is found again; one that is not is found whole or not at all. So it
//!   is if [a witness](Session::witnessed) says that the devices still have what was written.
//! - **The computer** stops, a sync fails, or a drive loses what it had not stored: with `sync`, everything up to the last [`Log::commit`] that has
//!   succeeded; clean blocks are forgotten, since the origin has them. Without `sync`, nothing,
//!   unless the session was closed.
//!
//! # What the caller owes
//!
//! - Hold a lock on the flash: two users would destroy it.
//! - The order that [`Change`] names.
//! - No other block's bytes in a slot that is [at risk](Log::is_at_risk).
//! - Tell the log when something was [written to the origin](Log::origin_written), and leave all
//!   syncs to it: Linux reports an error of write-back once.

use crate::policy::{Block, Mapping};
use recovery::{Clean, Recovery};
use slots::{Entry, mappings};
use superblock::Superblock;

mod error;
mod growth;
mod journal;
mod log;
mod recovery;
mod salvage;
mod slots;
mod store;
mod superblock;
mod table;
#[cfg(test)]
mod tests;

pub use error::MetadataError;
pub(crate) use log::pop_until;
pub use log::{CommitTicket, Log, LogDone, LogIo, LogPart, SyncKind, Ticket};
pub use salvage::{Salvage, salvage};
pub use slots::Change;
pub use store::{FlashStore, Store};
pub use superblock::{BootId, Identity, OriginId, Session, SessionId};

/// What the last session left behind.
#[derive(Debug)]
pub struct Recovered {
    /// The blocks on the flash, in order of slots.
    pub mappings: Vec<Mapping>,
    /// Whether it ended with [`Log::close`].
    pub clean_shutdown: bool,
    /// Whether nothing that was answered can be missing, flushed or not.
    pub is_whole: bool,
}

/// Whether the flash says that its cache is empty, so that a new one is to be [made](format()) on it.
/// A flash with nothing on it says no such thing: it may have been erased.
///
/// # Errors
/// [`MetadataError::Io`], or that it has another format.
pub fn is_empty(store: &impl FlashStore) -> Result<bool, MetadataError> {
    Ok(superblock::is_empty(&superblock::read_copies(store)?))
}

/// Which blocks a cache holds, as [`numbers`] tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// Size of a block, bytes.
    pub block_bytes: u64,
    /// Each block, and what it was worth to the policy when that was last written down.
    pub blocks: Vec<(Block, u8)>,
}

/// Which blocks the cache on the flash holds: numbers alone, so that they can be fetched again where
/// their bytes may be old. Nothing is written. None if the flash says that its cache is empty.
///
/// # Errors
/// A [`MetadataError`] if it is missing or damaged, or is another origin's: nothing is known then.
pub fn numbers(
    store: &impl FlashStore,
    origin_id: OriginId,
    boot_id: BootId,
) -> Result<Option<Numbers>, MetadataError> {
    let copies = superblock::read_copies(store)?;
    if superblock::is_empty(&copies) {
        return Ok(None);
    }
    let Some(newest) = superblock::newest(&copies) else {
        return Err(MetadataError::Damaged("no superblock is whole"));
    };
    if newest.identity.origin_id != origin_id {
        return Err(MetadataError::OtherOrigin);
    }
    // No bytes are believed: for numbers the same boot will do.
    let session = Session {
        identity: newest.identity,
        sync: newest.sync,
        boot_id,
        id: newest.session,
        witnessed: Some(newest.session),
    };
    let recovery = recovery::recover(store, &session, Clean::Numbered)?;
    let held = mappings(&recovery.entries).into_iter();
    Ok(Some(Numbers {
        block_bytes: newest.identity.layout.block_bytes,
        blocks: held.map(|mapping| (mapping.block, mapping.heat)).collect(),
    }))
}

/// Has the flash say for good that its cache is empty, whatever was on it before, but for a cache in
/// another format.
///
/// # Errors
/// [`MetadataError::Io`], or that it has another format; nothing was written then.
pub fn make_empty(store: &impl FlashStore) -> Result<(), MetadataError> {
    superblock::write_empty(store).map(drop)
}

/// Makes a new, empty cache, whatever was on the flash before, but for one in another format. All of
/// METADATA is written, so that later writes find their place even if the disk below is full by then.
///
/// # Errors
/// [`MetadataError::Layout`] if the layout does not fit the flash or the origin, or those of
/// [`make_empty`].
pub fn format(store: &impl Store, session: &Session) -> Result<Log, MetadataError> {
    format_with(store, session, &[])
}

/// The same for a cache that holds these blocks already: one that is cut up anew. All of them are
/// taken for clean, and lie within the layout.
///
/// # Errors
/// As those of [`format()`].
pub fn format_with(
    store: &impl Store,
    session: &Session,
    mappings: &[Mapping],
) -> Result<Log, MetadataError> {
    let layout = check_sizes(store, session)?;
    let cannot_write = || MetadataError::io("write the metadata of a new cache");
    // First, and for good: not even a computer that stops may bring the old cache back once its slots
    // have been written to.
    let emptied = superblock::write_empty(store)?;
    store::wipe(store, &layout).map_err(cannot_write())?;
    journal::make_blank(store, &layout).map_err(cannot_write())?;
    let mut entries = vec![Entry::default(); layout.slots() as usize];
    for mapping in mappings {
        entries[mapping.slot as usize] = Entry::clean(mapping);
    }
    start(store, Superblock::of(session), emptied + 1, entries).map_err(cannot_write())
}

/// Cuts a cache up anew that was just taken up with this identity, and in which nothing is dirty where
/// that changes: what still has a slot stays. Killed in between, the flash holds the cache of before,
/// an empty one, or the new one.
///
/// # Errors
/// [`MetadataError::Layout`] if it cannot be cut up so, or [`MetadataError::Io`].
pub fn recut(
    store: &impl Store,
    (log, recovered): (Log, Recovered),
    before: &Identity,
    after: &Session,
) -> Result<(Log, Vec<Mapping>), MetadataError> {
    let mut mappings = recovered.mappings;
    if after.identity == *before {
        return Ok((log, mappings));
    }
    before.layout.check_change(&after.identity.layout)?;
    mappings.retain(|mapping| mapping.slot < after.identity.layout.slots());
    let log = format_with(store, after, &mappings)?;
    Ok((log, mappings))
}

/// Takes up the cache that is on the flash. The origin may have grown since it was last in use.
///
/// # Errors
/// A [`MetadataError`] if it is missing or damaged, or was made with another layout, for another
/// origin or in another format, or if the origin has shrunk.
pub fn open(store: &impl Store, session: &Session) -> Result<(Log, Recovered), MetadataError> {
    let (own, mut recovery) = find(store, session)?;
    let Identity {
        layout,
        origin_bytes,
        ..
    } = own.identity;
    let sizes = (recovery.origin_bytes, origin_bytes);
    growth::follow(store, &layout, sizes, &mut recovery.entries)
        .map_err(MetadataError::io("take in an origin that has grown"))?;
    let recovered = Recovered {
        mappings: mappings(&recovery.entries),
        clean_shutdown: recovery.clean_shutdown,
        is_whole: recovery.is_whole,
    };
    // The first that is newer than anything there, and does not overwrite the table that counts.
    let newer = recovery.newest + 1;
    let generation = newer + u64::from(newer % 2 == recovery.generation % 2);
    let log = start(store, own, generation, recovery.entries)
        .map_err(MetadataError::io("write the metadata of the flash"))?;
    Ok((log, recovered))
}

/// Whether [`open`] would take up the cache that is on the flash; nothing is written. How many of
/// its slots are dirty; None if the last session was not closed.
///
/// # Errors
/// As those of [`open`].
pub fn check(store: &impl FlashStore, session: &Session) -> Result<Option<usize>, MetadataError> {
    let (_, recovery) = find(store, session)?;
    let is_dirty = |entry: &&Entry| entry.content == slots::Content::Dirty;
    let dirty = recovery.entries.iter().filter(is_dirty);
    Ok(recovery.clean_shutdown.then(|| dirty.count()))
}

fn find(
    store: &impl FlashStore,
    session: &Session,
) -> Result<(Superblock, Recovery), MetadataError> {
    check_sizes(store, session)?;
    let recovery = recovery::recover(store, session, Clean::Forgotten)?;
    Ok((Superblock::of(session), recovery))
}

fn check_sizes(
    store: &impl FlashStore,
    session: &Session,
) -> Result<crate::layout::Layout, MetadataError> {
    let layout = session.identity.layout;
    let flash_bytes = store
        .size_bytes()
        .map_err(MetadataError::io("tell the size of the flash"))?;
    layout.check(flash_bytes)?;
    layout.origin_blocks(session.identity.origin_bytes)?;
    Ok(layout)
}

/// Begins a session with a checkpoint, which is made durable even without `sync`: should the
/// computer stop, it must be known that this session made no promises.
fn start(
    store: &impl Store,
    own: Superblock,
    generation: u64,
    entries: Vec<Entry>,
) -> std::io::Result<Log> {
    let layout = own.identity.layout;
    let superblock = Superblock { generation, ..own };
    table::write(store, &layout, generation, &entries)?;
    if own.sync {
        store.sync_origin()?;
    }
    store.sync_flash()?;
    store.write_at(&superblock.encode(), superblock.offset())?;
    store.sync_flash()?;
    Ok(Log::new(own, generation, entries))
}
