//! Whether a disk that is down may come up, and with what cache: data in, verdict out.
//!
//! | how it was left | its origin since | write-through, or nothing dirty | dirty, or a crash in write-back |
//! |---|---|---|---|
//! | known | same | as it is | as it is |
//! | known | changed | empty | refused |
//! | known | unknown | empty | as it is if nobody wrote since this computer started and no start lies between, else refused |
//! | crash | no write in this boot, which is the next one | empty | as it is |
//! | crash | written to in this boot | empty | refused |
//! | crash | starts lie between, or nobody counted them | empty | refused |
//! | not known | | empty | refused |
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

type Found = (Answer, String);

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
    let before = left.and_then(|one| one.seen.as_ref());
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
    let may_be_dirty = facts.writeback && left.is_none_or(|one| one.word != Word::Clean);
    let (origin, why) = match (since(facts), &identity) {
        ((Answer::Same, _), Identity::Nameless) => (Answer::Unknown, not_proved(may_be_dirty)),
        (found, _) => found,
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
/// inode, and a device that was there all the time by the kernel's number of it.
fn identity(by_numbers: &Identity, before: Option<&Seen>, now: &Seen) -> Identity {
    let Some(before) = before.filter(|_| *by_numbers == Identity::Nameless) else {
        return by_numbers.clone();
    };
    let inode = |seen: &Seen| seen.file.as_ref().map(|file| file.inode);
    if equal(&inode(before), &inode(now)) || (same_boot(before, now) && stayed(before, now)) {
        return Identity::Same;
    }
    let (had, has) = (&before.content, &now.content);
    if had.is_empty() {
        return Identity::Nameless;
    }
    if had == has {
        return Identity::Same;
    }
    let has = if has.is_empty() { "none" } else { has };
    Identity::Other(format!("what lies on it had the UUID {had}, and has {has}"))
}

fn not_proved(may_be_dirty: bool) -> String {
    let words = "nothing proves that it is the disk that was accelerated (it has no World Wide \
                 Name, serial number or UUID, and nothing known lies on it)";
    let danger = "; on another disk, what the flash holds would destroy data";
    format!("{words}{}", if may_be_dirty { danger } else { "" })
}

/// Two that are not known are not equal.
fn equal<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
    one.is_some() && one == other
}

fn same_boot(before: &Seen, now: &Seen) -> bool {
    !now.boot.is_empty() && before.boot == now.boot
}

/// Whether the kernel says that a device did not go away.
fn stayed(before: &Seen, now: &Seen) -> bool {
    equal(&before.diskseq, &now.diskseq)
}

fn since(facts: &Facts) -> Found {
    let Some(Record { word, seen }) = &facts.record else {
        return (Answer::Unknown, "nobody knows how the tier was left".into());
    };
    let may_be_dirty = facts.writeback && *word != Word::Clean;
    match (word, seen) {
        (Word::Active, _) if !facts.writeback => (
            Answer::Unknown,
            "the tier ended by a crash, or by other hands".into(),
        ),
        (Word::Active, None) => crashed(&Seen::default(), facts),
        (Word::Active, Some(before)) => crashed(before, facts),
        (_, None) => (Answer::Unknown, "nobody knows how the tier was left".into()),
        (_, Some(before)) => match compare(before, &facts.now) {
            // Refusing is worse than to believe the one who counted.
            (Answer::Unknown, _) if may_be_dirty => next_boot(before, facts),
            found => found,
        },
    }
}

/// An origin now, and as it was when its tier was taken down.
fn compare(before: &Seen, now: &Seen) -> Found {
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
            (Some(one), Some(other)) if one == other => same(),
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
    if now.written_in_this_boot {
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
        (Some(one), Some(other)) => one == other,
        // A device that went away and came back counts from 0 again.
        _ => before.written > 0,
    };
    same_boot(before, now) && same_device && now.written >= before.written
}

/// A tier in write-back that ended without being taken down; `before`: its origin when it began.
fn crashed(before: &Seen, facts: &Facts) -> Found {
    let now = &facts.now;
    if !same_boot(before, now) {
        return next_boot(before, facts);
    }
    let untouched = match (&before.file, &now.file) {
        (Some(one), Some(other)) => one == other,
        (None, None) => counted_on(before, now) && before.written == now.written,
        _ => false,
    };
    if untouched {
        return same();
    }
    let words = "the tier ended by other hands, with the computer going on, and nobody knows \
                 whether it was written to since";
    (Answer::Unknown, words.into())
}

/// Nobody can have written if this boot is the next one after the record's, and has not.
fn next_boot(before: &Seen, facts: &Facts) -> Found {
    if facts.now.written_in_this_boot {
        return (
            Answer::Changed,
            "it was written to since this computer started".into(),
        );
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

fn same() -> Found {
    (Answer::Same, "it is as it was".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::FileTimes;

    fn device(boot: &str, written: u64) -> Seen {
        Seen {
            fingerprint: "f".into(),
            complete: true,
            content: "uuid".into(),
            boot: boot.into(),
            written,
            diskseq: Some(5),
            written_in_this_boot: written > 0,
            ..Seen::default()
        }
    }

    fn file(boot: &str, changed: i128) -> Seen {
        let file = FileTimes {
            size: 1,
            inode: 2,
            mtime: changed,
            ctime: changed,
        };
        Seen {
            file: Some(file),
            diskseq: None,
            ..device(boot, 9)
        }
    }

    fn facts(writeback: bool, word: Word, before: Seen, now: Seen) -> Facts {
        Facts {
            phase: "ready".into(),
            writeback,
            identity: Identity::Same,
            record: Some(Record {
                word,
                seen: Some(before),
            }),
            now,
            between: Some(0),
        }
    }

    fn of(facts: &Facts) -> (Action, Answer) {
        let verdict = decide(facts);
        (verdict.action, verdict.origin)
    }

    /// Each way an origin can be found after an orderly end, with what is to come of it.
    fn orderly() -> Vec<(&'static str, Seen, Seen, Answer)> {
        let opaque = |seen: Seen| Seen {
            complete: false,
            ..seen
        };
        let came_back = |seen: Seen| Seen {
            diskseq: Some(6),
            ..seen
        };
        let rewritten = |seen: Seen| Seen {
            fingerprint: "g".into(),
            ..seen
        };
        vec![
            ("same boot", device("a", 7), device("a", 7), Answer::Same),
            (
                "same boot, more",
                device("a", 7),
                device("a", 8),
                Answer::Changed,
            ),
            (
                "same boot, opaque",
                opaque(device("a", 7)),
                opaque(device("a", 7)),
                Answer::Same,
            ),
            (
                "superblock",
                device("a", 7),
                rewritten(device("a", 7)),
                Answer::Changed,
            ),
            (
                "superblock, next boot",
                device("a", 7),
                rewritten(device("b", 0)),
                Answer::Changed,
            ),
            ("next boot", device("a", 7), device("b", 0), Answer::Same),
            (
                "next boot, written",
                device("a", 7),
                device("b", 1),
                Answer::Changed,
            ),
            (
                "next boot, opaque",
                opaque(device("a", 7)),
                opaque(device("b", 0)),
                Answer::Unknown,
            ),
            (
                "became opaque",
                device("a", 7),
                opaque(device("b", 0)),
                Answer::Unknown,
            ),
            (
                "no boot id",
                opaque(device("", 7)),
                opaque(device("", 0)),
                Answer::Unknown,
            ),
            (
                "came back",
                device("a", 7),
                came_back(device("a", 0)),
                Answer::Same,
            ),
            (
                "came back, written",
                device("a", 7),
                came_back(device("a", 9)),
                Answer::Changed,
            ),
            (
                "came back, opaque",
                opaque(device("a", 7)),
                came_back(opaque(device("a", 0))),
                Answer::Unknown,
            ),
            ("file", file("a", 7), file("a", 7), Answer::Same),
            (
                "file, next boot",
                opaque(file("a", 7)),
                opaque(file("b", 7)),
                Answer::Same,
            ),
            (
                "file, newer",
                opaque(file("a", 7)),
                opaque(file("a", 8)),
                Answer::Changed,
            ),
            (
                "file, older",
                opaque(file("a", 7)),
                opaque(file("b", 6)),
                Answer::Changed,
            ),
            (
                "it was gone",
                Seen::not_known(),
                device("a", 7),
                Answer::Unknown,
            ),
            (
                "file for a device",
                opaque(device("a", 7)),
                opaque(file("a", 7)),
                Answer::Unknown,
            ),
        ]
    }

    #[test]
    fn after_an_orderly_end_unknown_is_not_the_same() {
        for (name, before, now, expected) in orderly() {
            assert_eq!(compare(&before, &now).0, expected, "{name}");
            for (writeback, word) in [
                (false, Word::Clean),
                (false, Word::Dirty),
                (true, Word::Clean),
            ] {
                let facts = facts(writeback, word, before.clone(), now.clone());
                let action = match expected {
                    Answer::Same => Action::Start,
                    Answer::Changed | Answer::Unknown => Action::Empty,
                };
                assert_eq!(
                    of(&facts),
                    (action, expected),
                    "{name}, {writeback}, {word:?}"
                );
            }
        }
    }

    #[test]
    fn dirty_blocks_over_a_changed_or_unknown_origin_are_refused() {
        for (name, before, now, expected) in orderly() {
            let mut facts = facts(true, Word::Dirty, before, now);
            facts.between = Some(1);
            let action = match expected {
                Answer::Same => Action::Start,
                Answer::Changed | Answer::Unknown => Action::Refuse,
            };
            assert_eq!(of(&facts).0, action, "{name}");
            facts.between = None;
            assert_eq!(of(&facts).0, action, "{name}");
        }
    }

    #[test]
    fn dirty_blocks_over_an_opaque_origin_are_used_in_the_very_next_boot() {
        let opaque = |seen: Seen| Seen {
            complete: false,
            ..seen
        };
        let mut facts = facts(
            true,
            Word::Dirty,
            opaque(device("a", 7)),
            opaque(device("b", 0)),
        );
        assert_eq!(of(&facts), (Action::Start, Answer::Same));
        facts.now = opaque(device("b", 3));
        assert_eq!(of(&facts), (Action::Refuse, Answer::Changed));
    }

    #[test]
    fn after_a_crash_in_write_back() {
        let refuse = |answer| (Action::Refuse, answer);
        let start = (Action::Start, Answer::Same);
        let cases = [
            ("next boot", device("a", 7), device("b", 0), Some(0), start),
            (
                "written",
                device("a", 7),
                device("b", 1),
                Some(0),
                refuse(Answer::Changed),
            ),
            (
                "a boot between",
                device("a", 7),
                device("b", 0),
                Some(1),
                refuse(Answer::Unknown),
            ),
            (
                "not counted",
                device("a", 7),
                device("b", 0),
                None,
                refuse(Answer::Unknown),
            ),
            (
                "no boot id",
                device("", 7),
                device("b", 0),
                Some(0),
                refuse(Answer::Unknown),
            ),
            (
                "before the first write",
                device("a", 7),
                device("a", 7),
                None,
                start,
            ),
            (
                "by other hands",
                device("a", 7),
                device("a", 9),
                None,
                refuse(Answer::Unknown),
            ),
            ("file", file("a", 7), file("a", 7), None, start),
            (
                "file, by other hands",
                file("a", 7),
                file("a", 8),
                None,
                refuse(Answer::Unknown),
            ),
        ];
        for (name, before, mut now, between, expected) in cases {
            // A superblock may have been written back: it says nothing.
            now.fingerprint = "g".into();
            let mut facts = facts(true, Word::Active, before, now);
            facts.between = between;
            assert_eq!(of(&facts), expected, "{name}");
        }
    }

    #[test]
    fn a_write_through_cache_begins_empty_after_a_crash() {
        let facts = facts(false, Word::Active, device("a", 7), device("b", 0));
        assert_eq!(of(&facts), (Action::Empty, Answer::Unknown));
    }

    #[test]
    fn a_disk_of_which_nobody_knows_how_it_was_left() {
        let mut facts = facts(true, Word::Clean, device("a", 7), device("a", 7));
        facts.record = None;
        assert_eq!(of(&facts), (Action::Refuse, Answer::Unknown));
        facts.writeback = false;
        assert_eq!(of(&facts), (Action::Empty, Answer::Unknown));
    }

    #[test]
    fn a_record_of_an_earlier_hotset() {
        let before = Seen::of_before("f", "a", 7);
        let mut facts = facts(true, Word::Dirty, before.clone(), device("a", 7));
        assert_eq!(of(&facts), (Action::Start, Answer::Same));
        facts.now = device("b", 0);
        facts.between = Some(1);
        assert_eq!(of(&facts), (Action::Refuse, Answer::Unknown));
        facts.record = Some(Record {
            word: Word::Active,
            seen: None,
        });
        facts.between = Some(0);
        assert_eq!(of(&facts), (Action::Refuse, Answer::Unknown));
    }

    #[test]
    fn an_unfinished_disk_stays_down_and_says_what_ends_that() {
        for (phase, words) in [
            ("creating", "create it again"),
            ("detaching", "detach it again"),
            ("moving", "does not know"),
        ] {
            for word in [Word::Clean, Word::Dirty, Word::Active] {
                let mut facts = facts(false, word, device("a", 7), device("a", 7));
                facts.phase = phase.into();
                let verdict = decide(&facts);
                assert_eq!(
                    (verdict.action, verdict.reason),
                    (Action::Refuse, Reason::Unfinished)
                );
                assert!(verdict.why.contains(words), "{}", verdict.why);
            }
        }
    }

    #[test]
    fn another_disk_is_refused_whatever_the_record_says() {
        let unknown = Identity::Unknown("none".into());
        for identity in [Identity::Other("it".into()), unknown] {
            for writeback in [true, false] {
                let mut facts = facts(writeback, Word::Clean, device("a", 7), device("a", 7));
                facts.identity = identity.clone();
                let verdict = decide(&facts);
                assert_eq!(
                    (verdict.action, verdict.reason),
                    (Action::Refuse, Reason::Identity)
                );
            }
        }
    }

    #[test]
    fn a_disk_without_numbers_is_known_by_what_lies_on_it() {
        let mut facts = facts(true, Word::Active, device("a", 7), device("b", 0));
        facts.identity = Identity::Nameless;
        assert_eq!(of(&facts).0, Action::Start);
        facts.now.content = "another".into();
        assert_eq!(decide(&facts).reason, Reason::Identity);
        facts.now.content = String::new();
        assert_eq!(decide(&facts).reason, Reason::Identity);
    }

    /// Two disks of one size, without numbers and with nothing on them, may have changed places.
    #[test]
    fn a_disk_without_numbers_on_which_nothing_known_lies_is_not_known() {
        let blank = |seen: Seen| Seen {
            content: String::new(),
            ..seen
        };
        let cases = [
            (true, Word::Active, Action::Refuse, Reason::Conflict),
            (true, Word::Dirty, Action::Refuse, Reason::Conflict),
            (true, Word::Clean, Action::Empty, Reason::None),
            (false, Word::Active, Action::Empty, Reason::None),
            (false, Word::Clean, Action::Empty, Reason::None),
        ];
        for (writeback, word, action, reason) in cases {
            let (before, now) = (blank(device("a", 7)), blank(device("b", 0)));
            let mut facts = facts(writeback, word, before, now);
            facts.identity = Identity::Nameless;
            let verdict = decide(&facts);
            assert_eq!(
                (verdict.action, verdict.reason),
                (action, reason),
                "{word:?}"
            );
            assert_eq!(verdict.origin, Answer::Unknown);
        }
    }

    /// Looks at two disks without numbers that may be one, all of which differ in something.
    fn looks() -> Vec<Seen> {
        let mut found = Vec::new();
        for content in ["", "one", "two"] {
            for boot in ["", "a", "b"] {
                for diskseq in [None, Some(5), Some(6)] {
                    let one = Seen {
                        content: content.into(),
                        diskseq,
                        ..device(boot, 0)
                    };
                    for inode in [2, 3] {
                        let mut on_disk = file(boot, 1);
                        on_disk.file.as_mut().unwrap().inode = inode;
                        on_disk.content = content.into();
                        found.push(on_disk);
                    }
                    found.push(Seen {
                        complete: false,
                        ..one.clone()
                    });
                    found.push(one);
                }
            }
        }
        found
    }

    #[test]
    fn a_disk_without_numbers_is_used_only_where_something_proves_it() {
        let words = [Word::Active, Word::Dirty, Word::Clean];
        for before in looks() {
            for now in looks() {
                let file = match (&before.file, &now.file) {
                    (Some(one), Some(other)) => one.inode == other.inode,
                    _ => false,
                };
                let content = before.content == now.content && !now.content.is_empty();
                let boot = before.boot == now.boot && !now.boot.is_empty();
                let kernel = boot && before.diskseq == now.diskseq && now.diskseq.is_some();
                let proved = file || content || kernel;
                for (writeback, word) in words.map(|word| [(true, word), (false, word)]).concat() {
                    let mut facts = facts(writeback, word, before.clone(), now.clone());
                    facts.identity = Identity::Nameless;
                    let found = decide(&facts);
                    let case = format!("{writeback} {word:?} {before:?} {now:?} {found:?}");
                    if proved {
                        assert_ne!(found.reason, Reason::Identity, "{case}");
                        facts.identity = Identity::Same;
                        assert_eq!(found, decide(&facts), "{case}");
                        continue;
                    }
                    assert_ne!(found.action, Action::Start, "{case}");
                    assert_ne!(found.origin, Answer::Same, "{case}");
                    if writeback && word != Word::Clean {
                        assert_eq!(found.action, Action::Refuse, "{case}");
                    }
                    // What lay there is gone: that is another disk, whatever the cache holds.
                    let another = !before.content.is_empty();
                    assert_eq!(another, found.reason == Reason::Identity, "{case}");
                }
            }
        }
    }
}
