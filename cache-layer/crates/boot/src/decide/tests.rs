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
        born: Some(1),
        diskseq: None,
        ..device(boot, 9)
    }
}

/// Of a device whose writes the kernel does not count.
fn uncounted(seen: Seen) -> Seen {
    Seen {
        uncounted: true,
        ..seen
    }
}

fn facts(writeback: bool, word: Word, before: Seen, now: Seen) -> Facts {
    Facts {
        phase: "ready".into(),
        writeback,
        identity: Identity::Same,
        record: Some(Record { word, seen: before }),
        now,
        between: Some(0),
        came_back: false,
    }
}

fn of(facts: &Facts) -> (Action, Answer) {
    let verdict = decide(facts);
    (verdict.action, verdict.origin)
}

/// Each way an origin can be found after an orderly end, with what is to come of it.
#[expect(clippy::too_many_lines, reason = "a table of cases")]
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
        (
            "not counted",
            uncounted(device("a", 7)),
            uncounted(device("a", 7)),
            Answer::Same,
        ),
        (
            "not counted, opaque",
            uncounted(opaque(device("a", 7))),
            uncounted(opaque(device("a", 7))),
            Answer::Unknown,
        ),
        (
            "no more counted, opaque",
            opaque(device("a", 7)),
            uncounted(opaque(device("a", 7))),
            Answer::Unknown,
        ),
        (
            "not counted, opaque, next boot",
            opaque(device("a", 7)),
            uncounted(opaque(device("b", 0))),
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
        going_down(opaque(device("a", 7))),
        opaque(device("b", 0)),
    );
    assert_eq!(of(&facts), (Action::Start, Answer::Same));
    facts.now = opaque(device("b", 3));
    assert_eq!(of(&facts), (Action::Refuse, Answer::Changed));
}

fn going_down(seen: Seen) -> Seen {
    Seen {
        is_last: true,
        ..seen
    }
}

/// Whoever wrote in the rest of that boot is in no count of this one.
#[test]
fn dirty_blocks_over_an_opaque_origin_that_was_left_while_the_computer_went_on_are_refused() {
    let opaque = |seen: Seen| Seen {
        complete: false,
        ..seen
    };
    let (before, now) = (opaque(device("a", 7)), opaque(device("b", 0)));
    let facts = facts(true, Word::Dirty, before, now);
    assert_eq!(of(&facts), (Action::Refuse, Answer::Unknown));
}

#[test]
fn a_tier_that_ended_while_the_computer_went_on_is_believed_by_the_kernels_count_alone() {
    let cases = [
        ("same boot, untouched", device("a", 7), Answer::Same),
        ("same boot, written", device("a", 8), Answer::Unknown),
        ("next boot", device("b", 0), Answer::Unknown),
        ("next boot, written", device("b", 8), Answer::Unknown),
    ];
    for (name, now, expected) in cases {
        let back = facts(true, Word::Ended, device("a", 7), now.clone());
        let action = if expected == Answer::Same {
            Action::Start
        } else {
            Action::Refuse
        };
        assert_eq!(of(&back), (action, expected), "{name}");
        let through = facts(false, Word::Ended, device("a", 7), now);
        assert_eq!(of(&through), (Action::Empty, Answer::Unknown), "{name}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
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
        (
            "the kernel does not count",
            device("a", 7),
            uncounted(device("b", 0)),
            Some(0),
            refuse(Answer::Unknown),
        ),
        (
            "nor in the same boot",
            uncounted(device("a", 7)),
            uncounted(device("a", 7)),
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
fn a_count_that_began_anew_in_this_boot_says_nothing() {
    for word in [Word::Active, Word::Dirty] {
        let opaque = |seen: Seen| Seen {
            complete: false,
            ..seen
        };
        let before = going_down(opaque(device("a", 7)));
        let mut facts = facts(true, word, before, opaque(device("b", 0)));
        assert_eq!(of(&facts), (Action::Start, Answer::Same), "{word:?}");
        facts.came_back = true;
        assert_eq!(of(&facts), (Action::Refuse, Answer::Unknown), "{word:?}");
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
    let mut states = Vec::new();
    for content in ["", "one", "two"] {
        for boot in ["", "a", "b"] {
            for diskseq in [None, Some(5), Some(6)] {
                let seen = Seen {
                    content: content.into(),
                    diskseq,
                    ..device(boot, 0)
                };
                for (inode, changed, born) in [
                    (2, 1, Some(1)),
                    (2, 2, Some(1)),
                    (2, 3, Some(2)),
                    (3, 4, Some(1)),
                    (2, 5, None),
                ] {
                    let mut on_disk = file(boot, changed);
                    on_disk.file.as_mut().unwrap().inode = inode;
                    on_disk.born = born;
                    on_disk.content = content.into();
                    states.push(on_disk);
                }
                states.push(Seen {
                    complete: false,
                    ..seen.clone()
                });
                states.push(seen);
            }
        }
    }
    states
}

#[test]
fn a_disk_without_numbers_is_used_only_where_something_proves_it() {
    let words = [Word::Active, Word::Dirty, Word::Clean];
    for before in looks() {
        for now in looks() {
            let both = before.file.as_ref().zip(now.file.as_ref());
            let alike = both.is_some_and(|(first, other)| first.inode == other.inode);
            let is_known = before.born.is_some() && now.born.is_some();
            let file = both.is_some_and(|(first, other)| first == other)
                || (alike && is_known && before.born == now.born);
            let is_copy = both.is_some() && is_known && !file;
            let content = before.content == now.content && !now.content.is_empty() && !is_copy;
            let boot = before.boot == now.boot && !now.boot.is_empty();
            let kernel = boot && before.diskseq == now.diskseq && now.diskseq.is_some();
            let proved = file || content || kernel;
            for (writeback, word) in words.map(|word| [(true, word), (false, word)]).concat() {
                let mut facts = facts(writeback, word, before.clone(), now.clone());
                facts.identity = Identity::Nameless;
                let verdict = decide(&facts);
                let case = format!("{writeback} {word:?} {before:?} {now:?} {verdict:?}");
                if proved {
                    assert_ne!(verdict.reason, Reason::Identity, "{case}");
                    facts.identity = Identity::Same;
                    assert_eq!(verdict, decide(&facts), "{case}");
                    continue;
                }
                assert_ne!(verdict.action, Action::Start, "{case}");
                assert_ne!(verdict.origin, Answer::Same, "{case}");
                if writeback && word != Word::Clean {
                    assert_eq!(verdict.action, Action::Refuse, "{case}");
                }
                // What lay there is gone: that is another disk, whatever the cache holds.
                let another = !before.content.is_empty() && before.content != now.content;
                assert_eq!(another, verdict.reason == Reason::Identity, "{case}");
            }
        }
    }
}
