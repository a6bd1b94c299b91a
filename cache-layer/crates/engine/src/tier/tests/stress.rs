//! Everything at once: threads that read and write, blocks that come, go and are cleaned, and a cache
//! that is divided anew meanwhile.

use std::thread;

use clap::ValueEnum;

use super::load::{CELL_BYTES, Ledger, THREADS, Worker, take_stock, version_of};
use super::*;
use crate::tier::protocol::{NamedRuns, Wanted, WantedShare};
use roaring::RoaringBitmap;

/// Has so many requests made by each thread while warm-ups and settings come in between.
fn churn(rig: &Rig, ledger: &Ledger, seed: u64, steps: u64) {
    let versions = take_stock(rig, ledger).unwrap();
    thread::scope(|scope| {
        for number in 0..THREADS {
            let mut worker = Worker {
                number,
                rig,
                ledger,
                dice: Dice::new(seed << 8 | number),
                versions: versions.clone(),
            };
            scope.spawn(move || (0..steps).for_each(|_| worker.step().unwrap()));
        }
        let mut dice = Dice::new(!seed);
        for _ in 0..steps / 20 {
            let mut wanted = RoaringBitmap::new();
            for _ in 0..dice.below(6) {
                wanted.insert(dice.below(ORIGIN_BLOCKS) as u32);
            }
            rig.tier.warm(wanted, None, |_| true);
            if dice.below(3) == 0 {
                rig.tier.share(division(&mut dice)).unwrap();
            }
        }
        rig.tier.share(Wanted::default()).unwrap();
    });
    take_stock(rig, ledger).unwrap();
}

/// Some blocks pinned, some excluded, some with a share.
fn division(dice: &mut Dice) -> Wanted {
    let mut named = |most: u64| NamedRuns {
        name: String::new(),
        runs: vec![(
            dice.below(ORIGIN_BLOCKS - most) as u32,
            dice.below(most + 1) as u32,
        )],
    };
    let (pinned, excluded, shared) = (named(3), named(4), named(12));
    Wanted {
        pinned: vec![pinned],
        excluded: vec![excluded],
        shares: vec![WantedShare {
            name: String::new(),
            runs: shared.runs,
            guaranteed: dice.below(4) as u32,
            most: 4 + dice.below(4) as u32,
        }],
    }
}

fn survives(trial: Trial, steps: u64) {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::make_for(dir.path(), trial);
    Ledger::make(dir.path());
    let ledger = Ledger::open(dir.path());
    for seed in 0..2 {
        let rig = Rig::start(&place, trial);
        churn(&rig, &ledger, seed, steps);
        let status = rig.tier.status();
        assert!(status.counters.read_hits > steps / 20, "{status:?}");
        assert!(status.counters.promotions >= SLOTS, "{status:?}");
        rig.stop();
    }
    let rig = Rig::start(&place, trial);
    rig.tier.clean_all(|_| true).unwrap();
    let versions = take_stock(&rig, &ledger).unwrap();
    rig.stop();
    // Now the origin alone holds everything.
    let origin = std::fs::read(dir.path().join("origin")).unwrap();
    for (cell, bytes) in (0..).zip(origin.chunks(CELL_BYTES as usize)) {
        assert_eq!(version_of(cell, bytes), Ok(versions[cell as usize]));
    }
}

#[test]
fn written_back_by_every_policy_it_reads_as_written() {
    for &policy in PolicyKind::value_variants() {
        survives(Trial::of(policy, Mode::Writeback), 600);
    }
}

#[test]
fn written_through_by_every_policy_it_reads_as_written() {
    for &policy in PolicyKind::value_variants() {
        survives(Trial::of(policy, Mode::Writethrough), 600);
    }
}

#[test]
fn with_syncs_it_reads_as_written() {
    let durability = Durability::Synced;
    let usual = Trial::of(PolicyKind::Lru, Mode::Writeback);
    survives(
        Trial {
            durability,
            ..usual
        },
        150,
    );
}

#[test]
fn on_a_flash_that_nobody_waits_for_it_reads_as_written() {
    for &policy in PolicyKind::value_variants() {
        let usual = Trial::of(policy, Mode::Writeback);
        survives(
            Trial {
                on_a_part: true,
                ..usual
            },
            600,
        );
    }
}

#[test]
fn on_a_slow_flash_it_reads_as_written() {
    for mode in [Mode::Writeback, Mode::Writethrough] {
        let flash_model = Some(crate::real_time::slow::FLASH);
        let usual = Trial::of(PolicyKind::Sieve, mode);
        // Slow enough that the flash keeps requests waiting.
        let scale = 0.1;
        let trial = Trial {
            flash_model,
            scale,
            ..usual
        };
        survives(trial, 150);
    }
}
