//! The devices and links that come with the program: data files, one a device.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{DeviceSpec, LinkFields, ModelSpec};

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../models/", $name, ".json")))),*]
    };
}

/// Names and JSON of the devices.
pub const LIBRARY: &[(&str, &str)] = files![
    "nas-2014",
    "hdd-7200",
    "pcie-flash-2014",
    "dc500m",
    "wd3200bekt",
    "hybrid-disk-2014",
    "sata-ssd-2014",
    "nvme-2024",
    "hdd-raid5-2014",
    "dc500m-raid0",
    "dc500m-raid5",
    "dc500m-raid6",
    "dc500m-raid-f1",
];

/// The links, all in one file.
const LINKS: &str = include_str!("../../models/links.json");

/// A link of the library.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedLink {
    /// What it is, in a line.
    pub title: String,
    /// Where the values come from.
    pub source: String,
    /// The values.
    pub link: LinkFields,
}

/// The JSON of a device of the library.
pub fn json(name: &str) -> Option<&'static str> {
    let entry = LIBRARY.iter().find(|(known, _)| *known == name);
    entry.map(|(_, json)| *json)
}

/// A device of the library, without the rest of its model; or a message.
pub(super) fn device(name: &str) -> Result<DeviceSpec, String> {
    let json = json(name)
        .ok_or_else(|| format!("no device `{name}` in the library: give one of {}", names()))?;
    let spec = ModelSpec::parse(name, json).map_err(|error| error.to_string())?;
    Ok(spec.device)
}

/// A link of the library; or a message.
pub(super) fn link(name: &str) -> Result<LinkFields, String> {
    let mut links = links()?;
    let known: Vec<_> = links.keys().cloned().collect();
    let entry = links.remove(name);
    entry.map(|named| named.link).ok_or_else(|| {
        format!(
            "no link `{name}` in the library: give one of {}",
            known.join(", ")
        )
    })
}

/// All links of the library; or a message.
pub fn links() -> Result<BTreeMap<String, NamedLink>, String> {
    serde_json::from_str(LINKS).map_err(|error| format!("links.json: {error}"))
}

/// The names of all devices, for messages.
pub fn names() -> String {
    let names: Vec<_> = LIBRARY.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}
