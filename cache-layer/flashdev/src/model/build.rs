//! From a model to its device.

use super::{DisksModel, FlashFields, LinkFields, ModelError, ModelSpec, Placement};
use crate::array::Array;
use crate::device::flash::{DirectionSpec, Flash, FlashSpec};
use crate::device::hdd::{Hdd, HddSpec};
use crate::device::mechanics::MechanicsSpec;
use crate::device::{Completion, Device, Request};
use crate::link::Linked;
use crate::time::{NANOS_PER_US, Nanos, TimeScale, nanos_from_ms, nanos_from_us};

/// What serving adds to the time of a small request on an idle machine, real nanoseconds: the
/// way through FUSE and back, and a thread that has to wake up.
pub const SERVING_PATH_NS: u64 = 40_000;

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

impl ModelSpec {
    /// The device, holding a file of this size.
    ///
    /// # Errors
    /// [`ModelError::TooLarge`]: the file does not fit.
    pub fn build(&self, size_bytes: u64) -> Result<Model, ModelError> {
        self.check_size(size_bytes)?;
        Ok(match self {
            ModelSpec::Disks(disks) => attach(disks.array(size_bytes), disks.link),
            ModelSpec::Flash(model) => attach(Flash::new(&model.flash.into()), model.link),
        })
    }

    /// The model that, served with this time scale, looks to the host as this one should.
    ///
    /// A flash's latencies give up what serving adds ([`SERVING_PATH_NS`]), as far as they go;
    /// its ceilings stay. Disks stay as they are: it is less than 1 % of an access. Serving
    /// takes real time, so of a device at time scale 5 it is a fifth of that.
    pub fn served(mut self, scale: TimeScale) -> ModelSpec {
        if let ModelSpec::Flash(model) = &mut self {
            let path_us = scale.to_device(SERVING_PATH_NS) as f64 / NANOS_PER_US;
            let flash = &mut model.flash;
            flash.read_latency_us = (flash.read_latency_us - path_us).max(0.0);
            flash.write_latency_us = (flash.write_latency_us - path_us).max(0.0);
        }
        self
    }

    fn check_size(&self, size_bytes: u64) -> Result<(), ModelError> {
        if size_bytes <= self.capacity_bytes() {
            return Ok(());
        }
        Err(ModelError::TooLarge {
            size_bytes,
            capacity_bytes: self.capacity_bytes(),
            fields: match self {
                ModelSpec::Disks(_) => "`disks` times `disk.capacity_bytes`",
                ModelSpec::Flash(_) => "`flash.capacity_bytes`",
            },
        })
    }
}

fn attach(device: impl Device + 'static, link: Option<LinkFields>) -> Model {
    Model(match link {
        None => Box::new(device),
        Some(link) => Box::new(Linked::new(device, link.into())),
    })
}

impl From<FlashFields> for FlashSpec {
    fn from(flash: FlashFields) -> FlashSpec {
        FlashSpec {
            read: DirectionSpec {
                latency: nanos_from_us(flash.read_latency_us),
                iops: flash.read_iops,
                mb_per_s: flash.read_mb_per_s,
            },
            write: DirectionSpec {
                latency: nanos_from_us(flash.write_latency_us),
                iops: flash.write_iops,
                mb_per_s: flash.write_mb_per_s,
            },
        }
    }
}

impl DisksModel {
    fn array(&self, size_bytes: u64) -> Array<Hdd> {
        let disks = (0..self.disks)
            .map(|number| Hdd::new(self.hdd_spec(number, size_bytes)))
            .collect();
        Array::new(disks, self.stripe_bytes)
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

    pub(super) fn mechanics_spec(&self, number: u32, size_bytes: u64) -> MechanicsSpec {
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
}

#[cfg(test)]
mod tests {
    use super::super::FlashModel;
    use super::*;

    #[test]
    fn a_file_larger_than_the_device_is_refused() {
        for (name, capacity_bytes, field) in [
            ("hdd-7200", 1_000_000_000_000, "`disk.capacity_bytes`"),
            ("dc500m", 960_000_000_000, "`flash.capacity_bytes`"),
        ] {
            let spec = ModelSpec::load(name).unwrap();
            assert!(spec.build(capacity_bytes).is_ok());
            let error = spec.build(capacity_bytes + 1).err().unwrap().to_string();
            assert!(error.contains(&(capacity_bytes + 1).to_string()), "{error}");
            assert!(error.contains(field), "{error}");
        }
    }

    #[test]
    fn serving_takes_its_share_off_a_flash_only() {
        let path_us = SERVING_PATH_NS as f64 / NANOS_PER_US;
        let model = FlashModel {
            name: "x".to_owned(),
            flash: FlashFields {
                read_latency_us: path_us + 50.0,
                write_latency_us: path_us / 2.0,
                ..FlashFields::default()
            },
            link: None,
        };
        let served = |factor| {
            let scale = TimeScale::new(factor).unwrap();
            match ModelSpec::Flash(model.clone()).served(scale) {
                ModelSpec::Flash(served) => served.flash,
                ModelSpec::Disks(_) => unreachable!("a flash stays one"),
            }
        };
        let expected = |read_latency_us, write_latency_us| FlashFields {
            read_latency_us,
            write_latency_us,
            ..model.flash
        };
        assert_eq!(served(1.0), expected(50.0, 0.0));
        let fifth_us = path_us / 5.0;
        let scaled = expected(path_us + 50.0 - fifth_us, path_us / 2.0 - fifth_us);
        assert_eq!(served(5.0), scaled);
        let disks = ModelSpec::load("nas-2014").unwrap();
        assert_eq!(disks.clone().served(TimeScale::ONE), disks);
    }
}
