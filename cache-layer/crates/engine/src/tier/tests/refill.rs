//! A cache that begins empty, since its origin was changed while it was down, and is warm again soon.

use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, io, thread};

use cache_core::metadata::{self, FlashStore};
use cache_core::policy::{Geometry, HOTTEST};
use roaring::RoaringBitmap;

use super::*;
use crate::tier::files::boot_id;
use crate::tier::jobs::PROGRESS;
use crate::tier::origin::OriginFile;
use crate::tier::protocol::Reconfigure;
use crate::tier::refill::{Head, Noted, Refill, RefillFile, RefillState, by_heat};
use crate::tier::run;

/// Tells a child where the files are.
const CHILD: &str = "FLASHDEV_REFILL_CHILD";

const PATIENCE: Duration = Duration::from_secs(30);

/// What is cached: every other block, so that each is a read of its own.
fn cached() -> impl Iterator<Item = u64> {
    (0..SLOTS).map(|number| 2 * number)
}

fn writethrough() -> Trial {
    Trial::of(PolicyKind::Hotset, Mode::Writethrough)
}

pub(super) fn file_of(dir: &Path) -> RefillFile {
    let origin = OriginFile::open(&dir.join("origin"), None).unwrap();
    RefillFile {
        path: dir.join("refill"),
        origin_id: origin.id,
    }
}

/// Bytes of the origin are all the same.
fn fill_origin(dir: &Path, byte: u8) {
    let file = File::options().write(true).open(dir.join("origin"));
    let bytes = vec![byte; (ORIGIN_BLOCKS * BLOCK_BYTES) as usize];
    file.unwrap().write_all_at(&bytes, 0).unwrap();
}

fn warm(place: &Place, trial: Trial) {
    let rig = Rig::start(place, trial);
    let wanted = cached().map(|block| block as u32).collect();
    assert_eq!(rig.tier.warm(wanted, None, |_| true).blocks, SLOTS);
    rig.stop();
}

/// A tier with blocks of ones in its cache, whose origin has twos since, emptied.
fn emptied(dir: &Path) -> (Place, Noted) {
    let place = Place::make_for(dir, writethrough());
    fill_origin(dir, 1);
    warm(&place, writethrough());
    fill_origin(dir, 2);
    let noted = empty(&place);
    (place, noted)
}

fn empty(place: &Place) -> Noted {
    let noted = run::empty(&place.files.flash, Some(&file_of(&place.dir)));
    noted.unwrap().unwrap()
}

fn start(place: &Place, trial: Trial) -> Rig {
    let rig = Rig::start(place, trial);
    rig.tier.start_refill().unwrap();
    rig
}

fn await_refill(rig: &Rig) {
    let until = Instant::now() + PATIENCE;
    while rig.tier.refill.is_under_way() {
        assert!(Instant::now() < until, "{:?}", rig.tier.status().refill);
        thread::sleep(Duration::from_millis(5));
    }
}

fn read_hits(rig: &Rig, byte: u8) -> u64 {
    for block in cached() {
        let read = rig.read(block * BLOCK_BYTES, BLOCK_BYTES as usize);
        assert!(read.bytes().iter().all(|&value| value == byte), "{block}");
    }
    rig.tier.status().counters.read_hits
}

#[test]
fn what_an_emptied_cache_held_is_fetched_again_and_is_the_new_origins() {
    let dir = tempfile::tempdir().unwrap();
    let (place, noted) = emptied(dir.path());
    assert_eq!((noted.blocks, &noted.unknown), (SLOTS, &None));
    let rig = start(&place, writethrough());
    await_refill(&rig);
    let status = rig.tier.status().refill.unwrap();
    assert_eq!(status.state, RefillState::Done);
    assert_eq!(
        (status.fetched, status.seen_to, status.total),
        (SLOTS, SLOTS, SLOTS)
    );
    assert_eq!(read_hits(&rig, 2), SLOTS, "as many as before");
    rig.stop();
    assert!(!dir.path().join("refill").exists(), "it is through");
    let rig = start(&place, writethrough());
    assert!(rig.tier.status().refill.is_none(), "once and no more");
    assert_eq!(read_hits(&rig, 2), SLOTS);
    rig.stop();
}

#[test]
fn a_write_before_its_block_is_fetched_again_is_what_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let (place, _) = emptied(dir.path());
    let rig = Rig::start(&place, writethrough());
    rig.write(0, &[7; BLOCK_BYTES as usize]);
    rig.tier.start_refill().unwrap();
    await_refill(&rig);
    let read = rig.read(0, BLOCK_BYTES as usize);
    assert!(read.bytes().iter().all(|&byte| byte == 7));
    rig.stop();
}

#[test]
fn nothing_makes_way_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let (place, _) = emptied(dir.path());
    let rig = Rig::start(&place, writethrough());
    let others: Vec<u32> = (0..SLOTS as u32).map(|number| 2 * number + 1).collect();
    rig.tier
        .warm(others.iter().copied().collect(), None, |_| true);
    rig.tier.start_refill().unwrap();
    await_refill(&rig);
    assert_eq!(rig.tier.status().refill.unwrap().fetched, 0);
    let held: Vec<u32> = rig.tier.lock().engine.resident().iter().collect();
    assert_eq!(held, others);
    rig.stop();
}

#[test]
fn what_the_cache_cannot_hold_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let (_place, _) = emptied(dir.path());
    let find = |origin_blocks, slots, held: RoaringBitmap| {
        let geometry = Geometry {
            origin_blocks,
            slots,
        };
        let refill = Refill::find(file_of(dir.path()), BLOCK_BYTES, geometry, &held);
        let status = refill.status().unwrap();
        (status.total, status.left_out)
    };
    let nothing = RoaringBitmap::new;
    assert_eq!(find(24, 8, nothing()), (8, 0));
    assert_eq!(find(3, 8, nothing()), (2, 6), "the origin shrank");
    assert_eq!(find(24, 5, nothing()), (5, 3), "so did the cache");
    assert_eq!(find(24, 8, [2, 3].into_iter().collect()), (7, 0));
}

/// Bands are by heat: those of the hottest come first, and are what stays of too many.
#[test]
fn the_hottest_come_first() {
    let dir = tempfile::tempdir().unwrap();
    let (_place, _) = emptied(dir.path());
    let file = file_of(dir.path());
    let head = Head::of(&file.origin_id, BLOCK_BYTES);
    file.write(&head, &by_heat(&[(1, 0), (5, 63), (3, 40), (7, 48)]))
        .unwrap();
    let geometry = Geometry {
        origin_blocks: 24,
        slots: 3,
    };
    let refill = Refill::find(file, BLOCK_BYTES, geometry, &RoaringBitmap::new());
    let (_, bands) = refill.work.lock().take().unwrap();
    let bands: Vec<Vec<u32>> = bands.iter().map(|band| band.iter().collect()).collect();
    assert_eq!(bands, [vec![5, 7], vec![3], vec![], vec![]]);
}

#[test]
fn it_goes_on_when_it_was_stopped_and_when_the_tier_was_changed() {
    let dir = tempfile::tempdir().unwrap();
    let (place, _) = emptied(dir.path());
    let slowly = Trial {
        scale: 2.0,
        ..writethrough()
    };
    let rig = start(&place, slowly);
    rig.stop();
    assert!(dir.path().join("refill").exists(), "it is not through");
    let rig = start(&place, slowly);
    let change: Reconfigure = serde_json::from_str(r#"{"policy": "lru"}"#).unwrap();
    rig.tier.reconfigure(&change).unwrap();
    await_refill(&rig);
    let status = rig.tier.status().refill.unwrap();
    assert_eq!(status.state, RefillState::Done);
    assert_eq!(status.seen_to, status.total);
    assert_eq!(read_hits(&rig, 2), SLOTS);
    rig.stop();
}

/// A refill of reads that take longer than there is word of its progress, under way. All is of one
/// band, so that there is one job.
fn slow_refill(dir: &Path) -> Rig {
    let slowly = Trial {
        scale: 120.0,
        ..writethrough()
    };
    let place = Place::make_for(dir, slowly);
    let file = file_of(dir);
    let head = Head::of(&file.origin_id, BLOCK_BYTES);
    let noted: Vec<_> = cached().map(|block| (block as u32, HOTTEST)).collect();
    file.write(&head, &by_heat(&noted)).unwrap();
    let rig = start(&place, slowly);
    let until = Instant::now() + PATIENCE;
    while !rig.tier.undisturbed.is_locked() {
        assert!(Instant::now() < until, "it does not begin");
        thread::sleep(Duration::from_millis(1));
    }
    rig
}

/// Whoever wanted the engine may be refused, or be tired of waiting, while the last reads end.
#[test]
fn it_goes_on_when_nobody_wants_the_engine_any_more_by_the_time_it_has_made_way() {
    let dir = tempfile::tempdir().unwrap();
    let rig = slow_refill(dir.path());
    let refill = &rig.tier.refill;
    refill.give_way(true);
    // It is cancelled as soon as there is word of its progress.
    thread::sleep(PROGRESS + PROGRESS / 4);
    refill.give_way(false);
    await_refill(&rig);
    let status = refill.status().unwrap();
    assert_eq!(status.state, RefillState::Done);
    assert_eq!((status.fetched, status.seen_to), (SLOTS, SLOTS));
    rig.stop();
}

/// One who is refused at once takes nothing from another, who still waits.
#[test]
fn it_makes_way_as_long_as_anybody_wants_it_to() {
    let dir = tempfile::tempdir().unwrap();
    let rig = slow_refill(dir.path());
    let refill = &rig.tier.refill;
    refill.give_way(true);
    refill.give_way(true);
    refill.give_way(false);
    let alone = rig.tier.undisturbed.try_write_for(PATIENCE);
    assert!(alone.is_some());
    thread::sleep(PROGRESS / 4);
    let status = refill.status().unwrap();
    assert!(status.fetched < SLOTS, "{status:?}");
    refill.give_way(false);
    drop(alone);
    await_refill(&rig);
    assert_eq!(refill.status().unwrap().fetched, SLOTS);
    rig.stop();
}

/// What users bring in meanwhile is not the first to leave: the refill knows what is worth little.
#[test]
fn what_was_cold_is_no_hotter_once_it_is_fetched_again() {
    // LRU keeps an order and no heat; smq spreads so few blocks over all of its levels.
    for policy in [
        PolicyKind::Hotset,
        PolicyKind::Sieve,
        PolicyKind::S3Fifo,
        PolicyKind::Arc,
    ] {
        let dir = tempfile::tempdir().unwrap();
        let trial = Trial {
            policy,
            ..writethrough()
        };
        let place = Place::make_for(dir.path(), trial);
        let file = file_of(dir.path());
        let head = Head::of(&file.origin_id, BLOCK_BYTES);
        let noted = [(0, HOTTEST), (3, 40), (6, 5)];
        file.write(&head, &by_heat(&noted)).unwrap();
        let rig = start(&place, trial);
        await_refill(&rig);
        rig.stop();
        let flash = Seen(File::open(dir.path().join("flash")).unwrap());
        let recovered = metadata::numbers(&flash, file.origin_id, boot_id().unwrap());
        let blocks = recovered.unwrap().unwrap().blocks;
        let hot: Vec<u32> = blocks
            .iter()
            .filter_map(|&(block, heat)| (heat > HOTTEST / 2).then_some(block))
            .collect();
        assert_eq!((hot, blocks.len()), (vec![0, 3], noted.len()), "{policy:?}");
    }
}

#[test]
fn it_goes_on_after_a_kill_and_after_the_origin_has_changed_once_more() {
    if let Ok(what) = env::var(CHILD) {
        return be_a_child(&what);
    }
    let dir = tempfile::tempdir().unwrap();
    make_files(dir.path(), ORIGIN_BLOCKS * BLOCK_BYTES);
    fill_origin(dir.path(), 1);
    assert!(child(dir.path(), "warm").wait().unwrap().success());
    for byte in [2, 4] {
        fill_origin(dir.path(), byte);
        assert_eq!(empty_closed(dir.path()), SLOTS);
        kill_in_the_middle(dir.path());
        assert!(child(dir.path(), "finish").wait().unwrap().success());
        fill_origin(dir.path(), byte + 1);
        assert_eq!(empty_closed(dir.path()), SLOTS);
        kill_in_the_middle(dir.path());
        assert_eq!(
            empty_closed(dir.path()),
            SLOTS,
            "those that had not come, too"
        );
        assert!(child(dir.path(), "finish").wait().unwrap().success());
    }
}

fn empty_closed(dir: &Path) -> u64 {
    let noted = format_flash(&dir.join("flash"), &[], Some(&file_of(dir)));
    noted.unwrap().unwrap().blocks
}

/// The child serves, as files are locked as long as a process lives that had a tier.
fn be_a_child(what: &str) {
    let (what, dir) = what.split_once(' ').unwrap();
    let dir = Path::new(dir);
    let place = Place::open(dir);
    match what {
        "warm" => warm(&place, writethrough()),
        "finish" => {
            let rig = start(&place, writethrough());
            await_refill(&rig);
            let byte = std::fs::read(dir.join("origin")).unwrap()[0];
            assert_eq!(read_hits(&rig, byte), SLOTS);
            rig.stop();
        }
        // Its reads take long enough to be killed between.
        _ => {
            let slowly = Trial {
                scale: 8.0,
                ..writethrough()
            };
            let _rig = start(&place, slowly);
            thread::sleep(PATIENCE);
        }
    }
}

fn child(dir: &Path, what: &str) -> Child {
    let test = "it_goes_on_after_a_kill_and_after_the_origin_has_changed_once_more";
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg(format!("tier::tests::refill::{test}"))
        .env(CHILD, format!("{what} {}", dir.display()))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// The flash as another process sees it.
struct Seen(File);

impl FlashStore for Seen {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(FLASH_BYTES)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_flash(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Kills a child while it fetches, with some blocks on the flash.
fn kill_in_the_middle(dir: &Path) {
    let mut child = child(dir, "serve");
    let flash = Seen(File::open(dir.join("flash")).unwrap());
    let origin_id = file_of(dir).origin_id;
    let held = || {
        let recovered = metadata::numbers(&flash, origin_id, boot_id().unwrap());
        recovered
            .ok()
            .flatten()
            .map_or(0, |recovered| recovered.blocks.len())
    };
    let until = Instant::now() + PATIENCE;
    while held() == 0 {
        assert!(Instant::now() < until, "nothing is fetched");
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        thread::sleep(Duration::from_millis(1));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!((1..SLOTS).contains(&(held() as u64)), "{} blocks", held());
}

#[test]
fn nothing_is_known_of_damaged_metadata_and_of_another_origins() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place::make_for(dir.path(), writethrough());
    warm(&place, writethrough());
    let stranger = RefillFile {
        origin_id: [9; 16],
        ..file_of(dir.path())
    };
    let noted = stranger.note(&place.files.flash);
    assert_eq!(noted.blocks, 0);
    assert!(noted.unknown.unwrap().contains("another origin"));
    let flash = &place.files.flash;
    flash.write_all_at(&[0xA5; 8 << 10], 0).unwrap();
    let noted = empty(&place);
    assert_eq!(noted.blocks, 0);
    let message = noted.to_string();
    assert!(message.contains("nothing is known"), "{message}");
    assert!(message.contains("damaged"), "{message}");
    let rig = start(&place, writethrough());
    assert!(rig.tier.status().refill.is_none());
    rig.stop();
}

/// What an earlier note says is told of this disk alone, and hides nothing of what went wrong.
#[test]
fn a_note_of_another_disk_is_not_counted_and_one_of_before_hides_no_failure() {
    let dir = tempfile::tempdir().unwrap();
    let (place, _) = emptied(dir.path());
    let flash = &place.files.flash;
    let ours = file_of(dir.path());
    let stranger = RefillFile {
        origin_id: [9; 16],
        ..ours.clone()
    };
    assert_eq!(stranger.note(flash).blocks, 0, "the flash is empty");
    assert_eq!(ours.note(flash).blocks, SLOTS, "that it is fetched stays");
    flash.write_all_at(&[0xA5; 8 << 10], 0).unwrap();
    let message = stranger.note(flash).to_string();
    assert!(!message.contains("fetched again"), "{message}");
    let message = ours.note(flash).to_string();
    assert!(message.contains("8 blocks"), "{message}");
    assert!(message.contains("damaged"), "{message}");
    let path = dir.path().join("refill");
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
    run::empty(flash, None).unwrap();
    let message = ours.note(flash).to_string();
    assert!(message.contains("nothing is known"), "{message}");
}

#[test]
fn a_note_that_finds_no_room_says_so_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let (place, _) = emptied(dir.path());
    warm(&place, writethrough());
    let before = std::fs::read(dir.path().join("refill")).ok();
    let new = dir.path().join("refill.new");
    std::os::unix::fs::symlink("/dev/full", &new).unwrap();
    let noted = file_of(dir.path()).note(&place.files.flash);
    assert!(noted.unknown.unwrap().contains("No space left"));
    assert!(new.symlink_metadata().is_err(), "it takes room itself");
    assert_eq!(std::fs::read(dir.path().join("refill")).ok(), before);
}

#[test]
fn a_note_that_is_damaged_or_anothers_is_left_out_and_the_tier_serves() {
    for spoil in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let (place, _) = emptied(dir.path());
        let path = dir.path().join("refill");
        let mut bytes = std::fs::read(&path).unwrap();
        match spoil {
            true => bytes.truncate(bytes.len() - 3),
            false => bytes[30] ^= 1,
        }
        std::fs::write(&path, bytes).unwrap();
        let rig = start(&place, writethrough());
        assert!(rig.tier.status().refill.is_none());
        assert_eq!(read_hits(&rig, 2), 0);
        rig.stop();
        assert!(!path.exists());
    }
}
