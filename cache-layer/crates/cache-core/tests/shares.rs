//! What pins and shares are for, on whole engines in virtual time: a scan of several times the cache
//! takes nothing from what is pinned, and hardly anything from another database.

use cache_core::engine::{Action, CacheConfig, Engine, Mode, Pace, Request};
use cache_core::layout::Layout;
use cache_core::policy::shares::{Part, Right, Share, Shares};
use cache_core::policy::{self, Geometry, PolicyKind};
use clap::ValueEnum;
use proptest::prelude::*;

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
        Cache::of(kind, geometry())
    }

    fn of(kind: PolicyKind, geometry: Geometry) -> Cache {
        let layout = Layout::for_slots(geometry.slots, BLOCK_BYTES);
        let config = CacheConfig {
            mode: Mode::Writeback,
            layout,
            origin_bytes: u64::from(geometry.origin_blocks) * BLOCK_BYTES,
            dirty_target: 25,
            pace: Pace::of(kind),
        };
        Cache {
            engine: Engine::new(config, policy::make(kind, geometry), None, &[]),
            now: 0,
            asked: 0,
            numbers: 1,
        }
    }

    fn share(&mut self, shares: &[Share]) {
        self.divide(&Shares::new(shares, geometry()).unwrap());
    }

    fn divide(&mut self, shares: &Shares) {
        self.engine.set_shares(self.now, shares);
        self.settle();
    }

    /// Until nothing has to leave any more.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            if self.engine.usage().to_leave == 0 {
                return;
            }
            self.work();
            self.now += 100_000_000;
            self.engine.on_timer(self.now);
        }
        panic!("blocks do not leave: {:?}", self.engine.usage());
    }

    fn warm(&mut self, blocks: impl Iterator<Item = u32>) {
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

/// Of an origin of ten tables in two databases, some of it pinned, shared, excluded.
const SMALL: Geometry = Geometry {
    origin_blocks: 1000,
    slots: 128,
};

/// What a day brings.
#[derive(Clone, Debug)]
enum Step {
    /// Other shares, whatever was there before.
    Divide(Vec<Share>),
    /// A run of blocks is read once.
    Scan(std::ops::Range<u32>),
    /// A few are read over and over.
    Use(std::ops::Range<u32>),
    Warm(std::ops::Range<u32>),
}

/// A database, a table in one, or a part of one.
fn target() -> impl Strategy<Value = std::ops::Range<u32>> {
    prop_oneof![
        (0..2_u32).prop_map(|database| database * 500..database * 500 + 500),
        (0..10_u32).prop_map(|table| table * 100..table * 100 + 100),
        (0..1000_u32, 1..40_u32).prop_map(|(first, count)| first..(first + count).min(1000)),
    ]
}

fn wish() -> impl Strategy<Value = Share> {
    let right = prop_oneof![
        1 => Just(Right::Pinned),
        1 => Just(Right::Excluded),
        4 => (0..60_u32, 1..100_u32).prop_map(|(guaranteed, more)| Right::Share {
            guaranteed,
            most: guaranteed + more,
        }),
    ];
    (target(), right).prop_map(|(blocks, right)| share(blocks, right))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => prop::collection::vec(wish(), 0..5).prop_map(Step::Divide),
        2 => (0..700_u32, 100..300_u32).prop_map(|(first, count)| Step::Scan(first..first + count)),
        2 => (0..990_u32).prop_map(|first| Step::Use(first..first + 10)),
        1 => target().prop_map(Step::Warm),
    ]
}

fn take(cache: &mut Cache, step: &Step) {
    match step {
        Step::Divide(shares) => cache.divide(&Shares::fitted(shares, SMALL).unwrap()),
        Step::Scan(blocks) => blocks.clone().for_each(|block| {
            cache.read(block);
        }),
        Step::Use(blocks) => (0..30).for_each(|_| {
            blocks.clone().for_each(|block| {
                cache.read(block);
            });
        }),
        Step::Warm(blocks) => cache.warm(blocks.clone()),
    }
    cache.settle();
}

/// Neither more than its limit, nor less than its guarantee once it has had that much.
fn holds(kind: PolicyKind, before: Option<Part>, now: Part) -> Result<(), TestCaseError> {
    prop_assert!(now.resident <= now.most, "{kind:?}: above a limit: {now:?}");
    let kept = before.map_or(0, |part| part.resident.min(part.guaranteed));
    prop_assert!(
        now.resident >= kept,
        "{kind:?}: had {before:?}, has {now:?}"
    );
    Ok(())
}

fn is_share(one: &Share) -> bool {
    matches!(one.right, Right::Share { .. })
}

/// Whether a step is about some of these blocks: then others of them may have to make room.
fn is_of(step: &Step, blocks: &std::ops::Range<u32>) -> bool {
    match step {
        Step::Divide(_) => true,
        Step::Scan(other) | Step::Use(other) | Step::Warm(other) => overlap(other, blocks),
    }
}

fn overlap(one: &std::ops::Range<u32>, other: &std::ops::Range<u32>) -> bool {
    one.start < other.end && other.start < one.end
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Of shares in shares and pins in shares, through scans, warm-ups and further shares, with every
    /// policy.
    #[test]
    fn no_limit_is_exceeded_and_no_guarantee_lost(steps in prop::collection::vec(step(), 1..12)) {
        for &kind in PolicyKind::value_variants() {
            let mut cache = Cache::of(kind, SMALL);
            let mut shared: Vec<&Share> = Vec::new();
            for step in &steps {
                let before = cache.engine.usage();
                take(&mut cache, step);
                let now = cache.engine.usage();
                let divided = matches!(step, Step::Divide(_));
                if let Step::Divide(shares) = step {
                    shared = shares.iter().filter(|one| is_share(one)).collect();
                }
                for (at, &part) in now.shares.iter().enumerate() {
                    let own = &shared[at].blocks[0];
                    let inside = shared.iter().filter(|one| overlap(&one.blocks[0], own));
                    let by_others = inside.map(|one| &one.blocks[0]).all(|of| !is_of(step, of));
                    let before = before.shares.get(at).filter(|_| by_others);
                    holds(kind, before.copied(), part)?;
                }
                let pinned = Some(before.pinned).filter(|_| !divided);
                holds(kind, pinned, now.pinned)?;
                prop_assert_eq!(now.excluded.resident, 0, "{:?}: excluded", kind);
            }
        }
    }

    /// What others were to leave it is there when it comes: a warm-up of so many blocks of it.
    #[test]
    fn a_guarantee_is_to_be_had(
        steps in prop::collection::vec(step(), 0..6),
        shares in prop::collection::vec(wish(), 1..5),
        scan in 0..700_u32,
    ) {
        for &kind in PolicyKind::value_variants() {
            let mut cache = Cache::of(kind, SMALL);
            for step in &steps {
                take(&mut cache, step);
            }
            take(&mut cache, &Step::Divide(shares.clone()));
            take(&mut cache, &Step::Scan(scan..scan + 300));
            let shared = shares.iter().filter(|one| is_share(one));
            for (at, one) in shared.enumerate() {
                // What smaller ones or exclusions have of it may be kept out by them.
                let others = shares.iter().filter(|other| match other.right {
                    Right::Pinned => false,
                    Right::Excluded => true,
                    Right::Share { .. } => other.blocks[0].len() <= one.blocks[0].len(),
                });
                let others: Vec<_> = others.filter(|&other| other != one).collect();
                let own = one.blocks[0].clone().filter(|block| {
                    !others.iter().any(|other| other.blocks[0].contains(block))
                });
                let own: Vec<u32> = own.collect();
                cache.warm(own.iter().copied());
                cache.settle();
                let part = cache.engine.usage().shares[at];
                // What is pinned in it is a part of it.
                let Right::Share { guaranteed, .. } = one.right else { unreachable!() };
                let pinned = shares.iter().filter(|other| other.right == Right::Pinned);
                let pinned: usize = pinned.map(|other| other.blocks[0].len()).sum();
                let due = (guaranteed.min(part.guaranteed) as usize).saturating_sub(pinned);
                let due = due.min(own.len()) as u32;
                prop_assert!(part.resident >= due, "{kind:?}, share {at}: {part:?}, {due}");
            }
        }
    }
}
