//! The devices of a disk: made, its cache emptied, taken down. As the `tier.py` of each kind in
//! hotset's `tier/` does it; a test holds the two against each other.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::card::{Card, Disk, Kind, Part};
use crate::lock;
use crate::media::Medium;
use crate::run::{asks, fed, run, text};
use crate::users::{self, InUse};

const SECTOR: u64 = 512;
const MIB: u64 = 1024 * 1024;
const ENGINE_SCRIPTS: &str = "/etc/hotset/engine";
const BCACHE: &str = "/sys/fs/bcache";
/// Sectors, as the kernel has it of itself; and how many blocks it is to be at least.
const THRESHOLD: (u64, u64) = (2048, 8);
const BUCKETS: u64 = 1024;

/// A disk with its card and the device its card was read from.
pub struct Tier<'a> {
    pub card: &'a Card,
    pub disk: &'a Disk,
    pub kind: Kind,
    pub flash: &'a Path,
}

/// A device of the device mapper that is to stand.
#[derive(Debug, PartialEq, Eq)]
pub struct Device {
    pub name: String,
    pub uuid: String,
    pub table: String,
}

impl Device {
    fn new(name: String, table: String, private: bool) -> Self {
        let mark = if private {
            "HOTSET-private-"
        } else {
            "HOTSET-"
        };
        Self {
            uuid: format!("{mark}{name}"),
            name,
            table,
        }
    }

    fn stands(&self) -> Result<bool> {
        asks(&["dmsetup", "info", &self.name])
    }

    /// The card's disks share the volume, and an activation that failed may have left parts.
    fn make(&self) -> Result<()> {
        if !self.stands()? {
            fed(
                &["dmsetup", "create", &self.name, "--uuid", &self.uuid],
                &self.table,
            )?;
        }
        Ok(())
    }
}

impl Tier<'_> {
    fn top(&self) -> String {
        format!("hotset-{}", self.disk.name)
    }

    fn slice(&self, what: &str, parts: &[Part]) -> Device {
        Device::new(
            format!("{}-{what}", self.top()),
            linear(self.flash, parts),
            true,
        )
    }

    fn volume(&self) -> Option<Device> {
        let name = format!("hotset-{}", self.card.volume_name());
        let parts = &self.card.volume;
        (!parts.is_empty()).then(|| Device::new(name, linear(self.flash, parts), false))
    }

    /// What the device mapper is to make, in its order; bcache's top is not known before.
    pub fn tables(&self, origin_size: u64) -> Vec<Device> {
        let disk = self.disk;
        let mut found: Vec<Device> = self.volume().into_iter().collect();
        match self.kind {
            Kind::DmCache => {
                found.push(self.slice("meta", &disk.metadata));
                found.push(self.slice("cache", &disk.cache));
                found.push(Device::new(
                    self.top(),
                    self.dm_cache_table(origin_size),
                    false,
                ));
            }
            Kind::Bcache => {
                found.push(self.slice("cache", &disk.cache));
                found.push(self.backing(origin_size));
            }
            Kind::Userspace => found.clear(),
        }
        found
    }

    fn dm_cache_table(&self, origin_size: u64) -> String {
        let (top, spec) = (self.top(), &self.disk.spec);
        let block = spec.block / SECTOR;
        let threshold = THRESHOLD.0.max(THRESHOLD.1 * block);
        format!(
            "0 {} cache /dev/mapper/{top}-meta /dev/mapper/{top}-cache {} {block} 2 metadata2 {} {} \
             2 migration_threshold {threshold}",
            origin_size / SECTOR,
            self.disk.origin.display(),
            spec.mode,
            spec.policy,
        )
    }

    /// A header on the flash and the whole origin behind it.
    fn backing(&self, origin_size: u64) -> Device {
        let header = linear(self.flash, &self.disk.metadata);
        let at: u64 = self.disk.metadata.iter().map(|part| part.size).sum::<u64>() / SECTOR;
        let origin = self.disk.origin.display();
        let table = format!("{header}\n{at} {} linear {origin} 0", origin_size / SECTOR);
        Device::new(format!("{}-backing", self.top()), table, true)
    }

    /// An error is no answer: what is not known to be there is not taken for gone.
    pub fn is_active(&self) -> Result<bool> {
        match self.kind {
            Kind::Userspace => self.engine_says("attached"),
            Kind::DmCache | Kind::Bcache => asks(&["dmsetup", "info", &self.top()]),
        }
    }

    /// Whether it is active, and what serves it is at work; the kernel's caches always are.
    pub fn is_served(&self) -> Result<bool> {
        let asks_it = self.kind == Kind::Userspace && self.knows("alive");
        Ok(self.is_active()? && (!asks_it || self.engine_says("alive")?))
    }

    /// The accelerated device.
    pub fn path(&self) -> PathBuf {
        match self.kind {
            Kind::Userspace => Path::new("/dev/hotset").join(&self.disk.name),
            Kind::DmCache | Kind::Bcache => Path::new("/dev/mapper").join(self.top()),
        }
    }

    /// Make it, with what is cached. `mark` puts it on record as active: before anybody can write,
    /// and after its metadata were found to be usable.
    pub fn make(&self, mark: impl FnOnce() -> Result<()>) -> Result<()> {
        match self.kind {
            Kind::DmCache => self.make_dm_cache(mark),
            Kind::Bcache => self.make_bcache(mark),
            Kind::Userspace => {
                self.prepare_engine()?;
                self.check_engine()?;
                mark()?;
                self.engine("start")
            }
        }
    }

    /// Forget what is cached; what becomes of it, in words.
    pub fn empty(&self) -> Result<String> {
        let cold = "nothing of it is fetched again by itself: `hotset warmup run` fills it";
        match self.kind {
            Kind::DmCache => self.empty_dm_cache().map(|()| cold.into()),
            Kind::Bcache => self.empty_bcache().map(|()| cold.into()),
            Kind::Userspace => self.empty_engine(),
        }
    }

    /// Take it down; what is cached stays. First of all nobody can write to it any more: what has
    /// been answered until then, the flash has.
    pub fn take_down(&self, is_served: bool) -> Result<()> {
        let top = self.top();
        match self.kind {
            Kind::DmCache => remove([top.clone(), format!("{top}-meta"), format!("{top}-cache")]),
            Kind::Bcache => {
                remove([top.clone()])?;
                self.stop_bcache()?;
                remove([format!("{top}-backing"), format!("{top}-cache")])
            }
            Kind::Userspace => {
                if is_served {
                    users::shut(&self.path())?;
                }
                self.engine("stop")
            }
        }
    }

    fn made_size(&self) -> Result<u64> {
        Ok(Medium::open(&self.disk.origin, false)?.size)
    }

    /// All but the last of the tables, which is the accelerated device.
    fn make_parts(&self, modules: &[&str]) -> Result<Device> {
        let words = [&["modprobe", "-a"], modules].concat();
        run(&words).context("the kernel has no such cache")?;
        let mut devices = self.tables(self.made_size()?);
        let top = devices.pop().context("no devices")?;
        devices.iter().try_for_each(Device::make)?;
        Ok(top)
    }

    fn make_dm_cache(&self, mark: impl FnOnce() -> Result<()>) -> Result<()> {
        let top = self.make_parts(&["dm-cache", "dm-cache-smq"])?;
        let metadata = format!("/dev/mapper/{}-meta", self.top());
        run(&["cache_check", "--clear-needs-check-flag", &metadata]).with_context(|| {
            format!(
                "the metadata are damaged: hotset tier repair {}",
                self.disk.name
            )
        })?;
        mark()?;
        top.make()
    }

    fn empty_dm_cache(&self) -> Result<()> {
        self.make_parts(&["dm-cache", "dm-cache-smq"])?;
        let spec = &self.disk.spec;
        let xml = format!(
            "<superblock uuid=\"\" block_size=\"{}\" nr_cache_blocks=\"{}\" policy=\"{}\" \
             hint_width=\"4\"><mappings></mappings><hints></hints></superblock>",
            spec.block / SECTOR,
            spec.cache / spec.block,
            spec.policy
        );
        // A file, not standard input: cache_restore wants to know its size.
        let file = format!("/run/hotset/empty-{}.xml", self.disk.name);
        lock::private(Path::new("/run/hotset"))?;
        fs::write(&file, xml).with_context(|| file.clone())?;
        let metadata = format!("/dev/mapper/{}-meta", self.top());
        run(&["cache_restore", "--quiet", "-i", &file, "-o", &metadata]).map(drop)
    }

    /// The folder of the backing device's attributes: neither `dm-N` nor `bcacheN` is the same
    /// after a boot.
    fn bcache(&self) -> Result<PathBuf> {
        let name = format!("{}-backing", self.top());
        let words = [
            "dmsetup",
            "info",
            "-c",
            "--noheadings",
            "-o",
            "blkdevname",
            &name,
        ];
        Ok(Path::new("/sys/block")
            .join(run(&words)?.trim())
            .join("bcache"))
    }

    fn make_bcache(&self, mark: impl FnOnce() -> Result<()>) -> Result<()> {
        let backing = self.make_parts(&["bcache"])?;
        backing.make()?;
        for name in [format!("{}-cache", self.top()), backing.name] {
            // udev may have done it; what bcache refuses shows in what follows.
            let _ = fs::write(
                format!("{BCACHE}/register_quiet"),
                format!("/dev/mapper/{name}"),
            );
        }
        let at = self.bcache()?;
        await_that("bcache does not start the device", || {
            at.join("dev").exists()
        })?;
        for (key, value) in self.bcache_settings() {
            let file = at.join(key);
            fs::write(&file, value).with_context(|| file.display().to_string())?;
        }
        mark()?;
        let device = fs::canonicalize(at.join("dev"))?;
        let device = device
            .file_name()
            .context("bcache has no device")?
            .to_string_lossy();
        let table = format!("0 {} linear /dev/{device} 0", self.made_size()? / SECTOR);
        Device::new(self.top(), table, false).make()
    }

    /// Attributes in their order, as `Bcache.wanted`.
    pub fn bcache_settings(&self) -> [(&'static str, String); 7] {
        let spec = &self.disk.spec;
        [
            ("cache_mode", spec.mode.clone()),
            ("sequential_cutoff", spec.bypass.unwrap_or(0).to_string()),
            ("writeback_percent", "10".into()),
            ("writeback_delay", "1".into()),
            ("stop_when_cache_set_failed", "auto".into()),
            ("cache/congested_read_threshold_us", "0".into()),
            ("cache/congested_write_threshold_us", "0".into()),
        ]
    }

    fn empty_bcache(&self) -> Result<()> {
        run(&["modprobe", "bcache"])?;
        self.blank(&self.disk.cache)?;
        let cache = self.slice("cache", &self.disk.cache);
        cache.make()?;
        let path = format!("/dev/mapper/{}", cache.name);
        let words = self.make_bcache_words(&path)?;
        run(&words.iter().map(String::as_str).collect::<Vec<_>>()).map(drop)
    }

    fn make_bcache_words(&self, cache: &str) -> Result<Vec<String>> {
        let mut bucket = 512 * 1024;
        while self.disk.spec.cache / bucket < BUCKETS && bucket > 64 * 1024 {
            bucket /= 2;
        }
        let mut sector = 0;
        for device in [&*self.disk.origin, self.flash] {
            let said = run(&["blockdev", "--getss", text(device)?])?;
            sector = sector.max(said.trim().parse::<u64>().context("blockdev --getss")?);
        }
        let (bucket, sector) = (bucket.to_string(), sector.to_string());
        let words = [
            "make-bcache",
            "-C",
            "--bucket",
            &bucket,
            "--block",
            &sector,
            "--cset-uuid",
        ];
        let rest = [self.disk.identity.as_str(), cache];
        Ok(words
            .iter()
            .chain(&rest)
            .map(|word| (*word).to_owned())
            .collect())
    }

    fn stop_bcache(&self) -> Result<()> {
        let set = Path::new(BCACHE).join(&self.disk.identity);
        for folder in [self.bcache()?, set] {
            let _ = fs::write(folder.join("stop"), "1");
            let words = format!("bcache does not stop: {} is still there", folder.display());
            await_that(&words, || !folder.exists())?;
        }
        Ok(())
    }

    fn blank(&self, parts: &[Part]) -> Result<()> {
        let flash = Medium::open(self.flash, true)?;
        let at = parts.first().context("no parts")?.start;
        flash
            .write(at, &vec![0; MIB as usize])
            .context("the flash cannot be written")
    }

    /// A disk whose engine was never installed has none.
    fn engine_says(&self, verb: &str) -> Result<bool> {
        let script = self.engine_script();
        Ok(Path::new(&script).exists() && asks(&["sh", &script, verb])?)
    }

    fn engine(&self, verb: &str) -> Result<()> {
        run(&["sh", &self.engine_script(), verb]).map(drop)
    }

    /// As `Userspace.format_argv`: only a flash that says so has the engine begin a new cache. What it
    /// held is noted for it, to be fetched again.
    fn empty_engine(&self) -> Result<String> {
        let script = fs::read_to_string(self.engine_script()).context("the engine's script")?;
        let program = program_of(&script).context("the engine's script starts none")?;
        let format = format!("{program} format \"$@\"");
        let parts: Vec<String> = self.disk.metadata.iter().map(part_text).collect();
        let mut words = vec![
            "sh",
            "-c",
            &format,
            "hotset-format",
            "--flash",
            text(self.flash)?,
        ];
        words.extend(
            parts
                .iter()
                .flat_map(|part| ["--flash-part", part.as_str()]),
        );
        let (refill, id) = (self.refill(), self.disk.identity.replace('-', ""));
        if starts_with_refill(&script) {
            words.extend(["--refill", &refill, "--origin-id", &id]);
        }
        Ok(run(&words)?.trim().into())
    }

    /// Where it is noted what the cache held before it was emptied.
    fn refill(&self) -> String {
        format!("{ENGINE_SCRIPTS}/{}.refill", self.disk.name)
    }

    fn engine_script(&self) -> String {
        format!("{ENGINE_SCRIPTS}/{}.sh", self.disk.name)
    }

    /// The volume, and the engine's command as the label has the disk: the script may be of before
    /// a change.
    fn prepare_engine(&self) -> Result<()> {
        let _ = run(&["modprobe", "-a", "fuse", "loop"]);
        for part in &self.card.volume {
            let name = format!("/dev/hotset/{}", self.card.volume_name());
            let (start, size) = (part.start.to_string(), part.size.to_string());
            let words = [&name, text(self.flash)?, &start, &size];
            run(&[
                &["sh", "-c", include_str!("attach.sh"), "hotset-loop"][..],
                &words,
            ]
            .concat())?;
        }
        let file = self.engine_script();
        let script = fs::read_to_string(&file)
            .with_context(|| format!("{file}: hotset tier activate {}", self.disk.name))?;
        let mut words = self.engine_words()?;
        if !starts_with_refill(&script) {
            words.truncate(words.len() - REFILL_WORDS);
        }
        let renewed = with_command(&script, &words).with_context(|| {
            format!(
                "{file} starts no engine: hotset tier activate {}",
                self.disk.name
            )
        })?;
        if renewed != script {
            durable::write(Path::new(&file), renewed.as_bytes())?;
        }
        Ok(())
    }

    /// Whether the engine takes its metadata: a cache that is refused stays on record as it was left,
    /// so that of a clean one it is still known that nothing is lost with it.
    fn check_engine(&self) -> Result<()> {
        // One of before cannot look without starting it.
        if self.knows("check") {
            self.engine("check")?;
        }
        Ok(())
    }

    /// Whether the engine's script has a word; it may be an earlier hotset's.
    fn knows(&self, verb: &str) -> bool {
        let script = fs::read_to_string(self.engine_script()).unwrap_or_default();
        script.contains(&format!("\n{verb}() {{"))
    }

    /// As `Userspace.engine_words`.
    pub fn engine_words(&self) -> Result<Vec<String>> {
        let (disk, spec) = (self.disk, &self.disk.spec);
        let mut words = vec!["tier".to_owned()];
        let mut option = |name: &str, value: &str| words.extend([name.into(), value.into()]);
        option("--origin", text(&disk.origin)?);
        option("--origin-id", &disk.identity.replace('-', ""));
        option(
            "--given-up",
            &format!("/etc/hotset/given-up/{}", disk.identity),
        );
        option("--flash", text(self.flash)?);
        for part in disk.metadata.iter().chain(&disk.cache) {
            option("--flash-part", &part_text(part));
        }
        for (name, size) in [
            ("--metadata", spec.metadata),
            ("--cache", spec.cache),
            ("--block", spec.block),
        ] {
            option(name, &size.to_string());
        }
        option("--policy", &spec.policy);
        option("--mode", &spec.mode);
        option(
            "--shares",
            &format!("{ENGINE_SCRIPTS}/{}.shares.json", disk.name),
        );
        // Last, as one of before has to be started without it: `prepare_engine`.
        option("--refill", &self.refill());
        Ok(words)
    }
}

fn part_text(part: &Part) -> String {
    format!("{}:{}", part.start, part.size)
}

/// The line of an engine's script that starts it: all of it, what is before `exec`, the program.
fn command_of(script: &str) -> Option<(&str, &str, &str)> {
    let line = script
        .lines()
        .find(|line| line.trim_start().starts_with("exec "))?;
    let (indent, rest) = line.split_once("exec ")?;
    Some((line, indent, rest.split_once(" tier ")?.0))
}

/// How many words of the engine's command have it fetch again what it held; the last ones.
const REFILL_WORDS: usize = 2;

/// Whether the program of an engine's script knows how to: this one may be newer than it.
fn starts_with_refill(script: &str) -> bool {
    command_of(script).is_some_and(|(line, _, _)| line.contains(" --refill "))
}

/// The program of an engine's script, as a shell takes it.
fn program_of(script: &str) -> Option<&str> {
    command_of(script).map(|(_, _, program)| program)
}

/// A script of the engine's with another command for it; the program stays. None: it has none.
fn with_command(script: &str, words: &[String]) -> Option<String> {
    let (line, indent, program) = command_of(script)?;
    let quoted: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let tail = "--mount \"$mount\" --control \"$folder/control\" \"$@\"";
    Some(script.replacen(
        line,
        &format!("{indent}exec {program} {} {tail}", quoted.join(" ")),
        1,
    ))
}

/// A word as a shell takes it (Python's shlex.quote).
fn quoted(word: &str) -> String {
    let is_plain = |one: char| one.is_ascii_alphanumeric() || "_@%+=:,./-".contains(one);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into();
    }
    format!("'{}'", word.replace('\'', "'\"'\"'"))
}

/// Parts of the flash one behind the other.
fn linear(flash: &Path, parts: &[Part]) -> String {
    let (mut lines, mut at) = (Vec::new(), 0);
    for part in parts {
        let (length, start) = (part.size / SECTOR, part.start / SECTOR);
        lines.push(format!("{at} {length} linear {} {start}", flash.display()));
        at += length;
    }
    lines.join("\n")
}

fn remove<const N: usize>(names: [String; N]) -> Result<()> {
    for name in names {
        if asks(&["dmsetup", "info", &name])? {
            run(&["dmsetup", "remove", "--retry", &name]).map_err(|error| {
                let busy = error.to_string().contains("busy");
                let device = Path::new("/dev/mapper").join(&name);
                if busy {
                    InUse::still(&device).into()
                } else {
                    error
                }
            })?;
        }
    }
    Ok(())
}

fn await_that(otherwise: &str, ready: impl Fn() -> bool) -> Result<()> {
    let since = Instant::now();
    while !ready() {
        if since.elapsed() > Duration::from_secs(30) {
            bail!("{otherwise}");
        }
        sleep(Duration::from_millis(100));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engines_command_follows_the_label_and_its_program_stays() {
        let script = "run() {\n    exec '/a b/flashdev' tier --mode writethrough --mount \"$mount\" \
                      --control \"$folder/control\" \"$@\"\n}\n";
        let words = ["tier", "--mode", "writeback", "--origin", "/srv/it's"].map(String::from);
        let renewed = with_command(script, &words).unwrap();
        assert_eq!(
            renewed,
            "run() {\n    exec '/a b/flashdev' tier --mode writeback --origin '/srv/it'\"'\"'s' \
             --mount \"$mount\" --control \"$folder/control\" \"$@\"\n}\n"
        );
        assert_eq!(with_command("true\n", &words), None);
    }

    #[test]
    fn an_engine_of_before_refills_is_known_by_its_script() {
        let script =
            |words: &str| format!("run() {{\n    exec /a/flashdev tier {words} \"$@\"\n}}\n");
        assert!(starts_with_refill(&script(
            "--refill /etc/x --mount \"$mount\""
        )));
        assert!(!starts_with_refill(&script(
            "--shares /etc/x.refill --mount \"$mount\""
        )));
        assert!(!starts_with_refill("# exec --refill is no command\ntrue\n"));
    }
}
