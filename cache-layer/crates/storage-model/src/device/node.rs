//! Devices of all kinds as one type: what a model's tree is built of.

use serde::Serialize;

use super::hdd::Hdd;
use super::hybrid::Hybrid;
use super::link::Linked;
use super::raid::{MemberError, Raid, RaidStatus};
use super::ssd::{Ssd, Wear};
use super::write_cache::WriteCache;
use super::{Completion, Device, Request};
use virtual_time::Nanos;

/// One device of a tree, with those below it.
#[derive(Debug)]
pub enum Node {
    /// A hard disk.
    Hdd(Box<Hdd>),
    /// A flash device.
    Ssd(Box<Ssd>),
    /// An array.
    Raid(Box<Raid<Node>>),
    /// A device behind a controller's cache.
    Cached(Box<WriteCache<Node>>),
    /// A device behind a link.
    Linked(Box<Linked<Node>>),
    /// A disk with flash in it.
    Hybrid(Box<Hybrid<Node, Node>>),
}

/// What a device has to tell beside its completions.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DeviceStatus {
    /// The first array in the tree, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<RaidStatus>,
    /// Each flash device in the tree.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wear: Vec<Wear>,
    /// Of the first hybrid disk in the tree, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads: Option<Reads>,
}

/// Who served the reads of a hybrid disk, in requests as its cache cuts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Reads {
    /// The flash.
    pub flash: u64,
    /// The disk behind it.
    pub disk: u64,
}

impl Node {
    /// A member of the array in the tree fails.
    ///
    /// # Errors
    /// There is no array, or no such member in use.
    pub fn fail(&mut self, now: Nanos, member: usize) -> Result<(), MemberError> {
        self.array_mut()
            .ok_or(MemberError::NoArray)?
            .fail(now, member)
    }

    /// A new device takes the place of a failed member.
    ///
    /// # Errors
    /// There is no array, or no such failed member, or its data cannot be worked out.
    pub fn replace(&mut self, now: Nanos, member: usize) -> Result<(), MemberError> {
        self.array_mut()
            .ok_or(MemberError::NoArray)?
            .replace(now, member)
    }

    /// What the device has to tell.
    pub fn status(&self) -> DeviceStatus {
        let mut wear = Vec::new();
        self.collect_wear(&mut wear);
        DeviceStatus {
            array: self.array().map(Raid::status),
            wear,
            reads: self.reads(),
        }
    }

    fn collect_wear(&self, wear: &mut Vec<Wear>) {
        match self {
            Node::Hdd(_) => {}
            Node::Ssd(ssd) => wear.push(ssd.wear()),
            Node::Raid(raid) => raid.devices().for_each(|member| member.collect_wear(wear)),
            Node::Cached(cached) => cached.far().collect_wear(wear),
            Node::Linked(linked) => linked.far().collect_wear(wear),
            Node::Hybrid(hybrid) => {
                hybrid.flash().collect_wear(wear);
                hybrid.disk().collect_wear(wear);
            }
        }
    }

    fn reads(&self) -> Option<Reads> {
        match self {
            Node::Hdd(_) | Node::Ssd(_) => None,
            Node::Raid(raid) => raid.devices().find_map(Node::reads),
            Node::Cached(cached) => cached.far().reads(),
            Node::Linked(linked) => linked.far().reads(),
            Node::Hybrid(hybrid) => {
                let counted = hybrid.engine().counters();
                Some(Reads {
                    flash: counted.read_hits,
                    disk: counted.read_misses,
                })
            }
        }
    }

    fn array(&self) -> Option<&Raid<Node>> {
        match self {
            Node::Hdd(_) | Node::Ssd(_) => None,
            Node::Raid(raid) => Some(raid),
            Node::Cached(cached) => cached.far().array(),
            Node::Linked(linked) => linked.far().array(),
            Node::Hybrid(hybrid) => hybrid.disk().array(),
        }
    }

    fn array_mut(&mut self) -> Option<&mut Raid<Node>> {
        match self {
            Node::Hdd(_) | Node::Ssd(_) => None,
            Node::Raid(raid) => Some(raid),
            Node::Cached(cached) => cached.far_mut().array_mut(),
            Node::Linked(linked) => linked.far_mut().array_mut(),
            Node::Hybrid(hybrid) => hybrid.disk_mut().array_mut(),
        }
    }
}

/// Does the same with whatever device it is.
macro_rules! each {
    ($node:expr, $device:ident => $action:expr) => {
        match $node {
            Node::Hdd($device) => $action,
            Node::Ssd($device) => $action,
            Node::Raid($device) => $action,
            Node::Cached($device) => $action,
            Node::Linked($device) => $action,
            Node::Hybrid($device) => $action,
        }
    };
}

impl Device for Node {
    fn submit(&mut self, now: Nanos, request: Request) {
        each!(self, device => device.submit(now, request));
    }

    fn next_event(&self) -> Option<Nanos> {
        each!(self, device => device.next_event())
    }

    fn advance(&mut self, to: Nanos, done: &mut Vec<Completion>) {
        each!(self, device => device.advance(to, done));
    }

    fn volatile_bytes(&self, now: Nanos) -> u64 {
        each!(self, device => device.volatile_bytes(now))
    }
}
