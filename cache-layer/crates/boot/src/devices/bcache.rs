//! The kernel's bcache. It wants a superblock of its own on the backing device: that is a device of
//! two pieces, a header on the flash and the whole origin behind it, with the data at the origin's
//! first sector (superblock version 4, `data_offset`: drivers/md/bcache/super.c). The accelerated
//! device is a linear one on top of `/dev/bcacheN`, whose number may change.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{SECTOR, Tier, linear, wait_until};
use crate::flash_device::{Kind, Part};
use crate::media::Medium;
use crate::run::{Cause, cause, failed, failure};

const BCACHE: &str = "/sys/fs/bcache";
const BUCKETS: u64 = 1024;
const BUCKET: u64 = 512 * 1024;
const BUCKET_MIN: u64 = 64 * 1024;
/// The backing device's superblock lies at its sector 8. Of its 64 bits of flags (bcache_ondisk.h)
/// two are the device's state: 0 without a cache, 1 clean, 2 dirty, 3 stale.
const SUPERBLOCK_AT: u64 = 4096;
const MAGIC_AT: usize = 24;
const MAGIC: [u8; 4] = [0xc6, 0x85, 0x73, 0xf6];
const FLAGS_LAST_BYTE: usize = 111;
const CLEAN: u8 = 1;

impl Tier {
    pub(super) fn make_bcache_parts(&self) -> Result<()> {
        self.computer.load(&["bcache"])?;
        self.make_volume()?;
        self.make_part("-cache", &self.flash_table(&self.place.cache))?;
        self.make_part("-backing", &self.backing_table()?)
    }

    pub(super) fn open_bcache(&self) -> Result<()> {
        self.make_bcache_parts()?;
        self.require_superblock("-backing")?;
        if let Err(error) = self.require_superblock("-cache") {
            // A resize was cut short before it had formatted the new cache; nothing is lost then.
            if cause(&error) != Some(Cause::Damaged) || self.bcache_may_be_dirty()? {
                return Err(error);
            }
            self.format_cache_set()?;
        }
        Ok(())
    }

    /// What bcache refuses of superblocks that are there shows only here.
    pub(super) fn make_bcache(&self) -> Result<()> {
        self.make_bcache_parts()?;
        self.register("-cache")?;
        self.start_backing()?;
        self.attach_cache_set()?;
        self.tune_bcache()?;
        self.make_top(&self.bcache_table()?)
    }

    /// Both superblocks are new ones: nothing of what was there before counts.
    pub(super) fn empty_bcache(&self) -> Result<()> {
        self.computer.load(&["bcache"])?;
        self.stop_bcache()?;
        self.remove_parts()?;
        self.blank(&self.place.metadata)?;
        self.format_cache_set()?;
        self.make_bcache_parts()?;
        let (offset, sector) = (self.header_sectors().to_string(), self.sector_size()?);
        let words = [
            "make-bcache",
            "-B",
            "--block",
            &sector,
            "--data-offset",
            &offset,
        ];
        let backing = self.mapped("-backing");
        self.computer
            .run(&[&words[..], &[&backing]].concat())
            .map(drop)
    }

    /// Set what the kernel forgets at every start, and what a flush changed.
    pub(super) fn tune_bcache(&self) -> Result<()> {
        let folder = self.backing_folder()?;
        self.bcache_settings()
            .iter()
            .try_for_each(|(name, value)| self.computer.set(&folder.join(name), value))
    }

    /// Take in an origin that has grown, the cache let go of and I/O going on. bcache learns a
    /// backing device's size only when it starts, so I/O goes to the origin itself meanwhile.
    pub(super) fn follow_bcache_origin(&self) -> Result<()> {
        if self.bcache_device()?.is_some() {
            let origin = self.place.origin.display();
            let table = format!("0 {} linear {origin} 0", self.origin_sectors()?);
            self.swap("", &table)?;
            self.stop(&self.backing_folder()?)?;
        }
        // Cut short before, it goes on from here.
        self.swap("-backing", &self.backing_table()?)?;
        self.start_backing()?;
        self.swap("", &self.bcache_table()?)
    }

    /// Take away a cache set that its device was detached from. So that an activation after a crash
    /// finds no cache there, rather than one of another size, it is blanked.
    pub(super) fn drop_cache_set(&self) -> Result<()> {
        self.stop(&self.cache_set())?;
        self.remove_devices(&["-cache"])?;
        self.blank(&self.place.cache)
    }

    /// Give the running device a new cache: what one that it let go of holds is older than the
    /// origin, and the kernel would take it for the truth.
    pub(super) fn follow_bcache_cache(&self) -> Result<()> {
        self.drop_cache_set()?;
        self.format_cache_set()?;
        self.register("-cache")?;
        self.attach_cache_set()?;
        self.tune_bcache()
    }

    /// Whether the flash may hold writes that the origin lacks, by the backing device's superblock.
    pub fn bcache_may_be_dirty(&self) -> Result<bool> {
        Ok(!self.computer.is_here() || self.backing_state()?.0 > CLEAN)
    }

    /// Whether it certainly does not, by a superblock that is one.
    pub fn is_clean_bcache(&self) -> Result<bool> {
        if self.kind != Kind::Bcache {
            return Ok(false);
        }
        let (state, is_there) = self.backing_state()?;
        Ok(is_there && state <= CLEAN)
    }

    /// The device's state, and whether that is of a superblock.
    fn backing_state(&self) -> Result<(u8, bool)> {
        let header = self.place.metadata.first().context("it has no header")?;
        let flash = Medium::open(&self.place.flash, false)?;
        let block = flash.read(header.start + SUPERBLOCK_AT, SUPERBLOCK_AT as usize)?;
        let flags = block
            .get(FLAGS_LAST_BYTE)
            .context("the flash ends within its header")?;
        Ok(((flags >> 5) & 3, block[MAGIC_AT..].starts_with(&MAGIC)))
    }

    /// As the flash fails, the kernel has a clean one go on without its cache; its superblocks, which
    /// are on the flash, do not say so.
    pub(super) fn goes_without_cache(&self) -> Result<bool> {
        Ok(self.bcache_device()?.is_some() && !self.backing_folder()?.join("cache").exists())
    }

    /// Attributes in their order. A congested flash must not bypass, or a warm-up on a slow origin
    /// is skipped without a word; a short delay lets a flush begin soon.
    fn bcache_settings(&self) -> [(&'static str, String); 7] {
        let spec = &self.spec;
        [
            ("cache_mode", spec.mode.clone()),
            ("sequential_cutoff", spec.bypass.unwrap_or(0).to_string()),
            ("writeback_percent", "10".into()),
            ("writeback_delay", "1".into()),
            ("stop_when_cache_set_failed", "auto".into()),
            ("cache/congested_read_threshold_us", "0".into()),
            ("cache/congested_write_threshold_us", "0".into()),
        ]
    }

    /// A new, empty cache set.
    fn format_cache_set(&self) -> Result<()> {
        self.blank(&self.place.cache)?;
        self.make_part("-cache", &self.flash_table(&self.place.cache))?;
        let mut bucket = BUCKET;
        while self.spec.cache / bucket < BUCKETS && bucket > BUCKET_MIN {
            bucket /= 2;
        }
        let (bucket, sector) = (bucket.to_string(), self.sector_size()?);
        let sizes = ["--bucket", &bucket, "--block", &sector];
        let rest = ["--cset-uuid", &self.identity, &self.mapped("-cache")];
        let words = [&["make-bcache", "-C"][..], &sizes, &rest].concat();
        self.computer.run(&words).map(drop)
    }

    /// The larger logical sector, in bytes: what a file system on the origin was made for must do.
    fn sector_size(&self) -> Result<String> {
        let devices = [&*self.place.origin, &*self.place.flash];
        Ok(self.computer.sector_size(&devices)?.to_string())
    }

    /// # Errors
    /// [`Cause::Damaged`]: there is no valid superblock.
    fn require_superblock(&self, ending: &str) -> Result<()> {
        let device = self.mapped(ending);
        let why = match self.computer.run(&["bcache-super-show", &device]) {
            Ok(text) if text.contains("[match]") || !self.computer.is_here() => return Ok(()),
            Ok(text) => text.chars().take(300).collect(),
            Err(error) => failed(error)?.why,
        };
        let words = format!("{device} has no valid bcache superblock: {}", why.trim());
        Err(failure(Cause::Damaged, words))
    }

    /// Show bcache a device. udev may have done so, which `register_quiet` takes for success; what
    /// it refuses shows in what follows.
    fn register(&self, ending: &str) -> Result<()> {
        let file = Path::new(BCACHE).join("register_quiet");
        match self.computer.set(&file, &self.mapped(ending)) {
            Err(error) if cause(&error) != Some(Cause::Failed) => Err(error),
            _ => Ok(()),
        }
    }

    fn start_backing(&self) -> Result<()> {
        self.register("-backing")?;
        self.wait_for("bcache does not start the device", || {
            self.bcache_device().is_ok_and(|device| device.is_some())
        })
    }

    /// Attach the device to the cache set, once that is there, unless it is.
    fn attach_cache_set(&self) -> Result<()> {
        let folder = self.backing_folder()?;
        let is_attached = || folder.join("cache").exists();
        let attach = || {
            self.computer
                .set(&folder.join("attach"), &self.identity)
                .is_ok()
        };
        self.wait_for("bcache refuses the cache set", || is_attached() || attach())
    }

    /// # Errors
    /// [`Cause::Damaged`]: it does not come; has the kernel's last words.
    fn wait_for(&self, otherwise: &str, ready: impl Fn() -> bool) -> Result<()> {
        if !self.computer.is_here() {
            ready();
            return Ok(());
        }
        wait_until(otherwise, ready).map_err(|error| {
            let log = self.computer.run(&["dmesg"]).unwrap_or_default();
            let lines: Vec<&str> = log.lines().filter(|line| line.contains("bcache")).collect();
            let last = lines[lines.len().saturating_sub(3)..].join(" / ");
            failure(Cause::Damaged, format!("{error}; the kernel says: {last}"))
        })
    }

    /// The folder of the backing device's attributes: neither `dm-N` nor `bcacheN` is the same
    /// after a boot.
    fn backing_folder(&self) -> Result<PathBuf> {
        if !self.computer.is_here() {
            return Ok("/sys/block/dm-N/bcache".into());
        }
        let node =
            fs::canonicalize(self.mapped("-backing")).with_context(|| self.mapped("-backing"))?;
        let name = node.file_name().context("it has no name")?;
        Ok(Path::new("/sys/block").join(name).join("bcache"))
    }

    /// `/dev/bcacheN`, which bcache gives a running backing device.
    fn bcache_device(&self) -> Result<Option<PathBuf>> {
        if !self.computer.is_here() {
            return Ok(Some("/dev/bcacheN".into()));
        }
        let device = fs::canonicalize(self.backing_folder()?.join("dev")).ok();
        Ok(device.and_then(|path| Some(Path::new("/dev").join(path.file_name()?))))
    }

    fn cache_set(&self) -> PathBuf {
        Path::new(BCACHE).join(&self.identity)
    }

    pub(super) fn stop_bcache(&self) -> Result<()> {
        if self.computer.has(&self.name("-backing"))? {
            self.stop(&self.backing_folder()?)?;
        }
        self.stop(&self.cache_set())
    }

    /// Have bcache let go of a device or a cache set, if it has it.
    fn stop(&self, folder: &Path) -> Result<()> {
        if self.computer.is_here() && !folder.exists() {
            return Ok(());
        }
        // What counts is that it goes.
        let _ = self.computer.set(&folder.join("stop"), "1");
        if !self.computer.is_here() {
            return Ok(());
        }
        let (shown, backing) = (folder.display(), self.name("-backing"));
        let words = format!("bcache does not stop: {shown} is still there; is {backing} in use?");
        wait_until(&words, || !folder.exists())
    }

    fn header_sectors(&self) -> u64 {
        self.place
            .metadata
            .iter()
            .map(|part: &Part| part.size)
            .sum::<u64>()
            / SECTOR
    }

    fn backing_table(&self) -> Result<String> {
        let header = linear(&self.place.flash, &self.place.metadata);
        let (at, size) = (self.header_sectors(), self.origin_sectors()?);
        Ok(format!(
            "{header}\n{at} {size} linear {} 0",
            self.place.origin.display()
        ))
    }

    fn bcache_table(&self) -> Result<String> {
        let device = self
            .bcache_device()?
            .context("bcache has no device of it")?;
        Ok(format!(
            "0 {} linear {} 0",
            self.origin_sectors()?,
            device.display()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One that lost its cache to a resize which was cut short is as clean as any; of a header that
    /// is none nobody knows.
    #[test]
    fn a_bcache_is_clean_by_its_superblock_alone() {
        let folder = tempfile::tempdir().unwrap();
        let flash = folder.path().join("flash");
        let is_clean = |state: u8, magic: &[u8]| {
            let mut header = vec![0; 2 * SUPERBLOCK_AT as usize];
            header[SUPERBLOCK_AT as usize + FLAGS_LAST_BYTE] = state << 5;
            let at = SUPERBLOCK_AT as usize + MAGIC_AT;
            header[at..at + magic.len()].copy_from_slice(magic);
            fs::write(&flash, header).unwrap();
            let tier: Tier = serde_json::from_value(serde_json::json!({
                "kind": "bcache", "identity": "",
                "spec": {"mode": "writeback", "policy": "lru", "block": 4096, "metadata": 0,
                         "cache": 0, "bypass": null},
                "place": {"name": "shop", "flash": &flash, "origin": "", "cache": [],
                          "metadata": [{"start": 0, "size": 1 << 20}],
                          "volume": {"name": "", "parts": []}},
            }))
            .unwrap();
            (
                tier.is_clean_bcache().unwrap(),
                tier.bcache_may_be_dirty().unwrap(),
            )
        };
        for (state, dirty) in [(0, false), (1, false), (2, true), (3, true)] {
            assert_eq!(is_clean(state, &MAGIC), (!dirty, dirty), "{state}");
            assert_eq!(is_clean(state, b"none"), (false, dirty), "{state}");
        }
    }
}
