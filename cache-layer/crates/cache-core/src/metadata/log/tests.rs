//! What is remembered of slots that are at risk.

use super::at_risk::FORGOTTEN_AT_A_TIME;
use super::*;
use crate::metadata::{Identity, Session};

const SLOTS: u32 = 5000;

/// With every slot mapped, made dirty and clean again.
fn churned() -> Log {
    let layout = Layout::for_slots(SLOTS, 4096);
    let identity = Identity {
        layout,
        origin_id: [7; 16],
        origin_bytes: u64::from(SLOTS) * 4096,
    };
    let session = Session {
        identity,
        sync: true,
        boot_id: [1; 16],
        id: [1; 16],
        witnessed: None,
    };
    let entries = vec![Entry::default(); SLOTS as usize];
    let mut log = Log::new(Superblock::of(&session), 1, entries);
    for slot in 0..SLOTS {
        let (block, heat, missing, dirty) = (slot, 0, 0, true);
        let map = Change::Map {
            block,
            heat,
            missing,
            dirty,
        };
        log.append(slot, map);
        log.append(slot, Change::Clean);
    }
    log
}

fn at_risk(log: &Log) -> usize {
    (0..SLOTS).filter(|&slot| log.is_at_risk(slot)).count()
}

/// Nobody waits while all that a checkpoint settles is forgotten, and everybody knows of it.
#[test]
fn what_a_checkpoint_settles_is_settled_at_once_and_forgotten_by_and_by() {
    let mut log = churned();
    assert_eq!(at_risk(&log), SLOTS as usize);
    log.settle(2 * 1000);
    assert_eq!(at_risk(&log), SLOTS as usize - 1000);
    log.settle(log.last_ticket);
    assert_eq!(at_risk(&log), 0);
    let left = log.ceasings.len();
    assert!(left >= SLOTS as usize - 2 * FORGOTTEN_AT_A_TIME, "{left}");
    // What is dirty anew is at risk, until it has ceased to be and that is durable.
    log.append(SLOTS - 1, Change::Dirty);
    assert_eq!(at_risk(&log), 1);
    let ceased = log.append(SLOTS - 1, Change::Clean);
    log.settle(ceased - 1);
    assert_eq!(at_risk(&log), 1);
    log.settle(ceased);
    assert_eq!(at_risk(&log), 0);
    // A clean slot that nothing is to be feared of is not remembered.
    let before = log.ceasings.len();
    log.append(SLOTS - 2, Change::Unmap);
    assert!(log.ceasings.len() <= before);
    for slot in 0..SLOTS - 2 {
        log.append(slot, Change::Dirty);
    }
    assert!(log.ceasings.is_empty() && log.ceased.is_empty());
    assert_eq!(at_risk(&log), SLOTS as usize - 2);
}
