//! The lab: files that behave like modelled storage devices.
//!
//! The models (crate `storage_model`) are logic in virtual time; [`timed`] puts one on the real clock,
//! [`serve`] serves one as a file, and [`modelled`] gives them to hotset's own engine
//! (`hotset_engine::tier`) in place of real devices. [`tools`] are small programs beside them.

mod in_flight;
pub mod modelled;
pub mod serve;
pub mod timed;
pub mod tools;
