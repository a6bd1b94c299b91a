//! A tier served for a test, and a client of its socket.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::common::{Daemon, is_mounted};

pub const ORIGIN_BYTES: u64 = 8 << 20;
pub const BLOCK_BYTES: u64 = 64 << 10;
pub const SLOTS: u64 = 32;
pub const FLASH_BYTES: u64 = (1 << 20) + SLOTS * BLOCK_BYTES + (1 << 20);

/// The arguments that every tier here has; later ones of the same name win.
const USUAL: [&str; 12] = [
    "--origin=origin",
    "--flash=flash",
    "--metadata=1M",
    "--cache=2M",
    "--volume=1M",
    "--policy=lru",
    "--dirty-target=100",
    "--mount=mount",
    "--control=control",
    "--volatile",
    "--block=64K",
    "--mode=writeback",
];

/// A directory with the files of a tier.
pub fn make_place() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in [("origin", ORIGIN_BYTES), ("flash", FLASH_BYTES)] {
        let file = File::create(dir.path().join(name)).unwrap();
        file.set_len(bytes).unwrap();
    }
    hotset_engine::tier::format_flash(&dir.path().join("flash"), &[], None).unwrap();
    std::fs::create_dir(dir.path().join("mount")).unwrap();
    dir
}

fn command(dir: &Path, changes: &[&str]) -> Command {
    let mut command = Command::new(crate::PROGRAM);
    let name_of = |argument: &str| argument.split('=').next().unwrap().to_owned();
    let changed = |usual: &&&str| {
        !changes
            .iter()
            .any(|change| name_of(change) == name_of(usual))
    };
    command
        .arg("tier")
        .args(USUAL.iter().chain(crate::MORE).filter(changed))
        .args(changes)
        .current_dir(dir);
    command
}

/// A running tier.
pub struct Served {
    dir: PathBuf,
    daemon: Daemon,
}

impl Served {
    pub fn start(dir: &Path, changes: &[&str]) -> Served {
        Served {
            dir: dir.to_owned(),
            daemon: Daemon::start(&mut command(dir, changes), dir.join("mount")),
        }
    }

    /// As root without the capability to lock memory.
    pub fn start_without_locking(dir: &Path) -> Served {
        let usual = command(dir, &[]);
        let mut limited = Command::new("setpriv");
        limited
            .args(["--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock"])
            .args(["prlimit", "--memlock=8388608"])
            .arg(usual.get_program())
            .args(usual.get_args())
            .current_dir(dir);
        Served {
            dir: dir.to_owned(),
            daemon: Daemon::start(&mut limited, dir.join("mount")),
        }
    }

    /// Waits for its end, which is a good one; all that it had to say.
    pub fn said(&mut self) -> String {
        let (code, errors) = self.daemon.wait();
        assert_eq!(code, Some(0), "{errors}");
        errors
    }

    pub fn ready(&self) -> &str {
        &self.daemon.ready
    }

    pub fn open(&self, name: &str) -> File {
        let mut options = OpenOptions::new();
        let path = self.dir.join("mount").join(name);
        options.read(true).write(true).open(path).unwrap()
    }

    pub fn connect(&self) -> Client {
        let stream = UnixStream::connect(self.dir.join("control")).unwrap();
        Client(BufReader::new(stream))
    }

    pub fn ask(&self, request: Value) -> Value {
        self.connect().ask(&request.to_string())
    }

    /// Fetches the first blocks of the origin.
    pub fn warm(&self, count: u64) {
        let mut client = self.connect();
        let mut answer = client.ask(&json!({"warm": {"runs": [[0, count]]}}).to_string());
        while answer.get("total").is_some() {
            answer = client.next();
        }
        assert_eq!(answer["blocks"], count, "{answer}");
    }

    pub fn signal(&self, name: &str) {
        self.daemon.signal(name);
    }

    /// Ends it in order; what it had to say.
    pub fn stop(mut self) -> Value {
        self.signal("TERM");
        self.wait()
    }

    pub fn wait(&mut self) -> Value {
        let (code, errors) = self.daemon.wait();
        assert_eq!(code, Some(0), "{errors}");
        assert!(!is_mounted(&self.dir.join("mount")));
        assert!(!self.dir.join("control").exists());
        // Last, after what it told of failures.
        let last = errors.trim_end().lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|_| panic!("{errors}"))
    }
}

pub struct Client(BufReader<UnixStream>);

impl Client {
    pub fn next(&mut self) -> Value {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        let answer = serde_json::from_str(&line);
        let mut answer: Value = answer.unwrap_or_else(|_| panic!("{line:?}"));
        // Every answer says by which protocol it is.
        let protocol = answer
            .as_object_mut()
            .and_then(|all| all.remove("protocol"));
        assert_eq!(protocol, Some(1.into()), "{line}");
        answer
    }

    pub fn ask(&mut self, line: &str) -> Value {
        self.0.get_mut().write_all(line.as_bytes()).unwrap();
        self.0.get_mut().write_all(b"\n").unwrap();
        self.next()
    }
}

/// A check that finds nothing wrong. Of a session that was closed it says how much is dirty.
pub fn check(dir: &Path) {
    let output = command(dir, &["--check"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty());
    let said = String::from_utf8(output.stdout).unwrap();
    let counts = |said| serde_json::from_str::<Value>(said).unwrap()["dirty"].is_u64();
    assert!(said.is_empty() || counts(&said), "{said}");
}

pub fn refusal(dir: &Path, changes: &[&str]) -> String {
    let output = command(dir, changes).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{changes:?}: {error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}
