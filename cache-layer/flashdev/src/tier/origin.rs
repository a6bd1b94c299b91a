//! Which origin a cache belongs to.
//!
//! Dirty blocks laid over another origin would destroy it. So an origin carries a random id in an
//! extended attribute, and the cache's metadata remembers it. A file that was made anew, or copied
//! without its attributes (as `cp` does unless told otherwise), is another origin. A file whose
//! bytes were replaced in place is not: whoever does that must discard the cache.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::Context;
use xattr::FileExt;

use crate::Refusal;

/// The extended attribute that holds the id.
pub const ID_ATTRIBUTE: &str = "user.hotset.origin";

/// A random number that an origin keeps for life.
pub type OriginId = [u8; 16];

/// The slow file behind the cache.
#[derive(Debug)]
pub struct Origin {
    /// What tells it from other origins.
    pub id: OriginId,
    /// Its size, bytes.
    pub bytes: u64,
    pub(super) file: File,
}

impl Origin {
    /// Opens the file and gives it an id if it has none.
    ///
    /// # Errors
    /// A [`Refusal`] where the file system keeps no user attributes or somebody else's value is
    /// in the attribute; otherwise what the operating system says.
    pub fn open(path: &Path) -> anyhow::Result<Origin> {
        let shown = path.display();
        let file = File::options()
            .read(true)
            .write(true)
            .open(path)
            .with_context(|| format!("cannot open origin {shown} for reading and writing"))?;
        let bytes = file.metadata()?.len();
        let id = match file.get_xattr(ID_ATTRIBUTE) {
            Ok(Some(value)) => OriginId::try_from(value.as_slice()).map_err(|_| foreign(path))?,
            Ok(None) => give_id(&file).map_err(|error| explain(error, path))?,
            Err(error) => return Err(explain(error, path)),
        };
        Ok(Origin { id, bytes, file })
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
        let first = Origin::open(&path).unwrap();
        let again = Origin::open(&path).unwrap();
        assert_eq!((first.id, first.bytes), (again.id, 5000));
        std::fs::copy(&path, &copy).unwrap();
        assert_ne!(Origin::open(&copy).unwrap().id, first.id);
    }

    #[test]
    fn a_foreign_attribute_is_refused_with_a_remedy() {
        let file = tempfile::NamedTempFile::new().unwrap();
        xattr::set(file.path(), ID_ATTRIBUTE, b"short").unwrap();
        let error = Origin::open(file.path()).unwrap_err();
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
