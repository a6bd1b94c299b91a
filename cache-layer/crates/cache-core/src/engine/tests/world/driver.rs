//! Whoever does what the engine wants, in any order, and not always well.

use super::*;

impl World {
    pub(super) fn begin_actions(&mut self) -> Result<(), String> {
        loop {
            let mut actions = Vec::new();
            self.engine.take_actions(&mut actions);
            if actions.is_empty() {
                return Ok(());
            }
            for action in actions {
                let written = match &action {
                    Action::Sync { device, .. } => self.disk(*device).written(),
                    _ => 0,
                };
                let outcome = None;
                match action {
                    Action::Reply { id, result } => self.replied(id, result)?,
                    Action::Release { buffer } => drop(self.buffers.remove(&buffer)),
                    Action::JobDone { job } => {
                        let result = self.engine.finish_job(job);
                        self.done.insert(job, result);
                    }
                    Action::HealthChanged => {
                        self.log.push(format!("{:?}", self.engine.health()));
                        self.note_failure();
                    }
                    action => self.begun.push(Begun {
                        action,
                        written,
                        outcome,
                    }),
                }
            }
        }
    }

    pub(super) fn disk(&mut self, device: Device) -> &mut Disk {
        match device {
            Device::Flash => &mut self.flash,
            Device::Origin => &mut self.origin,
        }
    }

    pub(super) fn fails(&mut self, once_in: u64) -> bool {
        once_in > 0 && self.dice.once_in(once_in)
    }

    /// One of the things that are under way is done, or fails; or is answered that was.
    pub(super) fn complete_one(&mut self) -> Result<(), String> {
        let Some(which) = self.one_to_complete() else {
            if self.dice.once_in(10) {
                self.answers();
            }
            return Ok(());
        };
        let Begun {
            action,
            written,
            outcome,
        } = self.begun.swap_remove(which);
        let io = io_of(&action);
        if let Some(result) = outcome {
            self.tell(&action, io, result);
            return Ok(());
        }
        let result = self.carry_out(action.clone(), written)?;
        match self.dice.once_in(8) {
            false => self.tell(&action, io, result),
            true => self.begun.push(Begun {
                action,
                written,
                outcome: Some(result),
            }),
        }
        Ok(())
    }

    fn tell(&mut self, action: &Action, io: IoId, result: Result<(), Errno>) {
        self.untold -= usize::from(result.is_err() && matches!(action, Action::Sync { .. }));
        self.engine.on_completion(self.now, io, result);
    }

    pub(super) fn carry_out(
        &mut self,
        action: Action,
        written: usize,
    ) -> Result<Result<(), Errno>, String> {
        let faults = self.faults;
        let what = format!("{action:?}").chars().take(120).collect::<String>();
        let failed = match action {
            Action::Transfer {
                device,
                direction,
                offset,
                len,
                buffer,
                ..
            } => {
                let failed = self.fails(match (device, direction) {
                    (Device::Flash, Direction::Write) => faults.flash_write,
                    (Device::Flash, Direction::Read) => faults.flash_read,
                    (Device::Origin, Direction::Write) => faults.origin_write,
                    (Device::Origin, Direction::Read) => faults.origin_read,
                });
                self.transfer(device, direction, offset, len, buffer, failed);
                failed
            }
            Action::WriteMetadata { offset, bytes, .. } => self.write_metadata(offset, &bytes),
            Action::Sync { device, .. } => self.sync(device, written),
            Action::Discard { offset, len, .. } => {
                let failed = self.fails(faults.origin_write);
                let sectors = u64::from(len) / SECTOR_BYTES;
                let done = match failed {
                    true => self.dice.below(sectors + 1),
                    false => sectors,
                };
                let zeros = vec![0; (done * SECTOR_BYTES) as usize];
                self.origin.write(offset, &zeros);
                failed
            }
            Action::Detach { .. } => {
                let failed = self.fails(faults.detach);
                self.origin_id += u8::from(!failed);
                failed
            }
            other => return Err(format!("not to be completed: {other:?}")),
        };
        if !failed {
            return Ok(Ok(()));
        }
        self.log.push(format!("failed: {what}"));
        self.note_failure();
        Ok(Err(Errno::EIO))
    }

    /// Whether it fails.
    fn write_metadata(&mut self, offset: u64, bytes: &[u8]) -> bool {
        let failed = self.fails(self.faults.flash_write * 2);
        // A superblock is a sector, which a device writes whole or not at all.
        let unit = match offset < self.layout.table_offset(0) {
            true => bytes.len(),
            false => 32,
        };
        let units = (bytes.len() / unit) as u64;
        let written = match failed {
            true => unit * self.dice.below(units + 1) as usize,
            false => bytes.len(),
        };
        self.flash.write(offset, &bytes[..written]);
        failed
    }

    /// Of so many writes; whether it fails.
    fn sync(&mut self, device: Device, written: usize) -> bool {
        let failed = self.fails(match device {
            Device::Flash => self.faults.flash_sync,
            Device::Origin => self.faults.origin_sync,
        });
        self.sync_failed |= failed;
        self.untold += usize::from(failed);
        for asked in self.asked.values_mut().filter(|_| failed) {
            if let Asked::Read { sure, .. } = asked {
                *sure = false;
            }
        }
        let mut dice = Dice::new(self.dice.below(u64::MAX));
        match failed {
            true => self.disk(device).lose(&mut dice),
            false => self.disk(device).sync(written),
        }
        failed
    }

    pub(super) fn transfer(
        &mut self,
        device: Device,
        direction: Direction,
        offset: u64,
        len: u32,
        buffer: Buffer,
        failed: bool,
    ) {
        // A transfer that fails has gone part of the way.
        let done = match failed {
            true => self.dice.below(u64::from(len) / SECTOR_BYTES + 1) as u32 * SECTOR_BYTES as u32,
            false => len,
        } as usize;
        match direction {
            Direction::Read => {
                let mut bytes = self.disk(device).read(offset, len);
                bytes[done..].fill(0xbb);
                let (memory, at) = self.memory(buffer, len);
                memory[at..at + len as usize].copy_from_slice(&bytes);
            }
            Direction::Write => {
                let (memory, at) = self.memory(buffer, len);
                let bytes = memory[at..at + done].to_vec();
                self.disk(device).write(offset, &bytes);
            }
        }
    }

    pub(super) fn memory(&mut self, buffer: Buffer, len: u32) -> (&mut Vec<u8>, usize) {
        match buffer {
            Buffer::Request { id, at } => match self.asked.get_mut(&id).expect("it is under way") {
                Asked::Read { data, .. } | Asked::Write { data, .. } => (data, at as usize),
                other => panic!("{other:?} has no bytes"),
            },
            Buffer::Migration { id, at } => {
                let memory = self.buffers.entry(id).or_default();
                let end = (at + len) as usize;
                if memory.len() < end {
                    memory.resize(end, 0xdd);
                }
                (memory, at as usize)
            }
        }
    }
}
