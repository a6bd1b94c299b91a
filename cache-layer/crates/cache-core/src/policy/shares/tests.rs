//! Shares in shares and pins in shares: what each may have, whichever was said first.

use proptest::prelude::*;

use super::{Geometry, Part, Right, Share, Shares, SharesError, available, owners::Owners};

const GEOMETRY: Geometry = Geometry {
    origin_blocks: 1000,
    slots: 200,
};

fn share(blocks: std::ops::Range<u32>, guaranteed: u32, most: u32) -> Share {
    Share {
        blocks: vec![blocks],
        right: Right::Share { guaranteed, most },
    }
}

fn pin(blocks: std::ops::Range<u32>) -> Share {
    Share {
        blocks: vec![blocks],
        right: Right::Pinned,
    }
}

fn exclude(blocks: std::ops::Range<u32>) -> Share {
    Share {
        blocks: vec![blocks],
        right: Right::Excluded,
    }
}

fn parts(shares: Shares) -> Vec<Part> {
    Owners::new(shares, GEOMETRY.slots).usage(0).shares
}

#[test]
fn a_table_has_its_guarantee_in_a_database_whichever_was_said_first() {
    let (database, table) = (share(0..500, 0, 120), share(100..200, 60, u32::MAX));
    for both in [[database.clone(), table.clone()], [table, database]] {
        let mut parts = parts(Shares::new(&both, GEOMETRY).unwrap());
        parts.sort_by_key(|part| part.blocks);
        let [table, database] = parts[..] else {
            unreachable!()
        };
        assert_eq!((table.blocks, table.guaranteed), (100, 60));
        // What the table is guaranteed, the database has as well.
        assert_eq!(
            (database.blocks, database.guaranteed, database.most),
            (500, 60, 120)
        );
    }
}

#[test]
fn what_is_pinned_in_a_share_is_part_of_its_guarantee_and_of_its_limit() {
    let shares = [share(0..500, 50, 120), pin(0..30)];
    let owners = Owners::new(Shares::new(&shares, GEOMETRY).unwrap(), GEOMETRY.slots);
    let usage = owners.usage(0);
    assert_eq!((usage.pinned.blocks, usage.shares[0].guaranteed), (30, 50));
    let too_small = Shares::new(&[share(0..500, 0, 20), pin(0..30)], GEOMETRY);
    let error = SharesError::Inside {
        share: 0,
        promised: 30,
        most: 20,
    };
    assert_eq!(too_small, Err(error));
}

#[test]
fn guarantees_inside_a_share_are_within_its_limit_or_refused() {
    let tables = [share(0..100, 50, 90), share(100..200, 50, 90)];
    let database = |most| share(0..500, 0, most);
    let all = |most| [tables[0].clone(), database(most), tables[1].clone()];
    assert!(Shares::new(&all(100), GEOMETRY).is_ok());
    let error = SharesError::Inside {
        share: 1,
        promised: 100,
        most: 99,
    };
    assert_eq!(Shares::new(&all(99), GEOMETRY), Err(error));
    let fitted = parts(Shares::fitted(&all(99), GEOMETRY).unwrap());
    let guaranteed: Vec<u32> = fitted.iter().map(|part| part.guaranteed).collect();
    assert_eq!(guaranteed.iter().max(), Some(&99), "the database's");
    assert_eq!(fitted[0].guaranteed + fitted[2].guaranteed, 99);
}

#[test]
fn files_that_meet_in_a_block_are_not_in_one_another() {
    let beside = [share(0..100, 50, 60), share(99..200, 50, 60)];
    let parts = parts(Shares::new(&beside, GEOMETRY).unwrap());
    assert_eq!((parts[0].blocks, parts[1].blocks), (100, 100));
}

#[test]
fn a_table_that_has_grown_since_its_database_was_looked_up_is_still_in_it() {
    let shares = [share(0..200, 0, 70), share(150..220, 40, 60)];
    let parts = parts(Shares::new(&shares, GEOMETRY).unwrap());
    assert_eq!((parts[0].blocks, parts[0].guaranteed), (220, 40));
}

#[test]
fn of_what_fits_no_more_all_that_has_room_is_kept() {
    let pins = [pin(0..300)];
    assert!(matches!(
        Shares::new(&pins, GEOMETRY),
        Err(SharesError::DoNotFit { pinned: 300, .. })
    ));
    let owners = Owners::new(Shares::fitted(&pins, GEOMETRY).unwrap(), GEOMETRY.slots);
    assert_eq!(owners.usage(0).pinned.blocks, u64::from(available(200)));
}

fn one() -> impl Strategy<Value = Share> {
    let blocks = (0..900_u32, 1..100_u32).prop_map(|(first, count)| first..first + count);
    let nested = (0..9_u32, 0..3_u32).prop_map(|(at, size)| {
        let size = 100 >> size;
        at * 100..at * 100 + size
    });
    let limits = (0..200_u32, 0..200_u32).prop_map(|(a, b)| (a.min(b), a.max(b)));
    (prop_oneof![blocks, nested], limits, 0..6).prop_map(|(blocks, (least, most), right)| {
        match right {
            0 => pin(blocks),
            1 => exclude(blocks),
            _ => share(blocks, least, most),
        }
    })
}

proptest! {
    /// Whatever is asked for: what is promised has room, in the cache and in every share.
    #[test]
    fn what_is_promised_has_room(shares in prop::collection::vec(one(), 0..8)) {
        let fitted = Shares::fitted(&shares, GEOMETRY).unwrap();
        let whole = Shares::new(&shares, GEOMETRY);
        prop_assert!(whole.is_err() || whole.as_ref() == Ok(&fitted), "what fits is not cut down");
        let rights = &fitted.rights;
        let sum_in = |around| -> u32 {
            let inside = rights.iter().filter(|of| of.around == around);
            inside.map(|of| of.limits.guaranteed).sum()
        };
        prop_assert!(sum_in(None) <= available(GEOMETRY.slots));
        for (owner, of) in rights.iter().enumerate() {
            prop_assert!(of.limits.guaranteed <= of.limits.most);
            prop_assert!(of.pinned || sum_in(Some(owner)) <= of.limits.guaranteed);
        }
    }

    /// The order in which they were said means nothing.
    #[test]
    fn in_any_order_each_has_the_same(
        shares in prop::collection::vec(one(), 0..8),
        turn in 0..8_usize,
    ) {
        let mut turned = shares.clone();
        turned.rotate_left(turn.min(shares.len()));
        let of = |shares: &[Share]| {
            let fits = Shares::new(shares, GEOMETRY).ok()?;
            let owners = Owners::new(fits, GEOMETRY.slots);
            let usage = owners.usage(0);
            let mut parts: Vec<_> = usage.shares.iter()
                .map(|part| (part.blocks, part.guaranteed, part.most))
                .collect();
            parts.sort_unstable();
            Some((usage.pinned.blocks, parts))
        };
        // Two alike are in one another as they were said, and what is excluded can make them so.
        let mut sizes: Vec<_> = shares.iter().map(|share| share.blocks[0].len()).collect();
        sizes.sort_unstable();
        prop_assume!(sizes.windows(2).all(|two| two[0] != two[1]));
        let (first, other) = (of(&shares), of(&turned));
        let left = first.iter().chain(&other).map(|(_, parts)| parts);
        let mut pairs = left.flat_map(|parts| parts.windows(2));
        prop_assume!(pairs.all(|two| two[0].0 != two[1].0));
        prop_assert_eq!(first, other);
    }
}
