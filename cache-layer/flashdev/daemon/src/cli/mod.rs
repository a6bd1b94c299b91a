//! The arguments of the larger commands.

pub mod expect;
pub mod salvage;
mod source;
pub mod tier_args;
pub mod whatif;
