//! What can be wrong with a model.

use crate::device::raid::geometry::Level;

/// What is wrong with a model; one sentence that names field, value and remedy.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// Neither a name in the library nor a readable file.
    #[error(
        "model `{name}` is neither in the library ({built_in}) nor a readable file ({cause}): give one of these names or the path of a JSON file"
    )]
    NotFound {
        /// What was asked for.
        name: String,
        /// The names there are.
        built_in: String,
        /// Why the file could not be read.
        cause: std::io::Error,
    },
    /// Not JSON, an unknown or missing field, or a value of the wrong kind.
    #[error(
        "model {source_name}: field `{field}`: {cause}; `flashdev models nas-2014` prints a complete example"
    )]
    Malformed {
        /// File or library name.
        source_name: String,
        /// Path of the field, `.` for the whole.
        field: String,
        /// What the parser says.
        cause: serde_json::Error,
    },
    /// A value that no device has.
    #[error("model field `{field}` is {value}: {remedy}")]
    OutOfRange {
        /// Path of the field.
        field: String,
        /// Its value.
        value: String,
        /// What it should be.
        remedy: String,
    },
    /// An array of too few members.
    #[error("model field `{field}` has {count} members: {level} takes {remedy}")]
    Members {
        /// Path of the field.
        field: String,
        /// How many it has.
        count: usize,
        /// What the array is.
        level: Level,
        /// How many it should have.
        remedy: String,
    },
    /// Members that hold different amounts, or are of different kinds.
    #[error(
        "model field `{field}[{number}]` ({found}) is unlike the members before it ({expected}): members of an array are alike; an unlike one would slow the others down or waste space"
    )]
    UnlikeMembers {
        /// Path of the field.
        field: String,
        /// Number of the first unlike one.
        number: usize,
        /// What it is.
        found: String,
        /// What the others are.
        expected: String,
    },
    /// More data than the modelled device holds.
    #[error(
        "the file has {size_bytes} bytes, but the model holds {capacity_bytes}: use a smaller file or a larger model"
    )]
    TooLarge {
        /// Size of the file.
        size_bytes: u64,
        /// What the model holds.
        capacity_bytes: u64,
    },
}

/// Refuses a value outside its range; `unit` closes the sentence "give LEAST to MOST …".
pub(super) fn within<T: PartialOrd + std::fmt::Display>(
    field: impl Into<String>,
    value: T,
    least: T,
    most: T,
    unit: &str,
) -> Result<(), ModelError> {
    if least <= value && value <= most {
        return Ok(());
    }
    Err(ModelError::OutOfRange {
        field: field.into(),
        value: value.to_string(),
        remedy: format!("give {least} to {most} {unit}"),
    })
}
