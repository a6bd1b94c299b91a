//! Discards of the cached device, which come as holes to be punched: what they cover then reads as zeros.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::reply::Reply;
use crate::tier::Tier;

/// Most blocks that the engine is asked to discard at a time: it thinks of each, some tenths of a
/// microsecond, and other requests wait for that.
const BLOCKS_AT_A_TIME: u64 = 1024;

/// Most bytes of them.
const BYTES_AT_A_TIME: u64 = 1 << 30;

/// A part of a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Whole blocks.
    Blocks { offset: u64, len: u32 },
    /// Less than a block: zeros are written.
    Zeros { offset: u64, len: u32 },
}

impl Tier {
    /// Punches a hole, which lies within the device.
    pub(in crate::tier) fn punch(self: &Arc<Self>, offset: u64, len: u64, reply: Reply) {
        let parts = cut(offset, len, self.block_bytes, self.served_bytes());
        let together = Arc::new(Together::new(parts.len(), reply));
        for part in parts {
            let together = together.clone();
            let reply = Reply::then(move |outcome| together.end_one(outcome.err()));
            match part {
                Part::Blocks { offset, len } => self.discard(offset, len, reply),
                Part::Zeros { offset, len } => self.write(offset, &vec![0; len as usize], reply),
            }
        }
    }
}

/// A hole as the engine has it. The device's last block may be cut short.
fn cut(offset: u64, len: u64, block_bytes: u64, device_bytes: u64) -> Vec<Part> {
    let end = offset + len;
    let first = offset.next_multiple_of(block_bytes);
    let last = match end == device_bytes {
        true => end,
        false => end - end % block_bytes,
    };
    let zeros = |from: u64, to: u64| Part::Zeros {
        offset: from,
        len: (to - from) as u32,
    };
    if first >= last {
        // No whole block; there may be the boundary of two in it.
        let middle = first.min(end);
        let parts = [(offset, middle), (middle, end)];
        let filled = parts.into_iter().filter(|(from, to)| from < to);
        return filled.map(|(from, to)| zeros(from, to)).collect();
    }
    let mut parts = Vec::new();
    parts.extend((offset < first).then(|| zeros(offset, first)));
    let bytes = (BLOCKS_AT_A_TIME * block_bytes).min(BYTES_AT_A_TIME);
    for from in (first..last).step_by(bytes as usize) {
        let len = bytes.min(last - from) as u32;
        parts.push(Part::Blocks { offset: from, len });
    }
    parts.extend((last < end).then(|| zeros(last, end)));
    parts
}

/// One reply for several requests.
struct Together {
    left: AtomicUsize,
    error: Mutex<Option<io::Error>>,
    reply: Mutex<Option<Reply>>,
}

impl Together {
    fn new(requests: usize, reply: Reply) -> Together {
        Together {
            left: AtomicUsize::new(requests),
            error: Mutex::new(None),
            reply: Mutex::new(Some(reply)),
        }
    }

    fn end_one(&self, error: Option<io::Error>) {
        if let Some(error) = error {
            self.error.lock().get_or_insert(error);
        }
        if self.left.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let Some(reply) = self.reply.lock().take() else {
            return;
        };
        match self.error.lock().take() {
            None => reply.give_bytes(&[]),
            Some(error) => reply.give(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::wait_for;

    const BLOCK: u64 = 4096;
    const DEVICE: u64 = 5 * (1 << 30) + 100;
    const MOST: u64 = BLOCKS_AT_A_TIME * BLOCK;

    /// Later ones may only follow from it.
    #[test]
    fn of_several_errors_the_first_is_told() {
        let error = wait_for(|reply| {
            let together = Together::new(4, reply);
            together.end_one(None);
            for code in [libc::ENOSPC, libc::ESHUTDOWN] {
                together.end_one(Some(io::Error::from_raw_os_error(code)));
            }
            together.end_one(None);
        });
        assert_eq!(error.unwrap_err().raw_os_error(), Some(libc::ENOSPC));
    }

    /// Others come in between, so that nobody waits for all of a large one.
    #[test]
    fn no_part_of_a_hole_keeps_the_engine_for_more_than_some_blocks() {
        for block_bytes in [4096, 64 << 10, 4 << 20] {
            let parts = cut(0, 1 << 30, block_bytes, 1 << 40);
            let all: u64 = parts.iter().map(|part| len_of(*part)).sum();
            assert_eq!(all, 1 << 30, "blocks of {block_bytes}");
            let most = parts.iter().map(|part| len_of(*part) / block_bytes).max();
            assert!(
                most <= Some(1024),
                "{most:?} blocks of {block_bytes} at a time"
            );
        }
    }

    fn len_of(part: Part) -> u64 {
        let (Part::Blocks { len, .. } | Part::Zeros { len, .. }) = part;
        len.into()
    }

    #[test]
    fn a_hole_is_cut_into_whole_blocks_and_the_rest() {
        let blocks = |offset, len| Part::Blocks { offset, len };
        let zeros = |offset, len| Part::Zeros { offset, len };
        for (offset, len, parts) in [
            (0, BLOCK, vec![blocks(0, 4096)]),
            (10, 20, vec![zeros(10, 20)]),
            (4000, 200, vec![zeros(4000, 96), zeros(4096, 104)]),
            (
                10,
                3 * BLOCK,
                vec![zeros(10, 4086), blocks(4096, 8192), zeros(3 * BLOCK, 10)],
            ),
            (DEVICE - 100, 100, vec![blocks(DEVICE - 100, 100)]),
            (DEVICE - 100, 99, vec![zeros(DEVICE - 100, 99)]),
            (
                BLOCK,
                MOST + BLOCK,
                vec![blocks(BLOCK, MOST as u32), blocks(BLOCK + MOST, 4096)],
            ),
        ] {
            assert_eq!(cut(offset, len, BLOCK, DEVICE), parts, "{offset} {len}");
        }
    }
}
