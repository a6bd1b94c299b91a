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
    let chunk = geometry.chunk_bytes;
    let pieces = pieces(geometry, from, to);
    let (low, high) = match pieces[..] {
        [(_, first, end)] => (first, end),
        _ => (0, chunk),
    };
    let parities: SmallVec<[usize; 2]> = [geometry.p_member(row), geometry.q_member(row)]
        .into_iter()
        .flatten()
        .collect();
    let gone = (0..geometry.members)
        .filter(|&member| !live.is_live(member))
        .count();
    if gone > parities.len() {
        return None;
    }
    let live_parities = || parities.iter().filter(|&&member| live.is_live(member));
    let mut writes: Extents = pieces
        .iter()
        .map(|&(unit, first, end)| (geometry.data_member(row, unit), first, end))
        .filter(|&(member, ..)| live.is_live(member))
        .map(|(member, first, end)| geometry.extent(row, member, first, end - first))
        .collect();
    writes.extend(live_parities().map(|&member| geometry.extent(row, member, low, high - low)));
    let plan = |method, reads| {
        Some(RowWrite {
            method,
            reads,
            writes: writes.clone(),
        })
    };
    if live_parities().next().is_none() {
        return plan(Method::NoParity, SmallVec::new());
    }
    if to - from == geometry.row_bytes() {
        return plan(Method::FullStripe, SmallVec::new());
    }

    let is_known = |unit: usize, first: u64, end: u64| {
        let base = unit as u64 * chunk;
        known.from <= base + first && base + end <= known.to
    };
    let old = |unit, first, end: u64| {
        let member = geometry.data_member(row, unit);
        let wanted = !is_known(unit, first, end) && end > first;
        wanted.then(|| geometry.extent(row, member, first, end - first))
    };
    let modify: Extents = pieces
        .iter()
        .filter_map(|&(unit, first, end)| old(unit, first, end))
        .chain(
            live_parities()
                .filter(|_| !known.parity)
                .map(|&member| geometry.extent(row, member, low, high - low)),
        )
        .collect();
    // Of the range of the parity, what the write leaves as it is.
    let kept = (0..geometry.units()).flat_map(|unit| {
        let new = pieces.iter().find(|(written, ..)| *written == unit);
        let (first, end) = new.map_or((high, high), |&(_, first, end)| (first, end));
        [(unit, low, first.max(low)), (unit, end.min(high), high)]
    });
    let reconstruct: Extents = kept
        .filter_map(|(unit, first, end)| old(unit, first, end))
        .collect();
    let possible = |reads: &Extents| reads.iter().all(|extent| live.is_live(extent.member));
    match (possible(&modify), possible(&reconstruct)) {
        (true, true) if modify.len() < reconstruct.len() => plan(Method::ReadModifyWrite, modify),
        (_, true) => plan(Method::ReconstructWrite, reconstruct),
        (true, false) => plan(Method::ReadModifyWrite, modify),
        (false, false) => {
            let left = (0..geometry.members).filter(|&member| live.is_live(member));
            let reads = left
                .map(|member| geometry.extent(row, member, low, high - low))
                .collect();
            plan(Method::Recover, reads)
        }
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
