//! The arguments of the larger commands.

pub mod expect;
mod source;
pub mod tier_args;
pub mod whatif;
