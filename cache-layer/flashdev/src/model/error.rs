//! What can be wrong with a model.

/// What is wrong with a model; one sentence that names field, value and remedy.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// Neither a built-in name nor a readable file.
    #[error(
        "model `{name}` is neither built in ({built_in}) nor a readable file ({cause}): give one of these names or the path of a JSON file"
    )]
    NotFound {
        /// What was asked for.
        name: String,
        /// The names there are.
        built_in: String,
        /// Why the file could not be read.
        cause: std::io::Error,
    },
    /// Disks and flash at once, or neither.
    #[error(
        "model {source_name} has {found}: give either `disks`, a number of hard disks, or `flash`, a flash device"
    )]
    Kind {
        /// File or built-in name.
        source_name: String,
        /// Which of the two fields it has.
        found: &'static str,
    },
    /// Not JSON, an unknown or missing field, or a value of the wrong kind.
    #[error(
        "model {source_name}: field `{field}`: {cause}; `flashdev models nas-2014` (disks) and `flashdev models pcie-flash-2014` (flash) print complete examples"
    )]
    Malformed {
        /// File or built-in name.
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
        field: &'static str,
        /// Its value.
        value: String,
        /// What it should be.
        remedy: String,
    },
    /// More data than the modelled device holds.
    #[error(
        "the file has {size_bytes} bytes, but the model holds {capacity_bytes} ({fields}): use a smaller file or a larger model"
    )]
    TooLarge {
        /// Size of the file.
        size_bytes: u64,
        /// What the model holds.
        capacity_bytes: u64,
        /// The fields that say so.
        fields: &'static str,
    },
}

/// Refuses a value outside its range; `unit` closes the sentence "give LEAST to MOST …".
pub(super) fn within<T: PartialOrd + std::fmt::Display>(
    field: &'static str,
    value: T,
    least: T,
    most: T,
    unit: &str,
) -> Result<(), ModelError> {
    if least <= value && value <= most {
        return Ok(());
    }
    Err(ModelError::OutOfRange {
        field,
        value: value.to_string(),
        remedy: format!("give {least} to {most} {unit}"),
    })
}
