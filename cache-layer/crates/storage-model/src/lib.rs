//! Models of storage devices, in virtual time: they hold no clock and do no I/O.
//!
//! [`device`] is what every modelled device can do, and the devices: a hard disk, a flash, an array
//! that stripes requests over disks, a link that puts a network in front. [`spec`] reads a JSON
//! description and composes them, [`mod@expect`] says what a model promises.

pub mod device;
pub mod expect;
pub mod spec;
