//! Damaged caches: what was answered is on the origin after a salvage, or its place is named.

use std::os::unix::fs::FileExt;
use std::time::Duration;

use cache_core::metadata::{MetadataError, Salvage};
use cache_core::policy::Mapping;

use super::kill::{kill_after, new_tier, spawn};
use super::load::{CELL_BYTES, CELLS, Ledger, version_of};
use super::*;
use crate::flash_file::FlashFile;
use crate::tier::origin::NamedOrigin;
use crate::tier::salvage::*;
use crate::tools::copy::Run;

/// Caches that are damaged.
const ROUNDS: u64 = 80;

const SECTOR_BYTES: usize = 512;

fn report(dir: &Path) -> SalvageOptions {
    SalvageOptions {
        origin: dir.join("origin"),
        named_origin: None,
        flash: dir.join("flash"),
        flash_parts: Vec::new(),
        layout: LAYOUT,
        durability: Durability::Volatile,
        witness: Some(dir.join("witness")),
        write: false,
        unidentified: true,
    }
}

fn salvaged(options: &SalvageOptions) -> Salvaged {
    salvage_cache(options, |_, _| ()).unwrap()
}

fn refusal(options: &SalvageOptions) -> String {
    let error = salvage_cache(options, |_, _| ()).unwrap_err();
    assert!(error.is::<crate::Refusal>(), "{error:#}");
    format!("{error:#}")
}

/// Loses some sectors of the metadata, those of the superblocks as often as others.
fn damage(dir: &Path, dice: &mut Dice) {
    let flash = File::options().write(true).open(dir.join("flash")).unwrap();
    for _ in 0..dice.below(3) {
        let sectors = LAYOUT.metadata_bytes / SECTOR_BYTES as u64;
        let sector = [dice.below(sectors), 0, 8][dice.below(3) as usize];
        let lost = [[0; SECTOR_BYTES], [0xaa; SECTOR_BYTES]][dice.below(2) as usize];
        let offset = sector * SECTOR_BYTES as u64;
        flash.write_all_at(&lost, offset).unwrap();
    }
}

/// Cells of which the origin lacks what was answered, and nothing says that it may.
fn lost_unnamed(dir: &Path, salvaged: &Salvaged) -> Vec<u64> {
    let origin = std::fs::read(dir.join("origin")).unwrap();
    let ledger = Ledger::open(dir);
    let is_named = |cell: u64| {
        let within =
            |it: &Stretch| (it.offset..it.offset + it.bytes).contains(&(cell * CELL_BYTES));
        salvaged.may_be_lost.iter().any(within)
    };
    let is_lost = |cell: &u64| {
        let start = (cell * CELL_BYTES) as usize;
        let version = version_of(*cell, &origin[start..start + CELL_BYTES as usize]);
        let known = ledger.get(*cell, 1)..=ledger.get(*cell, 0);
        !version.is_ok_and(|version| known.contains(&version)) && !is_named(*cell)
    };
    (0..CELLS).filter(is_lost).collect()
}

#[test]
fn what_was_answered_is_on_the_origin_or_named() {
    let mut dice = Dice::new(11);
    let (mut lacking, mut written, mut incomplete) = (0, 0, 0);
    for seed in 0..ROUNDS {
        let dir = new_tier();
        let path = |name: &str| dir.path().join(name);
        let life = Duration::from_micros(5000 + dice.below(20_000));
        assert_eq!(kill_after(spawn(dir.path(), seed), dir.path(), life), None);
        damage(dir.path(), &mut dice);
        let files = ["flash", "origin"].map(|name| std::fs::read(path(name)).unwrap());
        // The control: without the write, the test must find that the origin lacks something.
        let salvage = salvaged(&report(dir.path()));
        lacking += lost_unnamed(dir.path(), &salvage).len();
        assert!(files == ["flash", "origin"].map(|name| std::fs::read(path(name)).unwrap()));
        let write = SalvageOptions {
            write: true,
            ..report(dir.path())
        };
        let mut last = None;
        let done = salvage_cache(&write, |done, all| last = Some((done, all))).unwrap();
        let bytes = done.written_bytes.unwrap();
        assert_eq!((bytes, last), (salvage.dirty.bytes, Some((bytes, bytes))));
        assert_eq!(
            lost_unnamed(dir.path(), &done),
            [0; 0],
            "seed {seed}: {done:?}"
        );
        written += bytes;
        incomplete += u32::from(!done.is_complete());
        // It can be done again, and the cache is as it was.
        let origin = std::fs::read(path("origin")).unwrap();
        assert_eq!(salvaged(&write).written_bytes, Some(bytes));
        assert!(origin == std::fs::read(path("origin")).unwrap());
        assert!(files[0] == std::fs::read(path("flash")).unwrap());
    }
    assert!(lacking > 0 && written > 0, "{lacking} {written}");
    assert!((1..ROUNDS as u32).contains(&incomplete), "{incomplete}");
}

/// A killed tier with its first block dirty.
fn killed_with_a_dirty_block() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let trial = Trial {
        dirty_target: 100,
        durability: Durability::Synced,
        ..Trial::of(PolicyKind::Lru, Mode::Writeback)
    };
    let place = Place::make(dir.path());
    let rig = Rig::start(&place, trial);
    rig.tier.warm([0].into_iter().collect(), None, |_| true);
    rig.write(0, &[7; 4096]);
    rig.flush();
    assert_eq!(rig.tier.status().dirty, 1);
    // As the kernel would leave it: the files of this one stay locked.
    for name in ["flash", "origin"] {
        let (from, to) = (
            dir.path().join(name),
            dir.path().join(format!("{name}.killed")),
        );
        std::fs::copy(&from, &to).unwrap();
        if let Some(id) = xattr::get(&from, "user.hotset.origin").unwrap() {
            xattr::set(&to, "user.hotset.origin", &id).unwrap();
        }
    }
    dir
}

fn killed(dir: &Path) -> SalvageOptions {
    SalvageOptions {
        origin: dir.join("origin.killed"),
        flash: dir.join("flash.killed"),
        durability: Durability::Synced,
        write: true,
        unidentified: false,
        ..report(dir)
    }
}

fn first_bytes(options: &SalvageOptions) -> [u8; 4096] {
    let mut bytes = [1; 4096];
    let origin = File::open(&options.origin).unwrap();
    origin.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

#[test]
fn a_cache_in_use_or_given_up_or_of_another_origin_is_refused() {
    let dir = killed_with_a_dirty_block();
    let error = refusal(&report(dir.path()));
    assert!(error.contains("in use by another process"), "{error}");
    let options = killed(dir.path());
    let flash = FlashFile::open(&options.flash, &[]).unwrap();
    let error = refusal(&options);
    assert!(
        error.contains("flash") && error.contains("in use"),
        "{error}"
    );
    drop(flash);
    assert!(
        salvaged(&SalvageOptions {
            write: false,
            ..killed(dir.path())
        })
        .is_usable
    );
    let given_up = dir.path().join("given-up");
    File::create(&given_up).unwrap();
    let error = refusal(&SalvageOptions {
        named_origin: Some(NamedOrigin {
            id: [3; 16],
            given_up,
        }),
        ..killed(dir.path())
    });
    assert!(error.contains("given up"), "{error}");
    xattr::set(&options.origin, "user.hotset.origin", &[9; 16]).unwrap();
    let error = salvage_cache(&options, |_, _| ()).unwrap_err();
    let is_other = error.downcast_ref::<MetadataError>();
    assert!(matches!(is_other, Some(MetadataError::OtherOrigin)));
    assert_eq!(first_bytes(&options), [0; 4096]);
}

#[test]
fn without_a_superblock_the_user_must_know_whose_it_is() {
    let dir = killed_with_a_dirty_block();
    let options = killed(dir.path());
    let flash = File::options().write(true).open(&options.flash).unwrap();
    // Beside the superblock of the only session is one that says that the cache was empty before.
    flash.write_all_at(&[0; SECTOR_BYTES], 4096).unwrap();
    let error = refusal(&options);
    assert!(error.contains("--unidentified"), "{error}");
    assert_eq!(first_bytes(&options), [0; 4096]);
    let known = SalvageOptions {
        unidentified: true,
        ..killed(dir.path())
    };
    let done = salvaged(&known);
    assert!(
        done.is_complete() && !done.is_usable && !done.is_identified,
        "{done:?}"
    );
    assert_eq!(first_bytes(&options), [7; 4096]);
}

#[test]
fn parts_of_a_flash_are_read_while_other_parts_serve() {
    let dir = killed_with_a_dirty_block();
    let part = |start, size| Part { start, size };
    let file = File::options()
        .write(true)
        .open(dir.path().join("flash.killed"));
    file.unwrap().set_len(FLASH_BYTES + 4096).unwrap();
    let options = SalvageOptions {
        flash_parts: vec![part(0, FLASH_BYTES)],
        ..killed(dir.path())
    };
    let _other = FlashFile::open(&options.flash, &[part(FLASH_BYTES, 4096)]).unwrap();
    let own = FlashFile::open(&options.flash, &options.flash_parts).unwrap();
    assert!(refusal(&options).contains("in use"));
    drop(own);
    salvaged(&options);
    assert_eq!(first_bytes(&options), [7; 4096]);
    let read_only = FlashFile::open_read_only(&options.flash, &options.flash_parts).unwrap();
    read_only.write_all_at(&[1; 4096], 0).unwrap_err();
}

#[test]
fn only_what_is_in_a_slot_is_written_and_not_beyond_the_end() {
    let block = BLOCK_BYTES;
    let mapping = |block, slot, missing| Mapping {
        block,
        slot,
        dirty: true,
        heat: 0,
        missing,
    };
    // Four sub-blocks of 4 KiB; the last block ends within its second one.
    let salvage = Salvage {
        dirty: vec![mapping(9, 0, 0), mapping(2, 1, 0b0010)],
        unknown: vec![5],
        origin_bytes: 9 * block + 5000,
        ..Salvage::default()
    };
    let run = |slot, start, bytes, block_no| Run {
        offset: LAYOUT.slot_offset(slot) + start,
        bytes,
        to: Some(block_no * block + start),
    };
    let all = runs(&LAYOUT, &salvage);
    let wanted = [
        run(1, 0, 4096, 2),
        run(1, 8192, 8192, 2),
        run(0, 0, 5000, 9),
    ];
    assert_eq!(all, wanted);
    let report = summarize(&LAYOUT, &salvage, &all, 9 * block + 5000);
    assert_eq!(report.dirty.bytes, 12288 + 5000);
    let named = |offset, bytes| Stretch { offset, bytes };
    let elsewhere = [named(0, 2 * block), named(3 * block, 6 * block)];
    assert_eq!(report.may_be_lost, elsewhere);
    assert_eq!((report.clean.slots, report.unknown.slots), (SLOTS - 3, 1));
}

#[test]
fn what_the_flash_cannot_be_read_of_is_named_and_the_rest_written() {
    let dir = tempfile::tempdir().unwrap();
    drop(Place::make(dir.path()));
    let flash = FlashFile::open(&dir.path().join("flash"), &[]).unwrap();
    flash.write_all_at(&[5; 16384], 0).unwrap();
    let file = File::options().write(true).open(dir.path().join("flash"));
    file.unwrap().set_len(8192).unwrap();
    let origin = Backing::open(&dir.path().join("origin"), Durability::Synced).unwrap();
    let run = Run {
        offset: 0,
        bytes: 16384,
        to: Some(4096),
    };
    let (written, unreadable) = write_back(&flash, &origin, &[run], |_| ()).unwrap();
    let lost = |offset| Stretch {
        offset,
        bytes: 4096,
    };
    assert_eq!(
        (written, unreadable),
        (8192, vec![lost(12288), lost(16384)])
    );
    let bytes = origin.read(0, 20480).unwrap();
    assert!(bytes.bytes()[4096..12288].iter().all(|&byte| byte == 5));
    assert!(bytes.bytes()[12288..].iter().all(|&byte| byte == 0));
}
