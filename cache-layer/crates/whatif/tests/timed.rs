//! Simulations in virtual time give the same figures, whatever was made quicker about them: those in
//! `timed.golden`, which HOTSET_UPDATE_GOLDEN=1 writes anew.

use std::fmt::Write;
use std::path::Path;

use cache_core::engine::{CacheConfig, Engine, Mode, Pace};
use cache_core::layout::Layout;
use cache_core::policy::{self, Geometry, PolicyKind};
use clap::ValueEnum;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use storage_model::spec::ModelSpec;
use whatif::timed::{Arrivals, TimedOutcome, simulate_timed};
use whatif::trace::Request;

const BLOCK: u64 = 64 << 10;
const ORIGIN_BLOCKS: u64 = 2048;
const SLOTS: u32 = 256;
const MODELS: [&str; 6] = [
    "nas-2014",
    "hdd-7200",
    "hdd-raid5-2014",
    "hybrid-disk-2014",
    "sata-ssd-2014",
    "dc500m-raid5",
];

/// Requests of 4 to 128 KiB, most of them of a few blocks, a third of them writes; then a scan.
fn trace() -> Vec<Request> {
    let mut dice = SplitMix64::seed_from_u64(7);
    let mut below = |count: u64| dice.next_u64() % count;
    let mut at = 0;
    let mut all: Vec<Request> = (0..3000)
        .map(|_| {
            at += below(4_000_000);
            let hot = below(ORIGIN_BLOCKS) + 1;
            let hotter = below(hot) + 1;
            let block = below(hotter);
            Request {
                at,
                write: below(3) == 0,
                offset: block * BLOCK + below(8) * 4096,
                bytes: (1 + below(8)) * 4096,
            }
        })
        .collect();
    all.extend((0..500).map(|number| Request {
        at: at + number * 1_000_000,
        write: false,
        offset: number * 2 * BLOCK,
        bytes: 2 * BLOCK,
    }));
    all
}

fn run(kind: PolicyKind, mode: Mode, model: &str, arrivals: Arrivals) -> TimedOutcome {
    let layout = Layout::for_slots(SLOTS, BLOCK);
    let config = CacheConfig {
        mode,
        layout,
        origin_bytes: ORIGIN_BLOCKS * BLOCK,
        dirty_target: 25,
        pace: Pace::of(kind),
    };
    let geometry = Geometry {
        origin_blocks: ORIGIN_BLOCKS as u32,
        slots: SLOTS,
    };
    let engine = Engine::new(config, policy::make(kind, geometry), None, &[]);
    let device = |name, bytes| ModelSpec::load(name).unwrap().build(bytes).unwrap();
    let flash = device("pcie-flash-2014", layout.volume_offset());
    let origin = device(model, ORIGIN_BLOCKS * BLOCK);
    simulate_timed(engine, flash, origin, &trace(), arrivals)
}

#[test]
fn figures_stay_what_they_are() {
    let mut found = String::new();
    let users = Arrivals::Users {
        users: 16,
        think: 100_000,
    };
    for model in MODELS {
        for &kind in PolicyKind::value_variants() {
            for (mode, arrivals) in [
                (Mode::Writeback, Arrivals::Timed),
                (Mode::Writeback, users),
                (Mode::Writethrough, users),
            ] {
                let outcome = run(kind, mode, model, arrivals);
                writeln!(
                    found,
                    "{model} {kind:?} {mode:?} {arrivals:?}\n{outcome:?}\n"
                )
                .unwrap();
            }
        }
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/timed.golden");
    if std::env::var_os("HOTSET_UPDATE_GOLDEN").is_some() {
        std::fs::write(&golden, &found).unwrap();
    }
    let expected = std::fs::read_to_string(&golden).unwrap();
    for (found, expected) in found.split("\n\n").zip(expected.split("\n\n")) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
}
