//! The log: takes changes of slots, and says which I/O makes them last. It does none itself.
//!
//! Changes are numbered by [`Ticket`]s. Whatever was appended while a record was being written is
//! written with the next one, and commits that were asked for meanwhile share the next one: so the
//! cost of a change or a flush falls as there are more of them.
//!
//! A checkpoint writes the slots as they were when it began, page by page, while changes go to the
//! next generation's journal: nobody waits for it but who finds that journal full as well.

use std::collections::VecDeque;

use fixedbitset::FixedBitSet;

use super::journal::{Event, Record};
use super::slots::{Change, Content, Entry};
use super::superblock::Superblock;
use crate::layout::{ENTRIES_PER_PAGE, Layout};
use crate::number_map::NumberMap;
use crate::policy::Slot;
use checkpoint::Checkpoint;
use commit::{Commit, CommitStage};

mod at_risk;
mod checkpoint;
mod commit;
#[cfg(test)]
mod tests;

/// The number of a change; later ones are greater.
pub type Ticket = u64;

/// The number of a commit; later ones are greater.
pub type CommitTicket = u64;

/// Most records written at a time.
const BATCH_RECORDS: u64 = 128;

/// An I/O that the log wants. At most one write of records, one of a checkpoint and one sync of
/// each device are under way at a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogIo {
    /// Write to the flash, as far as the page cache.
    Write {
        /// Tells what was written when it is done.
        part: LogPart,
        /// Where, bytes from the start of the flash.
        offset: u64,
        /// What.
        bytes: Vec<u8>,
    },
    /// Make everything written to the flash before durable.
    SyncFlash(SyncKind),
    /// Make everything written to the origin before durable.
    SyncOrigin(SyncKind),
}

/// How much a sync is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncKind {
    /// As durable as the user wants flushes to be.
    Usual,
    /// Durable whatever the user wants of flushes.
    Forced,
}

/// What a write of the log's is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogPart {
    /// The journal.
    Records,
    /// A checkpoint.
    Checkpoint,
}

/// An I/O that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogDone {
    /// [`LogIo::Write`].
    Write(LogPart),
    /// [`LogIo::SyncFlash`].
    SyncFlash,
    /// [`LogIo::SyncOrigin`].
    SyncOrigin,
}

/// Syncs of one device: whoever wants one waits for the next that begins.
#[derive(Clone, Copy, Debug, Default)]
struct Syncs {
    begun: u64,
    ended: u64,
    wanted: u64,
}

impl Syncs {
    /// Wants a sync that begins from now on; its number.
    fn want(&mut self) -> u64 {
        self.wanted = self.begun + 1;
        self.wanted
    }

    fn begin(&mut self) -> bool {
        let begins = self.begun == self.ended && self.wanted > self.begun;
        self.begun += u64::from(begins);
        begins
    }

    fn end(&mut self) {
        self.ended = self.begun;
    }
}

/// What waits to be written to the journal.
#[derive(Clone, Copy, Debug)]
enum Queued {
    Change(Ticket, Slot, Change),
    Commit,
}

/// The metadata of a running cache.
#[derive(Debug)]
pub struct Log {
    own: Superblock,
    /// The slots as the records that have a place in a journal leave them.
    entries: Vec<Entry>,
    /// Which journal records go to, and what it follows on.
    generation: u64,
    first: Event,
    /// Records that have a place in it.
    records: u64,
    /// Where its last change is.
    changed: u64,
    /// How many of its records are committed; none if not even what it follows on is.
    committed_records: Option<u64>,
    queue: VecDeque<Queued>,
    last_ticket: Ticket,
    /// Changes that have a place in a journal, and those that have been written there.
    placed: Ticket,
    recorded: Ticket,
    /// Records are being written.
    writing: bool,
    /// Whether that write holds the record of a commit.
    writing_commit: bool,
    commits_wanted: CommitTicket,
    commits_ended: CommitTicket,
    commit: Option<Commit>,
    checkpoint: Option<Checkpoint>,
    /// A last checkpoint is wanted that says that the session has ended.
    closing: bool,
    closed: bool,
    flash: Syncs,
    origin: Syncs,
    /// Something was written to the origin since its last sync began.
    origin_written: bool,
    failed: bool,
    /// No slot is held to be at risk; of tests.
    careless: bool,
    /// Slots that may be dirty in what a recovery would believe; those among them that are in `ceased`
    /// only as long as that is not durable.
    at_risk: FixedBitSet,
    /// The last change of each of them that left it clean or free.
    ceased: NumberMap<Ticket>,
    /// All such changes, in their order.
    ceasings: VecDeque<(Ticket, Slot)>,
    /// Changes up to this one are durable.
    durable: Ticket,
    /// What the slots held after the last change appended.
    latest: NumberMap<Entry>,
}

impl Log {
    pub(super) fn new(own: Superblock, generation: u64, entries: Vec<Entry>) -> Log {
        let mut at_risk = FixedBitSet::with_capacity(entries.len());
        for (slot, entry) in entries.iter().enumerate() {
            at_risk.set(slot, entry.content == Content::Dirty);
        }
        Log {
            own,
            entries,
            generation,
            first: Event::Begin,
            records: 0,
            changed: 0,
            committed_records: Some(0),
            queue: VecDeque::new(),
            last_ticket: 0,
            placed: 0,
            recorded: 0,
            writing: false,
            writing_commit: false,
            commits_wanted: 0,
            commits_ended: 0,
            commit: None,
            checkpoint: None,
            closing: false,
            closed: false,
            flash: Syncs::default(),
            origin: Syncs::default(),
            origin_written: false,
            failed: false,
            careless: false,
            at_risk,
            ceased: NumberMap::default(),
            ceasings: VecDeque::new(),
            durable: 0,
            latest: NumberMap::default(),
        }
    }

    /// Adds a change, unless it changes nothing; the ticket of the last change of all.
    ///
    /// # Panics
    /// If the change makes no sense: a free slot is neither dirty nor clean, and only a free one
    /// takes a block.
    pub fn append(&mut self, slot: Slot, change: Change) -> Ticket {
        if self.failed {
            // It will never be recorded.
            self.last_ticket += 1;
            return self.last_ticket;
        }
        let before = self.entry(slot);
        let Some(after) = before.after(change) else {
            panic!("slot {slot} holds {before:?}: {change:?} makes no sense");
        };
        if after == before {
            return self.last_ticket;
        }
        self.last_ticket += 1;
        self.latest.insert(slot, after);
        self.queue
            .push_back(Queued::Change(self.last_ticket, slot, change));
        match after.content {
            Content::Dirty => self.at_risk.insert(slot as usize),
            _ if before.content == Content::Dirty || self.may_be_believed_dirty(slot) => {
                self.ceasings.push_back((self.last_ticket, slot));
                self.ceased.insert(slot, self.last_ticket);
            }
            _ => {}
        }
        // Twice as fast as there can be new ones.
        self.forget_settled(2);
        self.last_ticket
    }

    fn entry(&self, slot: Slot) -> Entry {
        let latest = self.latest.get(&slot);
        latest.copied().unwrap_or(self.entries[slot as usize])
    }

    /// Changes up to here would be found by another process.
    pub fn recorded(&self) -> Ticket {
        self.recorded
    }

    /// Which journal records go to.
    #[cfg(test)]
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// A log that is broken on purpose, which tests must find out.
    #[cfg(test)]
    pub(crate) fn set_careless(&mut self) {
        self.careless = true;
    }

    /// Wants everything that is recorded now made durable, data and metadata; the number of the
    /// commit that does it. Without `sync` there is nothing to do.
    pub fn commit(&mut self) -> CommitTicket {
        if !self.own.sync {
            return self.commits_ended;
        }
        let running = u64::from(self.commit.is_some());
        self.commits_wanted = self.commits_ended + running + 1;
        self.commits_wanted
    }

    /// Commits up to this one have succeeded.
    pub fn committed(&self) -> CommitTicket {
        self.commits_ended
    }

    /// Wants a sync of the flash that begins from now on; see [`Log::flash_syncs`].
    pub fn sync_flash(&mut self) -> u64 {
        self.flash.want()
    }

    /// Syncs of the flash up to this one have succeeded.
    pub fn flash_syncs(&self) -> u64 {
        self.flash.ended
    }

    /// Wants a sync of the origin that begins from now on, if anything was written to it since
    /// the last one began; see [`Log::origin_syncs`].
    pub fn sync_origin(&mut self) -> u64 {
        match self.origin_written {
            true => self.origin.want(),
            false => self.origin.begun,
        }
    }

    /// Syncs of the origin up to this one have succeeded.
    pub fn origin_syncs(&self) -> u64 {
        self.origin.ended
    }

    /// Something was written to the origin.
    pub fn origin_written(&mut self) {
        self.origin_written = true;
    }

    /// Wants a checkpoint that says that the session has ended, once all changes are written. It is
    /// made durable in any case: it says that everything may be believed.
    ///
    /// A change after it is recorded as ever, and makes the end a disorderly one again.
    pub fn close(&mut self) {
        (self.closing, self.closed) = (true, false);
    }

    /// Whether what [`Log::close`] wanted has been done.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Whether commits are made durable.
    pub(crate) fn syncs(&self) -> bool {
        self.own.sync
    }

    /// Whether an I/O has failed: nothing is written from then on, and nothing promised. A failed
    /// sync drops what it could not write, and the next one would say nothing of it.
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Nothing is written or promised from now on: something that the log relied on has failed.
    pub(crate) fn fail(&mut self) {
        self.failed = true;
    }

    /// The next I/O to begin, if there is any. `heat` is what a slot's block is worth just now.
    pub fn next_io(&mut self, heat: impl Fn(Slot) -> u8) -> Option<LogIo> {
        if self.failed {
            return None;
        }
        self.advance_commit();
        if let Some(write) = self.write_records() {
            return Some(write);
        }
        if self.wants_to_close() {
            self.closing = false;
            self.begin_checkpoint(true);
        }
        if let Some(write) = self.write_checkpoint(heat) {
            return Some(write);
        }
        let closes = |checkpoint: &Checkpoint| checkpoint.superblock.closed;
        let kind = match self.checkpoint.as_ref().is_some_and(closes) {
            true => SyncKind::Forced,
            false => SyncKind::Usual,
        };
        if self.origin.begin() {
            self.origin_written = false;
            return Some(LogIo::SyncOrigin(kind));
        }
        self.flash.begin().then_some(LogIo::SyncFlash(kind))
    }

    /// An I/O has ended.
    pub fn io_done(&mut self, done: LogDone, succeeded: bool) {
        if !succeeded {
            self.failed = true;
            return;
        }
        match done {
            LogDone::Write(LogPart::Records) => self.records_written(),
            LogDone::Write(LogPart::Checkpoint) => self.checkpoint_written(),
            LogDone::SyncFlash => self.flash.end(),
            LogDone::SyncOrigin => self.origin.end(),
        }
        self.advance_commit();
        self.advance_checkpoint();
    }

    fn layout(&self) -> &Layout {
        &self.own.identity.layout
    }

    /// Writes what is queued, as far as there is room.
    fn write_records(&mut self) -> Option<LogIo> {
        if self.writing || self.queue.is_empty() {
            return None;
        }
        if self.records == self.layout().journal_records() {
            if self.checkpoint.is_some() {
                return None;
            }
            self.begin_checkpoint(false);
        }
        let begin = self.records;
        let mut bytes = Vec::new();
        if begin == 0 {
            self.place(self.first, &mut bytes);
        }
        let end = self.layout().journal_records().min(begin + BATCH_RECORDS);
        while self.records < end {
            let Some(queued) = self.queue.pop_front() else {
                break;
            };
            match queued {
                Queued::Change(ticket, slot, change) => {
                    self.placed = ticket;
                    self.apply(slot, change);
                    self.place(Event::Changed(slot, change), &mut bytes);
                    self.changed = self.records;
                }
                Queued::Commit => self.claim(&mut bytes),
            }
        }
        if self.records == begin {
            return None;
        }
        self.writing = true;
        Some(LogIo::Write {
            part: LogPart::Records,
            offset: Record::offset(self.generation, begin, self.layout()),
            bytes,
        })
    }

    fn place(&mut self, event: Event, bytes: &mut Vec<u8>) {
        let record = Record {
            generation: self.generation,
            sequence: self.records,
            event,
        };
        bytes.extend(record.encode());
        self.records += 1;
    }

    fn apply(&mut self, slot: Slot, change: Change) {
        self.save_page(slot as usize / ENTRIES_PER_PAGE);
        let entry = &mut self.entries[slot as usize];
        *entry = entry.after(change).expect("it was checked when appended");
        if self.latest.get(&slot) == Some(entry) {
            self.latest.remove(&slot);
        }
    }

    fn records_written(&mut self) {
        self.writing = false;
        self.recorded = self.placed;
        if std::mem::take(&mut self.writing_commit) {
            let flash = self.flash.want();
            self.set_commit_stage(CommitStage::Sealed { flash });
        }
    }
}

/// Takes out the oldest of what waits for its number, once that is reached.
pub(crate) fn pop_until<T>(waiting: &mut VecDeque<(u64, T)>, reached: u64) -> Option<(u64, T)> {
    let due = waiting
        .front()
        .is_some_and(|(number, _)| *number <= reached);
    if due { waiting.pop_front() } else { None }
}
