//! smq, the stochastic multi-queue policy of the Linux kernel's dm-cache.
//!
//! After the behaviour of `drivers/md/dm-cache-policy-smq.c`, policy version 2.0.0, by Joe
//! Thornber; the names in brackets are its functions. Resident blocks are in one of two queues,
//! clean and dirty, of 64 levels; a third, the [`hotspot`], ranks the parts of the origin that
//! miss. A block is promoted once its part ranks high enough and a slot is free; if none is, the
//! miss only queues a demotion, and the block has to miss again.
//!
//! Two parts of the original are left out because nothing depends on them in that version: the
//! sentinels of the clean queue (every demotion looks past them) and the statistics of the cache's
//! own hits (see [`hotspot::Hotspot::tick`]).
//!
//! Known deviations, here and in the engine that drives it:
//!
//! - After an unclean end the kernel gives blocks levels at random (`random_level`); here they keep
//!   those of the last checkpoint, and what was warmed up since comes back at the top.
//! - There are no discards.
//!
//! The kernel compares periods with a strict `time_after`, but its timers fire late; in exact
//! virtual time the long periods are over when their end is reached. That of the [`hotspot`] is one
//! second, and is compared as in the kernel.

mod hotspot;
mod levels;
#[cfg(test)]
mod tests;

use super::backlog::Backlog;
use super::contents::SEARCH_MOST;
use super::shares::{Beneficiary, Excess, Shares, Usage};
use super::slots::{Place, Slots};
use super::{Access, Block, Geometry, HOTTEST, Mapping, Policy, Slot, Work};
use hotspot::Hotspot;
use levels::{LEVELS, Members, Queue};
use virtual_time::Nanos;

const SECOND: Nanos = 1_000_000_000;

/// The clock ticks at least this often: dm-cache's `do_waker`.
const TICK: Nanos = SECOND;
/// Dirty blocks get a period older (`WRITEBACK_PERIOD`).
const WRITEBACK_PERIOD: Nanos = 10 * SECOND;
/// Resident blocks may rise again and the levels are evened out (`CACHE_UPDATE_PERIOD`).
const CACHE_PERIOD: Nanos = 60 * SECOND;
/// Ticks after which a pause has no more effect than to repeat itself: a multiple of all periods.
const REPEATING_TICKS: Nanos = CACHE_PERIOD / TICK;

/// Demotions stop when so many slots are free or about to be (`FREE_TARGET`).
const FREE_TARGET_PERCENT: u64 = 25;
/// Dirty blocks that are cleaned at a time where shares need their slots; the kernel has no shares.
const CLEANED_AT_A_TIME: usize = 16;
/// Only blocks in the lower half of the levels are demoted (`queue_demotion`).
const DEMOTED_LEVELS: usize = LEVELS / 2;

#[derive(Clone, Copy, Default)]
struct Entry {
    dirty: bool,
    /// Has pending work, and is in no queue until it is finished; or was set aside, since its owner
    /// must not lose it.
    pending: bool,
    /// The cache period in which the slot was last hit; as in the kernel, a new block inherits it.
    hit_in: u32,
}

/// Points of time, from the first one the policy is told on.
struct Clock {
    next_tick: Nanos,
    age_at: Nanos,
    redistribute_at: Nanos,
    /// Number of the cache period.
    period: u32,
}

/// smq: 21 bytes per slot, 4 for its share of the hotspot queue, and 4 to 8 per block of the
/// origin.
pub struct Smq {
    slots: Slots,
    entries: Vec<Entry>,
    members: Members,
    clean: Queue,
    dirty: Queue,
    hotspot: Hotspot,
    backlog: Backlog,
    clock: Option<Clock>,
    /// A request is under way that carries a tick.
    tick_carried: bool,
}

impl Smq {
    /// An empty cache.
    pub fn new(geometry: Geometry) -> Smq {
        let mut members = Members::new(geometry.slots);
        Smq {
            slots: Slots::new(geometry),
            entries: vec![Entry::default(); geometry.slots as usize],
            clean: Queue::even(),
            dirty: Queue::with_sentinels(&mut members),
            members,
            hotspot: Hotspot::new(geometry),
            backlog: Backlog::new(),
            clock: None,
            tick_carried: false,
        }
    }

    /// The ticks that time brings by itself (`do_waker`).
    fn advance(&mut self, now: Nanos) {
        let clock = self.clock.get_or_insert(Clock {
            next_tick: now + TICK,
            age_at: now + WRITEBACK_PERIOD,
            redistribute_at: now,
            period: 1,
        });
        if now < clock.next_tick {
            return;
        }
        let due = (now - clock.next_tick) / TICK + 1;
        // A long pause is cut short, as if the policy had been told of it later.
        let skipped = (due / REPEATING_TICKS).saturating_sub(4) * REPEATING_TICKS;
        clock.age_at += skipped * TICK;
        clock.redistribute_at += skipped * TICK;
        let first = clock.next_tick + skipped * TICK;
        clock.next_tick += due * TICK;
        for at in (0..due - skipped).map(|tick| first + tick * TICK) {
            self.tick_at(at);
        }
    }

    /// `smq_tick`.
    fn tick_at(&mut self, now: Nanos) {
        let Some(clock) = self.clock.as_mut() else {
            return;
        };
        if now >= clock.age_at {
            clock.age_at = now + WRITEBACK_PERIOD;
            self.dirty.age(&mut self.members);
        }
        self.hotspot.tick(now);
        if now >= clock.redistribute_at {
            clock.redistribute_at = now + CACHE_PERIOD;
            clock.period = clock.period.wrapping_add(1).max(1); // 0: hit in no period
            self.dirty.redistribute(&mut self.members);
            self.clean.redistribute(&mut self.members);
        }
    }

    /// A hit: the first in a period moves the block up a level (`requeue`).
    fn touch(&mut self, slot: Slot) {
        let period = self.clock.as_ref().map_or(0, |clock| clock.period);
        self.unpark(slot);
        let entry = &mut self.entries[slot as usize];
        if entry.pending || std::mem::replace(&mut entry.hit_in, period) == period {
            return;
        }
        let queue = match entry.dirty {
            true => &mut self.dirty,
            false => &mut self.clean,
        };
        queue.requeue(&mut self.members, slot, 1);
    }

    /// Queues a promotion if a slot is free, else a demotion so that one will be
    /// (`queue_promotion`).
    fn want(&mut self, block: Block, whole: bool) {
        if !self.slots.may_take(block) {
            let owners = self.slots.owners.as_ref();
            let whom = owners.map_or(Some(Beneficiary::Anyone), |owners| {
                owners.beneficiary(block)
            });
            match whom {
                // Slots that are free now are no help to whom is at its limit.
                Some(whom @ Beneficiary::Itself { .. }) => self.queue_demotion(whom),
                Some(whom) if !self.free_target_met() => self.queue_demotion(whom),
                _ => {}
            }
        } else if self.slots.place(block) == Place::Absent {
            match self.promotion(block, HOTTEST) {
                Some(work) if whole => {
                    self.backlog.start(work);
                    self.backlog.offer(Some(work));
                }
                Some(work) => self.backlog.queue(work),
                None => {}
            }
        }
    }

    fn free_target_met(&self) -> bool {
        let coming = u64::from(self.slots.free() + self.backlog.demotions());
        coming >= u64::from(self.slots.capacity()) * FREE_TARGET_PERCENT / 100
    }

    /// Reserves a slot for an absent block, which comes at that level.
    fn promotion(&mut self, block: Block, level: u8) -> Option<Work> {
        if self.backlog.is_full() || !self.slots.may_take(block) {
            return None;
        }
        let slot = self.slots.take()?;
        self.slots.expect(block, false);
        let entry = &mut self.entries[slot as usize];
        (entry.dirty, entry.pending) = (false, true);
        self.members.set_level(slot, level.min(HOTTEST));
        Some(Work::Promote { block, slot })
    }

    /// Queues the demotion of the lowest clean block, or else the cleaning of an aged dirty one
    /// (`queue_demotion`).
    fn queue_demotion(&mut self, whom: Beneficiary) {
        if self.backlog.is_full() {
            return;
        }
        match self.victim(whom, DEMOTED_LEVELS) {
            Some(slot) => self.demote(slot),
            None => self.queue_write_back(true),
        }
    }

    fn demote(&mut self, slot: Slot) {
        self.slots.leave(slot);
        let block = self.slots.block(slot);
        self.backlog.queue(Work::Demote { block, slot });
    }

    /// Takes the lowest clean block out that its owner may lose; others before it are set aside.
    fn victim(&mut self, whom: Beneficiary, levels: usize) -> Option<Slot> {
        let owners = self.slots.owners.as_mut();
        if let Some(slot) = owners.and_then(|owners| owners.parked_victim(whom)) {
            return Some(slot);
        }
        for _ in 0..SEARCH_MOST {
            let slot = self.clean.peek(&self.members, levels, false)?;
            self.clean.remove(&mut self.members, slot);
            self.entries[slot as usize].pending = true;
            let owner = self.slots.owner(slot);
            match &mut self.slots.owners {
                Some(owners) if !owners.may_lose(owner, whom) => owners.park(owner, slot),
                _ => return Some(slot),
            }
        }
        None
    }

    /// One that was set aside is in its queue again.
    fn unpark(&mut self, slot: Slot) {
        let owners = self.slots.owners.as_ref();
        if !owners.is_some_and(|owners| owners.is_parked(slot)) {
            return;
        }
        let owner = self.slots.owner(slot);
        if let Some(owners) = &mut self.slots.owners {
            owners.unpark(owner, slot);
        }
        self.push(slot);
    }

    /// What was set aside under other shares is so under these, unless it is dirty by now.
    fn park_again(&mut self, slot: Slot) {
        let owner = self.slots.owner(slot);
        match &mut self.slots.owners {
            Some(owners) if !self.entries[slot as usize].dirty => owners.park(owner, slot),
            _ => self.push(slot),
        }
    }

    /// Queues the demotion of what has to leave without anybody waiting for its slot.
    fn trim(&mut self, now: Nanos) {
        while !self.backlog.is_full() {
            let Some(excess) = self.slots.excess(now) else {
                return;
            };
            let slot = match excess {
                Excess::Block(block, slot) if !self.take_out(slot) => {
                    // It is being cleaned: later.
                    return self.slots.doom(block);
                }
                Excess::Block(_, slot) => slot,
                Excess::Victim(whom) => match self.victim(whom, LEVELS) {
                    Some(slot) => slot,
                    None => return self.clean_some(),
                },
            };
            if let Some(owners) = &mut self.slots.owners {
                owners.vacate(slot);
            }
            self.demote(slot);
        }
    }

    /// All that could leave is dirty: a demotion comes once some of it is clean.
    fn clean_some(&mut self) {
        for _ in 0..CLEANED_AT_A_TIME {
            self.queue_write_back(false);
        }
        if let Some(owners) = &mut self.slots.owners {
            owners.rest();
        }
    }

    /// Takes a block out that has to leave; not one that has pending work.
    fn take_out(&mut self, slot: Slot) -> bool {
        self.unpark(slot);
        let entry = &mut self.entries[slot as usize];
        if std::mem::replace(&mut entry.pending, true) {
            return false;
        }
        let queue = match entry.dirty {
            true => &mut self.dirty,
            false => &mut self.clean,
        };
        queue.remove(&mut self.members, slot);
        true
    }

    /// Queues the cleaning of the lowest dirty block (`queue_writeback`).
    fn queue_write_back(&mut self, aged: bool) {
        if self.backlog.is_full() {
            return;
        }
        if let Some(slot) = self.dirty.peek(&self.members, LEVELS, aged) {
            self.dirty.remove(&mut self.members, slot);
            self.entries[slot as usize].pending = true;
            let block = self.slots.block(slot);
            self.backlog.queue(Work::WriteBack { block, slot });
        }
    }

    /// Puts a block without pending work at the end of its level.
    fn push(&mut self, slot: Slot) {
        let entry = &mut self.entries[slot as usize];
        entry.pending = false;
        let queue = if entry.dirty {
            &mut self.dirty
        } else {
            &mut self.clean
        };
        queue.push(&mut self.members, slot);
    }
}

impl Policy for Smq {
    /// `__lookup`.
    fn access(&mut self, access: Access) -> Option<Slot> {
        self.advance(access.now);
        if let Some(slot) = self.slots.resident(access.block) {
            self.touch(slot);
            return Some(slot);
        }
        let deserving = self.hotspot.miss(access.block);
        // Nothing has to be copied in for it, so it costs nothing while slots are free.
        let cheap = access.write && access.whole && self.slots.free() > 0;
        if deserving || cheap {
            self.want(access.block, access.write && access.whole);
        }
        None
    }

    /// The kernel hands the work out with the look-up of a bio that writes a whole block
    /// (`policy_lookup_with_work`), which then overwrites the slot (`mg_start`).
    fn admit(&mut self, access: Access) -> Option<Work> {
        self.backlog.take_offered(access.block)
    }

    fn resident(&self, block: Block) -> Option<Slot> {
        self.slots.resident(block)
    }

    /// As dm-cache ticks: one request at a time carries a tick, which comes when it is answered;
    /// the next to arrive then carries the next (`check_if_tick_bio_needed`, `cache_end_io`).
    fn carries_tick(&mut self) -> bool {
        !std::mem::replace(&mut self.tick_carried, true)
    }

    fn tick(&mut self, now: Nanos) {
        self.tick_carried = false;
        self.advance(now);
        self.tick_at(now);
    }

    /// `smq_get_background_work`; the kernel, too, hands out the newest work first.
    fn next_work(&mut self, now: Nanos, idle: bool) -> Option<Work> {
        self.advance(now);
        self.trim(now);
        if let Some(work) = self.backlog.newest() {
            return Some(work);
        }
        if idle && self.dirty.len() > 0 {
            self.queue_write_back(false);
        }
        self.backlog.newest()
    }

    /// `__complete_background_work`.
    fn finished(&mut self, work: Work, success: bool) {
        self.backlog.finish(work);
        match (work, success) {
            (Work::Promote { block, slot }, true) => {
                self.slots.settle(block, slot);
                self.push(slot);
            }
            (Work::Promote { block, slot }, false) => {
                self.slots.cancel(block);
                self.slots.release(slot);
            }
            (Work::Demote { block, slot }, true) => {
                self.slots.remove(block);
                self.slots.release(slot);
            }
            (Work::Demote { slot, .. }, false) => {
                self.slots.stay(slot);
                self.push(slot);
            }
            (Work::WriteBack { slot, .. }, _) => self.push(slot),
        }
    }

    fn insert(&mut self, block: Block, heat: u8) -> Option<Work> {
        if self.slots.place(block) != Place::Absent {
            return None;
        }
        let work = self.promotion(block, heat)?;
        self.backlog.start(work);
        Some(work)
    }

    /// A block that is being cleaned stays.
    fn make_way(&mut self, block: Block, wanted: Block) -> bool {
        let slot = self.slots.expendable(block, wanted);
        let Some(slot) = slot.filter(|_| !self.backlog.is_full()) else {
            return false;
        };
        let leaves = self.take_out(slot);
        if leaves {
            self.demote(slot);
        }
        leaves
    }

    fn owner(&self, block: Block) -> Option<usize> {
        self.slots.owner_of(block)
    }

    fn discard(&mut self, block: Block) -> Option<Work> {
        let slot = self.slots.resident(block)?;
        if self.backlog.is_full() || !self.take_out(slot) {
            return None;
        }
        self.slots.leave(slot);
        let work = Work::Demote { block, slot };
        self.backlog.start(work);
        Some(work)
    }

    fn leaving(&self) -> u32 {
        self.slots.leaving()
    }

    /// `smq_load_mapping`: before both sentinels, so that it can be cleaned or demoted at once.
    fn load(&mut self, mapping: Mapping) {
        let Mapping { slot, dirty, .. } = mapping;
        self.slots.load(mapping.block, slot);
        self.members.set_level(slot, mapping.heat.min(HOTTEST));
        self.entries[slot as usize].dirty = dirty;
        let queue = if dirty {
            &mut self.dirty
        } else {
            &mut self.clean
        };
        queue.push_front(&mut self.members, slot);
    }

    /// `__smq_set_clear_dirty`.
    fn set_dirty(&mut self, slot: Slot, dirty: bool) {
        self.unpark(slot);
        let entry = &mut self.entries[slot as usize];
        if std::mem::replace(&mut entry.dirty, dirty) == dirty || entry.pending {
            return;
        }
        let from = if dirty {
            &mut self.clean
        } else {
            &mut self.dirty
        };
        from.remove(&mut self.members, slot);
        self.push(slot);
    }

    fn heat(&self, slot: Slot) -> u8 {
        self.members.level(slot)
    }

    fn begin_shares(&mut self, shares: &Shares) {
        self.slots.begin_shares(shares);
    }

    fn continue_shares(&mut self, steps: u32) -> bool {
        if self.slots.has_parked_before() {
            for _ in 0..steps {
                let Some(slot) = self.slots.next_parked_before() else {
                    break;
                };
                self.park_again(slot);
            }
        } else {
            self.slots.count_shares(steps);
        }
        self.slots.is_divided()
    }

    fn usage(&self) -> Usage {
        self.slots.usage()
    }

    fn used(&self) -> u32 {
        self.slots.used()
    }

    fn capacity(&self) -> u32 {
        self.slots.capacity()
    }
}
