//! By what a disk is served: a block device of the kernel's ublk where that can be used, else a file
//! of FUSE's.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use cache_core::metadata::OriginId;
use serde::Serialize;

use crate::fuse::file_system::ServedFile;
use crate::ublk::{Device, remove_device};

/// How a disk is served.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Front {
    /// As this block device.
    Ublk {
        /// Its path.
        device: PathBuf,
    },
    /// As a file.
    Fuse {
        /// Why not as a block device.
        why: String,
    },
}

impl Front {
    /// Puts it down for whoever attaches the disk.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn note(&self, file: &Path) -> anyhow::Result<()> {
        let words = match self {
            Front::Ublk { device } => format!("ublk {}\n", device.display()),
            Front::Fuse { why } => format!("fuse {why}\n"),
        };
        fs::write(file, words).with_context(|| format!("cannot write {}", file.display()))
    }

    /// Whether the disk may become larger while it is in use. The kernel has a command for that since
    /// 6.16 only (UBLK_U_CMD_UPDATE_SIZE).
    pub(crate) fn can_grow(&self) -> bool {
        matches!(self, Front::Fuse { .. })
    }
}

/// Serves these files as a block device if that can be; else says why they are served as files.
///
/// `waits`: whoever serves a request waits for the flash, so that many have to.
pub(crate) fn choose(
    origin: &OriginId,
    files: &[ServedFile],
    waits: bool,
) -> (Front, Option<Device>) {
    let served = match files {
        _ if waits => not_by_ublk(origin, "the flash cannot be used through io_uring"),
        [file] => Device::serve(origin, file.view.size_bytes, &file.handler),
        _ => not_by_ublk(origin, "a VOLUME is served beside the disk"),
    };
    match served {
        Ok(device) => {
            let path = device.path();
            (Front::Ublk { device: path }, Some(device))
        }
        Err(why) => (Front::Fuse { why }, None),
    }
}

/// A device that the last server left behind would keep its users waiting for ever.
fn not_by_ublk(origin: &OriginId, why: &str) -> Result<Device, String> {
    remove_device(origin).map_err(|error| format!("{error:#}"))?;
    Err(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_serves_a_disk_is_put_down_for_scripts() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("front");
        let ublk = Front::Ublk {
            device: "/dev/ublkb0".into(),
        };
        ublk.note(&file).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "ublk /dev/ublkb0\n");
        let why = "no ublk".to_owned();
        Front::Fuse { why }.note(&file).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "fuse no ublk\n");
        assert!(ublk.note(&dir.path().join("none/front")).is_err());
    }

    #[test]
    fn a_disk_whose_flash_has_to_be_waited_for_is_served_as_a_file() {
        let (front, device) = choose(&OriginId::default(), &[], true);
        assert!(device.is_none() && front.can_grow());
        let (front, _) = choose(&OriginId::default(), &[], false);
        assert!(matches!(front, Front::Fuse { why } if why.contains("VOLUME")));
    }
}
