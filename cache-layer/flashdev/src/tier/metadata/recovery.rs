//! Finding the state of the slots after whatever ended the last run.
//!
//! | what ended it | what is believed |
//! |---|---|
//! | `close` | the table |
//! | the process | the table and the whole journal: the page cache has them |
//! | the computer | table and journal up to the last commit, and of that the dirty slots only |
//!
//! After the computer stopped, a clean slot may hold bytes of writes that came after the commit,
//! which the origin lacks: they would be there until the slot is given up, and then revert. The
//! origin has the committed bytes of a clean slot, so it is the slot that is forgotten.

use anyhow::Context;

use super::journal::{Event, Journal};
use super::slots::{Content, Entry};
use super::store::Store;
use super::superblock::{Copy, Superblock, read_copies};
use super::table;
use crate::Refusal;

/// What recovery found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) generation: u64,
    pub(super) entries: Vec<Entry>,
    pub(super) clean_shutdown: bool,
}

/// Finds the state. `own` is the superblock that this run would write.
pub(super) fn recover(store: &impl Store, own: &Superblock) -> anyhow::Result<Found> {
    let copies = read_copies(store)?;
    let copy_damaged = copies.iter().any(|copy| matches!(copy, Copy::Damaged));
    let mut superblocks: Vec<Superblock> = copies.iter().filter_map(whole).collect();
    superblocks.sort_by_key(|superblock| std::cmp::Reverse(superblock.generation));
    let newest = superblocks
        .first()
        .ok_or_else(|| damaged("no superblock is whole"))?;
    own.identity.check_found(&newest.identity)?;
    let layout = &own.identity.layout;
    let journal = Journal::read(store, layout).context("cannot read the journal of the flash")?;
    for superblock in &superblocks {
        let read = table::read(store, layout, superblock.generation);
        let Some(entries) = read.context("cannot read a table of the flash")? else {
            continue;
        };
        let run = Run {
            superblock,
            own,
            fell_back: superblock != newest,
            copy_damaged,
            journal: &journal,
        };
        return run.replay(entries);
    }
    Err(damaged("no table is whole").into())
}

fn whole(copy: &Copy) -> Option<Superblock> {
    match copy {
        Copy::Whole(superblock) => Some(*superblock),
        Copy::Blank | Copy::Damaged => None,
    }
}

fn damaged(what: &str) -> Refusal {
    Refusal(format!(
        "metadata on the flash is damaged ({what}): restore the flash file, or give --discard to begin with an empty cache, which loses dirty blocks"
    ))
}

/// A generation that is to be taken up again.
struct Run<'a> {
    superblock: &'a Superblock,
    own: &'a Superblock,
    /// The table of a newer generation is damaged.
    fell_back: bool,
    /// The other superblock is damaged: it may have been the newer one.
    copy_damaged: bool,
    journal: &'a Journal,
}

impl Run<'_> {
    fn replay(&self, mut entries: Vec<Entry>) -> anyhow::Result<Found> {
        let generation = self.superblock.generation;
        let events: Vec<Event> = self.journal.run(generation).collect();
        let clean_shutdown = self.superblock.closed && events.is_empty() && !self.fell_back;
        let same_boot = self.superblock.boot_id == self.own.boot_id;
        let computer_stopped = !same_boot && !clean_shutdown;
        if computer_stopped {
            self.check_stopped()?;
        }
        let committed = self.check_after_end(events.len() as u64, same_boot)?;
        let believed = if computer_stopped {
            committed as usize
        } else {
            events.len()
        };
        apply(&events[..believed], &mut entries)?;
        if computer_stopped {
            forget_clean(&mut entries);
        }
        Ok(Found {
            generation,
            entries,
            clean_shutdown,
        })
    }

    /// After the computer stopped there is no telling a checkpoint that was never finished from
    /// one that was damaged later, nor what of an unsynced cache has reached the disk.
    fn check_stopped(&self) -> Result<(), Refusal> {
        if !self.superblock.sync {
            return Err(Refusal(
                "the cache on the flash was served with --volatile when the computer stopped, so its contents are not to be trusted: give --discard to begin with an empty cache".to_owned(),
            ));
        }
        if self.fell_back || self.copy_damaged {
            return Err(damaged("the newest checkpoint cannot be read"));
        }
        Ok(())
    }

    /// Looks for records that a whole journal would not have after its end, and returns how many
    /// of those before it were committed.
    fn check_after_end(&self, end: u64, same_boot: bool) -> Result<u64, Refusal> {
        let generation = self.superblock.generation;
        let mut committed = 0;
        for record in self.journal.records() {
            if record.generation > generation {
                return Err(damaged("the journal is newer than the superblock"));
            }
            if record.generation < generation {
                continue;
            }
            // Of what was not committed, a computer may save a later page and lose an earlier;
            // a process cannot.
            if same_boot && record.sequence >= end {
                return Err(damaged("a record inside the journal"));
            }
            if let Event::Committed(records) = record.event {
                committed = committed.max(records);
            }
        }
        if committed > end {
            return Err(damaged("a committed record of the journal"));
        }
        Ok(committed)
    }
}

fn apply(events: &[Event], entries: &mut [Entry]) -> Result<(), Refusal> {
    for event in events {
        if let Event::Changed(slot, change) = *event {
            let entry = entries.get_mut(slot as usize);
            let (entry, after) = entry
                .and_then(|entry| entry.after(change).map(|after| (entry, after)))
                .ok_or_else(|| damaged("a record that makes no sense"))?;
            *entry = after;
        }
    }
    Ok(())
}

fn forget_clean(entries: &mut [Entry]) {
    for entry in entries {
        if entry.content == Content::Clean {
            *entry = Entry::default();
        }
    }
}
