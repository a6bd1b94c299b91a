//! After a crash at any point, everything that a successful flush covered is there, on `data` and
//! on the volume; also after reads, writes and syncs that failed. Between the sessions, some of which
//! end in order, the write mode changes and the origin, which ends inside a block, grows. While one
//! serves it is changed (`world::reconfigure`): mode, size, policy, origin. A device may not answer for
//! a while (`world::hung`), or ever: what is done is not told then, and what is not may never be. A sync
//! that fails, or a drive that is reset as the process is killed, loses what was not stored, and the
//! computer goes on.
//!
//! A longer campaign: `FLASHDEV_SCHEDULES=100000 cargo test --release -p cache-core faults`.

use proptest::prelude::*;

use super::super::{Health, Mode};
use super::world::{Careless, Faults, World};
use crate::dice::Dice;
use crate::policy::HOTTEST;

/// Runs a schedule: steps, and crashes in between.
fn run(seed: u64, mode: Mode, faults: Faults, careless: Careless) -> Result<World, String> {
    let mut world = World::new(seed, mode, faults);
    world.careless = careless;
    for _ in 0..4 {
        if let Err(error) = live_and_crash(&mut world) {
            return Err(format!("{error}, after {:#?}", world.log));
        }
    }
    Ok(world)
}

fn live_and_crash(world: &mut World) -> Result<(), String> {
    for _ in 0..world.dice.below(400) {
        world.step()?;
    }
    if world.dice.once_in(3) {
        world.drain()?;
    }
    if world.dice.once_in(4) {
        return world.close();
    }
    let power = world.dice.once_in(2);
    world.crash(power)
}

/// How many schedules of each kind: a slice, or as many as a campaign wants.
fn schedules() -> ProptestConfig {
    let wanted = std::env::var("FLASHDEV_SCHEDULES").ok();
    let count = wanted.map(|count| count.parse().expect("FLASHDEV_SCHEDULES is a number"));
    ProptestConfig::with_cases(count.unwrap_or(300))
}

fn any_faults(seed: u64) -> Faults {
    let mut dice = Dice::new(!seed);
    let mut once_in = || match dice.below(3) {
        0 => 8 << dice.below(8),
        _ => 0,
    };
    Faults {
        flash_write: once_in(),
        flash_read: once_in(),
        flash_sync: once_in(),
        origin_write: once_in(),
        origin_read: once_in(),
        origin_sync: once_in(),
        detach: once_in() / 10,
    }
}

proptest! {
    #![proptest_config(schedules())]
    #[test]
    fn without_faults_nothing_is_lost(seed: u64, through: bool) {
        let mode = if through { Mode::Writethrough } else { Mode::Writeback };
        let world = run(seed, mode, Faults::default(), Careless::Never).map_err(TestCaseError::fail)?;
        prop_assert_eq!(world.engine.health(), &Health::Healthy);
    }

    #[test]
    fn whatever_fails_nothing_is_lost_that_was_promised(seed: u64, through: bool) {
        let mode = if through { Mode::Writethrough } else { Mode::Writeback };
        run(seed, mode, any_faults(seed), Careless::Never).map_err(TestCaseError::fail)?;
    }
}

/// A failed sync told before a read what it did to the cache only after it: the read waited for the
/// origin, which had hung, as what was on the flash was not to be believed.
#[test]
fn a_cache_that_is_given_up_keeps_nobody_waiting_who_could_be_served() {
    let seed = 14095510542445518508;
    run(seed, Mode::Writethrough, any_faults(seed), Careless::Never).unwrap();
}

/// The first: another block's bytes over the origin's, from a flash whose sync had failed. The second: a
/// cache given up by a sync of the origin that did not know what another one was about to tell.
#[test]
fn what_was_lost_once_is_not_lost_again() {
    for seed in [18218750278070109527, 18365314152142058143] {
        for mode in [Mode::Writeback, Mode::Writethrough] {
            run(seed, mode, any_faults(seed), Careless::Never).unwrap();
        }
    }
}

/// Or the schedules would say nothing of them.
#[test]
fn tiers_with_and_without_a_volume_are_changed_and_changes_are_cut_short() {
    let mut seen = [(0, 0); 2];
    for seed in 0..300 {
        let world = run(seed, Mode::Writeback, any_faults(seed), Careless::Never).unwrap();
        let (changed, cut_short) = &mut seen[usize::from(world.has_volume())];
        *changed += world.changed;
        *cut_short += world.cut_short;
    }
    for (changed, cut_short) in seen {
        assert!(changed >= 100 && cut_short >= 30, "{seen:?}");
    }
}

/// Or the schedules would say nothing of those who are served while a device hangs.
#[test]
fn a_device_that_hangs_keeps_nobody_waiting_whom_the_other_can_serve() {
    let mut seen = (0, 0, 0);
    for seed in 0..500 {
        let world = run(seed, Mode::Writeback, any_faults(seed), Careless::Never).unwrap();
        let (reads, writes, past_flash) = world.served_while_hung();
        seen = (seen.0 + reads, seen.1 + writes, seen.2 + past_flash);
    }
    let (reads, writes, past_flash) = seen;
    assert!(reads > 200 && writes > 50 && past_flash > 10, "{seen:?}");
}

/// Or what was just warmed would be the first to go.
#[test]
fn what_was_warmed_is_as_hot_after_a_kill() {
    let mut world = World::new(1, Mode::Writeback, Faults::default());
    let wanted = (0..4).collect();
    world.engine.begin_warm_up(0, wanted, None);
    while world.engine.resident().len() < 4 {
        world.step().unwrap();
    }
    world.crash(false).unwrap();
    let warmed = world.recovered.iter().filter(|mapping| mapping.block < 4);
    let heat: Vec<u8> = warmed.map(|mapping| mapping.heat).collect();
    assert!(
        !heat.is_empty() && heat.iter().all(|&heat| heat == HOTTEST),
        "{heat:?}"
    );
}

/// Or the schedules would say nothing of drives that lose what they had not stored while the computer
/// goes on.
#[test]
fn ends_that_nobody_has_witnessed_are_drawn_on_either_kind_of_flash() {
    let ends = |seed| {
        let world = run(seed, Mode::Writeback, any_faults(seed), Careless::Never).unwrap();
        world.unwitnessed
    };
    for first in [0, 1] {
        let seen: usize = (first..200).step_by(2).map(ends).sum();
        assert!(seen > 20, "{seen}");
    }
}

/// The controls: without one of the rules, the schedules must find something.
#[test]
fn a_log_that_takes_no_care_of_slots_at_risk_is_found_out() {
    let run = |seed| {
        run(
            seed,
            Mode::Writeback,
            Faults::default(),
            Careless::OfSlotsAtRisk,
        )
    };
    assert!((0..400).any(|seed| run(seed).is_err()));
}

#[test]
fn an_engine_that_believes_a_flash_whose_sync_has_failed_is_found_out() {
    let run = |seed| {
        run(
            seed,
            Mode::Writeback,
            any_faults(seed),
            Careless::OfFailedSyncs,
        )
    };
    assert!((0..2000).any(|seed| run(seed).is_err()));
}

#[test]
fn a_start_that_takes_the_same_boot_for_proof_is_found_out() {
    let run = |seed| {
        run(
            seed,
            Mode::Writeback,
            any_faults(seed),
            Careless::OfTheWitness,
        )
    };
    assert!((0..400).any(|seed| run(seed).is_err()));
}

/// A discard waited for a division of the cache that had been begun, and the tier for the discard.
#[test]
fn a_change_while_the_cache_is_divided_leaves_nobody_unanswered() {
    let (seed, none) = (2678314495881694188, Faults::default());
    run(seed, Mode::Writeback, none, Careless::Never).unwrap();
}
