//! Models: a JSON description, checked, and the device it describes.
//!
//! A model is a tree ([`DeviceSpec`]): a hard disk, a flash device, an array of such, a disk
//! with flash in it, a device behind a link. Wherever a device may stand, so may the name of one in the [`library`].
//! [`ModelSpec::build`] makes the device.
//!
//! Sizes in `_bytes` are bytes, in `_kb` KiB (1024 bytes, as Linux has it); rates in `mb_per_s`
//! are 10^6 bytes per second, as on data sheets; `_us` are microseconds, `_ms` milliseconds.

use std::collections::BTreeMap;
use std::path::Path;

use garde::Validate;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

mod build;
mod device;
mod error;
mod hdd;
mod hybrid;
pub mod library;
mod link;
mod raid;
mod ssd;

use error::within;

pub use build::{Model, SERVING_PATH_NS};
pub use device::DeviceSpec;
pub use error::ModelError;
pub use hdd::HddFields;
pub use hybrid::HybridFields;
pub use library::LIBRARY;
pub use link::{LinkFields, LinkedFields};
pub use raid::{ControllerFields, Members, RaidFields};
pub use ssd::{NandFields, SsdFields};

/// A modelled storage device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Validate)]
#[garde(allow_unvalidated)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// What reports call it.
    pub name: String,
    /// What it is, in a line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// The device.
    #[garde(dive)]
    pub device: DeviceSpec,
    /// How the file lies on the platters.
    #[serde(default)]
    pub placement: Placement,
    /// How many bytes of the device the file stands for when it is spread; absent = all of it.
    ///
    /// `nas-2014` says 1.3 TB: the 500 GB TPC-C and the 800 GB TPC-H database lay side by side
    /// on its 6 TB, so the arms travelled over 22 % of the platters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(inner(custom(within(1, self.device.bytes_max(),
        "bytes, at most what the device holds; leave it out for all of it"))))]
    pub span_bytes: Option<u64>,
    /// Where the values of the parameters come from, by the parameter's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
}

/// How the file lies on the platters.
///
/// A laboratory has room for a few GB, not for the 500 GB database it stands for. Stored as it
/// is, the small file would take up a sliver of each platter and the arms would hardly move:
/// seeks three times too short. `spread` keeps the scaled database and unscales the seeks: every
/// distance is multiplied by (span / file size), while neighbouring bytes stay neighbours, so
/// that runs are as sequential as ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Seek distances stretched as if the file filled the span.
    #[default]
    Spread,
    /// Seek distances as they are: the file lies at the start of the disks.
    ShortStroke,
}

impl ModelSpec {
    /// A model of the library by its name, else the JSON file of that path.
    ///
    /// # Errors
    /// Neither is there, or what is there is no model.
    pub fn load(name: &str) -> Result<ModelSpec, ModelError> {
        if let Some(json) = library::json(name) {
            return ModelSpec::parse(name, json);
        }
        let json =
            std::fs::read_to_string(Path::new(name)).map_err(|cause| ModelError::NotFound {
                name: name.to_owned(),
                built_in: library::names(),
                cause,
            })?;
        ModelSpec::parse(name, &json)
    }

    /// Parses and checks JSON; `source_name` is for messages.
    ///
    /// # Errors
    /// It is no model; the message names field, value and remedy.
    pub fn parse(source_name: &str, json: &str) -> Result<ModelSpec, ModelError> {
        let spec: ModelSpec = read(source_name, json)?;
        spec.validate()?;
        Ok(spec)
    }

    /// What the device holds, bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.device.capacity_bytes()
    }

    /// What a file on the device stands for, bytes.
    pub fn span_bytes(&self) -> u64 {
        self.span_bytes.unwrap_or(self.capacity_bytes())
    }

    /// Whether nothing in it has a moving part, so that every microsecond on the way to it counts.
    pub fn is_flash(&self) -> bool {
        self.device.is_flash()
    }
}

/// A default, as serde calls it.
fn constant<const VALUE: u32, T: From<u32>>() -> T {
    VALUE.into()
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
