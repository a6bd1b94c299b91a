//! Metadata that survives a crash: which block is in which slot, and which slots are dirty.
//!
//! Every change is one small record, appended to a journal before the call returns. When the
//! journal is full, all slots are written to the idle one of two tables (a checkpoint), then a
//! superblock names that table, then the journal starts again under the next generation. Each
//! structure carries a CRC-32C and its generation, so that what a crash left half-written, or an
//! earlier generation left behind, is told from what counts.
//!
//! # What survives
//!
//! - **The process** is killed at any instant: every call that has returned is found again; one
//!   that has not is found whole or not at all. The page cache holds what was written.
//! - **The computer** stops: with `sync`, everything up to the last [`Metadata::commit`] that has
//!   returned; clean blocks are forgotten, since the origin has them. Without `sync`, nothing.
//!
//! # What the caller owes
//!
//! - Hold a lock on the flash file: two users would destroy it.
//! - `map` after the block's bytes were written to the slot; `unmap` before other bytes are;
//!   `dirty` before the first write into a clean slot; `clean`, and `unmap` of a dirty slot, after
//!   its bytes were written to the origin.
//! - With `sync`, and if the slot was dirty at or since the last commit, a `commit` between its
//!   `unmap` and its next use: otherwise, after the computer stopped, the dirty block's place
//!   would hold another's bytes. dm-cache commits there as well (`mg_update_metadata`).
//!
//! Neither origin nor flash need be synced by the caller: `commit` syncs both, in that order.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context;

use super::layout::{Layout, PAGE_BYTES};
use super::origin::Origin;
use crate::policy::{Block, Mapping, Slot};
use journal::{Event, Record};
use slots::{Change, Content, Entry, mappings};
use store::{Files, Store};
use superblock::Superblock;

mod journal;
mod recovery;
mod slots;
mod store;
mod superblock;
mod table;
#[cfg(test)]
mod tests;

/// What the last run left behind.
#[derive(Debug)]
pub struct Recovered {
    /// The blocks on the flash, in order of slots.
    pub mappings: Vec<Mapping>,
    /// Whether it ended with [`Metadata::close`].
    pub clean_shutdown: bool,
}

/// The metadata of one cache, shared by all threads that change it.
///
/// A change costs one write of 32 bytes and allocates nothing; now and then it waits for a
/// checkpoint. After an error the slot is as it was before the call, on the flash as in memory.
#[derive(Debug)]
pub struct Metadata<S = Files> {
    store: S,
    own: Superblock,
    state: Mutex<State>,
    /// A failed sync drops what it could not write, and the next one says nothing of it: from
    /// then on nothing can be promised.
    sync_failed: AtomicBool,
}

#[derive(Debug)]
struct State {
    entries: Vec<Entry>,
    generation: u64,
    /// Records in the journal: where the next one goes.
    records: u64,
    /// As many records there were after the last change, …
    changed: u64,
    /// … and as many the last commit covered.
    committed: u64,
}

impl Metadata {
    /// Whether there is anything in the place of the superblocks: not on a new file.
    pub fn is_formatted(flash: &File) -> io::Result<bool> {
        let mut superblocks = [0; 2 * PAGE_BYTES as usize];
        flash.read_exact_at(&mut superblocks, 0)?;
        Ok(superblocks.iter().any(|&byte| byte != 0))
    }

    /// Makes a new, empty cache, whatever was on the flash before. All of METADATA is written, so
    /// that later writes find their place even if the disk below is full by then.
    ///
    /// # Errors
    /// A [`Refusal`](crate::Refusal) if the layout does not fit the flash or the origin.
    pub fn format(
        flash: Arc<File>,
        layout: Layout,
        origin: Origin,
        sync: bool,
    ) -> anyhow::Result<Metadata> {
        let own = Superblock::of_this_run(layout, &origin, sync)?;
        Metadata::format_on(Files::new(flash, origin), own)
    }

    /// Takes up the cache that is on the flash.
    ///
    /// # Errors
    /// A [`Refusal`](crate::Refusal) if it is damaged, or was made with another layout, for
    /// another origin or in another format.
    pub fn open(
        flash: Arc<File>,
        layout: Layout,
        origin: Origin,
        sync: bool,
    ) -> anyhow::Result<(Metadata, Recovered)> {
        let own = Superblock::of_this_run(layout, &origin, sync)?;
        Metadata::open_on(Files::new(flash, origin), own)
    }
}

impl<S: Store> Metadata<S> {
    fn format_on(store: S, own: Superblock) -> anyhow::Result<Metadata<S>> {
        let layout = own.identity.layout;
        layout.check(store.size_bytes()?)?;
        layout.origin_blocks(own.identity.origin_bytes)?;
        store::wipe(&store, &layout).context("cannot write the metadata of a new cache")?;
        let entries = vec![Entry::default(); layout.slots() as usize];
        Metadata::start(store, own, 0, entries).context("cannot write the metadata of a new cache")
    }

    fn open_on(store: S, own: Superblock) -> anyhow::Result<(Metadata<S>, Recovered)> {
        let layout = own.identity.layout;
        layout.check(store.size_bytes()?)?;
        layout.origin_blocks(own.identity.origin_bytes)?;
        let found = recovery::recover(&store, &own)?;
        let recovered = Recovered {
            mappings: mappings(&found.entries),
            clean_shutdown: found.clean_shutdown,
        };
        let metadata = Metadata::start(store, own, found.generation, found.entries)
            .context("cannot write the metadata of the flash")?;
        Ok((metadata, recovered))
    }

    /// Begins a run with a checkpoint, which is made durable even without `sync`: should the
    /// computer stop, it must be known that this run made no promises.
    fn start(
        store: S,
        own: Superblock,
        generation: u64,
        entries: Vec<Entry>,
    ) -> io::Result<Metadata<S>> {
        let state = State {
            entries,
            generation,
            records: 0,
            changed: 0,
            committed: 0,
        };
        let metadata = Metadata {
            store,
            own,
            state: Mutex::new(state),
            sync_failed: AtomicBool::new(false),
        };
        metadata.checkpoint(&mut metadata.lock(), false, true)?;
        Ok(metadata)
    }

    /// The block's bytes are in the slot, which was free; it is clean.
    ///
    /// # Panics
    /// If the slot is not free.
    pub fn map(&self, slot: Slot, block: Block) -> io::Result<()> {
        self.change(slot, Change::Map(block))
    }

    /// The slot is free. Changes nothing if it was.
    pub fn unmap(&self, slot: Slot) -> io::Result<()> {
        self.change(slot, Change::Unmap)
    }

    /// The slot is about to hold what the origin does not. Changes nothing if it did.
    ///
    /// # Panics
    /// If the slot is free.
    pub fn dirty(&self, slot: Slot) -> io::Result<()> {
        self.change(slot, Change::Dirty)
    }

    /// The origin holds what the slot holds. Changes nothing if it did.
    ///
    /// # Panics
    /// If the slot is free.
    pub fn clean(&self, slot: Slot) -> io::Result<()> {
        self.change(slot, Change::Clean)
    }

    /// Makes everything before durable, data and metadata, if the cache is served with `sync`.
    /// Other threads' changes go on meanwhile.
    pub fn commit(&self) -> io::Result<()> {
        if !self.own.sync {
            return Ok(());
        }
        let (generation, changed, committed) = {
            let state = self.lock();
            (state.generation, state.changed, state.committed)
        };
        self.make_durable()?;
        // Only now may a record claim it; that record must be durable as well.
        let mut state = self.lock();
        if state.generation != generation || committed == changed {
            // A checkpoint has committed it in passing, or no change was left to commit.
            return Ok(());
        }
        if state.records == self.journal_records() {
            return self.checkpoint(&mut state, false, true);
        }
        if state.committed < changed {
            self.append(&mut state, Event::Committed(changed))?;
            state.committed = changed;
        }
        drop(state);
        self.make_durable()
    }

    /// Writes a checkpoint that says that the run has ended, with the heat of every block. A
    /// change after it is recorded as ever, and makes the shutdown an unclean one again.
    pub fn close(&self, heat: impl Fn(Slot) -> u8) -> io::Result<()> {
        let mut state = self.lock();
        for (slot, entry) in (0..).zip(&mut state.entries) {
            if entry.content != Content::Free {
                entry.heat = heat(slot);
            }
        }
        self.checkpoint(&mut state, true, self.own.sync)
    }

    fn change(&self, slot: Slot, change: Change) -> io::Result<()> {
        let mut state = self.lock();
        let before = state.entries[slot as usize];
        let Some(after) = before.after(change) else {
            panic!("slot {slot} holds {before:?}: {change:?} makes no sense");
        };
        if after == before {
            return Ok(());
        }
        if state.records == self.journal_records() {
            self.checkpoint(&mut state, false, self.own.sync)?;
        }
        self.append(&mut state, Event::Changed(slot, change))?;
        state.changed = state.records;
        state.entries[slot as usize] = after;
        Ok(())
    }

    fn append(&self, state: &mut State, event: Event) -> io::Result<()> {
        let record = Record {
            generation: state.generation,
            sequence: state.records,
            event,
        };
        record.write(&self.store, &self.own.identity.layout)?;
        state.records += 1;
        Ok(())
    }

    fn checkpoint(&self, state: &mut State, closed: bool, durable: bool) -> io::Result<()> {
        let next = Superblock {
            generation: state.generation + 1,
            closed,
            ..self.own
        };
        let written = self.write_checkpoint(&next, &state.entries, durable);
        if written.is_err() {
            // The superblock may be on the flash all the same. So this generation must not go
            // on: as long as no record follows, both say the same.
            state.records = self.journal_records();
            return written;
        }
        state.generation = next.generation;
        (state.records, state.changed, state.committed) = (0, 0, 0);
        Ok(())
    }

    fn write_checkpoint(
        &self,
        superblock: &Superblock,
        entries: &[Entry],
        durable: bool,
    ) -> io::Result<()> {
        let layout = &superblock.identity.layout;
        table::write(&self.store, layout, superblock.generation, entries)?;
        if durable {
            self.make_durable()?;
        }
        superblock.write(&self.store)?;
        if durable {
            self.make_durable()?;
        }
        Ok(())
    }

    /// Syncs the flash, and before it the origin: a block may be called clean only where the
    /// origin is sure to have it.
    fn make_durable(&self) -> io::Result<()> {
        if self.sync_failed.load(Ordering::Relaxed) {
            return Err(io::Error::other(
                "an earlier sync of flash or origin failed, so nothing can be promised any more: restart",
            ));
        }
        let origin = if self.own.sync {
            self.store.sync_origin()
        } else {
            Ok(())
        };
        let synced = origin.and_then(|()| self.store.sync_flash());
        self.sync_failed
            .fetch_or(synced.is_err(), Ordering::Relaxed);
        synced
    }

    fn journal_records(&self) -> u64 {
        self.own.identity.layout.journal_records()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
