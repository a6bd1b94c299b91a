//! A file whose requests are written down.

use std::sync::Arc;

use nix::fcntl::FallocateFlags;

use hotset_engine::reply::{Handler, Reply};
use whatif::trace::Recorder;

/// Another handler, watched.
pub(super) struct Recorded {
    pub(super) handler: Arc<dyn Handler>,
    pub(super) recorder: Arc<Recorder>,
}

impl Handler for Recorded {
    fn read(&self, offset: u64, len: u32, reply: Reply) {
        self.recorder.record(false, offset, len.into());
        self.handler.read(offset, len, reply);
    }

    fn write(&self, offset: u64, data: &[u8], reply: Reply) {
        self.recorder.record(true, offset, data.len() as u64);
        self.handler.write(offset, data, reply);
    }

    fn flush(&self, reply: Reply) {
        self.handler.flush(reply);
    }

    fn allocate(&self, mode: FallocateFlags, offset: u64, len: u64, reply: Reply) {
        self.handler.allocate(mode, offset, len, reply);
    }
}
