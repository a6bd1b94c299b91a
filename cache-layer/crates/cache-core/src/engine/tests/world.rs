//! Two modelled devices whose writes are lost unless they are synced, a driver that completes what
//! the engine wants in any order, and users who know what they must find.
//!
//! The world is cut into sectors. Each write stamps its sectors with a version; a sector has one
//! write under way at a time. What a sector may hold is a range of versions: from the last one that
//! was promised to the last one that was begun, until a crash decides: what is there
//! then stays, however often it is read, and wherever it is read from.

use std::collections::HashMap;

use super::super::action::{Buffer, Device, Direction};
use super::super::*;
use super::bench::io_of;
use crate::dice::Dice;
use crate::layout::{Layout, PAGE_BYTES, SECTOR_BYTES};
use crate::metadata::{self, Identity, MetadataError, Recovered, Session};
use crate::policy::shares::{Right, Share, Shares};
use crate::policy::{self, Geometry, PolicyKind};
use disk::{Devices, Disk};
use hung::Hung;
use sector::{Left, Sector, promise, stamp, take_stock};

mod disk;
mod driver;
mod hung;
mod reconfigure;
mod sector;
mod users;

/// Four sub-blocks.
pub(super) const BLOCK_BYTES: u64 = 4 * PAGE_BYTES;
pub(super) const SLOTS: u64 = 5;
pub(super) const BLOCKS: u64 = 11;
/// It ends inside a sub-block of its last block, until it grows.
const ORIGIN_BYTES: u64 = GROWN_BYTES - 13 * SECTOR_BYTES;
const GROWN_BYTES: u64 = BLOCKS * BLOCK_BYTES;
pub(super) const VOLUME_SECTORS: u64 = BLOCK_BYTES / SECTOR_BYTES;

/// As small as can be: checkpoints and evictions are frequent.
pub(super) const LAYOUT: Layout = Layout {
    block_bytes: BLOCK_BYTES,
    metadata_bytes: 6 * 4096,
    cache_bytes: SLOTS * BLOCK_BYTES,
    volume_bytes: BLOCK_BYTES,
};

fn geometry(layout: &Layout) -> Geometry {
    Geometry {
        origin_blocks: BLOCKS as u32,
        slots: layout.slots(),
    }
}

/// How often what goes wrong: once in so many times, 0 for never.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    pub(super) flash_write: u64,
    pub(super) flash_read: u64,
    pub(super) flash_sync: u64,
    pub(super) origin_write: u64,
    pub(super) origin_read: u64,
    pub(super) origin_sync: u64,
    pub(super) detach: u64,
}

/// What it takes no care of, which the schedules must find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Careless {
    Never,
    OfSlotsAtRisk,
    OfFailedSyncs,
    OfTheWitness,
}

/// A user's request under way.
#[derive(Debug)]
enum Asked {
    Read {
        first: u64,
        data: Vec<u8>,
        least: Vec<u32>,
        /// Nothing was lost meanwhile of which the engine did not know.
        sure: bool,
    },
    Write {
        first: u64,
        version: Vec<u32>,
        data: Vec<u8>,
    },
    Flush {
        answered: Vec<u32>,
    },
    FlushVolume {
        answered: Vec<u32>,
    },
}

/// Something the driver has begun: syncs cover what was written before they began.
#[derive(Debug)]
struct Begun {
    action: Action,
    written: usize,
    /// It has been done, or has failed, and nobody has been told.
    outcome: Option<Result<(), Errno>>,
}

pub(super) struct World {
    pub(super) dice: Dice,
    pub(super) engine: Engine,
    pub(super) faults: Faults,
    layout: Layout,
    /// What a change that was cut short may have made of it.
    next_layout: Layout,
    mode: Mode,
    flash: Disk,
    origin: Disk,
    origin_bytes: u64,
    origin_id: u8,
    boot: u8,
    /// Of this session, and of whom a witness says that the devices have all that it wrote.
    id: u8,
    witnessed: Option<u8>,
    now: Nanos,
    sectors: Vec<Sector>,
    volume: Vec<Sector>,
    asked: HashMap<RequestId, Asked>,
    next_id: RequestId,
    begun: Vec<Begun>,
    buffers: HashMap<BufferId, Vec<u8>>,
    /// How often it was changed, and how often that was cut short.
    pub(super) changed: usize,
    pub(super) cut_short: usize,
    /// What jobs have come to.
    done: HashMap<JobId, JobResult>,
    hung: Hung,
    pub(super) careless: Careless,
    sync_failed: bool,
    /// Syncs that have failed, and the engine has not been told.
    untold: usize,
    /// Ends after which nobody could tell what the devices had lost, though the computer went on.
    pub(super) unwitnessed: usize,
    /// What the last crash left.
    pub(super) recovered: Vec<Mapping>,
    pub(super) log: Vec<String>,
}

fn config(layout: Layout, mode: Mode, dirty_target: u8, origin_bytes: u64) -> CacheConfig {
    CacheConfig {
        mode,
        layout,
        origin_bytes,
        dirty_target,
        pace: Pace::Threshold,
    }
}

impl World {
    pub(super) fn new(seed: u64, mode: Mode, faults: Faults) -> World {
        let mut dice = Dice::new(seed);
        let mut flash = Disk::new(LAYOUT.volume_offset() + LAYOUT.volume_bytes);
        let origin_bytes = ORIGIN_BYTES;
        let mut origin = Disk::new(origin_bytes);
        (flash.direct, origin.direct) = (seed % 2 == 1, seed % 3 == 1);
        let devices = Devices::new(&mut flash, &mut origin);
        // Where there is no volume, its place is free for a larger cache.
        let layout = Layout {
            volume_bytes: LAYOUT.volume_bytes * dice.below(2),
            ..LAYOUT
        };
        let log = metadata::format(&devices, &session(layout, 1, 1, origin_bytes)).unwrap();
        let engine = new_engine(&mut dice, config(layout, mode, 100, origin_bytes), log, &[]);
        World {
            dice,
            engine,
            faults,
            layout,
            next_layout: layout,
            mode,
            flash,
            origin,
            origin_bytes,
            origin_id: 1,
            boot: 1,
            id: 1,
            witnessed: Some(1),
            now: 0,
            sectors: vec![Sector::default(); (origin_bytes / SECTOR_BYTES) as usize],
            volume: vec![Sector::default(); VOLUME_SECTORS as usize],
            asked: HashMap::new(),
            next_id: 0,
            begun: Vec::new(),
            buffers: HashMap::new(),
            changed: 0,
            cut_short: 0,
            done: HashMap::new(),
            hung: Hung::default(),
            careless: Careless::Never,
            sync_failed: false,
            untold: 0,
            unwitnessed: 0,
            recovered: Vec::new(),
            log: Vec::new(),
        }
    }

    pub(super) fn has_volume(&self) -> bool {
        self.layout.volume_bytes > 0
    }

    /// Something happens.
    pub(super) fn step(&mut self) -> Result<(), String> {
        self.now += self.dice.below(20_000_000);
        match self.dice.below(20) {
            0..4 if self.asked.len() < 12 => self.ask_to_write(),
            4..7 if self.asked.len() < 12 => self.ask_to_read(),
            7 => self.ask(Request::Flush),
            8 => self.use_volume(),
            9 if self.dice.once_in(4) => self.warm_up(),
            10 => self.engine.on_timer(self.now),
            11 if self.dice.once_in(8) => self.share_again(),
            12 if self.asked.len() < 12 => self.ask_to_discard(),
            // As if somebody counted all the time; there is mostly nothing to count.
            15 if self.dice.once_in(5) => self.hang(),
            16 if self.dice.once_in(20) => self.check_hung()?,
            17 if self.dice.once_in(20) => self.answers(),
            14 => drop(self.engine.continue_shares(self.now)),
            13 if self.dice.once_in(8) => self.reconfigure()?,
            _ => self.complete_one()?,
        }
        self.begin_actions()
    }

    /// Nothing is under way; a division that was begun goes on, as who began it sees to
    /// (`tier::shares`): a discard may wait for it.
    fn pass_time(&mut self) {
        self.engine.on_timer(self.now);
        self.engine.continue_shares(self.now);
    }

    /// Everything that is under way comes to an end.
    pub(super) fn drain(&mut self) -> Result<(), String> {
        self.check_hung()?;
        self.answers();
        for _ in 0..100_000 {
            if self.begun.is_empty() && self.asked.is_empty() {
                return Ok(());
            }
            self.now += 100_000_000;
            match self.begun.is_empty() {
                true => self.pass_time(),
                false => self.complete_one()?,
            }
            self.begin_actions()?;
        }
        Err(format!(
            "these never end: {:?} {:?}",
            self.asked.keys(),
            self.begun
        ))
    }

    /// Power cut or kill, at this very moment; then everything is checked and goes on.
    ///
    /// A sync that has failed, or a drive that loses its cache as the process is killed, takes the
    /// witness with it: the computer is the same, and what is there is what a power cut leaves.
    pub(super) fn crash(&mut self, power: bool) -> Result<(), String> {
        let mut left = Left {
            answered: !std::mem::take(&mut self.sync_failed),
            stored: power,
        };
        let mut dice = Dice::new(self.dice.below(u64::MAX));
        if power {
            self.cut_power(&mut dice);
            left.answered = false;
        } else if dice.once_in(3) {
            let device = [Device::Flash, Device::Origin][dice.below(2) as usize];
            self.disk(device).lose(&mut dice);
            left.answered = false;
        }
        self.log.push(format!("crash, power {power}, {left:?}"));
        self.unwitnessed += usize::from(!left.answered && !power);
        if !left.answered && self.careless != Careless::OfTheWitness {
            self.witnessed = None;
        }
        self.take_up(left)
    }

    fn cut_power(&mut self, dice: &mut Dice) {
        self.flash.cut(dice);
        self.origin.cut(dice);
        self.boot += 1;
    }

    /// The session comes to an orderly end, whatever has failed before; what follows is another run
    /// of the computer if it has not, or if a sync has failed.
    pub(super) fn close(&mut self) -> Result<(), String> {
        self.end_engine()?;
        if !self.engine.is_closed() {
            return self.crash(true);
        }
        self.log.push("closed in order".into());
        let stored = std::mem::take(&mut self.sync_failed) || self.dice.once_in(2);
        if stored {
            // All of it is durable by now.
            let mut dice = Dice::new(self.dice.below(u64::MAX));
            self.cut_power(&mut dice);
        }
        let answered = true;
        self.take_up(Left { answered, stored })
    }

    fn end_engine(&mut self) -> Result<(), String> {
        self.engine.stop(self.now);
        self.begin_actions()?;
        self.drain()?;
        self.engine.turn_away();
        self.engine.close(self.now);
        self.begin_actions()?;
        self.drain()
    }

    /// The next session finds what it may, and goes on.
    fn take_up(&mut self, left: Left) -> Result<(), String> {
        self.answers();
        self.untold = 0;
        if self.witnessed.is_none() {
            self.flash.forget_pages();
            self.origin.forget_pages();
        }
        self.id += 1;
        self.begun.clear();
        self.asked.clear();
        self.buffers.clear();
        if self.dice.once_in(4) {
            self.origin_grows();
        }
        if self.dice.once_in(3) {
            self.mode = match self.mode {
                Mode::Writeback => Mode::Writethrough,
                Mode::Writethrough => Mode::Writeback,
            };
        }
        let (log, mappings) = self.open()?;
        self.witnessed = Some(self.id);
        self.check(&mappings, left)?;
        self.begin_engine(log, mappings);
        Ok(())
    }

    /// As a start does: a change that was cut short left the one size or the other, or an empty cache.
    fn open(&mut self) -> Result<(Log, Vec<Mapping>), String> {
        let own = self.session(self.layout);
        let session = |layout| with_layout(own, layout);
        let devices = Devices::new(&mut self.flash, &mut self.origin);
        let is_empty = metadata::is_empty(&devices).map_err(|error| error.to_string())?;
        let mut layout = self.layout;
        let mut opened = metadata::open(&devices, &session(layout));
        if matches!(opened, Err(MetadataError::OtherSize { .. })) {
            layout = self.next_layout;
            opened = metadata::open(&devices, &session(layout));
        }
        let recovered = match opened {
            Ok((log, Recovered { mappings, .. })) => (log, mappings),
            Err(error) if is_empty || matches!(error, MetadataError::OtherOrigin) => {
                layout = self.next_layout;
                let log =
                    metadata::format(&devices, &session(layout)).map_err(|e| e.to_string())?;
                (log, Vec::new())
            }
            Err(error) => return Err(error.to_string()),
        };
        (self.layout, self.next_layout) = (layout, layout);
        Ok(recovered)
    }

    fn begin_engine(&mut self, log: Log, mappings: Vec<Mapping>) {
        let config = config(self.layout, self.mode, 100, self.origin_bytes);
        self.engine = new_engine(&mut self.dice, config, log, &mappings);
        self.recovered = mappings;
        let engine = &mut self.engine;
        match self.careless {
            Careless::OfSlotsAtRisk => engine.log.as_mut().expect("it has one").set_careless(),
            Careless::OfFailedSyncs => {
                engine.unsynced_flash.careless = true;
                engine.unsynced_origin.careless = true;
            }
            Careless::OfTheWitness | Careless::Never => {}
        }
    }

    /// As it is begun now.
    fn session(&self, layout: Layout) -> Session {
        Session {
            id: [self.id; 16],
            witnessed: self.witnessed.map(|id| [id; 16]),
            ..session(layout, self.origin_id, self.boot, self.origin_bytes)
        }
    }

    fn origin_grows(&mut self) {
        self.origin_bytes = GROWN_BYTES;
        for bytes in [&mut self.origin.seen, &mut self.origin.medium] {
            bytes.resize(GROWN_BYTES as usize, 0);
        }
        let sectors = GROWN_BYTES / SECTOR_BYTES;
        self.sectors.resize(sectors as usize, Sector::default());
    }

    /// Everything holds what it may; from now on, just that.
    fn check(&mut self, mappings: &[Mapping], left: Left) -> Result<(), String> {
        let mut whole = self.origin.seen.clone();
        for mapping in mappings {
            let from = self.layout.slot_offset(mapping.slot) as usize;
            let to = mapping.block as usize * BLOCK_BYTES as usize;
            let sub_blocks = self.layout.sub_blocks();
            for (start, end) in sub_blocks.runs(sub_blocks.all() & !mapping.missing) {
                let end = end.min(self.origin_bytes - to as u64);
                if start >= end {
                    continue;
                }
                let (start, end) = (start as usize, end as usize);
                let stored = &self.flash.seen[from + start..from + end];
                if !mapping.dirty && whole[to + start..to + end] != *stored {
                    // It would read as something else once it has left the cache.
                    let block = mapping.block;
                    return Err(format!(
                        "block {block} is clean and not what the origin has"
                    ));
                }
                whole[to + start..to + end].copy_from_slice(stored);
            }
        }
        take_stock(&mut self.sectors, &whole, left)?;
        if !self.has_volume() {
            return Ok(());
        }
        let volume = &self.flash.seen[self.layout.volume_offset() as usize..];
        take_stock(&mut self.volume, volume, left).map_err(|error| format!("volume: {error}"))
    }
}

/// An engine with an empty cache on devices that are kept by nobody.
pub(super) fn fresh_engine(mode: Mode, kind: PolicyKind) -> Engine {
    let mut flash = Disk::new(LAYOUT.volume_offset() + LAYOUT.volume_bytes);
    let mut origin = Disk::new(GROWN_BYTES);
    let devices = Devices::new(&mut flash, &mut origin);
    let log = metadata::format(&devices, &session(LAYOUT, 1, 1, GROWN_BYTES)).unwrap();
    let policy = policy::make(kind, geometry(&LAYOUT));
    let config = config(LAYOUT, mode, 100, GROWN_BYTES);
    Engine::new(config, policy, Some(log), &[])
}

fn with_layout(session: Session, layout: Layout) -> Session {
    let identity = Identity {
        layout,
        ..session.identity
    };
    Session {
        identity,
        ..session
    }
}

fn session(layout: Layout, origin_id: u8, boot: u8, origin_bytes: u64) -> Session {
    Session {
        identity: Identity {
            layout,
            origin_id: [origin_id; 16],
            origin_bytes,
        },
        sync: true,
        boot_id: [boot; 16],
        id: [1; 16],
        witnessed: None,
    }
}

fn new_engine(dice: &mut Dice, config: CacheConfig, log: Log, mappings: &[Mapping]) -> Engine {
    let kinds = [
        PolicyKind::Hotset,
        PolicyKind::Hotset,
        PolicyKind::Hotset,
        PolicyKind::Lru,
        PolicyKind::Sieve,
        PolicyKind::S3Fifo,
        PolicyKind::Arc,
        PolicyKind::Smq,
    ];
    let kind = kinds[dice.below(kinds.len() as u64) as usize];
    let policy = policy::make(kind, geometry(&config.layout));
    let config = CacheConfig {
        dirty_target: [0, 50, 100][dice.below(3) as usize],
        ..config
    };
    let mut engine = Engine::new(config, policy, Some(log), mappings);
    if dice.once_in(2) {
        // One at a time, so that the policy's wishes have to wait.
        engine.set_migration_threshold(0);
    }
    engine
}
