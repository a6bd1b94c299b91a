//! Models: a JSON description, checked, and the device it describes.
//!
//! A model is either hard disks ([`disks`]) or a flash ([`flash`]); both may lie behind a
//! [`link`]. [`build`] makes the device.
//!
//! Sizes in `_bytes` are bytes, in `_kb` KiB (1024 bytes, as Linux has it); rates in `mb_per_s`
//! are 10^6 bytes per second, as on data sheets; `_us` are microseconds, `_ms` milliseconds.

use std::path::Path;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

pub mod build;
pub mod disks;
mod error;
pub mod flash;
pub mod link;

pub use build::{Model, SERVING_PATH_NS};
pub use disks::{DiskSpec, DisksModel, Placement};
pub use error::ModelError;
pub use flash::{FlashFields, FlashModel};
pub use link::LinkFields;

/// The models that come with the program: name and JSON.
pub const BUILT_IN: [(&str, &str); 4] = [
    ("nas-2014", include_str!("../../models/nas-2014.json")),
    ("hdd-7200", include_str!("../../models/hdd-7200.json")),
    (
        "pcie-flash-2014",
        include_str!("../../models/pcie-flash-2014.json"),
    ),
    ("dc500m", include_str!("../../models/dc500m.json")),
];

/// A modelled storage device.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ModelSpec {
    /// Has the field `disks`.
    Disks(DisksModel),
    /// Has the field `flash`.
    Flash(FlashModel),
}

/// The fields that say what a model is.
#[derive(Deserialize)]
struct Kind {
    disks: Option<IgnoredAny>,
    flash: Option<IgnoredAny>,
}

impl ModelSpec {
    /// A built-in model by its name, else the JSON file of that path.
    pub fn load(name: &str) -> Result<ModelSpec, ModelError> {
        if let Some((name, json)) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name) {
            return ModelSpec::parse(name, json);
        }
        let json = std::fs::read_to_string(Path::new(name)).map_err(|cause| {
            let names: Vec<_> = BUILT_IN.iter().map(|(name, _)| *name).collect();
            ModelError::NotFound {
                name: name.to_owned(),
                built_in: names.join(", "),
                cause,
            }
        })?;
        ModelSpec::parse(name, &json)
    }

    /// Parses and checks JSON; `source_name` is for messages.
    ///
    /// It is read twice, first for the kind of model only: so each kind knows its own fields,
    /// and a message about an unknown one lists those that would do.
    pub fn parse(source_name: &str, json: &str) -> Result<ModelSpec, ModelError> {
        let kind: Kind = read(source_name, json)?;
        let either = |found| ModelError::Kind {
            source_name: source_name.to_owned(),
            found,
        };
        let spec = match (kind.disks, kind.flash) {
            (Some(_), None) => ModelSpec::Disks(read(source_name, json)?),
            (None, Some(_)) => ModelSpec::Flash(read(source_name, json)?),
            (Some(_), Some(_)) => return Err(either("both fields `disks` and `flash`")),
            (None, None) => return Err(either("neither field `disks` nor `flash`")),
        };
        match &spec {
            ModelSpec::Disks(disks) => disks.check()?,
            ModelSpec::Flash(flash) => flash.check()?,
        }
        Ok(spec)
    }

    /// What reports call it.
    pub fn name(&self) -> &str {
        match self {
            ModelSpec::Disks(disks) => &disks.name,
            ModelSpec::Flash(flash) => &flash.name,
        }
    }

    /// What the device holds, bytes.
    pub fn capacity_bytes(&self) -> u64 {
        match self {
            ModelSpec::Disks(disks) => disks.capacity_bytes(),
            ModelSpec::Flash(flash) => flash.flash.capacity_bytes,
        }
    }

    /// What a file on the device stands for, bytes: on disks that is
    /// [`DisksModel::span_bytes`], on a flash, where distance costs nothing, all of it.
    pub fn span_bytes(&self) -> u64 {
        match self {
            ModelSpec::Disks(disks) => disks.span_bytes(),
            ModelSpec::Flash(_) => self.capacity_bytes(),
        }
    }
}

fn read<T: DeserializeOwned>(source_name: &str, json: &str) -> Result<T, ModelError> {
    let malformed = |field: String, cause| ModelError::Malformed {
        source_name: source_name.to_owned(),
        field,
        cause,
    };
    let mut parser = serde_json::Deserializer::from_str(json);
    let value = serde_path_to_error::deserialize(&mut parser)
        .map_err(|error| malformed(error.path().to_string(), error.into_inner()))?;
    parser
        .end()
        .map_err(|cause| malformed(".".to_owned(), cause))?;
    Ok(value)
}

#[cfg(test)]
pub(crate) mod contract_tests;
#[cfg(test)]
mod tests;
