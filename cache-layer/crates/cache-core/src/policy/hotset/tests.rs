//! A hot set against scans.

use super::super::{Access, Mapping, Policy};
use super::*;
use virtual_time::Nanos;

const SLOTS: u32 = 2000;
const HOT: u32 = 1400;
/// A colder table, which does not fit beside the hot set: the blocks behind it.
const COLDER: u32 = 1600;
const GEOMETRY: Geometry = Geometry {
    origin_blocks: 10_000,
    slots: SLOTS,
};

fn request(cache: &mut Hotset, block: Block) {
    let access = Access {
        now: Nanos::default(),
        block,
        write: false,
        whole: false,
    };
    if cache.access(access).is_none() {
        if let Some(work) = cache.admit(access) {
            cache.finished(work, true);
        }
    }
    while let Some(work) = cache.next_work(Nanos::default(), false) {
        cache.finished(work, true);
    }
}

/// Requests of the hot set, in no order; every tenth is for the colder table.
fn work(cache: &mut Hotset, requests: u32) {
    let mut random = 1u32;
    for at in 0..requests {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let place = random >> 8;
        let is_colder = at % 10 == 0;
        request(
            cache,
            if is_colder {
                HOT + place % COLDER
            } else {
                place % HOT
            },
        );
    }
}

fn scan(cache: &mut Hotset, times: u32) {
    for _ in 0..times {
        (HOT..HOT + COLDER).for_each(|block| request(cache, block));
    }
}

/// How much of the hot set is there, percent.
fn hot(cache: &Hotset) -> u32 {
    let resident = (0..HOT).filter(|&block| cache.resident(block).is_some());
    resident.count() as u32 * 100 / HOT
}

#[test]
fn scans_of_a_colder_table_take_nothing_from_a_hot_one() {
    let mut cache = Hotset::new(GEOMETRY);
    work(&mut cache, 100_000);
    assert!(hot(&cache) >= 99, "{}", hot(&cache));
    scan(&mut cache, 6);
    assert!(hot(&cache) >= 97, "{}", hot(&cache));
}

#[test]
fn what_nobody_wants_any_more_makes_way_in_the_end() {
    let mut cache = Hotset::new(GEOMETRY);
    work(&mut cache, 100_000);
    scan(&mut cache, 30);
    assert!(hot(&cache) < 60, "{}", hot(&cache));
}

#[test]
fn a_restart_forgets_nothing_of_what_is_hot() {
    let mut before = Hotset::new(GEOMETRY);
    work(&mut before, 100_000);
    let mut after = Hotset::new(GEOMETRY);
    for block in 0..GEOMETRY.origin_blocks {
        let Some(slot) = before.resident(block) else {
            continue;
        };
        after.load(Mapping {
            block,
            slot,
            dirty: false,
            heat: before.heat(slot),
            missing: Default::default(),
        });
    }
    scan(&mut after, 6);
    assert!(hot(&after) >= 95, "{}", hot(&after));
}

#[test]
fn what_was_warmed_withstands_scans() {
    let mut cache = Hotset::new(GEOMETRY);
    for block in 0..HOT {
        let work = cache.insert(block, crate::policy::HOTTEST).unwrap();
        cache.finished(work, true);
    }
    scan(&mut cache, 6);
    assert!(hot(&cache) >= 97, "{}", hot(&cache));
}

const SMALL: Geometry = Geometry {
    slots: 400,
    ..GEOMETRY
};

/// A request drawn at random: half of them for the first tenth of the blocks, …
fn draw(random: &mut u32, first: Block) -> Block {
    *random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    let (half, place) = (*random >> 31, (*random >> 8) % 1_000_000);
    let blocks = GEOMETRY.origin_blocks / 2;
    first
        + if half == 0 {
            place % (blocks / 10)
        } else {
            place % blocks
        }
}

/// The share of the slots that hold some of that tenth, percent.
fn wanted_most(cache: &Hotset, first: Block) -> u32 {
    let resident = (first..first + 500).filter(|&block| cache.resident(block).is_some());
    resident.count() as u32 * 100 / SMALL.slots
}

#[test]
fn a_small_cache_keeps_what_is_asked_for_most() {
    // … of which the cache has room for four fifths.
    let mut cache = Hotset::new(SMALL);
    let mut random = 1;
    for _ in 0..200_000 {
        request(&mut cache, draw(&mut random, 0));
    }
    let share = wanted_most(&cache, 0);
    assert!(share >= 80, "{share} % of the slots");
}

#[test]
fn what_is_asked_for_now_takes_the_place_of_what_was() {
    let mut cache = Hotset::new(SMALL);
    let mut random = 1;
    let moved = GEOMETRY.origin_blocks / 2;
    for at in 0..100_000 {
        request(
            &mut cache,
            draw(&mut random, if at < 80_000 { 0 } else { moved }),
        );
    }
    let share = wanted_most(&cache, moved);
    assert!(share >= 70, "{share} % of the slots");
}
