//! What pins and shares are for, on whole engines in virtual time: a scan of several times the cache
//! takes nothing from what is pinned, and hardly anything from another database.

use cache_core::engine::{Action, CacheConfig, Engine, Mode, Pace, Request};
use cache_core::layout::Layout;
use cache_core::policy::shares::{Right, Share, Shares};
use cache_core::policy::{self, Geometry, PolicyKind};
use clap::ValueEnum;

const BLOCK_BYTES: u64 = 64 << 10;
const SLOTS: u32 = 2000;
const ORIGIN_BLOCKS: u32 = 20 * SLOTS;

/// A cache whose I/O takes as long as that of a disk and of flash.
struct Cache {
    engine: Engine,
    now: u64,
    asked: u64,
    numbers: u64,
}

impl Cache {
    fn new(kind: PolicyKind) -> Cache {
        let layout = Layout::for_slots(SLOTS, BLOCK_BYTES);
        let config = CacheConfig {
            mode: Mode::Writeback,
            layout,
            origin_bytes: u64::from(ORIGIN_BLOCKS) * BLOCK_BYTES,
            dirty_target: 25,
            pace: Pace::of(kind),
        };
        Cache {
            engine: Engine::new(config, policy::make(kind, geometry()), None, &[]),
            now: 0,
            asked: 0,
            numbers: 1,
        }
    }

    fn share(&mut self, shares: &[Share]) {
        let shares = Shares::new(shares, geometry()).unwrap();
        self.engine.set_shares(self.now, &shares);
        while self.engine.usage().to_leave > 0 {
            self.work();
            self.now += 100_000_000;
            self.engine.on_timer(self.now);
        }
    }

    fn warm(&mut self, blocks: std::ops::Range<u32>) {
        self.engine.begin_warm_up(self.now, blocks.collect(), None);
        self.work();
    }

    /// Whether a page of a block was found on the flash.
    fn read(&mut self, block: u32) -> bool {
        let hits = self.engine.counters().read_hits;
        let offset = u64::from(block) * BLOCK_BYTES + self.random(8) * 8192;
        self.asked += 1;
        let request = Request::Read { offset, len: 8192 };
        self.engine.on_request(self.now, self.asked, request);
        self.work();
        let hit = self.engine.counters().read_hits > hits;
        self.now += if hit { 100_000 } else { 5_000_000 };
        if self.asked % 64 == 0 {
            self.engine.on_timer(self.now);
        }
        hit
    }

    /// Does everything that is to be done.
    fn work(&mut self) {
        let mut actions = Vec::new();
        loop {
            self.engine.take_actions(&mut actions);
            if actions.is_empty() {
                return;
            }
            for action in actions.drain(..) {
                match action {
                    Action::Transfer { io, .. } => self.engine.on_completion(self.now, io, Ok(())),
                    Action::JobDone { job } => drop(self.engine.finish_job(job)),
                    _ => {}
                }
            }
        }
    }

    /// splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
    fn random(&mut self, below: u64) -> u64 {
        self.numbers = self.numbers.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.numbers;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % below
    }

    /// A block of a database of so many, the first ones far more often than the last.
    fn skewed(&mut self, blocks: u32) -> u32 {
        let unit = self.random(1 << 24) as f64 / f64::from(1 << 24);
        (f64::from(blocks) * unit * unit * unit) as u32
    }
}

fn geometry() -> Geometry {
    Geometry {
        origin_blocks: ORIGIN_BLOCKS,
        slots: SLOTS,
    }
}

fn share(blocks: std::ops::Range<u32>, right: Right) -> Share {
    Share {
        blocks: vec![blocks],
        right,
    }
}

#[test]
fn under_a_scan_of_four_times_the_cache_every_read_of_a_pinned_table_hits() {
    const TABLE: u32 = SLOTS / 4;
    for &kind in PolicyKind::value_variants() {
        let mut cache = Cache::new(kind);
        // Others have filled the cache.
        cache.warm(TABLE..TABLE + SLOTS);
        cache.share(&[share(0..TABLE, Right::Pinned)]);
        cache.warm(0..TABLE);
        let mut misses = 0;
        for block in 0..4 * SLOTS {
            cache.read(2 * SLOTS + block);
            let row = cache.random(u64::from(TABLE)) as u32;
            misses += u32::from(!cache.read(row));
        }
        assert_eq!(misses, 0, "{kind:?}");
        let usage = cache.engine.usage();
        assert_eq!(usage.pinned.resident, TABLE, "{kind:?}");
        // The scan has the rest, so the cache is not half empty for it.
        let used = cache.engine.policy().used();
        assert!(
            kind == PolicyKind::Smq || used > SLOTS * 9 / 10,
            "{kind:?}: {used}"
        );
    }
}

/// Hit ratio of one database, percent: in peace, and while the other one scans.
fn ratios(kind: PolicyKind, with_shares: bool) -> (f64, f64) {
    const FIRST: u32 = 2 * SLOTS;
    const READS: u32 = 40_000;
    let mut cache = Cache::new(kind);
    let databases = [
        share(
            0..FIRST,
            Right::Share {
                guaranteed: SLOTS * 6 / 10,
                most: SLOTS,
            },
        ),
        share(
            FIRST..ORIGIN_BLOCKS,
            Right::Share {
                guaranteed: SLOTS / 10,
                most: SLOTS * 3 / 10,
            },
        ),
    ];
    if with_shares {
        cache.share(&databases);
    }
    let mut next = FIRST;
    let mut run = |cache: &mut Cache, scans: bool| {
        let mut hits = 0;
        for _ in 0..READS {
            let block = cache.skewed(FIRST);
            hits += u32::from(cache.read(block));
            let other = match scans {
                true => next,
                false => FIRST + cache.skewed(SLOTS / 2),
            };
            next += u32::from(scans);
            if next == ORIGIN_BLOCKS {
                next = FIRST;
            }
            cache.read(other);
        }
        f64::from(hits) * 100.0 / f64::from(READS)
    };
    run(&mut cache, false);
    let in_peace = run(&mut cache, false);
    (in_peace, run(&mut cache, true))
}

#[test]
fn with_shares_a_scan_of_one_database_costs_another_two_points_at_most() {
    for &kind in PolicyKind::value_variants() {
        let (in_peace, scanned) = ratios(kind, true);
        println!("{kind:?}, with shares: {in_peace:.1} % in peace, {scanned:.1} % during a scan");
        assert!(in_peace > 50.0, "{kind:?}: {in_peace}");
        assert!(in_peace - scanned <= 2.0, "{kind:?}: {in_peace} {scanned}");
    }
    // Or there would be nothing to protect from.
    let (in_peace, scanned) = ratios(PolicyKind::Lru, false);
    println!("Lru, without: {in_peace:.1} % in peace, {scanned:.1} % during a scan");
    assert!(in_peace - scanned > 5.0, "{in_peace} {scanned}");
}
