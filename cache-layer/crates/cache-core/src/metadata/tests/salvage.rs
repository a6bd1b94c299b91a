//! What salvage proves of damaged caches is true, and what it does not prove it names.

use std::ops::Range;

use super::super::recovery;
use super::super::slots::{Content, Entry};
use super::super::superblock::{SuperblockCopy, read_copies};
use super::computer::survivor;
use super::memory::{Event, Memory, Place};
use super::model::Dice;
use super::*;

const SECTOR_BYTES: usize = 512;
const ORIGIN_BLOCKS: u32 = 3000;

/// Three pages of a table; journals of one page, so that checkpoints are frequent.
fn layout() -> Layout {
    Layout::for_slots(1100, 16 << 10)
}

fn session(sync: bool, boot: u8) -> Session {
    let mut session = own(layout(), sync, boot);
    session.identity.origin_bytes = u64::from(ORIGIN_BLOCKS) * layout().block_bytes;
    session
}

/// The metadata alone, of which some sectors may not be readable.
#[derive(Clone)]
struct Flash {
    bytes: Vec<u8>,
    unreadable: Vec<Range<usize>>,
}

impl FlashStore for Flash {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(layout().metadata_bytes + layout().cache_bytes)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let range = offset as usize..offset as usize + buffer.len();
        let touched = |bad: &Range<usize>| bad.start < range.end && range.start < bad.end;
        if self.unreadable.iter().any(touched) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        buffer.copy_from_slice(&self.bytes[range]);
        Ok(())
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        panic!("it only reads")
    }

    fn sync_flash(&self) -> io::Result<()> {
        panic!("it only reads")
    }
}

/// A change that makes sense; blocks are few enough that slots take those of others.
fn change(entries: &mut [Entry], dice: &mut Dice) -> (Slot, Change) {
    let slot = dice.below(entries.len() as u64) as usize;
    let change = match (entries[slot].content, dice.below(8)) {
        (Content::Free, dirty) => {
            let mut block = dice.below(u64::from(ORIGIN_BLOCKS)) as Block;
            let held = |block| {
                let mut used = entries.iter().filter(|it| it.content != Content::Free);
                used.any(|entry| entry.block == block)
            };
            while held(block) {
                block = (block + 1) % ORIGIN_BLOCKS;
            }
            let (heat, missing) = (3, dice.below(8) as u16);
            let dirty = dirty < 4;
            Change::Map {
                block,
                heat,
                missing,
                dirty,
            }
        }
        (_, 0..2) => Change::Unmap,
        (_, 2..5) => Change::Dirty,
        (_, 5..6) => Change::Clean,
        _ => Change::Present(dice.below(8) as u16),
    };
    entries[slot] = entries[slot].after(change).unwrap();
    (slot as Slot, change)
}

/// A cache that has gone through some sessions, and everything that it wrote.
fn lived(dice: &mut Dice, sync: bool) -> (Memory, usize) {
    let bytes = layout().metadata_bytes + layout().cache_bytes;
    let memory = Memory::new(vec![0; bytes as usize], Vec::new());
    let mut metadata = Metadata::format_on(memory.clone(), session(sync, 1)).unwrap();
    let mut entries = vec![Entry::default(); layout().slots() as usize];
    let formatted = memory.log_len();
    for life in 0..1 + dice.below(3) {
        if life > 0 {
            if dice.once_in(2) {
                metadata.close(|_| 9).unwrap();
            }
            let same = session(sync, 1);
            let store = memory.clone();
            metadata = Metadata::open_on(store.clone(), same).unwrap().0;
            let recovered = recovery::recover(&store, &same, Clean::Forgotten).unwrap();
            entries = recovered.entries;
        }
        for _ in 0..dice.below(500) {
            let (slot, change) = change(&mut entries, dice);
            metadata.change(slot, change).unwrap();
            if dice.once_in(20) {
                metadata.commit().unwrap();
            }
        }
    }
    if dice.once_in(4) {
        metadata.close(|_| 9).unwrap();
    }
    (memory, formatted)
}

/// The flash when the process was killed, or when the computer stopped.
fn ended(memory: &Memory, formatted: usize, by_power: bool, dice: &mut Dice) -> Flash {
    let log = memory.log();
    let end = match dice.once_in(3) {
        true => log.len(),
        false => formatted + dice.below((log.len() - formatted + 1) as u64) as usize,
    };
    let mut bytes = vec![0; layout().metadata_bytes as usize];
    if by_power {
        bytes = survivor(bytes, &log[..end], Place::Flash, dice);
    } else {
        for event in &log[..end] {
            if let Event::Write(Place::Flash, offset, data) = event {
                bytes[*offset..offset + data.len()].copy_from_slice(data);
            }
        }
    }
    let unreadable = Vec::new();
    Flash { bytes, unreadable }
}

/// Nothing is left that shows of a generation but the end of its journal.
fn lose_generation(flash: &mut Flash, place: u64) {
    let tables = layout().journal_offset(0) as usize - layout().table_offset(0) as usize;
    for (start, len) in [
        (layout().superblock_offset(place), SECTOR_BYTES),
        (layout().table_offset(place), tables / 2),
        (layout().journal_offset(place), SECTOR_BYTES),
    ] {
        flash.bytes[start as usize..start as usize + len].fill(0);
    }
}

fn damage(flash: &mut Flash, dice: &mut Dice) {
    let all = flash.bytes.len();
    if dice.once_in(8) {
        return lose_generation(flash, dice.below(2));
    }
    for _ in 0..1 + dice.below(3) {
        let sectors = match dice.below(4) {
            0 => 1,
            1 => 8,
            2 => 1 + dice.below(20) as usize,
            _ => 0,
        };
        if sectors == 0 {
            flash.bytes[dice.below(all as u64) as usize] ^= 1 + dice.below(255) as u8;
            continue;
        }
        // The superblocks go now and then, both of them, too.
        let start = match dice.below(4) {
            0 => dice.below(2) as usize * 4096,
            _ => dice.below((all / SECTOR_BYTES) as u64) as usize * SECTOR_BYTES,
        };
        let end = all.min(start + sectors * SECTOR_BYTES);
        match dice.below(4) {
            0 => flash.bytes[start..end].fill(0),
            // What belongs elsewhere. Not a superblock: one that says that the cache is empty was
            // in both places once.
            1 if start >= 8192 => {
                let from = match dice.below(4) {
                    0 => start - 4096,
                    1 => start + 4096,
                    2 => start - SECTOR_BYTES,
                    _ => dice.below((all / SECTOR_BYTES) as u64) as usize * SECTOR_BYTES,
                };
                let from = from.min(all - (end - start));
                flash.bytes.copy_within(from..from + end - start, start);
            }
            1 | 2 => {
                for byte in &mut flash.bytes[start..end] {
                    *byte = dice.below(256) as u8;
                }
            }
            _ => flash.unreadable.push(start..end),
        }
    }
}

/// How many of the dirty slots were proven, of how many.
fn check(damaged: &Flash, session: &Session, truth: &[Entry], seed: u64) -> (usize, usize) {
    let salvaged = match salvage(damaged, session) {
        Ok(salvaged) => salvaged,
        Err(error) => panic!("seed {seed}: {error}"),
    };
    let is_dirty = |entry: &&Entry| entry.content == Content::Dirty;
    let mut named = vec![false; truth.len()];
    for mapping in &salvaged.dirty {
        let real = truth[mapping.slot as usize];
        assert!(
            is_dirty(&&real) && (real.block, real.missing) == (mapping.block, mapping.missing),
            "seed {seed}: {mapping:?} is not proven, it is {real:?}"
        );
        named[mapping.slot as usize] = true;
    }
    for &slot in &salvaged.unknown {
        assert!(!std::mem::replace(&mut named[slot as usize], true));
    }
    let unnamed = truth
        .iter()
        .zip(&named)
        .filter(|(real, named)| is_dirty(real) && !**named);
    assert_eq!(unnamed.count(), 0, "seed {seed}: lost and not named");
    (salvaged.dirty.len(), truth.iter().filter(is_dirty).count())
}

/// So many caches, each damaged in several ways; how much was proven, of how much.
fn campaign(by_power: bool, caches: u64) -> (usize, usize) {
    let (mut proven, mut dirty) = (0, 0);
    for seed in 0..caches {
        let mut dice = Dice::new(seed * 2 + u64::from(by_power));
        let (memory, formatted) = lived(&mut dice, true);
        for _ in 0..10 {
            let flash = ended(&memory, formatted, by_power, &mut dice);
            let now = session(true, 1 + u8::from(by_power));
            let truth = recovery::recover(&flash, &now, Clean::Forgotten).unwrap();
            let whole = check(&flash, &now, &truth.entries, seed);
            let mut damaged = flash.clone();
            damage(&mut damaged, &mut dice);
            let some = check(&damaged, &now, &truth.entries, seed);
            assert!(some.0 <= whole.1);
            proven += some.0;
            dirty += some.1;
        }
    }
    (proven, dirty)
}

#[test]
fn of_caches_of_killed_processes_nothing_untrue_is_proven_and_nothing_lost_unnamed() {
    let (proven, dirty) = campaign(false, 200);
    assert!(proven * 4 > dirty, "{proven} of {dirty}");
}

#[test]
fn of_caches_of_computers_that_stopped_as_well() {
    let (proven, dirty) = campaign(true, 200);
    assert!(proven * 4 > dirty, "{proven} of {dirty}");
}

/// The flash of a killed process, and the slots.
fn killed(seed: u64) -> (Flash, Vec<Entry>) {
    let (memory, _) = lived(&mut Dice::new(seed), true);
    let flash = of_bytes(memory.flash());
    let recovered = recovery::recover(&flash, &session(true, 1), Clean::Forgotten).unwrap();
    (flash, recovered.entries)
}

/// One with both superblocks, of which all is proven.
fn well_known() -> (Flash, Vec<Entry>) {
    let is_it = |(flash, _): &(Flash, Vec<Entry>)| {
        let copies = read_copies(flash).unwrap();
        let salvaged = salvage(flash, &session(true, 1)).unwrap();
        let both = copies
            .iter()
            .all(|copy| matches!(copy, SuperblockCopy::Whole(_)));
        both && salvaged.unknown.is_empty() && !salvaged.dirty.is_empty()
    };
    (0..).map(killed).find(is_it).unwrap()
}

fn of_bytes(mut bytes: Vec<u8>) -> Flash {
    bytes.truncate(layout().metadata_bytes as usize);
    let unreadable = Vec::new();
    Flash { bytes, unreadable }
}

fn lose_superblock(flash: &Flash, place: usize) -> Flash {
    let mut flash = flash.clone();
    flash.bytes[place * 4096..place * 4096 + SECTOR_BYTES].fill(0xaa);
    flash
}

#[test]
fn a_page_of_the_table_follows_from_the_table_and_journal_before_it() {
    let all_proven = (0..60).filter(|&seed| {
        let (mut flash, truth) = killed(seed);
        let now = session(true, 1);
        let recovered = recovery::recover(&flash, &now, Clean::Forgotten).unwrap();
        let page = layout().table_offset(recovered.generation) as usize;
        flash.bytes[page..page + 4096].fill(0xaa);
        check(&flash, &now, &truth, seed);
        salvage(&flash, &now).unwrap().unknown.is_empty()
    });
    assert!(all_proven.count() > 0);
}

#[test]
fn of_a_volatile_cache_whose_computer_stopped_nothing_is_proven() {
    let mut stopped = 0;
    for seed in 0..20 {
        let (memory, _) = lived(&mut Dice::new(seed), false);
        let (flash, now) = (of_bytes(memory.flash()), session(false, 2));
        match recovery::recover(&flash, &now, Clean::Forgotten) {
            Ok(closed) => drop(check(&flash, &now, &closed.entries, seed)),
            Err(error) => {
                assert!(matches!(error, MetadataError::Volatile), "{error}");
                let salvaged = salvage(&flash, &now).unwrap();
                assert!(salvaged.dirty.is_empty() && !salvaged.unknown.is_empty());
                stopped += 1;
            }
        }
    }
    assert!(stopped > 5, "{stopped}");
}

#[test]
fn whether_the_last_block_was_cut_short_must_be_known() {
    let (flash, truth) = well_known();
    let mut grown = session(true, 1);
    grown.identity.origin_bytes += 5000;
    let salvaged = salvage(&flash, &grown).unwrap();
    assert_eq!(
        salvaged.origin_bytes,
        session(true, 1).identity.origin_bytes
    );
    assert!(salvaged.unknown.is_empty());
    check(&flash, &grown, &truth, 3);
    for place in [0, 1] {
        let salvaged = salvage(&lose_superblock(&flash, place), &grown).unwrap();
        assert!(salvaged.dirty.is_empty() && salvaged.unknown.len() == truth.len());
    }
}

#[test]
fn whose_it_is_is_known_as_long_as_a_superblock_is_left() {
    let (flash, _) = well_known();
    let mut others = session(true, 1);
    others.identity.origin_id = [8; 16];
    let first = lose_superblock(&flash, 0);
    for flash in [&flash, &first, &lose_superblock(&flash, 1)] {
        let refused = salvage(flash, &others);
        assert!(matches!(refused, Err(MetadataError::OtherOrigin)));
        assert!(salvage(flash, &session(true, 1)).unwrap().is_identified);
    }
    let salvaged = salvage(&lose_superblock(&first, 1), &session(true, 1)).unwrap();
    assert!(!salvaged.is_identified);
}

#[test]
fn a_block_in_two_slots_or_beyond_the_end_is_proven_in_none() {
    let bytes = layout().metadata_bytes + layout().cache_bytes;
    let store = Memory::new(vec![0; bytes as usize], Vec::new());
    let metadata = Metadata::format_on(store.clone(), session(true, 1)).unwrap();
    for (slot, block) in [(3, 7), (4, 7), (5, ORIGIN_BLOCKS), (6, 9)] {
        metadata.map(slot, block).unwrap();
        metadata.dirty(slot).unwrap();
    }
    let salvaged = salvage(&of_bytes(store.flash()), &session(true, 1)).unwrap();
    let dirty: Vec<_> = salvaged
        .dirty
        .iter()
        .map(|it| (it.slot, it.block))
        .collect();
    assert_eq!((dirty, salvaged.unknown), (vec![(6, 9)], vec![3, 4, 5]));
    assert_eq!(salvaged.last_seen, [7]);
}

/// What was discarded is not proven again by what is left of it, whatever is lost then.
#[test]
fn a_cache_that_was_emptied_without_its_superblocks_stays_so() {
    for seed in 0..20 {
        let (flash, _) = killed(seed);
        let flash = lose_superblock(&lose_superblock(&flash, 0), 1);
        let mut bytes = flash.bytes;
        bytes.resize((layout().metadata_bytes + layout().cache_bytes) as usize, 0);
        let memory = Memory::new(bytes, Vec::new());
        make_empty(&memory).unwrap();
        assert_nothing_is_dirty(&memory, seed);
        let metadata = Metadata::format_on(memory.clone(), session(true, 1)).unwrap();
        assert_nothing_is_dirty(&memory, seed);
        metadata.map(1, 1).unwrap();
        metadata.dirty(1).unwrap();
        let (_, recovered) = Metadata::open_on(memory, session(true, 1)).unwrap();
        assert_eq!(recovered.mappings.len(), 1, "seed {seed}");
    }
}

fn assert_nothing_is_dirty(memory: &Memory, seed: u64) {
    let flash = of_bytes(memory.flash());
    for flash in [0, 1].map(|place| lose_superblock(&flash, place)) {
        let salvaged = salvage(&flash, &session(true, 1)).unwrap();
        assert!(
            salvaged.dirty.is_empty(),
            "seed {seed}: {:?}",
            salvaged.dirty
        );
    }
}

#[test]
fn a_superblock_in_the_others_place_says_nothing() {
    let (flash, truth) = well_known();
    for place in [0, 4096] {
        let mut flash = flash.clone();
        flash
            .bytes
            .copy_within(place..place + SECTOR_BYTES, 4096 - place);
        let salvaged = salvage(&flash, &session(true, 1)).unwrap();
        assert_eq!(salvaged.superblocks_lost, 1);
        check(&flash, &session(true, 1), &truth, 0);
    }
}
