//! The arguments of the larger commands.

mod source;
pub mod tier_args;
pub mod whatif;
