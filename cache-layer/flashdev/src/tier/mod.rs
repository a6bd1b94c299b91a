//! The emulated cache tier: blocks of a slow origin kept in a flash file.

pub mod layout;
pub mod metadata;
pub mod origin;
