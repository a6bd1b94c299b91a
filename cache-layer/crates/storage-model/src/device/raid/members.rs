//! The members of an array: how they are, and what comes of it when one fails or is replaced.

use serde::Serialize;

use super::geometry::Level;
use super::{Member, NEVER, Raid};
use crate::device::Device;
use virtual_time::Nanos;

/// How a member is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    /// In use.
    Active,
    /// Gone; the array works without it if its level allows.
    Failed,
    /// Being filled with what the others know; the share that is done.
    Rebuilding(f64),
}

/// What an array has to tell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RaidStatus {
    /// Of each member.
    pub members: Vec<MemberState>,
    /// Spares left.
    pub spares: usize,
    /// Members read to bring parity up to date, and rows written as whole stripes.
    pub rows: RowCounters,
}

/// How rows were written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RowCounters {
    /// Without reading.
    pub full_stripe: u64,
    /// Old data and parity read first.
    pub read_modify_write: u64,
    /// The rest of the row read first.
    pub reconstruct_write: u64,
    /// All that was left read first, as a member was gone.
    pub recovered: u64,
}

/// Why a member cannot fail or be replaced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemberError {
    /// No such member.
    #[error("member {member}: the array has members 0 to {last}")]
    Unknown {
        /// What was asked for.
        member: usize,
        /// The last there is.
        last: usize,
    },
    /// It has failed before.
    #[error("member {0} has failed already: replace it, or name another")]
    Failed(usize),
    /// It is well.
    #[error("member {0} is active: only a failed member is replaced")]
    Active(usize),
    /// The data is gone with it.
    #[error(
        "member {member} cannot be rebuilt: {level} has lost data with it; make the array anew"
    )]
    Lost {
        /// Which one.
        member: usize,
        /// What the array is.
        level: Level,
    },
    /// The model has no array.
    #[error("the device has no array: only members of an array fail and are replaced")]
    NoArray,
}

impl<D: Device> Raid<D> {
    /// The devices that are members now.
    pub fn devices(&self) -> impl Iterator<Item = &D> {
        self.members
            .iter()
            .filter_map(|member| member.device.as_ref())
    }

    /// How the members are.
    pub fn status(&self) -> RaidStatus {
        let rows = self.rebuild.rows().max(1) as f64;
        let state = |member: &Member<D>| match (&member.device, member.filled_rows) {
            (None, _) => MemberState::Failed,
            (Some(_), u64::MAX) => MemberState::Active,
            (Some(_), filled) => MemberState::Rebuilding(filled as f64 / rows),
        };
        RaidStatus {
            members: self.members.iter().map(state).collect(),
            spares: self.spares,
            rows: self.counters,
        }
    }

    /// A member fails at `now`, with everything that is under way on it. A spare takes its place.
    ///
    /// # Errors
    /// There is no such member, or it has failed before.
    pub fn fail(&mut self, now: Nanos, number: usize) -> Result<(), MemberError> {
        self.check(number)?;
        let Some(mut device) = self.members[number].device.take() else {
            return Err(MemberError::Failed(number));
        };
        self.cache.clear();
        self.members[number] = Member {
            device: None,
            filled_rows: 0,
            next_event: NEVER,
            outstanding: 0,
            position: 0,
        };
        self.rebuild.member_failed(number);
        let mut lost = Vec::new();
        while let Some(at) = device.next_event() {
            device.advance(at, &mut lost);
        }
        let mut done = Vec::new();
        for command in lost {
            self.part_done(now, command.tag as usize, true, &mut done);
        }
        self.immediate.append(&mut done);
        if self.spares > 0 && self.is_rebuildable() {
            self.spares -= 1;
            self.fill(now, number);
        }
        self.refresh_next_event();
        Ok(())
    }

    /// A new device takes the place of a failed member, and is rebuilt.
    ///
    /// # Errors
    /// The member is active, unknown, or its data is gone.
    pub fn replace(&mut self, now: Nanos, number: usize) -> Result<(), MemberError> {
        self.check(number)?;
        if self.members[number].device.is_some() {
            return Err(MemberError::Active(number));
        }
        if !self.is_rebuildable() {
            let level = self.spec.geometry.level;
            return Err(MemberError::Lost {
                member: number,
                level,
            });
        }
        self.fill(now, number);
        self.refresh_next_event();
        Ok(())
    }

    fn check(&self, member: usize) -> Result<(), MemberError> {
        let last = self.members.len() - 1;
        match member <= last {
            true => Ok(()),
            false => Err(MemberError::Unknown { member, last }),
        }
    }

    /// Whether what a failed member held can be worked out from the others.
    fn is_rebuildable(&self) -> bool {
        let geometry = &self.spec.geometry;
        let complete = |member: usize| self.members[member].filled_rows == u64::MAX;
        let gone = (0..self.members.len()).filter(|&m| !complete(m)).count();
        match geometry.level {
            Level::Raid0 => false,
            Level::Raid1 => gone < self.members.len(),
            Level::Raid10 => (0..geometry.units()).all(|u| complete(2 * u) || complete(2 * u + 1)),
            level => gone <= level.parities(),
        }
    }

    fn fill(&mut self, now: Nanos, number: usize) {
        self.members[number].device = Some((self.fresh)(number));
        self.rebuild.add(now, number);
    }

    pub(super) fn is_live(&self, member: usize, row: u64) -> bool {
        let member = &self.members[member];
        member.device.is_some() && row < member.filled_rows
    }
}
