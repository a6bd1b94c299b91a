//! The mounted files: FUSE's side of a daemon.

pub mod file_system;
pub mod mount;
