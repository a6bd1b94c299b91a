//! A block cache without I/O: what is cached, where, and how that survives a crash.
//!
//! [`policy`] decides which blocks are worth a place, [`metadata`] remembers through crashes which
//! block is where, [`engine`] is the cache: a state machine whose driver does the I/O. [`layout`]
//! cuts the flash into METADATA, CACHE and VOLUME.

#[cfg(test)]
mod dice;
pub mod engine;
pub mod layout;
pub mod metadata;
mod number_map;
pub mod policy;
