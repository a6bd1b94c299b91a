//! The dies and channels of a flash device, its write buffer and its garbage collection.
//!
//! Writes go to the dies in turn, a page each (a log, as all such devices keep one); which die a
//! page is read from follows from its address. A die does one thing at a time; a channel carries
//! one page at a time. Reads go before queued programs, and suspend one that is under way.
//!
//! Garbage collection is not played block by block, which would need a table of the whole device
//! for a file of some GB, but charged to each write by the formula for random writes to a device
//! so full (Desnoyers, "Analytic Modeling of SSD Write Performance", SYSTOR 2012): of a block
//! that is cleaned, the share `v = exp(-a (1 - v))` is still valid, where `a` is the physical
//! size over the size in use; each page written costs `1 / (1 - v)` pages programmed. Runs that go
//! on where a write ended free whole blocks later, and cost none.

use std::collections::{BinaryHeap, VecDeque};

use std::cmp::Reverse;
use virtual_time::Nanos;

/// The pieces a discard is accounted in, bytes.
const PIECE_BYTES: u64 = 1 << 20;

/// How many recent ends of writes are remembered to tell runs.
const RUNS_MAX: usize = 16;

/// What the dies are built from; the model checks the values.
#[derive(Clone, Debug, PartialEq)]
pub struct NandSpec {
    /// Channels, each with its dies.
    pub channels: u32,
    /// Dies on one channel.
    pub dies_per_channel: u32,
    /// What one operation of a die moves (all of its planes), bytes.
    pub page_bytes: u64,
    /// Pages of a block (of all planes), the unit that is erased.
    pub pages_per_block: u32,
    /// From the cells to the die's register.
    pub read: Nanos,
    /// From the register to the cells.
    pub program: Nanos,
    /// Erasing a block.
    pub erase: Nanos,
    /// A program or erase under way lets a read in after so long.
    pub suspend: Nanos,
    /// A channel, nanoseconds a byte.
    pub channel_ns_per_byte: f64,
    /// What the write buffer holds, bytes.
    pub buffer_bytes: u64,
    /// Physical size over the size the host sees.
    pub over_provisioning: f64,
    /// Size that the host sees and uses, bytes.
    pub size_bytes: u64,
}

/// What a write came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Written {
    /// Until the buffer had room.
    pub waited: Nanos,
    /// When the last of it is in the cells.
    pub programmed_at: Nanos,
    /// What went to the cells for it, garbage collection included, bytes.
    pub cell_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Die {
    /// When the programs that it has been given are done.
    programs_until: Nanos,
    /// When the reads are.
    reads_until: Nanos,
}

/// The dies of one device.
#[derive(Debug)]
pub struct Nand {
    spec: NandSpec,
    dies: Vec<Die>,
    channels_free_at: Vec<Nanos>,
    next_die: usize,
    /// Of the page that the buffer is collecting, bytes.
    collected_bytes: u64,
    /// When buffered pages will be in the cells, and their bytes.
    buffered: BinaryHeap<Reverse<(Nanos, u64)>>,
    buffered_bytes: u64,
    recent_ends: VecDeque<u64>,
    /// Which pieces hold data, for the garbage collection.
    used: Vec<bool>,
    used_pieces: usize,
    write_amplification: f64,
}

impl Nand {
    /// Dies at rest, of a device that is full: the steady state.
    pub fn new(spec: &NandSpec) -> Nand {
        let pieces = spec.size_bytes.div_ceil(PIECE_BYTES).max(1) as usize;
        let mut nand = Nand {
            dies: vec![Die::default(); (spec.channels * spec.dies_per_channel) as usize],
            channels_free_at: vec![0; spec.channels as usize],
            next_die: 0,
            collected_bytes: 0,
            buffered: BinaryHeap::new(),
            buffered_bytes: 0,
            recent_ends: VecDeque::new(),
            used: vec![true; pieces],
            used_pieces: pieces,
            write_amplification: 1.0,
            spec: spec.clone(),
        };
        nand.weigh();
        nand
    }

    /// How much longer a read takes than one that has the device to itself.
    pub fn read(&mut self, now: Nanos, offset: u64, len: u64) -> Nanos {
        let first = offset / self.spec.page_bytes;
        let last = (offset + len.max(1) - 1) / self.spec.page_bytes;
        let mut worst = 0;
        for page in first..=last {
            let from = offset.max(page * self.spec.page_bytes);
            let to = (offset + len).min((page + 1) * self.spec.page_bytes);
            let transfer = self.transfer(to.saturating_sub(from));
            worst = worst.max(self.read_page(now, page, transfer));
        }
        worst
    }

    /// Puts a write into the buffer and its full pages on their way to the dies.
    pub fn write(&mut self, now: Nanos, offset: u64, len: u64) -> Written {
        self.drain(now);
        self.use_pieces(offset, len);
        let waited = self.wait_for_room(now, len);
        let amplification = match self.goes_on(offset, len) {
            true => 1.0,
            false => self.write_amplification,
        };
        let mut programmed_at = now + waited;
        self.collected_bytes += len;
        while self.collected_bytes >= self.spec.page_bytes {
            self.collected_bytes -= self.spec.page_bytes;
            programmed_at = programmed_at.max(self.program_page(now + waited, amplification));
        }
        Written {
            waited,
            programmed_at,
            cell_bytes: (len as f64 * amplification).round() as u64,
        }
    }

    /// The host needs these bytes no longer.
    pub fn discard(&mut self, offset: u64, len: u64) {
        let first = offset.div_ceil(PIECE_BYTES) as usize;
        let end = (((offset + len) / PIECE_BYTES) as usize).min(self.used.len());
        for used in self
            .used
            .get_mut(first..end.max(first))
            .into_iter()
            .flatten()
        {
            self.used_pieces -= usize::from(std::mem::take(used));
        }
        self.weigh();
    }

    fn transfer(&self, bytes: u64) -> Nanos {
        (bytes as f64 * self.spec.channel_ns_per_byte).round() as Nanos
    }

    fn read_page(&mut self, now: Nanos, page: u64, transfer: Nanos) -> Nanos {
        let number = scatter(page) as usize % self.dies.len();
        let channel = number % self.channels_free_at.len();
        let die = &mut self.dies[number];
        let wait_for_program = match die.programs_until.checked_sub(now) {
            None | Some(0) => 0,
            // Programs follow one another without a gap, so this is what is left of one.
            Some(left) => (left % self.spec.program.max(1)).min(self.spec.suspend),
        };
        let start = (now + wait_for_program).max(die.reads_until);
        let in_register = start + self.spec.read;
        die.reads_until = in_register;
        if wait_for_program > 0 {
            die.programs_until += self.spec.read;
        }
        let sent_from = in_register.max(self.channels_free_at[channel]);
        self.channels_free_at[channel] = sent_from + transfer;
        sent_from - (now + self.spec.read)
    }

    fn program_page(&mut self, now: Nanos, amplification: f64) -> Nanos {
        let number = self.next_die;
        self.next_die = (number + 1) % self.dies.len();
        let channel = number % self.channels_free_at.len();
        let transfer = self.transfer(self.spec.page_bytes);
        let sent_at = self.channels_free_at[channel].max(now) + transfer;
        self.channels_free_at[channel] = sent_at;
        let die = &mut self.dies[number];
        let moved = amplification - 1.0;
        let collection = moved * (self.spec.read + self.spec.program) as f64
            + amplification * self.spec.erase as f64 / f64::from(self.spec.pages_per_block);
        let start = sent_at.max(die.programs_until).max(die.reads_until);
        let done_at = start + self.spec.program + collection.round() as Nanos;
        die.programs_until = done_at;
        self.buffered.push(Reverse((done_at, self.spec.page_bytes)));
        self.buffered_bytes += self.spec.page_bytes;
        done_at
    }

    fn drain(&mut self, now: Nanos) {
        while let Some(Reverse((at, bytes))) = self.buffered.peek().copied() {
            if at > now {
                return;
            }
            self.buffered.pop();
            self.buffered_bytes -= bytes;
        }
    }

    /// How long until the buffer has room for so many bytes (or is empty, for a larger write).
    fn wait_for_room(&mut self, now: Nanos, len: u64) -> Nanos {
        let room = self.spec.buffer_bytes.max(self.spec.page_bytes);
        let mut at = now;
        while self.buffered_bytes + len > room {
            let Some(Reverse((next, _))) = self.buffered.peek().copied() else {
                break;
            };
            at = at.max(next);
            self.drain(at);
        }
        at - now
    }

    fn goes_on(&mut self, offset: u64, len: u64) -> bool {
        let known = self.recent_ends.iter().position(|&end| end == offset);
        if let Some(index) = known {
            self.recent_ends.remove(index);
        }
        self.recent_ends.push_back(offset + len);
        if self.recent_ends.len() > RUNS_MAX {
            self.recent_ends.pop_front();
        }
        known.is_some()
    }

    fn use_pieces(&mut self, offset: u64, len: u64) {
        let first = (offset / PIECE_BYTES) as usize;
        let end = ((offset + len).div_ceil(PIECE_BYTES) as usize).min(self.used.len());
        let before = self.used_pieces;
        for used in self
            .used
            .get_mut(first..end.max(first))
            .into_iter()
            .flatten()
        {
            self.used_pieces += usize::from(!std::mem::replace(used, true));
        }
        if self.used_pieces > before {
            self.weigh();
        }
    }

    fn weigh(&mut self) {
        let in_use = (self.used_pieces as f64 / self.used.len() as f64).max(1e-3);
        self.write_amplification = write_amplification(self.spec.over_provisioning / in_use);
    }
}

/// Pages programmed per page written at random, for a physical size of `spare` times the size in
/// use.
fn write_amplification(spare: f64) -> f64 {
    let mut valid = 0.0;
    for _ in 0..200 {
        valid = f64::exp(-spare * (1.0 - valid));
    }
    1.0 / (1.0 - valid)
}

/// Spreads addresses over dies as a log that was written at random does.
fn scatter(page: u64) -> u64 {
    page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const US: Nanos = 1_000;
    const PAGE: u64 = 16_384;

    fn spec() -> NandSpec {
        NandSpec {
            channels: 2,
            dies_per_channel: 2,
            page_bytes: PAGE,
            pages_per_block: 256,
            read: 50 * US,
            program: 400 * US,
            erase: 3_000 * US,
            suspend: 10 * US,
            channel_ns_per_byte: 1.0,
            buffer_bytes: 4 * PAGE,
            over_provisioning: 1.07,
            size_bytes: 1 << 30,
        }
    }

    #[test]
    fn a_read_alone_waits_for_nothing() {
        assert_eq!(Nand::new(&spec()).read(0, 0, 4096), 0);
    }

    #[test]
    fn two_reads_of_one_die_meet() {
        let mut nand = Nand::new(&spec());
        nand.read(0, 0, 4096);
        assert_eq!(nand.read(0, 0, 4096), 50 * US);
    }

    #[test]
    fn a_read_suspends_a_program() {
        let mut nand = Nand::new(&spec());
        nand.write(0, 0, 4 * PAGE);
        let waited = nand.read(100 * US, 0, 4096);
        assert!((1..=10 * US).contains(&waited), "{waited}");
    }

    #[test]
    fn a_full_buffer_makes_writes_wait_for_a_die() {
        let mut nand = Nand::new(&spec());
        let mut sequential = |number: u64| nand.write(0, number * 4 * PAGE, 4 * PAGE).waited;
        assert_eq!(sequential(0), 0);
        assert!(sequential(1) >= 400 * US, "every die is still programming");
    }

    /// A log that is cleaned from its oldest block on, block by block: pages programmed per page
    /// written at random.
    fn played_write_amplification(spare: f64) -> f64 {
        const PAGES: usize = 64;
        const USED: usize = 16_000;
        let blocks = (USED as f64 * spare) as usize / PAGES;
        // Of each block its pages; a page is valid while `at` says it is there.
        let mut log: VecDeque<Vec<usize>> = VecDeque::new();
        let mut at = vec![usize::MAX; USED];
        let (mut number, mut programmed, mut written, mut state) = (0, 0u64, 0u64, 1);
        let mut open: Vec<usize> = Vec::new();
        let mut first = 0;
        while written < 20 * USED as u64 {
            let page = virtual_time::splitmix64(&mut state) as usize % USED;
            written += u64::from(written >= USED as u64 || at[page] == usize::MAX);
            let mut queue = vec![page];
            while let Some(page) = queue.pop() {
                at[page] = number;
                open.push(page);
                programmed += 1;
                if open.len() < PAGES {
                    continue;
                }
                log.push_back(std::mem::take(&mut open));
                number += 1;
                if log.len() >= blocks {
                    let oldest = log.pop_front().unwrap();
                    queue.extend(oldest.into_iter().filter(|&page| at[page] == first));
                    first += 1;
                }
            }
            if written == 10 * USED as u64 {
                (programmed, written) = (0, written + 1);
            }
        }
        programmed as f64 / (10 * USED) as f64
    }

    #[test]
    fn write_amplification_is_what_a_log_that_is_played_comes_to() {
        for spare in [1.1, 1.3, 2.0] {
            let (formula, played) = (
                write_amplification(spare),
                played_write_amplification(spare),
            );
            assert!(
                (formula / played - 1.0).abs() < 0.1,
                "{spare}: {formula} {played}"
            );
        }
    }

    #[test]
    fn trimmed_space_makes_writes_cheaper() {
        let mut nand = Nand::new(&spec());
        let full = nand.write_amplification;
        nand.discard(0, 1 << 29);
        let half = nand.write_amplification;
        assert!(half < full / 2.0, "{full} {half}");
        for offset in (0..1 << 29).step_by(1 << 20) {
            nand.write(u64::from(u32::MAX), offset, 4096);
        }
        assert_eq!(nand.write_amplification, full);
    }

    proptest! {
        #[test]
        fn the_dies_are_never_faster_than_their_programs(
            writes in prop::collection::vec((0..1u64 << 29, 1..4 * PAGE), 50..200),
        ) {
            let mut nand = Nand::new(&spec());
            let (mut now, mut bytes) = (0, 0);
            for (offset, len) in writes {
                let written = nand.write(now, offset, len);
                now += written.waited;
                bytes += len;
                prop_assert!(nand.buffered_bytes <= 4 * PAGE + PAGE);
            }
            // Four dies, 16 KiB each 400 us, beside what fits in the buffer.
            let programmed = bytes.saturating_sub(5 * PAGE) / PAGE;
            prop_assert!(now >= programmed.saturating_sub(4) / 4 * 400 * US);
        }
    }
}
