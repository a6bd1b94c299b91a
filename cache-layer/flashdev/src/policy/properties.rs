//! What every policy owes its driver, whatever the requests and whatever becomes of the work.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;

use super::backlog::MOST_PENDING;
use super::*;
use crate::time::NANOS_PER_S;

const KINDS: [PolicyKind; 5] = [
    PolicyKind::Lru,
    PolicyKind::Sieve,
    PolicyKind::S3Fifo,
    PolicyKind::Arc,
    PolicyKind::Smq,
];

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
            }
            Work::Demote { .. } => assert_eq!(self.resident.get(&block), Some(&slot)),
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
                policy.answered(access.block, now);
            }
            Step::Take { count, idle } => {
                for _ in 0..count {
                    if let Some(work) = policy.next_work(now, idle) {
                        model.take(work, policy.capacity());
                    }
                }
            }
            Step::Finish { which, success } => model.finish(policy, which, success),
            Step::Insert { block } => {
                if let Some(work) = policy.insert(block) {
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
    loop {
        while let Some(work) = policy.next_work(0, false) {
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
        for kind in KINDS {
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
        for kind in KINDS {
            let mut policy = cache(kind, 20);
            let mut model = Model::default();
            for (&block, slot) in blocks.iter().zip((0..20).rev()) {
                let dirty = block % 2 == 0;
                policy.load(Mapping { block, slot, dirty, heat });
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
    for kind in KINDS {
        let mut policy = cache(kind, 20);
        ask(policy.as_mut(), 0..20);
        settle(policy.as_mut(), &mut Model::default());
        assert_eq!(policy.used(), 20, "{kind:?}");
    }
}

#[test]
fn pending_work_is_bounded() {
    let slots = 2 * MOST_PENDING;
    for kind in KINDS {
        let geometry = Geometry {
            origin_blocks: 2 * slots,
            slots,
        };
        let mut policy = make(kind, geometry);
        ask(policy.as_mut(), 0..slots);
        let work: Vec<Work> = std::iter::from_fn(|| policy.next_work(0, false)).collect();
        assert_eq!(work.len(), MOST_PENDING as usize, "{kind:?}");
        assert_eq!(policy.insert(2 * slots - 1), None, "{kind:?}");
        policy.finished(work[0], true);
        assert!(policy.insert(2 * slots - 1).is_some(), "{kind:?}");
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
