//! Moving blocks: to the flash, off it, and back to the origin.
//!
//! Each migrator is a thread that takes one piece of work at a time and waits for the devices as
//! anybody would; no request waits for a migrator, but for the block it has.

use std::io;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::Tier;
use super::core::{Core, Waiting};
use crate::policy::{Block, Slot, Work};
use crate::serve::backing::PageBuffer;
use crate::serve::handler::{Handler, wait_for};
use crate::time::{NANOS_PER_S, Nanos};

/// Migrators. More at a time would only lengthen the queue of the origin.
const MIGRATORS: u32 = 32;

/// What may be under way at a time, sectors; the default of dm-cache.
const THRESHOLD_SECTORS: u64 = 2048;

const SECTOR_BYTES: u64 = 512;

/// How often the policy is asked without a reason, real time: its clock goes on by itself.
const TICK: Duration = Duration::from_millis(100);

/// Without a request for so long the tier is idle, device time; as in dm-cache.
const IDLE: Nanos = NANOS_PER_S as Nanos;

/// What the migrators may do.
pub(super) struct Pool {
    block_bytes: u64,
    /// What may be under way at a time; one block always may.
    pub(super) threshold_sectors: u64,
    running: u32,
    /// Whose turn it is.
    cleaner_first: bool,
    /// The tier is going down.
    pub(super) stopping: bool,
}

impl Pool {
    /// For blocks of this size.
    pub(super) fn new(block_bytes: u64) -> Pool {
        Pool {
            block_bytes,
            threshold_sectors: THRESHOLD_SECTORS,
            running: 0,
            cleaner_first: false,
            stopping: false,
        }
    }

    fn has_room(&self) -> bool {
        let blocks = self.threshold_sectors.saturating_mul(SECTOR_BYTES) / self.block_bytes;
        u64::from(self.running) < blocks.max(1)
    }
}

/// What a migrator does next.
enum Task {
    /// What the policy wants.
    Policy(Work),
    /// Writing back a block that was claimed, for the cleaner.
    Clean(Block, Slot),
}

impl Core {
    /// Policy and cleaner take turns, so that neither starves.
    fn next_task(&mut self, now: Nanos) -> Option<Task> {
        let idle = now.saturating_sub(self.last_request) >= IDLE;
        self.pool.cleaner_first = !self.pool.cleaner_first;
        let first = match self.pool.cleaner_first {
            true => self.clean_task(now, idle),
            false => self.policy.next_work(now, idle).map(Task::Policy),
        };
        first.or_else(|| match self.pool.cleaner_first {
            true => self.policy.next_work(now, idle).map(Task::Policy),
            false => self.clean_task(now, idle),
        })
    }

    fn clean_task(&mut self, now: Nanos, idle: bool) -> Option<Task> {
        let (block, slot) = self.next_cleaning(now, idle)?;
        Some(Task::Clean(block, slot))
    }
}

impl Tier {
    /// Starts the migrators; they end when the tier stops.
    pub(super) fn start_migrators(self: &Arc<Self>) -> io::Result<Vec<JoinHandle<()>>> {
        let mut threads = Vec::new();
        for number in 0..MIGRATORS {
            let tier = self.clone();
            let name = format!("migrator-{number}");
            let run = move || tier.migrate();
            threads.push(thread::Builder::new().name(name).spawn(run)?);
        }
        let tier = self.clone();
        let tick = move || {
            while !tier.lock().pool.stopping {
                tier.work.notify_one();
                thread::sleep(TICK);
            }
        };
        threads.push(
            thread::Builder::new()
                .name("ticker".to_owned())
                .spawn(tick)?,
        );
        Ok(threads)
    }

    fn migrate(self: &Arc<Self>) {
        while let Some(task) = self.next_task() {
            // There may be more where this came from.
            self.work.notify_one();
            match task {
                Task::Policy(Work::Promote { block, slot }) => self.promote(block, slot),
                Task::Policy(Work::Demote { block, slot }) => self.demote(block, slot),
                Task::Policy(work @ Work::WriteBack { block, .. }) => {
                    let clean = self.clean(block);
                    self.lock().policy.finished(work, clean);
                }
                Task::Clean(block, slot) => {
                    let (_, copied) = self.write_back(block, slot);
                    let now = self.now();
                    self.lock().cleaner.tried(block, copied, now);
                }
            }
            self.lock().pool.running -= 1;
            self.changed.notify_all();
        }
    }

    /// Waits for work; `None` when there will be no more.
    fn next_task(&self) -> Option<Task> {
        let mut core = self.lock();
        loop {
            if core.pool.stopping {
                return None;
            }
            if core.pool.has_room()
                && let Some(task) = core.next_task(self.now())
            {
                core.pool.running += 1;
                return Some(task);
            }
            core = self.work.wait(core).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The state, once it is as wanted.
    pub(super) fn until(&self, ready: impl Fn(&Core) -> bool) -> MutexGuard<'_, Core> {
        let core = self.lock();
        let ready = self.changed.wait_while(core, |core| !ready(core));
        ready.unwrap_or_else(PoisonError::into_inner)
    }

    fn promote(self: &Arc<Self>, block: Block, slot: Slot) {
        let mut core = self.lock();
        if !core.begin_promotion(block) {
            return core.policy.finished(Work::Promote { block, slot }, false);
        }
        drop(core);
        drop(self.until(|core| core.is_quiet(block)));
        let bytes = self.read_origin(block);
        let copied = bytes.and_then(|bytes| self.store(slot, bytes.bytes()));
        let (_, waiting) = self.lock().end_promotion(block, slot, copied.is_ok());
        self.resume_all(waiting);
    }

    fn demote(self: &Arc<Self>, block: Block, slot: Slot) {
        // The cleaner may have it just now.
        let mut core = self.until(|core| !core.is_busy(block));
        if !core.begin_demotion(block) {
            return core.policy.finished(Work::Demote { block, slot }, false);
        }
        drop(core);
        let core = self.until(|core| core.is_unused(slot));
        let dirty = core.dirty.contains(block);
        drop(core);
        let copied = match dirty {
            true => self.copy_back(block, slot),
            false => Ok(()),
        };
        let gone = copied.and_then(|()| self.lock().forget(block, slot));
        if gone.is_ok() {
            // Before another block's bytes come to its place. Should it fail, then so will all
            // that follow, and no flush promises anything any more.
            let _ = self.meta.commit();
        }
        let waiting = self.lock().end_demotion(block, slot, gone.is_ok());
        self.resume_all(waiting);
    }

    /// Writes a block back unless it is clean or being written to; whether it is clean now.
    fn clean(&self, block: Block) -> bool {
        // The cleaner may have it just now.
        let mut core = self.until(|core| !core.is_busy(block));
        let claim = core.begin_write_back(block);
        let dirty = core.dirty.contains(block);
        drop(core);
        claim.map_or(!dirty, |slot| self.write_back(block, slot).0)
    }

    /// Writes a claimed block back: whether it is clean now, and whether it was copied.
    fn write_back(&self, block: Block, slot: Slot) -> (bool, io::Result<()>) {
        let copied = self.copy_back(block, slot);
        let clean = self.lock().end_write_back(block, slot, copied.is_ok());
        self.changed.notify_all();
        (clean, copied)
    }

    /// Reads a block off the origin.
    fn read_origin(&self, block: Block) -> io::Result<PageBuffer> {
        let (offset, len) = self.span(block);
        wait_for(|answer| self.origin.read(offset, len, answer))
    }

    /// Puts a block into its slot.
    pub(super) fn store(&self, slot: Slot, bytes: &[u8]) -> io::Result<()> {
        let offset = self.layout.slot_offset(slot);
        let store = || self.flash.write_at(bytes, offset);
        wait_for(|answer| self.flash.write(offset, bytes.len() as u32, store, answer))?;
        Ok(())
    }

    fn copy_back(&self, block: Block, slot: Slot) -> io::Result<()> {
        let (offset, len) = self.span(block);
        let from = self.layout.slot_offset(slot);
        let fill = |buffer: &mut [u8]| self.flash.read_at(buffer, from);
        let bytes = wait_for(|answer| self.flash.read(from, len, fill, answer))?;
        wait_for(|answer| self.origin.write_buffer(offset, bytes, answer))?;
        Ok(())
    }

    /// Where a block is on the origin: first byte and number of bytes. The last one may be short.
    pub(super) fn span(&self, block: Block) -> (u64, u32) {
        let offset = u64::from(block) * self.layout.block_bytes;
        let len = self.layout.block_bytes.min(self.origin_bytes - offset);
        (offset, len as u32)
    }

    /// Takes up what waited for a migration.
    pub(super) fn resume_all(self: &Arc<Self>, waiting: Vec<Waiting>) {
        for (joint, piece) in waiting {
            self.resume(joint, piece);
        }
    }
}
