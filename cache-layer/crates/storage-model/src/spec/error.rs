//! What can be wrong with a model.

use std::fmt::Display;

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
    #[error("model field `{field}` {reason}")]
    Invalid {
        /// Path of the field.
        field: String,
        /// Its value, and what it should be.
        reason: String,
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

/// The first of them that is no consequence of another: its remedy names no other invalid field.
impl From<garde::Report> for ModelError {
    fn from(report: garde::Report) -> ModelError {
        let errors = report.into_inner();
        let names = |reason: &garde::Error, field: &garde::Path| {
            let path = field.to_string();
            let name = path.rsplit('.').next().unwrap_or(&path);
            reason.message().contains(name)
        };
        let is_root = |(field, reason): &&(garde::Path, garde::Error)| {
            let mut others = errors.iter().filter(|(other, _)| other != field);
            !others.any(|(other, _)| names(reason, other))
        };
        let (field, reason) = errors.iter().find(is_root).unwrap_or(&errors[0]);
        ModelError::Invalid {
            field: field.to_string(),
            reason: reason.to_string(),
        }
    }
}

/// The rule of a field that has a range; `unit` closes the sentence "give LEAST to MOST …".
pub(super) fn within<T: PartialOrd + Display, C>(
    least: T,
    most: T,
    unit: &str,
) -> impl FnOnce(&T, &C) -> garde::Result {
    move |value, _| {
        let remedy = format_args!("{least} to {most} {unit}");
        require(least <= *value && *value <= most, value, remedy)
    }
}

/// The rule of a field of which more is asked than a range; `remedy` closes the sentence "give …".
pub(super) fn only<T: Display, C>(
    valid: impl FnOnce(&T) -> bool,
    remedy: &str,
) -> impl FnOnce(&T, &C) -> garde::Result {
    move |value, _| require(valid(value), value, remedy)
}

/// Refuses the value of a field unless it is valid; `remedy` closes the sentence "give …".
pub(super) fn require(valid: bool, value: impl Display, remedy: impl Display) -> garde::Result {
    match valid {
        true => Ok(()),
        false => Err(garde::Error::new(format!("is {value}: give {remedy}"))),
    }
}
