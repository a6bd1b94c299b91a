//! The mounted files: FUSE's side of a daemon.

pub(crate) mod daemon;
pub(crate) mod file_system;
pub(crate) mod mount;
pub(crate) mod reply;
