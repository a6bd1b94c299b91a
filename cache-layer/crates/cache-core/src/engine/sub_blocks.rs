//! The way of a part of a block. A slot may lack sub-blocks of its block, which the origin has: a
//! write puts its own there without anything being read, a read has the missing ones fetched.
//!
//! A sub-block counts as there once the metadata says so, after its bytes were written. Until then
//! the origin counts, so a crash in between leaves what was before.
//!
//! Two overlapping writes that are under way at once may take different ways: a part of a missing
//! sub-block goes to the origin, one that covers it to the flash. Which of the two is read once both
//! have been answered may then change, when the block is written back. As on any disk, whoever has
//! them under way at once knows of no order.

use virtual_time::Nanos;

use super::action::{Buffer, Device, Direction, Errno, Health, IoState, Mode, Piece};
use super::migration::{Fill, Overwrite, Task};
use super::request::Route;
use super::{BlockLock, Continuation, Engine, Waiting};
use crate::layout::Mask;
use crate::metadata::Change;
use crate::policy::{Access, Block, Slot, Work};

impl Engine {
    /// The sub-blocks that a piece touches.
    pub(super) fn touched(&self, piece: Piece) -> Mask {
        let within = piece.offset % self.config.layout.block_bytes;
        let sub_blocks = self.config.layout.sub_blocks();
        sub_blocks.touched(within, piece.len)
    }

    /// The sub-blocks that a piece has all of.
    fn covered(&self, piece: Piece) -> Mask {
        let within = piece.offset % self.config.layout.block_bytes;
        let block_len = self.config.span(piece.block).1;
        let sub_blocks = self.config.layout.sub_blocks();
        sub_blocks.covered(within, piece.len, block_len)
    }

    /// Whether the flash alone serves a piece of a resident block.
    pub(super) fn is_hit(&self, piece: Piece, write: bool, slot: Slot) -> bool {
        let missing = self.missing[slot as usize] & self.touched(piece);
        missing == 0
            || (write && self.may_extend(piece.block) && missing & !self.covered(piece) == 0)
    }

    /// Whether a write may put sub-blocks into the slot that are missing there.
    fn may_extend(&self, block: Block) -> bool {
        self.config.mode == Mode::Writeback || self.dirty.contains(block)
    }

    /// Brings the block of a request in that has missed, if the policy wants that.
    pub(super) fn admit(&mut self, access: Access, waiting: Waiting) -> bool {
        if self.stopping || self.locks.contains_key(&access.block) {
            return false;
        }
        let may_write = self.config.mode == Mode::Writeback && self.covered(waiting.piece) != 0;
        if access.write
            && !(may_write && self.covered(waiting.piece) == self.touched(waiting.piece))
        {
            return false;
        }
        let Some(work) = self.policy.admit(access) else {
            return false;
        };
        let Work::Promote { block, slot } = work else {
            unreachable!("{work:?} admits nothing");
        };
        assert_eq!(
            block, access.block,
            "the request's bytes are those of its block"
        );
        if access.write {
            return self.begin_overwrite(waiting, block, slot);
        }
        let counted = Waiting {
            counted: true,
            ..waiting
        };
        self.put_aside(counted);
        self.fetch_for(counted, block, slot);
        true
    }

    // A write brings its block.

    /// Puts a write into a free slot, unless something stands in its way.
    fn begin_overwrite(&mut self, waiting: Waiting, block: Block, slot: Slot) -> bool {
        let log = self.log.as_mut();
        let at_risk = log.is_some_and(|log| {
            let at_risk = log.is_at_risk(slot);
            if at_risk {
                // So that the next one need not go to the origin.
                log.commit();
            }
            at_risk
        });
        if at_risk || self.users.readers(slot) > 0 {
            let work = Work::Promote { block, slot };
            self.policy.finished(work, false);
            return false;
        }
        self.locks.insert(block, BlockLock::Admitting(Vec::new()));
        self.put_aside(waiting);
        let migration = self.begin_for_request(Task::Overwrite(Overwrite {
            block,
            slot,
            waiting,
        }));
        let Waiting { request, piece, .. } = waiting;
        let pending = &self.requests[request];
        let buffer = Buffer::Request {
            id: pending.id,
            at: (piece.offset - pending.offset) as u32,
        };
        let within = piece.offset % self.config.layout.block_bytes;
        let place = (self.slot_offset(slot) + within, piece.len);
        let state = IoState::Overwrite { migration };
        self.transfer(state, Device::Flash, Direction::Write, place, buffer);
        true
    }

    pub(super) fn overwritten(&mut self, now: Nanos, migration: usize, result: Result<(), Errno>) {
        if let Err(errno) = result {
            self.flash_failed("writing to the flash", errno);
            return self.end_overwrite(now, migration, false);
        }
        let Overwrite {
            block,
            slot,
            waiting,
        } = self.overwrite(migration);
        let change = Change::Map {
            block,
            heat: 0,
            missing: self.left_out(waiting.piece),
            dirty: true,
        };
        let ticket = self.log.as_mut().map(|log| log.append(slot, change));
        self.once_recorded(now, ticket, Continuation::Overwritten { migration });
    }

    /// The sub-blocks that a piece does not bring with it.
    fn left_out(&self, piece: Piece) -> Mask {
        self.config.layout.sub_blocks().all() & !self.covered(piece)
    }

    fn overwrite(&self, migration: usize) -> Overwrite {
        match self.migrations.task(migration) {
            Task::Overwrite(overwrite) => *overwrite,
            task => unreachable!("{task:?} is no overwrite"),
        }
    }

    pub(super) fn overwrite_recorded(&mut self, now: Nanos, migration: usize, recorded: bool) {
        // A cache that is being given up meanwhile must not have what the origin lacks.
        let counts = recorded && self.health == Health::Healthy;
        self.end_overwrite(now, migration, counts);
    }

    fn end_overwrite(&mut self, now: Nanos, migration: usize, success: bool) {
        let Overwrite {
            block,
            slot,
            waiting,
        } = self.overwrite(migration);
        self.policy.finished(Work::Promote { block, slot }, success);
        if success {
            self.resident.insert(block);
            self.missing[slot as usize] = self.left_out(waiting.piece);
            self.counters.promotions += 1;
            self.mark_dirty(block, slot);
        }
        let queue = self.unlock(block);
        self.end_migration(migration);
        match success {
            true => self.part_done(now, waiting.request, Ok(())),
            false => self.resume(now, waiting),
        }
        self.resume_all(now, queue);
    }

    // A request of a block that lacks some of what it touches.

    pub(super) fn route_parts(
        &mut self,
        now: Nanos,
        waiting: Waiting,
        write: bool,
        slot: Slot,
        ticks: bool,
    ) -> Route {
        let block = waiting.piece.block;
        let fills = !write || !self.may_extend(block);
        let can_fill = !waiting.counted && !self.stopping && !self.locks.contains_key(&block);
        if fills && can_fill {
            self.begin_fill(now, waiting, slot);
        } else if write && fills {
            // Its block cannot be completed, and cannot be written through as it is.
            let error = &mut self.requests[waiting.request].error;
            *error = error.or(Some(Errno::EIO));
        } else if write {
            self.split_write(now, waiting, slot);
        } else {
            self.split(waiting, slot, false);
        }
        if ticks {
            self.policy.tick(now);
        }
        Route::Elsewhere
    }

    /// Reads what is there from the flash, and the rest from the origin.
    pub(super) fn split(&mut self, waiting: Waiting, slot: Slot, ticks: bool) {
        let Waiting { request, piece, .. } = waiting;
        let missing = self.missing[slot as usize];
        for (piece, is_present) in self.parts(piece, !missing) {
            let (write, count) = (false, 1);
            if is_present {
                self.users.enter_read(slot);
                self.send(Some(IoState::Hit {
                    request,
                    write,
                    piece,
                    slot,
                    count,
                    ticks,
                }));
            } else {
                self.send(Some(IoState::Miss {
                    request,
                    write,
                    piece,
                    count,
                    ticks,
                }));
            }
        }
    }

    /// Lets a write into a slot, which may lack what it brings.
    pub(super) fn write_to(
        &mut self,
        now: Nanos,
        waiting: Waiting,
        slot: Slot,
        ticks: bool,
    ) -> Route {
        let Waiting { request, piece, .. } = waiting;
        match self.enter_write(now, waiting, slot, ticks) {
            Route::Flash { slot, ticks }
                if self.touched(piece) & self.missing[slot as usize] != 0 =>
            {
                self.send_write(request, piece, slot, ticks);
                Route::Elsewhere
            }
            route => route,
        }
    }

    /// Writes what is there, or is written all of, to the flash, and the rest to the origin.
    fn split_write(&mut self, now: Nanos, waiting: Waiting, slot: Slot) {
        let Waiting { request, piece, .. } = waiting;
        let to_flash = !self.missing[slot as usize] | self.covered(piece);
        for (part, on_flash) in self.parts(piece, to_flash) {
            if on_flash {
                let waiting = Waiting {
                    piece: part,
                    ..waiting
                };
                if let Route::Flash { slot, ticks } = self.enter_write(now, waiting, slot, false) {
                    self.send_write(request, part, slot, ticks);
                }
                continue;
            }
            self.note_origin_write(part.block);
            self.send(Some(IoState::Miss {
                request,
                write: true,
                piece: part,
                count: 1,
                ticks: false,
            }));
        }
    }

    /// A piece cut where the sub-blocks of a mask begin and end; whether a part is of the mask.
    fn parts(&self, piece: Piece, mask: Mask) -> Vec<(Piece, bool)> {
        let sub_bytes = self.config.layout.sub_blocks().bytes;
        let begin = u64::from(piece.block) * self.config.layout.block_bytes;
        let end = piece.offset + u64::from(piece.len);
        let mut parts: Vec<(Piece, bool)> = Vec::new();
        let mut offset = piece.offset;
        while offset < end {
            let sub_block = (offset - begin) / sub_bytes;
            let until = end.min(begin + (sub_block + 1) * sub_bytes);
            let inside = mask >> sub_block & 1 == 1;
            let len = (until - offset) as u32;
            match parts.last_mut() {
                Some((part, of)) if *of == inside => part.len += len,
                _ => parts.push((
                    Piece {
                        block: piece.block,
                        offset,
                        len,
                    },
                    inside,
                )),
            }
            offset = until;
        }
        parts
    }

    /// Sends a write to a slot, which may lack what it brings.
    pub(super) fn send_write(&mut self, request: usize, piece: Piece, slot: Slot, ticks: bool) {
        let state = match self.touched(piece) & self.missing[slot as usize] {
            0 => IoState::Hit {
                request,
                write: true,
                piece,
                slot,
                count: 1,
                ticks,
            },
            _ => IoState::Extend {
                request,
                piece,
                slot,
                ticks,
            },
        };
        self.send(Some(state));
    }

    /// Sub-blocks have been written to a slot that lacked them.
    pub(super) fn extended(
        &mut self,
        now: Nanos,
        request: usize,
        piece: Piece,
        slot: Slot,
        result: Result<(), Errno>,
    ) {
        if let Err(errno) = result {
            self.flash_failed("writing to the flash", errno);
            self.leave_write(now, slot);
            return self.part_done(now, request, result);
        }
        let written = self.covered(piece);
        let change = Change::Present(written);
        let ticket = self.log.as_mut().map(|log| log.append(slot, change));
        let then = Continuation::Extended {
            request,
            slot,
            written,
        };
        self.once_recorded(now, ticket, then);
    }

    pub(super) fn extension_recorded(
        &mut self,
        now: Nanos,
        request: usize,
        slot: Slot,
        written: Mask,
        recorded: bool,
    ) {
        let result = match recorded {
            true => Ok(()),
            false => Err(Errno::EIO),
        };
        if recorded {
            self.missing[slot as usize] &= !written;
        }
        self.leave_write(now, slot);
        self.part_done(now, request, result);
    }

    // What is missing is fetched.

    fn begin_fill(&mut self, now: Nanos, waiting: Waiting, slot: Slot) {
        let block = waiting.piece.block;
        let counted = Waiting {
            counted: true,
            ..waiting
        };
        self.put_aside(counted);
        self.locks.insert(block, BlockLock::Filling(vec![counted]));
        let fill = Fill {
            block,
            slot,
            from: 0,
            stores_left: 0,
            error: None,
        };
        let migration = self.begin_for_request(Task::Fill(fill));
        match self.users.writers(slot) {
            0 => self.fill_once_quiet(now, migration),
            _ => self.migrations.wait_for_writers(slot, migration),
        }
    }

    fn fill_of(&mut self, migration: usize) -> &mut Fill {
        match self.migrations.task_mut(migration) {
            Task::Fill(fill) => fill,
            task => unreachable!("{task:?} fills nothing"),
        }
    }

    /// Nobody writes to the slot any more; somebody may still write to the block on the origin.
    pub(super) fn fill_once_quiet(&mut self, now: Nanos, migration: usize) {
        let block = self.fill_of(migration).block;
        match self.origin_writes.contains_key(&block) {
            true => self.migrations.wait_for_quiet(block, migration),
            false => self.read_missing(now, migration),
        }
    }

    pub(super) fn read_missing(&mut self, now: Nanos, migration: usize) {
        let Fill { block, slot, .. } = *self.fill_of(migration);
        let runs = self.missing_runs(block, slot);
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else {
            return self.end_fill(now, migration, true);
        };
        let (from, end) = (first.0, last.1);
        self.fill_of(migration).from = from;
        let buffer = self.buffer(migration, 0);
        let place = (self.config.span(block).0 + from, (end - from) as u32);
        let state = IoState::FillRead { migration };
        self.transfer(state, Device::Origin, Direction::Read, place, buffer);
    }

    /// What a slot lacks, as bytes from the start of the block.
    fn missing_runs(&self, block: Block, slot: Slot) -> Vec<(u64, u64)> {
        let missing = self.missing[slot as usize];
        self.runs(block, missing)
    }

    /// The runs of a mask, as bytes from the start of a block, which may be cut short.
    pub(super) fn runs(&self, block: Block, mask: Mask) -> Vec<(u64, u64)> {
        let block_len = u64::from(self.config.span(block).1);
        let runs = self.config.layout.sub_blocks().runs(mask);
        let within = runs.map(|(start, end)| (start, end.min(block_len)));
        within.filter(|(start, end)| start < end).collect()
    }

    pub(super) fn fill_read(&mut self, now: Nanos, migration: usize, result: Result<(), Errno>) {
        if result.is_err() {
            return self.end_fill(now, migration, false);
        }
        let Fill {
            block, slot, from, ..
        } = *self.fill_of(migration);
        let runs = self.missing_runs(block, slot);
        self.fill_of(migration).stores_left = runs.len() as u32;
        for (start, end) in runs {
            let buffer = self.buffer(migration, (start - from) as u32);
            let place = (self.slot_offset(slot) + start, (end - start) as u32);
            let state = IoState::FillStore { migration };
            self.transfer(state, Device::Flash, Direction::Write, place, buffer);
        }
    }

    pub(super) fn fill_stored(&mut self, now: Nanos, migration: usize, result: Result<(), Errno>) {
        let fill = self.fill_of(migration);
        fill.error = fill.error.or(result.err());
        fill.stores_left -= 1;
        if fill.stores_left > 0 {
            return;
        }
        let (slot, error) = (fill.slot, fill.error);
        if let Some(errno) = error {
            self.flash_failed("writing to the flash", errno);
            return self.end_fill(now, migration, false);
        }
        let all = self.config.layout.sub_blocks().all();
        let change = Change::Present(all);
        let ticket = self.log.as_mut().map(|log| log.append(slot, change));
        self.once_recorded(now, ticket, Continuation::Filled { migration });
    }

    pub(super) fn filled(&mut self, now: Nanos, migration: usize, recorded: bool) {
        self.end_fill(now, migration, recorded);
    }

    fn end_fill(&mut self, now: Nanos, migration: usize, success: bool) {
        let Fill { block, slot, .. } = *self.fill_of(migration);
        if success {
            self.missing[slot as usize] = 0;
        }
        let queue = self.unlock(block);
        self.end_migration(migration);
        self.resume_all(now, queue);
    }
}
