//! The cache engine: a state machine that is told what is asked and what has been done, and says
//! what is to be done. It owns no thread, asks no clock, and touches no file.
//!
//! Whoever drives it ([`Engine::on_request`], [`Engine::on_completion`], [`Engine::on_timer`]) takes
//! the [`Action`]s after each call and carries them out: a daemon on real files, a simulator or a
//! modelled hybrid disk in virtual time. Time is the driver's, and never goes back.
//!
//! - `request` is the way of a request: cut at the blocks, each piece goes to flash or origin, or
//!   waits. `through` is that of a write to both, `discard` that of a discard.
//! - `migration` chooses what blocks do next: come to the flash (`fetch`), go (`leave`), or are copied
//!   back to the origin (`write_back`).
//! - `sub_blocks` is the way of a part of a block: written or fetched into a slot by itself.
//! - `cleaner` chooses dirty blocks to write back, `jobs` are warm-ups and flushes of the cache.
//! - `recording` is what waits for the log, flushes among it.
//! - `health` is what becomes of a cache whose devices fail, `unsynced` what they may have lost then.
//!
//! # What waits for what
//!
//! At most one thing is being done with a block at a time, which is its `BlockLock`. As long as the cache
//! is healthy, that decides what becomes of others:
//!
//! | block is | read | write | discard | demotion | cleaning |
//! |---|---|---|---|---|---|
//! | not locked | hits or misses | hits or misses | begins | begins, waits for writers | begins unless it has writers; a flush passes over it once |
//! | `Promoting` | from the origin | waits | waits | never wanted | passes over it |
//! | `Admitting` | waits | waits | waits | never wanted | passes over it |
//! | `Filling` | hits if all it touches is there, or waits | waits | waits | refused, wanted again | passes over it |
//! | `Demoting` | hits while it is there, then from the origin | waits | waits | is under way | passes over it |
//! | `WritingBack` | hits | hits, and the block stays dirty | waits, comes second | waits, comes first | is under way |
//!
//! A write-back that smq wants is refused where a demotion is, and waits where that does. A warm-up passes
//! over every block that is locked. Once the cache is given up or read-only no request waits for a lock.
//!
//! What must survive goes through the [`Log`](crate::metadata::Log); an engine without one forgets,
//! as a simulation may. The behaviour is dm-cache's, except where a comment says otherwise.

use std::collections::VecDeque;

use roaring::RoaringBitmap;
use slab::Slab;
use virtual_time::{NANOS_PER_S, Nanos};

use crate::layout::Mask;
use crate::metadata::{CommitTicket, Log, Ticket, pop_until};
use crate::number_map::NumberMap;
use crate::policy::shares::{Shares, Usage};
use crate::policy::{Block, Mapping, Policy, Slot};

mod action;
mod cleaner;
mod discard;
mod health;
mod jobs;
mod migration;
mod recording;
mod regions;
mod request;
mod sub_blocks;
#[cfg(test)]
mod tests;
mod through;
mod transfer;
mod unsynced;
mod users;

pub use action::{
    Action, Buffer, BufferId, CacheConfig, Counters, Device, Direction, Errno, Health, IoId, JobId,
    Mode, Pace, Request, RequestId, WriteBackFailure,
};
pub use jobs::{JobProgress, JobResult, Warmed};
pub use regions::{Counts, Regions};

use action::{IoState, Piece};
use cleaner::Cleaner;
use health::{Stranded, SyncFor};
use jobs::{Job, WarmReads};
use migration::Migrations;
use recording::{Continuation, SyncWaiter};
use request::Pending;
use through::Through;
use unsynced::Unsynced;

/// Without anything in flight for so long the cache is idle; as in dm-cache.
const IDLE: Nanos = NANOS_PER_S as Nanos;

/// Without a request under way on the origin for so long it has time for cleaning, however many hits
/// there are. Longer than the gaps of a disk that is merely not at its limit.
const ORIGIN_IDLE: Nanos = NANOS_PER_S as Nanos / 10;

/// How many blocks or slots one call looks at, at most, for work that has no end in sight: the call has
/// the engine to itself, and users wait. Some tens of nanoseconds each, so a millisecond at most; few
/// blocks are as many in tests.
const STEPS_AT_ONCE: u32 = if cfg!(test) { 3 } else { 1 << 14 };

/// A piece that waits, and the request that it belongs to.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    request: usize,
    piece: Piece,
    /// The policy has been told of it, and it has been counted.
    counted: bool,
}

/// What is being done with a block. Pieces that have to wait for its end are in it. The table above says
/// what each does to others.
#[derive(Debug)]
enum BlockLock {
    /// It is on its way to the flash: reads go to the origin, writes wait.
    Promoting(Vec<Waiting>),
    /// The same, begun by a request that brings it in: all others wait.
    Admitting(Vec<Waiting>),
    /// Sub-blocks that are missing are being fetched: reads of the others hit, all else waits.
    Filling(Vec<Waiting>),
    /// It is about to leave the flash: reads hit as long as it is there, writes wait.
    Demoting(Vec<Waiting>),
    /// It is being copied to the origin: requests hit.
    WritingBack {
        /// Has it been written since?
        rewritten: bool,
        /// What is to be done with it next.
        next: Option<usize>,
        /// Discards of it, which come after that.
        discards: Vec<Waiting>,
    },
}

/// The engine.
pub struct Engine {
    config: CacheConfig,
    policy: Box<dyn Policy>,
    log: Option<Log>,
    health: Health,
    requests: Slab<Pending>,
    throughs: Slab<Through>,
    ios: Slab<IoState>,
    users: users::SlotUsers,
    /// By slot: the sub-blocks that are not in it.
    missing: Vec<Mask>,
    locks: NumberMap<BlockLock>,
    /// How many writes are on their way to a block of the origin.
    origin_writes: NumberMap<u32>,
    resident: RoaringBitmap,
    dirty: RoaringBitmap,
    /// Slots whose being dirty is not recorded yet.
    unrecorded: NumberMap<Ticket>,
    for_record: VecDeque<(Ticket, Continuation)>,
    for_commit: VecDeque<(CommitTicket, usize)>,
    for_syncs: Vec<SyncWaiter>,
    /// Copies of slots that a sync of the flash has to prove.
    for_proof: VecDeque<(u64, usize)>,
    unsynced_flash: Unsynced,
    unsynced_origin: Unsynced,
    migrations: Migrations,
    /// After a block that could not be written back, the policy wishes for none until then.
    write_backs_rest_until: Nanos,
    cleaner: Cleaner,
    jobs: Slab<Job>,
    /// Those that wait for the policy to be through with their blocks.
    discards: VecDeque<Waiting>,
    stranded: Vec<Stranded>,
    /// Who wants a sync that is not the log's, or waits for one.
    syncs_alone: Vec<(Device, SyncFor)>,
    flash_errors: u32,
    counters: Counters,
    regions: Regions,
    /// When the last request was through.
    last_completion: Nanos,
    /// Requests' I/Os on the origin, and when the last one ended, if there was one.
    origin_users: u32,
    users_left_at: Option<Nanos>,
    /// The same with those of warm-ups.
    origin_used_at: Nanos,
    warm_reads: WarmReads,
    stopping: bool,
    closed: bool,
    /// There may be something to migrate.
    look_for_work: bool,
    /// How many steps this call may still take, and whether it stopped short for want of them.
    steps_left: u32,
    stopped_short: bool,
    actions: Vec<Action>,
}

impl Engine {
    /// An engine whose cache holds these blocks.
    ///
    /// `log` takes down what must survive, if anything must.
    pub fn new(
        config: CacheConfig,
        mut policy: Box<dyn Policy>,
        log: Option<Log>,
        mappings: &[Mapping],
    ) -> Engine {
        let (mut resident, mut dirty) = (RoaringBitmap::new(), RoaringBitmap::new());
        let mut missing = vec![0; policy.capacity() as usize];
        for mapping in mappings {
            policy.load(*mapping);
            resident.insert(mapping.block);
            missing[mapping.slot as usize] = mapping.missing;
            if mapping.dirty {
                dirty.insert(mapping.block);
            }
        }
        Engine {
            health: Health::Healthy,
            requests: Slab::new(),
            throughs: Slab::new(),
            ios: Slab::new(),
            users: users::SlotUsers::default(),
            missing,
            locks: NumberMap::default(),
            origin_writes: NumberMap::default(),
            resident,
            dirty,
            unrecorded: NumberMap::default(),
            for_record: VecDeque::new(),
            for_commit: VecDeque::new(),
            for_syncs: Vec::new(),
            for_proof: VecDeque::new(),
            unsynced_flash: Unsynced::default(),
            unsynced_origin: Unsynced::default(),
            migrations: Migrations::default(),
            write_backs_rest_until: 0,
            cleaner: Cleaner::new(config.dirty_target),
            jobs: Slab::new(),
            discards: VecDeque::new(),
            stranded: Vec::new(),
            syncs_alone: Vec::new(),
            flash_errors: 0,
            counters: Counters::default(),
            regions: Regions::new(config.origin_blocks()),
            last_completion: 0,
            origin_users: 0,
            users_left_at: None,
            origin_used_at: 0,
            warm_reads: WarmReads::default(),
            stopping: false,
            closed: false,
            look_for_work: true,
            steps_left: STEPS_AT_ONCE,
            stopped_short: false,
            actions: Vec::new(),
            config,
            policy,
            log,
        }
    }

    /// Somebody wants something. Ranges lie within the origin.
    pub fn on_request(&mut self, now: Nanos, id: RequestId, request: Request) {
        self.begin_request(now, id, request);
        self.advance(now);
    }

    /// An I/O that an action asked for has ended.
    ///
    /// # Panics
    /// If no such I/O is under way.
    pub fn on_completion(&mut self, now: Nanos, io: IoId, result: Result<(), Errno>) {
        let state = self.ios.remove(io);
        self.note_origin_used(now, &state);
        self.note_write(&state);
        let result = self.believed(&state, result);
        match state {
            IoState::Hit { .. }
            | IoState::Miss { .. }
            | IoState::Extend { .. }
            | IoState::Discard { .. } => self.request_served(now, state, result),
            IoState::Overwrite { migration } => self.overwritten(now, migration, result),
            IoState::FillRead { migration } => self.fill_read(now, migration, result),
            IoState::FillStore { migration } => self.fill_stored(now, migration, result),
            IoState::Through { through, device } => {
                self.through_written(now, through, device, result);
            }
            IoState::FetchRead { migration } => self.fetch_read(now, migration, result),
            IoState::FetchStore { migration, index } => {
                self.fetch_stored(now, migration, index, result);
            }
            IoState::DiscardCached { migration } => self.cached_discarded(now, migration, result),
            IoState::CopyOut { migration } => self.copied_out(now, migration, result),
            IoState::CopyBack { migration } => self.copied_back(now, migration, result),
            IoState::Log(done) => self.log_io_done(now, done, result),
            IoState::SyncAlone { device, count } => {
                self.synced_alone(now, (device, count), result);
            }
            IoState::Detach => self.detached(now, result),
        }
        self.advance(now);
    }

    /// An I/O of a request's own has ended.
    fn request_served(&mut self, now: Nanos, state: IoState, result: Result<(), Errno>) {
        match state {
            IoState::Hit {
                request,
                write,
                piece,
                slot,
                count,
                ticks,
            } => {
                let hit = request::Hit {
                    request,
                    piece,
                    slot,
                    count,
                    ticks,
                };
                self.hit_done(now, hit, write, result);
            }
            IoState::Miss {
                request,
                write,
                piece,
                count,
                ticks,
            } => {
                self.tick(now, ticks);
                if write {
                    self.origin_was_written(now, piece.block, count);
                }
                self.part_done(now, request, result);
            }
            IoState::Extend {
                request,
                piece,
                slot,
                ticks,
            } => {
                self.tick(now, ticks);
                self.extended(now, request, piece, slot, result);
            }
            IoState::Discard {
                request,
                piece,
                count,
            } => {
                self.origin_was_written(now, piece.block, count);
                self.part_done(now, request, result);
            }
            state => unreachable!("{state:?} is not a request's own"),
        }
    }

    fn tick(&mut self, now: Nanos, ticks: bool) {
        if ticks {
            self.policy.tick(now);
        }
    }

    /// Time has passed. To be called some ten times a second, even if nothing happens: the policy's
    /// clock and the cleaner go on by themselves.
    pub fn on_timer(&mut self, now: Nanos) {
        self.look_for_work = true;
        self.advance(now);
    }

    /// Whether [`Engine::on_timer`] is to be called again as soon as others have had the engine: there was
    /// more to look at than one call should.
    pub fn has_more_to_do(&self) -> bool {
        self.stopped_short
    }

    /// Hands over what is to be done; to be called after every other call, until there is none.
    pub fn take_actions(&mut self, into: &mut Vec<Action>) {
        match into.is_empty() {
            true => std::mem::swap(into, &mut self.actions),
            false => into.append(&mut self.actions),
        }
    }

    /// Whether a request would be served with nothing but transfers from or to the flash, which are
    /// the next actions if it is made now.
    pub fn would_hit_at_once(&self, request: Request) -> bool {
        let (write, offset, len) = match request {
            Request::Read { offset, len } => (false, offset, len),
            Request::Write { offset, len } => (true, offset, len),
            _ => return false,
        };
        let hits = |piece: Piece| self.hits_at_once(piece, write);
        self.health == Health::Healthy && self.pieces(offset, len).all(hits)
    }

    fn hits_at_once(&self, piece: Piece, write: bool) -> bool {
        let block = piece.block;
        let free = matches!(
            self.locks.get(&block),
            Some(BlockLock::WritingBack { .. }) | None
        );
        if !free || self.closed || !self.resident.contains(block) {
            return false;
        }
        let Some(slot) = self.policy.resident(block) else {
            return false;
        };
        let is_present = self.touched(piece) & self.missing[slot as usize] == 0;
        let recorded = || !self.unrecorded.contains_key(&slot);
        is_present && (!write || self.dirty.contains(block) && recorded())
    }

    /// Nothing new is begun any more, but requests are served, of whatever kind, until they are
    /// [turned away](Engine::turn_away); what is under way comes to an end.
    pub fn stop(&mut self, now: Nanos) {
        self.stopping = true;
        self.stop_jobs();
        self.advance(now);
    }

    /// Whether no block is on its way.
    pub fn is_idle(&self) -> bool {
        self.migrations.is_empty()
    }

    /// Whether nothing is under way.
    pub fn is_quiet(&self) -> bool {
        self.requests.is_empty() && self.migrations.is_empty()
    }

    /// Turns away whoever still comes; those who came before are served.
    pub fn turn_away(&mut self) {
        self.closed = true;
    }

    /// Has the state written down. To be called when the engine is quiet after [`Engine::stop`] and
    /// [`Engine::turn_away`].
    pub fn close(&mut self, now: Nanos) {
        if let Some(log) = &mut self.log {
            log.close();
        }
        self.advance(now);
    }

    /// Whether the state is written down; false for ever if that failed.
    pub fn is_closed(&self) -> bool {
        self.closed && self.log.as_ref().is_none_or(Log::is_closed)
    }

    /// Whether the cache can keep its promises.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// What keeps dirty blocks from being written back, while something does.
    pub fn write_back_failure(&self) -> Option<WriteBackFailure> {
        self.cleaner.failure()
    }

    /// What has happened.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// The same by region of the origin.
    pub fn regions(&self) -> &Regions {
        &self.regions
    }

    /// The blocks on the flash.
    pub fn resident(&self) -> &RoaringBitmap {
        &self.resident
    }

    /// The blocks on the flash that the origin does not have.
    pub fn dirty(&self) -> &RoaringBitmap {
        &self.dirty
    }

    /// The policy.
    pub fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// How the cache behaves.
    pub fn config(&self) -> &CacheConfig {
        &self.config
    }

    /// How much of the cache may be dirty, percent.
    pub fn set_dirty_target(&mut self, percent: u8) {
        self.config.dirty_target = percent;
        self.cleaner.target_percent = percent;
    }

    /// Divides the cache from now on, however long that takes: for whoever has no users waiting.
    pub fn set_shares(&mut self, now: Nanos, shares: &Shares) {
        self.begin_shares(shares);
        while !self.continue_shares(now) {}
    }

    /// Divides the cache as soon as [`Engine::continue_shares`] has been called often enough.
    pub fn begin_shares(&mut self, shares: &Shares) {
        self.policy.begin_shares(shares);
    }

    /// Goes on with that for a little; whether the cache is so divided. [`Engine::usage`] says then what
    /// has still to leave.
    pub fn continue_shares(&mut self, now: Nanos) -> bool {
        let is_done = self.policy.continue_shares(STEPS_AT_ONCE);
        if is_done {
            self.look_for_work = true;
            self.advance(now);
        }
        is_done
    }

    /// How the cache is divided.
    pub fn usage(&self) -> Usage {
        self.policy.usage()
    }

    /// What migrations may have under way at a time, sectors.
    pub fn migration_threshold(&self) -> u64 {
        self.migrations.threshold_sectors
    }

    /// Sets it; one block always may.
    pub fn set_migration_threshold(&mut self, sectors: u64) {
        self.migrations.threshold_sectors = sectors;
    }

    /// Whether the engine is going down.
    pub fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// Whatever can go on, goes on.
    fn advance(&mut self, now: Nanos) {
        self.steps_left = STEPS_AT_ONCE;
        self.stopped_short = false;
        loop {
            if std::mem::take(&mut self.look_for_work) {
                self.begin_migrations(now);
            }
            self.begin_log_io();
            self.settle_waiters(now);
            if !self.look_for_work {
                return;
            }
        }
    }

    /// Takes a step, if this call may take one more.
    fn may_step(&mut self) -> bool {
        match self.steps_left.checked_sub(1) {
            Some(left) => {
                self.steps_left = left;
                true
            }
            None => {
                self.stopped_short = true;
                false
            }
        }
    }

    fn pieces(&self, offset: u64, len: u32) -> impl Iterator<Item = Piece> + use<> {
        action::pieces(offset, len, self.config.layout.block_bytes)
    }

    fn slot_offset(&self, slot: Slot) -> u64 {
        self.config.layout.slot_offset(slot)
    }

    fn mark_dirty(&mut self, block: Block, slot: Slot) {
        if self.dirty.insert(block) {
            self.policy.set_dirty(slot, true);
            self.look_for_work = true;
        }
    }

    fn mark_clean(&mut self, block: Block, slot: Slot) {
        if self.dirty.remove(block) {
            self.policy.set_dirty(slot, false);
            self.cleaner.cleaned(block);
        }
    }
}
