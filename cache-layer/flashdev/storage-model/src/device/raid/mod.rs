//! Arrays: one device made of several, that works on with some of them gone.
//!
//! A host's request becomes works: a read is one, a write to a level with parity one for each row,
//! as md has it. A work goes through stages, each a set of commands to members that must all be
//! done before the next begins. Rows that are being written are locked, so that no two works mix
//! old and new parity.

pub mod geometry;
pub mod plan;
mod rebuild;
mod row_cache;

use std::collections::VecDeque;
use std::ops::Range;

use serde::Serialize;
use slab::Slab;

use crate::device::{Completion, Device, Op, Request};
use geometry::{Extent, Geometry, Level};
use plan::{recovery, row_write};
use rebuild::Rebuild;
pub use rebuild::RebuildSpec;
use row_cache::RowCache;
use virtual_time::Nanos;

/// What an array is built from; the model checks the values.
#[derive(Clone, Debug, PartialEq)]
pub struct RaidSpec {
    /// How the bytes lie.
    pub geometry: Geometry,
    /// Rows whose content the array remembers.
    pub cached_rows: usize,
    /// Devices at hand that take the place of a failed member.
    pub spares: usize,
    /// What a rebuild may take of the members.
    pub rebuild: RebuildSpec,
    /// How much of each member is in use, bytes.
    pub member_bytes: u64,
}

/// How a member is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    /// In use.
    Active,
    /// Gone; the array works without it if its level allows.
    Failed,
    /// Being filled with what the others know; the share that is done.
    Rebuilding(f64),
}

/// What an array has to tell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RaidStatus {
    /// Of each member.
    pub members: Vec<MemberState>,
    /// Spares left.
    pub spares: usize,
    /// Members read to bring parity up to date, and rows written as whole stripes.
    pub rows: RowCounters,
}

/// How rows were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RowCounters {
    /// Without reading.
    pub full_stripe: u64,
    /// Old data and parity read first.
    pub read_modify_write: u64,
    /// The rest of the row read first.
    pub reconstruct_write: u64,
    /// All that was left read first, as a member was gone.
    pub recovered: u64,
}

/// Why a member cannot fail or be replaced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemberError {
    /// No such member.
    #[error("member {member}: the array has members 0 to {last}")]
    Unknown {
        /// What was asked for.
        member: usize,
        /// The last there is.
        last: usize,
    },
    /// It has failed before.
    #[error("member {0} has failed already: replace it, or name another")]
    Failed(usize),
    /// It is well.
    #[error("member {0} is active: only a failed member is replaced")]
    Active(usize),
    /// The data is gone with it.
    #[error(
        "member {member} cannot be rebuilt: {level} has lost data with it; make the array anew"
    )]
    Lost {
        /// Which one.
        member: usize,
        /// What the array is.
        level: Level,
    },
    /// The model has no array.
    #[error("the device has no array: only members of an array fail and are replaced")]
    NoArray,
}

struct Member<D> {
    device: Option<D>,
    /// Rows from this one on are not on it yet; all of them are: `u64::MAX`.
    filled_rows: u64,
    next_event: Nanos,
    /// Commands under way.
    outstanding: u32,
    /// Where its last command ended.
    position: u64,
}

/// A host's request.
#[derive(Debug)]
struct HostRequest {
    tag: u64,
    works: u32,
    failed: bool,
    /// The number of the epoch that it writes in.
    epoch: Option<u64>,
}

/// Writes between two flushes, on a level where a write goes through stages: a flush must not
/// reach the members before them.
#[derive(Debug, Default)]
struct Epoch {
    /// Under way.
    writes: usize,
    /// The flush that ends it, with the host's request that it is.
    flush: Option<(usize, Request)>,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    Reading,
    Writing,
}

#[derive(Clone, Debug)]
enum Kind {
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
    /// A piece of the rebuild of a member.
    Rebuild { member: usize, stage: Stage },
}

#[derive(Debug)]
struct Work {
    host: usize,
    outstanding: u32,
    /// A member failed under it.
    broken: bool,
    /// Too many are gone for it.
    lost: bool,
    kind: Kind,
}

/// Rows that a work has for itself, or shares with other writes of copies.
#[derive(Debug)]
struct Lock {
    rows: Range<u64>,
    work: usize,
    shared: bool,
}

/// No request of the host's.
const NO_HOST: usize = usize::MAX;
const NEVER: Nanos = Nanos::MAX;

/// Makes a new member in place of a number.
type Fresh<D> = Box<dyn Fn(usize) -> D + Send>;

/// Devices made into one.
pub struct Raid<D> {
    spec: RaidSpec,
    members: Vec<Member<D>>,
    fresh: Fresh<D>,
    spares: usize,
    hosts: Slab<HostRequest>,
    epochs: VecDeque<Epoch>,
    /// Number of the first of them.
    first_epoch: u64,
    works: Slab<Work>,
    locks: Vec<Lock>,
    /// Works that wait for a lock, in order.
    blocked: VecDeque<usize>,
    cache: RowCache,
    rebuild: Rebuild,
    counters: RowCounters,
    next_event: Nanos,
    /// Completed before a member was asked: nothing was left to ask.
    immediate: Vec<Completion>,
    scratch: Vec<Completion>,
    extents: Vec<Extent>,
}

impl<D> std::fmt::Debug for Raid<D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Raid")
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

impl<D: Device> Raid<D> {
    /// An array of new members; `fresh` makes one of a number.
    pub fn new(spec: RaidSpec, fresh: impl Fn(usize) -> D + Send + 'static) -> Raid<D> {
        let member = |number| Member {
            device: Some(fresh(number)),
            filled_rows: u64::MAX,
            next_event: NEVER,
            outstanding: 0,
            position: 0,
        };
        Raid {
            members: (0..spec.geometry.members).map(member).collect(),
            spares: spec.spares,
            hosts: Slab::new(),
            epochs: VecDeque::from([Epoch::default()]),
            first_epoch: 0,
            works: Slab::new(),
            locks: Vec::new(),
            blocked: VecDeque::new(),
            cache: RowCache::new(spec.cached_rows),
            rebuild: Rebuild::new(&spec),
            counters: RowCounters::default(),
            next_event: NEVER,
            immediate: Vec::new(),
            scratch: Vec::new(),
            extents: Vec::new(),
            fresh: Box::new(fresh),
            spec,
        }
    }

    /// The devices that are members now.
    pub fn devices(&self) -> impl Iterator<Item = &D> {
        self.members
            .iter()
            .filter_map(|member| member.device.as_ref())
    }

    /// How the members are.
    pub fn status(&self) -> RaidStatus {
        let rows = self.rebuild.rows().max(1) as f64;
        let state = |member: &Member<D>| match (&member.device, member.filled_rows) {
            (None, _) => MemberState::Failed,
            (Some(_), u64::MAX) => MemberState::Active,
            (Some(_), filled) => MemberState::Rebuilding(filled as f64 / rows),
        };
        RaidStatus {
            members: self.members.iter().map(state).collect(),
            spares: self.spares,
            rows: self.counters,
        }
    }

    /// A member fails at `now`, with everything that is under way on it. A spare takes its place.
    ///
    /// # Errors
    /// There is no such member, or it has failed before.
    pub fn fail(&mut self, now: Nanos, number: usize) -> Result<(), MemberError> {
        self.check(number)?;
        let Some(mut device) = self.members[number].device.take() else {
            return Err(MemberError::Failed(number));
        };
        self.cache.clear();
        self.members[number] = Member {
            device: None,
            filled_rows: 0,
            next_event: NEVER,
            outstanding: 0,
            position: 0,
        };
        self.rebuild.member_failed(number);
        let mut lost = Vec::new();
        while let Some(at) = device.next_event() {
            device.advance(at, &mut lost);
        }
        let mut done = Vec::new();
        for command in lost {
            self.part_done(now, command.tag as usize, true, &mut done);
        }
        self.immediate.append(&mut done);
        if self.spares > 0 && self.is_rebuildable() {
            self.spares -= 1;
            self.fill(now, number);
        }
        self.refresh_next_event();
        Ok(())
    }

    /// A new device takes the place of a failed member, and is rebuilt.
    ///
    /// # Errors
    /// The member is active, unknown, or its data is gone.
    pub fn replace(&mut self, now: Nanos, number: usize) -> Result<(), MemberError> {
        self.check(number)?;
        if self.members[number].device.is_some() {
            return Err(MemberError::Active(number));
        }
        if !self.is_rebuildable() {
            let level = self.spec.geometry.level;
            return Err(MemberError::Lost {
                member: number,
                level,
            });
        }
        self.fill(now, number);
        self.refresh_next_event();
        Ok(())
    }

    fn check(&self, member: usize) -> Result<(), MemberError> {
        let last = self.members.len() - 1;
        match member <= last {
            true => Ok(()),
            false => Err(MemberError::Unknown { member, last }),
        }
    }

    /// Whether what a failed member held can be worked out from the others.
    fn is_rebuildable(&self) -> bool {
        let geometry = &self.spec.geometry;
        let complete = |member: usize| self.members[member].filled_rows == u64::MAX;
        let gone = (0..self.members.len()).filter(|&m| !complete(m)).count();
        match geometry.level {
            Level::Raid0 => false,
            Level::Raid1 => gone < self.members.len(),
            Level::Raid10 => (0..geometry.units()).all(|u| complete(2 * u) || complete(2 * u + 1)),
            level => gone <= level.parities(),
        }
    }

    fn fill(&mut self, now: Nanos, number: usize) {
        self.members[number].device = Some((self.fresh)(number));
        self.rebuild.add(now, number);
    }

    fn is_live(&self, member: usize, row: u64) -> bool {
        let member = &self.members[member];
        member.device.is_some() && row < member.filled_rows
    }

    /// Sends a command of a work to a member.
    fn command(&mut self, now: Nanos, work: usize, extent: Extent, like: &Request, op: Op) {
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

    fn new_work(&mut self, host: usize, kind: Kind) -> usize {
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

    /// Sends a request's commands off, as far as no lock holds them up.
    fn start_request(
        &mut self,
        now: Nanos,
        host: usize,
        request: &Request,
        done: &mut Vec<Completion>,
    ) {
        match (request.op, self.spec.geometry.level) {
            (Op::Flush, Level::Raid0) => self.start_flush(now, host, request, done),
            (Op::Flush, _) => self.end_epoch(now, host, request, done),
            (_, Level::Raid0) => self.start_striped(now, host, request, done),
            (Op::Read, _) => {
                let work = self.new_work(host, Kind::Read(*request));
                self.start_read(now, work);
                self.finish_if_idle(now, work, done);
            }
            (Op::Write | Op::Discard, Level::Raid1 | Level::Raid10) => {
                let work = self.new_work(host, Kind::Copies(*request));
                self.start_or_wait(now, work, done);
            }
            (Op::Write, _) => self.start_rows(now, host, request, done),
            // The parity of a row with trimmed units would have to follow; arrays do without.
            (Op::Discard, _) => {}
        }
    }

    fn end_epoch(
        &mut self,
        now: Nanos,
        host: usize,
        request: &Request,
        done: &mut Vec<Completion>,
    ) {
        self.hosts[host].works += 1;
        if let Some(epoch) = self.epochs.back_mut() {
            epoch.flush = Some((host, *request));
        }
        self.epochs.push_back(Epoch::default());
        self.start_flushes(now, done);
    }

    /// Starts the flushes that have no write left to wait for.
    fn start_flushes(&mut self, now: Nanos, done: &mut Vec<Completion>) {
        while let Some(&Epoch {
            writes: 0,
            flush: Some((host, request)),
        }) = self.epochs.front()
        {
            self.epochs.pop_front();
            self.first_epoch += 1;
            self.start_flush(now, host, &request, done);
            self.host_part_done(now, host, done);
        }
    }

    fn start_flush(
        &mut self,
        now: Nanos,
        host: usize,
        request: &Request,
        done: &mut Vec<Completion>,
    ) {
        let work = self.new_work(host, Kind::Direct);
        for member in 0..self.members.len() {
            let extent = Extent {
                member,
                offset: 0,
                len: 0,
            };
            self.command(now, work, extent, request, Op::Flush);
        }
        self.finish_if_idle(now, work, done);
    }

    /// What a striped request has on one member is contiguous there, so it is one command.
    fn start_striped(
        &mut self,
        now: Nanos,
        host: usize,
        request: &Request,
        done: &mut Vec<Completion>,
    ) {
        let work = self.new_work(host, Kind::Direct);
        let chunk = self.spec.geometry.chunk_bytes;
        let members = self.members.len() as u64;
        let (start, end) = (request.offset, request.offset + request.len);
        let (first, last) = (start / chunk, (end.max(start + 1) - 1) / chunk);
        for unit in first..=last.min(first + members - 1) {
            // The last chunk of the request on the same member.
            let last_here = unit + (last - unit) / members * members;
            let from = if unit == first { start % chunk } else { 0 };
            let to = if last_here == last {
                end - last * chunk
            } else {
                chunk
            };
            let rows = (last_here - unit) / members;
            let extent = Extent {
                member: (unit % members) as usize,
                offset: unit / members * chunk + from,
                len: rows * chunk + to - from,
            };
            if self.members[extent.member].device.is_none() {
                self.works[work].lost = true;
                continue;
            }
            self.command(now, work, extent, request, request.op);
        }
        self.finish_if_idle(now, work, done);
    }

    fn start_read(&mut self, now: Nanos, work: usize) {
        let Kind::Read(request) = self.works[work].kind else {
            return;
        };
        let mut extents = std::mem::take(&mut self.extents);
        let complete = self.plan_read(&request, &mut extents);
        for extent in extents.drain(..).filter(|_| complete) {
            self.command(now, work, extent, &request, Op::Read);
        }
        self.extents = extents;
        self.works[work].lost = !complete;
    }

    /// The commands of a read; false if some of its bytes are lost.
    fn plan_read(&self, request: &Request, extents: &mut Vec<Extent>) -> bool {
        let geometry = &self.spec.geometry;
        let (mut at, end) = (request.offset, request.offset + request.len);
        while at < end {
            let (row, unit, within) = geometry.locate(at);
            let len = (geometry.chunk_bytes - within).min(end - at);
            let member = self.source(row, unit, within);
            let live = |other| self.is_live(other, row);
            if let Some(member) = member {
                push_joined(extents, geometry.extent(row, member, within, len));
            } else if let Some(sources) = (geometry.level.parities() > 0)
                .then(|| {
                    recovery(
                        geometry,
                        &live,
                        row,
                        geometry.data_member(row, unit),
                        within,
                        len,
                    )
                })
                .flatten()
            {
                sources
                    .into_iter()
                    .for_each(|extent| push_joined(extents, extent));
            } else {
                return false;
            }
            at += len;
        }
        true
    }

    /// The member to read a unit from: of copies the one with the fewest commands, then the one
    /// whose last command ended nearest.
    fn source(&self, row: u64, unit: usize, within: u64) -> Option<usize> {
        let offset = row * self.spec.geometry.chunk_bytes + within;
        self.spec
            .geometry
            .copies(row, unit)
            .filter(|&member| self.is_live(member, row))
            .min_by_key(|&member| {
                let member = &self.members[member];
                (member.outstanding, member.position.abs_diff(offset))
            })
    }

    fn start_copies(&mut self, now: Nanos, work: usize) {
        let Kind::Copies(request) = self.works[work].kind else {
            return;
        };
        let geometry = self.spec.geometry;
        let mut extents = std::mem::take(&mut self.extents);
        let (mut at, end) = (request.offset, request.offset + request.len);
        while at < end {
            let (row, unit, within) = geometry.locate(at);
            let len = (geometry.chunk_bytes - within).min(end - at);
            let mut written = false;
            for member in geometry.copies(row, unit) {
                // One that is being rebuilt gets everything new, so the rebuild never falls back.
                if self.members[member].device.is_some() {
                    push_joined(&mut extents, geometry.extent(row, member, within, len));
                    written = true;
                }
            }
            self.works[work].lost |= !written;
            at += len;
        }
        for extent in extents.drain(..) {
            self.command(now, work, extent, &request, request.op);
        }
        self.extents = extents;
    }

    fn start_rows(
        &mut self,
        now: Nanos,
        host: usize,
        request: &Request,
        done: &mut Vec<Completion>,
    ) {
        let row_bytes = self.spec.geometry.row_bytes();
        let (start, end) = (request.offset, request.offset + request.len);
        for row in start / row_bytes..end.div_ceil(row_bytes) {
            let from = start.max(row * row_bytes) - row * row_bytes;
            let to = end.min((row + 1) * row_bytes) - row * row_bytes;
            let work = self.new_work(
                host,
                Kind::Row {
                    row,
                    from,
                    to,
                    request: *request,
                    writes: Vec::new(),
                    stage: Stage::Reading,
                },
            );
            self.start_or_wait(now, work, done);
        }
    }

    /// Begins a write if its rows are free.
    fn start_or_wait(&mut self, now: Nanos, work: usize, done: &mut Vec<Completion>) {
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
            _ => self.start_row(now, work),
        }
        self.finish_if_idle(now, work, done);
    }

    /// The rows that a write needs, and whether others may write them as well.
    fn rows_of(&self, work: usize) -> (Range<u64>, bool) {
        match &self.works[work].kind {
            Kind::Row { row, .. } => (*row..row + 1, false),
            Kind::Copies(request) => {
                let row = |offset| self.spec.geometry.locate(offset).0;
                let last = row(request.offset + request.len.max(1) - 1);
                (row(request.offset)..last + 1, true)
            }
            _ => (0..0, true),
        }
    }

    fn take_lock(&mut self, rows: Range<u64>, work: usize, shared: bool) -> bool {
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
    fn part_done(&mut self, now: Nanos, number: usize, failed: bool, done: &mut Vec<Completion>) {
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
            Kind::Copies(_) | Kind::Direct | Kind::Read(_) => self.finish(now, number, done),
        }
    }

    /// Ends a work that has no command under way: it failed, or there was nothing to do.
    fn finish_if_idle(&mut self, now: Nanos, number: usize, done: &mut Vec<Completion>) {
        let Some(work) = self.works.get(number) else {
            return;
        };
        if work.outstanding == 0 {
            self.finish(now, number, done);
        }
    }

    fn finish(&mut self, now: Nanos, number: usize, done: &mut Vec<Completion>) {
        let work = self.works.remove(number);
        let locks = matches!(
            work.kind,
            Kind::Row { .. } | Kind::Copies(_) | Kind::Rebuild { .. }
        );
        if work.host != NO_HOST {
            self.hosts[work.host].failed |= work.lost;
            self.host_part_done(now, work.host, done);
        }
        if locks {
            self.unlock(now, number, done);
        }
    }

    fn host_part_done(&mut self, now: Nanos, number: usize, done: &mut Vec<Completion>) {
        let host = &mut self.hosts[number];
        host.works -= 1;
        if host.works > 0 {
            return;
        }
        let HostRequest {
            tag, failed, epoch, ..
        } = self.hosts.remove(number);
        done.push(Completion {
            tag,
            at: now,
            failed,
        });
        if let Some(epoch) = epoch {
            self.epochs[(epoch - self.first_epoch) as usize].writes -= 1;
            self.start_flushes(now, done);
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

    /// Takes in what the members have done by `at`.
    fn advance_members(&mut self, at: Nanos, done: &mut Vec<Completion>) {
        for number in 0..self.members.len() {
            let member = &mut self.members[number];
            if member.next_event > at {
                continue;
            }
            let Some(device) = &mut member.device else {
                continue;
            };
            let mut ended = std::mem::take(&mut self.scratch);
            device.advance(at, &mut ended);
            member.next_event = device.next_event().unwrap_or(NEVER);
            member.outstanding -= ended.len() as u32;
            for command in ended.drain(..) {
                self.part_done(at, command.tag as usize, command.failed, done);
            }
            self.scratch = ended;
        }
    }

    fn refresh_next_event(&mut self) {
        let members = self.members.iter().map(|member| member.next_event);
        let immediate = match self.immediate.first() {
            Some(completion) => completion.at,
            None => NEVER,
        };
        self.next_event = members
            .chain([self.rebuild.due_at(), immediate])
            .min()
            .unwrap_or(NEVER);
    }
}

/// Adds a command, or lengthens the last one of the same member if it goes on there.
fn push_joined(extents: &mut Vec<Extent>, extent: Extent) {
    let last = extents
        .iter_mut()
        .rev()
        .find(|known| known.member == extent.member);
    match last {
        Some(known) if known.offset + known.len == extent.offset => known.len += extent.len,
        _ => extents.push(extent),
    }
}

impl<D: Device> Device for Raid<D> {
    fn submit(&mut self, now: Nanos, request: Request) {
        self.rebuild.disturbed |= matches!(request.op, Op::Read | Op::Write);
        let staged = request.op == Op::Write && self.spec.geometry.level != Level::Raid0;
        let epoch = staged.then(|| self.first_epoch + self.epochs.len() as u64 - 1);
        if let (Some(_), Some(last)) = (epoch, self.epochs.back_mut()) {
            last.writes += 1;
        }
        let host = self.hosts.insert(HostRequest {
            tag: request.tag,
            // Held until everything is sent off, so that nothing completes half-way.
            works: 1,
            failed: false,
            epoch,
        });
        let mut done = std::mem::take(&mut self.immediate);
        self.start_request(now, host, &request, &mut done);
        self.host_part_done(now, host, &mut done);
        if !done.is_empty() {
            self.next_event = self.next_event.min(done[0].at);
        }
        self.immediate = done;
    }

    fn next_event(&self) -> Option<Nanos> {
        (self.next_event != NEVER).then_some(self.next_event)
    }

    fn advance(&mut self, to: Nanos, done: &mut Vec<Completion>) {
        while self.next_event <= to {
            let at = self.next_event;
            done.append(&mut self.immediate);
            self.advance_members(at, done);
            self.continue_rebuild(at);
            self.refresh_next_event();
        }
    }

    fn volatile_bytes(&self, now: Nanos) -> u64 {
        // What the host wrote is on each member at most once; parity and copies are extra.
        let members = self.devices().map(|device| device.volatile_bytes(now));
        let all: u64 = members.sum();
        let geometry = &self.spec.geometry;
        all * geometry.units() as u64 / geometry.members as u64
    }
}

#[cfg(test)]
mod tests;
