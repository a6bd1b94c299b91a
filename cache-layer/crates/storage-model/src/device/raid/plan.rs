//! What an array reads and writes on its members to answer a request, with some of them gone.

use smallvec::SmallVec;

use super::geometry::{Extent, Geometry, Role};

/// Commands to members.
pub(super) type Extents = SmallVec<[Extent; 8]>;

/// Data of a row that is in memory: bytes from the start of the row's data; `parity` too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    pub from: u64,
    pub to: u64,
    pub parity: bool,
}

/// How a row's parity is brought up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// All data is new: nothing has to be read.
    FullStripe,
    /// New parity from old parity, old data and new data.
    ReadModifyWrite,
    /// New parity from the data that stays and new data.
    ReconstructWrite,
    /// What is gone is first worked out from everything that is left.
    Recover,
    /// No member that holds parity is left.
    NoParity,
}

/// A write to one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RowWrite {
    pub method: Method,
    pub reads: Extents,
    pub writes: Extents,
}

/// Which members of a row can be used.
pub(super) trait Live {
    fn is_live(&self, member: usize) -> bool;
}

impl<F: Fn(usize) -> bool> Live for F {
    fn is_live(&self, member: usize) -> bool {
        self(member)
    }
}

/// One member's part of a row's data: unit, and range within the chunk.
type Piece = (usize, u64, u64);

/// The pieces of a range of a row's data.
fn pieces(geometry: &Geometry, from: u64, to: u64) -> SmallVec<[Piece; 8]> {
    let chunk = geometry.chunk_bytes;
    (from / chunk..to.div_ceil(chunk))
        .map(|unit| {
            let first = from.max(unit * chunk) - unit * chunk;
            let end = to.min((unit + 1) * chunk) - unit * chunk;
            (unit as usize, first, end)
        })
        .collect()
}

/// What to read for a range of one unit whose member is gone: the same range of as many others as
/// a row has units; `None` if too few are left.
pub(super) fn recovery(
    geometry: &Geometry,
    live: &impl Live,
    row: u64,
    member: usize,
    within: u64,
    len: u64,
) -> Option<Extents> {
    let mut sources: Extents = SmallVec::new();
    let rank = |&other: &usize| match geometry.role(row, other) {
        Role::Data(_) => 0,
        Role::P => 1,
        Role::Q => 2,
    };
    let mut others: SmallVec<[usize; 16]> = (0..geometry.members)
        .filter(|&other| other != member && live.is_live(other))
        .collect();
    others.sort_by_key(rank);
    for other in others.into_iter().take(geometry.units()) {
        sources.push(geometry.extent(row, other, within, len));
    }
    (sources.len() == geometry.units()).then_some(sources)
}

/// How to write a range of a row's data on a level with parity; `None` if too many members are
/// gone.
///
/// Of the two ways to new parity the one with fewer reads is taken, reconstruct-write where they
/// are equal, as in md (`handle_stripe_dirtying`).
pub(super) fn row_write(
    geometry: &Geometry,
    live: &impl Live,
    row: u64,
    from: u64,
    to: u64,
    known: Known,
) -> Option<RowWrite> {
    let parities = [geometry.p_member(row), geometry.q_member(row)];
    let gone = (0..geometry.members)
        .filter(|&member| !live.is_live(member))
        .count();
    if gone > parities.iter().flatten().count() {
        return None;
    }
    let part = Part::new(geometry, live, row, from, to);
    let parity = part.parity();
    let (method, reads) = if parity.is_empty() {
        (Method::NoParity, SmallVec::new())
    } else if to - from == geometry.row_bytes() {
        (Method::FullStripe, SmallVec::new())
    } else {
        part.reads(known)
    };
    let mut writes = part.data();
    writes.extend(parity);
    Some(RowWrite {
        method,
        reads,
        writes,
    })
}

/// A range of a row's data that is written, and the range of the parity that changes with it.
struct Part<'a, L> {
    geometry: &'a Geometry,
    live: &'a L,
    row: u64,
    pieces: SmallVec<[Piece; 8]>,
    /// Of each member's chunk: where the changed range of the parity begins and ends.
    low: u64,
    high: u64,
}

impl<'a, L: Live> Part<'a, L> {
    fn new(geometry: &'a Geometry, live: &'a L, row: u64, from: u64, to: u64) -> Self {
        let pieces = pieces(geometry, from, to);
        let (low, high) = match pieces[..] {
            [(_, first, end)] => (first, end),
            _ => (0, geometry.chunk_bytes),
        };
        Self {
            geometry,
            live,
            row,
            pieces,
            low,
            high,
        }
    }

    /// The changed range on one member.
    fn range_of(&self, member: usize) -> Extent {
        self.geometry
            .extent(self.row, member, self.low, self.high - self.low)
    }

    /// The new data, on the members that are left.
    fn data(&self) -> Extents {
        self.pieces
            .iter()
            .map(|&(unit, first, end)| (self.geometry.data_member(self.row, unit), first, end))
            .filter(|&(member, ..)| self.live.is_live(member))
            .map(|(member, first, end)| self.geometry.extent(self.row, member, first, end - first))
            .collect()
    }

    /// The parity, on the members that are left.
    fn parity(&self) -> Extents {
        let members = [
            self.geometry.p_member(self.row),
            self.geometry.q_member(self.row),
        ];
        members
            .into_iter()
            .flatten()
            .filter(|&member| self.live.is_live(member))
            .map(|member| self.range_of(member))
            .collect()
    }

    /// What to read for the new parity, and how it is made.
    fn reads(&self, known: Known) -> (Method, Extents) {
        let modify = self.read_modify(known);
        let reconstruct = self.reconstruct(known);
        let possible =
            |reads: &Extents| reads.iter().all(|extent| self.live.is_live(extent.member));
        match (possible(&modify), possible(&reconstruct)) {
            (true, true) if modify.len() < reconstruct.len() => (Method::ReadModifyWrite, modify),
            (_, true) => (Method::ReconstructWrite, reconstruct),
            (true, false) => (Method::ReadModifyWrite, modify),
            (false, false) => (Method::Recover, self.all_left()),
        }
    }

    /// The old data that is overwritten, and the old parity.
    fn read_modify(&self, known: Known) -> Extents {
        let old = self
            .pieces
            .iter()
            .filter_map(|&piece| self.old(piece, known));
        let parity = if known.parity {
            SmallVec::new()
        } else {
            self.parity()
        };
        old.chain(parity).collect()
    }

    /// Of the range of the parity, the data that the write leaves as it is.
    fn reconstruct(&self, known: Known) -> Extents {
        let kept = (0..self.geometry.units()).flat_map(|unit| {
            let new = self.pieces.iter().find(|(written, ..)| *written == unit);
            let (first, end) = new.map_or((self.high, self.high), |&(_, first, end)| (first, end));
            [
                (unit, self.low, first.max(self.low)),
                (unit, end.min(self.high), self.high),
            ]
        });
        kept.filter_map(|piece| self.old(piece, known)).collect()
    }

    /// The old data of a piece, unless there is none or it is in memory.
    fn old(&self, (unit, first, end): Piece, known: Known) -> Option<Extent> {
        let base = unit as u64 * self.geometry.chunk_bytes;
        let is_known = known.from <= base + first && base + end <= known.to;
        (!is_known && end > first).then(|| {
            let member = self.geometry.data_member(self.row, unit);
            self.geometry.extent(self.row, member, first, end - first)
        })
    }

    fn all_left(&self) -> Extents {
        (0..self.geometry.members)
            .filter(|&member| self.live.is_live(member))
            .map(|member| self.range_of(member))
            .collect()
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
