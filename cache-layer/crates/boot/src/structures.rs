//! What lies on an origin, as far as its superblocks say: which of its bytes change when somebody
//! mounts or uses a part of it for writing.
//!
//! Read here rather than asked of blkid, as partitions and logical volumes of an origin whose tier
//! is down are no devices.

use std::io;

use crate::media::{Medium, Region, hex};

mod md;

const LUKS: &[u8] = b"LUKS\xba\xbe";
const HEAD: u64 = 1024 * 1024;
const SECTOR: u64 = 512;
const DEPTH: u32 = 4;
/// More do not fit the record.
const REGIONS_MOST: usize = 100;

/// What was found on an origin.
#[derive(Default)]
pub struct Contents {
    pub regions: Vec<Region>,
    /// Nothing of it can be mounted for writing without a change in the regions.
    pub complete: bool,
    /// UUID of what begins at its first byte; empty: none that is known.
    pub content: String,
}

/// A stretch of the device, or several one behind the other: a partition, a logical volume.
#[derive(Clone, Debug, PartialEq, Eq)]
struct View(Vec<Region>);

impl View {
    fn length(&self) -> u64 {
        self.0.iter().map(|(_, length)| length).sum()
    }

    /// Where its bytes lie on the device.
    fn place(&self, mut at: u64, mut length: u64) -> Vec<Region> {
        let mut pieces = Vec::new();
        for (start, size) in &self.0 {
            if at >= *size {
                at -= size;
                continue;
            }
            let here = length.min(size - at);
            pieces.push((start + at, here));
            length -= here;
            at = 0;
            if length == 0 {
                break;
            }
        }
        pieces
    }

    fn part(&self, at: u64, length: u64) -> Self {
        Self(self.place(at, length))
    }

    fn read(&self, medium: &Medium, at: u64, length: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for (start, size) in self.place(at, length) {
            let first = start / 4096 * 4096;
            let whole = (start + size - first).next_multiple_of(4096);
            let read = medium.read(first, whole as usize)?;
            let from = ((start - first) as usize).min(read.len());
            let to = ((start + size - first) as usize).min(read.len());
            bytes.extend_from_slice(&read[from..to]);
        }
        bytes.resize(length as usize, 0);
        Ok(bytes)
    }
}

/// Look what lies on it.
pub fn find(medium: &Medium) -> io::Result<Contents> {
    let whole = View(vec![(0, medium.size)]);
    let mut contents = Contents {
        regions: vec![(0, HEAD.min(medium.size))],
        ..Contents::default()
    };
    contents.content = name_of(&whole, medium)?;
    contents.complete = look(&whole, medium, &mut contents.regions, DEPTH)?;
    if contents.regions.len() > REGIONS_MOST {
        contents.regions.truncate(REGIONS_MOST);
        contents.complete = false;
    }
    Ok(contents)
}

/// Add the regions of what lies there; returns whether all that lies there has some.
fn look(view: &View, medium: &Medium, regions: &mut Vec<Region>, depth: u32) -> io::Result<bool> {
    if view.length() < 65536 * 2 || depth == 0 {
        return Ok(false);
    }
    let head = view.read(medium, 0, 72 * 1024)?;
    if let Some(member) = md::find(view, medium, &head)? {
        regions.extend(view.place(member.at, 4096));
        // One of before version 1 may as well be that of a partition that ends there.
        if member.name.is_some() || !is_cut(&head) {
            return Ok(true);
        }
    }
    if head.starts_with(LUKS) {
        // Whoever opens it and writes changes nothing of its header.
        regions.extend(view.place(0, 4096));
        return Ok(false);
    }
    if head[1024 + 56..1024 + 58] == [0x53, 0xef] {
        regions.extend(view.place(0, 4096));
        return alone(view, medium, &head, regions, depth);
    }
    if head[..4] == *b"XFSB" {
        regions.extend(view.place(0, 4096));
        let log = xfs_log(view, medium)?;
        regions.extend(
            log.iter()
                .flat_map(|(start, length)| view.place(*start, *length)),
        );
        // A log on another device is changed there.
        return Ok(log.is_some());
    }
    if head[65536 + 64..65536 + 72] == *b"_BHRfS_M" {
        regions.extend(view.place(65536, 4096));
        return alone(view, medium, &head, regions, depth);
    }
    if (0..4).any(|sector| head[sector * 512..].starts_with(b"LABELONE")) {
        regions.extend(view.place(0, HEAD));
        return logical_volumes(view, medium, regions, depth);
    }
    partitions(view, medium, &head, regions, depth)
}

/// Whether a file system's superblock is that of what lies there now. Who makes a table of partitions,
/// or a FAT, over it may leave it where it is.
fn alone(
    view: &View,
    medium: &Medium,
    head: &[u8],
    regions: &mut Vec<Region>,
    depth: u32,
) -> io::Result<bool> {
    if !is_cut(head) {
        return Ok(true);
    }
    partitions(view, medium, head, regions, depth)?;
    Ok(false)
}

/// The UUID of an array's member, an encrypted volume, a file system, a physical volume or a
/// partition table. What several disks share, such as an array's, tells none of them: with it goes
/// the disk's own (UUID_SUB of blkid), or there is none.
fn name_of(view: &View, medium: &Medium) -> io::Result<String> {
    if view.length() < 65536 * 2 {
        return Ok(String::new());
    }
    let head = view.read(medium, 0, 72 * 1024)?;
    if let Some(member) = md::find(view, medium, &head)? {
        return Ok(member.name.unwrap_or_default());
    }
    let name = if head.starts_with(LUKS) {
        luks_name(&head[168..208])
    } else if head[1024 + 56..1024 + 58] == [0x53, 0xef] {
        hex(&head[1024 + 104..1024 + 120])
    } else if head[..4] == *b"XFSB" {
        hex(&head[32..48])
    } else if head[65536 + 64..65536 + 72] == *b"_BHRfS_M" {
        // Of a file system, then of the device among those that it lies on.
        hex(&head[65536 + 32..65536 + 48]) + &hex(&head[65536 + 267..65536 + 283])
    } else if let Some(at) = (0..4).find(|at| head[at * 512..].starts_with(b"LABELONE")) {
        // The physical volume's own, at the beginning of its header (lib/format_text/layout.h).
        String::from_utf8_lossy(&head[at * 512 + 32..at * 512 + 64]).into_owned()
    } else if head[512..520] == *b"EFI PART" {
        hex(&head[512 + 56..512 + 72])
    } else if head[4096..4104] == *b"EFI PART" {
        hex(&head[4096 + 56..4096 + 72])
    } else if head[510..512] == [0x55, 0xaa] && head[440..444] != [0; 4] {
        hex(&head[440..444])
    } else {
        String::new()
    };
    Ok(name)
}

/// The text of a UUID in a header of LUKS, of either version (cryptsetup, lib/luks1/luks.h and
/// lib/luks2/luks2.h).
fn luks_name(text: &[u8]) -> String {
    let text = text.split(|byte| *byte == 0).next().unwrap_or(text);
    String::from_utf8_lossy(text).replace('-', "")
}

/// Whether there is a table of partitions, or a boot sector that looks like one.
fn is_cut(head: &[u8]) -> bool {
    head[512..520] == *b"EFI PART"
        || head[4096..4104] == *b"EFI PART"
        || head[510..512] == [0x55, 0xaa]
}

fn le(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes[at..at + length]
        .iter()
        .rev()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

fn be(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes[at..at + length]
        .iter()
        .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// Where the log of an xfs lies, which a mount for writing changes (fs/xfs/libxfs/xfs_format.h).
fn xfs_log(view: &View, medium: &Medium) -> io::Result<Option<Region>> {
    if view.length() < 4096 {
        return Ok(None);
    }
    let sb = view.read(medium, 0, 4096)?;
    if sb[..4] != *b"XFSB" {
        return Ok(None);
    }
    let (block, first, per_group) = (be(&sb, 4, 4), be(&sb, 48, 8), be(&sb, 84, 4));
    let (blocks, shift) = (be(&sb, 96, 4), be(&sb, 124, 1));
    if first == 0 || shift > 32 {
        return Ok(None);
    }
    let group = first >> shift;
    let at = (group * per_group + (first & ((1 << shift) - 1))) * block;
    let fits = at.saturating_add(blocks * block) <= view.length();
    Ok(fits.then_some((at, blocks * block)))
}

/// A table of partitions: their heads; whether all of them are known.
fn partitions(
    view: &View,
    medium: &Medium,
    head: &[u8],
    regions: &mut Vec<Region>,
    depth: u32,
) -> io::Result<bool> {
    let entries = if head[512..520] == *b"EFI PART" {
        gpt(view, medium, &head[512..1024], 512)?
    } else if head[4096..4104] == *b"EFI PART" {
        gpt(view, medium, &head[4096..4608], 4096)?
    } else if head[510..512] == [0x55, 0xaa] {
        mbr(view, medium, head)?
    } else {
        return Ok(false);
    };
    regions.extend(view.place(0, 32 * 1024));
    let mut complete = !entries.is_empty();
    for (start, length) in entries {
        if start + length > view.length() {
            complete = false;
            continue;
        }
        let part = view.part(start, length);
        regions.extend(part.place(0, 4096));
        complete &= look(&part, medium, regions, depth - 1)?;
    }
    Ok(complete)
}

fn gpt(view: &View, medium: &Medium, header: &[u8], sector: u64) -> io::Result<Vec<Region>> {
    let (at, count, size) = (le(header, 72, 8), le(header, 80, 4), le(header, 84, 4));
    if size < 128 || count > 1024 || size > 4096 {
        return Ok(Vec::new());
    }
    let table = view.read(medium, at * sector, count * size)?;
    let entries = table
        .chunks(size as usize)
        .filter(|entry| entry[..16] != [0; 16]);
    Ok(entries
        .map(|entry| (le(entry, 32, 8), le(entry, 40, 8)))
        .filter(|(first, last)| last >= first)
        .map(|(first, last)| (first * sector, (last - first + 1) * sector))
        .collect())
}

fn mbr(view: &View, medium: &Medium, head: &[u8]) -> io::Result<Vec<Region>> {
    let entry = |sector: &[u8], number: usize| {
        let at = 446 + number * 16;
        (
            sector[at + 4],
            le(sector, at + 8, 4) * SECTOR,
            le(sector, at + 12, 4) * SECTOR,
        )
    };
    let is_extended = |kind: u8| matches!(kind, 0x05 | 0x0f | 0x85);
    let mut entries = Vec::new();
    for number in 0..4 {
        let (kind, start, length) = entry(head, number);
        if kind == 0 || length == 0 || start == 0 {
            continue;
        }
        if !is_extended(kind) {
            entries.push((start, length));
            continue;
        }
        // A chain of tables, each with one partition and where the next table lies.
        let mut next = start;
        for _ in 0..64 {
            let table = view.read(medium, next, 512)?;
            if table[510..512] != [0x55, 0xaa] {
                break;
            }
            let (kind, at, length) = entry(&table, 0);
            if kind != 0 && length != 0 {
                entries.push((next + at, length));
            }
            let (kind, at, _) = entry(&table, 1);
            if kind == 0 || at == 0 {
                break;
            }
            next = start + at;
        }
    }
    Ok(entries)
}

/// What lies on the logical volumes of a physical one; true if each lies there in one linear
/// piece or more, and has something that is known.
fn logical_volumes(
    view: &View,
    medium: &Medium,
    regions: &mut Vec<Region>,
    depth: u32,
) -> io::Result<bool> {
    let area = view.read(medium, 0, HEAD.min(view.length()))?;
    let Some(volumes) = lvm::volumes(&area) else {
        return Ok(false);
    };
    let mut complete = true;
    for volume in volumes {
        let Some(pieces) = volume else {
            complete = false;
            continue;
        };
        let inside = pieces
            .iter()
            .all(|(start, length)| start + length <= view.length());
        if !inside {
            complete = false;
            continue;
        }
        let places = pieces
            .iter()
            .flat_map(|(start, length)| view.place(*start, *length));
        let part = View(places.collect());
        regions.extend(part.place(0, 4096));
        complete &= look(&part, medium, regions, depth - 1)?;
    }
    Ok(complete)
}

/// The text of a volume group (lvm2, lib/format_text/layout.h and export.c).
mod lvm {
    use super::{Region, SECTOR, le};

    /// The pieces of each logical volume on this physical one; None for one that is not linear,
    /// or partly elsewhere. None at all: the metadata cannot be read.
    pub fn volumes(area: &[u8]) -> Option<Vec<Option<Vec<Region>>>> {
        let text = text_of(area)?;
        let group = section(text)?;
        let mine = physical_id(area)?;
        let volumes = physical_volumes(group)?;
        let (name, first) = volumes
            .iter()
            .find(|(_, body)| value(body, "id").is_some_and(|id| plain(id) == mine))
            .and_then(|(name, body)| Some((*name, number(body, "pe_start")?)))?;
        let extent = number(group, "extent_size")?;
        let logical = child(group, "logical_volumes").unwrap_or("");
        Some(
            children(logical)
                .iter()
                .map(|(_, body)| pieces(body, name, first, extent))
                .collect(),
        )
    }

    fn physical_volumes(group: &str) -> Option<Vec<(&str, &str)>> {
        Some(children(child(group, "physical_volumes")?))
    }

    fn pieces(volume: &str, physical: &str, first: u64, extent: u64) -> Option<Vec<Region>> {
        let mut pieces = Vec::new();
        for (name, body) in children(volume) {
            if !name.starts_with("segment") {
                continue;
            }
            let is_linear =
                value(body, "type") == Some("striped") && number(body, "stripe_count") == Some(1);
            let stripes = body.split_once("stripes = [")?.1.split_once(']')?.0;
            let (on, at) = stripes.split_once(',')?;
            if !is_linear || on.trim().trim_matches('"') != physical {
                return None;
            }
            let at: u64 = at.trim().parse().ok()?;
            let count = number(body, "extent_count")?;
            pieces.push(((first + at * extent) * SECTOR, count * extent * SECTOR));
        }
        (!pieces.is_empty()).then_some(pieces)
    }

    /// The newest text: the first area's header says where it lies.
    fn text_of(area: &[u8]) -> Option<&str> {
        let magic = b" LVM2 x[5A%r0N*>";
        let header = (0..area.len().saturating_sub(512))
            .step_by(512)
            .find(|at| area[at + 4..].starts_with(magic))?;
        let start = le(area, header + 24, 8) as usize;
        let (offset, length) = (le(area, header + 40, 8), le(area, header + 48, 8));
        let from = start.checked_add(offset as usize)?;
        // One that goes round the end of its area is not read.
        std::str::from_utf8(area.get(from..from.checked_add(length as usize)?)?).ok()
    }

    /// The physical volume's UUID in its header, without dashes.
    fn physical_id(area: &[u8]) -> Option<String> {
        let at = (0..4)
            .map(|sector| sector * 512)
            .find(|at| area[*at..].starts_with(b"LABELONE"))?;
        String::from_utf8(area[at + 32..at + 64].to_vec()).ok()
    }

    fn plain(id: &str) -> String {
        id.replace('-', "")
    }

    /// The body of the first section of a text.
    fn section(text: &str) -> Option<&str> {
        children(text).first().map(|(_, body)| *body)
    }

    fn child<'a>(text: &'a str, wanted: &str) -> Option<&'a str> {
        children(text)
            .into_iter()
            .find(|(name, _)| *name == wanted)
            .map(|(_, body)| body)
    }

    /// Names and bodies of the sections right in a text.
    fn children(text: &str) -> Vec<(&str, &str)> {
        let (mut parts, mut depth, mut begin, mut quoted) = (Vec::new(), 0, 0, false);
        let mut name = "";
        for (at, letter) in text.char_indices() {
            match letter {
                '"' => quoted = !quoted,
                _ if quoted => {}
                '{' => {
                    if depth == 0 {
                        name = text[..at]
                            .trim_end()
                            .rsplit(char::is_whitespace)
                            .next()
                            .unwrap_or("");
                        begin = at + 1;
                    }
                    depth += 1;
                }
                '}' => {
                    depth -= 1;
                    if depth == 0 {
                        parts.push((name, &text[begin..at]));
                    }
                    if depth < 0 {
                        break;
                    }
                }
                _ => {}
            }
        }
        parts
    }

    /// The value of a key that is not within a deeper section.
    fn value<'a>(body: &'a str, key: &str) -> Option<&'a str> {
        let mut depth = 0;
        for line in body.lines() {
            let line = line.trim();
            if depth == 0 {
                if let Some((name, value)) = line.split_once('=') {
                    if name.trim() == key {
                        return Some(value.split('#').next()?.trim().trim_matches('"'));
                    }
                }
            }
            depth += line.matches('{').count() as i64 - line.matches('}').count() as i64;
        }
        None
    }

    fn number(body: &str, key: &str) -> Option<u64> {
        value(body, key)?.parse().ok()
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        const TEXT: &str = r#"vg {
id = "aaa"
extent_size = 8192
physical_volumes {
pv0 {
id = "abcdef-0123-0123-0123-0123-0123-456789"
device = "/dev/sda"	# Hint
pe_start = 2048
}
}
logical_volumes {
db {
id = "x"
segment1 {
start_extent = 0
extent_count = 4
type = "striped"
stripe_count = 1
stripes = [
"pv0", 10
]
}
}
thin {
segment1 {
extent_count = 4
type = "thin"
}
}
}
}
contents = "Text Format Volume Group"
"#;

        #[test]
        fn linear_volumes_are_found_and_others_are_not_known() {
            let group = section(TEXT).unwrap();
            assert_eq!(number(group, "extent_size"), Some(8192));
            let logical = child(group, "logical_volumes").unwrap();
            let volumes: Vec<_> = children(logical)
                .iter()
                .map(|(_, body)| pieces(body, "pv0", 2048, 8192))
                .collect();
            let at = (2048 + 10 * 8192) * 512;
            assert_eq!(volumes, [Some(vec![(at, 4 * 8192 * 512)]), None]);
        }
    }
}

#[cfg(test)]
mod tests;
