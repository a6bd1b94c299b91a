//! The devices below a cache, on the real clock: an origin, a flash, what goes through them.
//!
//! A reply goes out once the data has moved. Where a [`Pacer`] is given, it goes out no earlier than that
//! says as well: so the lab makes devices slow. A server's have none.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use crate::reply::{Outcome, Reply};

pub mod disk;
pub mod flash;
pub mod meter;
#[cfg(test)]
pub(crate) mod slow;

/// How long requests in flight are waited for after an unmount, real time. A full queue of the
/// slowest disk is through in less.
pub const REST_LIMIT: Duration = Duration::from_secs(10);

/// What is asked of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Bytes are read.
    Read,
    /// Bytes are written.
    Write,
    /// What was written becomes durable.
    Flush,
    /// A range is not needed any more.
    Discard,
}

/// Has what is below synced for the flush of this tag; [`Pacer::moved`] says when it is.
pub type SyncBacking = Box<dyn Fn(u64) + Send + Sync>;

/// Decides when replies go out: never before the data has moved.
pub trait Pacer: Send + Sync {
    /// Takes a request; its tag. A flush has the backing synced in its time.
    fn admit(&self, op: Op, offset: u64, len: u64, reply: Reply) -> u64;

    /// The data of a read or write has moved, or the sync of a flush is done.
    fn moved(&self, tag: u64, outcome: Outcome);

    /// A range is not needed any more: nobody waits for what comes of that.
    fn discard(&self, offset: u64, len: u64);

    /// Waits until no request is left, or the time is up.
    fn wait_for_rest(&self, limit: Duration);
}

/// Makes the pacer of a device once that is known.
pub type StartPacer<'a> = Box<dyn FnOnce(SyncBacking) -> anyhow::Result<Arc<dyn Pacer>> + 'a>;

/// What a device is to be like, where it is not to be as fast as it is.
pub trait DeviceModel: Debug + Send + Sync {
    /// Starts the pacer of a device of so many bytes.
    ///
    /// # Errors
    /// There can be no such device, or no thread for it.
    fn start(&self, bytes: u64, sync: SyncBacking) -> anyhow::Result<Arc<dyn Pacer>>;
}

/// The way to start a model, if there is one.
pub(crate) fn pacer_of<'a>(
    model: &'a Option<Arc<dyn DeviceModel>>,
    bytes: u64,
) -> Option<StartPacer<'a>> {
    let model = model.as_deref()?;
    Some(Box::new(move |sync| model.start(bytes, sync)))
}
