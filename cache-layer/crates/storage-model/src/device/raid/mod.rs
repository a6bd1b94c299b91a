//! Arrays: one device made of several, that works on with some of them gone.
//!
//! A host's request becomes works: a read is one, a write to a level with parity one for each row,
//! as md has it. A work goes through stages, each a set of commands to members that must all be
//! done before the next begins. Rows that are being written are locked, so that no two works mix
//! old and new parity.

pub(crate) mod geometry;
mod members;
mod plan;
mod rebuild;
mod requests;
mod row_cache;
mod works;

use std::collections::VecDeque;

use slab::Slab;

use crate::device::{Completion, Device, Op, Request};
use geometry::{Extent, Geometry, Level};
pub use members::{MemberError, RaidStatus, RowCounters};
use rebuild::Rebuild;
pub use rebuild::RebuildSpec;
use row_cache::RowCache;
use virtual_time::Nanos;
use works::{Lock, Work};

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
