//! Modelled devices on the real clock.

pub(crate) mod disk;
pub(crate) mod flash;
pub(crate) mod in_flight;
pub(crate) mod meter;
pub(crate) mod timed;
