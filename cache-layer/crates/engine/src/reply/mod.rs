//! What a served file does with requests, and where its replies go.

pub(crate) mod block;

use std::io;
use std::sync::mpsc::sync_channel;

use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};
use nix::fcntl::FallocateFlags;

use crate::direct_io::PageBuffer;

/// What came of a request: the bytes of a read; none for anything else.
pub type Outcome = io::Result<PageBuffer>;

/// A file's behaviour. Ranges lie within the file and are not empty.
///
/// None of these waits for the device: they take the request and return, and whoever
/// finishes it gives the reply.
pub trait Handler: Send + Sync {
    /// Reads a range.
    fn read(&self, offset: u64, len: u32, reply: Reply);

    /// Writes a range.
    fn write(&self, offset: u64, data: &[u8], reply: Reply);

    /// Makes durable what was answered before.
    fn flush(&self, reply: Reply);

    /// Allocates, punches or zeroes a range, as fallocate(2) does.
    fn allocate(&self, mode: FallocateFlags, offset: u64, len: u64, reply: Reply);

    /// Its size by now, bytes, of one that may have grown since it was mounted.
    fn grown_to(&self) -> Option<u64> {
        None
    }
}

/// Where the reply to a request goes; to be given exactly once. The kernel takes one that is dropped for
/// an error, and so do those in this process who wait for one that may be.
pub enum Reply {
    /// To the kernel: the bytes of a read.
    Data(ReplyData),
    /// To the kernel: so many bytes were written.
    Written(ReplyWrite, u32),
    /// To the kernel: done.
    Done(ReplyEmpty),
    /// To the kernel: a block device's request, whatever it was.
    Block(block::Request),
    /// To whoever in this process waits for it. Must not take long: it may hold up other replies.
    Then(Box<dyn FnOnce(Outcome) + Send>),
}

impl Reply {
    /// A continuation.
    pub fn then(next: impl FnOnce(Outcome) + Send + 'static) -> Reply {
        Reply::Then(Box::new(next))
    }

    /// Gives the reply.
    pub fn give(self, outcome: Outcome) {
        match (self, outcome) {
            (Reply::Then(next), outcome) => next(outcome),
            (Reply::Block(request), outcome) => request.give(outcome),
            (reply, Ok(buffer)) => reply.give_bytes(buffer.bytes()),
            (Reply::Data(reply), Err(error)) => reply.error(Errno::from(error)),
            (Reply::Written(reply, _), Err(error)) => reply.error(Errno::from(error)),
            (Reply::Done(reply), Err(error)) => reply.error(Errno::from(error)),
        }
    }

    /// Gives the reply to a request that has gone well, out of borrowed memory.
    pub fn give_bytes(self, bytes: &[u8]) {
        match self {
            Reply::Data(reply) => reply.data(bytes),
            Reply::Written(reply, len) => reply.written(len),
            Reply::Done(reply) => reply.ok(),
            Reply::Block(request) => request.give_bytes(bytes),
            Reply::Then(next) => next(Ok(PageBuffer::copy_of(bytes))),
        }
    }
}

/// Asks for something and waits until it is answered.
pub fn wait_for(ask: impl FnOnce(Reply)) -> Outcome {
    let (sender, receiver) = sync_channel(1);
    ask(Reply::then(move |outcome| {
        // The receiver waits below.
        let _ = sender.send(outcome);
    }));
    receiver
        .recv()
        .unwrap_or_else(|_| Err(io::Error::other("the request was dropped")))
}
