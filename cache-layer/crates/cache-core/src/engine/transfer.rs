//! Transfers, and the accounting that lets user I/O go before warm-up and cleaning.

use virtual_time::Nanos;

use super::Engine;
use super::action::{Action, Buffer, Device, Direction, IoState};

impl Engine {
    pub(super) fn transfer(
        &mut self,
        state: IoState,
        device: Device,
        direction: Direction,
        (offset, len): (u64, u32),
        buffer: Buffer,
    ) {
        self.origin_users += u32::from(self.is_users(&state));
        let in_background = self.is_in_background(&state);
        self.note_write(&state);
        let io = self.ios.insert(state);
        self.actions.push(Action::Transfer {
            io,
            device,
            direction,
            offset,
            len,
            buffer,
            in_background,
        });
    }

    /// Whether no request waits for this I/O.
    fn is_in_background(&self, state: &IoState) -> bool {
        match state {
            IoState::FetchRead { migration } | IoState::FetchStore { migration, .. } => {
                !self.migrations.is_for_request(*migration)
            }
            IoState::CopyOut { .. } | IoState::CopyBack { .. } => true,
            _ => false,
        }
    }

    /// Whether a request waits for this I/O on the origin.
    fn is_users(&self, state: &IoState) -> bool {
        match state {
            IoState::FetchRead { migration } => !self.is_warming(*migration),
            state => is_use_of_origin(state),
        }
    }

    pub(super) fn note_origin_used(&mut self, now: Nanos, state: &IoState) {
        if !is_use_of_origin(state) {
            return;
        }
        self.origin_used_at = now;
        match self.is_users(state) {
            true => {
                self.origin_users -= 1;
                self.users_left_at = Some(now);
                self.warm_reads.note_user();
                // A warm-up may have waited for it.
                self.look_for_work |= !self.jobs.is_empty();
            }
            false => self.warm_reads.end(now),
        }
    }
}

/// Whether a request, or a warm-up, waits for an I/O on the origin.
fn is_use_of_origin(state: &IoState) -> bool {
    matches!(
        state,
        IoState::Miss { .. }
            | IoState::FetchRead { .. }
            | IoState::FillRead { .. }
            | IoState::Through {
                device: Device::Origin,
                ..
            }
    )
}
