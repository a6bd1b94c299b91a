//! What a server with flash runs: hotset's cache engine on real devices, and the small programs beside it.
//!
//! The cache ([`cache_core`]) is logic without I/O; here it meets the real clock and real files.
//! [`backing`] is the file or disk that holds the data, [`flash_file`] the flash, `ring` direct I/O that
//! nobody waits for, [`real_time`] both as devices, [`mod@fuse`] the mounted files, [`tier`] a cache, [`tools`]
//! copy, compare and record. No model of a device is in here: the lab's program puts its own behind
//! [`real_time::DeviceModel`].

pub mod backing;
pub mod cli;
pub mod control_socket;
pub mod daemon;
pub mod direct_io;
pub mod flash_file;
mod front;
pub mod fuse;
pub mod real_time;
pub mod reply;
mod ring;
pub mod tier;
pub mod tools;
pub mod ublk;

use block_trace::TraceError;
use cache_core::layout::LayoutError;
use cache_core::metadata::MetadataError;

/// A request of the user's that cannot be met as it stands: says why, and what would do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// Whether what was asked for cannot be, rather than has failed.
pub fn is_refusal(error: &anyhow::Error) -> bool {
    let metadata = error.downcast_ref().is_some_and(MetadataError::is_refusal);
    let trace = error.downcast_ref().is_some_and(TraceError::is_refusal);
    metadata || trace || error.is::<Refusal>() || error.is::<LayoutError>()
}
