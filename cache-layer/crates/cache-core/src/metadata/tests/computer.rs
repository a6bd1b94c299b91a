//! The computer stops: of what was not synced, any sector may be lost, whatever its age.
//!
//! A small write-back cache runs over metadata and both files. After a crash every block must
//! read as it was at the last flush, or newer; sectors say which block and version they hold.

use super::memory::{Event, Memory, Place, new_cache};
use super::model::Dice;
use super::*;

const SECTOR_BYTES: usize = 512;
const BLOCK_BYTES: usize = TINY.block_bytes as usize;

/// A minimal cache that keeps the caller's side of the contract.
struct Cache {
    store: Memory,
    metadata: Metadata<Memory>,
    slots: Vec<Option<(Block, bool)>>,
    dirty_since_commit: Vec<bool>,
    versions: Vec<u32>,
    /// Versions at each flush, and how long the log was when it returned.
    flushes: Vec<(usize, Vec<u32>)>,
    /// Keep the rule about slots that are used again.
    barrier: bool,
}

impl Cache {
    fn new(barrier: bool) -> Cache {
        let versions = vec![0; BLOCKS as usize];
        let origin = (0..BLOCKS).flat_map(|block| image(block, 0)).collect();
        let store = Memory::new(vec![0; FLASH_BYTES], origin);
        let metadata = Metadata::format_on(store.clone(), own(TINY, true, 1)).unwrap();
        Cache {
            flushes: vec![(store.log_len(), versions.clone())],
            store,
            metadata,
            slots: vec![None; TINY.slots() as usize],
            dirty_since_commit: vec![false; TINY.slots() as usize],
            versions,
            barrier,
        }
    }

    fn step(&mut self, dice: &mut Dice) {
        let block = dice.below(u64::from(BLOCKS)) as Block;
        let resident = (0..).zip(&self.slots).find_map(|(slot, &held)| {
            let (held, dirty) = held?;
            (held == block).then_some((slot, dirty))
        });
        match (dice.below(10), resident) {
            (0..4, _) => self.write(block, resident),
            (4..6, Some((slot, true))) => self.write_back(slot, block),
            (6..8, Some((slot, dirty))) => self.demote(slot, block, dirty),
            (4..9, None) => self.promote(block),
            (9, _) => self.flush(),
            _ => {}
        }
    }

    fn write(&mut self, block: Block, resident: Option<(Slot, bool)>) {
        self.versions[block as usize] += 1;
        let data = image(block, self.versions[block as usize]);
        let Some((slot, _)) = resident else {
            return self.put(Place::Origin, origin_offset(block), &data);
        };
        self.metadata.dirty(slot).unwrap();
        self.slots[slot as usize] = Some((block, true));
        self.dirty_since_commit[slot as usize] = true;
        self.put(Place::Flash, TINY.slot_offset(slot) as usize, &data);
    }

    fn promote(&mut self, block: Block) {
        let Some(slot) = self.slots.iter().position(Option::is_none) else {
            return;
        };
        let data = self
            .store
            .read(Place::Origin, origin_offset(block), BLOCK_BYTES);
        self.put(Place::Flash, TINY.slot_offset(slot as Slot) as usize, &data);
        self.metadata.map(slot as Slot, block).unwrap();
        self.slots[slot] = Some((block, false));
    }

    fn write_back(&mut self, slot: Slot, block: Block) {
        let offset = TINY.slot_offset(slot) as usize;
        let data = self.store.read(Place::Flash, offset, BLOCK_BYTES);
        self.put(Place::Origin, origin_offset(block), &data);
        self.metadata.clean(slot).unwrap();
        self.slots[slot as usize] = Some((block, false));
    }

    fn demote(&mut self, slot: Slot, block: Block, dirty: bool) {
        if dirty {
            self.write_back(slot, block);
        }
        self.metadata.unmap(slot).unwrap();
        self.slots[slot as usize] = None;
        if self.barrier && self.dirty_since_commit[slot as usize] {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.metadata.commit().unwrap();
        self.flushes
            .push((self.store.log_len(), self.versions.clone()));
        for (flag, held) in self.dirty_since_commit.iter_mut().zip(&self.slots) {
            *flag = held.is_some_and(|(_, dirty)| dirty);
        }
    }

    fn put(&self, place: Place, offset: usize, data: &[u8]) {
        self.store.write(place, data, offset).unwrap();
    }
}

fn origin_offset(block: Block) -> usize {
    block as usize * BLOCK_BYTES
}

/// A block's bytes: every sector says whose and how new it is.
fn image(block: Block, version: u32) -> Vec<u8> {
    let words = [block.to_le_bytes(), version.to_le_bytes()].concat();
    words.repeat(BLOCK_BYTES / words.len())
}

/// A file after the crash at this place of the log: up to its last sync all of it, and of what
/// followed each sector up to a time of its own.
pub(super) fn survivor(
    mut bytes: Vec<u8>,
    log: &[Event],
    place: Place,
    dice: &mut Dice,
) -> Vec<u8> {
    let is_sync = |event: &Event| matches!(event, Event::Sync(synced) if *synced == place);
    let synced = log.iter().rposition(is_sync).unwrap_or(0);
    let unsynced = (log.len() - synced) as u64;
    let last_until: Vec<usize> = (0..bytes.len() / SECTOR_BYTES)
        .map(|_| match dice.below(3) {
            0 => synced,
            1 => log.len(),
            _ => synced + dice.below(unsynced + 1) as usize,
        })
        .collect();
    for (at, event) in log.iter().enumerate() {
        let Event::Write(written, offset, data) = event else {
            continue;
        };
        if *written != place {
            continue;
        }
        for (byte, &value) in (*offset..).zip(data) {
            if at < synced || at < last_until[byte / SECTOR_BYTES] {
                bytes[byte] = value;
            }
        }
    }
    bytes
}

/// Every other crash happens right after a superblock is written: few places of the log, but the
/// ones where the order of syncs is everything.
fn near_a_superblock(log: &[Event], end: usize, dice: &mut Dice) -> usize {
    let is_superblock =
        |event: &Event| matches!(event, Event::Write(Place::Flash, offset, _) if *offset < 8192);
    match log[end..].iter().position(is_superblock) {
        Some(distance) if dice.below(2) == 0 => end + distance + 1,
        _ => end,
    }
}

/// Crashes a run at a random place and says what was lost, if anything.
fn crash(seed: u64, barrier: bool) -> Result<(), String> {
    let mut dice = Dice::new(seed);
    let mut cache = Cache::new(barrier);
    let start_origin = cache.store.read(Place::Origin, 0, origin_offset(BLOCKS));
    for _ in 0..250 {
        cache.step(&mut dice);
    }
    let begin = cache.flushes[0].0;
    let log = cache.store.log();
    let end = begin + dice.below((log.len() - begin) as u64) as usize;
    let end = near_a_superblock(&log, end, &mut dice);
    let log = &log[..end];
    let flash = survivor(vec![0; FLASH_BYTES], log, Place::Flash, &mut dice);
    let origin = survivor(start_origin, log, Place::Origin, &mut dice);
    let flushed = cache.flushes.iter().rfind(|(len, _)| *len <= end).unwrap();
    let memory = Memory::new(flash, origin);
    let (_, recovered) = Metadata::open_on(memory.clone(), own(TINY, true, 2))
        .map_err(|error| format!("seed {seed}: {error}"))?;
    for block in 0..BLOCKS {
        let data = match recovered
            .mappings
            .iter()
            .find(|mapping| mapping.block == block)
        {
            Some(mapping) if !mapping.dirty => return Err(format!("block {block} is clean")),
            Some(mapping) => {
                let offset = TINY.slot_offset(mapping.slot) as usize;
                memory.read(Place::Flash, offset, BLOCK_BYTES)
            }
            None => memory.read(Place::Origin, origin_offset(block), BLOCK_BYTES),
        };
        let least = flushed.1[block as usize];
        for word in data.chunks_exact(8) {
            let [of, version] = [0, 4]
                .map(|at| u32::from_le_bytes(word[at..at + 4].try_into().expect("four bytes")));
            if of != block || version < least {
                return Err(format!(
                    "seed {seed}: block {block} of version {least} reads as block {of}, version {version}"
                ));
            }
        }
    }
    Ok(())
}

#[test]
fn what_was_committed_survives() {
    for seed in 0..300 {
        crash(seed * 10_000, true).unwrap();
    }
}

#[test]
fn a_slot_used_again_without_a_commit_is_caught_by_this_test() {
    let caught = (0..300).filter(|seed| crash(seed * 10_000, false).is_err());
    assert!(caught.count() > 0);
}

#[test]
fn a_volatile_cache_is_refused_after_the_computer_stopped() {
    let (memory, metadata) = new_cache(false);
    let open = |boot| {
        let copy = Memory::new(memory.flash(), Vec::new());
        Metadata::open_on(copy, own(TINY, true, boot))
    };
    open(1).unwrap();
    let error = open(2).unwrap_err().to_string();
    assert!(error.contains("--volatile"), "{error}");
    metadata.close(|_| 0).unwrap();
    open(2).unwrap();
}

/// Otherwise the next session, after a loss of power, would believe what was never on the medium.
#[test]
fn closing_is_durable_whatever_flushes_are() {
    let (memory, metadata) = new_cache(false);
    metadata.map(0, 4).unwrap();
    metadata.dirty(0).unwrap();
    let before = memory.log_len();
    metadata.close(|_| 0).unwrap();
    let shapes: Vec<_> = memory.log()[before..]
        .iter()
        .map(|event| match event {
            Event::Write(_, offset, _) if *offset < 2 * 4096 => "superblock",
            Event::Write(..) => "table",
            Event::Sync(Place::Flash) => "flash",
            Event::Sync(Place::Origin) => "origin",
        })
        .collect();
    assert_eq!(shapes, ["table", "origin", "flash", "superblock", "flash"]);
}

#[test]
fn after_a_failed_sync_no_commit_succeeds() {
    let (memory, metadata) = new_cache(true);
    metadata.map(0, 1).unwrap();
    memory.set_sync_fails(true);
    assert!(metadata.commit().is_err());
    memory.set_sync_fails(false);
    assert!(metadata.commit().is_err());
    assert!(metadata.map(1, 2).is_err());
}
