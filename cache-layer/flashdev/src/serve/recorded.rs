//! A file whose requests are written down.

use std::sync::Arc;

use nix::fcntl::FallocateFlags;

use super::handler::{Answer, Handler};
use crate::trace::Recorder;

/// Another handler, watched.
pub(super) struct Recorded {
    pub(super) handler: Arc<dyn Handler>,
    pub(super) recorder: Arc<Recorder>,
}

impl Handler for Recorded {
    fn read(&self, offset: u64, len: u32, answer: Answer) {
        self.recorder.record(false, offset, len.into());
        self.handler.read(offset, len, answer);
    }

    fn write(&self, offset: u64, data: &[u8], answer: Answer) {
        self.recorder.record(true, offset, data.len() as u64);
        self.handler.write(offset, data, answer);
    }

    fn flush(&self, answer: Answer) {
        self.handler.flush(answer);
    }

    fn allocate(&self, mode: FallocateFlags, offset: u64, len: u64, answer: Answer) {
        self.handler.allocate(mode, offset, len, answer);
    }
}
