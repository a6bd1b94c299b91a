//! The way of a write that goes to both devices before it is answered.

use virtual_time::Nanos;

use super::action::{Buffer, Device, Direction, Errno, Health, IoState};
use super::health::Stranded;
use super::request::Hit;
use super::{Engine, Waiting};
use crate::metadata::Change;
use crate::policy::Slot;

/// A part of a write that goes to both devices.
#[derive(Debug)]
pub(super) struct Through {
    pub(super) hit: Hit,
    pub(super) writes_left: u8,
    pub(super) flash: Result<(), Errno>,
    pub(super) origin: Result<(), Errno>,
}

impl Engine {
    /// The metadata knows that the devices may differ, or never will.
    pub(super) fn through_recorded(
        &mut self,
        now: Nanos,
        waiting: Waiting,
        slot: Slot,
        ticks: bool,
        recorded: bool,
    ) {
        let Waiting { request, piece, .. } = waiting;
        if !recorded {
            if self.users.leave_write(slot) {
                self.slot_unwritten(now, slot);
            }
            return self.resume(now, waiting);
        }
        let hit = Hit {
            request,
            piece,
            slot,
            count: 1,
            ticks,
        };
        let through = self.throughs.insert(Through {
            hit,
            writes_left: 2,
            flash: Ok(()),
            origin: Ok(()),
        });
        let pending = &self.requests[request];
        let buffer = Buffer::Request {
            id: pending.id,
            at: (piece.offset - pending.offset) as u32,
        };
        let within = piece.offset % self.config.layout.block_bytes;
        let on_flash = self.slot_offset(slot) + within;
        for (device, offset) in [(Device::Flash, on_flash), (Device::Origin, piece.offset)] {
            let state = IoState::Through { through, device };
            let place = (offset, piece.len);
            self.transfer(state, device, Direction::Write, place, buffer);
        }
    }

    pub(super) fn through_written(
        &mut self,
        now: Nanos,
        index: usize,
        device: Device,
        result: Result<(), Errno>,
    ) {
        let through = &mut self.throughs[index];
        through.writes_left -= 1;
        match device {
            Device::Flash => through.flash = result,
            Device::Origin => through.origin = result,
        }
        if through.writes_left > 0 {
            return;
        }
        let through = self.throughs.remove(index);
        let Hit {
            request,
            piece,
            slot,
            ticks,
            ..
        } = through.hit;
        if ticks {
            self.policy.tick(now);
        }
        self.note_origin_written();
        let alone = self.users.leave_write(slot);
        match (through.flash, through.origin) {
            (Ok(()), Ok(())) => {
                // Where the flash has failed, it may have been in another write to this slot.
                let healthy = self.health == Health::Healthy;
                if alone && healthy && !self.dirty.contains(piece.block) {
                    self.log_change(slot, Change::Clean);
                }
            }
            // The flash has what the origin has not, and counts unless it is being given up.
            (Ok(()), Err(_)) => match self.health {
                Health::Degrading(_) | Health::PassThrough(_) => {}
                _ => self.mark_dirty(piece.block, slot),
            },
            (Err(errno), _) => self.flash_failed("writing to the flash", errno),
        }
        if alone {
            self.slot_unwritten(now, slot);
        }
        if through.flash.is_err() {
            // The origin has it, which counts once the cache has been given up.
            return self.strand(now, Stranded::Written(request, through.origin));
        }
        self.part_done(now, request, through.origin);
    }
}
