//! A request whose parts are served by flash and origin, and that is answered when all are done.

use std::sync::{Arc, Mutex, PoisonError};

use crate::serve::backing::PageBuffer;
use crate::serve::handler::{Answer, Outcome};

/// The request. Its parts are pieces, or runs of them.
pub(super) struct Joint {
    offset: u64,
    /// What is to be written; nothing for a read.
    data: Option<PageBuffer>,
    state: Mutex<State>,
}

struct State {
    parts_left: usize,
    /// What has been read, or the first error.
    outcome: Outcome,
    answer: Option<Answer>,
}

impl Joint {
    /// A read, from this place of the origin on.
    pub(super) fn of_read(offset: u64, len: u32, parts: usize, answer: Answer) -> Arc<Joint> {
        Joint::new(
            offset,
            None,
            PageBuffer::zeroed(len as usize),
            parts,
            answer,
        )
    }

    /// A write of this data, from this place of the origin on.
    pub(super) fn of_write(offset: u64, data: &[u8], parts: usize, answer: Answer) -> Arc<Joint> {
        let data = Some(PageBuffer::copy_of(data));
        Joint::new(offset, data, PageBuffer::empty(), parts, answer)
    }

    fn new(
        offset: u64,
        data: Option<PageBuffer>,
        buffer: PageBuffer,
        parts: usize,
        answer: Answer,
    ) -> Arc<Joint> {
        let state = State {
            parts_left: parts,
            outcome: Ok(buffer),
            answer: Some(answer),
        };
        let state = Mutex::new(state);
        Arc::new(Joint {
            offset,
            data,
            state,
        })
    }

    /// Whether it is a write.
    pub(super) fn is_write(&self) -> bool {
        self.data.is_some()
    }

    /// What is to be written in this range of the origin.
    pub(super) fn data(&self, offset: u64, len: u32) -> &[u8] {
        let start = (offset - self.offset) as usize;
        let data = self.data.as_ref().map_or(&[][..], PageBuffer::bytes);
        &data[start..start + len as usize]
    }

    /// The part that begins there is done. The last one answers the request.
    pub(super) fn done(&self, offset: u64, part: Outcome) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.parts_left -= 1;
        match (&mut state.outcome, part) {
            (Ok(whole), Ok(part)) => {
                let (start, bytes) = ((offset - self.offset) as usize, part.bytes());
                if !bytes.is_empty() {
                    whole.bytes_mut()[start..start + bytes.len()].copy_from_slice(bytes);
                }
            }
            (Ok(_), Err(error)) => state.outcome = Err(error),
            (Err(_), _) => {}
        }
        if state.parts_left > 0 {
            return;
        }
        let outcome = std::mem::replace(&mut state.outcome, Ok(PageBuffer::empty()));
        let answer = state.answer.take();
        drop(state);
        if let Some(answer) = answer {
            answer.give(outcome);
        }
    }
}
