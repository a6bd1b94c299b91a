//! Which origin a cache belongs to.
//!
//! Dirty blocks laid over another origin would destroy it. So an origin carries a random id in an
//! extended attribute, and the cache's metadata remembers it. A file that was made anew, or copied
//! without its attributes (as `cp` does unless told otherwise), is another origin. A file whose
//! bytes were replaced in place is not: whoever does that must discard the cache.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use xattr::FileExt;

use crate::Refusal;
use crate::flash_file::size_of;
use crate::flash_file::witness::Watched;
use cache_core::metadata::OriginId;

/// The extended attribute that holds the id.
const ID_ATTRIBUTE: &str = "user.hotset.origin";

/// An origin whose id somebody else keeps: a block device has no attributes.
#[derive(Clone, Debug)]
pub struct NamedOrigin {
    /// The id.
    pub id: OriginId,
    /// A file that is made when the cache is given up, and forbids its use as long as it is there.
    pub given_up: PathBuf,
}

/// The slow file behind the cache, and its id.
#[derive(Debug)]
pub(super) struct OriginFile {
    /// What tells it from other origins.
    pub(super) id: OriginId,
    /// Its size, bytes.
    pub(super) bytes: u64,
    file: File,
    named: Option<NamedOrigin>,
    syncs: Watched,
}

impl OriginFile {
    /// Opens the file and gives it an id if it has none.
    ///
    /// # Errors
    /// A [`Refusal`] where the file system keeps no user attributes or somebody else's value is
    /// in the attribute; otherwise what the operating system says.
    pub(super) fn open(path: &Path, named: Option<&NamedOrigin>) -> anyhow::Result<OriginFile> {
        OriginFile::identified(path, named, give_id)
    }

    /// The same for whoever changes nothing: one that has no id has that of nobody.
    pub(super) fn look_at(path: &Path, named: Option<&NamedOrigin>) -> anyhow::Result<OriginFile> {
        OriginFile::identified(path, named, |_| Ok(OriginId::default()))
    }

    fn identified(
        path: &Path,
        named: Option<&NamedOrigin>,
        without: impl FnOnce(&File) -> io::Result<OriginId>,
    ) -> anyhow::Result<OriginFile> {
        let shown = path.display();
        let mut file = File::options()
            .read(true)
            .write(true)
            .open(path)
            .with_context(|| format!("cannot open origin {shown} for reading and writing"))?;
        let bytes = size_of(&mut file)?;
        if let Some(named) = named.cloned() {
            return Ok(OriginFile {
                id: named.id,
                bytes,
                file,
                named: Some(named),
                syncs: Watched::default(),
            });
        }
        let id = match file.get_xattr(ID_ATTRIBUTE) {
            Ok(Some(value)) => OriginId::try_from(value.as_slice()).map_err(|_| foreign(path))?,
            Ok(None) => without(&file).map_err(|error| explain(error, path))?,
            Err(error) => return Err(explain(error, path)),
        };
        Ok(OriginFile {
            id,
            bytes,
            file,
            named: None,
            syncs: Watched::default(),
        })
    }

    /// Refuses a cache that was given up: the origin has gone on without it.
    pub(super) fn check_not_given_up(&self) -> anyhow::Result<()> {
        match &self.named {
            Some(named) if named.given_up.exists() => Err(Refusal(format!(
                "the cache was given up when its flash failed, and the origin has gone on without \
                 it ({}); nothing is lost: give --discard to begin with an empty cache",
                named.given_up.display()
            ))
            .into()),
            _ => Ok(()),
        }
    }

    /// A new cache has been begun.
    pub(super) fn restart(&self) -> io::Result<()> {
        match &self.named {
            // Durable before the first write: the mark would have the next start discard it.
            Some(named) => durable::remove(&named.given_up),
            None => Ok(()),
        }
    }

    /// Makes it another origin, for good: no cache that knew it will be taken for its own again.
    pub(super) fn give_new_id(&self) -> io::Result<()> {
        match &self.named {
            Some(named) => durable::write(&named.given_up, b""),
            None => {
                give_id(&self.file)?;
                self.file.sync_all()
            }
        }
    }

    pub(super) fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.file, buffer, offset)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.syncs.sync(|| self.file.sync_data())
    }

    pub(super) fn syncs(&self) -> &Watched {
        &self.syncs
    }
}

fn give_id(file: &File) -> io::Result<OriginId> {
    let mut id = OriginId::default();
    File::open("/dev/urandom")?.read_exact(&mut id)?;
    file.set_xattr(ID_ATTRIBUTE, &id)?;
    Ok(id)
}

fn foreign(path: &Path) -> Refusal {
    let shown = path.display();
    Refusal(format!(
        "attribute {ID_ATTRIBUTE} of origin {shown} is no id of 16 bytes: remove it with `setfattr -x {ID_ATTRIBUTE} {shown}`"
    ))
}

fn explain(error: io::Error, path: &Path) -> anyhow::Error {
    let shown = path.display();
    if error.raw_os_error() == Some(libc::EOPNOTSUPP) {
        return Refusal(format!(
            "origin {shown} lies on a file system without user extended attributes, which would tell it from other origins: put it on ext4, xfs or btrfs"
        ))
        .into();
    }
    anyhow::Error::new(error).context(format!(
        "cannot use attribute {ID_ATTRIBUTE} of origin {shown}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_keeps_its_id_and_a_copy_gets_another() {
        let dir = tempfile::tempdir().unwrap();
        let (path, copy) = (dir.path().join("origin"), dir.path().join("copy"));
        std::fs::write(&path, [7; 5000]).unwrap();
        let first = OriginFile::open(&path, None).unwrap();
        let again = OriginFile::open(&path, None).unwrap();
        assert_eq!((first.id, first.bytes), (again.id, 5000));
        std::fs::copy(&path, &copy).unwrap();
        assert_ne!(OriginFile::open(&copy, None).unwrap().id, first.id);
        again.give_new_id().unwrap();
        assert_ne!(OriginFile::open(&path, None).unwrap().id, first.id);
    }

    #[test]
    fn a_foreign_attribute_is_refused_with_a_remedy() {
        let file = tempfile::NamedTempFile::new().unwrap();
        xattr::set(file.path(), ID_ATTRIBUTE, b"short").unwrap();
        let error = OriginFile::open(file.path(), None).unwrap_err();
        assert!(error.is::<Refusal>());
        assert!(error.to_string().contains("setfattr -x"), "{error}");
    }

    #[test]
    fn a_file_system_without_attributes_is_refused_by_name() {
        let error = explain(
            io::Error::from_raw_os_error(libc::EOPNOTSUPP),
            Path::new("/mnt/disk"),
        );
        assert!(error.is::<Refusal>());
        assert!(error.to_string().contains("/mnt/disk"), "{error}");
    }
}
