//! A file that behaves like a modelled slow storage device, and a cache tier over one.
//!
//! From the ground up: [`device`] is what every modelled device can do, one hard disk and one
//! flash, [`mod@array`] stripes requests over disks, [`link`] puts a network in front, [`model`]
//! reads a JSON description and composes the three, [`policy`] decides what a cache holds. All of
//! that is logic in virtual time: it holds no clock and does no I/O. [`expect`] and [`simulate`]
//! drive it with a virtual clock, [`serve`] and [`tier`] (the cache that keeps its blocks on a
//! flash file) with the real one. [`trace`] is what was asked of a device and when, [`replay`]
//! asks it again. [`ask`], [`copy`] and [`cpu`] are small tools beside it.

pub mod array;
pub mod ask;
pub mod compare;
pub mod copy;
pub mod cpu;
pub mod device;
pub mod expect;
pub mod link;
pub mod model;
pub mod policy;
pub mod replay;
pub mod serve;
pub mod simulate;
pub mod tier;
pub mod time;
pub mod trace;

/// A request of the user's that cannot be met as it stands: says why, and what would do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);
