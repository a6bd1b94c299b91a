//! From a model to its device.

use super::{DisksModel, FlashFields, LinkFields, ModelError, ModelSpec, Placement};
use crate::array::Array;
use crate::device::flash::{DirectionSpec, Flash, FlashSpec};
use crate::device::hdd::{Hdd, HddSpec};
use crate::device::mechanics::MechanicsSpec;
use crate::device::{Completion, Device, Request};
use crate::link::Linked;
use crate::time::{Nanos, TimeScale, nanos_from_ms, nanos_from_us};

/// What serving adds to the time of a small request, real nanoseconds: the way through a loop
/// device and FUSE and back (80 µs on two cores at 2-3 GHz), and a thread that has to wake up
/// where there is time left to wait (30 µs).
pub const SERVING_PATH_NS: u64 = 110_000;

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
        self.build_behind(size_bytes, 0)
    }

    /// The device that, served with this time scale, looks to the host as this one should.
    ///
    /// A flash gives up what serving adds ([`SERVING_PATH_NS`]), as far as its latencies go. Disks
    /// stay as they are: it is some 1 % of an access. Serving takes real time, so of a device at
    /// time scale 5 it is a fifth of that.
    ///
    /// # Errors
    /// As [`ModelSpec::build`].
    pub fn build_served(&self, size_bytes: u64, scale: TimeScale) -> Result<Model, ModelError> {
        self.build_behind(size_bytes, scale.to_device(SERVING_PATH_NS))
    }

    fn build_behind(&self, size_bytes: u64, path: Nanos) -> Result<Model, ModelError> {
        self.check_size(size_bytes)?;
        Ok(match self {
            ModelSpec::Disks(disks) => attach(disks.array(size_bytes), disks.link),
            ModelSpec::Flash(model) => {
                attach(Flash::new(&model.flash.into()).behind(path), model.link)
            }
        })
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
    use crate::device::Op;
    use crate::time::NANOS_PER_US;

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

    /// When a single request of this kind completes, submitted at 0.
    fn completes(mut device: Model, op: Op, len: u64) -> Nanos {
        let mut done = Vec::new();
        device.submit(0, Request::whole(1, op, 0, len));
        while let Some(at) = device.next_event() {
            device.advance(at, &mut done);
        }
        done[0].at
    }

    #[test]
    fn serving_takes_its_share_off_a_flash_only() {
        const PATH: Nanos = SERVING_PATH_NS as Nanos;
        let flash = FlashFields {
            read_latency_us: PATH as f64 / NANOS_PER_US + 50.0,
            write_latency_us: PATH as f64 / NANOS_PER_US / 2.0,
            ..FlashFields::default()
        };
        let name = "x".to_owned();
        let link = None;
        let model = ModelSpec::Flash(FlashModel { name, flash, link });
        let served = |model: &ModelSpec, factor| {
            let scale = TimeScale::new(factor).unwrap();
            model.build_served(1 << 30, scale).unwrap()
        };
        assert_eq!(completes(served(&model, 1.0), Op::Read, 4096), 50_000);
        assert_eq!(completes(served(&model, 1.0), Op::Write, 4096), 0);
        let fifth = PATH / 5;
        let (read, write) = (PATH + 50_000 - fifth, PATH / 2 - fifth);
        assert_eq!(completes(served(&model, 5.0), Op::Read, 4096), read);
        assert_eq!(completes(served(&model, 5.0), Op::Write, 4096), write);
        let disks = ModelSpec::load("nas-2014").unwrap();
        let plain = disks.build(1 << 30).unwrap();
        assert_eq!(
            completes(served(&disks, 1.0), Op::Read, 8192),
            completes(plain, Op::Read, 8192)
        );
    }
}
