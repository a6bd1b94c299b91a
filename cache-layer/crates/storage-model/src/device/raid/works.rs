//! Works and their stages: commands to members, the rows locked for them, and what follows when the
//! last command of a stage has ended.

use std::ops::Range;

use super::geometry::{Extent, Level};
use super::plan::{self, row_write};
use super::{NEVER, NO_HOST, Raid};
use crate::device::{Completion, Device, Op, Request};
use virtual_time::Nanos;

#[derive(Clone, Copy, Debug)]
pub(super) enum Stage {
    Reading,
    Writing,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    /// Reads from wherever the data is; done when they are.
    Read(Request),
    /// Commands that need no second stage and no parity.
    Direct,
    /// A write to members with copies; waits for no other, only for a rebuild.
    Copies(Request),
    /// A write of a range of one row's data.
    Row {
        row: u64,
        from: u64,
        to: u64,
        request: Request,
        writes: Vec<Extent>,
        stage: Stage,
    },
    /// Whole rows that are not needed any more.
    Trim { rows: Range<u64>, request: Request },
    /// A piece of the rebuild of a member.
    Rebuild { member: usize, stage: Stage },
}

#[derive(Debug)]
pub(super) struct Work {
    pub(super) host: usize,
    pub(super) outstanding: u32,
    /// A member failed under it.
    pub(super) broken: bool,
    /// Too many are gone for it.
    pub(super) lost: bool,
    pub(super) kind: Kind,
}

/// Rows that a work has for itself, or shares with other writes of copies.
#[derive(Debug)]
pub(super) struct Lock {
    pub(super) rows: Range<u64>,
    pub(super) work: usize,
    pub(super) shared: bool,
}

impl<D: Device> Raid<D> {
    pub(super) fn new_work(&mut self, host: usize, kind: Kind) -> usize {
        if host != NO_HOST {
            self.hosts[host].works += 1;
        }
        self.works.insert(Work {
            host,
            outstanding: 0,
            broken: false,
            lost: false,
            kind,
        })
    }

    /// Sends a command of a work to a member.
    pub(super) fn command(
        &mut self,
        now: Nanos,
        work: usize,
        extent: Extent,
        like: &Request,
        op: Op,
    ) {
        let member = &mut self.members[extent.member];
        let Some(device) = &mut member.device else {
            // Its place on a level with redundancy: what the others get is enough.
            return;
        };
        device.submit(
            now,
            Request {
                tag: work as u64,
                op,
                offset: extent.offset,
                len: extent.len,
                host_len: like.host_len,
                head_start: like.head_start,
            },
        );
        member.outstanding += 1;
        member.position = extent.offset + extent.len;
        member.next_event = device.next_event().unwrap_or(NEVER);
        self.next_event = self.next_event.min(member.next_event);
        self.works[work].outstanding += 1;
    }

    /// Begins a write if its rows are free.
    pub(super) fn start_or_wait(&mut self, now: Nanos, work: usize, done: &mut Vec<Completion>) {
        match self.take_its_lock(work) {
            true => self.start_locked(now, work, done),
            false => self.blocked.push_back(work),
        }
    }

    fn take_its_lock(&mut self, work: usize) -> bool {
        let (rows, shared) = self.rows_of(work);
        self.take_lock(rows, work, shared)
    }

    fn start_locked(&mut self, now: Nanos, work: usize, done: &mut Vec<Completion>) {
        match self.works[work].kind {
            Kind::Copies(_) => self.start_copies(now, work),
            Kind::Trim { .. } => self.start_trim(now, work),
            _ => self.start_row(now, work),
        }
        self.finish_if_idle(now, work, done);
    }

    /// The rows that a write needs, and whether others may write them as well.
    fn rows_of(&self, work: usize) -> (Range<u64>, bool) {
        match &self.works[work].kind {
            Kind::Row { row, .. } => (*row..row + 1, false),
            Kind::Trim { rows, .. } => (rows.clone(), false),
            Kind::Copies(request) => {
                let row = |offset| self.spec.geometry.locate(offset).0;
                let last = row(request.offset + request.len.max(1) - 1);
                (row(request.offset)..last + 1, true)
            }
            _ => (0..0, true),
        }
    }

    pub(super) fn take_lock(&mut self, rows: Range<u64>, work: usize, shared: bool) -> bool {
        let free = self.locks.iter().all(|lock| {
            let apart = lock.rows.end <= rows.start || rows.end <= lock.rows.start;
            apart || (shared && lock.shared)
        });
        if free {
            self.locks.push(Lock { rows, work, shared });
        }
        free
    }

    fn start_row(&mut self, now: Nanos, work: usize) {
        let Kind::Row {
            row,
            from,
            to,
            request,
            ..
        } = self.works[work].kind
        else {
            return;
        };
        let live = |member| self.is_live(member, row);
        let known = self.cache.known(row);
        let plan = row_write(&self.spec.geometry, &live, row, from, to, known);
        self.works[work].lost = plan.is_none();
        let Some(plan) = plan else { return };
        match plan.method {
            plan::Method::FullStripe => self.counters.full_stripe += 1,
            plan::Method::ReadModifyWrite => self.counters.read_modify_write += 1,
            plan::Method::ReconstructWrite => self.counters.reconstruct_write += 1,
            plan::Method::Recover => self.counters.recovered += 1,
            plan::Method::NoParity => {}
        }
        let first_stage = Request {
            head_start: 0,
            ..request
        };
        let nothing_to_read = plan.reads.is_empty();
        if let Kind::Row { writes, stage, .. } = &mut self.works[work].kind {
            *writes = plan.writes.into_vec();
            *stage = Stage::Reading;
        }
        for extent in plan.reads {
            self.command(now, work, extent, &first_stage, Op::Read);
        }
        if nothing_to_read {
            self.write_row(now, work);
        }
    }

    fn write_row(&mut self, now: Nanos, work: usize) {
        let Kind::Row {
            writes,
            stage,
            request,
            ..
        } = &mut self.works[work].kind
        else {
            return;
        };
        *stage = Stage::Writing;
        let (writes, request) = (std::mem::take(writes), *request);
        for extent in writes {
            self.command(now, work, extent, &request, Op::Write);
        }
    }

    /// A command of a work has ended.
    pub(super) fn part_done(
        &mut self,
        now: Nanos,
        number: usize,
        failed: bool,
        done: &mut Vec<Completion>,
    ) {
        let work = &mut self.works[number];
        work.outstanding -= 1;
        work.broken |= failed;
        if work.outstanding == 0 {
            self.stage_done(now, number, done);
        }
    }

    /// A stage of a work has ended: starts the next, or the same again if a member failed under it.
    fn stage_done(&mut self, now: Nanos, number: usize, done: &mut Vec<Completion>) {
        let redundant = self.spec.geometry.level != Level::Raid0;
        let work = &mut self.works[number];
        let broken = std::mem::take(&mut work.broken);
        work.lost |= broken && !redundant;
        match &work.kind {
            Kind::Rebuild { member, stage } => {
                let (member, stage) = (*member, *stage);
                self.rebuild_stage_done(now, number, member, stage, broken);
            }
            Kind::Read(_) if broken => {
                self.start_read(now, number);
                self.finish_if_idle(now, number, done);
            }
            Kind::Row {
                stage: Stage::Reading,
                ..
            } => {
                match broken {
                    true => self.start_row(now, number),
                    false => self.write_row(now, number),
                }
                self.finish_if_idle(now, number, done);
            }
            // What a failed member did not take, the others make up for.
            Kind::Row { row, from, to, .. } => {
                let (row, from, to) = (*row, *from, *to);
                if !broken {
                    self.cache.written(row, from, to);
                }
                self.finish(now, number, done);
            }
            Kind::Copies(_) | Kind::Direct | Kind::Read(_) | Kind::Trim { .. } => {
                self.finish(now, number, done);
            }
        }
    }

    /// Ends a work that has no command under way: it failed, or there was nothing to do.
    pub(super) fn finish_if_idle(&mut self, now: Nanos, number: usize, done: &mut Vec<Completion>) {
        let Some(work) = self.works.get(number) else {
            return;
        };
        if work.outstanding == 0 {
            self.finish(now, number, done);
        }
    }

    pub(super) fn finish(&mut self, now: Nanos, number: usize, done: &mut Vec<Completion>) {
        let work = self.works.remove(number);
        let locks = matches!(
            work.kind,
            Kind::Row { .. } | Kind::Copies(_) | Kind::Trim { .. } | Kind::Rebuild { .. }
        );
        if work.host != NO_HOST {
            self.hosts[work.host].failed |= work.lost;
            self.host_part_done(now, work.host, done);
        }
        if locks {
            self.unlock(now, number, done);
        }
    }

    /// Gives a work's rows to those that wait for them.
    fn unlock(&mut self, now: Nanos, work: usize, done: &mut Vec<Completion>) {
        let Some(index) = self.locks.iter().position(|lock| lock.work == work) else {
            return;
        };
        let freed = self.locks.swap_remove(index).rows;
        let mut index = 0;
        while index < self.blocked.len() {
            let waiting = self.blocked[index];
            let (rows, _) = self.rows_of(waiting);
            let concerned = rows.start < freed.end && freed.start < rows.end;
            if concerned && self.take_its_lock(waiting) {
                self.blocked.remove(index);
                self.start_locked(now, waiting, done);
                // If it could not be done at all, others have been started meanwhile.
                index = 0;
            } else {
                index += 1;
            }
        }
    }
}
