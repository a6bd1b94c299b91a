//! Whether a disk that is down may come up, and with what cache: data in, verdict out.
//!
//! | how it was left | its origin since | write-through, or nothing dirty | dirty, or a crash in write-back |
//! |---|---|---|---|
//! | known | same | as it is | as it is |
//! | known | changed | empty | refused |
//! | known | unknown | empty | as it is if it was taken down as the computer went down, nobody wrote since it started and no start lies between, else refused |
//! | crash | no write in this boot, which is the next one, and the origin was there all the time | empty | as it is |
//! | crash | written to in this boot | empty | refused |
//! | crash | starts lie between, or nobody counted them, or the writes | empty | refused |
//! | crash, and the computer went on | not untouched by the kernel's count in the same boot | empty | refused |
//! | not known | | empty | refused |
//!
//! A bcache whose superblock says that it is clean is as one in write-through after a crash: the
//! kernel has it go on without its cache as the flash fails, which that flash is not told.
//!
//! An origin of which nothing proves that it is the disk that was accelerated is as one that nobody
//! knows; one that is proved to be another is refused always.

use serde::Serialize;

use crate::label::{Record, Word};
use crate::origin::{Identity, Seen};

/// What is known when a disk is to come up.
#[derive(Clone, Debug)]
pub struct Facts {
    pub phase: String,
    pub writeback: bool,
    pub identity: Identity,
    pub record: Option<Record>,
    pub now: Seen,
    /// Starts of the computer between the record's and this one; None: nobody counted.
    pub between: Option<usize>,
    /// Its origin went away in this boot and came back: what was written before is not counted.
    pub came_back: bool,
}

/// Whether an origin is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    Same,
    Changed,
    Unknown,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// With what is cached.
    Start,
    /// With an empty cache.
    Empty,
    /// Not at all.
    Refuse,
}

/// Why a disk stays down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// Its creation or its end was cut short.
    Unfinished,
    /// Its origin's name leads to another disk, or nobody knows to which.
    Identity,
    /// Its flash holds writes that the origin lacks, and somebody wrote to the origin, or may have.
    Conflict,
    None,
}

/// What is to be done and why, in words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    pub action: Action,
    pub reason: Reason,
    pub origin: Answer,
    pub why: String,
}

type Finding = (Answer, String);

const UNCOUNTED: &str = "nobody knows whether it was written to since, as the kernel does not count \
                         that (its queue/iostats is 0)";

/// The decision. Nothing else decides it.
pub fn decide(facts: &Facts) -> Verdict {
    let refuse = |reason, origin, why: String| Verdict {
        action: Action::Refuse,
        reason,
        origin,
        why,
    };
    if let Some(why) = unfinished(&facts.phase) {
        return refuse(Reason::Unfinished, Answer::Unknown, why);
    }
    let left = facts.record.as_ref();
    let before = left.map(|record| &record.seen);
    let identity = identity(&facts.identity, before, &facts.now);
    match &identity {
        Identity::Other(why) => {
            let words = "is another disk than the one that was accelerated";
            return refuse(Reason::Identity, Answer::Changed, format!("{words}: {why}"));
        }
        Identity::Unknown(why) => {
            let words = "may be another disk than the one that was accelerated";
            return refuse(Reason::Identity, Answer::Unknown, format!("{words}: {why}"));
        }
        Identity::Same | Identity::Nameless => {}
    }
    let may_be_dirty = facts.writeback && left.is_none_or(|record| record.word != Word::Clean);
    let (origin, why) = match (since(facts), &identity) {
        ((Answer::Same, _), Identity::Nameless) => (Answer::Unknown, not_proved(may_be_dirty)),
        (identity, _) => identity,
    };
    let action = match (origin, may_be_dirty) {
        (Answer::Same, _) => Action::Start,
        (_, false) => Action::Empty,
        (_, true) => Action::Refuse,
    };
    let reason = if action == Action::Refuse {
        Reason::Conflict
    } else {
        Reason::None
    };
    Verdict {
        action,
        reason,
        origin,
        why,
    }
}

/// What ends the phase that a disk is in, in words; None of one that is ready.
fn unfinished(phase: &str) -> Option<String> {
    match phase {
        "ready" => None,
        "creating" => Some("its creation was cut short: create it again, which starts over".into()),
        "detaching" => Some("its detach was cut short: detach it again, which ends it".into()),
        other => Some(format!(
            "its phase is {other:?}, which this hotset-boot does not know"
        )),
    }
}

/// Which disk it is. One without a number of its own is known by what lies on it, a file by its
/// inode and when it was made, and a device that was there all the time by the kernel's number of
/// it.
fn identity(by_numbers: &Identity, before: Option<&Seen>, now: &Seen) -> Identity {
    let Some(before) = before.filter(|_| *by_numbers == Identity::Nameless) else {
        return by_numbers.clone();
    };
    let same_file = same_file(before, now);
    if same_file == Some(true) || (same_boot(before, now) && stayed(before, now)) {
        return Identity::Same;
    }
    let (had, has) = (&before.content, &now.content);
    // A file of its own with the same on it is a copy, of whenever.
    if had.is_empty() || (had == has && same_file == Some(false)) {
        return Identity::Nameless;
    }
    if had == has {
        return Identity::Same;
    }
    let has = if has.is_empty() { "none" } else { has };
    Identity::Other(format!("what lies on it had the UUID {had}, and has {has}"))
}

/// Whether it is the file that it was; None: nothing tells. Each file system has an inode of that
/// number.
fn same_file(before: &Seen, now: &Seen) -> Option<bool> {
    if equal(&before.file, &now.file) {
        return Some(true);
    }
    let made = |seen: &Seen| Some((seen.file.as_ref()?.inode, seen.born?));
    Some(made(before)? == made(now)?)
}

fn not_proved(may_be_dirty: bool) -> String {
    let words = "nothing proves that it is the disk that was accelerated (it has no World Wide \
                 Name, serial number or UUID, and nothing known lies on it, or a copy of it)";
    let danger = "; on another disk, what the flash holds would destroy data";
    format!("{words}{}", if may_be_dirty { danger } else { "" })
}

/// Two that are not known are not equal.
fn equal<T: PartialEq>(first: &Option<T>, other: &Option<T>) -> bool {
    first.is_some() && first == other
}

fn same_boot(before: &Seen, now: &Seen) -> bool {
    !now.boot.is_empty() && before.boot == now.boot
}

/// Whether the kernel says that a device did not go away.
fn stayed(before: &Seen, now: &Seen) -> bool {
    equal(&before.diskseq, &now.diskseq)
}

fn since(facts: &Facts) -> Finding {
    let Some(Record { word, seen }) = &facts.record else {
        return (Answer::Unknown, "nobody knows how the tier was left".into());
    };
    let may_be_dirty = facts.writeback && *word != Word::Clean;
    match word {
        Word::Active | Word::Ended if !facts.writeback => (
            Answer::Unknown,
            "the tier ended by a crash, or by other hands".into(),
        ),
        Word::Ended if !same_boot(seen, &facts.now) => went_on(),
        Word::Active | Word::Ended => crashed(seen, facts),
        Word::Dirty | Word::Clean => match compare(seen, &facts.now) {
            // Nobody wrote then, and since the kernel counts.
            (Answer::Unknown, _) if may_be_dirty && seen.is_last => next_boot(seen, facts),
            answer => answer,
        },
    }
}

/// An origin now, and as it was when its tier was taken down.
fn compare(before: &Seen, now: &Seen) -> Finding {
    const WRITTEN: &str = "it was written to while the tier was down";
    if before.fingerprint == "-" {
        let words = "nobody could look at it when the tier was taken down";
        return (Answer::Unknown, words.into());
    }
    if before.fingerprint != now.fingerprint {
        return (Answer::Changed, WRITTEN.into());
    }
    if before.file.is_some() || now.file.is_some() {
        return match (&before.file, &now.file) {
            (Some(first), Some(other)) if first == other => same(),
            (Some(_), Some(_)) => (Answer::Changed, WRITTEN.into()),
            // Of a hotset that kept no more than the time.
            (None, Some(_)) if before.written == now.written && before.complete => same(),
            _ => (
                Answer::Unknown,
                "nobody knows whether this file is the same".into(),
            ),
        };
    }
    if counted_on(before, now) {
        return match before.written == now.written {
            true => same(),
            false => (Answer::Changed, WRITTEN.into()),
        };
    }
    if now.written_in_this_boot && !now.uncounted {
        return (
            Answer::Changed,
            "it was written to since this computer started".into(),
        );
    }
    if before.complete && now.complete {
        return same();
    }
    let words = "the computer was started since, or the disk was away, and not all that lies on it \
                 shows whether it was used";
    (Answer::Unknown, words.into())
}

/// Whether the kernel's count went on from one look to the other.
fn counted_on(before: &Seen, now: &Seen) -> bool {
    let same_device = match (before.diskseq, now.diskseq) {
        (Some(first), Some(other)) => first == other,
        // A device that went away and came back counts from 0 again.
        _ => before.written > 0,
    };
    let counted = !before.uncounted && !now.uncounted;
    same_boot(before, now) && same_device && counted && now.written >= before.written
}

/// A tier in write-back that ended without being taken down; `before`: its origin when it began.
fn crashed(before: &Seen, facts: &Facts) -> Finding {
    let now = &facts.now;
    if !same_boot(before, now) {
        return next_boot(before, facts);
    }
    let untouched = match (&before.file, &now.file) {
        (Some(first), Some(other)) => first == other,
        (None, None) => counted_on(before, now) && before.written == now.written,
        _ => false,
    };
    if untouched {
        return same();
    }
    if now.uncounted {
        return (Answer::Unknown, UNCOUNTED.into());
    }
    went_on()
}

/// Whoever mounted it then may have written to it, in a boot of which nobody counts the writes.
fn went_on() -> Finding {
    let words = "the tier ended by other hands, with the computer going on, and nobody knows \
                 whether it was written to since";
    (Answer::Unknown, words.into())
}

/// Nobody can have written if this boot is the next one after the record's, and has not.
fn next_boot(before: &Seen, facts: &Facts) -> Finding {
    if facts.now.written_in_this_boot {
        return (
            Answer::Changed,
            "it was written to since this computer started".into(),
        );
    }
    if facts.now.uncounted {
        return (Answer::Unknown, UNCOUNTED.into());
    }
    if facts.came_back {
        let words = "it went away and came back since this computer started, and nobody knows \
                     whether it was written to before";
        return (Answer::Unknown, words.into());
    }
    match facts.between {
        _ if before.boot.is_empty() || before.boot == facts.now.boot => (
            Answer::Unknown,
            "nobody knows whether it was written to since".into(),
        ),
        Some(0) => same(),
        Some(number) => {
            let starts = if number == 1 {
                "was started once".into()
            } else {
                format!("was started {number} times")
            };
            let words = format!(
                "this computer {starts} without the tier in between, and nobody knows whether it \
                 was written to then"
            );
            (Answer::Unknown, words)
        }
        None => {
            let words = "nobody counted this computer's starts since, and it may have been written \
                         to in one";
            (Answer::Unknown, words.into())
        }
    }
}

fn same() -> Finding {
    (Answer::Same, "it is as it was".into())
}

#[cfg(test)]
mod tests;
