//! A child process hammers metadata on a file and is killed, over and over.

use std::env;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::model::{Dice, Model};
use super::*;

/// Tells the child where the files are and what its seed is.
const CHILD: &str = "FLASHDEV_METADATA_CHILD";

const ROUNDS: u64 = 250;

fn open_file(dir: &Path, name: &str) -> File {
    let mut options = File::options();
    options.read(true).write(true);
    options.open(dir.join(name)).unwrap()
}

/// The flash as a file.
struct FlashFile(File);

impl FlashStore for FlashFile {
    fn size_bytes(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_all_at(data, offset)
    }

    fn sync_flash(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Store for FlashFile {
    fn read_origin_at(&self, _: &mut [u8], _: u64) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn sync_origin(&self) -> io::Result<()> {
        Ok(())
    }
}

fn open(dir: &Path) -> (Metadata<FlashFile>, Recovered) {
    let flash = FlashFile(open_file(dir, "flash"));
    Metadata::open_on(flash, own(TINY, false, 1)).unwrap()
}

/// The child: calls without end, each counted in the ledger once it has returned.
fn hammer(place: &str) {
    let (seed, dir) = place.split_once(' ').unwrap();
    let dir = Path::new(dir);
    let (metadata, recovered) = open(dir);
    let mut model = Model::of(&recovered, &TINY);
    let mut dice = Dice::new(seed.parse().unwrap());
    let ledger = open_file(dir, "ledger");
    for count in 1u64.. {
        let call = model.random_call(&mut dice);
        call.make(&metadata).unwrap();
        model.apply(call);
        ledger.write_all_at(&count.to_le_bytes(), 0).unwrap();
    }
}

fn returned_calls(dir: &Path) -> u64 {
    let mut count = [0; 8];
    open_file(dir, "ledger")
        .read_exact_at(&mut count, 0)
        .unwrap();
    u64::from_le_bytes(count)
}

fn spawn(dir: &Path, seed: u64) -> Child {
    Command::new(env::current_exe().unwrap())
        .args([
            "--exact",
            "metadata::tests::kill::calls_that_returned_survive_a_kill",
        ])
        .env(CHILD, format!("{seed} {}", dir.display()))
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Lets the child make about so many calls, and ends it.
fn kill_after(mut child: Child, dir: &Path, calls: u64) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while returned_calls(dir) < calls {
        let ended = child.try_wait().unwrap();
        assert!(ended.is_none() && Instant::now() < deadline, "{ended:?}");
        thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn calls_that_returned_survive_a_kill() {
    if let Ok(place) = env::var(CHILD) {
        return hammer(&place);
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for (name, bytes) in [("flash", FLASH_BYTES), ("ledger", 8)] {
        std::fs::write(dir.join(name), vec![0; bytes]).unwrap();
    }
    let flash = FlashFile(open_file(dir, "flash"));
    Metadata::format_on(flash, own(TINY, false, 1)).unwrap();

    let mut model = Model::empty(&TINY);
    let mut delays = Dice::new(99);
    let mut total = 0;
    for seed in (0..ROUNDS).map(|round| round << 32) {
        std::fs::write(dir.join("ledger"), [0; 8]).unwrap();
        kill_after(spawn(dir, seed), dir, delays.below(600));
        let returned = returned_calls(dir);
        let mut dice = Dice::new(seed);
        for _ in 0..returned {
            let call = model.random_call(&mut dice);
            model.apply(call);
        }
        let mut interrupted = model.clone();
        interrupted.apply(model.random_call(&mut dice));
        let (_, recovered) = open(dir);
        let state = Model::of(&recovered, &TINY);
        assert!(
            state == model || state == interrupted,
            "seed {seed}, after {returned} calls: {state:?} is neither {model:?} nor {interrupted:?}"
        );
        total += returned;
        model = state;
    }
    assert!(total > ROUNDS * 100, "{total} calls in {ROUNDS} rounds");
}
