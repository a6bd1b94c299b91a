//! The path of a request. Hits are served in the thread that brings them; nothing here waits.

use std::io;
use std::sync::Arc;

use nix::fcntl::FallocateFlags;
use smallvec::SmallVec;

use super::Tier;
use super::core::{Piece, Route};
use super::joint::Joint;
use crate::policy::Slot;
use crate::serve::handler::{Answer, Handler};

/// A piece and where it goes.
struct Step {
    piece: Piece,
    route: Route,
}

/// Where all of a request goes; most lie in one block or two.
type Plan = SmallVec<[Step; 2]>;

impl Tier {
    /// Reads a range of the cached origin.
    pub(super) fn read(self: &Arc<Self>, offset: u64, len: u32, answer: Answer) {
        let plan = self.plan(offset, len, false);
        if plan.iter().all(is_on_flash) {
            return self.read_hits(&plan, len, answer);
        }
        self.work.notify_one();
        if plan.iter().all(is_on_origin) {
            return self
                .origin
                .read(offset, len, self.leaving_origin(&plan, false, answer));
        }
        let joint = Joint::of_read(offset, len, parts(&plan), answer);
        self.carry_out(&plan, &joint);
    }

    /// Writes a range of the cached origin.
    pub(super) fn write(self: &Arc<Self>, offset: u64, data: &[u8], answer: Answer) {
        let plan = self.plan(offset, data.len() as u32, true);
        if plan.iter().all(is_on_flash) {
            return self.write_hits(&plan, data, answer);
        }
        self.work.notify_one();
        if plan.iter().all(is_on_origin) {
            return self
                .origin
                .write(offset, data, self.leaving_origin(&plan, true, answer));
        }
        let joint = Joint::of_write(offset, data, parts(&plan), answer);
        self.carry_out(&plan, &joint);
    }

    /// Makes durable what was answered before, on origin and flash. On the modelled flash that
    /// takes no time: a flash answers a write when it is safe.
    pub(super) fn flush(self: &Arc<Self>, answer: Answer) {
        let tier = self.clone();
        let origin_is_done = move |outcome| {
            let committed = |none| tier.meta.commit().map(|()| none);
            answer.give(Result::and_then(outcome, committed));
        };
        self.origin.flush(Answer::then(origin_is_done));
    }

    /// Takes up a piece that had to wait.
    pub(super) fn resume(self: &Arc<Self>, joint: Arc<Joint>, piece: Piece) {
        let mut core = self.lock();
        let route = core.route(self.now(), &piece, joint.is_write());
        if matches!(route, Route::Wait) {
            return core.wait(joint, piece);
        }
        drop(core);
        self.carry_out_part(&[Step { piece, route }], &joint);
    }

    fn plan(&self, offset: u64, len: u32, write: bool) -> Plan {
        let mut core = self.lock();
        let now = self.now();
        core.last_request = now;
        let pieces = self.pieces(offset, len);
        pieces
            .map(|piece| Step {
                route: core.route(now, &piece, write),
                piece,
            })
            .collect()
    }

    /// A range cut at the boundaries of blocks.
    fn pieces(&self, offset: u64, len: u32) -> impl Iterator<Item = Piece> {
        let block_bytes = self.layout.block_bytes;
        let end = offset + u64::from(len);
        let mut at = offset;
        std::iter::from_fn(move || {
            let block = at / block_bytes;
            let until = end.min((block + 1) * block_bytes);
            let piece = Piece {
                block: block as u32,
                offset: at,
                len: (until - at) as u32,
            };
            at = until;
            (piece.len > 0).then_some(piece)
        })
    }

    fn read_hits(&self, plan: &[Step], len: u32, answer: Answer) {
        let Some(first) = plan.first() else {
            return answer.give_bytes(&[]);
        };
        let fill = |mut buffer: &mut [u8]| {
            for step in plan {
                let (part, rest) = buffer.split_at_mut(step.piece.len as usize);
                self.flash.read_at(part, self.flash_offset(step))?;
                buffer = rest;
            }
            Ok(())
        };
        self.flash.read(self.flash_offset(first), len, fill, answer);
        let mut core = self.lock();
        let leave = |step: &Step| core.leave_read(step.piece.block, slot_of(step));
        let awaited = plan.iter().map(leave).fold(false, |a, b| a | b);
        self.tell(awaited);
    }

    fn write_hits(&self, plan: &[Step], data: &[u8], answer: Answer) {
        let Some(first) = plan.first() else {
            return answer.give_bytes(&[]);
        };
        let store = || {
            let mut rest = data;
            for step in plan {
                let (part, after) = rest.split_at(step.piece.len as usize);
                self.flash.write_at(part, self.flash_offset(step))?;
                rest = after;
            }
            Ok(())
        };
        let (offset, len) = (self.flash_offset(first), data.len() as u32);
        self.flash.write(offset, len, store, answer);
        let mut core = self.lock();
        let leave = |step: &Step| core.leave_write(step.piece.block, slot_of(step), false);
        let awaited = plan.iter().map(leave).fold(false, |a, b| a | b);
        self.tell(awaited);
    }

    fn carry_out(self: &Arc<Self>, plan: &[Step], joint: &Arc<Joint>) {
        for part in plan.chunk_by(go_together) {
            self.carry_out_part(part, joint);
        }
    }

    /// Serves pieces that go together.
    fn carry_out_part(self: &Arc<Self>, part: &[Step], joint: &Arc<Joint>) {
        let Some(Step { piece, route }) = part.first() else {
            return;
        };
        let len = part.iter().map(|step| step.piece.len).sum();
        let (joint_then, offset) = (joint.clone(), piece.offset);
        let answer = Answer::then(move |outcome| joint_then.done(offset, outcome));
        match route {
            Route::Wait => self.resume(joint.clone(), *piece),
            Route::Failed(code) => answer.give(Err(io::Error::from_raw_os_error(*code))),
            Route::Through(slot) => self.write_through(*piece, *slot, joint),
            Route::Origin => {
                let write = joint.is_write();
                let answer = self.leaving_origin(part, write, answer);
                match write {
                    true => self.origin.write(offset, joint.data(offset, len), answer),
                    false => self.origin.read(offset, len, answer),
                }
            }
            Route::Flash(_) if joint.is_write() => {
                self.write_hits(part, joint.data(offset, len), answer);
            }
            Route::Flash(_) => self.read_hits(part, len, answer),
        }
    }

    /// An answer that comes from the origin, with what is to be done before it goes on.
    fn leaving_origin(self: &Arc<Self>, part: &[Step], write: bool, answer: Answer) -> Answer {
        let blocks = part[0].piece.block..=part[part.len() - 1].piece.block;
        let tier = self.clone();
        Answer::then(move |outcome| {
            let awaited = {
                let mut core = tier.lock();
                blocks.fold(false, |any, block| core.leave_origin(block, write) | any)
            };
            tier.tell(awaited);
            answer.give(outcome);
        })
    }

    /// To the flash first: should the process be killed in between, the flash counts.
    fn write_through(self: &Arc<Self>, piece: Piece, slot: Slot, joint: &Arc<Joint>) {
        let route = Route::Through(slot);
        let offset = self.flash_offset(&Step { piece, route });
        let data = joint.data(piece.offset, piece.len);
        let (tier, joint_then) = (self.clone(), joint.clone());
        let then = Answer::then(move |stored| {
            let (tier_then, joint) = (tier.clone(), joint_then.clone());
            let both = Answer::then(move |outcome| {
                let awaited = tier_then
                    .lock()
                    .leave_write(piece.block, slot, outcome.is_ok());
                tier_then.tell(awaited);
                joint.done(piece.offset, outcome);
            });
            match stored {
                Ok(_) => {
                    let data = joint_then.data(piece.offset, piece.len);
                    tier.origin.write(piece.offset, data, both);
                }
                Err(error) => both.give(Err(error)),
            }
        });
        let store = || self.flash.write_at(data, offset);
        self.flash.write(offset, piece.len, store, then);
    }

    fn flash_offset(&self, step: &Step) -> u64 {
        let within = step.piece.offset % self.layout.block_bytes;
        self.layout.slot_offset(slot_of(step)) + within
    }
}

fn is_on_flash(step: &Step) -> bool {
    matches!(step.route, Route::Flash(_))
}

fn is_on_origin(step: &Step) -> bool {
    matches!(step.route, Route::Origin)
}

/// Neighbours that miss go to the origin as one request, as the kernel would merge them.
fn go_together(a: &Step, b: &Step) -> bool {
    is_on_origin(a) && is_on_origin(b)
}

fn parts(plan: &[Step]) -> usize {
    plan.chunk_by(go_together).count()
}

fn slot_of(step: &Step) -> Slot {
    match step.route {
        Route::Flash(slot) | Route::Through(slot) => slot,
        _ => unreachable!("only what goes to the flash has a slot"),
    }
}

/// The accelerated device.
pub(super) struct Data(pub(super) Arc<Tier>);

impl Handler for Data {
    fn read(&self, offset: u64, len: u32, answer: Answer) {
        self.0.read(offset, len, answer);
    }

    fn write(&self, offset: u64, data: &[u8], answer: Answer) {
        self.0.write(offset, data, answer);
    }

    fn flush(&self, answer: Answer) {
        self.0.flush(answer);
    }

    /// Not supported, as by a disk without discard: what the kernel cannot punch, it writes.
    fn allocate(&self, _mode: FallocateFlags, _offset: u64, _len: u64, answer: Answer) {
        answer.give(Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)));
    }
}
