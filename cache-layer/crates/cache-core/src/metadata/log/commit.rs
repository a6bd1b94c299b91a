//! Commits: the data are synced, then a record claims that all changes up to it count, and is synced
//! as well. Those that are asked for meanwhile share the next one.

use super::super::journal::Event;
use super::{CommitTicket, Log, Queued, Ticket};

/// A commit under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Commit {
    pub(super) number: CommitTicket,
    /// What it makes durable: changes, and records of the generation.
    covers: Ticket,
    generation: u64,
    records: u64,
    stage: CommitStage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommitStage {
    /// Waits for these syncs of the data.
    Data { flash: u64, origin: u64 },
    /// The record that claims it is being written.
    Record,
    /// Waits for this sync of the record.
    Sealed { flash: u64 },
}

impl Log {
    pub(super) fn advance_commit(&mut self) {
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

    pub(super) fn begin_commit(&mut self) {
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
    pub(super) fn claim(&mut self, bytes: &mut Vec<u8>) {
        let Some(commit) = self.commit else { return };
        if commit.generation != self.generation {
            self.commit = None;
            return;
        }
        self.writing_commit = true;
        self.place(Event::Committed(commit.records), bytes);
    }

    pub(super) fn set_commit_stage(&mut self, stage: CommitStage) {
        if let Some(commit) = &mut self.commit {
            commit.stage = stage;
        }
    }

    pub(super) fn end_commit(&mut self, commit: Commit) {
        self.commit = None;
        self.commits_ended = commit.number;
        self.settle(commit.covers);
    }
}
