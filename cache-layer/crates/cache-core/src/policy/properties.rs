//! What every policy owes its driver, whatever the requests and whatever becomes of the work.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::backlog::MOST_PENDING;
use super::shares::{Right, Share, available};
use super::*;
use virtual_time::NANOS_PER_S;

const ORIGIN_BLOCKS: u32 = 60;

#[derive(Clone, Debug)]
enum Step {
    Access {
        block: Block,
        write: bool,
        whole: bool,
        /// Time since the last step.
        after_ms: u64,
    },
    /// Take this many pieces of work.
    Take { count: usize, idle: bool },
    /// Finish one of the pieces that were taken.
    Finish { which: usize, success: bool },
    /// Warm the cache with a block.
    Insert { block: Block },
    /// Nobody wants a block's data any more.
    Discard { block: Block },
}

fn step() -> impl Strategy<Value = Step> {
    // A few blocks are hot, so that policies have something to learn.
    let block = prop_oneof![0..6u32, 0..25u32, 0..ORIGIN_BLOCKS];
    let access = (block, any::<bool>(), any::<bool>(), 0..1500u64);
    prop_oneof![
        6 => access.prop_map(|(block, write, whole, after_ms)| Step::Access {
            block, write, whole, after_ms,
        }),
        3 => (1..4usize, any::<bool>()).prop_map(|(count, idle)| Step::Take { count, idle }),
        4 => (any::<usize>(), prop::bool::weighted(0.8))
            .prop_map(|(which, success)| Step::Finish { which, success }),
        1 => (0..ORIGIN_BLOCKS).prop_map(|block| Step::Insert { block }),
        1 => (0..25u32).prop_map(|block| Step::Discard { block }),
    ]
}

/// The cache as its driver knows it, from the work alone.
#[derive(Default)]
struct Model {
    resident: HashMap<Block, Slot>,
    /// By slot: its block.
    occupants: HashMap<Slot, Block>,
    /// Resident blocks whose only good copy is on the flash.
    dirty: HashSet<Block>,
    /// Handed out and not finished.
    taken: Vec<Work>,
    pinned: HashSet<Block>,
    excluded: HashSet<Block>,
}

impl Model {
    /// Checks that a piece of work is possible now, with all that is pending.
    fn take(&mut self, work: Work, slots: u32) {
        let (block, slot) = parts(work);
        assert!(slot < slots, "{work:?}");
        for &pending in &self.taken {
            let (other_block, other_slot) = parts(pending);
            assert!(
                block != other_block && slot != other_slot,
                "{work:?} {pending:?}"
            );
        }
        match work {
            Work::Promote { .. } => {
                assert!(!self.resident.contains_key(&block), "{work:?}: is there");
                assert!(!self.occupants.contains_key(&slot), "{work:?}: slot in use");
                assert!(!self.excluded.contains(&block), "{work:?}: is excluded");
            }
            Work::Demote { .. } => {
                assert_eq!(self.resident.get(&block), Some(&slot));
                assert!(!self.pinned.contains(&block), "{work:?}: is pinned");
            }
            Work::WriteBack { .. } => {
                assert_eq!(self.resident.get(&block), Some(&slot));
                assert!(self.dirty.contains(&block), "{work:?}: is clean");
            }
        }
        self.taken.push(work);
    }

    fn finish(&mut self, policy: &mut dyn Policy, which: usize, success: bool) {
        if self.taken.is_empty() {
            return;
        }
        let work = self.taken.swap_remove(which % self.taken.len());
        let (block, slot) = parts(work);
        if success {
            match work {
                Work::Promote { .. } => {
                    self.resident.insert(block, slot);
                    self.occupants.insert(slot, block);
                }
                Work::Demote { .. } => {
                    self.resident.remove(&block);
                    self.occupants.remove(&slot);
                    self.dirty.remove(&block); // written back as part of it
                }
                Work::WriteBack { .. } => {
                    self.dirty.remove(&block);
                    policy.set_dirty(slot, false);
                }
            }
        }
        policy.finished(work, success);
    }

    fn check(&self, policy: &dyn Policy) {
        assert_eq!(policy.used() as usize, self.resident.len());
        assert!(policy.used() <= policy.capacity());
        for block in 0..ORIGIN_BLOCKS {
            assert_eq!(policy.resident(block), self.resident.get(&block).copied());
        }
        for &slot in self.occupants.keys() {
            assert!(policy.heat(slot) <= HOTTEST);
        }
    }
}

fn parts(work: Work) -> (Block, Slot) {
    match work {
        Work::Promote { block, slot }
        | Work::Demote { block, slot }
        | Work::WriteBack { block, slot } => (block, slot),
    }
}

fn drive(policy: &mut dyn Policy, model: &mut Model, steps: &[Step]) {
    let mut now = 0;
    for step in steps {
        match *step {
            Step::Access {
                block,
                write,
                whole,
                after_ms,
            } => {
                now += after_ms * 1_000_000;
                let access = Access {
                    now,
                    block,
                    write,
                    whole,
                };
                let hit = policy.access(access);
                assert_eq!(hit, model.resident.get(&block).copied());
                if let (Some(slot), true) = (hit, write) {
                    policy.set_dirty(slot, true);
                    model.dirty.insert(block);
                }
                if policy.carries_tick() {
                    policy.tick(now);
                }
            }
            Step::Take { count, idle } => {
                for _ in 0..count {
                    if let Some(work) = policy.next_work(now, idle) {
                        model.take(work, policy.capacity());
                    }
                }
            }
            Step::Finish { which, success } => model.finish(policy, which, success),
            Step::Discard { block } => {
                if let Some(work) = policy.discard(block) {
                    assert!(matches!(work, Work::Demote { .. }));
                    assert_eq!(parts(work).0, block);
                    // Though it may be pinned.
                    let pinned = model.pinned.remove(&block);
                    model.take(work, policy.capacity());
                    model.pinned.extend(pinned.then_some(block));
                }
            }
            Step::Insert { block } => {
                if let Some(work) = policy.insert(block, HOTTEST) {
                    assert!(matches!(work, Work::Promote { .. }));
                    assert_eq!(parts(work).0, block);
                    model.take(work, policy.capacity());
                }
            }
        }
        model.check(policy);
    }
}

/// Finishes all work, with success.
fn settle(policy: &mut dyn Policy, model: &mut Model) {
    settle_at(policy, model, 0);
}

fn settle_at(policy: &mut dyn Policy, model: &mut Model, now: Nanos) {
    loop {
        while let Some(work) = policy.next_work(now, false) {
            model.take(work, policy.capacity());
        }
        if model.taken.is_empty() {
            break;
        }
        model.finish(policy, 0, true);
    }
    model.check(policy);
}

proptest! {
    #[test]
    fn the_work_tells_all_there_is_to_know(
        slots in 1..30u32,
        steps in prop::collection::vec(step(), 1..300),
    ) {
        for &kind in PolicyKind::value_variants() {
            let mut policy = cache(kind, slots);
            let mut model = Model::default();
            drive(policy.as_mut(), &mut model, &steps);
            settle(policy.as_mut(), &mut model);
        }
    }

    #[test]
    fn a_cache_that_is_loaded_goes_on_as_any_other(
        blocks in prop::sample::subsequence((0..ORIGIN_BLOCKS).collect::<Vec<_>>(), 0..20),
        heat in 0..=HOTTEST,
        steps in prop::collection::vec(step(), 1..200),
    ) {
        for &kind in PolicyKind::value_variants() {
            let mut policy = cache(kind, 20);
            let mut model = Model::default();
            for (&block, slot) in blocks.iter().zip((0..20).rev()) {
                let dirty = block % 2 == 0;
                let missing = 0;
                policy.load(Mapping { block, slot, dirty, heat, missing });
                model.resident.insert(block, slot);
                model.occupants.insert(slot, block);
                if dirty {
                    model.dirty.insert(block);
                }
            }
            model.check(policy.as_ref());
            drive(policy.as_mut(), &mut model, &steps);
            settle(policy.as_mut(), &mut model);
        }
    }
}

/// Half of the origin belongs to two databases, the first of which has a share.
const FIRST: std::ops::Range<Block> = 30..45;
const SECOND: std::ops::Range<Block> = 45..60;

fn shares() -> impl Strategy<Value = (u32, Vec<Share>)> {
    let sizes = (4..30u32, 0..15u32, 0..15u32, 0..10u32);
    let of = |(slots, first, excluded, guaranteed): (u32, u32, u32, u32)| {
        let pinned = available(slots) / 3;
        let guaranteed = guaranteed.min(available(slots) - pinned);
        let share = |blocks, right| Share {
            blocks: vec![blocks],
            right,
        };
        let most = guaranteed.max(1) + first % 5;
        let shares = vec![
            share(first..first + pinned, Right::Pinned),
            // Of what is pinned as well, this counts.
            share(excluded..excluded + 8, Right::Excluded),
            share(FIRST, Right::Share { guaranteed, most }),
        ];
        (slots, shares)
    };
    sizes.prop_map(of)
}

fn in_first(model: &Model) -> u32 {
    let blocks = model.resident.keys();
    blocks.filter(|block| FIRST.contains(block)).count() as u32
}

/// The same steps, without a word of the first database.
fn by_others(steps: &[Step]) -> Vec<Step> {
    let other = |block: Block| match FIRST.contains(&block) {
        true => SECOND.start + (block - FIRST.start),
        false => block,
    };
    let without = |step: &Step| match step.clone() {
        Step::Access {
            block,
            write,
            whole,
            after_ms,
        } => Step::Access {
            block: other(block),
            write,
            whole,
            after_ms,
        },
        Step::Insert { block } => Step::Insert {
            block: other(block),
        },
        // What is pinned stays here.
        Step::Discard { .. } => Step::Take {
            count: 0,
            idle: false,
        },
        step => step,
    };
    steps.iter().map(without).collect()
}

proptest! {
    #[test]
    fn whatever_is_asked_for_everybody_keeps_what_is_theirs(
        (slots, shares) in shares(),
        before in prop::collection::vec(step(), 0..150),
        meanwhile in prop::collection::vec((step(), 0..4u32), 0..60),
        with_shares in prop::collection::vec(step(), 1..300),
        of_others in prop::collection::vec(step(), 1..300),
    ) {
        let geometry = Geometry { origin_blocks: ORIGIN_BLOCKS, slots };
        let checked = Shares::new(&shares, geometry).unwrap();
        let Right::Share { guaranteed, most } = shares[2].right else { unreachable!() };
        for &kind in PolicyKind::value_variants() {
            let mut policy = cache(kind, slots);
            let mut model = Model::default();
            drive(policy.as_mut(), &mut model, &before);
            settle(policy.as_mut(), &mut model);
            divide(policy.as_mut(), &mut model, &checked, &meanwhile);
            model.excluded = shares[1].blocks[0].clone().collect();
            let pinned = shares[0].blocks[0].clone();
            model.pinned = pinned.filter(|block| !model.excluded.contains(block)).collect();
            // smq cleans some of its dirty blocks at a time.
            for seconds in 0..8 {
                settle_at(policy.as_mut(), &mut model, seconds * NANOS_PER_S as Nanos);
            }
            let excluded = |model: &Model| {
                model.excluded.iter().filter(|block| model.resident.contains_key(block)).count()
            };
            prop_assert_eq!(excluded(&model), 0, "{:?}", kind);
            prop_assert!(in_first(&model) <= most, "{:?}", kind);
            drive(policy.as_mut(), &mut model, &with_shares);
            settle_at(policy.as_mut(), &mut model, Nanos::MAX / 2);
            prop_assert!(in_first(&model) <= most, "{:?}", kind);
            prop_assert_eq!(excluded(&model), 0, "{:?}", kind);
            // Whoever came meanwhile, there is room for what is pinned.
            for &block in &model.pinned.clone() {
                if let Some(work) = policy.insert(block, HOTTEST) {
                    model.take(work, slots);
                    model.finish(policy.as_mut(), 0, true);
                }
                prop_assert!(model.resident.contains_key(&block), "{:?}: no room", kind);
            }
            let had = in_first(&model);
            drive(policy.as_mut(), &mut model, &by_others(&of_others));
            settle_at(policy.as_mut(), &mut model, Nanos::MAX / 2);
            prop_assert!(in_first(&model) >= had.min(guaranteed), "{:?}: {}", kind, had);
            let usage = policy.usage();
            prop_assert_eq!(usage.shares[0].resident, in_first(&model));
            let pinned = model.pinned.iter().filter(|block| model.resident.contains_key(block));
            prop_assert_eq!(usage.pinned.resident as usize, pinned.count());
            prop_assert_eq!(usage.pinned.resident, usage.pinned.guaranteed);
            prop_assert_eq!(usage.to_leave, 0);
            // Without shares all is as before: nothing stays out of reach.
            policy.set_shares(&Shares::new(&[], geometry).unwrap());
            (model.pinned, model.excluded) = Default::default();
            drive(policy.as_mut(), &mut model, &before);
            settle_at(policy.as_mut(), &mut model, Nanos::MAX / 2);
        }
    }
}

/// Divides a cache whose users go on while it is counted who has how much.
fn divide(policy: &mut dyn Policy, model: &mut Model, shares: &Shares, meanwhile: &[(Step, u32)]) {
    policy.begin_shares(shares);
    for (step, counted) in meanwhile {
        drive(policy, model, std::slice::from_ref(step));
        policy.continue_shares(*counted);
    }
    while !policy.continue_shares(3) {}
    settle(policy, model);
}

/// Asks for a block over and over, so that smq, too, comes to want it.
fn ask(policy: &mut dyn Policy, blocks: std::ops::Range<Block>) {
    for second in 0..60 {
        for block in blocks.clone() {
            policy.access(Access {
                now: second * NANOS_PER_S as Nanos,
                block,
                write: false,
                whole: false,
            });
        }
    }
}

/// A policy for a cache of so many slots over the usual origin.
fn cache(kind: PolicyKind, slots: u32) -> Box<dyn Policy> {
    make(
        kind,
        Geometry {
            origin_blocks: ORIGIN_BLOCKS,
            slots,
        },
    )
}

#[test]
fn every_policy_fills_the_cache() {
    for &kind in PolicyKind::value_variants() {
        let mut policy = cache(kind, 20);
        ask(policy.as_mut(), 0..20);
        settle(policy.as_mut(), &mut Model::default());
        assert_eq!(policy.used(), 20, "{kind:?}");
    }
}

#[test]
fn pending_work_is_bounded() {
    let slots = 2 * MOST_PENDING;
    for &kind in PolicyKind::value_variants() {
        let geometry = Geometry {
            origin_blocks: 2 * slots,
            slots,
        };
        let mut policy = make(kind, geometry);
        ask(policy.as_mut(), 0..slots);
        let work: Vec<Work> = std::iter::from_fn(|| policy.next_work(0, false)).collect();
        assert_eq!(work.len(), MOST_PENDING as usize, "{kind:?}");
        assert_eq!(policy.insert(2 * slots - 1, HOTTEST), None, "{kind:?}");
        policy.finished(work[0], true);
        assert!(policy.insert(2 * slots - 1, HOTTEST).is_some(), "{kind:?}");
    }
}

#[test]
fn a_failed_demotion_keeps_the_victim_and_cancels_what_was_to_follow() {
    for kind in [
        PolicyKind::Lru,
        PolicyKind::Sieve,
        PolicyKind::S3Fifo,
        PolicyKind::Arc,
    ] {
        let mut policy = cache(kind, 2);
        ask(policy.as_mut(), 0..2);
        settle(policy.as_mut(), &mut Model::default());
        let access = Access {
            now: 0,
            block: 2,
            write: false,
            whole: false,
        };
        policy.access(access);
        let demotion = policy.next_work(0, false).expect("a demotion");
        let (victim, slot) = parts(demotion);
        assert_eq!(
            demotion,
            Work::Demote {
                block: victim,
                slot
            }
        );
        assert_eq!(policy.next_work(0, false), None, "the slot is not free yet");
        policy.finished(demotion, false);
        assert_eq!(policy.next_work(0, false), None, "{kind:?}");
        assert_eq!(policy.resident(victim), Some(slot), "{kind:?}");
        policy.access(access);
        assert!(policy.next_work(0, false).is_some(), "asked for anew");
    }
}
