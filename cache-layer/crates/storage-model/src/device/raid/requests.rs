//! What a host's request is made of: flushes, reads, and writes of each level.

use super::geometry::{Extent, Level};
use super::plan::recovery;
use super::works::{Kind, Stage};
use super::{Epoch, Raid};
use crate::device::{Completion, Device, Op, Request};
use virtual_time::Nanos;

impl<D: Device> Raid<D> {
    /// Sends a request's commands off, as far as no lock holds them up.
    pub(super) fn start_request(
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
            (Op::Discard, _) => self.start_discard(now, host, request, done),
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
    pub(super) fn start_flushes(&mut self, now: Nanos, done: &mut Vec<Completion>) {
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

    pub(super) fn start_read(&mut self, now: Nanos, work: usize) {
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

    /// Whole rows are given up on every member, parity with data. Of a row at either end nothing
    /// is, as in md: its parity would have to follow.
    fn start_discard(
        &mut self,
        now: Nanos,
        host: usize,
        request: &Request,
        done: &mut Vec<Completion>,
    ) {
        let row_bytes = self.spec.geometry.row_bytes();
        let end = (request.offset + request.len) / row_bytes;
        let rows = request.offset.div_ceil(row_bytes)..end;
        if !rows.is_empty() {
            let request = *request;
            let work = self.new_work(host, Kind::Trim { rows, request });
            self.start_or_wait(now, work, done);
        }
    }

    pub(super) fn start_trim(&mut self, now: Nanos, work: usize) {
        let Kind::Trim { rows, request } = self.works[work].kind.clone() else {
            return;
        };
        self.cache.forget(&rows);
        let chunk = self.spec.geometry.chunk_bytes;
        for member in 0..self.members.len() {
            let extent = Extent {
                member,
                offset: rows.start * chunk,
                len: (rows.end - rows.start) * chunk,
            };
            self.command(now, work, extent, &request, Op::Discard);
        }
    }

    pub(super) fn start_copies(&mut self, now: Nanos, work: usize) {
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
}

/// Adds a command, or lengthens the last one of the same member if it goes on there.
pub(super) fn push_joined(extents: &mut Vec<Extent>, extent: Extent) {
    let last = extents
        .iter_mut()
        .rev()
        .find(|known| known.member == extent.member);
    match last {
        Some(known) if known.offset + known.len == extent.offset => known.len += extent.len,
        _ => extents.push(extent),
    }
}
