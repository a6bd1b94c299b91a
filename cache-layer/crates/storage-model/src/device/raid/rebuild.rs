//! Filling a new member with what the others know, while the host goes on.

use std::collections::VecDeque;

use super::geometry::{Extent, Level};
use super::plan::recovery;
use super::requests::push_joined;
use super::works::{Kind, Stage};
use super::{NEVER, NO_HOST, Raid, RaidSpec};
use crate::device::{Device, Op, Request};
use virtual_time::{NANOS_PER_S, Nanos};

/// How much of each member a rebuild works on at once, bytes; at least a chunk.
const STEP_BYTES: u64 = 1 << 20;

/// What a rebuild may take of the members; md's `speed_limit_min` and `speed_limit_max`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RebuildSpec {
    /// Of each member, MB/s, while the host works.
    pub mb_per_s_min: f64,
    /// While it does not.
    pub mb_per_s_max: f64,
}

/// The rebuild of one member after the other.
#[derive(Debug)]
pub(super) struct Rebuild {
    spec: RebuildSpec,
    rows: u64,
    rows_per_step: u64,
    step_bytes: u64,
    /// Members to rebuild; the first is under way.
    queue: VecDeque<usize>,
    /// When the next step may begin; `NEVER` while one is under way, or nothing is to do.
    due_at: Nanos,
    began_at: Nanos,
    /// The host has worked since the last step.
    pub(super) disturbed: bool,
}

impl Rebuild {
    pub(super) fn new(spec: &RaidSpec) -> Rebuild {
        let chunk = spec.geometry.chunk_bytes;
        let rows_per_step = (STEP_BYTES / chunk).max(1);
        Rebuild {
            spec: spec.rebuild,
            rows: spec.member_bytes.div_ceil(chunk),
            rows_per_step,
            step_bytes: rows_per_step * chunk,
            queue: VecDeque::new(),
            due_at: NEVER,
            began_at: 0,
            disturbed: false,
        }
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows
    }

    pub(super) fn due_at(&self) -> Nanos {
        self.due_at
    }

    pub(super) fn add(&mut self, now: Nanos, member: usize) {
        self.queue.push_back(member);
        if self.queue.len() == 1 {
            self.due_at = now;
        }
    }

    pub(super) fn member_failed(&mut self, member: usize) {
        self.queue.retain(|&other| other != member);
    }

    /// The time that a step takes at the rate that is allowed now.
    fn pace(&mut self) -> Nanos {
        let disturbed = std::mem::take(&mut self.disturbed);
        let mb_per_s = match disturbed {
            true => self.spec.mb_per_s_min,
            false => self.spec.mb_per_s_max,
        };
        (self.step_bytes as f64 / (mb_per_s * 1e6) * NANOS_PER_S) as Nanos
    }
}

impl<D: Device> Raid<D> {
    /// Begins the next step if it is due and its rows are free.
    pub(super) fn continue_rebuild(&mut self, now: Nanos) {
        if self.rebuild.due_at > now {
            return;
        }
        let Some(&member) = self.rebuild.queue.front() else {
            self.rebuild.due_at = NEVER;
            return;
        };
        let first = self.members[member].filled_rows;
        let rows = first..(first + self.rebuild.rows_per_step).min(self.rebuild.rows);
        let work = self.new_work(
            NO_HOST,
            Kind::Rebuild {
                member,
                stage: Stage::Reading,
            },
        );
        if !self.take_lock(rows.clone(), work, false) {
            self.works.remove(work);
            // A write is under way there; it takes some milliseconds at the most.
            self.rebuild.due_at = now + 1_000_000;
            return;
        }
        self.rebuild.due_at = NEVER;
        self.rebuild.began_at = now;
        let like = Request::whole(0, Op::Read, 0, self.rebuild.step_bytes);
        for extent in self.rebuild_sources(member, rows) {
            self.command(now, work, extent, &like, Op::Read);
        }
        if self.works[work].outstanding == 0 {
            // Too little is left: what is gone stays so.
            self.rebuild.queue.pop_front();
            self.rebuild_stage_done(now, work, member, Stage::Reading, true);
        }
    }

    /// What to read for these rows of a member, of each other one at most one run.
    fn rebuild_sources(&self, member: usize, rows: std::ops::Range<u64>) -> Vec<Extent> {
        let geometry = &self.spec.geometry;
        let mut extents = Vec::new();
        let mut add = |extent| push_joined(&mut extents, extent);
        for row in rows {
            let live = |other| self.is_live(other, row);
            let chunk = geometry.chunk_bytes;
            match geometry.level {
                Level::Raid0 => {}
                Level::Raid1 | Level::Raid10 => {
                    let unit = match geometry.level {
                        Level::Raid1 => 0,
                        _ => member / 2,
                    };
                    let mut copies = geometry.copies(row, unit);
                    if let Some(other) = copies.find(|&other| other != member && live(other)) {
                        add(geometry.extent(row, other, 0, chunk));
                    }
                }
                _ => {
                    let sources = recovery(geometry, &live, row, member, 0, chunk);
                    sources.into_iter().flatten().for_each(&mut add);
                }
            }
        }
        extents
    }

    pub(super) fn rebuild_stage_done(
        &mut self,
        now: Nanos,
        work: usize,
        member: usize,
        stage: Stage,
        broken: bool,
    ) {
        let locked = self.locks.iter().find(|lock| lock.work == work);
        let rows = locked.map_or(0..0, |lock| lock.rows.clone());
        // The member may have failed, and a spare have taken its place, in the meantime.
        let is_on = !broken
            && self.rebuild.queue.front() == Some(&member)
            && self.members[member].filled_rows == rows.start;
        match stage {
            Stage::Reading if is_on => {
                let mut extent = self.spec.geometry.extent(rows.start, member, 0, 0);
                extent.len = (rows.end - rows.start) * self.spec.geometry.chunk_bytes;
                self.works[work].kind = Kind::Rebuild {
                    member,
                    stage: Stage::Writing,
                };
                let like = Request::whole(0, Op::Write, 0, extent.len);
                self.command(now, work, extent, &like, Op::Write);
                return;
            }
            Stage::Writing if is_on => self.filled(member, rows.end),
            _ => {}
        }
        let mut done = Vec::new();
        self.finish(now, work, &mut done);
        self.immediate.append(&mut done);
        let pace = self.rebuild.pace();
        self.rebuild.due_at = match (self.rebuild.queue.is_empty(), is_on) {
            (true, _) => NEVER,
            (false, true) => now.max(self.rebuild.began_at + pace),
            // Another member may be back by then.
            (false, false) => now + pace.max(1_000_000),
        };
    }

    fn filled(&mut self, member: usize, rows: u64) {
        if rows >= self.rebuild.rows {
            self.members[member].filled_rows = u64::MAX;
            self.rebuild.queue.pop_front();
        } else {
            self.members[member].filled_rows = rows;
        }
    }
}
