//! What a tier makes of the files that it finds.

use std::os::unix::fs::FileExt;

use super::kill::fast_dir;
use super::*;

const ORIGIN_BYTES: u64 = ORIGIN_BLOCKS * BLOCK_BYTES;

/// A tier that was stopped in order, with the first block dirty.
fn stopped_with_a_dirty_block(dir: &Path, trial: Trial) -> Place {
    let place = Place::make(dir);
    let rig = Rig::start(&place, trial);
    rig.tier.warm([0].into_iter().collect(), None, |_| true);
    rig.write(0, &[7; 4096]);
    rig.flush();
    assert_eq!(rig.tier.status().dirty, 1);
    rig.stop();
    place
}

fn keeps_dirty() -> Trial {
    Trial {
        dirty_target: 100,
        ..Trial::of(PolicyKind::Lru, Mode::Writeback)
    }
}

fn refusal(place: &Place, trial: Trial) -> String {
    let started = Tier::start(&options(&place.dir, trial), &place.files);
    format!("{:#}", started.err().expect("it is refused"))
}

#[test]
fn an_origin_that_grew_while_the_tier_was_down_is_taken_up() {
    let dir = tempfile::tempdir().unwrap();
    let place = stopped_with_a_dirty_block(dir.path(), keeps_dirty());
    place.resize_origin(ORIGIN_BYTES + BLOCK_BYTES);
    let grown = place.files.origin.size_now().unwrap();
    place.files.origin.grow_to(grown);
    let rig = Rig::start(&place, keeps_dirty());
    assert_eq!(rig.tier.status().dirty, 1);
    assert_eq!(rig.read(0, 4096).bytes(), [7; 4096]);
    rig.write(ORIGIN_BYTES, &[8; 4096]);
    assert_eq!(rig.read(ORIGIN_BYTES, 4096).bytes(), [8; 4096]);
    rig.stop();
}

#[test]
fn an_origin_that_has_shrunk_is_refused_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let place = stopped_with_a_dirty_block(dir.path(), keeps_dirty());
    place.files.origin.grow_to(ORIGIN_BYTES - BLOCK_BYTES);
    place.resize_origin(ORIGIN_BYTES - BLOCK_BYTES);
    let error = refusal(&place, keeps_dirty());
    assert!(error.contains("has shrunk"), "{error}");
}

#[test]
fn erased_superblocks_are_refused_until_the_flash_is_formatted() {
    let dir = tempfile::tempdir().unwrap();
    let place = stopped_with_a_dirty_block(dir.path(), keeps_dirty());
    let path = dir.path().join("flash");
    let flash = File::options().write(true).open(&path).unwrap();
    flash.write_all_at(&[0; 8192], 0).unwrap();
    let error = refusal(&place, keeps_dirty());
    assert!(error.contains("missing"), "{error}");
    let in_use = format_flash(&path, &[], None).unwrap_err();
    assert!(in_use.to_string().contains("in use"), "{in_use}");
    cache_core::metadata::make_empty(&*place.files.flash).unwrap();
    let rig = Rig::start(&place, keeps_dirty());
    assert_eq!(rig.tier.status().used, 0);
    rig.stop();
}

/// Whoever began a new cache in its place lost what is dirty there.
#[test]
fn a_cache_in_a_format_of_before_the_first_release_stays_whatever_is_asked() {
    let dir = tempfile::tempdir().unwrap();
    drop(stopped_with_a_dirty_block(dir.path(), keeps_dirty()));
    let dir = killed(dir.path());
    let path = dir.path().join("flash");
    let flash = File::options().write(true).open(&path).unwrap();
    for at in [0, 4096] {
        flash.write_all_at(b"hotset\r\n", at).unwrap();
    }
    let before = std::fs::read(&path).unwrap();
    let mut errors = Vec::new();
    for discard in [false, true] {
        let options = TierOptions {
            discard,
            ..options(dir.path(), keeps_dirty())
        };
        errors.push(check_tier(&options).err());
        let files = Files::open(&options).unwrap();
        errors.push(Tier::start(&options, &files).err());
    }
    let refill = super::refill::file_of(dir.path());
    errors.push(format_flash(&path, &[], Some(&refill)).err());
    for error in errors {
        let error = format!("{:#}", error.expect("it is refused"));
        assert!(error.contains("of before the first release"), "{error}");
    }
    assert!(std::fs::read(&path).unwrap() == before);
    assert!(!dir.path().join("refill").exists());
}

#[test]
fn a_tier_that_stops_ends_its_warm_up_first() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::make(dir.path());
    let rig = Rig::start(&place, keeps_dirty());
    let tier = rig.tier.clone();
    let warming = std::thread::spawn(move || {
        // A block an hour.
        let rate = std::num::NonZeroU64::new(4);
        tier.warm((0..12).collect(), rate, |_| true)
    });
    while rig.tier.status().used == 0 {
        std::thread::yield_now();
    }
    rig.stop();
    assert!(warming.join().unwrap().blocks < 12);
}

/// What a process leaves that is killed, its files being locked as long as this one lives.
fn killed(from: &Path) -> tempfile::TempDir {
    let dir = fast_dir();
    for name in ["flash", "origin", "witness"] {
        std::fs::copy(from.join(name), dir.path().join(name)).unwrap();
    }
    let id = xattr::get(from.join("origin"), "user.hotset.origin").unwrap();
    xattr::set(
        dir.path().join("origin"),
        "user.hotset.origin",
        &id.unwrap(),
    )
    .unwrap();
    dir
}

/// That the computer has not stopped says nothing of a drive that was reset, nor of a sync that failed.
#[test]
fn in_the_same_boot_all_is_believed_that_a_witness_tells_of_and_else_what_was_flushed() {
    let trial = Trial {
        durability: Durability::Synced,
        ..keeps_dirty()
    };
    let dir = fast_dir();
    let place = Place::make(dir.path());
    let rig = Rig::start(&place, trial);
    rig.tier.warm((0..4).collect(), None, |_| true);
    rig.write(0, &[7; 4096]);
    rig.flush();
    let left_after = |change: fn(&Path)| {
        let dir = killed(dir.path());
        change(&dir.path().join("witness"));
        let place = Place::open_for(dir.path(), trial);
        let next = Rig::start(&place, trial);
        assert_eq!(next.read(0, 4096).bytes(), [7; 4096]);
        let status = next.tier.status();
        next.stop();
        (status.used, status.dirty)
    };
    assert_eq!(left_after(|_| ()), (4, 1));
    let other_drive = |path: &Path| {
        let text = std::fs::read_to_string(path).unwrap();
        std::fs::write(path, text.replace("flash ", "flash sdz=1 ")).unwrap();
    };
    let changes: [fn(&Path); 3] = [
        |path| std::fs::remove_file(path).unwrap(),
        |path| std::fs::write(path, "").unwrap(),
        other_drive,
    ];
    for change in changes {
        assert_eq!(left_after(change), (1, 1));
    }
    // One that a sync has taken with it is not there to be copied.
    let failed = || Err(std::io::Error::from_raw_os_error(libc::EIO));
    rig.tier.witness.during(failed).unwrap_err();
    assert!(!dir.path().join("witness").exists());
}
