//! The superblock: whose cache this is, and which generation of table and journal counts.

use std::fs;
use std::io;

use anyhow::Context;

use super::store::{Store, is_sealed, seal, take};
use crate::Refusal;
use crate::tier::layout::{Layout, PAGE_BYTES};
use crate::tier::origin::{Origin, OriginId};

/// Superblocks are as large as the unit that a device writes whole or not at all, bytes: losing
/// power cannot tear one.
const SUPERBLOCK_BYTES: usize = 512;

const MAGIC: [u8; 8] = *b"hotset\r\n";

/// Version of the whole format. Whatever it is, magic, version and checksum stay in their places.
const VERSION: u32 = 1;

/// A number that a computer draws whenever it starts.
pub(super) type BootId = [u8; 16];

/// Origin and layout, as they must stay for the metadata to mean anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) layout: Layout,
    pub(super) origin_id: OriginId,
    pub(super) origin_bytes: u64,
}

/// One superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Superblock {
    pub(super) identity: Identity,
    pub(super) generation: u64,
    /// Nothing was to follow when it was written.
    pub(super) closed: bool,
    /// Commits are made durable.
    pub(super) sync: bool,
    /// The computer's run during which it was written.
    pub(super) boot_id: BootId,
}

/// What was found in the place of a superblock.
#[derive(Debug)]
pub(super) enum Copy {
    /// Zeros: none was ever written.
    Blank,
    /// Something that is no superblock.
    Damaged,
    /// A superblock.
    Whole(Superblock),
}

impl Superblock {
    /// What this run writes, but for the generation and how it ends.
    pub(super) fn of_this_run(
        layout: Layout,
        origin: &Origin,
        sync: bool,
    ) -> anyhow::Result<Superblock> {
        let identity = Identity {
            layout,
            origin_id: origin.id,
            origin_bytes: origin.bytes,
        };
        Ok(Superblock {
            identity,
            generation: 0,
            closed: false,
            sync,
            boot_id: boot_id()?,
        })
    }

    pub(super) fn write(&self, store: &impl Store) -> io::Result<()> {
        let offset = self.identity.layout.superblock_offset(self.generation);
        store.write_at(&self.encode(), offset)
    }

    fn encode(&self) -> [u8; SUPERBLOCK_BYTES] {
        let layout = &self.identity.layout;
        let fields: [&[u8]; 12] = [
            &MAGIC,
            &VERSION.to_le_bytes(),
            &[u8::from(self.closed)],
            &[u8::from(self.sync)],
            &self.generation.to_le_bytes(),
            &layout.block_bytes.to_le_bytes(),
            &layout.metadata_bytes.to_le_bytes(),
            &layout.cache_bytes.to_le_bytes(),
            &layout.volume_bytes.to_le_bytes(),
            &self.identity.origin_bytes.to_le_bytes(),
            &self.identity.origin_id,
            &self.boot_id,
        ];
        let mut bytes = [0; SUPERBLOCK_BYTES];
        let mut end = 0;
        for field in fields {
            bytes[end..end + field.len()].copy_from_slice(field);
            end += field.len();
        }
        seal(&mut bytes);
        bytes
    }

    fn decode(bytes: &[u8; SUPERBLOCK_BYTES]) -> Result<Copy, Refusal> {
        let mut rest = bytes.as_slice();
        if bytes.iter().all(|&byte| byte == 0) {
            return Ok(Copy::Blank);
        }
        if take(&mut rest) != MAGIC || !is_sealed(bytes) {
            return Ok(Copy::Damaged);
        }
        let version = u32::from_le_bytes(take(&mut rest));
        if version != VERSION {
            return Err(Refusal(format!(
                "metadata on the flash has format version {version}, but this program reads version {VERSION}: use the program that wrote it, or --discard to begin with an empty cache, which loses dirty blocks"
            )));
        }
        let [closed] = take(&mut rest);
        let [sync] = take(&mut rest);
        let mut number = || u64::from_le_bytes(take(&mut rest));
        let generation = number();
        let layout = Layout {
            block_bytes: number(),
            metadata_bytes: number(),
            cache_bytes: number(),
            volume_bytes: number(),
        };
        let identity = Identity {
            layout,
            origin_bytes: number(),
            origin_id: take(&mut rest),
        };
        Ok(Copy::Whole(Superblock {
            identity,
            generation,
            closed: closed != 0,
            sync: sync != 0,
            boot_id: take(&mut rest),
        }))
    }
}

/// The number that the kernel drew when it started; see random(4).
fn boot_id() -> anyhow::Result<BootId> {
    let path = "/proc/sys/kernel/random/boot_id";
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    let digits = text.trim().replace('-', "");
    let number = u128::from_str_radix(&digits, 16)
        .with_context(|| format!("{path} holds `{}`, which is no UUID", text.trim()))?;
    Ok(number.to_be_bytes())
}

/// Both superblocks. They lie at the start of the flash whatever its layout is.
pub(super) fn read_copies(store: &impl Store) -> anyhow::Result<[Copy; 2]> {
    let read = |place: u64| {
        let mut bytes = [0; SUPERBLOCK_BYTES];
        store
            .read_at(&mut bytes, place * PAGE_BYTES)
            .context("cannot read the superblocks of the flash")?;
        anyhow::Ok(Superblock::decode(&bytes)?)
    };
    Ok([read(0)?, read(1)?])
}

impl Identity {
    /// Refuses metadata that was made for something else.
    pub(super) fn check_found(&self, found: &Identity) -> Result<(), Refusal> {
        let (ours, theirs) = (&self.layout, &found.layout);
        let numbers = [
            ("block size", ours.block_bytes, theirs.block_bytes),
            ("metadata size", ours.metadata_bytes, theirs.metadata_bytes),
            ("cache size", ours.cache_bytes, theirs.cache_bytes),
            ("volume size", ours.volume_bytes, theirs.volume_bytes),
            ("origin size", self.origin_bytes, found.origin_bytes),
        ];
        if self.origin_id != found.origin_id {
            return Err(Refusal(
                "the cache on the flash belongs to another origin (or to this one before it was made anew): give that origin, or --discard to begin with an empty cache, which loses dirty blocks"
                    .to_owned(),
            ));
        }
        match numbers.iter().find(|(_, asked, found)| asked != found) {
            None => Ok(()),
            Some((name, asked, found)) => Err(Refusal(format!(
                "the cache on the flash was made with a {name} of {found} bytes, not {asked}: give it as it was, or --discard to begin with an empty cache, which loses dirty blocks"
            ))),
        }
    }
}
