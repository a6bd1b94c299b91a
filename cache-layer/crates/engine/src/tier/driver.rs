//! Carries out what the engine wants: on the flash at once, in the thread that learns of it, on the
//! origin by the threads of its device.
//!
//! The lock is held while the engine thinks, and never during an I/O.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Sender;
use nix::fcntl::FallocateFlags;
use parking_lot::Mutex;
use slab::Slab;

use super::Tier;
use crate::direct_io::{DIRECT_ALIGN, PageBuffer};
use crate::real_time::Op;
use crate::real_time::disk::Urgency;
use crate::reply::{Handler, Outcome, Reply};
use cache_core::engine::{
    Action, Buffer, BufferId, Device, Direction, Engine, Errno, Health, IoId, JobId, Request,
    RequestId, WriteBackFailure,
};
use cache_core::metadata::SyncKind;
use cache_core::policy::PolicyKind;
use virtual_time::Nanos;

mod given_up;

/// What the lock protects.
pub(super) struct Shared {
    pub(super) engine: Engine,
    requests: Slab<Arc<SplitRequest>>,
    buffers: HashMap<BufferId, Arc<PageBuffer>>,
    /// Empty in between; kept for its memory.
    actions: Vec<Action>,
    /// Whom to tell that a job is done.
    pub(super) jobs: HashMap<JobId, Sender<()>>,
    /// What decides which blocks are cached.
    pub(super) policy: PolicyKind,
    /// When the counters began, by the clock on the wall, since 1970.
    pub(super) begun: Duration,
    /// Requests wait: the engine is being replaced.
    pub(super) is_held: bool,
}

/// A request whose parts are served by flash and origin, and that is answered when all are done.
pub(super) struct SplitRequest {
    bytes: Bytes,
    reply: Mutex<Option<Reply>>,
}

/// A request's memory.
enum Bytes {
    /// What has been read so far.
    Read(Mutex<PageBuffer>),
    /// What is to be written.
    Write(Arc<PageBuffer>),
    /// The same, where it lies as long as the request is being submitted.
    WriteBorrowed,
    /// A flush has none.
    None,
}

/// An action, with the memory that it needs.
enum Step {
    Read {
        io: IoId,
        device: Device,
        offset: u64,
        len: u32,
        into: Destination,
        urgency: Urgency,
    },
    Write {
        io: IoId,
        device: Device,
        offset: u64,
        from: Source,
        urgency: Urgency,
    },
    Discard {
        io: IoId,
        offset: u64,
        len: u32,
    },
    WriteMetadata {
        io: IoId,
        offset: u64,
        bytes: Vec<u8>,
        in_background: bool,
    },
    Sync {
        io: IoId,
        device: Device,
        kind: SyncKind,
    },
    Detach {
        io: IoId,
    },
    Reply {
        request: Arc<SplitRequest>,
        result: Result<(), Errno>,
    },
    JobDone(Sender<()>),
    Say(Health, Option<WriteBackFailure>),
}

/// Where bytes that are read go.
enum Destination {
    Request(Arc<SplitRequest>, usize),
    Buffer(BufferId),
}

/// Where bytes to be written are.
enum Source {
    Shared(Arc<PageBuffer>, Range<usize>),
    Borrowed(Range<usize>),
}

impl Source {
    fn len(&self) -> u64 {
        let (Source::Shared(_, range) | Source::Borrowed(range)) = self;
        range.len() as u64
    }
}

impl Shared {
    pub(super) fn new(engine: Engine, policy: PolicyKind, begun: Duration) -> Shared {
        Shared {
            engine,
            policy,
            begun,
            is_held: false,
            requests: Slab::new(),
            buffers: HashMap::new(),
            actions: Vec::new(),
            jobs: HashMap::new(),
        }
    }

    /// Whether every request has been answered.
    pub(super) fn is_answered(&self) -> bool {
        self.requests.is_empty()
    }

    /// Takes what the engine wants, with the memory that it needs.
    fn steps(&mut self, steps: &mut VecDeque<Step>) {
        let mut actions = std::mem::take(&mut self.actions);
        self.engine.take_actions(&mut actions);
        for action in actions.drain(..) {
            steps.extend(self.step(action));
        }
        self.actions = actions;
    }

    fn step(&mut self, action: Action) -> Option<Step> {
        Some(match action {
            Action::Transfer {
                io,
                device,
                direction: Direction::Read,
                offset,
                len,
                buffer,
                in_background,
            } => Step::Read {
                io,
                device,
                offset,
                len,
                urgency: Urgency::of(in_background),
                into: self.destination(buffer),
            },
            Action::Transfer {
                io,
                device,
                direction: Direction::Write,
                offset,
                len,
                buffer,
                in_background,
            } => Step::Write {
                io,
                device,
                offset,
                urgency: Urgency::of(in_background),
                from: self.source(buffer, len as usize),
            },
            Action::Discard { io, offset, len } => Step::Discard { io, offset, len },
            Action::WriteMetadata {
                io,
                offset,
                bytes,
                in_background,
            } => Step::WriteMetadata {
                io,
                offset,
                bytes,
                in_background,
            },
            Action::Sync { io, device, kind } => Step::Sync { io, device, kind },
            Action::Detach { io } => Step::Detach { io },
            Action::Reply { id, result } => Step::Reply {
                request: self.requests.remove(id as usize),
                result,
            },
            Action::Release { buffer } => {
                self.buffers.remove(&buffer);
                return None;
            }
            Action::JobDone { job } => Step::JobDone(self.jobs.remove(&job)?),
            Action::HealthChanged => Step::Say(
                self.engine.health().clone(),
                self.engine.write_back_failure(),
            ),
        })
    }

    fn destination(&self, buffer: Buffer) -> Destination {
        match buffer {
            Buffer::Request { id, at } => {
                Destination::Request(self.requests[id as usize].clone(), at as usize)
            }
            Buffer::Migration { id, .. } => Destination::Buffer(id),
        }
    }

    fn source(&self, buffer: Buffer, len: usize) -> Source {
        match buffer {
            Buffer::Request { id, at } => {
                let range = at as usize..at as usize + len;
                match &self.requests[id as usize].bytes {
                    Bytes::Write(data) => Source::Shared(data.clone(), range),
                    _ => Source::Borrowed(range),
                }
            }
            Buffer::Migration { id, at } => {
                let data = self.buffers[&id].clone();
                Source::Shared(data, at as usize..at as usize + len)
            }
        }
    }
}

impl Tier {
    /// Reads a range of the cached origin.
    pub(super) fn read(self: &Arc<Self>, offset: u64, len: u32, reply: Reply) {
        // A read that goes well has filled all of it.
        let bytes = Bytes::Read(Mutex::new(PageBuffer::recycled(len as usize)));
        self.submit(Request::Read { offset, len }, bytes, reply);
    }

    /// Writes a range of the cached origin.
    pub(super) fn write(self: &Arc<Self>, offset: u64, data: &[u8], reply: Reply) {
        let len = data.len() as u32;
        let request = Request::Write { offset, len };
        let mut shared = self.lock_unheld();
        if self.flash.is_asynchronous() || !shared.engine.would_hit_at_once(request) {
            // Parts of it will be written when the memory is not ours any more.
            drop(shared);
            let bytes = Bytes::Write(Arc::new(PageBuffer::copy_of(data)));
            return self.submit(request, bytes, reply);
        }
        let steps = self.begin(&mut shared, request, Bytes::WriteBorrowed, reply);
        drop(shared);
        self.carry_out(steps, data);
    }

    /// Makes durable what was answered before, on origin and flash.
    pub(super) fn flush(self: &Arc<Self>, reply: Reply) {
        self.submit(Request::Flush, Bytes::None, reply);
    }

    /// The same for the volume.
    pub(super) fn flush_volume(self: &Arc<Self>, reply: Reply) {
        self.submit(Request::FlushVolume, Bytes::None, reply);
    }

    /// Discards whole blocks.
    pub(super) fn discard(self: &Arc<Self>, offset: u64, len: u32, reply: Reply) {
        self.submit(Request::Discard { offset, len }, Bytes::None, reply);
    }

    fn submit(self: &Arc<Self>, request: Request, bytes: Bytes, reply: Reply) {
        let steps = self.begin(&mut self.lock_unheld(), request, bytes, reply);
        self.carry_out(steps, &[]);
    }

    fn begin(
        &self,
        shared: &mut Shared,
        request: Request,
        bytes: Bytes,
        reply: Reply,
    ) -> VecDeque<Step> {
        let reply = Mutex::new(Some(reply));
        let split = Arc::new(SplitRequest { bytes, reply });
        let id = shared.requests.insert(split) as RequestId;
        shared.engine.on_request(self.now(), id, request);
        let mut steps = VecDeque::new();
        shared.steps(&mut steps);
        steps
    }

    /// Tells the engine something, and does what it wants then.
    pub(super) fn tell<T>(self: &Arc<Self>, what: impl FnOnce(&mut Shared, Nanos) -> T) -> T {
        let mut steps = VecDeque::new();
        let result = {
            let shared = &mut *self.lock();
            let result = what(shared, self.now());
            shared.steps(&mut steps);
            result
        };
        self.carry_out(steps, &[]);
        result
    }

    /// Does what the engine wants, until all that is left is done by others.
    fn carry_out(self: &Arc<Self>, mut steps: VecDeque<Step>, borrowed: &[u8]) {
        while let Some(step) = steps.pop_front() {
            if let Some((io, result)) = self.carry_out_one(step, borrowed) {
                let shared = &mut *self.lock();
                shared
                    .engine
                    .on_completion(self.now(), io, errno_of(result));
                shared.steps(&mut steps);
            }
        }
    }

    /// An I/O has ended that somebody else did.
    fn completed(self: &Arc<Self>, io: IoId, result: io::Result<()>) {
        self.tell(|shared, now| shared.engine.on_completion(now, io, errno_of(result)));
    }

    /// What came of a step, if that is known at once.
    fn carry_out_one(
        self: &Arc<Self>,
        step: Step,
        borrowed: &[u8],
    ) -> Option<(IoId, io::Result<()>)> {
        match step {
            Step::Read {
                io,
                device,
                offset,
                len,
                into,
                urgency,
            } => match device {
                Device::Flash => return self.read_flash(io, offset, len, into),
                Device::Origin => {
                    let arrived = Reply::then(self.arrival(io, into));
                    self.origin.read_as(urgency, offset, len, arrived);
                }
            },
            Step::Write {
                io,
                device,
                offset,
                from,
                urgency,
            } => match device {
                Device::Flash => return self.write_flash(io, offset, from, borrowed),
                Device::Origin => self.write_origin(io, offset, from, urgency),
            },
            Step::Discard { io, offset, len } => self.discard_origin(io, offset, len),
            Step::WriteMetadata {
                io,
                offset,
                bytes,
                in_background: false,
            } => return Some((io, self.flash.write_at(&bytes, offset))),
            Step::WriteMetadata {
                io, offset, bytes, ..
            } => self
                .flash
                .write_in_background(bytes, offset, self.no_bytes(io)),
            Step::Sync { io, device, kind } => self.sync(io, device, kind),
            Step::Detach { io } => self.detach(io),
            Step::Reply { request, result } => request.give(result),
            Step::JobDone(waiter) => {
                // Nobody need be waiting.
                let _ = waiter.try_send(());
            }
            Step::Say(health, failure) => say(&health, failure),
        }
        None
    }

    fn write_origin(self: &Arc<Self>, io: IoId, offset: u64, from: Source, urgency: Urgency) {
        let Source::Shared(data, range) = from else {
            unreachable!("a request that goes to the origin has memory of its own");
        };
        self.origin
            .write_part(urgency, offset, data, range, self.no_bytes(io));
    }

    fn discard_origin(self: &Arc<Self>, io: IoId, offset: u64, len: u32) {
        let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
        self.origin
            .allocate(hole, offset, len.into(), self.no_bytes(io));
    }

    fn no_bytes(self: &Arc<Self>, io: IoId) -> Reply {
        Reply::then(self.ended(io))
    }

    fn ended(self: &Arc<Self>, io: IoId) -> impl FnOnce(Outcome) + Send + use<> {
        let under_way = self.under_way(io);
        move |outcome| under_way.end(outcome.map(drop))
    }

    /// An I/O that somebody else does.
    pub(super) fn under_way(self: &Arc<Self>, io: IoId) -> UnderWay {
        let tier = Some(self.clone());
        UnderWay { tier, io }
    }

    fn read_flash(
        self: &Arc<Self>,
        io: IoId,
        offset: u64,
        len: u32,
        into: Destination,
    ) -> Option<(IoId, io::Result<()>)> {
        let timing = self.cache_meter.begin(Op::Read, len.into());
        if let Some((rings, at)) = self.flash.rings(offset, len as usize) {
            let arrived = self.arrival(io, into);
            rings.read(at, len, move |outcome| {
                drop(timing);
                arrived(outcome);
            });
            return None;
        }
        let fill = || match &into {
            Destination::Request(request, at) => {
                request.with_range(*at, len, |range| self.flash.read_at(range, offset))
            }
            Destination::Buffer(id) => {
                let mut buffer = PageBuffer::zeroed(len as usize);
                self.flash.read_at(buffer.bytes_mut(), offset)?;
                self.lock().buffers.insert(*id, Arc::new(buffer));
                Ok(())
            }
        };
        let tier = self.clone();
        // Without a pacer it is dropped once the bytes have moved.
        let later = move |result| {
            drop(timing);
            tier.completed(io, result);
        };
        let done = self.flash.transfer(Op::Read, offset, len, fill, later);
        done.map(|result| (io, result))
    }

    fn write_flash(
        self: &Arc<Self>,
        io: IoId,
        offset: u64,
        from: Source,
        borrowed: &[u8],
    ) -> Option<(IoId, io::Result<()>)> {
        let timing = self.cache_meter.begin(Op::Write, from.len());
        let from = match from {
            Source::Shared(data, range) if range.start % DIRECT_ALIGN == 0 => {
                if let Some((rings, at)) = self.flash.rings(offset, range.len()) {
                    let ended = self.ended(io);
                    rings.write(at, data, range, move |outcome| {
                        drop(timing);
                        ended(outcome);
                    });
                    return None;
                }
                Source::Shared(data, range)
            }
            from => from,
        };
        let bytes = match &from {
            Source::Shared(data, range) => &data.bytes()[range.clone()],
            Source::Borrowed(range) => &borrowed[range.clone()],
        };
        let (len, tier) = (bytes.len() as u32, self.clone());
        let store = || self.flash.write_at(bytes, offset);
        let later = move |result| {
            drop(timing);
            tier.completed(io, result);
        };
        let done = self.flash.transfer(Op::Write, offset, len, store, later);
        done.map(|result| (io, result))
    }

    /// Puts bytes where they are wanted once they have been read.
    fn arrival(
        self: &Arc<Self>,
        io: IoId,
        into: Destination,
    ) -> impl FnOnce(Outcome) + Send + use<> {
        let (tier, under_way) = (self.clone(), self.under_way(io));
        move |outcome| {
            let result = outcome.map(|bytes| match into {
                Destination::Request(request, at) => request.fill(at, bytes),
                Destination::Buffer(id) => drop(tier.lock().buffers.insert(id, Arc::new(bytes))),
            });
            under_way.end(result);
        }
    }

    fn sync(self: &Arc<Self>, io: IoId, device: Device, kind: SyncKind) {
        let reply = self.no_bytes(io);
        match (device, kind) {
            (Device::Flash, _) => self.flash.sync(kind == SyncKind::Forced, reply),
            (Device::Origin, SyncKind::Usual) => self.origin.flush(reply),
            (Device::Origin, SyncKind::Forced) => self.origin.sync_forced(reply),
        }
    }
}

/// An I/O that somebody else does. Should they never say what came of it, because their thread has died
/// or takes nothing any more, it has failed.
pub(super) struct UnderWay {
    tier: Option<Arc<Tier>>,
    io: IoId,
}

impl UnderWay {
    pub(super) fn end(mut self, result: io::Result<()>) {
        if let Some(tier) = self.tier.take() {
            tier.completed(self.io, result);
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(tier) = self.tier.take() {
            tier.completed(self.io, Err(io::Error::from_raw_os_error(libc::EIO)));
        }
    }
}

impl SplitRequest {
    /// Has a range of the bytes that are read filled.
    fn with_range<T>(&self, at: usize, len: u32, fill: impl FnOnce(&mut [u8]) -> T) -> T {
        match &self.bytes {
            Bytes::Read(bytes) => fill(&mut bytes.lock().bytes_mut()[at..at + len as usize]),
            _ => unreachable!("only a read is filled"),
        }
    }

    /// Puts in what was read.
    fn fill(&self, at: usize, read: PageBuffer) {
        let Bytes::Read(bytes) = &self.bytes else {
            unreachable!("only a read is filled");
        };
        let mut bytes = bytes.lock();
        let len = read.bytes().len();
        match len == bytes.bytes().len() {
            true => *bytes = read,
            false => bytes.bytes_mut()[at..at + len].copy_from_slice(read.bytes()),
        }
    }

    /// Answers it.
    fn give(&self, result: Result<(), Errno>) {
        let Some(reply) = self.reply.lock().take() else {
            return;
        };
        match (result, &self.bytes) {
            (Err(Errno(code)), _) => reply.give(Err(io::Error::from_raw_os_error(code))),
            (Ok(()), Bytes::Read(bytes)) => {
                let bytes = std::mem::replace(&mut *bytes.lock(), PageBuffer::empty());
                reply.give(Ok(bytes));
            }
            (Ok(()), _) => reply.give_bytes(&[]),
        }
    }
}

fn errno_of(result: io::Result<()>) -> Result<(), Errno> {
    result.map_err(|error| error.raw_os_error().map_or(Errno::EIO, Errno))
}

/// As a status has it.
pub(super) fn name_of_device(device: Device) -> &'static str {
    match device {
        Device::Flash => "flash",
        Device::Origin => "origin",
    }
}

/// What errno(3) says of it.
pub(super) fn in_words(errno: Errno) -> String {
    io::Error::from_raw_os_error(errno.0).to_string()
}

/// For whoever reads the log: what has happened, and what to do.
fn say(health: &Health, failure: Option<WriteBackFailure>) {
    match health {
        Health::Healthy => match failure {
            None => eprintln!("hotset-engine: blocks are written back again"),
            Some(failure) => eprintln!(
                "hotset-engine: warning: what was written cannot be written back ({}: {}): it is on \
                 the flash alone, and is tried again every second",
                name_of_device(failure.device),
                in_words(failure.errno)
            ),
        },
        Health::Degrading(reason) => {
            eprintln!("hotset-engine: warning: {reason}: the cache is being given up");
        }
        Health::PassThrough(reason) => eprintln!(
            "hotset-engine: warning: {reason}: the cache has been given up, the origin serves \
             everything; nothing is lost. Replace the flash, then begin with an empty cache"
        ),
        Health::ReadOnly(reason) => eprintln!(
            "hotset-engine: error: {reason}: the cached device is read-only now, because the flash \
             holds what the origin lacks. Copy what you need from it, mend the device that failed, \
             then start this program again; after a failed sync of the origin, the computer first"
        ),
    }
}
