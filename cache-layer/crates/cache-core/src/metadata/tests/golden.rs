//! An image of the format. Encoding and decoding are the same code, which
//! could change both: the bytes here were written once, and stay.

use super::memory::{Memory, Place, new_cache};
use super::*;

/// `OFFSET HEX`: 32 bytes a line, those that are zeros left out.
const IMAGE: &str = include_str!("golden/version-1.txt");

fn image(text: &str) -> Vec<u8> {
    let mut bytes = vec![0; FLASH_BYTES];
    for line in text.lines() {
        let (offset, digits) = line.split_once(' ').unwrap();
        let start: usize = offset.parse().unwrap();
        for (at, pair) in digits.as_bytes().chunks(2).enumerate() {
            let pair = std::str::from_utf8(pair).unwrap();
            bytes[start + at] = u8::from_str_radix(pair, 16).unwrap();
        }
    }
    bytes
}

fn text(bytes: &[u8]) -> String {
    let lines = (0..).step_by(32).zip(bytes.chunks(32));
    let used = lines.filter(|(_, line)| line.iter().any(|&byte| byte != 0));
    let hex = |line: &[u8]| {
        line.iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    used.map(|(offset, line): (usize, _)| format!("{offset} {}\n", hex(line)))
        .collect()
}

/// A session that was closed, and one that was killed, with records of every kind.
fn used() -> Memory {
    let (memory, metadata) = new_cache(true);
    metadata.map(0, 4).unwrap();
    metadata.map(1, 8).unwrap();
    metadata.dirty(1).unwrap();
    metadata.close(|slot| 10 + slot as u8).unwrap();
    let (metadata, _) = Metadata::open_on(memory.clone(), own(TINY, true, 1)).unwrap();
    let map = Change::Map {
        block: 6,
        heat: 63,
        missing: 0,
        dirty: true,
    };
    metadata.change(3, map).unwrap();
    metadata.map(4, 2).unwrap();
    metadata.unmap(0).unwrap();
    metadata.dirty(4).unwrap();
    metadata.commit().unwrap();
    metadata.clean(1).unwrap();
    memory
}

#[test]
fn what_was_written_is_read() {
    let open = |boot| {
        let memory = Memory::new(image(IMAGE), vec![0; 4096]);
        let (_, recovered) = Metadata::open_on(memory, own(TINY, true, boot)).unwrap();
        let what = |mapping: &crate::policy::Mapping| {
            (mapping.slot, mapping.block, mapping.dirty, mapping.heat)
        };
        recovered.mappings.iter().map(what).collect::<Vec<_>>()
    };
    let killed = [(1, 8, false, 11), (3, 6, true, 63), (4, 2, true, 0)];
    assert_eq!(open(1), killed);
    let power_cut = [(1, 8, true, 11), (3, 6, true, 63), (4, 2, true, 0)];
    assert_eq!(open(2), power_cut);
}

#[test]
fn what_is_written_is_the_image_byte_for_byte() {
    let written = text(&used().flash());
    assert_eq!(written, IMAGE, "{written}");
}

/// By the table in the module's comment, and not by any code that reads or writes.
#[test]
fn the_fields_lie_where_the_table_of_offsets_says() {
    let flash = image(IMAGE);
    let number = |at: usize, len: usize| {
        let bytes = flash[at..at + len].iter().rev();
        bytes.fold(0u64, |sum, &byte| sum << 8 | u64::from(byte))
    };
    // The third generation's superblock, in the second place.
    let at = 4096;
    assert_eq!(&flash[at..at + 8], b"HOTSET\r\n");
    assert_eq!(
        [number(at + 8, 4), number(at + 12, 1), number(at + 13, 1)],
        [1, 0, 1]
    );
    assert_eq!([number(at + 14, 8), number(at + 22, 8)], [3, 4096]);
    let sizes = [30, 38, 46, 54].map(|offset| number(at + offset, 8));
    assert_eq!(sizes, [6 * 4096, 5 * 4096, 0, 9 * 4096]);
    assert_eq!(
        &flash[at + 62..at + 110],
        [[7; 16], [1; 16], [1; 16]].concat()
    );
    assert_eq!(
        number(at + 508, 4),
        u64::from(crc32c::crc32c(&flash[at..at + 508]))
    );
    // Its table: slot 1 holds block 8, dirty, at heat 11.
    let at = 8192 + 4096;
    let slot = [number(at + 8, 4), number(at + 12, 1), number(at + 13, 1)];
    assert_eq!(slot, [8, 2, 11]);
    assert_eq!([number(at + 4080, 8), number(at + 4088, 4)], [3, 0]);
    assert_eq!(
        number(at + 4092, 4),
        u64::from(crc32c::crc32c(&flash[at..at + 4092]))
    );
    // Its journal: begins, then slot 3 takes block 6, dirty, at heat 63.
    let at = 8192 + 2 * 4096 + 4096;
    assert_eq!(
        [number(at, 8), number(at + 8, 8), number(at + 16, 1)],
        [3, 0, 6]
    );
    let record = [(0, 8), (8, 8), (16, 1), (17, 1), (18, 2), (20, 4), (24, 4)]
        .map(|(offset, len)| number(at + 32 + offset, len));
    assert_eq!(record, [3, 1, 8, 63, 0, 3, 6]);
    let crc = crc32c::crc32c(&flash[at + 32..at + 60]);
    assert_eq!(number(at + 60, 4), u64::from(crc));
}

/// One that says that the cache is empty.
#[test]
fn an_empty_cache_is_a_superblock_with_a_generation_alone() {
    let memory = Memory::new(image(IMAGE), Vec::new());
    make_empty(&memory).unwrap();
    let mut bytes = memory.read(Place::Flash, 4096, 512);
    assert_eq!(bytes, memory.read(Place::Flash, 0, 512));
    bytes[..8]
        .iter_mut()
        .zip(b"HOTSET\r\n")
        .for_each(|(byte, of)| *byte -= of);
    bytes[8] -= 1;
    bytes[14] -= 3;
    assert!(bytes[..508].iter().all(|&byte| byte == 0));
}
