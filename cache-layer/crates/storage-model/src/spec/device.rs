//! A device of a model: one of the kinds, or the name of one in the library.

use garde::util::nested_path;
use garde::{Path, Report, Validate};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::{HddFields, HybridFields, LinkedFields, RaidFields, SsdFields, library};

/// A device with those below it. In JSON an object with the kind as its one field,
/// `{"hdd": {"rpm": 7200}}`, or the name of a device in the library, `"hdd-7200"`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceSpec {
    /// A hard disk.
    Hdd(HddFields),
    /// A flash device.
    Ssd(SsdFields),
    /// Devices made into one.
    Raid(Box<RaidFields>),
    /// A disk with flash in it.
    Hybrid(Box<HybridFields>),
    /// A device behind a network or bus.
    Linked(Box<LinkedFields>),
}

/// The kinds, as JSON names them.
const KINDS: &[&str] = &["hdd", "ssd", "raid", "hybrid", "linked"];

impl DeviceSpec {
    /// What the device holds, bytes.
    pub fn capacity_bytes(&self) -> u64 {
        match self {
            DeviceSpec::Hdd(hdd) => hdd.capacity_bytes,
            DeviceSpec::Ssd(ssd) => ssd.capacity_bytes,
            DeviceSpec::Raid(raid) => raid.capacity_bytes(),
            DeviceSpec::Hybrid(hybrid) => hybrid.disk.capacity_bytes(),
            DeviceSpec::Linked(linked) => linked.device.capacity_bytes(),
        }
    }

    /// Whether all devices at the bottom are flash.
    pub fn is_flash(&self) -> bool {
        match self {
            DeviceSpec::Hdd(_) => false,
            DeviceSpec::Ssd(_) => true,
            DeviceSpec::Raid(raid) => raid.members.list().iter().all(DeviceSpec::is_flash),
            DeviceSpec::Hybrid(hybrid) => hybrid.disk.is_flash(),
            DeviceSpec::Linked(linked) => linked.device.is_flash(),
        }
    }

    /// Whether it can have answered a write that a loss of power would take.
    pub fn is_volatile(&self) -> bool {
        match self {
            DeviceSpec::Hdd(hdd) => hdd.write_cache_kb > 0 || hdd.write_gather_kb > 0,
            DeviceSpec::Ssd(ssd) => !ssd.power_loss_protection,
            DeviceSpec::Raid(raid) => {
                let cache = raid.controller.as_ref();
                cache.is_some_and(|cache| !cache.battery)
                    || raid.members.list().iter().any(DeviceSpec::is_volatile)
            }
            DeviceSpec::Hybrid(hybrid) => hybrid.disk.is_volatile() || hybrid.flash.is_volatile(),
            DeviceSpec::Linked(linked) => linked.device.is_volatile(),
        }
    }

    /// At most so many bytes of the device can be meant. Any number where the device itself is
    /// invalid, which its own fields tell.
    pub(super) fn bytes_max(&self) -> u64 {
        self.validate().map_or(u64::MAX, |()| self.capacity_bytes())
    }
}

/// By hand, so that the path of a field in a message has the kind.
impl Validate for DeviceSpec {
    type Context = ();

    fn validate_into(&self, (): &(), mut parent: &mut dyn FnMut() -> Path, report: &mut Report) {
        let (kind, fields): (_, &dyn Validate<Context = ()>) = match self {
            DeviceSpec::Hdd(fields) => ("hdd", fields),
            DeviceSpec::Ssd(fields) => ("ssd", fields),
            DeviceSpec::Raid(fields) => ("raid", fields),
            DeviceSpec::Hybrid(fields) => ("hybrid", fields),
            DeviceSpec::Linked(fields) => ("linked", fields),
        };
        fields.validate_into(&(), &mut nested_path!(parent, kind), report);
    }
}

/// By hand, because of the names; the derived code would lose the paths of fields in messages if
/// a string were an alternative.
impl<'de> Deserialize<'de> for DeviceSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DeviceSpec, D::Error> {
        deserializer.deserialize_any(DeviceVisitor)
    }
}

struct DeviceVisitor;

impl<'de> Visitor<'de> for DeviceVisitor {
    type Value = DeviceSpec;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("`hdd`, `ssd`, `raid`, `hybrid` or `linked` with its fields, or a library device's name")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<DeviceSpec, E> {
        library::device(name).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DeviceSpec, A::Error> {
        // As a string, so that the path of a field in a message has it.
        let kind: Option<String> = map.next_key()?;
        let device = match kind.as_deref() {
            Some("hdd") => DeviceSpec::Hdd(map.next_value()?),
            Some("ssd") => DeviceSpec::Ssd(map.next_value()?),
            Some("raid") => DeviceSpec::Raid(map.next_value()?),
            Some("hybrid") => DeviceSpec::Hybrid(map.next_value()?),
            Some("linked") => DeviceSpec::Linked(map.next_value()?),
            Some(other) => return Err(de::Error::unknown_variant(other, KINDS)),
            None => {
                return Err(de::Error::custom(format!(
                    "an empty device: give one of `{}` with its fields",
                    KINDS.join("`, `")
                )));
            }
        };
        match map.next_key::<String>()? {
            None => Ok(device),
            Some(other) => Err(de::Error::custom(format!(
                "`{other}` beside the kind: a device has one kind, and its fields lie in it"
            ))),
        }
    }
}
