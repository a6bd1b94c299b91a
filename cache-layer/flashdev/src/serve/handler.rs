//! What a served file does with requests, and where its answers go.

use std::io;
use std::sync::mpsc::sync_channel;

use fuser::{Errno, ReplyData, ReplyEmpty, ReplyWrite};
use nix::fcntl::FallocateFlags;

use super::backing::PageBuffer;

/// What came of a request: the bytes of a read; none for anything else.
pub(crate) type Outcome = io::Result<PageBuffer>;

/// A file's behaviour. Ranges lie within the file and are not empty.
///
/// None of these waits for a modelled device: they take the request and return, and whoever
/// finishes it gives the answer.
pub(crate) trait Handler: Send + Sync {
    /// Reads a range.
    fn read(&self, offset: u64, len: u32, answer: Answer);

    /// Writes a range.
    fn write(&self, offset: u64, data: &[u8], answer: Answer);

    /// Makes durable what was answered before.
    fn flush(&self, answer: Answer);

    /// Allocates, punches or zeroes a range, as fallocate(2) does.
    fn allocate(&self, mode: FallocateFlags, offset: u64, len: u64, answer: Answer);
}

/// Where the answer to a request goes; to be given exactly once.
pub(crate) enum Answer {
    /// To the kernel: the bytes of a read.
    Data(ReplyData),
    /// To the kernel: so many bytes were written.
    Written(ReplyWrite, u32),
    /// To the kernel: done.
    Done(ReplyEmpty),
    /// To whoever in this process waits for it. Must not take long: it may hold up other answers.
    Then(Box<dyn FnOnce(Outcome) + Send>),
}

impl Answer {
    /// A continuation.
    pub(crate) fn then(next: impl FnOnce(Outcome) + Send + 'static) -> Answer {
        Answer::Then(Box::new(next))
    }

    /// Gives the answer.
    pub(crate) fn give(self, outcome: Outcome) {
        match (self, outcome) {
            (Answer::Then(next), outcome) => next(outcome),
            (answer, Ok(buffer)) => answer.give_bytes(buffer.bytes()),
            (Answer::Data(reply), Err(error)) => reply.error(Errno::from(error)),
            (Answer::Written(reply, _), Err(error)) => reply.error(Errno::from(error)),
            (Answer::Done(reply), Err(error)) => reply.error(Errno::from(error)),
        }
    }

    /// Gives the answer to a request that has gone well, out of borrowed memory.
    pub(crate) fn give_bytes(self, bytes: &[u8]) {
        match self {
            Answer::Data(reply) => reply.data(bytes),
            Answer::Written(reply, len) => reply.written(len),
            Answer::Done(reply) => reply.ok(),
            Answer::Then(next) => next(Ok(PageBuffer::copy_of(bytes))),
        }
    }
}

/// Asks for something and waits until it is answered.
pub(crate) fn wait_for(ask: impl FnOnce(Answer)) -> Outcome {
    let (sender, receiver) = sync_channel(1);
    ask(Answer::then(move |outcome| {
        // The receiver waits below.
        let _ = sender.send(outcome);
    }));
    receiver
        .recv()
        .unwrap_or_else(|_| Err(io::Error::other("the request was dropped")))
}
