//! The origin's own sequential rate, past the cache: what a warm-up is measured against.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Instant;

use serde::Serialize;

use super::Tier;

use crate::reply::{Handler, Outcome, Reply};

/// What is read at a time, bytes, and how many such reads are under way: as in a warm-up.
const READ_BYTES: u64 = 1 << 20;
const READS: usize = 4;

/// What was read, and how long it took.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Rate {
    pub(super) bytes: u64,
    /// Real time.
    pub(super) seconds: f64,
}

impl Tier {
    /// Reads the origin from its start on, the way a warm-up does.
    pub(super) fn origin_rate(&self, bytes: u64) -> io::Result<Rate> {
        let began = Instant::now();
        let bytes = bytes.min(self.served_bytes());
        let mut ahead: VecDeque<Receiver<Outcome>> = VecDeque::new();
        for offset in (0..bytes).step_by(READ_BYTES as usize) {
            if ahead.len() == READS {
                wait(ahead.pop_front())?;
            }
            let (sender, read) = sync_channel(1);
            let arrive = move |outcome| {
                // The receiver may have given up after an error.
                let _ = sender.send(outcome);
            };
            let len = READ_BYTES.min(bytes - offset) as u32;
            self.origin.read(offset, len, Reply::then(arrive));
            ahead.push_back(read);
        }
        while !ahead.is_empty() {
            wait(ahead.pop_front())?;
        }
        let seconds = began.elapsed().as_secs_f64();
        Ok(Rate { bytes, seconds })
    }
}

fn wait(read: Option<Receiver<Outcome>>) -> io::Result<()> {
    let gone = |_| Err(io::Error::other("the read was dropped"));
    read.map_or(Ok(()), |read| read.recv().unwrap_or_else(gone).map(|_| ()))
}
