use super::*;
use cache_core::policy::DemandFill;
use clap::ValueEnum;
use proptest::prelude::*;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

fn reads(blocks: &[Block]) -> Vec<Piece> {
    let request = |(at, &block)| Access {
        now: at as Nanos,
        block,
        write: false,
        whole: false,
    };
    blocks
        .iter()
        .enumerate()
        .map(request)
        .map(Piece::from)
        .collect()
}

#[test]
fn a_request_touches_every_block_it_lies_in() {
    let request = |offset, bytes| Request {
        at: 5,
        write: true,
        offset,
        bytes,
    };
    let trace = [request(100, 10), request(90, 200), request(200, 100)];
    let blocks: Vec<_> = pieces(&trace, 100)
        .unwrap()
        .iter()
        .map(|piece| (piece.now, piece.block, piece.write, piece.bytes))
        .collect();
    let expected = [(1, 10), (0, 10), (1, 100), (2, 90), (2, 100)];
    let expected = expected.map(|(block, bytes)| (5, block, true, bytes));
    assert_eq!(blocks, expected);
}

#[test]
fn a_block_beyond_the_limit_is_refused_with_a_remedy() {
    let far = Request {
        at: 0,
        write: false,
        offset: 1 << 40,
        bytes: 1,
    };
    let error = pieces(&[far], 4096).unwrap_err().to_string();
    assert!(error.contains("--block"), "{error}");
    assert_eq!(pieces(&[far], 65536).unwrap().len(), 1);
}

#[test]
fn lru_is_what_it_says() {
    let trace = reads(&[1, 2, 1, 3, 2, 1]);
    let outcome = simulate(PolicyKind::Lru, 2, &[], &trace);
    // 3 takes the place of 2, then 2 that of 1, then 1 that of 3.
    let expected = Outcome {
        requests: 6,
        hits: 1,
        misses: 5,
        miss_ratio: 5.0 / 6.0,
        promotions: 5,
        demotions: 3,
        ..Outcome::default()
    };
    assert_eq!(outcome, expected);
}

/// A hot set that just fits, asked for all the time; while a scan goes by, too, which touches each
/// of its blocks eight times in a row.
fn hot_set_and_scan() -> Vec<Piece> {
    let mut dice = SplitMix64::seed_from_u64(1);
    let mut hot = |_| (dice.next_u64() % 200) as Block;
    let mut blocks: Vec<Block> = (0..4000).map(&mut hot).collect();
    for scanned in 0..2000u32 {
        blocks.extend([1000 + scanned; 8]);
        blocks.push(hot(0));
    }
    reads(&blocks)
}

#[test]
fn a_scan_does_not_push_the_hot_set_out() {
    let trace = hot_set_and_scan();
    let misses = |kind| simulate(kind, 256, &[], &trace).misses;
    let least = crate::belady::bound(256, &[], &trace).misses;
    assert_eq!(least, 200 + 2000, "each block once");
    assert!(misses(PolicyKind::Hotset) < least + least / 20);
    // The same scan is too much for those that are fooled by it.
    assert!(misses(PolicyKind::Lru) > least + least / 4);
}

#[test]
fn an_empty_trace_has_no_misses() {
    for kind in [PolicyKind::S3Fifo, PolicyKind::Smq] {
        assert_eq!(simulate(kind, 10, &[], &[]), Outcome::default());
    }
}

/// The engine's own policy, whose work is done at once, against the algorithm alone.
fn both<R>(
    policy: impl Policy,
    algorithm: impl Fn(&[Mapping]) -> AtOnce<R>,
    warm: &[Mapping],
    mode: Mode,
    trace: &[Access],
) -> [Outcome; 2]
where
    AtOnce<R>: Textbook,
{
    let whole = drive(
        policy,
        mode,
        warm,
        &mut trace.iter().copied().map(Piece::from),
    );
    let alone = algorithm(warm);
    [
        whole,
        textbook(
            alone,
            mode,
            BLOCKS,
            &mut trace.iter().copied().map(Piece::from),
        ),
    ]
}

const BLOCKS: u32 = 40;

proptest! {
    #[test]
    fn data_that_moves_at_once_leaves_nothing_out(
        slots in 1..12u32,
        warmed in 0..12u32,
        back: bool,
        drawn in prop::collection::vec((prop_oneof![0..6u32, 0..BLOCKS], any::<bool>(), 0..2u64), 0..400),
    ) {
        let geometry = Geometry { origin_blocks: BLOCKS, slots };
        let mode = if back { Mode::Writeback } else { Mode::Writethrough };
        let warm: Vec<Mapping> = (0..warmed.min(slots))
            .map(|slot| Mapping {
                block: slot * 3,
                slot,
                dirty: false,
                heat: if slot % 2 == 0 { HOTTEST } else { 0 },
                missing: 0,
            })
            .collect();
        let mut now = 0;
        let trace: Vec<Access> = drawn
            .into_iter()
            .map(|(block, write, wait)| {
                now += wait * IDLE_AFTER;
                Access { now, block, write, whole: false }
            })
            .collect();
        macro_rules! same {
            ($replacement:ty) => {
                let made = |warm: &[Mapping]| AtOnce::<$replacement>::new(geometry, warm);
                let engines = DemandFill::<$replacement>::new(geometry);
                let [whole, alone] = both(engines, made, &warm, mode, &trace);
                prop_assert_eq!(whole, alone);
            };
        }
        same!(Lru);
        same!(Sieve);
        same!(S3Fifo);
        same!(AdaptiveReplacement);
    }
}

fn written(at: Nanos, block: u64) -> Result<Request, TraceError> {
    Ok(Request {
        at,
        write: true,
        offset: block * 4096,
        bytes: 4096,
    })
}

fn setup(kind: Kind, mode: Mode) -> Setup {
    Setup {
        kind,
        slots: 2048,
        block_bytes: 4096,
        mode,
        bcache: BcacheSettings::default(),
    }
}

#[test]
fn every_policy_runs_a_stream_and_its_figures_agree() {
    let mut dice = SplitMix64::seed_from_u64(3);
    let mut draw = |count: u64| dice.next_u64() % count;
    let trace: Vec<Request> = (0..40_000)
        .map(|number| Request {
            at: number * 100_000,
            write: draw(3) == 0,
            offset: draw(100) * draw(100) * 4096,
            bytes: 4096,
        })
        .collect();
    let end = trace.iter().map(Request::end).max().unwrap();
    for &kind in Kind::value_variants() {
        for mode in [Mode::Writeback, Mode::Writethrough] {
            let outcome = run(
                &setup(kind, mode),
                end,
                &[],
                trace.iter().map(|&request| Ok(request)),
            );
            let outcome = outcome.unwrap();
            assert_eq!(outcome.requests, 40_000, "{kind:?}");
            assert_eq!(outcome.hits + outcome.misses, outcome.requests, "{kind:?}");
            if kind != Kind::Bcache && mode == Mode::Writeback {
                assert_eq!(outcome.write_hits, outcome.absorbed, "{kind:?}");
            }
            assert!(
                outcome.write_backs <= outcome.absorbed,
                "{kind:?} {outcome}"
            );
            assert!(
                outcome.miss_ratio > 0.0 && outcome.miss_ratio < 0.9,
                "{kind:?} {outcome}"
            );
            if mode == Mode::Writethrough {
                assert_eq!((outcome.absorbed, outcome.write_backs), (0, 0), "{kind:?}");
            }
        }
    }
}

/// As a database's pages and a copy beside it: what it writes past the cache wears no flash.
#[test]
fn bytes_of_writes_that_hit_are_theirs_alone() {
    let request = |number: u64| match number % 10 {
        0 => (1 << 24) + number * 65_536..(1 << 24) + number * 65_536 + 65_536,
        _ => number % 5 * 65_536..number % 5 * 65_536 + 8192,
    };
    let trace = (0..1000).map(|number| {
        let place = request(number);
        Ok(Request {
            at: number * 1_000_000,
            write: true,
            offset: place.start,
            bytes: place.end - place.start,
        })
    });
    let setup = Setup {
        slots: 8,
        block_bytes: 65_536,
        ..setup(Kind::S3Fifo, Mode::Writeback)
    };
    let outcome = run(&setup, 1 << 27, &[], trace).unwrap();
    assert!(outcome.write_hits > 800, "{outcome}");
    assert_eq!(outcome.write_hit_bytes, outcome.write_hits * 8192);
}

#[test]
fn a_stream_that_breaks_off_and_a_block_too_far_are_errors() {
    let broken = || Err(TraceError::Stream);
    for kind in [Kind::Lru, Kind::Bcache] {
        let trace = [written(0, 1), broken(), written(1, 2)];
        let error = run(
            &setup(kind, Mode::Writeback),
            1 << 20,
            &[],
            trace.into_iter(),
        );
        assert!(matches!(
            error,
            Err(SimulationError::Trace(TraceError::Stream))
        ));
    }
    let error = run(
        &setup(Kind::Lru, Mode::Writeback),
        1 << 50,
        &[],
        [].into_iter(),
    );
    assert!(matches!(
        error,
        Err(SimulationError::Trace(TraceError::TooFar { .. }))
    ));
}
