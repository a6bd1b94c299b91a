//! A child process serves random requests and is killed, over and over.
//!
//! Each child first checks that it finds what the ledger says was answered, flushed or not: the
//! page cache outlives the process. It then goes on from what it has found, under another policy
//! and mode, and checks all along that nothing changes by itself: a block wrongly taken for
//! clean reads well until its place is given up.

use std::env;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::ValueEnum;

use super::load::{Ledger, THREADS, Worker, take_stock};
use super::*;
use crate::flash_file::FlashFile;
use crate::flash_file::witness::{Witness, new_session};
use crate::tier::files::{StoreFiles, boot_id};
use crate::tier::origin::OriginFile;
use crate::tier::protocol::Reconfigure;
use crate::tier::run::name_of;
use cache_core::metadata::{
    self, Change, FlashStore, Identity, LogDone, LogIo, Recovered, Session,
};

/// Tells a child its seed and where the files are.
const CHILD: &str = "FLASHDEV_TIER_CHILD";

/// Rounds of killing: a slice, or a third of the schedules that a campaign wants.
fn rounds() -> u64 {
    let wanted = env::var("FLASHDEV_SCHEDULES").ok();
    let count = wanted.map(|count| count.parse().expect("FLASHDEV_SCHEDULES is a number"));
    count.unwrap_or(300_u64).div_ceil(3)
}

/// How long a child may go on once it has found everything, microseconds.
const LIFE_US_MAX: u64 = 15_000;

/// Seeds from here on are of children whose tier is changed all the time.
const CHANGED: u64 = 1 << 32;

/// How long those may go on, microseconds: some changes long. There is a fifth of the rounds of them.
const LIFE_CHANGED_US_MAX: u64 = 60_000;

/// A child that has not been killed by then never will be.
const PATIENCE: Duration = Duration::from_secs(30);

fn trial_of(seed: u64) -> Trial {
    let mut dice = Dice::new(seed);
    let policies = PolicyKind::value_variants();
    let policy = policies[dice.below(policies.len() as u64) as usize];
    let mode = [Mode::Writeback, Mode::Writeback, Mode::Writethrough][dice.below(3) as usize];
    Trial {
        // Cleaning early, late and not at all.
        dirty_target: [10, 60, 100][dice.below(3) as usize],
        ..Trial::of(policy, mode)
    }
}

/// The child. It ends by itself only if something is wrong.
fn serve_until_killed(seed_and_dir: &str) {
    let (seed, dir) = seed_and_dir.split_once(' ').unwrap();
    let (seed, dir) = (seed.parse().unwrap(), Path::new(dir));
    let rig = take_up(&Place::open(dir), trial_of(seed));
    let ledger = Ledger::open(dir);
    let versions = give_up_on_error(take_stock(&rig, &ledger));
    progress_of(dir).write_all_at(&[1], 0).unwrap();
    thread::scope(|scope| {
        for number in 0..THREADS {
            let mut worker = Worker {
                number,
                rig: &rig,
                ledger: &ledger,
                dice: Dice::new(seed << 8 | number),
                versions: versions.clone(),
            };
            scope.spawn(move || {
                loop {
                    give_up_on_error(worker.step());
                }
            });
        }
        if seed >= CHANGED {
            change_without_end(&rig, dir, Dice::new(seed));
        }
    });
}

/// A change that was killed left the one size or the other, or an empty cache.
fn take_up(place: &Place, trial: Trial) -> Rig {
    let started = (4..=SLOTS).rev().find_map(|slots| {
        let mut options = options(&place.dir, trial);
        options.layout.cache_bytes = slots * BLOCK_BYTES;
        match Tier::start(&options, &place.files) {
            Ok(tier) => Some(tier),
            Err(error) if error.to_string().contains("a cache size of") => None,
            Err(error) => give_up_on_error(Err(format!("{error:#}"))),
        }
    });
    let tier = started.expect("it has one of the sizes");
    tier.start_ticker().unwrap();
    Rig { tier }
}

/// Another policy, mode and size, again and again, while it serves.
fn change_without_end(rig: &Rig, dir: &Path, mut dice: Dice) {
    let changes = File::options().append(true).open(dir.join("changes"));
    let mut changes = changes.unwrap();
    loop {
        thread::sleep(Duration::from_micros(dice.below(3000)));
        let policies = PolicyKind::value_variants();
        let wanted = Reconfigure {
            policy: Some(name_of(
                policies[dice.below(policies.len() as u64) as usize],
            )),
            mode: Some(["writeback", "writethrough"][dice.below(2) as usize].to_owned()),
            cache_bytes: Some((4 + dice.below(SLOTS - 3)) * BLOCK_BYTES),
            ..Reconfigure::default()
        };
        give_up_on_error(
            rig.tier
                .reconfigure(&wanted)
                .map_err(|error| format!("{error:#}")),
        );
        changes.write_all(&[1]).unwrap();
    }
}

fn give_up_on_error<T>(result: Result<T, String>) -> T {
    result.unwrap_or_else(|error| {
        eprintln!("found wrong: {error}");
        std::process::exit(3)
    })
}

fn progress_of(dir: &Path) -> File {
    let mut options = File::options();
    options.read(true).write(true);
    options.open(dir.join("progress")).unwrap()
}

pub(super) fn spawn(dir: &Path, seed: u64) -> Child {
    std::fs::write(dir.join("progress"), [0]).unwrap();
    Command::new(env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg("tier::tests::kill::what_was_answered_survives_a_kill")
        .env(CHILD, format!("{seed} {}", dir.display()))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Kills the child so long after it has found everything; its status, if it ended by itself.
pub(super) fn kill_after(mut child: Child, dir: &Path, life: Duration) -> Option<ExitStatus> {
    let progress = progress_of(dir);
    let deadline = Instant::now() + PATIENCE;
    let mut found_all = [0];
    while found_all == [0] {
        if let Some(status) = child.try_wait().unwrap() {
            return Some(status);
        }
        assert!(Instant::now() < deadline, "the child does not get ready");
        thread::sleep(Duration::from_micros(200));
        progress.read_exact_at(&mut found_all, 0).unwrap();
    }
    thread::sleep(life);
    let ended = child.try_wait().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    ended
}

/// A directory for the files: in memory, if the origin can have its id there.
pub(super) fn fast_dir() -> tempfile::TempDir {
    if let Ok(dir) = tempfile::tempdir_in("/dev/shm") {
        Place::make(dir.path());
        if OriginFile::open(&dir.path().join("origin"), None).is_ok() {
            return dir;
        }
    }
    tempfile::tempdir().unwrap()
}

pub(super) fn new_tier() -> tempfile::TempDir {
    let dir = fast_dir();
    drop(Place::make(dir.path()));
    Ledger::make(dir.path());
    dir
}

#[test]
fn what_was_answered_survives_a_kill() {
    if let Ok(seed_and_dir) = env::var(CHILD) {
        return serve_until_killed(&seed_and_dir);
    }
    let dir = new_tier();
    let (mut dice, rounds) = (Dice::new(7), rounds());
    for seed in 0..rounds {
        let life = Duration::from_micros(dice.below(LIFE_US_MAX));
        let ended = kill_after(spawn(dir.path(), seed), dir.path(), life);
        assert_eq!(ended, None, "round {seed}: the child found something wrong");
    }
    let answered = Ledger::open(dir.path()).answered();
    assert!(
        answered > rounds * 20,
        "{answered} writes in {rounds} rounds"
    );
}

/// The changes are the daemon's own, all of them.
#[test]
fn what_was_answered_survives_a_kill_while_the_tier_is_changed() {
    let dir = new_tier();
    let changes = dir.path().join("changes");
    File::create(&changes).unwrap();
    let (mut dice, rounds) = (Dice::new(8), rounds().div_ceil(5));
    for round in 0..rounds {
        let life = Duration::from_micros(dice.below(LIFE_CHANGED_US_MAX));
        let child = spawn(dir.path(), CHANGED + round);
        let ended = kill_after(child, dir.path(), life);
        assert_eq!(
            ended, None,
            "round {round}: the child found something wrong"
        );
    }
    let changed = std::fs::metadata(changes).unwrap().len();
    assert!(changed > rounds, "{changed} changes");
}

/// Calls every dirty block clean, as a tier would that wrote without telling the metadata.
fn forget_what_is_dirty(dir: &Path) {
    let flash = FlashFile::open(&dir.join("flash"), &[]).unwrap();
    let origin = OriginFile::open(&dir.join("origin"), None).unwrap();
    let file = File::open(dir.join("origin")).unwrap();
    let witness = Witness::find(Some(&dir.join("witness")), flash.file(), &file);
    let store = StoreFiles {
        flash: Arc::new(flash),
        origin: &origin,
    };
    let session = Session {
        identity: Identity {
            layout: LAYOUT,
            origin_id: origin.id,
            origin_bytes: origin.bytes,
        },
        sync: false,
        boot_id: boot_id().unwrap(),
        id: new_session().unwrap(),
        witnessed: witness.session(),
    };
    let (mut log, Recovered { mappings, .. }) = metadata::open(&store, &session).unwrap();
    witness.begin(session.id);
    for mapping in mappings.iter().filter(|mapping| mapping.dirty) {
        log.append(mapping.slot, Change::Clean);
    }
    while let Some(LogIo::Write {
        part,
        offset,
        bytes,
    }) = log.next_io(|_| 0)
    {
        store.write_at(&bytes, offset).unwrap();
        log.io_done(LogDone::Write(part), true);
    }
}

/// The control: with metadata that is broken on purpose, the test above must fail.
#[test]
fn a_tier_that_forgets_what_is_dirty_is_found_out() {
    let dir = new_tier();
    let life = Duration::from_millis(50);
    let found_out = (0..20).any(|seed| {
        let ended = kill_after(spawn(dir.path(), seed), dir.path(), life);
        forget_what_is_dirty(dir.path());
        ended.is_some_and(|status| status.code() == Some(3))
    });
    assert!(found_out);
}
