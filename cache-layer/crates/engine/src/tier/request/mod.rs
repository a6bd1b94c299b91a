//! The mounted device's side: requests as FUSE brings them.

mod discard;

use std::io;
use std::sync::Arc;

use nix::fcntl::FallocateFlags;

use super::Tier;
use crate::real_time::disk::is_discard;
use crate::real_time::flash::Slice;
use crate::reply::{Handler, Reply};

/// The accelerated device.
pub(super) struct Data(pub(super) Arc<Tier>);

impl Handler for Data {
    fn read(&self, offset: u64, len: u32, reply: Reply) {
        self.0.read(offset, len, reply);
    }

    fn write(&self, offset: u64, data: &[u8], reply: Reply) {
        self.0.write(offset, data, reply);
    }

    fn flush(&self, reply: Reply) {
        self.0.flush(reply);
    }

    /// Holes are punched; of the rest nothing is supported: what the kernel cannot have zeroed, it writes.
    fn allocate(&self, mode: FallocateFlags, offset: u64, len: u64, reply: Reply) {
        match is_discard(mode) {
            true => self.0.punch(offset, len, reply),
            false => reply.give(Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP))),
        }
    }

    fn grown_to(&self) -> Option<u64> {
        Some(self.0.served_bytes())
    }
}

/// The VOLUME: past the engine, but for its flushes. The flash is synced by one party only, because
/// Linux tells of an error of write-back once.
pub(super) struct Volume {
    pub(super) tier: Arc<Tier>,
    pub(super) slice: Slice,
}

impl Handler for Volume {
    fn read(&self, offset: u64, len: u32, reply: Reply) {
        self.slice.read(offset, len, reply);
    }

    fn write(&self, offset: u64, data: &[u8], reply: Reply) {
        self.slice.write(offset, data, reply);
    }

    fn flush(&self, reply: Reply) {
        self.tier.flush_volume(reply);
    }

    fn allocate(&self, mode: FallocateFlags, offset: u64, len: u64, reply: Reply) {
        self.slice.allocate(mode, offset, len, reply);
    }
}
