//! The way of a request. Nothing here waits: what cannot go on is put aside, with a note of what it
//! waits for.

use virtual_time::Nanos;

use super::action::{
    Buffer, Device, Direction, Errno, Health, IoState, Mode, Piece, Request, RequestId,
};
use super::health::Stranded;
use super::{Action, BlockLock, Continuation, Engine, Waiting};
use crate::metadata::Change;
use crate::policy::{Access, Block, Slot};

/// A request that is not through.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) id: RequestId,
    pub(super) offset: u64,
    pub(super) write: bool,
    pub(super) discard: bool,
    pub(super) parts_left: u32,
    pub(super) error: Option<Errno>,
}

/// A part of a request, on the flash.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    pub(super) request: usize,
    pub(super) piece: Piece,
    pub(super) slot: Slot,
    pub(super) count: u32,
    pub(super) ticks: bool,
}

/// Where a piece goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Route {
    Flash {
        slot: Slot,
        ticks: bool,
    },
    Origin {
        ticks: bool,
    },
    /// It was put aside, or sent on its way already.
    Elsewhere,
}

impl Engine {
    pub(super) fn begin_request(&mut self, now: Nanos, id: RequestId, request: Request) {
        let (offset, len, write) = match request {
            Request::Read { offset, len } => (offset, len, false),
            Request::Write { offset, len } | Request::Discard { offset, len } => {
                (offset, len, true)
            }
            Request::Flush | Request::FlushVolume => (0, 0, false),
        };
        // The request itself is a part until all others are known.
        let index = self.requests.insert(Pending {
            id,
            offset,
            write,
            discard: matches!(request, Request::Discard { .. }),
            parts_left: 1,
            error: None,
        });
        if self.closed {
            return self.part_done(now, index, Err(Errno::ESHUTDOWN));
        }
        match request {
            Request::Read { .. } | Request::Write { .. } | Request::Discard { .. } => {
                self.route_all(now, index, offset, len);
                self.part_done(now, index, Ok(()));
            }
            Request::Flush => self.flush(now, index),
            Request::FlushVolume => self.flush_volume(now, index),
        }
    }

    /// Sends all of a request on its way; neighbours that go the same way, as one I/O each.
    fn route_all(&mut self, now: Nanos, request: usize, offset: u64, len: u32) {
        let mut run: Option<IoState> = None;
        for piece in self.pieces(offset, len) {
            let waiting = Waiting {
                request,
                piece,
                counted: false,
            };
            let Some(state) = self.routed(now, waiting) else {
                continue;
            };
            run = match run.map(|run| join(run, state)) {
                None => Some(state),
                Some(Some(joined)) => Some(joined),
                Some(None) => {
                    self.send(run);
                    Some(state)
                }
            };
        }
        self.send(run);
    }

    /// The I/O that a piece needs, if it is to be sent now.
    fn routed(&mut self, now: Nanos, waiting: Waiting) -> Option<IoState> {
        let Waiting { request, piece, .. } = waiting;
        let Pending { write, discard, .. } = self.requests[request];
        let count = 1;
        let route = match discard {
            false => self.route(now, waiting, write),
            true => self.route_discard(now, waiting),
        };
        match route {
            Route::Elsewhere => None,
            Route::Flash { slot, ticks } => Some(IoState::Hit {
                request,
                write,
                piece,
                slot,
                count,
                ticks,
            }),
            Route::Origin { .. } if discard => Some(IoState::Discard {
                request,
                piece,
                count,
            }),
            Route::Origin { ticks } => Some(IoState::Miss {
                request,
                write,
                piece,
                count,
                ticks,
            }),
        }
    }

    /// Takes up a piece that had to wait.
    pub(super) fn resume(&mut self, now: Nanos, waiting: Waiting) {
        let state = self.routed(now, waiting);
        self.send(state);
        // What it was counted as while it waited.
        self.part_done(now, waiting.request, Ok(()));
    }

    /// Puts a piece aside; it is a part of its request until [`Engine::resume`].
    pub(super) fn put_aside(&mut self, waiting: Waiting) {
        self.requests[waiting.request].parts_left += 1;
    }

    pub(super) fn send(&mut self, run: Option<IoState>) {
        let Some(state) = run else { return };
        if let IoState::Discard { request, piece, .. } = state {
            self.requests[request].parts_left += 1;
            return self.discard_range(state, piece.offset, piece.len);
        }
        let (request, write, piece, device, offset) = match state {
            IoState::Hit {
                request,
                write,
                piece,
                slot,
                ..
            } => {
                let within = piece.offset % self.config.layout.block_bytes;
                let offset = self.slot_offset(slot) + within;
                (request, write, piece, Device::Flash, offset)
            }
            IoState::Extend {
                request,
                piece,
                slot,
                ..
            } => {
                let within = piece.offset % self.config.layout.block_bytes;
                let offset = self.slot_offset(slot) + within;
                (request, true, piece, Device::Flash, offset)
            }
            IoState::Miss {
                request,
                write,
                piece,
                ..
            } => (request, write, piece, Device::Origin, piece.offset),
            _ => return,
        };
        let pending = &mut self.requests[request];
        pending.parts_left += 1;
        let buffer = Buffer::Request {
            id: pending.id,
            at: (piece.offset - pending.offset) as u32,
        };
        let direction = match write {
            true => Direction::Write,
            false => Direction::Read,
        };
        self.transfer(state, device, direction, (offset, piece.len), buffer);
    }

    fn route(&mut self, now: Nanos, waiting: Waiting, write: bool) -> Route {
        match self.health {
            Health::Healthy => self.route_cached(now, waiting, write),
            _ => self.route_degraded(waiting, write),
        }
    }

    fn route_cached(&mut self, now: Nanos, waiting: Waiting, write: bool) -> Route {
        let Piece { block, len, .. } = waiting.piece;
        if self.queue(waiting, write) {
            return Route::Elsewhere;
        }
        // On its way off the flash, and not to be found there any more.
        let left = matches!(self.locks.get(&block), Some(BlockLock::Demoting(_)))
            && !self.resident.contains(block);
        let access = Access {
            now,
            block,
            write,
            whole: self.config.mode == Mode::Writeback
                && u64::from(len) == self.config.layout.block_bytes,
        };
        let slot = match waiting.counted {
            _ if left => None,
            true => self.policy.resident(block),
            false => self.policy.access(access),
        };
        let hit = slot.is_some_and(|slot| self.is_hit(waiting.piece, write, slot));
        if !waiting.counted {
            self.count(block, write, hit);
        }
        let ticks = !waiting.counted && self.policy.carries_tick();
        match slot {
            Some(slot) if !hit => self.route_parts(now, waiting, write, slot, ticks),
            Some(slot) if write => self.write_to(now, waiting, slot, ticks),
            Some(slot) => {
                self.users.enter_read(slot);
                Route::Flash { slot, ticks }
            }
            None if !waiting.counted && !left && self.admit(access, waiting) => {
                if ticks {
                    self.policy.tick(now);
                }
                Route::Elsewhere
            }
            None => {
                self.look_for_work = true;
                if write {
                    self.note_origin_write(block);
                }
                Route::Origin { ticks }
            }
        }
    }

    pub(super) fn note_origin_write(&mut self, block: Block) {
        *self.origin_writes.entry(block).or_default() += 1;
    }

    /// The cache is given up or read-only.
    fn route_degraded(&mut self, waiting: Waiting, write: bool) -> Route {
        let block = waiting.piece.block;
        let ticks = false;
        match (&self.health, write) {
            (Health::Degrading(_), true) => {
                self.put_aside(waiting);
                self.stranded.push(Stranded::Piece(waiting));
                return Route::Elsewhere;
            }
            (Health::ReadOnly(_), true) => {
                let error = &mut self.requests[waiting.request].error;
                *error = error.or(Some(Errno::EROFS));
                return Route::Elsewhere;
            }
            _ => {}
        }
        let slot = self.policy.resident(block);
        match slot.filter(|_| !write && self.dirty.contains(block)) {
            Some(slot) if !self.is_hit(waiting.piece, write, slot) => {
                self.count(block, write, false);
                self.split(waiting, slot, ticks);
                Route::Elsewhere
            }
            Some(slot) => {
                self.count(block, write, true);
                self.users.enter_read(slot);
                Route::Flash { slot, ticks }
            }
            None => {
                self.count(block, write, false);
                if write {
                    self.note_origin_write(block);
                }
                Route::Origin { ticks }
            }
        }
    }

    /// Has a piece wait if it must.
    pub(super) fn queue(&mut self, mut waiting: Waiting, write: bool) -> bool {
        let block = waiting.piece.block;
        if !self.locks.contains_key(&block) {
            return false;
        }
        let touched = self.touched(waiting.piece);
        let slot = self.policy.resident(block);
        match self.locks.get_mut(&block) {
            Some(BlockLock::Promoting(queue) | BlockLock::Demoting(queue)) if write => {
                queue.push(waiting);
            }
            Some(BlockLock::Admitting(queue) | BlockLock::Filling(queue)) if write => {
                queue.push(waiting);
            }
            Some(BlockLock::Admitting(queue)) => {
                let first = !std::mem::replace(&mut waiting.counted, true);
                queue.push(waiting);
                if first {
                    self.count(block, write, false);
                }
            }
            Some(BlockLock::Filling(queue)) => {
                let has_all = |slot: Slot| touched & self.missing[slot as usize] == 0;
                if slot.is_none_or(has_all) {
                    return false;
                }
                let first = !std::mem::replace(&mut waiting.counted, true);
                queue.push(waiting);
                if first {
                    self.count(block, write, false);
                }
            }
            _ => return false,
        }
        self.put_aside(waiting);
        true
    }

    pub(super) fn count(&mut self, block: Block, write: bool, hit: bool) {
        self.regions.count(block, write, hit);
        let counters = &mut self.counters;
        let counter = match (write, hit) {
            (false, true) => &mut counters.read_hits,
            (false, false) => &mut counters.read_misses,
            (true, true) => &mut counters.write_hits,
            (true, false) => &mut counters.write_misses,
        };
        *counter += 1;
    }

    /// Lets a write into a slot. The metadata must know before a byte is written: after a crash
    /// the slot counts, not the origin. That goes for writing through as well, where it knows
    /// only as long as the two may differ; a block that is dirty, from an earlier run or after
    /// an error, is not written through, as in dm-cache.
    pub(super) fn enter_write(
        &mut self,
        now: Nanos,
        waiting: Waiting,
        slot: Slot,
        ticks: bool,
    ) -> Route {
        let block = waiting.piece.block;
        self.users.enter_write(slot);
        if let Some(BlockLock::WritingBack { rewritten, .. }) = self.locks.get_mut(&block) {
            *rewritten = true;
        }
        let through = self.config.mode == Mode::Writethrough && !self.dirty.contains(block);
        if let Some(log) = self.log.as_mut().filter(|_| !self.dirty.contains(block)) {
            let ticket = log.append(slot, Change::Dirty);
            if ticket > log.recorded() {
                self.unrecorded.entry(slot).or_insert(ticket);
            }
        }
        let ticket = self.unrecorded.get(&slot).copied();
        if through {
            self.put_aside(waiting);
            let then = Continuation::WriteThrough {
                waiting,
                slot,
                ticks,
            };
            self.once_recorded(now, ticket, then);
            return Route::Elsewhere;
        }
        self.mark_dirty(block, slot);
        if ticket.is_none() {
            return Route::Flash { slot, ticks };
        }
        self.put_aside(waiting);
        let then = Continuation::Write {
            waiting,
            slot,
            ticks,
        };
        self.once_recorded(now, ticket, then);
        Route::Elsewhere
    }

    /// The metadata knows that the slot is dirty, or never will.
    pub(super) fn write_recorded(
        &mut self,
        now: Nanos,
        waiting: Waiting,
        slot: Slot,
        ticks: bool,
        recorded: bool,
    ) {
        let Waiting { request, piece, .. } = waiting;
        if recorded {
            self.send_write(request, piece, slot, ticks);
            return self.part_done(now, request, Ok(()));
        }
        self.leave_write(now, slot);
        self.part_done(now, request, Err(Errno::EIO));
    }

    /// A hit has been read or written.
    pub(super) fn hit_done(
        &mut self,
        now: Nanos,
        hit: Hit,
        write: bool,
        result: Result<(), Errno>,
    ) {
        match write {
            true => self.hit_written(now, hit, result),
            false => self.hit_read(now, hit, result),
        }
    }

    fn hit_read(&mut self, now: Nanos, hit: Hit, result: Result<(), Errno>) {
        if hit.ticks {
            self.policy.tick(now);
        }
        for index in 0..hit.count {
            self.leave_read(now, hit.slot + index);
        }
        let Err(errno) = result else {
            return self.part_done(now, hit.request, Ok(()));
        };
        self.flash_read_failed(errno);
        // What is clean is on the origin as well.
        let mut blocks = hit.piece.block..hit.piece.block + hit.count;
        if blocks.any(|block| self.dirty.contains(block)) {
            return self.part_done(now, hit.request, Err(errno));
        }
        self.send(Some(IoState::Miss {
            request: hit.request,
            write: false,
            piece: hit.piece,
            count: hit.count,
            ticks: false,
        }));
        self.part_done(now, hit.request, Ok(()));
    }

    fn hit_written(&mut self, now: Nanos, hit: Hit, result: Result<(), Errno>) {
        if hit.ticks {
            self.policy.tick(now);
        }
        for index in 0..hit.count {
            self.leave_write(now, hit.slot + index);
        }
        if let Err(errno) = result {
            self.flash_failed("writing to the flash", errno);
        }
        self.part_done(now, hit.request, result);
    }

    fn leave_read(&mut self, now: Nanos, slot: Slot) {
        if self.users.leave_read(slot) {
            self.slot_unread(now, slot);
        }
    }

    /// A write to a slot is through.
    pub(super) fn leave_write(&mut self, now: Nanos, slot: Slot) {
        if self.users.leave_write(slot) {
            self.slot_unwritten(now, slot);
        }
    }

    /// Adds a change that nobody waits for.
    pub(super) fn log_change(&mut self, slot: Slot, change: Change) {
        if let Some(log) = &mut self.log {
            log.append(slot, change);
        }
    }

    pub(super) fn note_origin_written(&mut self) {
        if let Some(log) = &mut self.log {
            log.origin_written();
        }
    }

    /// A write to the origin is through.
    pub(super) fn origin_was_written(&mut self, now: Nanos, first: Block, count: u32) {
        self.note_origin_written();
        for block in first..first + count {
            let Some(left) = self.origin_writes.get_mut(&block) else {
                continue;
            };
            *left -= 1;
            if *left == 0 {
                self.origin_writes.remove(&block);
                self.block_unwritten(now, block);
            }
        }
    }

    pub(super) fn part_done(&mut self, now: Nanos, request: usize, result: Result<(), Errno>) {
        let pending = &mut self.requests[request];
        pending.error = pending.error.or(result.err());
        pending.parts_left -= 1;
        if pending.parts_left > 0 {
            return;
        }
        let pending = self.requests.remove(request);
        self.last_completion = now;
        self.actions.push(Action::Reply {
            id: pending.id,
            result: pending.error.map_or(Ok(()), Err),
        });
    }
}

/// Two I/Os of one request as one, if they follow on one another.
fn join(mut run: IoState, next: IoState) -> Option<IoState> {
    let (piece, count, more) = match (&mut run, next) {
        (
            IoState::Hit {
                piece,
                slot,
                count,
                ticks,
                ..
            },
            IoState::Hit {
                piece: more,
                slot: more_slot,
                ticks: more_ticks,
                ..
            },
        ) if *slot + *count == more_slot => {
            *ticks |= more_ticks;
            (piece, count, more)
        }
        (
            IoState::Miss {
                piece,
                count,
                ticks,
                ..
            },
            IoState::Miss {
                piece: more,
                ticks: more_ticks,
                ..
            },
        ) => {
            *ticks |= more_ticks;
            (piece, count, more)
        }
        (IoState::Discard { piece, count, .. }, IoState::Discard { piece: more, .. }) => {
            (piece, count, more)
        }
        _ => return None,
    };
    if piece.block + *count != more.block {
        return None;
    }
    piece.len += more.len;
    *count += 1;
    Some(run)
}
