//! A warm-up while users work, on modelled disks in virtual time: how much longer users wait for
//! it, and how fast it is where they leave the disk alone.

use cache_core::engine::{CacheConfig, Engine, Mode, Pace};
use cache_core::layout::Layout;
use cache_core::policy::{self, Geometry, PolicyKind};
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use storage_model::spec::ModelSpec;
use virtual_time::Nanos;
use whatif::timed::{Arrivals, TimedOutcome, simulate_timed};
use whatif::trace::Request;

const MS: Nanos = 1_000_000;
const BLOCK: u64 = 64 << 10;
/// The lower half is what the warm-up wants; users read in the upper one.
const ORIGIN_BLOCKS: u64 = 128 << 10;
const WANTED: u32 = 60 << 10;

/// Users on a disk whose cache has nothing for them but `hits` percent of their reads.
struct Users {
    model: &'static str,
    users: usize,
    think: Nanos,
    hits: u64,
    requests: usize,
}

impl Users {
    fn trace(&self) -> Vec<Request> {
        let mut dice = Xoshiro256PlusPlus::seed_from_u64(1);
        let half = ORIGIN_BLOCKS / 2 * BLOCK;
        let request = |_| {
            let is_hit = dice.next_u64() % 100 < self.hits;
            let range = if is_hit { 16 * BLOCK } else { half };
            Request {
                at: 0,
                write: false,
                offset: half + dice.next_u64() % (range / 8192) * 8192,
                bytes: 8192,
            }
        };
        (0..self.requests).map(request).collect()
    }

    fn run(&self, warms_up: bool) -> TimedOutcome {
        let slots = ORIGIN_BLOCKS as u32;
        let layout = Layout {
            block_bytes: BLOCK,
            metadata_bytes: 1 << 20,
            cache_bytes: u64::from(slots) * BLOCK,
            volume_bytes: 0,
        };
        let config = CacheConfig {
            mode: Mode::Writeback,
            layout,
            origin_bytes: ORIGIN_BLOCKS * BLOCK,
            dirty_target: 100,
            pace: Pace::Threshold,
        };
        let geometry = Geometry {
            origin_blocks: config.origin_blocks(),
            slots,
        };
        let policy = policy::make(PolicyKind::Hotset, geometry);
        let mut engine = Engine::new(config, policy, None, &[]);
        if warms_up {
            engine.begin_warm_up(0, (0..WANTED).collect(), None);
        }
        let device = |name, bytes| ModelSpec::load(name).unwrap().build(bytes).unwrap();
        let (users, think) = (self.users, self.think);
        simulate_timed(
            engine,
            device("pcie-flash-2014", layout.volume_offset()),
            device(self.model, config.origin_bytes),
            &self.trace(),
            Arrivals::Users { users, think },
        )
    }

    /// How much longer the slowest reads but 5 % take, and how many MB a second the warm-up fetches.
    fn cost(&self) -> (f64, f64) {
        let (alone, warming) = (self.run(false), self.run(true));
        let fetched = (warming.counters.promotions - alone.counters.promotions) * BLOCK;
        let rate = fetched as f64 / 1e6 / warming.seconds;
        let worse = warming.latency_ms_p95 / alone.latency_ms_p95;
        (worse, rate)
    }
}

#[test]
fn users_hardly_wait_longer_while_a_warm_up_runs() {
    for model in ["hdd-7200", "nas-2014"] {
        for (users, think, hits) in [
            (1, 20 * MS, 0),
            (1, 150 * MS, 0),
            (4, 0, 0),
            (4, 10 * MS, 80),
            (16, 0, 0),
            (16, 10 * MS, 90),
        ] {
            // As many misses, however many hits.
            let requests = 400_000 / (100 - hits as usize);
            let case = format!("{users} users on {model}, think time {think} ns, {hits} % hits");
            let users = Users {
                model,
                users,
                think,
                hits,
                requests,
            };
            let (worse, rate) = users.cost();
            assert!(worse < 1.2, "{case}: p95 is {worse:.3} times as long");
            assert!(rate > 0.4, "{case}: the warm-up starves at {rate:.2} MB/s");
        }
    }
}

#[test]
fn a_warm_up_has_the_disk_to_itself_while_users_rest() {
    let resting = Users {
        model: "nas-2014",
        users: 1,
        think: 10_000 * MS,
        hits: 0,
        requests: 3,
    };
    let (_, rate) = resting.cost();
    assert!(rate > 85.0, "{rate:.2} MB/s of 117");
}
