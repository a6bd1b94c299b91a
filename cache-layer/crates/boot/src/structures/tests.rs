use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;

use super::*;

const MIB: u64 = 1 << 20;

struct Image {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn image(size: u64) -> Image {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("origin");
    File::create(&path).unwrap().set_len(size).unwrap();
    Image {
        _folder: folder,
        path,
    }
}

impl Image {
    fn put(&self, at: u64, bytes: &[u8]) {
        let file = File::options().write(true).open(&self.path).unwrap();
        file.write_all_at(bytes, at).unwrap();
    }

    fn ext4_at(&self, at: u64) {
        self.put(at + 1024 + 56, &[0x53, 0xef]);
    }

    fn mbr(&self, parts: &[(u8, u64, u64)]) {
        self.put(510, &[0x55, 0xaa]);
        for (number, (kind, start, length)) in parts.iter().enumerate() {
            let at = 446 + number as u64 * 16;
            self.put(at + 4, &[*kind]);
            self.put(at + 8, &u32::try_from(start / 512).unwrap().to_le_bytes());
            self.put(at + 12, &u32::try_from(length / 512).unwrap().to_le_bytes());
        }
    }

    fn contents(&self) -> Contents {
        find(&Medium::open(&self.path, false).unwrap()).unwrap()
    }

    fn covers(&self, at: u64) -> bool {
        self.contents()
            .regions
            .iter()
            .any(|(start, size)| (*start..start + size).contains(&at))
    }
}

#[test]
fn a_file_system_in_a_partition_is_covered_and_an_unknown_one_is_not_complete() {
    let image = image(16 * MIB);
    assert!(!image.contents().complete, "nothing lies there");
    image.mbr(&[(0x83, 4 * MIB, 4 * MIB)]);
    assert!(!image.contents().complete, "nor in its partition");
    image.ext4_at(4 * MIB);
    assert!(image.contents().complete);
    assert!(image.covers(4 * MIB + 1024));
    image.mbr(&[(0x83, 4 * MIB, 4 * MIB), (0x83, 8 * MIB, 4 * MIB)]);
    assert!(!image.contents().complete, "one of two partitions is known");
}

/// fdisk leaves the superblock of what was on the whole disk, and mkfs.fat may: what is written to a
/// partition changes nothing of that.
#[test]
fn a_superblock_that_something_else_was_made_over_is_not_believed() {
    for magic in [(1024 + 56, &[0x53, 0xef][..]), (65536 + 64, b"_BHRfS_M")] {
        let image = image(16 * MIB);
        image.put(magic.0, magic.1);
        assert!(image.contents().complete, "of what lies there");
        image.mbr(&[(0x83, 4 * MIB, 4 * MIB)]);
        image.ext4_at(4 * MIB);
        assert!(image.covers(4 * MIB + 1024));
        assert!(!image.contents().complete, "which of the two is used?");
    }
}

/// A superblock of version 1, in the stretch that begins there.
fn member(start: u64, at: u64) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..4].copy_from_slice(&0xa92b_4efc_u32.to_le_bytes());
    block[4] = 1;
    block[16..32].copy_from_slice(b"the array's UUID");
    block[80..88].copy_from_slice(&8192_u64.to_le_bytes());
    block[144..152].copy_from_slice(&((at - start) / 512).to_le_bytes());
    block[168..184].copy_from_slice(b"the member's own");
    // calc_sb_1_csum of drivers/md/md.c, of a superblock without devices.
    let words = block[..256].chunks(4);
    let sum: u64 = words
        .map(|word| u64::from(u32::from_le_bytes(word.try_into().unwrap())))
        .sum();
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    block[216..220].copy_from_slice(&u32::try_from(sum).unwrap().to_le_bytes());
    block
}

const END: u64 = 16 * MIB - 8192;

#[test]
fn an_array_is_known_by_its_superblock_wherever_it_lies() {
    for at in [0, 4096, END] {
        let image = image(16 * MIB);
        image.put(at, &member(0, at));
        assert!(image.contents().complete, "{at}");
        assert!(image.covers(at), "{at}");
    }
}

#[test]
fn the_superblock_of_a_last_partition_is_not_the_disks() {
    let image = image(16 * MIB);
    image.mbr(&[(0x83, MIB, 7 * MIB), (0xfd, 8 * MIB, 8 * MIB)]);
    image.put(END, &member(8 * MIB, END));
    let contents = image.contents();
    assert!(
        !contents.complete,
        "nobody knows what lies on the first partition"
    );
    assert_eq!(contents.content, "");
    image.ext4_at(MIB);
    assert!(image.contents().complete);
}

#[test]
fn an_array_of_before_version_1_names_none_of_its_members() {
    let image = image(16 * MIB);
    let at = 16 * MIB - 65536;
    image.put(at, &0xa92b_4efc_u32.to_le_bytes());
    assert!(image.contents().complete);
    assert!(image.covers(at));
    image.ext4_at(0);
    image.put(1024 + 104, b"each of them has");
    assert_eq!(image.contents().content, "");
    image.mbr(&[(0x83, MIB, 7 * MIB), (0xfd, 8 * MIB, 8 * MIB)]);
    image.put(1024 + 56, &[0, 0]);
    assert!(!image.contents().complete, "it may be the partition's");
}

/// What blkid calls it by: what several disks share, and what is this one's.
fn named_by_blkid(image: &Image) -> String {
    let output = Command::new("blkid")
        .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
        .args(["--probe", "--output", "export"])
        .arg(&image.path)
        .output()
        .unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let value = |key: &str| {
        let value = output.lines().find_map(|line| line.strip_prefix(key));
        value.unwrap_or_default().replace('-', "")
    };
    value("UUID=") + &value("UUID_SUB=")
}

#[test]
fn what_blkid_knows_by_a_uuid_is_known_by_the_same() {
    let (luks1, luks2, btrfs): (&[u8], &[u8], &[u8]) = (
        include_bytes!("../../testdata/luks1.bin"),
        include_bytes!("../../testdata/luks2.bin"),
        include_bytes!("../../testdata/btrfs.bin"),
    );
    let [first, second, last] = [0, 4096, END].map(|at| member(0, at));
    let cases: [(u64, &[u8], usize); 6] = [
        (0, luks1, 32),
        (0, luks2, 32),
        (65536, btrfs, 64),
        (0, &first, 64),
        (4096, &second, 64),
        (END, &last, 64),
    ];
    for (at, bytes, length) in cases {
        let image = image(16 * MIB);
        image.put(at, bytes);
        let name = named_by_blkid(&image);
        assert_eq!(name.len(), length, "{at} {name}");
        assert_eq!(image.contents().content, name, "{at}");
    }
}

#[test]
fn what_lies_in_an_encrypted_volume_is_not_known() {
    let image = image(16 * MIB);
    image.ext4_at(0);
    image.put(0, include_bytes!("../../testdata/luks2.bin"));
    assert!(!image.contents().complete);
    assert!(image.covers(168));
}

#[test]
fn a_table_of_large_sectors_has_a_uuid_too() {
    let image = image(16 * MIB);
    image.put(4096, b"EFI PART");
    image.put(4096 + 56, b"the disk's UUID!");
    assert_eq!(image.contents().content, hex(b"the disk's UUID!"));
}

#[test]
fn a_partition_beyond_the_end_is_not_known() {
    let image = image(16 * MIB);
    image.mbr(&[(0x83, 12 * MIB, 8 * MIB)]);
    image.ext4_at(12 * MIB);
    assert!(!image.contents().complete);
}

#[test]
fn what_mke2fs_makes_is_known_by_its_uuid() {
    let image = image(16 * MIB);
    let uuid = "5f3c9f4e-7a0e-4d8e-9d53-0a1f1c7f4b10";
    let made = Command::new("mke2fs")
        .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
        .args(["-q", "-F", "-t", "ext4", "-U", uuid])
        .arg(&image.path)
        .status();
    assert!(made.unwrap().success());
    let contents = image.contents();
    assert!(contents.complete);
    assert_eq!(contents.content, uuid.replace('-', ""));
}

#[test]
fn nothing_on_an_origin_is_read_beyond_its_end() {
    for size in [4096, 65536, 131_072, MIB + 512] {
        let image = image(size);
        image.put(0, &[0xff; 4096]);
        assert!(!image.contents().complete, "{size}");
    }
}
