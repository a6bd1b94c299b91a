//! A file that behaves like a modelled slow storage device, and a cache tier over one.
//!
//! The models (crate `storage_model`), the cache (`cache_core`) and traces (`whatif`) are logic in
//! virtual time; here they meet the real clock and real files. [`backing`] is the file that holds
//! the data, [`flash_file`] the flash of a tier, `ring` direct I/O that nobody waits for, [`real_time`] a modelled device on the real clock, [`mod@fuse`] the mounted files,
//! [`serve`] such a device and [`tier`] a cache over one, [`tools`] are small programs beside them.

pub mod backing;
pub mod control_socket;
pub mod direct_io;
pub mod flash_file;
pub mod fuse;
pub mod real_time;
mod ring;
pub mod serve;
pub mod tier;
pub mod tools;

/// A request of the user's that cannot be met as it stands: says why, and what would do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);
