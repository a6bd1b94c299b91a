//! Models: a JSON description, checked, and the device it describes.
//!
//! Sizes in `_bytes` are bytes, in `_kb` KiB (1024 bytes, as Linux has it); rates in `mb_per_s`
//! are 10^6 bytes per second, as on data sheets.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::array::Array;
use crate::device::hdd::{Hdd, HddSpec};
use crate::device::mechanics::{MechanicsSpec, seek_curve_ms};
use crate::device::{Completion, Device, Request};
use crate::link::{LinkSpec, Linked};
use crate::time::{Nanos, nanos_from_ms};

/// The models that come with the program: name and JSON.
pub const BUILT_IN: [(&str, &str); 2] = [
    ("nas-2014", include_str!("../models/nas-2014.json")),
    ("hdd-7200", include_str!("../models/hdd-7200.json")),
];

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
    /// Not JSON, an unknown or missing field, or a value of the wrong kind.
    #[error(
        "model {source_name}: field `{field}`: {cause}; `flashdev models nas-2014` prints a complete example"
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
    /// More data than the modelled disks hold.
    #[error(
        "the file has {size_bytes} bytes, but the {disks} disks of model field `disk.capacity_bytes` hold {capacity_bytes}: use a smaller file, more or larger disks"
    )]
    TooLarge {
        /// Size of the file.
        size_bytes: u64,
        /// Number of disks.
        disks: u32,
        /// What they hold together.
        capacity_bytes: u64,
    },
}

/// A modelled storage device: striped disks, possibly behind a link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelSpec {
    /// What reports call it.
    pub name: String,
    /// Number of disks in the RAID-0.
    pub disks: u32,
    /// Every disk; all alike.
    #[serde(default)]
    pub disk: DiskSpec,
    /// Stripe unit on one disk, bytes. 64 KiB is the common default of NAS firmware and md.
    #[serde(default = "default_stripe_bytes")]
    pub stripe_bytes: u64,
    /// The network in front; absent = attached directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkFields>,
    /// How the file lies on the platters.
    #[serde(default)]
    pub placement: Placement,
    /// How many bytes of the array the file stands for when it is spread; absent = all of it.
    ///
    /// `nas-2014` says 1.3 TB: the 500 GB TPC-C and the 800 GB TPC-H database lay side by side
    /// on its 6 TB, so the arms travelled over 22 % of the platters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span_bytes: Option<u64>,
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

/// One disk. The defaults are a 1 TB 7200 rpm SATA disk of 2014, read as follows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DiskSpec {
    /// Spindle speed, turns per minute. 7200: a turn in 8.33 ms, half of it the mean wait.
    pub rpm: u32,
    /// Size, bytes. 1 TB.
    pub capacity_bytes: u64,
    /// Seek to the next track, milliseconds. Data sheets: 0.5-1.2; the settling of the head.
    pub seek_ms_track_to_track: f64,
    /// Mean seek between random places, milliseconds. Data sheets promise "< 8.5"; reviews of
    /// such disks measured random accesses of 11.9-12.1 ms, which less half a turn (4.17 ms)
    /// leaves 7.7. It makes 84 random reads per second one at a time.
    pub seek_ms_average: f64,
    /// Seek across the whole disk, milliseconds; absent = what the square-root curve through
    /// the other two gives (13.7 here).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seek_ms_full: Option<f64>,
    /// Commands the drive chooses among. SATA NCQ has 32.
    pub queue_depth: u32,
    /// Sustained rate of a long run, MB/s. Such disks read 180-200 outside, 90-100 inside.
    pub media_mb_per_s: f64,
    /// How far a sequential stream is read ahead, KiB. Drive and controller together; it has
    /// to bridge a turn of the platter at the disk's share of the link rate (163 KB behind
    /// 1 GbE with six disks), several times over.
    pub read_ahead_kb: u64,
    /// How much of a bulk write stream is accepted before it is on the medium, KiB. A few
    /// turns of the platter as well. Small writes are never gathered: the write cache is off.
    pub write_gather_kb: u64,
    /// A queued command older than this is served first, milliseconds. Three times the mean
    /// wait in a full queue of 32 (170 ms): rarely reached, but nothing starves.
    pub age_ms_max: f64,
}

impl Default for DiskSpec {
    fn default() -> DiskSpec {
        DiskSpec {
            rpm: 7200,
            capacity_bytes: 1_000_000_000_000,
            seek_ms_track_to_track: 0.8,
            seek_ms_average: 7.7,
            seek_ms_full: None,
            queue_depth: 32,
            media_mb_per_s: 150.0,
            read_ahead_kb: 512,
            write_gather_kb: 1024,
            age_ms_max: 500.0,
        }
    }
}

/// The network in front of the disks.
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

fn default_stripe_bytes() -> u64 {
    65_536
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
    pub fn parse(source_name: &str, json: &str) -> Result<ModelSpec, ModelError> {
        let malformed = |field: String, cause| ModelError::Malformed {
            source_name: source_name.to_owned(),
            field,
            cause,
        };
        let mut parser = serde_json::Deserializer::from_str(json);
        let spec: ModelSpec = serde_path_to_error::deserialize(&mut parser)
            .map_err(|error| malformed(error.path().to_string(), error.into_inner()))?;
        parser
            .end()
            .map_err(|cause| malformed(".".to_owned(), cause))?;
        spec.check()?;
        Ok(spec)
    }

    /// What the disks hold together, bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.disk.capacity_bytes * u64::from(self.disks)
    }

    /// What a spread file stands for, bytes.
    pub fn span_bytes(&self) -> u64 {
        self.span_bytes.unwrap_or(self.capacity_bytes())
    }

    /// The device, holding a file of this size.
    pub fn build(&self, size_bytes: u64) -> Result<Model, ModelError> {
        if size_bytes > self.capacity_bytes() {
            return Err(ModelError::TooLarge {
                size_bytes,
                disks: self.disks,
                capacity_bytes: self.capacity_bytes(),
            });
        }
        let disks = (0..self.disks)
            .map(|number| Hdd::new(self.hdd_spec(number, size_bytes)))
            .collect();
        let array = Array::new(disks, self.stripe_bytes);
        Ok(Model(match self.link {
            None => Box::new(array),
            Some(link) => Box::new(Linked::new(array, link.into())),
        }))
    }

    fn hdd_spec(&self, number: u32, size_bytes: u64) -> HddSpec {
        HddSpec {
            mechanics: self.mechanics_spec(number, size_bytes),
            queue_depth: self.disk.queue_depth as usize,
            read_ahead_bytes: self.disk.read_ahead_kb * 1024,
            write_gather_bytes: self.disk.write_gather_kb * 1024,
            age_max: nanos_from_ms(self.disk.age_ms_max),
        }
    }

    fn mechanics_spec(&self, number: u32, size_bytes: u64) -> MechanicsSpec {
        /// Multiples of the golden ratio spread any number of disks evenly over a turn.
        const GOLDEN_RATIO: f64 = 0.618_033_988_749_895;
        MechanicsSpec {
            rpm: self.disk.rpm,
            capacity_bytes: self.disk.capacity_bytes,
            seek_ms_track_to_track: self.disk.seek_ms_track_to_track,
            seek_ms_average: self.disk.seek_ms_average,
            seek_ms_full: self.disk.seek_ms_full,
            media_mb_per_s: self.disk.media_mb_per_s,
            stretch: self.stretch(size_bytes),
            phase: (f64::from(number) * GOLDEN_RATIO).fract(),
        }
    }

    fn stretch(&self, size_bytes: u64) -> f64 {
        match self.placement {
            Placement::ShortStroke => 1.0,
            Placement::Spread => (self.span_bytes() as f64 / size_bytes.max(1) as f64).max(1.0),
        }
    }

    fn check(&self) -> Result<(), ModelError> {
        let disk = &self.disk;
        within("disks", self.disks, 1, 64, "disks")?;
        within("disk.rpm", disk.rpm, 1000, 30_000, "rpm, such as 7200")?;
        within(
            "disk.capacity_bytes",
            disk.capacity_bytes,
            1_000_000,
            100_000_000_000_000,
            "bytes, such as 1000000000000 for 1 TB",
        )?;
        within(
            "disk.queue_depth",
            disk.queue_depth,
            1,
            256,
            "commands; SATA has 32, 1 turns NCQ off",
        )?;
        within(
            "disk.media_mb_per_s",
            disk.media_mb_per_s,
            1.0,
            2000.0,
            "MB/s",
        )?;
        within("disk.read_ahead_kb", disk.read_ahead_kb, 0, 65_536, "KiB")?;
        within(
            "disk.write_gather_kb",
            disk.write_gather_kb,
            0,
            65_536,
            "KiB",
        )?;
        within("disk.age_ms_max", disk.age_ms_max, 1.0, 60_000.0, "ms")?;
        self.check_stripe()?;
        self.check_span()?;
        self.check_seeks()?;
        self.check_link()
    }

    fn check_stripe(&self) -> Result<(), ModelError> {
        within(
            "stripe_bytes",
            self.stripe_bytes,
            512,
            1 << 30,
            "bytes, such as 65536",
        )?;
        if self.stripe_bytes % 512 == 0 {
            return Ok(());
        }
        Err(ModelError::OutOfRange {
            field: "stripe_bytes",
            value: self.stripe_bytes.to_string(),
            remedy: "give a multiple of the sector size, 512".to_owned(),
        })
    }

    fn check_span(&self) -> Result<(), ModelError> {
        within(
            "span_bytes",
            self.span_bytes(),
            1,
            self.capacity_bytes(),
            "bytes, at most what the disks hold together; leave it out for all of it",
        )
    }

    fn check_seeks(&self) -> Result<(), ModelError> {
        let disk = &self.disk;
        let least_ms = disk.seek_ms_track_to_track;
        within("disk.seek_ms_track_to_track", least_ms, 0.01, 100.0, "ms")?;
        within(
            "disk.seek_ms_average",
            disk.seek_ms_average,
            least_ms,
            1000.0,
            "ms, not less than seek_ms_track_to_track",
        )?;
        let Some(full_ms) = disk.seek_ms_full else {
            return Ok(());
        };
        within("disk.seek_ms_full", full_ms, 0.01, 1000.0, "ms")?;
        // A curve must not fall with distance; where the three points ask for that, it does so
        // at one of its ends first.
        let (root_ms, linear_ms) = seek_curve_ms(&self.mechanics_spec(0, 1));
        if root_ms >= 0.0 && root_ms / 2.0 + linear_ms >= 0.0 {
            return Ok(());
        }
        Err(ModelError::OutOfRange {
            field: "disk.seek_ms_full",
            value: full_ms.to_string(),
            remedy: format!(
                "no rising curve goes through it, seek_ms_track_to_track {least_ms} and seek_ms_average {}; about twice the average is usual, or leave it out",
                disk.seek_ms_average
            ),
        })
    }

    fn check_link(&self) -> Result<(), ModelError> {
        let Some(link) = &self.link else {
            return Ok(());
        };
        within(
            "link.mb_per_s",
            link.mb_per_s,
            0.1,
            100_000.0,
            "MB/s, such as 117.5 for 1 Gbit Ethernet",
        )?;
        within(
            "link.round_trip_ms",
            link.round_trip_ms,
            0.0,
            10_000.0,
            "ms, such as 0.2 in a local network",
        )
    }
}

fn within<T: PartialOrd + std::fmt::Display>(
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

impl From<LinkFields> for LinkSpec {
    fn from(link: LinkFields) -> LinkSpec {
        LinkSpec {
            mb_per_s: link.mb_per_s,
            round_trip_ms: link.round_trip_ms,
        }
    }
}

/// A device built from a [`ModelSpec`].
pub struct Model(Box<dyn Device>);

impl Device for Model {
    fn submit(&mut self, now: Nanos, request: Request) {
        self.0.submit(now, request);
    }

    fn next_event(&self) -> Option<Nanos> {
        self.0.next_event()
    }

    fn advance(&mut self, to: Nanos, done: &mut Vec<Completion>) {
        self.0.advance(to, done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(json: &str) -> String {
        let error = ModelSpec::parse("test.json", json).unwrap_err().to_string();
        assert_eq!(error.lines().count(), 1, "{error}");
        error
    }

    #[test]
    fn the_built_in_models_parse_and_render_back() {
        for (name, json) in BUILT_IN {
            let spec = ModelSpec::load(name).unwrap();
            let rendered = serde_json::to_string(&spec).unwrap();
            assert_eq!(ModelSpec::parse(name, &rendered).unwrap(), spec);
            let asked: serde_json::Value = serde_json::from_str(json).unwrap();
            assert_eq!(serde_json::to_value(&spec).unwrap(), asked, "{name}");
        }
    }

    #[test]
    fn the_defaults_are_the_built_in_disk() {
        let minimal = ModelSpec::parse("m", r#"{"name": "hdd-7200", "disks": 1}"#).unwrap();
        assert_eq!(minimal, ModelSpec::load("hdd-7200").unwrap());
    }

    #[test]
    fn errors_name_field_value_and_remedy() {
        for (json, parts) in [
            (r#"{"name": "x"}"#, ["disks", "missing field", "example"]),
            (
                r#"{"name": "x", "disks": 1, "disk": {"rpmm": 1}}"#,
                ["disk.rpmm", "unknown field", "`rpm`"],
            ),
            (
                r#"{"name": "x", "disks": 1, "disk": {"rpm": "fast"}}"#,
                ["disk.rpm", "\"fast\"", "u32"],
            ),
            (
                r#"{"name": "x", "disks": 1, "disk": {"rpm": 0}}"#,
                ["disk.rpm", "is 0", "such as 7200"],
            ),
            (r#"{"name": "x", "disks": 0}"#, ["disks", "is 0", "1 to 64"]),
            (
                r#"{"name": "x", "disks": 1, "stripe_bytes": 1000}"#,
                ["stripe_bytes", "1000", "multiple"],
            ),
            (
                r#"{"name": "x", "disks": 1, "disk": {"seek_ms_average": 0.5}}"#,
                ["disk.seek_ms_average", "0.5", "not less than"],
            ),
            (
                r#"{"name": "x", "disks": 1, "disk": {"seek_ms_full": 7}}"#,
                ["disk.seek_ms_full", "7", "twice the average"],
            ),
            (
                r#"{"name": "x", "disks": 1, "link": {"mb_per_s": -1, "round_trip_ms": 0}}"#,
                ["link.mb_per_s", "-1", "117.5"],
            ),
            (
                r#"{"name": "x", "disks": 1, "span_bytes": 2000000000000}"#,
                ["span_bytes", "2000000000000", "leave it out"],
            ),
            (
                r#"{"name": "x", "disks": 1, "placement": "middle"}"#,
                ["placement", "middle", "short_stroke"],
            ),
            (
                r#"{"name": "x", "disks": 1} x"#,
                ["test.json", "trailing", "example"],
            ),
        ] {
            let error = error_of(json);
            for part in parts {
                assert!(error.contains(part), "`{part}` not in: {error}");
            }
        }
    }

    #[test]
    fn an_unknown_name_lists_those_there_are() {
        let error = ModelSpec::load("nas-2015").unwrap_err().to_string();
        assert!(error.contains("nas-2014, hdd-7200"), "{error}");
    }

    #[test]
    fn a_file_larger_than_the_disks_is_refused() {
        let spec = ModelSpec::load("hdd-7200").unwrap();
        let error = spec.build(1_000_000_000_001).err().unwrap().to_string();
        assert!(error.contains("1000000000001"), "{error}");
    }
}
