//! The devices of a tier: made, emptied, changed and taken down. Nothing else makes them: `hotset`
//! calls this program for it, and so does the unit at boot.
//!
//! The order is the same for every kind. [`Tier::open`] makes what lies below and sees that the
//! metadata can be used; only then the disk is put on record as active; [`Tier::make`] makes the
//! accelerated device, to which somebody can write.

mod bcache;
mod dm_cache;
mod engine;

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::ValueEnum;
use serde::Deserialize;

use crate::computer::Computer;
use crate::flash_device::{Kind, Part, Spec};
use crate::run::{run, text};
use crate::users::still_in_use;

const SECTOR: u64 = 512;
const MIB: u64 = 1024 * 1024;
const STAYS_COLD: &str = "nothing of it is fetched again by itself: a warm-up fills it";
const MAPPER: &str = "/dev/mapper";
const LOOPS: &str = "/dev/hotset";

/// The volume of a flash, which all its disks share.
#[derive(Clone, Debug, Deserialize)]
pub struct Volume {
    pub name: String,
    pub parts: Vec<Part>,
}

/// Where a tier lies: its name, its two devices, and its parts of the flash.
#[derive(Clone, Debug, Deserialize)]
pub struct Place {
    pub name: String,
    pub flash: PathBuf,
    pub origin: PathBuf,
    pub metadata: Vec<Part>,
    pub cache: Vec<Part>,
    pub volume: Volume,
}

/// The tier of a disk, as its label has it or as `hotset` describes it.
#[derive(Clone, Debug, Deserialize)]
pub struct Tier {
    pub kind: Kind,
    pub identity: String,
    pub spec: Spec,
    pub place: Place,
    /// The engine's program, and this very one, on the computer; None at boot.
    #[serde(default)]
    pub engine_program: Option<String>,
    #[serde(default)]
    pub own_program: Option<String>,
    #[serde(skip)]
    pub computer: Computer,
}

/// What is done with the devices of a tier.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Action {
    /// Make what lies below the accelerated device, whatever its metadata are.
    Parts,
    /// The same, and see that its metadata can be used; say how large an engine's cache is, in
    /// bytes, where that is not as it is described.
    Open,
    /// Make the accelerated device.
    Make,
    /// Begin an empty cache while the accelerated device is not there; say what becomes of it.
    Empty,
    /// See that nobody has what an engine serves, by whatever name.
    Unserved,
    /// Take all down; what is cached stays.
    Remove,
    /// Have the active device be as it is described, but for its sizes.
    Reload,
    /// Take in an origin that has grown.
    FollowOrigin,
    /// Take in a cache of another size; of bcache a new one.
    FollowCache,
    /// Take away a cache that its bcache was detached from.
    DropCache,
    /// Write what starts an engine, as it is described.
    Install,
    /// Remove that.
    Uninstall,
    /// Say what starts an engine.
    Script,
    /// Say which cache an engine is of: its options as a JSON list.
    CacheOptions,
    /// Say "yes" if a bcache that is down may hold writes that its origin lacks, else "no".
    MayBeDirty,
}

impl Tier {
    /// Do what is asked for; what is to be said of it.
    pub fn perform(&self, action: Action) -> Result<String> {
        let kind = self.kind;
        match action {
            Action::Reload | Action::FollowOrigin if kind == Kind::DmCache => {
                self.reload_dm_cache()
            }
            Action::FollowCache if kind == Kind::DmCache => self.follow_dm_cache(),
            Action::Reload if kind == Kind::Bcache => self.tune_bcache(),
            Action::FollowOrigin if kind == Kind::Bcache => self.follow_bcache_origin(),
            Action::FollowCache if kind == Kind::Bcache => self.follow_bcache_cache(),
            Action::Reload | Action::FollowOrigin | Action::FollowCache => {
                bail!("an engine is told of a change by its control socket")
            }
            Action::Parts => self.make_parts(),
            Action::Open if kind == Kind::Userspace => {
                let size = self.open_engine()?;
                return Ok(size.map_or_else(String::new, |size| size.to_string()));
            }
            Action::Open => self.open(),
            Action::Make => self.make(),
            Action::Empty => return self.empty(),
            Action::Unserved => self.require_unserved(),
            Action::Remove => self.remove(),
            Action::DropCache => self.drop_cache_set(),
            Action::Install => self.install_engine(),
            Action::Uninstall => self.uninstall_engine(),
            Action::Script => return self.engine_script(),
            Action::CacheOptions => return Ok(serde_json::to_string(&self.cache_options()?)?),
            Action::MayBeDirty => {
                let dirty = self.bcache_may_be_dirty()?;
                return Ok(if dirty { "yes" } else { "no" }.into());
            }
        }
        .map(|()| String::new())
    }

    /// Make what lies below the accelerated device, and see that its metadata can be used.
    ///
    /// # Errors
    /// [`Cause::Damaged`]: they cannot.
    pub fn open(&self) -> Result<()> {
        match self.kind {
            Kind::DmCache => self.open_dm_cache(),
            Kind::Bcache => self.open_bcache(),
            Kind::Userspace => self.open_engine().map(drop),
        }
    }

    /// Make the accelerated device of a tier that is open.
    pub fn make(&self) -> Result<()> {
        match self.kind {
            Kind::DmCache => self.make_dm_cache(),
            Kind::Bcache => self.make_bcache(),
            Kind::Userspace => self.start_engine(),
        }
    }

    /// Forget what is cached; what becomes of it, in words.
    pub fn empty(&self) -> Result<String> {
        if self.is_active()? {
            bail!("{} is active", self.path().display());
        }
        match self.kind {
            Kind::DmCache => self.empty_dm_cache().map(|()| STAYS_COLD.into()),
            Kind::Bcache => self.empty_bcache().map(|()| STAYS_COLD.into()),
            Kind::Userspace => self.empty_engine(),
        }
    }

    /// Take it down; what is cached stays.
    ///
    /// # Errors
    /// [`Cause::InUse`]: somebody has the accelerated device, or a part of it.
    pub fn remove(&self) -> Result<()> {
        self.end()?;
        self.remove_parts()
    }

    /// Have nobody write to the origin any more; the kernel's parts are there still.
    ///
    /// # Errors
    /// [`Cause::InUse`]: somebody has the accelerated device.
    pub fn end(&self) -> Result<()> {
        match self.kind {
            Kind::DmCache => self.remove_devices(&[""]),
            Kind::Bcache => self.remove_devices(&[""]).and_then(|()| self.stop_bcache()),
            Kind::Userspace => self.stop_engine(),
        }
    }

    /// Remove the parts of one that has ended.
    pub fn remove_parts(&self) -> Result<()> {
        match self.kind {
            Kind::DmCache => self.remove_devices(&["-meta", "-cache"]),
            Kind::Bcache => self.remove_devices(&["-backing", "-cache"]),
            Kind::Userspace => Ok(()),
        }
    }

    fn make_parts(&self) -> Result<()> {
        match self.kind {
            Kind::DmCache => self.make_dm_cache_parts(),
            Kind::Bcache => self.make_bcache_parts(),
            Kind::Userspace => self.make_loop_volume(),
        }
    }

    /// Whether the accelerated device is there. An error is no answer: what is not known to be
    /// there is not taken for gone.
    pub fn is_active(&self) -> Result<bool> {
        match self.kind {
            Kind::Userspace => self.engine_answers("attached"),
            Kind::DmCache | Kind::Bcache => self.computer.has(&self.name("")),
        }
    }

    /// Whether it is active, and its cache is at work; dm-cache always is.
    pub fn is_served(&self) -> Result<bool> {
        if !self.is_active()? {
            return Ok(false);
        }
        match self.kind {
            Kind::DmCache => Ok(true),
            Kind::Bcache => Ok(!self.goes_without_cache()?),
            Kind::Userspace => self.engine_answers("alive"),
        }
    }

    /// The accelerated device.
    pub fn path(&self) -> PathBuf {
        match self.kind {
            Kind::Userspace => Path::new(LOOPS).join(&self.place.name),
            Kind::DmCache | Kind::Bcache => Path::new(MAPPER).join(self.name("")),
        }
    }

    /// The name of the accelerated device, or of one of its parts by its ending.
    fn name(&self, ending: &str) -> String {
        format!("hotset-{}{ending}", self.place.name)
    }

    fn mapped(&self, ending: &str) -> String {
        format!("{MAPPER}/{}", self.name(ending))
    }

    fn origin_sectors(&self) -> Result<u64> {
        Ok(self.computer.size(&self.place.origin)? / SECTOR)
    }

    fn flash_table(&self, parts: &[Part]) -> String {
        linear(&self.place.flash, parts)
    }

    /// The disks on one flash device share it.
    fn make_volume(&self) -> Result<()> {
        let Volume { name, parts } = &self.place.volume;
        if parts.is_empty() {
            return Ok(());
        }
        let table = self.flash_table(parts);
        // That of a flash which was given up may be there still.
        if self.computer.has(name)? && !self.is_of_flash(name, &table)? {
            self.remove_device(name)?;
        }
        self.make_device(name, false, &table)
    }

    /// Whether a device has a table, of which the kernel tells the flash by its numbers.
    fn is_of_flash(&self, name: &str, table: &str) -> Result<bool> {
        if !self.computer.is_here() {
            return Ok(true);
        }
        let (flash, number) = (
            text(&self.place.flash)?,
            self.place.flash.metadata()?.rdev(),
        );
        let shown = format!("{}:{}", libc::major(number), libc::minor(number));
        Ok(run(&["dmsetup", "table", name])?.trim() == table.replace(flash, &shown))
    }

    /// A part of the tier's, which is nobody else's to look at.
    fn make_part(&self, ending: &str, table: &str) -> Result<()> {
        self.make_device(&self.name(ending), true, table)
    }

    fn make_top(&self, table: &str) -> Result<()> {
        self.make_device(&self.name(""), false, table)
    }

    /// One that is there stays: an activation that was cut short left it.
    fn make_device(&self, name: &str, private: bool, table: &str) -> Result<()> {
        if self.computer.has(name)? {
            return Ok(());
        }
        let mark = if private { "private-" } else { "" };
        let uuid = format!("HOTSET-{mark}{name}");
        let words = ["dmsetup", "create", name, "--uuid", &uuid];
        self.computer.feed(&words, table).map(drop)
    }

    /// Those of its devices that are there, by their endings and in this order.
    fn remove_devices(&self, endings: &[&str]) -> Result<()> {
        for ending in endings {
            let name = self.name(ending);
            if self.computer.has(&name)? {
                self.remove_device(&name)?;
            }
        }
        Ok(())
    }

    fn remove_device(&self, name: &str) -> Result<()> {
        let words = ["dmsetup", "remove", "--retry", name];
        let removed = self.computer.run(&words).map(drop);
        removed.map_err(|error| {
            if error.to_string().contains("busy") {
                still_in_use(&Path::new(MAPPER).join(name))
            } else {
                error
            }
        })
    }

    /// Give an active device another table; I/O waits for a moment. A table that the kernel refuses
    /// leaves the old one at work.
    fn swap(&self, ending: &str, table: &str) -> Result<()> {
        let (script, name) = (include_str!("swap.sh"), self.name(ending));
        let words = ["sh", "-c", script, "hotset-swap", &name];
        self.computer.feed(&words, table).map(drop)
    }

    /// Blank the first bytes of a part of the flash before there is a device of it, so that nothing
    /// old is found there: udev would register an old bcache as soon as the device is there.
    fn blank(&self, parts: &[Part]) -> Result<()> {
        let Some(first) = parts.first() else {
            bail!("the label gives it no part of the flash");
        };
        let (of, seek) = (
            format!("of={}", text(&self.place.flash)?),
            format!("seek={}", first.start / MIB),
        );
        let size = format!("bs={MIB}");
        let words = [
            "dd",
            "if=/dev/zero",
            &of,
            &size,
            "count=1",
            &seek,
            "oflag=direct",
            "conv=notrunc,fsync",
            "status=none",
        ];
        self.computer.run(&words).map(drop)
    }
}

/// Parts of the flash one behind the other, as the device mapper takes them.
fn linear(flash: &Path, parts: &[Part]) -> String {
    let (mut lines, mut at) = (Vec::new(), 0);
    for part in parts {
        let (length, start) = (part.size / SECTOR, part.start / SECTOR);
        lines.push(format!("{at} {length} linear {} {start}", flash.display()));
        at += length;
    }
    lines.join("\n")
}

fn wait_until(otherwise: &str, ready: impl Fn() -> bool) -> Result<()> {
    let since = Instant::now();
    while !ready() {
        if since.elapsed() > Duration::from_secs(30) {
            bail!("{otherwise}");
        }
        sleep(Duration::from_millis(100));
    }
    Ok(())
}
