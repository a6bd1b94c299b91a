//! RAID-0: one device made of several, striped.

use std::collections::HashMap;

use crate::device::{Completion, Device, Op, Request, earlier};
use crate::time::Nanos;

/// A range of bytes on one member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Number of the member, from 0.
    pub member: usize,
    /// First byte on the member.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

/// How the bytes of a RAID-0 lie on its members: stripe after stripe, round and round.
#[derive(Clone, Copy, Debug)]
pub struct Striping {
    /// Number of members.
    pub members: usize,
    /// Size of a stripe unit on one member, bytes.
    pub stripe_bytes: u64,
}

impl Striping {
    /// Where one byte of the array lies: member and byte on it.
    pub fn locate(&self, offset: u64) -> (usize, u64) {
        let stripe = offset / self.stripe_bytes;
        let members = self.members as u64;
        let row = stripe / members;
        let within = offset % self.stripe_bytes;
        (
            (stripe % members) as usize,
            row * self.stripe_bytes + within,
        )
    }

    /// The byte of the array that lies on a member at `offset`; the inverse of [`locate`].
    ///
    /// [`locate`]: Striping::locate
    pub fn compose(&self, member: usize, offset: u64) -> u64 {
        let row = offset / self.stripe_bytes;
        let stripe = row * self.members as u64 + member as u64;
        stripe * self.stripe_bytes + offset % self.stripe_bytes
    }

    /// The extents of a range, at most one per member: what a range has on one member is
    /// contiguous there, so a controller sends it as one command.
    pub fn extents(&self, offset: u64, len: u64) -> Vec<Extent> {
        let mut extents: Vec<Extent> = Vec::with_capacity(self.members);
        let mut at = offset;
        while at < offset + len {
            let (member, member_offset) = self.locate(at);
            let stripe_end = (at / self.stripe_bytes + 1) * self.stripe_bytes;
            let piece = stripe_end.min(offset + len) - at;
            match extents.iter_mut().find(|extent| extent.member == member) {
                Some(extent) => extent.len += piece,
                None => extents.push(Extent {
                    member,
                    offset: member_offset,
                    len: piece,
                }),
            }
            at += piece;
        }
        extents
    }
}

/// A request whose parts are still out.
#[derive(Debug)]
struct Pending {
    parts: usize,
    latest: Nanos,
}

/// Devices striped to one.
#[derive(Debug)]
pub struct Array<D> {
    striping: Striping,
    members: Vec<D>,
    pending: HashMap<u64, Pending>,
    scratch: Vec<Completion>,
}

impl<D: Device> Array<D> {
    /// An array of these members.
    pub fn new(members: Vec<D>, stripe_bytes: u64) -> Array<D> {
        Array {
            striping: Striping {
                members: members.len(),
                stripe_bytes,
            },
            members,
            pending: HashMap::new(),
            scratch: Vec::new(),
        }
    }

    fn parts(&self, request: Request) -> Vec<Extent> {
        match request.op {
            Op::Read | Op::Write => self.striping.extents(request.offset, request.len),
            Op::Flush => (0..self.members.len())
                .map(|member| Extent {
                    member,
                    offset: 0,
                    len: 0,
                })
                .collect(),
        }
    }
}

impl<D: Device> Device for Array<D> {
    fn submit(&mut self, now: Nanos, request: Request) {
        let parts = self.parts(request);
        let pending = Pending {
            parts: parts.len(),
            latest: now,
        };
        self.pending.insert(request.tag, pending);
        // Each member gets at most one part of a request, so the parts can share its tag.
        for part in parts {
            let request = Request {
                offset: part.offset,
                len: part.len,
                ..request
            };
            self.members[part.member].submit(now, request);
        }
    }

    fn next_event(&self) -> Option<Nanos> {
        self.members
            .iter()
            .map(Device::next_event)
            .fold(None, earlier)
    }

    fn advance(&mut self, to: Nanos, done: &mut Vec<Completion>) {
        for member in &mut self.members {
            member.advance(to, &mut self.scratch);
        }
        let first = done.len();
        for part in self.scratch.drain(..) {
            let Some(pending) = self.pending.get_mut(&part.tag) else {
                unreachable!("a member completed a request that nobody made");
            };
            pending.parts -= 1;
            pending.latest = pending.latest.max(part.at);
            if pending.parts == 0 {
                done.push(Completion {
                    tag: part.tag,
                    at: pending.latest,
                });
                self.pending.remove(&part.tag);
            }
        }
        done[first..].sort_by_key(|completion| (completion.at, completion.tag));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stripes_go_round() {
        let striping = Striping {
            members: 3,
            stripe_bytes: 10,
        };
        assert_eq!(striping.locate(0), (0, 0));
        assert_eq!(striping.locate(25), (2, 5));
        assert_eq!(striping.locate(30), (0, 10));
        let extents = striping.extents(5, 40);
        let found: Vec<_> = extents
            .iter()
            .map(|e| (e.member, e.offset, e.len))
            .collect();
        assert_eq!(found, [(0, 5, 15), (1, 0, 15), (2, 0, 10)]);
    }

    proptest! {
        #[test]
        fn stripes_map_bijectively(
            members in 1usize..20,
            stripe_bytes in 1u64..1 << 20,
            offset in 0u64..1 << 45,
        ) {
            let striping = Striping { members, stripe_bytes };
            let (member, on_member) = striping.locate(offset);
            prop_assert!(member < members);
            prop_assert_eq!(striping.compose(member, on_member), offset);
        }

        #[test]
        fn extents_cover_a_range_exactly(
            members in 1usize..9,
            stripe_bytes in 1u64..64,
            offset in 0u64..5000,
            len in 1u64..2000,
        ) {
            let striping = Striping { members, stripe_bytes };
            let mut covered: Vec<u64> = striping
                .extents(offset, len)
                .iter()
                .flat_map(|e| (e.offset..e.offset + e.len).map(|at| striping.compose(e.member, at)))
                .collect();
            covered.sort_unstable();
            prop_assert_eq!(covered, (offset..offset + len).collect::<Vec<_>>());
        }
    }
}
