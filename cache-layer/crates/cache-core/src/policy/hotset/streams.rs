//! Who reads block after block: the mark of a scan.
//!
//! A cache that bypasses scans goes by how many bytes follow each other in one thread's requests
//! (bcache's `sequential_cutoff`). Workers of one query share a table, though, and requests
//! overtake each other; so here a reader is known by the place where it reads.

use std::ops::Range;

use super::super::Block;

/// How many readers are told apart.
const READERS: usize = 128;
/// So many blocks ahead of its front a reader may go on: what lies between was there already.
const AHEAD: Block = 16;
/// So many blocks behind it may come late: workers share a table, and requests overtake each other.
const BEHIND: Block = 4;
/// Who has read so many of the last 16 blocks begins to scan. Requests in no order meet the few
/// blocks around a front too rarely: of 16 they read some three.
const SCANS_FROM: u32 = 12;
/// Who has read fewer scans no longer.
const SCANS_LEAST: u32 = 4;

/// Where a reader is.
struct Reader {
    front: Block,
    /// The front and the 15 blocks before it, from the lowest bit on: whether they were read.
    read: u16,
    scans: bool,
}

impl Reader {
    fn may_want(&self, block: Block) -> bool {
        let least = self.front.saturating_sub(BEHIND);
        (least..self.front.saturating_add(AHEAD)).contains(&block)
    }

    fn read(&mut self, block: Block) {
        if let Some(further) = block.checked_sub(self.front) {
            self.read <<= further;
            self.front = block;
        }
        self.read |= 1 << (self.front - block);
        let enough = if self.scans { SCANS_LEAST } else { SCANS_FROM };
        self.scans = self.read.count_ones() >= enough;
    }

    /// Whether it may be nothing but chance.
    fn is_chance(&self) -> bool {
        self.read.count_ones() < SCANS_LEAST
    }
}

/// The latest readers.
pub struct Streams(Vec<Reader>);

impl Streams {
    pub fn new() -> Streams {
        Streams(Vec::with_capacity(READERS))
    }

    /// A read hits a block: whoever read last may go on there.
    pub fn hit(&mut self, block: Block) {
        if let Some(reader) = self.0.first_mut().filter(|reader| reader.may_want(block)) {
            reader.read(block);
        }
    }

    /// A read misses a block. If it is part of a scan: the blocks of which that is known now.
    pub fn miss(&mut self, block: Block) -> Option<Range<Block>> {
        let known = self.0.iter().position(|reader| reader.may_want(block));
        let mut reader = match known {
            Some(at) => self.0.remove(at),
            None => {
                self.forget();
                Reader {
                    front: block,
                    read: 0,
                    scans: false,
                }
            }
        };
        let began_before = reader.scans;
        reader.read(block);
        let scanned = match (reader.scans, began_before) {
            (false, _) => None,
            (true, false) => Some(reader.front.saturating_sub(u16::BITS - 1)..reader.front + 1),
            (true, true) => Some(block..block + 1),
        };
        self.0.insert(0, reader);
        scanned
    }

    /// Makes room: at the cost of who has not read for longest, of those that may be chance if any.
    fn forget(&mut self) {
        if self.0.len() < READERS {
            return;
        }
        let at = self.0.iter().rposition(Reader::is_chance);
        let at = at.unwrap_or(READERS - 1);
        self.0.remove(at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the last of some reads that miss is part of a scan.
    fn scans(blocks: impl IntoIterator<Item = Block>) -> bool {
        let mut streams = Streams::new();
        let scans = blocks
            .into_iter()
            .map(|block| streams.miss(block).is_some());
        scans.last().unwrap()
    }

    /// Numbers in no order.
    fn random(mut state: u32) -> impl Iterator<Item = Block> {
        std::iter::repeat_with(move || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state >> 8
        })
    }

    #[test]
    fn who_reads_block_after_block_scans_after_a_while() {
        let mut streams = Streams::new();
        let scans: Vec<_> = (100..113).map(|block| streams.miss(block)).collect();
        assert!(scans[..11].iter().all(Option::is_none));
        assert_eq!(scans[11..], [Some(96..112), Some(112..113)]);
    }

    #[test]
    fn blocks_that_are_there_and_requests_out_of_order_change_nothing() {
        assert!(scans(
            (100..200).filter(|block| *block < 120 || block % 5 < 2)
        ));
        assert!(scans((100..200).map(|block| block ^ 3)));
    }

    #[test]
    fn many_reads_elsewhere_do_not_hide_a_scan() {
        let mut others = random(1).map(|number| 1_000_000 + number);
        let mut streams = Streams::new();
        let scans = (0..20).map(|block| {
            others.by_ref().take(100).for_each(|other| {
                streams.miss(other);
            });
            streams.miss(block).is_some()
        });
        assert_eq!(scans.last(), Some(true));
    }

    #[test]
    fn reads_in_no_order_are_no_scan_however_small_the_place() {
        for blocks in [20, 64, 200, 1000, 5000, 100_000] {
            let mut streams = Streams::new();
            let reads = random(blocks).take(50_000);
            let scans = reads.filter(|number| streams.miss(number % blocks).is_some());
            let scans = scans.count();
            assert!(scans < 50, "{scans} of 50,000 in {blocks} blocks");
        }
    }
}
