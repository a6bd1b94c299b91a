//! Checkpoints: the slots as they were when one began are written page by page, synced, and named by
//! a superblock.

use std::collections::HashMap;

use super::super::journal::Event;
use super::super::slots::{Content, Entry};
use super::super::superblock::Superblock;
use super::super::table;
use super::{Log, LogIo, LogPart, Ticket};
use crate::layout::{ENTRIES_PER_PAGE, PAGE_BYTES};
use crate::policy::Slot;

/// Pages of a table written at a time: few enough that neither a slow flash is kept from its hits, nor
/// whoever waits while the pages are put together.
const BATCH_PAGES: usize = 4;

/// A checkpoint under way.
#[derive(Debug)]
pub(super) struct Checkpoint {
    pub(super) superblock: Superblock,
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
pub(super) enum CheckpointStage {
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

impl Log {
    pub(super) fn wants_to_close(&self) -> bool {
        let quiet = self.queue.is_empty() && !self.writing && self.commit.is_none();
        self.closing && quiet && self.checkpoint.is_none()
    }

    /// Changes go to the journal of the next generation from now on.
    pub(super) fn begin_checkpoint(&mut self, closed: bool) {
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
    pub(super) fn save_page(&mut self, page: usize) {
        let Some(checkpoint) = &mut self.checkpoint else {
            return;
        };
        if page >= checkpoint.next_page && !checkpoint.saved.contains_key(&page) {
            let entries = page_of(&self.entries, page).to_vec();
            checkpoint.saved.insert(page, entries);
        }
    }

    pub(super) fn write_checkpoint(&mut self, heat: impl Fn(Slot) -> u8) -> Option<LogIo> {
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

    pub(super) fn checkpoint_written(&mut self) {
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

    pub(super) fn advance_checkpoint(&mut self) {
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
