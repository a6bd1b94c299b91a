//! The fields of a device behind a link.

use garde::Validate;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::device::DeviceSpec;
use super::error::within;
use super::library;
use crate::device::link::LinkSpec;

/// A device at the far end of a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
pub struct LinkedFields {
    /// The way there: its fields, or the name of a link in the library, `"1gbe"`.
    #[serde(deserialize_with = "named_or_given")]
    #[garde(dive)]
    pub link: LinkFields,
    /// What is at the far end.
    #[garde(dive)]
    pub device: DeviceSpec,
}

/// A network or bus.
///
/// 1 Gbit Ethernet is 125 MB/s on the wire; Ethernet, IP, TCP and iSCSI headers at an MTU of
/// 1500 leave 117.5. The round trip is two small frames through a switch and the target's
/// work on a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, Validate)]
#[serde(deny_unknown_fields)]
pub struct LinkFields {
    /// Payload rate each way, MB/s.
    #[garde(custom(within(0.1, 100_000.0, "MB/s, such as 117.5 for 1 Gbit Ethernet")))]
    pub mb_per_s: f64,
    /// Time of an empty request and its answer, milliseconds.
    #[garde(custom(within(0.0, 10_000.0, "ms, such as 0.2 in a local network")))]
    pub round_trip_ms: f64,
    /// What the far end's processor spends on each command, one after the other, microseconds:
    /// 1 / this is the link's ceiling of IOPS. A NAS of 2014 does some 10,000 a second.
    #[serde(default)]
    #[garde(custom(within(0.0, 100_000.0, "us, such as 20")))]
    pub command_us: f64,
    /// Commands that a session may have under way; absent = any number. open-iscsi: 32 a LUN,
    /// SATA: 32, NVMe: 1024.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(inner(custom(within(1, 65_536, "commands; iSCSI sessions have 32 to 128"))))]
    pub session_depth: Option<u32>,
    /// A bus such as SATA or PCIe, on which bytes cross while the device works on the others. A
    /// network forwards a request and an answer when they are whole.
    #[serde(default)]
    #[garde(skip)]
    pub cut_through: bool,
}

fn named_or_given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<LinkFields, D::Error> {
    struct LinkVisitor;

    impl<'de> Visitor<'de> for LinkVisitor {
        type Value = LinkFields;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("the fields of a link, or a library link's name")
        }

        fn visit_str<E: de::Error>(self, name: &str) -> Result<LinkFields, E> {
            library::link(name).map_err(E::custom)
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<LinkFields, A::Error> {
            LinkFields::deserialize(MapAccessDeserializer::new(map))
        }
    }

    deserializer.deserialize_any(LinkVisitor)
}

impl LinkFields {
    pub(super) fn spec(&self) -> LinkSpec {
        LinkSpec {
            mb_per_s: self.mb_per_s,
            round_trip_ms: self.round_trip_ms,
            command_us: self.command_us,
            session_depth: self.session_depth.map(|depth| depth as usize),
            cut_through: self.cut_through,
        }
    }
}
