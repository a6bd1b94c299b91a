//! The fields of a link.

use serde::{Deserialize, Serialize};

use super::error::{ModelError, within};
use crate::link::LinkSpec;

/// The network in front of a device.
///
/// 1 Gbit Ethernet is 125 MB/s on the wire; Ethernet, IP, TCP and iSCSI headers at an MTU of
/// 1500 leave 117.5. The round trip is two small frames through a switch and the target's
/// work on a command.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkFields {
    /// Payload rate each way, MB/s.
    pub mb_per_s: f64,
    /// Time of an empty request and its answer, milliseconds.
    pub round_trip_ms: f64,
}

impl LinkFields {
    pub(super) fn check(&self) -> Result<(), ModelError> {
        within(
            "link.mb_per_s",
            self.mb_per_s,
            0.1,
            100_000.0,
            "MB/s, such as 117.5 for 1 Gbit Ethernet",
        )?;
        within(
            "link.round_trip_ms",
            self.round_trip_ms,
            0.0,
            10_000.0,
            "ms, such as 0.2 in a local network",
        )
    }
}

impl From<LinkFields> for LinkSpec {
    fn from(link: LinkFields) -> LinkSpec {
        LinkSpec {
            mb_per_s: link.mb_per_s,
            round_trip_ms: link.round_trip_ms,
        }
    }
}
