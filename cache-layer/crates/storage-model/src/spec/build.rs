//! From a model to its device.

use super::{DeviceSpec, ModelError, ModelSpec, Placement};
use crate::device::hdd::Hdd;
use crate::device::hybrid::Hybrid;
use crate::device::link::Linked;
use crate::device::node::DeviceStatus;
use crate::device::raid::{MemberError, Raid};
use crate::device::ssd::Ssd;
use crate::device::write_cache::WriteCache;
use crate::device::{Completion, Device, Node, Request};
use virtual_time::Nanos;

/// What serving adds to the time of a small request for which nothing sleeps, real nanoseconds: the
/// way through a loop device and FUSE and back, on two cores at 2-3 GHz. A thread that wakes up late
/// is not in it: that would take all of its time off flash that answers sooner.
pub const SERVING_PATH_NS: u64 = 50_000;

/// A device built from a [`ModelSpec`].
pub struct Model {
    node: Node,
    /// What every request brings along as its [`Request::head_start`].
    path: Nanos,
}

impl Model {
    /// A member of the array in it fails; a spare takes its place.
    ///
    /// # Errors
    /// There is no array, or no such member in use.
    pub fn fail(&mut self, now: Nanos, member: usize) -> Result<(), MemberError> {
        self.node.fail(now, member)
    }

    /// A new device takes the place of a failed member and is rebuilt.
    ///
    /// # Errors
    /// There is no array, or no such failed member, or its data is lost.
    pub fn replace(&mut self, now: Nanos, member: usize) -> Result<(), MemberError> {
        self.node.replace(now, member)
    }

    /// How the members of the array are, and what has been written to flash.
    pub fn status(&self) -> DeviceStatus {
        self.node.status()
    }
}

impl Device for Model {
    fn submit(&mut self, now: Nanos, request: Request) {
        let head_start = self.path;
        self.node.submit(
            now,
            Request {
                head_start,
                ..request
            },
        );
    }

    fn next_event(&self) -> Option<Nanos> {
        self.node.next_event()
    }

    fn advance(&mut self, to: Nanos, done: &mut Vec<Completion>) {
        self.node.advance(to, done);
    }

    fn volatile_bytes(&self, now: Nanos) -> u64 {
        self.node.volatile_bytes(now)
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

    /// The device that, served, looks to the host as this one should.
    ///
    /// Latencies of the device and on the way to it give up what serving adds, as far as they go.
    /// Who has measured that says it: `path_ns`, real nanoseconds. Else it is [`SERVING_PATH_NS`]
    /// for flash, and disks stay as they are: it is some 1 % of an access.
    ///
    /// # Errors
    /// As [`ModelSpec::build`].
    pub fn build_served(&self, size_bytes: u64, path_ns: Option<u64>) -> Result<Model, ModelError> {
        let path_ns = match (path_ns, self.is_flash()) {
            (Some(measured), _) => measured,
            (None, true) => SERVING_PATH_NS,
            (None, false) => 0,
        };
        self.build_behind(size_bytes, path_ns)
    }

    fn build_behind(&self, size_bytes: u64, path: Nanos) -> Result<Model, ModelError> {
        if size_bytes > self.capacity_bytes() {
            return Err(ModelError::TooLarge {
                size_bytes,
                capacity_bytes: self.capacity_bytes(),
            });
        }
        let part = Part {
            number: 0,
            size_bytes,
            stretch: self.stretch(size_bytes),
        };
        Ok(Model {
            node: node(&self.device, part),
            path,
        })
    }

    fn stretch(&self, size_bytes: u64) -> f64 {
        match self.placement {
            Placement::ShortStroke => 1.0,
            Placement::Spread => (self.span_bytes() as f64 / size_bytes.max(1) as f64).max(1.0),
        }
    }
}

/// What a device of the tree has to hold.
#[derive(Clone, Copy)]
struct Part {
    /// Its number among its like.
    number: usize,
    size_bytes: u64,
    stretch: f64,
}

fn node(device: &DeviceSpec, part: Part) -> Node {
    match device {
        DeviceSpec::Hdd(hdd) => Node::Hdd(Box::new(Hdd::new(hdd.spec(part.number, part.stretch)))),
        DeviceSpec::Ssd(ssd) => Node::Ssd(Box::new(Ssd::new(&ssd.spec(part.size_bytes)))),
        DeviceSpec::Hybrid(hybrid) => {
            let flash = Part {
                number: part.number,
                size_bytes: hybrid.flash_bytes(part.size_bytes, part.stretch),
                stretch: 1.0,
            };
            let engine = hybrid.engine(part.size_bytes, part.stretch);
            let (flash, disk) = (node(&hybrid.flash, flash), node(&hybrid.disk, part));
            Node::Hybrid(Box::new(Hybrid::new(engine, flash, disk)))
        }
        DeviceSpec::Linked(linked) => {
            let far = node(&linked.device, part);
            Node::Linked(Box::new(Linked::new(far, linked.link.spec())))
        }
        DeviceSpec::Raid(raid) => {
            let member_bytes = raid.geometry().rows(part.size_bytes) * raid.chunk_bytes;
            let member = raid.members.list()[0].clone();
            let array = Raid::new(raid.spec(member_bytes), move |number| {
                let size_bytes = member_bytes;
                node(
                    &member,
                    Part {
                        number,
                        size_bytes,
                        ..part
                    },
                )
            });
            let array = Node::Raid(Box::new(array));
            match raid.write_cache() {
                None => array,
                Some(spec) => Node::Cached(Box::new(WriteCache::new(array, spec))),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Op;
    use crate::spec::SsdFields;
    use virtual_time::NANOS_PER_US;

    #[test]
    fn a_file_larger_than_the_device_is_refused() {
        for (name, capacity_bytes) in [
            ("hdd-7200", 1_000_000_000_000u64),
            ("dc500m", 960_000_000_000),
        ] {
            let spec = ModelSpec::load(name).unwrap();
            assert!(spec.build(capacity_bytes).is_ok());
            let error = spec.build(capacity_bytes + 1).err().unwrap().to_string();
            assert!(error.contains(&(capacity_bytes + 1).to_string()), "{error}");
            assert!(error.contains(&capacity_bytes.to_string()), "{error}");
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
        let mut model = ModelSpec::load("pcie-flash-2014").unwrap();
        model.device = DeviceSpec::Ssd(SsdFields {
            read_latency_us: PATH as f64 / NANOS_PER_US + 50.0,
            write_latency_us: PATH as f64 / NANOS_PER_US / 2.0,
            ..SsdFields::default()
        });
        let served = |model: &ModelSpec| model.build_served(1 << 30, None).unwrap();
        assert_eq!(completes(served(&model), Op::Read, 4096), 50_000);
        assert_eq!(completes(served(&model), Op::Write, 4096), 0);
        let disks = ModelSpec::load("nas-2014").unwrap();
        let plain = disks.build(1 << 30).unwrap();
        assert_eq!(
            completes(served(&disks), Op::Read, 8192),
            completes(plain, Op::Read, 8192)
        );
    }

    #[test]
    fn a_path_that_was_measured_is_taken_off_whatever_the_device_is() {
        for name in ["hdd-raid5-2014", "dc500m"] {
            let model = ModelSpec::load(name).unwrap();
            let plain = completes(model.build(1 << 30).unwrap(), Op::Write, 4096);
            let path = Some(40_000);
            let served = model.build_served(1 << 30, path).unwrap();
            let saved = plain - completes(served, Op::Write, 4096);
            assert!((39_000..=41_000).contains(&saved), "{name}: {saved}");
        }
    }

    #[test]
    fn serving_takes_its_share_off_an_array_of_flash_once() {
        let model = ModelSpec::load("dc500m-raid5").unwrap();
        for op in [Op::Read, Op::Write] {
            let plain = completes(model.build(1 << 30).unwrap(), op, 4096);
            let served = model.build_served(1 << 30, None).unwrap();
            assert_eq!(completes(served, op, 4096) + SERVING_PATH_NS, plain);
        }
    }
}
