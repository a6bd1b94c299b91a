use super::*;
use proptest::prelude::*;

const BLOCK: u64 = 8192;

fn cache(buckets: u32, mode: Mode, settings: Settings) -> Bcache {
    Bcache::new(1 << 16, buckets * 64, BLOCK, mode, settings).unwrap()
}

fn request(at: Nanos, write: bool, block: u64, blocks: u64) -> Request {
    Request {
        at,
        write,
        offset: block * BLOCK,
        bytes: blocks * BLOCK,
    }
}

fn served(cache: &mut Bcache, requests: impl IntoIterator<Item = Request>) -> Outcome {
    let mut outcome = Outcome::default();
    requests
        .into_iter()
        .for_each(|request| cache.serve(&request, &mut outcome));
    cache.finish(&mut outcome);
    outcome
}

#[test]
fn what_was_read_is_there_until_its_bucket_goes() {
    let mut cache = cache(8, Mode::Writethrough, Settings::default());
    let scattered = |from: u64, to: u64| (from..to).map(|at| request(at, false, at * 7 % 4096, 1));
    assert_eq!(served(&mut cache, scattered(0, 400)).misses, 400);
    assert_eq!(served(&mut cache, scattered(0, 400)).hits, 400);
    let more = served(&mut cache, scattered(400, 1000));
    assert_eq!(more.misses, 600);
    assert_eq!(more.demotions % 64, 0, "whole buckets: {more:?}");
    assert!(more.demotions >= 448, "{more:?}");
}

/// By bucket: the blocks that were written to it, of two streams, by turns at random places of two
/// parts of the disk; `steps` says which stream is next, and the tasks take turns.
fn buckets_of_two_streams(tasks: u32, steps: &[u64], sequential: bool) -> Vec<Vec<Block>> {
    let settings = Settings {
        tasks,
        ..Settings::default()
    };
    let mut cache = cache(64, Mode::Writethrough, settings);
    let mut next = [0; 2];
    let trace = (0..512).map(|at| {
        let stream = steps[at as usize % steps.len()];
        let number = &mut next[stream as usize];
        *number += 1;
        let within = match sequential {
            true => *number,
            false => *number * 7 % 4096,
        };
        request(at, false, stream * 8192 + within, 1)
    });
    assert_eq!(served(&mut cache, trace).promotions, 512);
    let written = |bucket: &Bucket| bucket.blocks.clone();
    cache.buckets.iter().map(written).collect()
}

fn mixed(buckets: &[Vec<Block>]) -> usize {
    let of_first = |bucket: &&Vec<Block>| bucket.iter().any(|&block| block < 8192);
    let of_second = |bucket: &&Vec<Block>| bucket.iter().any(|&block| block >= 8192);
    buckets.iter().filter(of_first).filter(of_second).count()
}

#[test]
fn two_streams_fill_buckets_of_their_own() {
    // Two tasks, one for each stream.
    assert_eq!(mixed(&buckets_of_two_streams(2, &[0, 1], false)), 0);
    // The tasks change over; what goes on where something ended goes with it all the same.
    let steps = [0, 1, 0, 1, 1, 0, 1, 0];
    assert_eq!(mixed(&buckets_of_two_streams(2, &steps, true)), 0);
    // One task has one bucket, which all it does goes to.
    let single = buckets_of_two_streams(1, &[0, 1], false);
    assert_eq!(mixed(&single), 8, "{single:?}");
    // Many tasks fill many buckets at a time.
    let many = buckets_of_two_streams(16, &[0, 1], false);
    assert_eq!(many.iter().filter(|bucket| bucket.len() == 32).count(), 16);
}

/// A scan's requests that the host has cut into pages: how many of them one bucket has pages of.
#[test]
fn what_is_read_at_the_same_time_comes_in_no_order() {
    let mixed = |together: u64, tasks: u32| {
        let settings = Settings {
            tasks,
            bucket_bytes: 8 * BLOCK,
            ..Settings::default()
        };
        let mut cache = cache(64, Mode::Writethrough, settings);
        let page = |at: u64| request(at / together * 1000, false, at, 1);
        served(&mut cache, (0..448).map(page));
        let full = cache
            .buckets
            .iter()
            .filter(|bucket| bucket.blocks.len() == 8);
        let requests = |bucket: &Bucket| {
            let of: BTreeSet<Block> = bucket.blocks.iter().map(|block| block / 16).collect();
            of.len()
        };
        full.map(requests).max().unwrap()
    };
    assert_eq!(mixed(1, 64), 1, "one after the other");
    assert_eq!(mixed(16, 1), 1, "of one task");
    assert!(mixed(16, 64) > 3, "{}", mixed(16, 64));
}

/// Traces whose times are whole seconds say that a thousand requests came at once.
#[test]
fn what_a_second_reads_again_and_again_is_there_before_the_second_is_over() {
    let mut cache = cache(64, Mode::Writethrough, Settings::default());
    let second = (0..4000).map(|number| request(SECOND, false, number % 500 * 7, 1));
    let outcome = served(&mut cache, second);
    assert_eq!((outcome.misses, outcome.promotions), (500, 500));
    // Of those that are read at the same time, none finds what another one brings.
    let mut other = super::tests::cache(64, Mode::Writethrough, Settings::default());
    let same = (0..100).map(|_| request(SECOND, false, 7, 1));
    assert_eq!(served(&mut other, same).misses, 100);
}

#[test]
fn no_more_buckets_are_open_than_the_kernel_has_and_an_open_one_is_not_given_up() {
    let settings = Settings {
        tasks: 1000,
        ..Settings::default()
    };
    let mut cache = cache(512, Mode::Writethrough, settings);
    let scattered = (0..40_000).map(|at| request(at, false, at * 7 % 60_000, 1));
    served(&mut cache, scattered);
    let open = cache.buckets.iter().filter(|bucket| bucket.open).count();
    assert!((100..=128).contains(&open), "{open}");
    let free = cache
        .free
        .iter()
        .map(|&number| &cache.buckets[number as usize]);
    assert!(free.clone().all(|bucket| !bucket.open && bucket.used == 0));
    let listed = cache
        .open
        .iter()
        .filter(|place| place.bucket.is_some())
        .count();
    assert_eq!(listed, open);
}

#[test]
fn a_long_run_goes_past_it_from_four_megabytes_on() {
    let mut cache = cache(64, Mode::Writeback, Settings::default());
    let scan = (0..1024).map(|at| request(at, false, at, 1));
    let outcome = served(&mut cache, scan);
    // 512 requests of 8 KiB are 4 MiB: the last of them reaches the cutoff.
    assert_eq!((outcome.promotions, outcome.bypassed), (511, 513));
    // Five seconds later it is another run.
    let late = (1024..1100).map(|at| request(6 * SECOND + at, false, at, 1));
    assert_eq!(served(&mut cache, late).bypassed, 0);
    let all = Settings {
        sequential_cutoff: 0,
        ..Settings::default()
    };
    let mut cache = Bcache::new(1 << 16, 64 * 64, BLOCK, Mode::Writeback, all).unwrap();
    assert_eq!(
        served(&mut cache, (0..1024).map(|at| request(at, false, at, 1))).bypassed,
        0
    );
}

#[test]
fn writes_are_absorbed_and_written_back_at_the_controllers_rate() {
    let mut cache = cache(64, Mode::Writeback, Settings::default());
    let writes = (0..2000).map(|at| request(at, true, at * 31 % 2000, 1));
    let outcome = served(&mut cache, writes);
    assert_eq!(outcome.absorbed, 2000);
    assert!(outcome.write_backs <= 1, "{outcome:?}");
    // 2000 of 4096 blocks are dirty, 1590 more than a tenth: after some minutes they are not.
    let idle = (1..600).map(|at| request(at * SECOND, false, 5000, 1));
    let outcome = served(&mut cache, idle);
    assert!((1500..2000).contains(&outcome.write_backs), "{outcome:?}");
    let through = (0..100).map(|at| request(at, true, at, 1));
    let mut other = super::tests::cache(64, Mode::Writethrough, Settings::default());
    let outcome = served(&mut other, through);
    assert_eq!((outcome.absorbed, outcome.promotions), (0, 100));
}

#[test]
fn a_flash_that_is_slow_is_spared() {
    let slow = Settings {
        flash_us: 1000,
        ..Settings::default()
    };
    let mut cache = cache(64, Mode::Writethrough, slow);
    let burst = (0..2000).map(|at| request(at * 1000, false, at * 7, 1));
    served(&mut cache, burst);
    let after =
        (0..200).map(|at| request(21 * SECOND / 10 + at * 1000, false, 20_000 + at * 7, 32));
    let outcome = served(&mut cache, after);
    assert!(outcome.bypassed > 0, "{outcome:?}");
}

#[test]
fn too_few_buckets_are_refused() {
    let error = Bcache::new(100, 100, BLOCK, Mode::Writeback, Settings::default()).err();
    assert!(error.is_some_and(|text| text.contains("larger cache")));
}

proptest! {
    #[test]
    fn its_books_are_kept(steps in prop::collection::vec(
        (0..3_000_000_000u64, any::<bool>(), 0..40u64, 1..4u64), 0..300)) {
        let settings = Settings { bucket_bytes: 2 * BLOCK, sequential_cutoff: 5 * BLOCK, ..Settings::default() };
        let mut cache = Bcache::new(64, 16, BLOCK, Mode::Writeback, settings).unwrap();
        let (mut now, mut outcome) = (0, Outcome::default());
        for (wait, write, block, blocks) in steps {
            now += wait;
            cache.serve(&request(now, write, block, blocks), &mut outcome);
            for (number, bucket) in (0u32..).zip(&cache.buckets) {
                let here = |block: &Block| cache.places[*block as usize] == number + 1;
                let used = (0..64).filter(here).count();
                prop_assert_eq!(used, bucket.used as usize);
                prop_assert!(bucket.blocks.len() <= cache.bucket_blocks);
                let dirty = (0..64).filter(here).filter(|block| cache.dirty.contains(block)).count();
                prop_assert_eq!(dirty, bucket.dirty as usize);
            }
            prop_assert!(cache.dirty.iter().all(|&block| cache.places[block as usize] > 0));
            let dirty_buckets = cache.buckets.iter().filter(|bucket| bucket.dirty > 0).count();
            prop_assert_eq!(dirty_buckets as u64, cache.dirty_buckets);
        }
        prop_assert_eq!(outcome.hits + outcome.misses, outcome.requests);
        prop_assert!(outcome.write_backs <= outcome.absorbed);
    }
}
