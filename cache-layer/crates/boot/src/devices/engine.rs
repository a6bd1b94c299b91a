//! hotset's own engine. What keeps it at work is a script on its machine, and a systemd unit that
//! calls it where systemd runs the machine; elsewhere the script watches over the engine itself.
//!
//! The engine serves the disk as a block device where the kernel's ublk can be used, and as a file
//! of FUSE's elsewhere, over which the script puts a loop device. It chooses at each start.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::{LOOPS, Tier};
use crate::flash_device::{Kind, Part};
use crate::run::{Cause, asks, failed, failure, text};
use crate::users;

const SCRIPTS: &str = "/etc/hotset/engine";
const GIVEN_UP: &str = "/etc/hotset/given-up";
const UNITS: &str = "/etc/systemd/system";
const RUNTIME: &str = "/run/hotset/engine";
/// What the engine refuses though nothing on the flash is damaged or lost: once the cause is gone,
/// it takes everything up again.
const KEEPS_ALL: [&str; 3] = [
    "in use by another",
    "the origin has shrunk",
    "has format version",
];
const OTHER_SIZE: &str = "with a cache size of ";

impl Tier {
    pub(super) fn make_loop_volume(&self) -> Result<()> {
        // One that is compiled in is no module.
        let _ = self.computer.load(&["fuse", "loop"]);
        for part in &self.place.volume.parts {
            let name = format!("{LOOPS}/{}", self.place.volume.name);
            let (start, size) = (part.start.to_string(), part.size.to_string());
            let words = [&name, text(&self.place.flash)?, &start, &size];
            let script = ["sh", "-c", include_str!("../attach.sh"), "hotset-loop"];
            self.computer.run(&[&script[..], &words].concat())?;
        }
        Ok(())
    }

    /// A cache that is refused stays on record as it was left, so that of a clean one it is still
    /// known that nothing is lost with it. Returns the size of a cache that has another one.
    pub(super) fn open_engine(&self) -> Result<Option<u64>> {
        self.require_unserved()?;
        self.make_loop_volume()?;
        self.install_engine()?;
        let Some(words) = self.ask_engine("check")? else {
            return Ok(None);
        };
        // A resize was cut short: the engine has the size of before, or the one that was to be.
        let Some(size) = cache_size(&words) else {
            return Err(self.refusal(&words));
        };
        let mut other = self.clone();
        other.spec.cache = size;
        other.install_engine()?;
        match other.ask_engine("check")? {
            Some(words) => Err(self.refusal(&words)),
            None => Ok(Some(size)),
        }
    }

    pub(super) fn start_engine(&self) -> Result<()> {
        let Some(words) = self.ask_engine("start")? else {
            return Ok(());
        };
        let log = fs::read_to_string(format!("{RUNTIME}/{}/log", self.place.name));
        let log = log.unwrap_or_default();
        let is_told = !log.trim().is_empty();
        self.stop_engine()?;
        Err(self.refusal(if is_told { log.trim() } else { &words }))
    }

    pub(super) fn stop_engine(&self) -> Result<()> {
        self.require_unserved()?;
        if self.has_engine() {
            self.engine("stop")?;
        }
        Ok(())
    }

    /// See that nobody has what an engine serves that is at work, whatever became of the device's
    /// name and of what was noted of it: whoever has it would read errors.
    ///
    /// # Errors
    /// [`Cause::InUse`].
    pub fn require_unserved(&self) -> Result<()> {
        if self.kind != Kind::Userspace || !self.computer.is_here() {
            return Ok(());
        }
        // Not as it is installed, which may be of an earlier version, or gone.
        let Ok(script) = self.engine_script() else {
            return Ok(());
        };
        let served = self.computer.feed(&["sh", "-s", "served"], &script)?;
        served
            .lines()
            .try_for_each(|device| users::none(Path::new(device), users::Who::All))
    }

    /// Has the flash say that its cache is empty: only then the engine begins a new one. A flash
    /// without superblocks may have been erased, which it refuses. Which blocks it held is noted for
    /// the engine, to be fetched again.
    pub(super) fn empty_engine(&self) -> Result<String> {
        self.computer.run(&["mkdir", "-p", "-m", "700", SCRIPTS])?;
        let (program, flash) = (self.engine_program()?, text(&self.place.flash)?);
        let parts: Vec<String> = self.place.metadata.iter().map(part_text).collect();
        let (refill, id) = (self.engine_file("refill"), self.origin_id());
        let mut words = vec![&*program, "format", "--flash", flash];
        words.extend(parts.iter().flat_map(|part| ["--flash-part", part]));
        words.extend(["--refill", &refill, "--origin-id", &id]);
        Ok(self.computer.run(&words)?.trim().into())
    }

    /// What starts the engine, as the disk is described; the next start goes by it.
    pub(super) fn install_engine(&self) -> Result<()> {
        self.computer
            .write(&self.engine_file("sh"), 0o700, &self.engine_script()?)?;
        if !Path::new("/run/systemd/system").exists() {
            return Ok(());
        }
        let (unit, path) = (
            self.fill(include_str!("engine.service"))?,
            self.engine_unit(),
        );
        if fs::read_to_string(&path).is_ok_and(|present| present == unit) {
            return Ok(());
        }
        self.computer.write(&path, 0o644, &unit)?;
        self.computer.run(&["systemctl", "daemon-reload"]).map(drop)
    }

    /// Remove what starts the engine.
    pub(super) fn uninstall_engine(&self) -> Result<()> {
        let files = [
            self.engine_file("sh"),
            self.engine_unit(),
            self.given_up(),
            self.engine_file("shares.json"),
            self.engine_file("refill"),
        ];
        let files = files.iter().map(String::as_str);
        let words: Vec<&str> = ["rm", "-f"].into_iter().chain(files).collect();
        self.computer.run(&words)?;
        if Path::new("/run/systemd/system").exists() {
            self.computer.run(&["systemctl", "daemon-reload"])?;
        }
        Ok(())
    }

    pub(super) fn engine_script(&self) -> Result<String> {
        self.fill(include_str!("engine.sh"))
    }

    /// A disk whose engine was never installed has none.
    pub(super) fn engine_answers(&self, verb: &str) -> Result<bool> {
        Ok(self.has_engine() && asks(&["sh", &self.engine_file("sh"), verb])?)
    }

    /// Which cache an engine is of: its flash, how that is cut up, and its origin.
    pub(super) fn cache_options(&self) -> Result<Vec<String>> {
        let (place, spec) = (&self.place, &self.spec);
        let mut words = Vec::new();
        let mut option = |name: &str, value: &str| words.extend([name.into(), value.into()]);
        option("--origin", text(&place.origin)?);
        option("--origin-id", &self.origin_id());
        option("--given-up", &self.given_up());
        option("--flash", text(&place.flash)?);
        for part in place
            .metadata
            .iter()
            .chain(&first(&place.cache, spec.cache))
        {
            option("--flash-part", &part_text(part));
        }
        option("--metadata", &spec.metadata.to_string());
        option("--cache", &spec.cache.to_string());
        option("--block", &spec.block.to_string());
        Ok(words)
    }

    fn engine(&self, verb: &str) -> Result<()> {
        self.computer
            .run(&["sh", &self.engine_file("sh"), verb])
            .map(drop)
    }

    fn has_engine(&self) -> bool {
        self.computer.is_here() && Path::new(&self.engine_file("sh")).exists()
    }

    /// Its words if it refuses.
    fn ask_engine(&self, verb: &str) -> Result<Option<String>> {
        match self.engine(verb) {
            Ok(()) => Ok(None),
            Err(error) => Ok(Some(failed(error)?.why)),
        }
    }

    /// What comes of the words of an engine that does not start.
    fn refusal(&self, words: &str) -> anyhow::Error {
        let last = words.lines().last().unwrap_or_default();
        let why = last.strip_prefix("hotset-engine: ").unwrap_or(last);
        let (path, flash) = (self.path(), self.place.flash.display());
        let shown = path.display();
        if KEEPS_ALL.iter().any(|words| why.contains(words)) {
            return failure(Cause::Refused, format!("{shown}: {why}"));
        }
        if why.contains("metadata on the flash") || why.contains("the cache on the flash") {
            return failure(Cause::Damaged, format!("{flash}: {why}"));
        }
        anyhow::anyhow!("{shown}: the cache engine did not start: {why}")
    }

    /// The program as it is described, or at boot as the script has it.
    fn engine_program(&self) -> Result<String> {
        if let Some(program) = &self.engine_program {
            return Ok(program.clone());
        }
        let file = self.engine_file("sh");
        let program = fs::read_to_string(&file)
            .ok()
            .and_then(|script| program_in(&script).map(str::to_owned));
        program.with_context(|| {
            format!(
                "{file} has no engine: hotset tier activate {}",
                self.place.name
            )
        })
    }

    fn fill(&self, template: &str) -> Result<String> {
        let (program, own) = (self.engine_program()?, std::env::current_exe()?);
        let mut engine = vec![program.clone(), "tier".into()];
        engine.extend(self.cache_options()?);
        for (option, value) in [
            ("--policy", self.spec.policy.clone()),
            ("--mode", self.spec.mode.clone()),
            ("--shares", self.engine_file("shares.json")),
            ("--refill", self.engine_file("refill")),
        ] {
            engine.extend([option.into(), value]);
        }
        let own = self.own_program.clone().map_or(own, Into::into);
        let mark = [
            text(&own)?,
            "mark",
            "--flash",
            text(&self.place.flash)?,
            &self.place.name,
        ];
        let origin = quoted(text(&self.place.origin)?);
        Ok(filled(
            template,
            &[
                ("@DISK@", &self.place.name),
                ("@ENGINE@", &shell(&engine)),
                ("@MARK@", &shell(&mark.map(str::to_owned))),
                ("@PROGRAM@", &quoted(&program)),
                ("@ORIGIN_ID@", &self.origin_id()),
                ("@ORIGIN@", &origin),
                ("@ID@", &self.identity),
            ],
        ))
    }

    fn origin_id(&self) -> String {
        self.identity.replace('-', "")
    }

    fn engine_file(&self, ending: &str) -> String {
        format!("{SCRIPTS}/{}.{ending}", self.place.name)
    }

    fn engine_unit(&self) -> String {
        format!("{UNITS}/hotset-engine-{}.service", self.place.name)
    }

    /// What the engine leaves when it gave its cache up.
    fn given_up(&self) -> String {
        format!("{GIVEN_UP}/{}", self.identity)
    }
}

fn part_text(part: &Part) -> String {
    format!("{}:{}", part.start, part.size)
}

/// The first bytes of the parts; all of them where they are no more.
fn first(parts: &[Part], size: u64) -> Vec<Part> {
    let mut left = size;
    let cut = parts.iter().map(|part| {
        let size = part.size.min(left);
        left -= size;
        Part { size, ..*part }
    });
    cut.filter(|part| part.size > 0).collect()
}

/// The size that an engine says its cache has, of one that was described with another.
fn cache_size(words: &str) -> Option<u64> {
    let (_, rest) = words.split_once(OTHER_SIZE)?;
    rest.split_once(" bytes, not")?.0.parse().ok()
}

/// The program that an engine's script starts.
fn program_in(script: &str) -> Option<&str> {
    let line = script
        .lines()
        .find(|line| line.trim_start().starts_with("exec "))?;
    let (program, _) = line
        .trim_start()
        .strip_prefix("exec ")?
        .split_once(" tier ")?;
    let bare = program
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''));
    Some(bare.unwrap_or(program))
}

/// A text with values in the place of their names.
fn filled(template: &str, values: &[(&str, &str)]) -> String {
    let (mut text, mut rest) = (String::new(), template);
    while let Some(at) = rest.find('@') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let (name, value) = values
            .iter()
            .find(|(name, _)| rest.starts_with(name))
            .unwrap_or(&("@", "@"));
        text.push_str(value);
        rest = &rest[name.len()..];
    }
    text + rest
}

fn shell(words: &[String]) -> String {
    words
        .iter()
        .map(|word| quoted(word))
        .collect::<Vec<_>>()
        .join(" ")
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_@%+=:,./-".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', "'\"'\"'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_tells_its_program_again() {
        for program in ["/a/hotset-engine", "/a b/hotset-engine"] {
            let line = shell(&[
                program.into(),
                "tier".into(),
                "--origin".into(),
                "/srv/it's".into(),
            ]);
            let script = filled(
                "run() {\n    exec @ENGINE@ \"$@\"\n}\n",
                &[("@ENGINE@", &line)],
            );
            assert!(
                script.ends_with("tier --origin '/srv/it'\"'\"'s' \"$@\"\n}\n"),
                "{script}"
            );
            assert_eq!(program_in(&script), Some(program));
        }
        assert_eq!(program_in("true\n"), None);
    }

    #[test]
    fn a_cache_that_is_smaller_has_the_first_of_its_parts() {
        let parts = [Part { start: 0, size: 2 }, Part { start: 5, size: 4 }];
        let expected = [Part { start: 0, size: 2 }, Part { start: 5, size: 1 }];
        assert_eq!(first(&parts, 3), expected);
        assert_eq!(first(&parts, 2), parts[..1]);
        assert_eq!(first(&parts, 9), parts);
    }
}
