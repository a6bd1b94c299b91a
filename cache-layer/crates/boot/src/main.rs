//! `hotset-boot`: brings an accelerated disk up and takes it down, without hotset.
//!
//! All that it knows of a disk it reads from the label and the record on its flash. The unit at
//! boot calls it, and so does `hotset tier activate`: what may be used is decided here alone
//! ([`decide`]).

mod boots;
mod computer;
mod decide;
mod devices;
mod flash_device;
mod host;
mod label;
mod lock;
mod media;
mod origin;
mod run;
mod structures;
mod users;
mod writes;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand, ValueEnum};

use computer::Computer;
use decide::{Action, Facts, Reason, Verdict, decide};
use devices::{Place, Tier, Volume};
use flash_device::{Disk, FlashDevice, Kind};
use label::{Record, Word};
use media::Medium;
use run::{Cause, cause, run, text};
use users::Who;

/// Brings an accelerated disk up at boot.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Args)]
struct Which {
    /// The flash device that has the disk.
    #[arg(long)]
    flash: PathBuf,
    /// The disk's name.
    disk: String,
}

#[derive(Subcommand)]
enum Verb {
    /// Make the disk's devices, if that may be.
    Start(Which),
    /// Take the disk's devices down and put down how it was left.
    Stop {
        #[command(flatten)]
        which: Which,
        /// Whoever calls has the disk's lock.
        #[arg(long)]
        held: bool,
    },
    /// Say whether a disk that is down may come up, and with what cache, as JSON.
    Decide(Which),
    /// Put down how a disk was left, and what its origin looks like.
    Mark {
        #[command(flatten)]
        which: Which,
        #[arg(value_enum)]
        word: Left,
    },
    /// Say who uses a device on the whole computer, in words; nothing if nobody does.
    Users {
        device: PathBuf,
        #[arg(long, value_enum, default_value_t = Who::All)]
        who: Who,
    },
    /// Put down that this computer was started.
    Boot,
    /// Print the UUID of what lies on an origin; nothing if that is not known.
    Content { origin: PathBuf },
    /// Wait for a device that udev may be about to name; fail if it is not there then.
    Await { device: PathBuf },
    /// Print whether a disk is the one that is known, as JSON, out of a JSON of both.
    Compare,
    /// Print a number that grows with every write to a device in this boot, or of when a file was
    /// written to; "uncounted" where the kernel does not count.
    Writes { device: PathBuf },
    /// Work on the devices of a tier that standard input describes as JSON, whatever a label says.
    /// Whoever calls has the disk's lock.
    Devices {
        #[arg(value_enum)]
        action: devices::Action,
        /// Print the commands for it instead, a JSON each; standard input has "facts" for that.
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Left {
    Active,
    Dirty,
    Clean,
    /// It was active, and what serves it ended while the computer went on.
    Ended,
    /// It had ended, and is served again.
    Resumed,
    /// It was taken down in order, and the origin has all.
    Flushed,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let (name, done) = match &arguments.verb {
        Verb::Start(which) => (which.disk.as_str(), start(which)),
        Verb::Stop { which, held } => (which.disk.as_str(), stop(which, *held)),
        Verb::Decide(which) => (which.disk.as_str(), show(which)),
        Verb::Mark { which, word } => (which.disk.as_str(), mark(which, *word)),
        Verb::Users { device, who } => ("", users_of(device, *who)),
        Verb::Boot => ("", boots::note()),
        Verb::Content { origin } => ("", content(origin)),
        Verb::Await { device } => ("", origin::require_there(device)),
        Verb::Compare => ("", compare()),
        Verb::Writes { device } => ("", writes_to(device)),
        Verb::Devices { action, dry_run } => ("", work_on_devices(*action, *dry_run)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let space = if name.is_empty() { "" } else { " " };
            eprintln!("hotset{space}{name}: {error:#}");
            ExitCode::from(cause(&error).unwrap_or(Cause::Failed) as u8)
        }
    }
}

/// Prints a line, for whoever still reads.
fn say(line: impl std::fmt::Display) -> io::Result<()> {
    writeln!(io::stdout(), "{line}")
}

/// A disk as the label has it.
struct Target {
    path: PathBuf,
    medium: Medium,
    flash: FlashDevice,
    which: Disk,
    kind: Kind,
}

impl Target {
    fn read(which: &Which) -> Result<Self> {
        let medium = Medium::open(&which.flash, true)?;
        let flash = FlashDevice::parse(&label::read(&medium, &which.flash)?)?;
        let Some(disk) = flash.disk(&which.disk).cloned() else {
            bail!(
                "{} has no disk of that name by its label",
                which.flash.display()
            );
        };
        Ok(Self {
            path: which.flash.clone(),
            medium,
            kind: disk.kind()?,
            which: disk,
            flash,
        })
    }

    fn tier(&self) -> Tier {
        let disk = self.which.clone();
        let volume = Volume {
            name: self.flash.volume_name(self.kind),
            parts: self.flash.volume.clone(),
        };
        Tier {
            kind: self.kind,
            identity: disk.identity,
            spec: disk.spec,
            place: Place {
                name: disk.name,
                flash: self.path.clone(),
                origin: disk.origin,
                metadata: disk.metadata,
                cache: disk.cache,
                volume,
            },
            engine_program: None,
            own_program: None,
            computer: Computer::Here,
        }
    }

    /// What is known before its origin is looked at: that is clean, as far as this goes.
    fn seen_from_afar(&self) -> Result<Facts> {
        let disk = &self.which;
        let identity = match &disk.origin_id {
            // The origin of one that is unfinished may be gone.
            Some(known) if disk.phase == "ready" => {
                origin::compare_ids(known, &origin::identify(&disk.origin)?)
            }
            _ => origin::Identity::Nameless,
        };
        Ok(Facts {
            phase: disk.phase.clone(),
            writeback: false,
            identity,
            record: None,
            now: origin::Seen::not_known(),
            between: None,
            came_back: false,
        })
    }

    /// How it was left, and what is known now.
    fn facts(&self) -> Result<Facts> {
        let disk = &self.which;
        let afar = self.seen_from_afar()?;
        if disk.phase != "ready" {
            return Ok(afar);
        }
        let record = label::read_record(&self.medium, disk.record, disk.key())?;
        let before = record.as_ref().map(|record| &record.seen);
        // Of one that ended by a crash the superblocks may have been written back.
        let is_down = record
            .as_ref()
            .is_some_and(|record| record.word != Word::Active);
        let regions = before
            .filter(|_| is_down)
            .map(|seen| seen.regions.as_slice());
        let now = origin::see(&disk.origin, regions)?;
        let between = before.and_then(|seen| boots::between(&seen.boot));
        Ok(Facts {
            writeback: disk.is_writeback() && !self.is_known_clean(record.as_ref())?,
            record,
            now,
            between,
            came_back: origin::came_back(&disk.name),
            ..afar
        })
    }

    /// A bcache that was clean may have gone on without its cache, which then is no more than what
    /// one that was not taken down in order has of write-through.
    fn is_known_clean(&self, record: Option<&Record>) -> Result<bool> {
        let in_order = record.is_some_and(|one| matches!(one.word, Word::Dirty | Word::Clean));
        Ok(!in_order && self.tier().is_clean_bcache()?)
    }

    fn decide(&self) -> Result<Verdict> {
        Ok(decide(&self.facts()?))
    }

    fn require_ours(&self) -> Result<()> {
        let Some(here) = host::id() else {
            bail!("this computer has no id (/etc/machine-id)")
        };
        let hardware = &self.flash.hardware;
        if self.flash.host != here || !(hardware.is_empty() || *hardware == host::hardware()) {
            bail!(
                "{} is not this machine's any more, it belongs to {} by its label: hotset tier scan",
                self.path.display(),
                self.flash.host_name
            );
        }
        Ok(())
    }

    /// Put down what became of one that was active: its origin was last seen before.
    fn turn(&self, from: Word, to: Word) -> Result<()> {
        let (disk, now) = (&self.which, boots::boot_id());
        let record = label::read_record(&self.medium, disk.record, disk.key())?;
        let Some(record) = record.filter(|record| record.word == from) else {
            return Ok(());
        };
        let seen = record.seen;
        // That of an earlier boot ended with the computer.
        if !seen.boot.is_empty() && seen.boot != now {
            return Ok(());
        }
        label::write_record(&self.medium, disk.record, disk.key(), to, &seen)
    }

    /// What is left of one that ended goes; nobody knows since when it has, nor who wrote to its
    /// origin.
    fn clear_away(&self) -> Result<()> {
        let tier = self.tier();
        if tier.is_active()? {
            self.turn(Word::Active, Word::Ended)?;
        } else if tier.kind == Kind::Userspace {
            return Ok(());
        }
        tier.remove()
    }

    fn mark(&self, word: Word) -> Result<()> {
        let disk = &self.which;
        // An origin that is gone or fails: nobody knows what it has.
        let mut seen =
            origin::see(&disk.origin, None).unwrap_or_else(|_| origin::Seen::not_known());
        seen.is_last = boots::is_ending();
        label::write_record(&self.medium, disk.record, disk.key(), word, &seen)
    }

    fn reservation(&self, verb: &str) -> Result<()> {
        if !self.which.reserve {
            return Ok(());
        }
        let key = host::reservation_key(&self.flash.host, &host::hardware());
        let former = host::reservation_key(&self.flash.host, "");
        let origin = text(&self.which.origin)?;
        run(&[
            "sh",
            "-c",
            include_str!("reserve.sh"),
            "hotset-reserve",
            verb,
            &key,
            origin,
            &former,
        ])
        .map(drop)
    }
}

fn start(which: &Which) -> Result<()> {
    // A root disk that cannot be written yet is no reason to stay down.
    let _ = boots::note();
    let target = Target::read(which)?;
    // Of `hotset`, which has the lock and starts the unit of the disk that it has just activated.
    if target.tier().is_served()? {
        return Ok(());
    }
    let _lock = lock::take(&which.disk)?;
    // Again, as whoever had the lock may have changed it.
    let target = if target.tier().is_served()? {
        return Ok(());
    } else {
        Target::read(which)?
    };
    target.require_ours()?;
    target.clear_away()?;
    let (tier, origin) = (target.tier(), target.which.origin.display());
    // Nobody else writes to it any more once it is looked at; another disk is not reserved.
    refuse(&decide(&target.seen_from_afar()?), &target.which)?;
    users::none(&target.which.origin, Who::Writers)?;
    if target.reservation("take").is_err() {
        bail!(
            "another host holds a reservation on {origin}: hotset tier activate {}",
            which.disk
        );
    }
    let verdict = target.decide()?;
    if let Err(error) = refuse(&verdict, &target.which) {
        target.reservation("give-back")?;
        return Err(error);
    }
    if verdict.action == Action::Empty {
        let disk = &which.disk;
        // No disk stays down because nobody reads this.
        let _ = say(format_args!(
            "hotset {disk}: the cache begins empty: {origin}: {}",
            verdict.why
        ));
        let emptied = tier.empty()?;
        let _ = say(format_args!("hotset {disk}: {emptied}"));
    }
    bring_up(&target, &tier)
}

/// It is on record as active before anybody can write, and only once its metadata can be used.
fn bring_up(target: &Target, tier: &Tier) -> Result<()> {
    let (medium, disk) = (&target.medium, &target.which);
    let kept = label::read_record(medium, disk.record, disk.key())?;
    let done = tier.open().and_then(|()| {
        target.mark(Word::Active)?;
        tier.make()
    });
    let Err(error) = done else { return Ok(()) };
    if cause(&error) != Some(Cause::Damaged) {
        return Err(error);
    }
    if let Some(record) = kept {
        // It was never active: what is known of it still holds.
        label::write_record(medium, disk.record, disk.key(), record.word, &record.seen)?;
    }
    let name = &disk.name;
    Err(error.context(format!(
        "the metadata are damaged: hotset tier repair {name}"
    )))
}

/// Why a disk stays down, and both ways out.
fn refuse(verdict: &Verdict, disk: &Disk) -> Result<()> {
    let (origin, name) = (disk.origin.display(), &disk.name);
    match verdict.reason {
        Reason::None => Ok(()),
        Reason::Unfinished => bail!("{}", verdict.why),
        Reason::Identity => bail!("{origin} {}: hotset tier status", verdict.why),
        Reason::Conflict => bail!(
            "{origin}: {}, and the flash may hold writes that it lacks. `hotset tier activate {name}` \
             looks closer; keep what the flash holds: `hotset tier activate {name} --keep-flash`, \
             which overwrites what was written to the origin meanwhile; keep the origin: `hotset \
             tier detach {name} --flash-is-dead --yes`, which loses those writes",
            verdict.why
        ),
    }
}

fn stop(which: &Which, held: bool) -> Result<()> {
    // `hotset` takes the disk's unit away and has the lock: it takes down what is to go down. When
    // it does so itself, that is long over: another disk may have the name since.
    let removing = format!("/run/hotset/removing-{}", which.disk);
    if !held && Path::new(&removing).exists() {
        return Ok(());
    }
    let _lock = if held {
        None
    } else {
        Some(lock::take(&which.disk)?)
    };
    let target = match Target::read(which) {
        Ok(target) => target,
        // Nothing of it is left to be taken down.
        Err(_) if !stands(&which.disk) => return Ok(()),
        Err(error) => return Err(error),
    };
    let tier = target.tier();
    tier.require_unserved()?;
    let is_served = tier.is_served()?;
    if !is_served {
        // Nobody knows since when, nor who wrote to its origin.
        target.turn(Word::Active, Word::Ended)?;
    }
    if !tier.is_active()? {
        return Ok(());
    }
    users::none(&tier.path(), Who::All)?;
    if is_served && tier.kind == Kind::Userspace {
        // First of all nobody can write to it any more: what has been answered until then, the
        // flash has. What the device mapper takes away, nobody has open.
        users::shut(&tier.path())?;
    }
    tier.end()?;
    if is_served {
        target.mark(if target.which.is_writeback() {
            Word::Dirty
        } else {
            Word::Clean
        })?;
    }
    // Last: who has one open, such as a tool that looks into every device, has nothing of the disk.
    tier.remove_parts()?;
    target
        .reservation("give-back")
        .context("the reservation cannot be given back")
}

fn stands(disk: &str) -> bool {
    Path::new("/dev/hotset").join(disk).exists()
        || Path::new("/dev/mapper")
            .join(format!("hotset-{disk}"))
            .exists()
}

fn show(which: &Which) -> Result<()> {
    Ok(say(serde_json::to_string(
        &Target::read(which)?.decide()?,
    )?)?)
}

fn mark(which: &Which, word: Left) -> Result<()> {
    let _ = boots::note();
    let target = Target::read(which)?;
    match word {
        Left::Active => target.mark(Word::Active),
        Left::Dirty => target.mark(Word::Dirty),
        Left::Clean => target.mark(Word::Clean),
        Left::Ended => target.turn(Word::Active, Word::Ended),
        Left::Resumed => target.turn(Word::Ended, Word::Active),
        Left::Flushed => target.turn(Word::Dirty, Word::Clean),
    }
}

fn users_of(device: &Path, who: Who) -> Result<()> {
    match users::none(device, who) {
        Err(error) if cause(&error) == Some(Cause::InUse) => Ok(say(error)?),
        done => done,
    }
}

fn content(origin: &Path) -> Result<()> {
    let contents = structures::find(&Medium::open(origin, false)?)?;
    Ok(say(contents.content)?)
}

fn compare() -> Result<()> {
    #[derive(serde::Deserialize)]
    struct Both {
        known: flash_device::OriginId,
        now: flash_device::OriginId,
    }
    let both: Both = serde_json::from_reader(io::stdin()).context("standard input is no JSON")?;
    let (answer, why) = match origin::compare_ids(&both.known, &both.now) {
        origin::Identity::Same => ("same", String::new()),
        origin::Identity::Other(why) => ("other", why),
        origin::Identity::Unknown(why) => ("unknown", why),
        origin::Identity::Nameless => {
            let words = "no World Wide Name, serial number or UUID of it is known";
            ("unknown", words.into())
        }
    };
    Ok(say(serde_json::json!({"answer": answer, "why": why}))?)
}

fn writes_to(device: &Path) -> Result<()> {
    Ok(match origin::written(device)? {
        Some(count) => say(count),
        None => say("uncounted"),
    }?)
}

fn work_on_devices(action: devices::Action, dry_run: bool) -> Result<()> {
    #[derive(serde::Deserialize)]
    struct Request {
        #[serde(flatten)]
        tier: Tier,
        facts: Option<computer::Facts>,
    }
    let request: Request =
        serde_json::from_reader(io::stdin()).context("standard input describes no tier")?;
    let mut tier = request.tier;
    if dry_run {
        let facts = request.facts.context("a dry run needs facts")?;
        tier.computer = Computer::Shown(facts.into());
    }
    let answer = tier.perform(action)?;
    if dry_run {
        say(serde_json::json!({"answer": answer}))?;
    } else if !answer.is_empty() {
        say(answer)?;
    }
    Ok(())
}
