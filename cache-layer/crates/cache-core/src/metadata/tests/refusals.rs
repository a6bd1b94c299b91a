//! Metadata that was made for something else, and what is said of it.

use super::memory::{Memory, new_cache};
use super::*;

fn refusal_of(flash: Vec<u8>, own: Session) -> String {
    let error = Metadata::open_on(Memory::new(flash, Vec::new()), own).unwrap_err();
    assert!(error.is_refusal(), "{error}");
    error.to_string()
}

#[test]
fn another_layout_or_origin_is_refused_by_name() {
    let (memory, _metadata) = new_cache(false);
    let good = own(TINY, false, 1);
    let with = |layout: Layout| Session {
        identity: Identity {
            layout,
            ..good.identity
        },
        ..good
    };
    let smaller = with(Layout {
        cache_bytes: 4 * 4096,
        ..TINY
    });
    let mut shrunk = good;
    shrunk.identity.origin_bytes -= 4096;
    let mut stranger = good;
    stranger.identity.origin_id = [8; 16];
    let cases = [
        (smaller, ["cache size", "20480 bytes, not 16384"]),
        (stranger, ["belongs to another origin", "give that origin"]),
    ];
    for (own, words) in cases {
        let error = refusal_of(memory.flash(), own);
        assert!(error.contains("--discard"), "{error}");
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
    let error = refusal_of(memory.flash(), shrunk);
    assert!(error.contains("from 36864 to 32768 bytes"), "{error}");
    assert!(!error.contains("--discard"), "nothing is lost: {error}");
}

/// What makes a superblock another one.
type Edit<'a> = &'a dyn Fn(&mut [u8]);

/// A flash on which one superblock alone is as `change` makes it: in the first place or the second.
fn in_another_format(place: usize, change: Edit) -> Vec<u8> {
    let (memory, _metadata) = new_cache(false);
    let mut flash = memory.flash();
    let start = TINY.superblock_offset(1) as usize;
    let mut superblock = flash[start..start + 512].to_vec();
    change(&mut superblock);
    flash[place..place + 512].copy_from_slice(&superblock);
    flash
}

/// Whoever formatted such a flash lost what was dirty on it.
#[test]
fn a_cache_in_another_format_is_refused_by_whatever_looks_at_it_and_stays_as_it_is() {
    let later = |superblock: &mut [u8]| {
        superblock[8] = 2;
        store::seal(superblock);
    };
    let before = |superblock: &mut [u8]| {
        superblock[..8].copy_from_slice(b"hotset\r\n");
        superblock[8] = 4;
        store::seal(superblock);
    };
    let torn = |superblock: &mut [u8]| {
        before(superblock);
        superblock[400..].fill(0);
    };
    let release = "format version 4 of before the first release";
    let cases: [(Edit, &str); 3] = [
        (&later, "format version 2, but this program reads version 1"),
        (&before, release),
        (&torn, release),
    ];
    for (change, words) in cases {
        for place in [0, 4096] {
            let flash = in_another_format(place, change);
            let memory = Memory::new(flash.clone(), vec![0; 9 * 4096]);
            let session = own(TINY, false, 1);
            let refusals = [
                is_empty(&memory).map(drop),
                check(&memory, &session).map(drop),
                open(&memory, &session).map(drop),
                salvage(&memory, &session).map(drop),
                numbers(&memory, [7; 16], [1; 16]).map(drop),
                make_empty(&memory),
                format(&memory, &session).map(drop),
            ];
            for (number, result) in refusals.into_iter().enumerate() {
                let error = result.unwrap_err();
                assert!(error.is_refusal(), "{number}: {error}");
                let error = error.to_string();
                assert!(error.contains(words), "{number}: {error}");
                assert!(error.contains("use the version that wrote it"), "{error}");
            }
            assert!(memory.flash() == flash, "{words}: it was written to");
        }
    }
}

#[test]
fn a_flash_without_metadata_is_refused() {
    let error = refusal_of(vec![0; FLASH_BYTES], own(TINY, false, 1));
    assert!(error.contains("is missing"), "{error}");
    let error = refusal_of(vec![0; FLASH_BYTES - 4096], own(TINY, false, 1));
    assert!(error.contains("smaller than its parts"), "{error}");
}

#[test]
fn erased_superblocks_are_damage_and_no_leave_to_begin_anew() {
    let (memory, metadata) = new_cache(true);
    metadata.map(0, 4).unwrap();
    metadata.dirty(0).unwrap();
    metadata.commit().unwrap();
    for erased in [0..512, 4096..4608, 0..8192] {
        let mut flash = memory.flash();
        flash[erased.clone()].fill(0);
        let memory = Memory::new(flash, Vec::new());
        assert!(!is_empty(&memory).unwrap(), "{erased:?}");
        assert!(
            Metadata::open_on(memory, own(TINY, true, 2)).is_err(),
            "{erased:?}"
        );
    }
}

#[test]
fn a_superblock_erased_beside_a_later_one_is_damage_once_the_computer_has_stopped() {
    let (memory, metadata) = new_cache(true);
    metadata.close(|_| 0).unwrap();
    let (metadata, _) = Metadata::open_on(memory.clone(), own(TINY, true, 1)).unwrap();
    metadata.map(0, 4).unwrap();
    metadata.dirty(0).unwrap();
    metadata.commit().unwrap();
    let newest = metadata.log.borrow().generation();
    let mut flash = memory.flash();
    let start = TINY.superblock_offset(newest + 1) as usize;
    flash[start..start + 512].fill(0);
    let error = refusal_of(flash, own(TINY, true, 2));
    assert!(error.contains("damaged"), "{error}");
}

#[test]
fn an_emptied_cache_says_so_however_far_emptying_it_came() {
    let (memory, metadata) = new_cache(true);
    metadata.map(0, 4).unwrap();
    metadata.close(|_| 0).unwrap();
    let before = memory.flash();
    make_empty(&memory).unwrap();
    assert!(is_empty(&memory).unwrap());
    assert!(check(&memory, &own(TINY, true, 1)).is_err());
    let emptied = memory.flash();
    // One of the superblocks was written, and the other was not.
    for half in [0..4096, 4096..8192] {
        let mut flash = before.clone();
        flash[half.clone()].copy_from_slice(&emptied[half]);
        assert!(is_empty(&Memory::new(flash, Vec::new())).unwrap());
    }
    // What is begun then is a cache, although the other superblock still says that it is empty.
    let session = own(TINY, true, 1);
    let metadata = Metadata::format_on(memory.clone(), session).unwrap();
    metadata.map(1, 5).unwrap();
    assert!(!is_empty(&memory).unwrap());
    let (_, recovered) = Metadata::open_on(memory, session).unwrap();
    assert_eq!(recovered.mappings.len(), 1);
}
