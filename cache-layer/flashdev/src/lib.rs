//! A file that behaves like a modelled slow storage device.
//!
//! From the ground up: [`device`] is what every modelled device can do, one hard disk and one
//! flash, [`array`] stripes requests over disks, [`link`] puts a network in front, [`model`] reads
//! a JSON description and composes the three, [`policy`] decides what a cache holds. All of that
//! is logic in virtual time: it holds no clock and does no I/O. [`expect`] and [`simulate`] drive
//! it with a virtual clock, [`serve`] with the real one; [`tier`] is the cache that keeps its
//! blocks on a flash file. [`copy`] and [`cpu`] are small tools beside it: a sequential copy, a
//! measure of a machine's CPU.

pub mod array;
pub mod copy;
pub mod cpu;
pub mod device;
pub mod expect;
pub mod link;
pub mod model;
pub mod policy;
pub mod serve;
pub mod simulate;
pub mod tier;
pub mod time;

/// A request of the user's that cannot be met as it stands: says why, and what would do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);
