//! How fast this machine does a database's kind of work.
//!
//! The benchmark runs on a host and in an emulated guest on it; the ratio is the guest's
//! slow-down. So it must be the same work on both: the code is compiled for the base
//! instruction set, calls no library routine that picks its code by CPU (memcpy does), draws its
//! input from a fixed seed, and allocates nothing once it runs.

use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::OFlag;
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::pipe2;
use serde::Serialize;

use virtual_time::splitmix64;

/// Slots of the hash table, 16 bytes each: 16 MiB, more than any level-2 cache.
const HASH_SLOTS: usize = 1 << 20;

/// Keys in the sorted array, 8 bytes each: 8 MiB.
const SORTED_KEYS: usize = 1 << 20;

/// Words of a database page: 8 KiB.
const PAGE_WORDS: usize = 1024;

/// Pages to copy from: 16 MiB.
const PAGES: usize = 2048;

/// Lines of text to parse.
const LINES: usize = 4096;

/// Hash probes per operation.
const PROBES: usize = 8;

/// Searches of the sorted array per operation.
const SEARCHES: usize = 4;

/// Pages read through the kernel per operation.
const KERNEL_READS: usize = 2;

/// Operations after which the checksum is taken; the same on every machine.
const CHECKED_OPERATIONS: u64 = 2_000;

/// Operations between two looks at the clock.
const BATCH_OPERATIONS: u64 = 100;

/// What the benchmark found.
#[derive(Clone, Debug, Serialize)]
pub struct CpuResult {
    /// Operations per second, all threads together.
    pub ops_per_second: f64,
    /// Threads.
    pub threads: usize,
    /// How long it ran, seconds.
    pub seconds: f64,
    /// Checksum of the first operations; equal wherever the work was the same.
    pub check: String,
}

/// Runs the benchmark on so many threads for so long.
pub fn run(threads: usize, duration: Duration) -> CpuResult {
    let data = Data::generate();
    let check = checksum(&data);
    let stop = AtomicBool::new(false);
    let total = AtomicU64::new(0);
    let start = Instant::now();
    thread::scope(|scope| {
        for number in 0..threads {
            let (data, stop, total) = (&data, &stop, &total);
            scope.spawn(move || {
                let mut worker = Worker::new(data, number as u64);
                while !stop.load(Ordering::Relaxed) {
                    for _ in 0..BATCH_OPERATIONS {
                        black_box(worker.operation());
                    }
                    total.fetch_add(BATCH_OPERATIONS, Ordering::Relaxed);
                }
            });
        }
        thread::sleep(duration);
        stop.store(true, Ordering::Relaxed);
    });
    let seconds = start.elapsed().as_secs_f64();
    CpuResult {
        ops_per_second: total.load(Ordering::Relaxed) as f64 / seconds,
        threads,
        seconds,
        check: format!("{check:016x}"),
    }
}

fn checksum(data: &Data) -> u64 {
    let mut worker = Worker::new(data, 0);
    (0..CHECKED_OPERATIONS).fold(0, |sum: u64, _| sum.rotate_left(1) ^ worker.operation())
}

/// The tables, shared by all threads and never written.
struct Data {
    /// The pages again, as a file in memory: what the kernel copies on a read.
    file: File,
    hash: Vec<(u64, u64)>,
    sorted: Vec<u64>,
    pages: Vec<u64>,
    text: Vec<u8>,
    line_starts: Vec<usize>,
}

impl Data {
    fn generate() -> Data {
        let mut seed = 1;
        let mut hash = vec![(0, 0); HASH_SLOTS];
        for key in 1..=(HASH_SLOTS as u64 / 2) {
            let slot = free_slot(&hash, key);
            hash[slot] = (key, splitmix64(&mut seed));
        }
        let mut sorted: Vec<u64> = (0..SORTED_KEYS).map(|_| splitmix64(&mut seed)).collect();
        sorted.sort_unstable();
        let pages: Vec<u64> = (0..PAGES * PAGE_WORDS)
            .map(|_| splitmix64(&mut seed))
            .collect();
        let file = file_in_memory(&pages);
        let (text, line_starts) = order_lines(&mut seed);
        Data {
            file,
            hash,
            sorted,
            pages,
            text,
            line_starts,
        }
    }

    /// Open addressing, half full: a probe or two, each a likely cache miss.
    fn look_up(&self, key: u64) -> u64 {
        let mut slot = home_slot(key);
        loop {
            let (found, value) = self.hash[slot];
            if found == key {
                return value;
            }
            if found == 0 {
                return 0;
            }
            slot = (slot + 1) % HASH_SLOTS;
        }
    }

    /// A lower bound, as in the pages of a B-tree: branches nobody can predict.
    fn search(&self, key: u64) -> usize {
        let (mut low, mut high) = (0, self.sorted.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if black_box(self.sorted[middle] < key) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Reads a line `number|text|amount.cents` byte by byte.
    fn parse_line(&self, line: usize) -> u64 {
        let bytes = &self.text[self.line_starts[line]..self.line_starts[line + 1]];
        let (mut number, mut letters, mut fields) = (0u64, 0u64, 0u64);
        for &byte in bytes {
            match byte {
                b'0'..=b'9' => number = number.wrapping_mul(10) + u64::from(byte - b'0'),
                b'a'..=b'z' => letters = letters.wrapping_mul(31) ^ u64::from(byte),
                b'|' => fields += number,
                _ => letters += 1,
            }
        }
        fields ^ number ^ letters
    }
}

fn home_slot(key: u64) -> usize {
    (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 44) as usize % HASH_SLOTS
}

fn free_slot(hash: &[(u64, u64)], key: u64) -> usize {
    let mut slot = home_slot(key);
    while hash[slot].0 != 0 {
        slot = (slot + 1) % HASH_SLOTS;
    }
    slot
}

fn order_lines(seed: &mut u64) -> (Vec<u8>, Vec<usize>) {
    let mut text = Vec::new();
    let mut line_starts = vec![0];
    for _ in 0..LINES {
        let draw = splitmix64(seed);
        text.extend(format!("{}|", draw % 100_000_000).bytes());
        text.extend((0..8 + draw % 24).map(|_| b'a' + (splitmix64(seed) % 26) as u8));
        text.extend(format!("|{}.{:02}\n", draw % 9_999, draw % 100).bytes());
        line_starts.push(text.len());
    }
    (text, line_starts)
}

fn file_in_memory(pages: &[u64]) -> File {
    let file: File = memfd_create(c"hotset-pages", MFdFlags::MFD_CLOEXEC)
        .expect("the kernel makes files in memory")
        .into();
    let bytes: Vec<u8> = pages.iter().flat_map(|word| word.to_le_bytes()).collect();
    file.write_all_at(&bytes, 0).expect("memory for the pages");
    file
}

/// One thread's state.
struct Worker<'a> {
    data: &'a Data,
    seed: u64,
    /// Both ends of a pipe, and where a read page goes: the kernel's part of a transaction.
    wake: (File, File),
    page: Vec<u8>,
    /// Where pages are copied to. Atomic, since the compiler turns a plain copy loop into a call
    /// of memcpy, which is another routine on every CPU.
    frame: Vec<AtomicU64>,
}

impl<'a> Worker<'a> {
    fn new(data: &'a Data, seed: u64) -> Worker<'a> {
        let wake = pipe2(OFlag::O_CLOEXEC).expect("the kernel makes pipes");
        Worker {
            data,
            seed,
            wake: (wake.0.into(), wake.1.into()),
            page: vec![0; PAGE_WORDS * 8],
            frame: (0..PAGE_WORDS).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Something like a small transaction: a page brought in and checked, rows found by hash
    /// and by index, a record parsed.
    fn operation(&mut self) -> u64 {
        let mut sum = self.copy_page();
        for _ in 0..PROBES {
            let key = splitmix64(&mut self.seed) % HASH_SLOTS as u64;
            sum = sum.rotate_left(5) ^ self.data.look_up(key);
        }
        for _ in 0..SEARCHES {
            let key = splitmix64(&mut self.seed);
            sum = sum.rotate_left(5) ^ self.data.search(key) as u64;
        }
        let line = splitmix64(&mut self.seed) as usize % LINES;
        sum ^ self.data.parse_line(line) ^ self.call_kernel()
    }

    /// A database with direct I/O spends a third to a half of its CPU in the kernel: pages read,
    /// messages from and to its clients. An emulated CPU slows that part more than the rest.
    fn call_kernel(&mut self) -> u64 {
        let mut sum = 0;
        for _ in 0..KERNEL_READS {
            let offset = splitmix64(&mut self.seed) % PAGES as u64 * (PAGE_WORDS * 8) as u64;
            let read = self.data.file.read_exact_at(&mut self.page, offset);
            read.expect("a page of the file in memory");
            sum ^= u64::from(self.page[offset as usize / 8 % self.page.len()]);
        }
        let message = [sum as u8; 64];
        let mut answer = [0; 64];
        self.wake.1.write_all(&message).expect("room in the pipe");
        self.wake
            .0
            .read_exact(&mut answer)
            .expect("what was written");
        sum ^ u64::from(answer[63])
    }

    fn copy_page(&mut self) -> u64 {
        let page = splitmix64(&mut self.seed) as usize % PAGES;
        let words = &self.data.pages[page * PAGE_WORDS..(page + 1) * PAGE_WORDS];
        let mut sum = 0xcbf2_9ce4_8422_2325u64;
        for (word, target) in words.iter().zip(&self.frame) {
            sum = (sum ^ word).wrapping_mul(0x0000_0100_0000_01b3);
            target.store(*word, Ordering::Relaxed);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_is_the_same_every_time() {
        let data = Data::generate();
        assert_eq!(checksum(&data), checksum(&Data::generate()));
        // Pinned: a change here makes results incomparable with earlier ones.
        assert_eq!(format!("{:016x}", checksum(&data)), "d9f893ea80f08306");
    }

    #[test]
    fn the_tables_answer_rightly() {
        let data = Data::generate();
        assert_ne!(data.look_up(1), 0);
        assert_eq!(data.look_up(u64::MAX), 0);
        assert_eq!(data.search(data.sorted[777]), 777);
        assert_eq!(data.search(0), 0);
    }

    #[test]
    fn more_time_means_more_operations() {
        let result = run(1, Duration::from_millis(50));
        assert!(result.ops_per_second > 0.0);
        assert_eq!(result.check.len(), 16);
    }
}
