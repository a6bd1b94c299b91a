//! The log: takes changes of slots, and says which I/O makes them last. It does none itself.
//!
//! Changes are numbered by [`Ticket`]s. Whatever was appended while a record was being written is
//! written with the next one, and commits that were asked for meanwhile share the next one: so the
//! cost of a change or a flush falls as there are more of them.
//!
//! A checkpoint writes the slots as they were when it began, page by page, while changes go to the
//! next generation's journal: nobody waits for it but who finds that journal full as well.

use std::collections::{HashMap, VecDeque};

use fixedbitset::FixedBitSet;

use super::journal::{Event, Record};
use super::slots::{Change, Content, Entry};
use super::superblock::Superblock;
use super::table;
use crate::layout::{ENTRIES_PER_PAGE, Layout, PAGE_BYTES};
use crate::number_map::NumberMap;
use crate::policy::Slot;

/// The number of a change; later ones are greater.
pub type Ticket = u64;

/// The number of a commit; later ones are greater.
pub type CommitTicket = u64;

/// Most records written at a time.
const BATCH_RECORDS: u64 = 128;

/// Pages of a table written at a time: few enough that neither a slow flash is kept from its hits, nor
/// whoever waits while the pages are put together.
const BATCH_PAGES: usize = 4;

/// How many of what was settled are forgotten at a time, for the same reason: a checkpoint may settle as
/// many as a journal holds.
const FORGOTTEN_AT_A_TIME: usize = 256;

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

/// A commit under way.
#[derive(Clone, Copy, Debug)]
struct Commit {
    number: CommitTicket,
    /// What it makes durable: changes, and records of the generation.
    covers: Ticket,
    generation: u64,
    records: u64,
    stage: CommitStage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommitStage {
    /// Waits for these syncs of the data.
    Data { flash: u64, origin: u64 },
    /// The record that claims it is being written.
    Record,
    /// Waits for this sync of the record.
    Sealed { flash: u64 },
}

/// A checkpoint under way.
#[derive(Debug)]
struct Checkpoint {
    superblock: Superblock,
    /// Pages from here on have not been written, …
    next_page: usize,
    /// … and were as they are in here where they have changed since.
    saved: HashMap<usize, Vec<Entry>>,
    /// Changes that the table contains.
    covers: Ticket,
    durable: bool,
    stage: CheckpointStage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CheckpointStage {
    /// Pages are to be written.
    Table,
    /// A write is under way, and whether it is the superblock's.
    Writing { superblock: bool },
    /// Waits for these syncs of table and data.
    Durable { flash: u64, origin: u64 },
    /// The superblock is to be written.
    Superblock,
    /// Waits for this sync of the superblock.
    Sealed { flash: u64 },
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

    /// Whether a recovery could believe that the slot, which is not dirty, is.
    fn may_be_believed_dirty(&self, slot: Slot) -> bool {
        let durable = |ceased: &Ticket| *ceased <= self.durable;
        self.at_risk.contains(slot as usize) && !self.ceased.get(&slot).is_some_and(durable)
    }

    fn entry(&self, slot: Slot) -> Entry {
        let latest = self.latest.get(&slot);
        latest.copied().unwrap_or(self.entries[slot as usize])
    }

    /// Changes up to here would be found by another process.
    pub fn recorded(&self) -> Ticket {
        self.recorded
    }

    /// Whether the slot may not be used for another block before a commit: should the computer
    /// stop, it would be taken for a dirty block that it held before. dm-cache commits there as
    /// well (`mg_update_metadata`).
    pub fn is_at_risk(&self, slot: Slot) -> bool {
        let at_risk =
            || self.entry(slot).content == Content::Dirty || self.may_be_believed_dirty(slot);
        self.own.sync && !self.careless && at_risk()
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

    fn advance_commit(&mut self) {
        // What is being written just now is not covered by a sync that begins meanwhile.
        if self.commit.is_none() && self.commits_wanted > self.commits_ended && !self.writing {
            self.begin_commit();
        }
        let Some(commit) = self.commit else { return };
        match commit.stage {
            CommitStage::Data { flash, origin }
                if self.flash.ended >= flash && self.origin.ended >= origin =>
            {
                let same = commit.generation == self.generation;
                let covered = self.committed_records;
                if same && covered.is_some_and(|covered| commit.records <= covered) {
                    return self.end_commit(commit);
                }
                self.queue.push_back(Queued::Commit);
                self.set_commit_stage(CommitStage::Record);
            }
            CommitStage::Sealed { flash } if self.flash.ended >= flash => {
                if commit.generation == self.generation {
                    self.committed_records = self.committed_records.max(Some(commit.records));
                }
                self.end_commit(commit);
            }
            _ => {}
        }
    }

    fn begin_commit(&mut self) {
        self.commit = Some(Commit {
            number: self.commits_ended + 1,
            covers: self.recorded,
            generation: self.generation,
            records: self.changed,
            stage: CommitStage::Data {
                flash: self.flash.want(),
                origin: self.sync_origin(),
            },
        });
    }

    /// Places the record that says what the commit has made durable. In the journal of a later
    /// generation it would say too much: then the commit begins again.
    fn claim(&mut self, bytes: &mut Vec<u8>) {
        let Some(commit) = self.commit else { return };
        if commit.generation != self.generation {
            self.commit = None;
            return;
        }
        self.writing_commit = true;
        self.place(Event::Committed(commit.records), bytes);
    }

    fn set_commit_stage(&mut self, stage: CommitStage) {
        if let Some(commit) = &mut self.commit {
            commit.stage = stage;
        }
    }

    fn end_commit(&mut self, commit: Commit) {
        self.commit = None;
        self.commits_ended = commit.number;
        self.settle(commit.covers);
    }

    /// Changes up to this one are durable: of the slots that they left clean or free, no recovery
    /// would believe that they are dirty.
    fn settle(&mut self, durable: Ticket) {
        self.durable = self.durable.max(durable);
        self.forget_settled(FORGOTTEN_AT_A_TIME);
    }

    /// Forgets some of what does not matter any more.
    fn forget_settled(&mut self, most: usize) {
        for _ in 0..most {
            let Some((ticket, slot)) = pop_until(&mut self.ceasings, self.durable) else {
                return;
            };
            if self.ceased.get(&slot) == Some(&ticket) {
                self.ceased.remove(&slot);
                let dirty = self.entry(slot).content == Content::Dirty;
                self.at_risk.set(slot as usize, dirty);
            }
        }
    }

    fn wants_to_close(&self) -> bool {
        let quiet = self.queue.is_empty() && !self.writing && self.commit.is_none();
        self.closing && quiet && self.checkpoint.is_none()
    }

    /// Changes go to the journal of the next generation from now on.
    fn begin_checkpoint(&mut self, closed: bool) {
        self.first = Event::Continue(self.records);
        self.generation += 1;
        (self.records, self.changed, self.committed_records) = (0, 0, None);
        self.checkpoint = Some(Checkpoint {
            superblock: Superblock {
                generation: self.generation,
                closed,
                ..self.own
            },
            next_page: 0,
            saved: HashMap::new(),
            covers: self.placed,
            durable: closed || self.own.sync,
            stage: CheckpointStage::Table,
        });
    }

    /// Keeps a page for the checkpoint as it is now, before it changes.
    fn save_page(&mut self, page: usize) {
        let Some(checkpoint) = &mut self.checkpoint else {
            return;
        };
        if page >= checkpoint.next_page && !checkpoint.saved.contains_key(&page) {
            let entries = page_of(&self.entries, page).to_vec();
            checkpoint.saved.insert(page, entries);
        }
    }

    fn write_checkpoint(&mut self, heat: impl Fn(Slot) -> u8) -> Option<LogIo> {
        let pages = self.entries.len().div_ceil(ENTRIES_PER_PAGE);
        let checkpoint = self.checkpoint.as_mut()?;
        let (offset, bytes) = match checkpoint.stage {
            CheckpointStage::Table => {
                let first = checkpoint.next_page;
                let end = pages.min(first + BATCH_PAGES);
                let generation = checkpoint.superblock.generation;
                let mut bytes = Vec::with_capacity((end - first) * PAGE_BYTES as usize);
                for page in first..end {
                    let saved = checkpoint.saved.remove(&page);
                    let mut entries =
                        saved.unwrap_or_else(|| page_of(&self.entries, page).to_vec());
                    warm_entries(&mut entries, page, &heat);
                    bytes.extend(table::encode(generation, page as u32, &entries));
                }
                checkpoint.next_page = end;
                checkpoint.stage = CheckpointStage::Writing { superblock: false };
                let table = self.own.identity.layout.table_offset(generation);
                (table + first as u64 * PAGE_BYTES, bytes)
            }
            CheckpointStage::Superblock => {
                checkpoint.stage = CheckpointStage::Writing { superblock: true };
                let superblock = &checkpoint.superblock;
                (superblock.offset(), superblock.encode().to_vec())
            }
            _ => return None,
        };
        Some(LogIo::Write {
            part: LogPart::Checkpoint,
            offset,
            bytes,
        })
    }

    fn checkpoint_written(&mut self) {
        let pages = self.entries.len().div_ceil(ENTRIES_PER_PAGE);
        let Some(checkpoint) = &mut self.checkpoint else {
            return;
        };
        checkpoint.stage = match checkpoint.stage {
            CheckpointStage::Writing { superblock: false } if checkpoint.next_page < pages => {
                CheckpointStage::Table
            }
            CheckpointStage::Writing { superblock } if !checkpoint.durable => match superblock {
                false => CheckpointStage::Superblock,
                true => CheckpointStage::Sealed { flash: 0 },
            },
            CheckpointStage::Writing { superblock: true } => CheckpointStage::Sealed {
                flash: self.flash.want(),
            },
            CheckpointStage::Writing { superblock: false } => CheckpointStage::Durable {
                flash: self.flash.want(),
                origin: match self.origin_written || checkpoint.superblock.closed {
                    true => self.origin.want(),
                    false => self.origin.begun,
                },
            },
            stage => stage,
        };
    }

    fn advance_checkpoint(&mut self) {
        let Some(checkpoint) = &mut self.checkpoint else {
            return;
        };
        match checkpoint.stage {
            CheckpointStage::Durable { flash, origin }
                if self.flash.ended >= flash && self.origin.ended >= origin =>
            {
                checkpoint.stage = CheckpointStage::Superblock;
            }
            CheckpointStage::Sealed { flash } if self.flash.ended >= flash => {
                let (covers, closed) = (checkpoint.covers, checkpoint.superblock.closed);
                self.checkpoint = None;
                self.closed |= closed;
                self.committed_records = self.committed_records.or(Some(0));
                self.settle(covers);
            }
            _ => {}
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

fn page_of(entries: &[Entry], page: usize) -> &[Entry] {
    let start = page * ENTRIES_PER_PAGE;
    &entries[start..entries.len().min(start + ENTRIES_PER_PAGE)]
}

/// Enters what the blocks of a page are worth now, so that a process that is killed has not
/// forgotten it.
fn warm_entries(entries: &mut [Entry], page: usize, heat: impl Fn(Slot) -> u8) {
    for (slot, entry) in (page * ENTRIES_PER_PAGE..).zip(entries) {
        if entry.content != Content::Free {
            entry.heat = heat(slot as Slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{Identity, Session};

    const SLOTS: u32 = 5000;

    /// With every slot mapped, made dirty and clean again.
    fn churned() -> Log {
        let layout = Layout::for_slots(SLOTS, 4096);
        let identity = Identity {
            layout,
            origin_id: [7; 16],
            origin_bytes: u64::from(SLOTS) * 4096,
        };
        let session = Session {
            identity,
            sync: true,
            boot_id: [1; 16],
        };
        let entries = vec![Entry::default(); SLOTS as usize];
        let mut log = Log::new(Superblock::of(&session), 1, entries);
        for slot in 0..SLOTS {
            let (block, heat, missing, dirty) = (slot, 0, 0, true);
            let map = Change::Map {
                block,
                heat,
                missing,
                dirty,
            };
            log.append(slot, map);
            log.append(slot, Change::Clean);
        }
        log
    }

    fn at_risk(log: &Log) -> usize {
        (0..SLOTS).filter(|&slot| log.is_at_risk(slot)).count()
    }

    /// Nobody waits while all that a checkpoint settles is forgotten, and everybody knows of it.
    #[test]
    fn what_a_checkpoint_settles_is_settled_at_once_and_forgotten_by_and_by() {
        let mut log = churned();
        assert_eq!(at_risk(&log), SLOTS as usize);
        log.settle(2 * 1000);
        assert_eq!(at_risk(&log), SLOTS as usize - 1000);
        log.settle(log.last_ticket);
        assert_eq!(at_risk(&log), 0);
        let left = log.ceasings.len();
        assert!(left >= SLOTS as usize - 2 * FORGOTTEN_AT_A_TIME, "{left}");
        // What is dirty anew is at risk, until it has ceased to be and that is durable.
        log.append(SLOTS - 1, Change::Dirty);
        assert_eq!(at_risk(&log), 1);
        let ceased = log.append(SLOTS - 1, Change::Clean);
        log.settle(ceased - 1);
        assert_eq!(at_risk(&log), 1);
        log.settle(ceased);
        assert_eq!(at_risk(&log), 0);
        // A clean slot that nothing is to be feared of is not remembered.
        let before = log.ceasings.len();
        log.append(SLOTS - 2, Change::Unmap);
        assert!(log.ceasings.len() <= before);
        for slot in 0..SLOTS - 2 {
            log.append(slot, Change::Dirty);
        }
        assert!(log.ceasings.is_empty() && log.ceased.is_empty());
        assert_eq!(at_risk(&log), SLOTS as usize - 2);
    }
}
