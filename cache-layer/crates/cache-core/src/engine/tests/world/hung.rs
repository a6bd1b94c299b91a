//! A device that does not answer for a while, or ever: what needs only the other one goes on. And I/O
//! that is done long before it is answered, or that a crash finds done and not answered.

use std::collections::HashSet;

use super::*;

/// A device that hangs, and who must not be kept waiting by that.
#[derive(Debug, Default)]
pub(super) struct Hung {
    device: Option<Device>,
    served: HashSet<RequestId>,
    /// How often those who were served in spite of it were found to be.
    served_reads: usize,
    served_writes: usize,
    served_past_flash: usize,
}

fn other(device: Device) -> Device {
    match device {
        Device::Flash => Device::Origin,
        Device::Origin => Device::Flash,
    }
}

/// Which device an I/O is of.
fn device_of(action: &Action) -> Option<Device> {
    match action {
        Action::Transfer { device, .. } | Action::Sync { device, .. } => Some(*device),
        Action::WriteMetadata { .. } => Some(Device::Flash),
        Action::Discard { .. } => Some(Device::Origin),
        _ => None,
    }
}

impl World {
    /// A device stops to answer.
    pub(super) fn hang(&mut self) {
        let device = match self.dice.once_in(2) {
            true => Device::Flash,
            false => Device::Origin,
        };
        self.hung.device.get_or_insert(device);
    }

    /// It answers again.
    pub(super) fn answers(&mut self) {
        self.hung.device = None;
        self.hung.served.clear();
    }

    /// Which of the things that are under way may be done now.
    pub(super) fn one_to_complete(&mut self) -> Option<usize> {
        let hung = self.hung.device;
        let answers = |begun: &Begun| hung.is_none() || device_of(&begun.action) != hung;
        let which: Vec<usize> = (0..self.begun.len())
            .filter(|&index| answers(&self.begun[index]))
            .collect();
        let count = which.len() as u64;
        (count > 0).then(|| which[self.dice.below(count) as usize])
    }

    /// Notes a request that is about to be made if a device that hangs is nothing to it.
    pub(super) fn note_hung(&mut self, id: RequestId, request: Request) {
        let served = match (self.hung.device, self.engine.health()) {
            (Some(Device::Origin), Health::Healthy) => self.is_all_on_flash(request),
            // It has been given up.
            (Some(Device::Flash), Health::PassThrough(_)) => request != Request::FlushVolume,
            _ => false,
        };
        if served {
            self.hung.served.insert(id);
        }
    }

    /// Whether the flash alone has what a request wants, whatever is being done with the blocks.
    fn is_all_on_flash(&self, request: Request) -> bool {
        let engine = &self.engine;
        let is_there = |piece: action::Piece| {
            let slot = engine.policy.resident(piece.block);
            let slot = slot.filter(|_| engine.resident.contains(piece.block));
            slot.is_some_and(|slot| engine.touched(piece) & engine.missing[slot as usize] == 0)
        };
        match request {
            Request::Read { offset, len } => engine.pieces(offset, len).all(is_there),
            request => engine.would_hit_at_once(request),
        }
    }

    /// An I/O has failed: what it was for may need the other device now.
    pub(super) fn note_failure(&mut self) {
        self.hung.served.clear();
    }

    /// Once the other device has done all that it has to do, nobody waits whom it can serve.
    pub(super) fn check_hung(&mut self) -> Result<(), String> {
        let Some(device) = self.hung.device else {
            return Ok(());
        };
        for _ in 0..100_000 {
            if self.one_to_complete().is_none() {
                let mut waiting = self
                    .hung
                    .served
                    .iter()
                    .filter(|id| self.asked.contains_key(id));
                return match waiting.next() {
                    None => Ok(()),
                    Some(id) => Err(format!(
                        "{:?} waits for the {device:?}, though the {:?} can serve it",
                        self.asked[id],
                        other(device)
                    )),
                };
            }
            self.complete_one()?;
            self.begin_actions()?;
            if self.hung.device.is_none() {
                return Ok(());
            }
        }
        Err(format!("the {:?} is never done", other(device)))
    }

    /// How often reads and writes were served by the flash while the origin hung, and requests by the
    /// origin while the flash did.
    pub(in crate::engine::tests) fn served_while_hung(&self) -> (usize, usize, usize) {
        let hung = &self.hung;
        (
            hung.served_reads,
            hung.served_writes,
            hung.served_past_flash,
        )
    }

    /// Counts who is answered while a device hangs.
    pub(super) fn note_answer(&mut self, id: RequestId, asked: &Asked) {
        if !self.hung.served.remove(&id) {
            return;
        }
        match (self.hung.device, asked) {
            (Some(Device::Flash), _) => self.hung.served_past_flash += 1,
            (_, Asked::Write { .. }) => self.hung.served_writes += 1,
            _ => self.hung.served_reads += 1,
        }
    }
}
