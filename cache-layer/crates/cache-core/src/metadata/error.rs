//! What keeps metadata from being used.

use std::io;

use crate::layout::LayoutError;

/// What can be done with a cache in a format that nobody here reads.
const KEPT: &str = "nothing was changed: use the version that wrote it, which can write dirty blocks \
    back; if nothing on it is wanted any more, write zeros over the first 8 KiB of METADATA";

/// What a cache can be begun anew with, and what that costs.
const DISCARD: &str = "give --discard to begin with an empty cache, which loses dirty blocks";

/// Why a cache on a flash cannot be made or taken up.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    /// The layout does not fit the flash or the origin.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// What is there is not what was written.
    #[error(
        "metadata on the flash is damaged ({0}): restore the flash file, or get back what is provably \
         dirty with `hotset-engine salvage`, or {DISCARD}"
    )]
    Damaged(&'static str),
    /// There is nothing where the superblocks are.
    #[error(
        "metadata on the flash is missing (its superblocks are zeros): if there was a cache, it was \
         erased: restore the flash file, or get back what is provably dirty with \
         `hotset-engine salvage`; if the flash is new, begin an empty cache with `hotset-engine format` or --discard"
    )]
    Missing,
    /// A later program's format.
    #[error(
        "metadata on the flash has format version {stored}, but this program reads version \
         {known}: {KEPT}"
    )]
    Version {
        /// The format on the flash.
        stored: u32,
        /// The format of this program.
        known: u32,
    },
    /// A format that no released program wrote.
    #[error(
        "metadata on the flash has format version {stored} of before the first release, which this \
         program does not read: {KEPT}"
    )]
    BeforeRelease {
        /// The version that it had among those.
        stored: u32,
    },
    /// The blocks are another origin's.
    #[error(
        "the cache on the flash belongs to another origin (or to this one before it was made \
         anew, or since a failed flash was given up): give that origin, or {DISCARD}"
    )]
    OtherOrigin,
    /// Made with another geometry.
    #[error(
        "the cache on the flash was made with a {what} of {stored} bytes, not {given}: give it as \
         it was, or {DISCARD}"
    )]
    OtherSize {
        /// Which size.
        what: &'static str,
        /// What it was made with.
        stored: u64,
        /// What was given now.
        given: u64,
    },
    /// The origin is smaller than it was.
    #[error(
        "the origin has shrunk from {stored} to {given} bytes since the cache on the flash was last \
         in use: grow it again, or restore it; until then nothing is lost"
    )]
    Shrunk {
        /// Its size when the cache was last in use.
        stored: u64,
        /// Its size now.
        given: u64,
    },
    /// Nothing was ever synced, and the computer stopped.
    #[error(
        "the cache on the flash was served with --volatile when the computer stopped, so its \
         contents are not to be trusted: give --discard to begin with an empty cache"
    )]
    Volatile,
    /// The flash cannot be read or written.
    #[error("cannot {what}: {source}")]
    Io {
        /// What failed.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
}

impl MetadataError {
    /// Whether it is for the user to mend, rather than a failing device.
    pub fn is_refusal(&self) -> bool {
        !matches!(self, MetadataError::Io { .. })
    }

    pub(super) fn io(what: &'static str) -> impl FnOnce(io::Error) -> MetadataError {
        move |source| MetadataError::Io { what, source }
    }
}
