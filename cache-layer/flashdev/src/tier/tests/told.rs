//! What the policy is told.

use std::collections::HashMap;
use std::sync::Mutex;

use super::load::{Ledger, Worker, take_stock};
use super::*;
use crate::policy::{self, Access, Block, Geometry, Mapping, Policy, Slot, Work};
use crate::time::Nanos;

/// How many requests for each block have not been answered, and how many have, all in all.
type Open = Arc<Mutex<(HashMap<Block, u64>, u64)>>;

/// A policy that keeps account of what another one is told.
struct Account {
    inner: Box<dyn Policy>,
    open: Open,
}

impl Policy for Account {
    fn access(&mut self, access: Access) -> Option<Slot> {
        let (open, _) = &mut *self.open.lock().unwrap();
        *open.entry(access.block).or_default() += 1;
        self.inner.access(access)
    }

    fn answered(&mut self, block: Block, now: Nanos) {
        let (open, answered) = &mut *self.open.lock().unwrap();
        let left = open.get_mut(&block).expect("it was asked for");
        *left = left.checked_sub(1).expect("it is answered once");
        *answered += 1;
        self.inner.answered(block, now);
    }

    fn resident(&self, block: Block) -> Option<Slot> {
        self.inner.resident(block)
    }

    fn next_work(&mut self, now: Nanos, idle: bool) -> Option<Work> {
        self.inner.next_work(now, idle)
    }

    fn finished(&mut self, work: Work, success: bool) {
        self.inner.finished(work, success);
    }

    fn insert(&mut self, block: Block) -> Option<Work> {
        self.inner.insert(block)
    }

    fn load(&mut self, mapping: Mapping) {
        self.inner.load(mapping);
    }

    fn set_dirty(&mut self, slot: Slot, dirty: bool) {
        self.inner.set_dirty(slot, dirty);
    }

    fn heat(&self, slot: Slot) -> u8 {
        self.inner.heat(slot)
    }

    fn used(&self) -> u32 {
        self.inner.used()
    }

    fn capacity(&self) -> u32 {
        self.inner.capacity()
    }
}

fn keep_account(rig: &Rig, open: &Open) {
    let geometry = Geometry {
        origin_blocks: 1,
        slots: 1,
    };
    let unused = policy::make(PolicyKind::Lru, geometry);
    let mut core = rig.tier.lock();
    let inner = std::mem::replace(&mut core.policy, unused);
    let open = open.clone();
    core.policy = Box::new(Account { inner, open });
}

/// smq's clock ticks by answers: without them it would learn nothing.
#[test]
fn the_policy_hears_of_every_answer() {
    for mode in [Mode::Writeback, Mode::Writethrough] {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::make(dir.path());
        Ledger::make(dir.path());
        let ledger = Ledger::open(dir.path());
        let rig = Rig::start(&place, Trial::of(PolicyKind::Lru, mode));
        let open = Open::default();
        keep_account(&rig, &open);
        let versions = take_stock(&rig, &ledger).unwrap();
        let mut worker = Worker {
            number: 0,
            rig: &rig,
            ledger: &ledger,
            dice: Dice(5),
            versions,
        };
        (0..300).for_each(|_| worker.step().unwrap());
        let counters = rig.tier.status().counters;
        rig.stop();
        let (left, answered) = &*open.lock().unwrap();
        assert!(left.values().all(|&left| left == 0), "{left:?}");
        let reads = counters.read_hits + counters.read_misses;
        let writes = counters.write_hits + counters.write_misses;
        assert_eq!(*answered, reads + writes);
    }
}
