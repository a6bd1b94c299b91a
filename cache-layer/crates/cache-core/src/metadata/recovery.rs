//! Finding the state of the slots after whatever ended the last session.
//!
//! | what ended it | what is believed |
//! |---|---|
//! | `close` | the table |
//! | the process | the table and the whole journal, if a witness says that the devices have them still |
//! | the computer | table and journal up to the last commit, and of that the dirty slots only |
//!
//! Without a witness it is as if the computer had stopped: a drive may have been reset meanwhile, or
//! a sync have failed.
//!
//! The journal of a generation may be continued in that of the next, whose table was being written
//! when the session ended.
//!
//! After the computer stopped, a clean slot may hold bytes of writes that came after the commit,
//! which the origin lacks: they would be there until the slot is given up, and then revert. The
//! origin has the committed bytes of a clean slot, so it is the slot that is forgotten.

use roaring::RoaringBitmap;

use super::journal::{Event, Journal};
use super::slots::{Content, Entry};
use super::store::FlashStore;
use super::superblock::{Superblock, SuperblockCopy, emptied_up_to, read_copies};
use super::table;
use super::{MetadataError, Session};
use crate::layout::Layout;

/// The newest state on the flash.
#[derive(Debug)]
pub(super) struct Recovery {
    /// The newest generation that anything on the flash belongs to.
    pub(super) newest: u64,
    /// The generation whose table and superblock count.
    pub(super) generation: u64,
    /// Size of the origin then, bytes.
    pub(super) origin_bytes: u64,
    pub(super) entries: Vec<Entry>,
    pub(super) clean_shutdown: bool,
    /// Nothing that was answered can be missing.
    pub(super) is_whole: bool,
}

/// What becomes of clean slots if the computer stopped; see the module's comment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clean {
    /// They are taken up, so their bytes have to be the origin's: forgotten.
    Forgotten,
    /// Only the numbers of their blocks are wanted.
    Numbered,
}

/// Finds the state as this session may believe it.
pub(super) fn recover(
    store: &impl FlashStore,
    session: &Session,
    clean: Clean,
) -> Result<Recovery, MetadataError> {
    let copies = read_copies(store)?;
    if copies
        .iter()
        .all(|copy| matches!(copy, SuperblockCopy::Blank))
    {
        return Err(MetadataError::Missing);
    }
    let emptied = emptied_up_to(&copies).unwrap_or(0);
    let mut superblocks: Vec<Superblock> = copies.iter().filter_map(whole).collect();
    superblocks.retain(|superblock| superblock.generation > emptied);
    let copy_damaged = copies
        .iter()
        .any(|copy| matches!(copy, SuperblockCopy::Damaged | SuperblockCopy::Blank));
    superblocks.sort_by_key(|superblock| std::cmp::Reverse(superblock.generation));
    let newest = superblocks
        .first()
        .ok_or(MetadataError::Damaged("no superblock is whole"))?;
    session.identity.check_stored(&newest.identity)?;
    let layout = &session.identity.layout;
    let journal = |generation| {
        Journal::read(store, layout, generation)
            .map_err(MetadataError::io("read the journal of the flash"))
    };
    for superblock in &superblocks {
        let generation = superblock.generation;
        let read = table::read(store, layout, generation);
        let Some(entries) = read.map_err(MetadataError::io("read a table of the flash"))? else {
            continue;
        };
        let past = Past {
            superblock,
            session,
            clean,
            fell_back: superblock != newest,
            copy_damaged,
            journals: [journal(generation)?, journal(generation + 1)?],
        };
        return past.replay(entries);
    }
    Err(MetadataError::Damaged("no table is whole"))
}

fn whole(copy: &SuperblockCopy) -> Option<Superblock> {
    match copy {
        SuperblockCopy::Whole(superblock) => Some(*superblock),
        SuperblockCopy::Blank | SuperblockCopy::Damaged | SuperblockCopy::Empty(_) => None,
    }
}

/// A generation that is to be taken up again.
struct Past<'a> {
    superblock: &'a Superblock,
    session: &'a Session,
    clean: Clean,
    /// The table of a newer generation is damaged.
    fell_back: bool,
    /// The other superblock is damaged: it may have been the newer one.
    copy_damaged: bool,
    /// The generation's own journal, and the one that the next generation would use.
    journals: [Journal; 2],
}

impl Past<'_> {
    fn replay(&self, mut entries: Vec<Entry>) -> Result<Recovery, MetadataError> {
        let generation = self.superblock.generation;
        let witnessed = self.superblock.is_witnessed(self.session);
        let [own, next] = self.runs(witnessed)?;
        let nothing_followed = own.is_empty() && next.is_empty();
        let clean_shutdown = self.superblock.closed && nothing_followed && !self.fell_back;
        let computer_stopped = !witnessed && !clean_shutdown;
        if computer_stopped {
            self.check_stopped()?;
        }
        let newest = self.newest_generation();
        let events: Vec<Event> = own.iter().chain(&next).copied().collect();
        let committed = self.check_committed(&own, &next)?;
        let believed = if computer_stopped {
            committed
        } else {
            events.len()
        };
        apply(&events[..believed], &mut entries)?;
        if computer_stopped && self.clean == Clean::Forgotten {
            forget_clean(&mut entries);
        }
        let origin_bytes = self.superblock.identity.origin_bytes;
        check_blocks(&self.session.identity.layout, origin_bytes, &entries)?;
        Ok(Recovery {
            newest,
            generation,
            origin_bytes,
            entries,
            clean_shutdown,
            is_whole: !computer_stopped,
        })
    }

    /// The events of the generation, and of the next one as far as it follows on them. Anything
    /// else in a journal that a whole one would not have is damage.
    fn runs(&self, witnessed: bool) -> Result<[Vec<Event>; 2], MetadataError> {
        let generation = self.superblock.generation;
        let own: Vec<Event> = self.journals[0].run(generation).collect();
        let mut next: Vec<Event> = self.journals[1].run(generation + 1).collect();
        let ends = [own.len(), next.len()];
        match next.first() {
            // The session that wrote it had a table of its own, whose superblock is lost.
            Some(event) if !matches!(event, Event::Continue(_)) => {
                return Err(MetadataError::Damaged(
                    "the journal is newer than the superblock",
                ));
            }
            Some(Event::Continue(records)) if *records != own.len() as u64 => {
                let committed = next
                    .iter()
                    .any(|event| matches!(event, Event::Committed(_)));
                if witnessed || committed {
                    return Err(MetadataError::Damaged("a record inside the journal"));
                }
                next.clear();
            }
            _ => {}
        }
        if witnessed {
            self.check_no_gap(0, generation, own.len())?;
            self.check_no_gap(1, generation + 1, next.len())?;
        }
        if self.newest_generation() > generation + 1 {
            return Err(MetadataError::Damaged(
                "the journal is newer than the superblock",
            ));
        }
        self.check_ends(ends, witnessed)?;
        Ok([own, next])
    }

    /// Of what was not committed, a computer may save a later page and lose an earlier; a process
    /// cannot.
    fn check_no_gap(&self, which: usize, generation: u64, end: usize) -> Result<(), MetadataError> {
        let beyond = self.journals[which]
            .records()
            .any(|record| record.generation == generation && record.sequence >= end as u64);
        if beyond {
            return Err(MetadataError::Damaged("a record inside the journal"));
        }
        Ok(())
    }

    /// Refuses a journal of which nothing shows that it ends there: what was lost may have been a commit.
    /// A process that is killed may leave one record torn; a device loses whole sectors.
    fn check_ends(&self, ends: [usize; 2], may_be_torn: bool) -> Result<(), MetadataError> {
        let generations = self.superblock.generation..;
        for ((at, journal), generation) in ends.into_iter().zip(&self.journals).zip(generations) {
            let is_torn = || may_be_torn && journal.is_end(generation, at + 1);
            if !journal.is_end(generation, at) && !is_torn() {
                return Err(MetadataError::Damaged("what shows where the journal ends"));
            }
        }
        Ok(())
    }

    fn newest_generation(&self) -> u64 {
        let records = self.journals.iter().flat_map(Journal::records);
        let newest = records.map(|record| record.generation).max();
        newest.unwrap_or(0).max(self.superblock.generation)
    }

    /// How many of the events were committed.
    fn check_committed(&self, own: &[Event], next: &[Event]) -> Result<usize, MetadataError> {
        let generation = self.superblock.generation;
        let last_commit = |which: usize, generation: u64| {
            let records = self.journals[which].records();
            let of_generation = records.filter(move |record| record.generation == generation);
            of_generation
                .filter_map(|record| match record.event {
                    Event::Committed(records) => Some(records as usize),
                    _ => None,
                })
                .max()
        };
        let in_own = last_commit(0, generation).unwrap_or(0);
        // Nothing that a commit covers was lost by an end, in either journal: it was durable before.
        let in_next = last_commit(1, generation + 1);
        if in_own > own.len() || in_next.is_some_and(|records| records > next.len()) {
            return Err(MetadataError::Damaged("a committed record of the journal"));
        }
        Ok(in_next.map_or(in_own, |records| own.len() + records))
    }

    /// After the computer stopped there is no telling a checkpoint that was never finished from
    /// one that was damaged later, nor what of an unsynced cache has reached the disk.
    fn check_stopped(&self) -> Result<(), MetadataError> {
        if !self.superblock.sync {
            return Err(MetadataError::Volatile);
        }
        if self.fell_back || self.copy_damaged {
            return Err(MetadataError::Damaged(
                "the newest checkpoint cannot be read",
            ));
        }
        Ok(())
    }
}

fn apply(events: &[Event], entries: &mut [Entry]) -> Result<(), MetadataError> {
    for event in events {
        if let Event::Changed(slot, change) = *event {
            let entry = entries.get_mut(slot as usize);
            let (entry, after) = entry
                .and_then(|entry| entry.after(change).map(|after| (entry, after)))
                .ok_or(MetadataError::Damaged("a record that makes no sense"))?;
            *entry = after;
        }
    }
    Ok(())
}

/// Refuses blocks that cannot be: beyond the origin's end, in two slots, or without a part that
/// they do not have.
fn check_blocks(
    layout: &Layout,
    origin_bytes: u64,
    entries: &[Entry],
) -> Result<(), MetadataError> {
    let blocks = layout.origin_blocks(origin_bytes)?;
    let all = layout.sub_blocks().all();
    let mut seen = RoaringBitmap::new();
    for entry in entries
        .iter()
        .filter(|entry| entry.content != Content::Free)
    {
        let wrong = match entry.block {
            block if block >= blocks => "a block beyond the end of the origin",
            _ if entry.missing & !all != 0 => "a part that its block does not have",
            block if !seen.insert(block) => "one block in two slots",
            _ => continue,
        };
        return Err(MetadataError::Damaged(wrong));
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
