//! An engine whose I/O is done when the test says so.

use super::super::action::{Device, Direction};
use super::super::*;
use super::world::{BLOCK_BYTES, SLOTS, fresh_engine};
use crate::policy::PolicyKind;

/// An engine whose I/O is done when the test says so.
pub(super) struct Bench {
    pub(super) engine: Engine,
    /// What is wanted and has not been done.
    pub(super) wanted: Vec<Action>,
    pub(super) replies: Vec<(RequestId, Result<(), Errno>)>,
    pub(super) now: Nanos,
}

pub(super) const OK: Result<(), Errno> = Ok(());
pub(super) const FAILED: Result<(), Errno> = Err(Errno::EIO);

impl Bench {
    pub(super) fn new(mode: Mode) -> Bench {
        Bench {
            engine: fresh_engine(mode, PolicyKind::Lru),
            wanted: Vec::new(),
            replies: Vec::new(),
            now: 0,
        }
    }

    /// One with the first blocks in its slots.
    pub(super) fn warm(mode: Mode) -> Bench {
        let mut bench = Bench::new(mode);
        let wanted = (0..SLOTS as u32).collect();
        bench.engine.begin_warm_up(0, wanted, None);
        bench.finish();
        assert_eq!(bench.engine.resident().len(), SLOTS);
        bench
    }

    /// Takes what is wanted; the engine is at its end before others have it.
    pub(super) fn collect(&mut self) {
        self.take();
        while self.engine.has_more_to_do() {
            self.engine.on_timer(self.now);
            self.take();
        }
    }

    /// The same of one call alone.
    pub(super) fn take(&mut self) {
        let mut actions = Vec::new();
        self.engine.take_actions(&mut actions);
        for action in actions {
            match action {
                Action::Reply { id, result } => self.replies.push((id, result)),
                Action::JobDone { job } => drop(self.engine.finish_job(job)),
                Action::Release { .. } | Action::HealthChanged => {}
                action => self.wanted.push(action),
            }
        }
    }

    pub(super) fn ask(&mut self, id: RequestId, request: Request) {
        self.engine.on_request(self.now, id, request);
        self.collect();
    }

    pub(super) fn write(&mut self, id: RequestId, block: u64) {
        let offset = block * BLOCK_BYTES;
        self.ask(id, Request::Write { offset, len: 512 });
    }

    pub(super) fn read(&mut self, id: RequestId, block: u64) {
        let offset = block * BLOCK_BYTES;
        self.ask(id, Request::Read { offset, len: 512 });
    }

    pub(super) fn discard(&mut self, id: RequestId, block: u64, blocks: u64) {
        let (offset, len) = (block * BLOCK_BYTES, (blocks * BLOCK_BYTES) as u32);
        self.ask(id, Request::Discard { offset, len });
    }

    /// Ends the first I/O of this kind that is wanted.
    pub(super) fn end(&mut self, which: impl Fn(&Action) -> bool, result: Result<(), Errno>) {
        let place = self.wanted.iter().position(which);
        let at = place.unwrap_or_else(|| panic!("not wanted: only {:?}", self.wanted));
        let io = io_of(&self.wanted.remove(at));
        self.engine.on_completion(self.now, io, result);
        self.collect();
    }

    /// Ends everything well.
    pub(super) fn finish(&mut self) {
        self.collect();
        while !self.wanted.is_empty() {
            self.end(|_| true, OK);
        }
    }

    pub(super) fn reply(&self, id: RequestId) -> Option<Result<(), Errno>> {
        let reply = self.replies.iter().find(|(of, _)| *of == id);
        reply.map(|(_, result)| *result)
    }
}

pub(super) fn io_of(action: &Action) -> IoId {
    match action {
        Action::Transfer { io, .. }
        | Action::WriteMetadata { io, .. }
        | Action::Sync { io, .. }
        | Action::Discard { io, .. }
        | Action::Detach { io } => *io,
        other => panic!("{other:?} is no I/O"),
    }
}

pub(super) fn moves(on: Device, way: Direction) -> impl Fn(&Action) -> bool {
    move |action| {
        matches!(action, Action::Transfer { device, direction, .. }
            if (*device, *direction) == (on, way))
    }
}

pub(super) fn syncs(on: Device) -> impl Fn(&Action) -> bool {
    move |action| matches!(action, Action::Sync { device, .. } if *device == on)
}

pub(super) fn writes_metadata(action: &Action) -> bool {
    matches!(action, Action::WriteMetadata { .. })
}

pub(super) fn in_background(action: &Action) -> bool {
    matches!(action, Action::WriteMetadata { in_background, .. } if *in_background)
}

pub(super) fn discards(action: &Action) -> bool {
    matches!(action, Action::Discard { .. })
}

pub(super) fn detaches(action: &Action) -> bool {
    matches!(action, Action::Detach { .. })
}

/// One whose cache is full of the first blocks, the last of them dirty.
pub(super) fn full(kind: PolicyKind) -> Bench {
    let mut bench = Bench::new(Mode::Writeback);
    bench.engine = fresh_engine(Mode::Writeback, kind);
    let capacity = bench.engine.policy().capacity();
    bench.engine.begin_warm_up(0, (0..capacity).collect(), None);
    bench.finish();
    bench.write(1, u64::from(capacity) - 1);
    bench.finish();
    assert_eq!(
        bench.engine.resident().len(),
        u64::from(capacity),
        "{kind:?}"
    );
    bench
}
