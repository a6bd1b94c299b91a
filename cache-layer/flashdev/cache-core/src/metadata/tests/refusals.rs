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
    let mut grown = good;
    grown.identity.origin_bytes += 4096;
    let mut stranger = good;
    stranger.identity.origin_id = [8; 16];
    let cases = [
        (smaller, ["cache size", "20480 bytes, not 16384"]),
        (grown, ["origin size", "36864 bytes, not 40960"]),
        (stranger, ["belongs to another origin", "give that origin"]),
    ];
    for (own, words) in cases {
        let error = refusal_of(memory.flash(), own);
        assert!(error.contains("--discard"), "{error}");
        assert!(words.iter().all(|word| error.contains(word)), "{error}");
    }
}

#[test]
fn another_version_is_refused_even_if_only_one_superblock_has_it() {
    let (memory, _metadata) = new_cache(false);
    let mut flash = memory.flash();
    let start = TINY.superblock_offset(1) as usize;
    let mut superblock = flash[start..start + 512].to_vec();
    superblock[8] = 9;
    store::seal(&mut superblock);
    flash[..512].copy_from_slice(&superblock);
    let error = refusal_of(flash, own(TINY, false, 1));
    assert!(error.contains("version 9"), "{error}");
}

#[test]
fn a_flash_without_metadata_is_refused() {
    let error = refusal_of(vec![0; FLASH_BYTES], own(TINY, false, 1));
    assert!(error.contains("--discard"), "{error}");
    let error = refusal_of(vec![0; FLASH_BYTES - 4096], own(TINY, false, 1));
    assert!(error.contains("smaller than its parts"), "{error}");
}
