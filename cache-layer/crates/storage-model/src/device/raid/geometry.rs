//! Where the bytes of an array lie on its members.
//!
//! A row is one chunk on every member: some hold data (its units), the others parity or copies.
//! Parity turns from row to row as in md's default, "left-symmetric": it begins on the last member
//! and goes down, and the units of a row begin behind it.

use serde::{Deserialize, Serialize};

/// What an array does with its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Level {
    /// Striped.
    #[serde(rename = "0")]
    Raid0,
    /// Every member holds everything.
    #[serde(rename = "1")]
    Raid1,
    /// Striped over pairs.
    #[serde(rename = "10")]
    Raid10,
    /// Striped, with one parity.
    #[serde(rename = "5")]
    Raid5,
    /// Striped, with two parities.
    #[serde(rename = "6")]
    Raid6,
    /// As RAID 5, but one member holds the parity of two rows in each turn, so that flash members
    /// do not wear out together. Synology's; its exact order of rows is not published, and here
    /// the first member gets the additional one, in a turn of members + 1 rows.
    #[serde(rename = "F1")]
    F1,
}

impl Level {
    /// Fewest members that make sense.
    pub fn members_min(self) -> usize {
        match self {
            Level::Raid0 => 1,
            Level::Raid1 => 2,
            Level::Raid5 | Level::F1 => 3,
            Level::Raid6 | Level::Raid10 => 4,
        }
    }

    /// Parity chunks of a row.
    pub fn parities(self) -> usize {
        match self {
            Level::Raid0 | Level::Raid1 | Level::Raid10 => 0,
            Level::Raid5 | Level::F1 => 1,
            Level::Raid6 => 2,
        }
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Level::Raid0 => "RAID 0",
            Level::Raid1 => "RAID 1",
            Level::Raid10 => "RAID 10",
            Level::Raid5 => "RAID 5",
            Level::Raid6 => "RAID 6",
            Level::F1 => "RAID F1",
        })
    }
}

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

/// What a member holds in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// This unit of the row's data (or a copy of it).
    Data(usize),
    /// The sum.
    P,
    /// The Reed-Solomon syndrome.
    Q,
}

/// How an array's bytes lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    /// What the members are used for.
    pub level: Level,
    /// Number of members.
    pub members: usize,
    /// Size of a chunk, bytes.
    pub chunk_bytes: u64,
}

impl Geometry {
    /// Units of data in a row.
    pub fn units(&self) -> usize {
        match self.level {
            Level::Raid0 => self.members,
            Level::Raid1 => 1,
            Level::Raid10 => self.members / 2,
            Level::Raid5 | Level::F1 | Level::Raid6 => self.members - self.level.parities(),
        }
    }

    /// Data in a row, bytes.
    pub fn row_bytes(&self) -> u64 {
        self.chunk_bytes * self.units() as u64
    }

    /// What an array of members of this size holds, bytes: whole rows.
    pub fn capacity_bytes(&self, member_bytes: u64) -> u64 {
        member_bytes / self.chunk_bytes * self.row_bytes()
    }

    /// Rows that hold so many bytes of data.
    pub fn rows(&self, data_bytes: u64) -> u64 {
        data_bytes.div_ceil(self.row_bytes())
    }

    /// Row, unit and place in the unit of a byte of the array.
    pub fn locate(&self, offset: u64) -> (u64, usize, u64) {
        let chunk = offset / self.chunk_bytes;
        let units = self.units() as u64;
        let within = offset % self.chunk_bytes;
        (chunk / units, (chunk % units) as usize, within)
    }

    /// The member with the row's P, if the level has one.
    pub fn p_member(&self, row: u64) -> Option<usize> {
        let members = self.members as u64;
        match self.level {
            Level::Raid0 | Level::Raid1 | Level::Raid10 => None,
            Level::Raid5 | Level::Raid6 => Some((members - 1 - row % members) as usize),
            Level::F1 => Some((members - 1).saturating_sub(row % (members + 1)) as usize),
        }
    }

    /// The member with the row's Q, if the level has one.
    pub fn q_member(&self, row: u64) -> Option<usize> {
        match self.level {
            Level::Raid6 => self.p_member(row).map(|p| (p + 1) % self.members),
            _ => None,
        }
    }

    /// The member with a unit of a row; of a mirrored one, the first that has it.
    pub fn data_member(&self, row: u64, unit: usize) -> usize {
        match (self.level, self.p_member(row)) {
            (Level::Raid10, _) => 2 * unit,
            (_, None) => unit,
            (level, Some(p)) => (p + level.parities() + unit) % self.members,
        }
    }

    /// The members with a copy of a unit, and how many.
    pub fn copies(&self, row: u64, unit: usize) -> std::ops::Range<usize> {
        let first = self.data_member(row, unit);
        match self.level {
            Level::Raid1 => 0..self.members,
            Level::Raid10 => first..first + 2,
            _ => first..first + 1,
        }
    }

    /// What a member holds in a row; the inverse of the above.
    pub fn role(&self, row: u64, member: usize) -> Role {
        let Some(p) = self.p_member(row) else {
            return Role::Data(match self.level {
                Level::Raid1 => 0,
                Level::Raid10 => member / 2,
                _ => member,
            });
        };
        if member == p {
            return Role::P;
        }
        if Some(member) == self.q_member(row) {
            return Role::Q;
        }
        Role::Data((member + self.members - p - self.level.parities()) % self.members)
    }

    /// A range within a chunk of a row, on a member.
    pub fn extent(&self, row: u64, member: usize, within: u64, len: u64) -> Extent {
        Extent {
            member,
            offset: row * self.chunk_bytes + within,
            len,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    pub(crate) fn any_geometry() -> impl Strategy<Value = Geometry> {
        let levels = vec![
            Level::Raid0,
            Level::Raid1,
            Level::Raid10,
            Level::Raid5,
            Level::Raid6,
            Level::F1,
        ];
        let level = prop::sample::select(levels);
        (level, 0usize..9, 1u64..1 << 20).prop_map(|(level, more, chunk_bytes)| {
            let members = level.members_min() + more;
            Geometry {
                level,
                members: match level {
                    Level::Raid10 => members / 2 * 2,
                    _ => members,
                },
                chunk_bytes,
            }
        })
    }

    fn roles(geometry: &Geometry, row: u64) -> Vec<Role> {
        (0..geometry.members)
            .map(|member| geometry.role(row, member))
            .collect()
    }

    #[test]
    fn parity_turns_as_mds_left_symmetric_does() {
        use Role::{Data, P};
        let geometry = Geometry {
            level: Level::Raid5,
            members: 3,
            chunk_bytes: 1,
        };
        assert_eq!(roles(&geometry, 0), [Data(0), Data(1), P]);
        assert_eq!(roles(&geometry, 1), [Data(1), P, Data(0)]);
        assert_eq!(roles(&geometry, 2), [P, Data(0), Data(1)]);
        assert_eq!(roles(&geometry, 3), roles(&geometry, 0));
    }

    #[test]
    fn f1_gives_one_member_more_parity_than_the_others() {
        let geometry = Geometry {
            level: Level::F1,
            members: 6,
            chunk_bytes: 1,
        };
        let mut counts = [0; 6];
        for row in 0..7 * 100 {
            counts[geometry.p_member(row).unwrap()] += 1;
        }
        assert_eq!(counts, [200, 100, 100, 100, 100, 100]);
    }

    proptest! {
        #[test]
        fn bytes_map_bijectively(geometry in any_geometry(), offset in 0u64..1 << 45) {
            let (row, unit, within) = geometry.locate(offset);
            prop_assert!(unit < geometry.units() && within < geometry.chunk_bytes);
            let chunk = row * geometry.units() as u64 + unit as u64;
            prop_assert_eq!(chunk * geometry.chunk_bytes + within, offset);
            for member in geometry.copies(row, unit) {
                prop_assert_eq!(geometry.role(row, member), Role::Data(unit));
            }
        }

        #[test]
        fn a_row_has_every_role_once(geometry in any_geometry(), row in 0u64..1 << 30) {
            let roles = roles(&geometry, row);
            let data: HashSet<_> = roles.iter().filter(|r| matches!(r, Role::Data(_))).collect();
            prop_assert_eq!(data.len(), geometry.units());
            let count = |wanted| roles.iter().filter(|&&role| role == wanted).count();
            prop_assert_eq!(count(Role::P) + count(Role::Q), geometry.level.parities());
            prop_assert_eq!(count(Role::P), usize::from(geometry.level.parities() > 0));
        }

        #[test]
        fn capacity_is_conserved(geometry in any_geometry(), member_bytes in 0u64..1 << 40) {
            let capacity = geometry.capacity_bytes(member_bytes);
            if capacity > 0 {
                // The last byte lies on the members, the next one would not.
                let (row, _, within) = geometry.locate(capacity - 1);
                prop_assert!(row * geometry.chunk_bytes + within < member_bytes);
                let (row, _, _) = geometry.locate(capacity);
                prop_assert!((row + 1) * geometry.chunk_bytes > member_bytes);
            }
            prop_assert!(geometry.capacity_bytes(geometry.rows(capacity) * geometry.chunk_bytes) >= capacity);
        }
    }
}
