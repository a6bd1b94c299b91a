//! The arguments of the larger commands.

pub mod expect;
pub mod modelled_tier;
mod source;
pub mod whatif;
