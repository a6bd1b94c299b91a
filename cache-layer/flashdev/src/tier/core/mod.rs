//! The state of the blocks: where a request goes, who is using what, who has to wait.
//!
//! All of this happens under one lock, held for moments: the only I/O below it is a record of the
//! metadata's journal.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;

use super::block_set::BlockSet;
use super::clean::Cleaner;
use super::joint::Joint;
use super::metadata::Metadata;
use super::migrate::Pool;
use crate::policy::{Access, Block, Mapping, Policy, Slot};
use crate::time::Nanos;

mod claim;
pub(super) mod regions;

use regions::Regions;

/// What becomes of a write that hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// It goes to the flash, and to the origin some time later.
    Writeback,
    /// It goes to both before it is answered.
    Writethrough,
}

/// What has happened since the tier was started. A request counts once for each block that it
/// touches, when it is sent to flash or origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Reads that the flash served.
    pub read_hits: u64,
    /// Reads that the origin served.
    pub read_misses: u64,
    /// Writes to blocks that were on the flash.
    pub write_hits: u64,
    /// Writes that went to the origin alone.
    pub write_misses: u64,
    /// Blocks copied to the flash, warm-up included.
    pub promotions: u64,
    /// Blocks given up.
    pub demotions: u64,
    /// Dirty blocks copied to the origin.
    pub write_backs: u64,
}

/// A part of a request that lies in one block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The block.
    pub(super) block: Block,
    /// First byte, from the start of the origin.
    pub(super) offset: u64,
    /// Number of bytes.
    pub(super) len: u32,
}

/// Where a piece goes. Whoever is sent somewhere says when it is through: see `leave_…`.
#[derive(Debug)]
pub(super) enum Route {
    /// To the slot.
    Flash(Slot),
    /// To the slot, and then to the origin.
    Through(Slot),
    /// To the origin.
    Origin,
    /// Nowhere until a migration of the block has ended; nothing has been counted.
    Wait,
    /// Nowhere: the metadata cannot be written, or is closed; an error of the operating system.
    Failed(i32),
}

/// A piece that waits, and the request that it belongs to.
pub(super) type Waiting = (Arc<Joint>, Piece);

/// What is being done with a block.
enum Busy {
    /// It is on its way to the flash: reads go to the origin, writes wait.
    Arriving(Vec<Waiting>),
    /// It is about to leave the flash: requests wait.
    Leaving(Vec<Waiting>),
    /// It is being copied to the origin: requests hit. Has it been written since?
    WritingBack { rewritten: bool },
}

/// Who is using a slot: requests under way.
#[derive(Clone, Copy, Debug, Default)]
struct Users {
    readers: u16,
    writers: u16,
}

/// How a tier is to behave.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// What becomes of a write that hits.
    pub(super) mode: Mode,
    /// Size of a block, bytes.
    pub(super) block_bytes: u64,
    /// Number of blocks of the origin.
    pub(super) origin_blocks: u32,
    /// How much of the cache may be dirty, percent.
    pub(super) dirty_target: u8,
}

/// The state of all blocks.
pub(super) struct Core {
    pub(super) policy: Box<dyn Policy>,
    meta: Arc<Metadata>,
    manner: Manner,
    users: Vec<Users>,
    busy: HashMap<Block, Busy>,
    /// How many writes are on their way to a block of the origin.
    origin_writes: HashMap<Block, u32>,
    pub(super) resident: BlockSet,
    pub(super) dirty: BlockSet,
    pub(super) counters: Counters,
    pub(super) regions: Regions,
    /// When the last request came.
    pub(super) last_request: Nanos,
    pub(super) cleaner: Cleaner,
    pub(super) pool: Pool,
    /// The metadata is closed; whoever still comes is turned away.
    pub(super) closed: bool,
}

impl Core {
    /// The state that the metadata remembers.
    pub(super) fn new(
        manner: Manner,
        mut policy: Box<dyn Policy>,
        meta: Arc<Metadata>,
        mappings: &[Mapping],
    ) -> Core {
        let mut resident = BlockSet::new(manner.origin_blocks);
        let mut dirty = BlockSet::new(manner.origin_blocks);
        for mapping in mappings {
            policy.load(*mapping);
            resident.insert(mapping.block);
            if mapping.dirty {
                dirty.insert(mapping.block);
            }
        }
        Core {
            users: vec![Users::default(); policy.capacity() as usize],
            busy: HashMap::new(),
            origin_writes: HashMap::new(),
            resident,
            dirty,
            counters: Counters::default(),
            regions: Regions::new(manner.origin_blocks),
            last_request: 0,
            cleaner: Cleaner::new(manner.dirty_target, manner.origin_blocks),
            pool: Pool::new(manner.block_bytes),
            closed: false,
            policy,
            meta,
            manner,
        }
    }

    /// Sends a piece on its way.
    pub(super) fn route(&mut self, now: Nanos, piece: &Piece, write: bool) -> Route {
        if self.closed {
            return Route::Failed(libc::ESHUTDOWN);
        }
        if self.must_wait(piece.block, write) {
            return Route::Wait;
        }
        let hit = self.policy.access(Access {
            now,
            block: piece.block,
            write,
            whole: u64::from(piece.len) == self.manner.block_bytes,
        });
        self.count(piece.block, write, hit.is_some());
        match hit {
            Some(slot) if write => self.enter_write(piece.block, slot),
            Some(slot) => {
                self.users[slot as usize].readers += 1;
                Route::Flash(slot)
            }
            None => {
                if write {
                    *self.origin_writes.entry(piece.block).or_default() += 1;
                }
                Route::Origin
            }
        }
    }

    /// Puts a piece aside whose route was [`Route::Wait`], under the same lock.
    pub(super) fn wait(&mut self, joint: Arc<Joint>, piece: Piece) {
        match self.busy.get_mut(&piece.block) {
            Some(Busy::Arriving(waiting) | Busy::Leaving(waiting)) => waiting.push((joint, piece)),
            _ => unreachable!("only a block that comes or goes has pieces wait"),
        }
    }

    /// A read of a slot is through. These tell whether a migration may wait for it.
    pub(super) fn leave_read(&mut self, block: Block, slot: Slot) -> bool {
        self.users[slot as usize].readers -= 1;
        self.left(block)
    }

    /// A write to a slot is through; `in_origin` if the origin has it too.
    pub(super) fn leave_write(&mut self, block: Block, slot: Slot, in_origin: bool) -> bool {
        let users = &mut self.users[slot as usize];
        users.writers -= 1;
        if !self.dirty.contains(block) {
            // Without a record the metadata calls it dirty still, and so it must be.
            let same = in_origin && (users.writers > 0 || self.meta.clean(slot).is_ok());
            if !same {
                self.mark_dirty(block, slot);
            }
        }
        self.left(block)
    }

    /// A request to the origin is through.
    pub(super) fn leave_origin(&mut self, block: Block, write: bool) -> bool {
        if let Some(count) = self.origin_writes.get_mut(&block).filter(|_| write) {
            *count -= 1;
            if *count == 0 {
                self.origin_writes.remove(&block);
            }
        }
        self.left(block)
    }

    fn left(&mut self, block: Block) -> bool {
        self.policy.answered(block, self.last_request);
        self.busy.contains_key(&block)
    }

    /// What becomes of a write that hits.
    pub(super) fn mode(&self) -> Mode {
        self.manner.mode
    }

    fn must_wait(&self, block: Block, write: bool) -> bool {
        match self.busy.get(&block) {
            Some(Busy::Leaving(_)) => true,
            Some(Busy::Arriving(_)) => write,
            Some(Busy::WritingBack { .. }) | None => false,
        }
    }

    fn count(&mut self, block: Block, write: bool, hit: bool) {
        self.regions.count(block, write, hit);
        let counters = &mut self.counters;
        let counter = match (write, hit) {
            (false, true) => &mut counters.read_hits,
            (false, false) => &mut counters.read_misses,
            (true, true) => &mut counters.write_hits,
            (true, false) => &mut counters.write_misses,
        };
        *counter += 1;
    }

    /// Lets a write into a slot. The metadata must know before a byte is written: after a crash
    /// the slot counts, not the origin. That goes for writing through as well, where it knows
    /// only as long as the two may differ; a block that is dirty, from an earlier run or after
    /// an error, is not written through, as in dm-cache.
    fn enter_write(&mut self, block: Block, slot: Slot) -> Route {
        let through = self.manner.mode == Mode::Writethrough && !self.dirty.contains(block);
        if !self.dirty.contains(block)
            && let Err(error) = self.meta.dirty(slot)
        {
            return Route::Failed(error.raw_os_error().unwrap_or(libc::EIO));
        }
        self.users[slot as usize].writers += 1;
        if through {
            return Route::Through(slot);
        }
        self.mark_dirty(block, slot);
        if let Some(Busy::WritingBack { rewritten }) = self.busy.get_mut(&block) {
            *rewritten = true;
        }
        Route::Flash(slot)
    }

    fn mark_dirty(&mut self, block: Block, slot: Slot) {
        if self.dirty.insert(block) {
            self.policy.set_dirty(slot, true);
        }
    }

    fn mark_clean(&mut self, block: Block, slot: Slot) {
        if self.dirty.remove(block) {
            self.policy.set_dirty(slot, false);
            self.cleaner.cleaned(block);
        }
    }
}
