//! The kernel's dm-cache (Documentation/admin-guide/device-mapper/cache.rst).

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::{SECTOR, Tier};
use crate::lock;
use crate::run::{Cause, failed, failure};

/// Sectors that may be moved at a time while the disk is idle: the kernel's own, but at least so
/// many blocks, as LVM has it. `spare_migration_bandwidth` (drivers/md/dm-cache-target.c) lets a
/// block be cleaned only if it and what is under way do not exceed it: with the kernel's own, 1 MiB,
/// blocks of 1 MiB and more would never be written back in the background.
const THRESHOLD_SECTORS: u64 = 2048;
const THRESHOLD_BLOCKS: u64 = 8;
const FOLDER: &str = "/run/hotset";

impl Tier {
    pub(super) fn make_dm_cache_parts(&self) -> Result<()> {
        self.computer.load(&["dm-cache", "dm-cache-smq"])?;
        self.make_part("-meta", &self.flash_table(&self.place.metadata))?;
        self.make_part("-cache", &self.flash_table(&self.place.cache))?;
        self.make_volume()
    }

    /// A superblock of zeros counts as damaged, too: the kernel would format an empty cache and
    /// forget what was dirty. After a `needs_check` it takes the metadata read-only until the flag
    /// is cleared, which cache_check does only if it finds nothing wrong.
    pub(super) fn open_dm_cache(&self) -> Result<()> {
        self.make_dm_cache_parts()?;
        let words = [
            "cache_check",
            "--clear-needs-check-flag",
            &self.mapped("-meta"),
        ];
        match self.computer.run(&words) {
            Ok(_) => Ok(()),
            Err(error) => Err(failure(Cause::Damaged, failed(error)?.to_string())),
        }
    }

    pub(super) fn make_dm_cache(&self) -> Result<()> {
        self.make_top(&self.dm_cache_table()?)
    }

    /// Not formatted by the kernel: it writes the blocks' hints when the cache is taken down for
    /// the first time, and without them, as after a crash before, cache_dump and cache_repair of
    /// thin-provisioning-tools 1 end with "not a btree node".
    pub(super) fn empty_dm_cache(&self) -> Result<()> {
        // What is left of a disk of that name may lie elsewhere.
        self.remove_parts()?;
        // Old metadata must never be used over an origin that was written since.
        self.blank(&self.place.metadata)?;
        self.make_dm_cache_parts()?;
        let spec = &self.spec;
        let xml = format!(
            "<superblock uuid=\"\" block_size=\"{}\" nr_cache_blocks=\"{}\" policy=\"{}\" \
             hint_width=\"4\"><mappings></mappings><hints></hints></superblock>",
            spec.block / SECTOR,
            spec.cache / spec.block,
            spec.policy
        );
        // A file, not standard input: cache_restore wants to know its size.
        let file = format!("{FOLDER}/empty-{}.xml", self.place.name);
        if self.computer.is_here() {
            lock::private(Path::new(FOLDER))?;
            fs::write(&file, xml).with_context(|| file.clone())?;
        }
        let words = [
            "cache_restore",
            "--quiet",
            "-i",
            &file,
            "-o",
            &self.mapped("-meta"),
        ];
        self.computer.run(&words).map(drop)
    }

    pub(super) fn reload_dm_cache(&self) -> Result<()> {
        self.swap("", &self.dm_cache_table()?)
    }

    /// The kernel takes in the other size when the new table is resumed; blocks that no longer fit
    /// are dropped, so what is dirty must have been written back before a cache becomes smaller.
    pub(super) fn follow_dm_cache(&self) -> Result<()> {
        let (name, below) = (self.name(""), self.name("-cache"));
        let tables = [self.dm_cache_table()?, self.flash_table(&self.place.cache)];
        let script = include_str!("swap_below.sh");
        let words = [
            "sh",
            "-c",
            script,
            "hotset-swap",
            &name,
            &below,
            &tables[0],
            &tables[1],
        ];
        self.computer.run(&words).map(drop)
    }

    /// The kernel takes `migration_threshold` among the policy's arguments, and shows it among its
    /// own.
    fn dm_cache_table(&self) -> Result<String> {
        let spec = &self.spec;
        let block = spec.block / SECTOR;
        let threshold = THRESHOLD_SECTORS.max(THRESHOLD_BLOCKS * block);
        Ok(format!(
            "0 {} cache {} {} {} {block} 2 metadata2 {} {} 2 migration_threshold {threshold}",
            self.origin_sectors()?,
            self.mapped("-meta"),
            self.mapped("-cache"),
            self.place.origin.display(),
            spec.mode,
            spec.policy,
        ))
    }
}
