//! What says that flash and origin have all that an engine's last run wrote: a file in `/run`, with that
//! run's number and the numbers that the kernel gave both drives. It goes with the computer, and with
//! the first sync that fails; a drive that comes back has another number. Where it is missing, or
//! the kernel numbers no drives, a start believes what a power cut would have left, and nothing else.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use cache_core::metadata::SessionId;
use nix::sys::statfs::{TMPFS_MAGIC, fstatfs};
use parking_lot::Mutex;
use slab::Slab;

/// A sync that takes longer may be one that fails, and whoever kills its process will not be told.
const DOUBTFUL: Duration = Duration::from_secs(1);

/// The witness of a run.
#[derive(Debug)]
pub(crate) struct Witness {
    /// Nowhere: nothing is believed, and nobody told.
    path: Option<PathBuf>,
    /// Flash and origin, as far as the kernel tells them from others.
    drives: Option<String>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Of whom the file tells: the last run, then this one.
    session: Option<SessionId>,
    is_there: bool,
    has_failed: bool,
    /// Syncs under way, by when they began.
    syncs: Slab<Instant>,
}

impl Witness {
    /// What a file tells of these two.
    pub(crate) fn find(path: Option<&Path>, flash: &File, origin: &File) -> Arc<Witness> {
        let drives = drive_of(flash)
            .zip(drive_of(origin))
            .map(|(flash, origin)| format!("flash {flash}\norigin {origin}\n"));
        let text = path.and_then(|path| fs::read_to_string(path).ok());
        let session = text.as_deref().zip(drives.as_deref()).and_then(session_of);
        let state = State {
            is_there: session.is_some(),
            session,
            ..State::default()
        };
        Arc::new(Witness {
            path: path.map(Path::to_owned),
            drives,
            state: Mutex::new(state),
        })
    }

    /// The run after which both have all that it wrote.
    pub(crate) fn session(&self) -> Option<SessionId> {
        let state = self.state.lock();
        state.session.filter(|_| !state.has_failed)
    }

    /// From now on it tells of this run.
    pub(crate) fn begin(&self, session: SessionId) {
        let state = &mut *self.state.lock();
        state.session = Some(session);
        self.tell(state);
    }

    /// Does a sync, which takes the witness with it if it fails.
    pub(crate) fn during(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let key = self.state.lock().syncs.insert(Instant::now());
        let done = sync();
        let state = &mut *self.state.lock();
        state.syncs.remove(key);
        if done.is_err() {
            state.has_failed = true;
            self.retract(state);
        } else if !state.is_there && !state.has_slow_sync() {
            self.tell(state);
        }
        done
    }

    /// Whoever kills the process while a sync hangs must not leave a witness of it.
    pub(crate) fn doubt_slow_syncs(&self) {
        let state = &mut *self.state.lock();
        if state.is_there && state.has_slow_sync() {
            self.retract(state);
        }
    }

    fn tell(&self, state: &mut State) {
        let Some(((path, drives), session)) = self
            .path
            .as_ref()
            .zip(self.drives.as_ref())
            .zip(state.session)
        else {
            return;
        };
        let text = format!("{}\n{drives}", hex(&session));
        // Torn by a kill it tells nothing, which is what a missing one tells.
        state.is_there = !state.has_failed && fs::write(path, text).is_ok();
    }

    fn retract(&self, state: &mut State) {
        if let Some(path) = &self.path {
            // One that can be neither removed nor emptied is on no file system that is in memory.
            let _ = fs::remove_file(path).or_else(|_| fs::write(path, ""));
        }
        state.is_there = false;
    }
}

impl State {
    fn has_slow_sync(&self) -> bool {
        self.syncs
            .iter()
            .any(|(_, begun)| begun.elapsed() > DOUBTFUL)
    }
}

/// Where a device's syncs are watched, once somebody does.
#[derive(Debug, Default)]
pub(crate) struct Watched(OnceLock<Arc<Witness>>);

impl Watched {
    pub(crate) fn by(&self, witness: &Arc<Witness>) {
        // The first one, of the tier that has the device.
        let _ = self.0.set(witness.clone());
    }

    pub(crate) fn sync(&self, sync: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        match self.0.get() {
            Some(witness) => witness.during(sync),
            None => sync(),
        }
    }
}

/// The run that a file tells of, if it is of these drives.
fn session_of((text, drives): (&str, &str)) -> Option<SessionId> {
    let (session, of) = text.split_once('\n')?;
    let number = u128::from_str_radix(session, 16).ok()?;
    (of == drives && session.len() == 32).then(|| number.to_be_bytes())
}

fn hex(session: &SessionId) -> String {
    format!("{:032x}", u128::from_be_bytes(*session))
}

/// A number for a run, which no other has.
pub(crate) fn new_session() -> io::Result<SessionId> {
    let mut id = SessionId::default();
    File::open("/dev/urandom")?.read_exact(&mut id)?;
    Ok(id)
}

/// The drives below a file or block device, each with the number that the kernel gave it when it
/// came: whatever is plugged in anew has another one. None where one has none.
fn drive_of(file: &File) -> Option<String> {
    let mut drives = Vec::new();
    below(file, &mut drives)?;
    drives.sort();
    drives.dedup();
    Some(drives.join(" "))
}

fn below(file: &File, drives: &mut Vec<String>) -> Option<()> {
    let about = file.metadata().ok()?;
    if about.file_type().is_block_device() {
        return numbered(about.rdev(), drives);
    }
    if !about.is_file() {
        return None;
    }
    // What is in memory goes with the computer alone.
    if fstatfs(file).ok()?.filesystem_type() == TMPFS_MAGIC {
        drives.push("memory".to_owned());
        return Some(());
    }
    numbered(about.dev(), drives)
}

fn numbered(device: u64, drives: &mut Vec<String>) -> Option<()> {
    let (major, minor) = (libc::major(device), libc::minor(device));
    in_sysfs(
        Path::new(&format!("/sys/dev/block/{major}:{minor}")),
        drives,
    )
}

fn in_sysfs(at: &Path, drives: &mut Vec<String>) -> Option<()> {
    let at = fs::canonicalize(at).ok()?;
    let disk = match at.join("partition").exists() {
        true => at.parent()?,
        false => &at,
    };
    let number = fs::read_to_string(disk.join("diskseq")).ok()?;
    let name = disk.file_name()?.to_string_lossy();
    drives.push(format!("{name}={}", number.trim()));
    if let Ok(behind) = fs::read_to_string(disk.join("loop/backing_file")) {
        below(&File::open(behind.trim_end_matches('\n')).ok()?, drives)?;
    }
    for slave in fs::read_dir(disk.join("slaves")).into_iter().flatten() {
        in_sysfs(&slave.ok()?.path(), drives)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: SessionId = [0xab; 16];

    struct Place(tempfile::TempDir);

    impl Place {
        /// On a file system in memory, so that its drives are known everywhere.
        fn make() -> Place {
            let dir = tempfile::tempdir_in("/dev/shm").unwrap();
            for name in ["flash", "origin"] {
                fs::write(dir.path().join(name), [0; 4096]).unwrap();
            }
            Place(dir)
        }

        fn witness(&self) -> Arc<Witness> {
            let open = |name| File::open(self.0.path().join(name)).unwrap();
            Witness::find(Some(&self.path()), &open("flash"), &open("origin"))
        }

        fn path(&self) -> PathBuf {
            self.0.path().join("witness")
        }

        fn session(&self) -> Option<SessionId> {
            self.witness().session()
        }
    }

    fn failed() -> io::Result<()> {
        Err(io::Error::from_raw_os_error(libc::EIO))
    }

    #[test]
    fn a_run_is_known_by_its_witness_until_a_sync_fails() {
        let place = Place::make();
        let witness = place.witness();
        assert_eq!(witness.session(), None);
        witness.begin(RUN);
        witness.during(|| Ok(())).unwrap();
        assert_eq!(place.session(), Some(RUN));
        witness.during(failed).unwrap_err();
        assert_eq!((witness.session(), place.session()), (None, None));
        // What one sync has lost, the next does not bring back.
        witness.during(|| Ok(())).unwrap();
        witness.begin(RUN);
        assert_eq!(place.session(), None);
    }

    #[test]
    fn a_start_whose_sync_fails_leaves_no_witness_of_the_run_before() {
        let place = Place::make();
        place.witness().begin(RUN);
        place.witness().during(failed).unwrap_err();
        assert_eq!(place.session(), None);
    }

    #[test]
    fn a_witness_of_other_drives_or_a_torn_one_tells_nothing() {
        let place = Place::make();
        place.witness().begin(RUN);
        let text = fs::read_to_string(place.path()).unwrap();
        for wrong in [
            text.replace("flash memory", "flash sda=7"),
            text.replace("origin memory", "origin sda=7"),
            text[..text.len() - 1].to_owned(),
            text[1..].to_owned(),
            String::new(),
        ] {
            fs::write(place.path(), wrong).unwrap();
            assert_eq!(place.session(), None);
        }
        fs::write(place.path(), text).unwrap();
        assert_eq!(place.session(), Some(RUN));
        fs::remove_file(place.path()).unwrap();
        assert_eq!(place.session(), None);
    }

    #[test]
    fn a_process_that_is_killed_while_a_sync_hangs_leaves_no_witness() {
        let place = Place::make();
        let witness = place.witness();
        witness.begin(RUN);
        let hang = || {
            while place.session().is_some() {
                witness.doubt_slow_syncs();
                std::thread::yield_now();
            }
            Ok(())
        };
        witness.during(hang).unwrap();
        assert_eq!(place.session(), Some(RUN), "it ended well");
    }

    #[test]
    fn a_drive_that_the_kernel_does_not_number_is_not_known() {
        assert_eq!(drive_of(&File::open("/proc/version").unwrap()), None);
        assert_eq!(drive_of(&File::open("/dev/null").unwrap()), None);
        let mut drives = Vec::new();
        assert_eq!(in_sysfs(Path::new("/sys/dev/block/0:0"), &mut drives), None);
    }

    /// As sysfs has a mapped device: by the drives that it lies on.
    #[test]
    fn whatever_lies_below_is_told_and_one_unknown_drive_makes_all_unknown() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for (disk, number) in [("dm-0", "9"), ("sda", "4"), ("sdb", "5")] {
            fs::create_dir_all(at(disk).join("slaves")).unwrap();
            fs::write(at(disk).join("diskseq"), format!("{number}\n")).unwrap();
        }
        fs::create_dir(at("sda/sda1")).unwrap();
        fs::write(at("sda/sda1/partition"), "1\n").unwrap();
        for (name, to) in [("sda1", "sda/sda1"), ("sdb", "sdb")] {
            std::os::unix::fs::symlink(at(to), at("dm-0/slaves").join(name)).unwrap();
        }
        let look = || {
            let mut drives = Vec::new();
            in_sysfs(&at("dm-0"), &mut drives)?;
            drives.sort();
            Some(drives)
        };
        assert_eq!(look().unwrap(), ["dm-0=9", "sda=4", "sdb=5"]);
        fs::remove_file(at("sdb/diskseq")).unwrap();
        assert_eq!(look(), None);
    }
}
