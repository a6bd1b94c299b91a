//! Plans carried out on real bytes: what a plan reads must be enough to write the right parity,
//! and whatever members then fail, the data must come back.

use super::super::geometry::Level;
use super::*;
use proptest::prelude::*;

const CHUNK: usize = 16;
const ROWS: usize = 12;

/// Multiplication in GF(2^8) with the polynomial of md's RAID 6, 0x11d.
fn times(mut a: u8, mut b: u8) -> u8 {
    let mut product = 0;
    while b != 0 {
        if b & 1 == 1 {
            product ^= a;
        }
        a = (a << 1) ^ if a & 0x80 != 0 { 0x1d } else { 0 };
        b >>= 1;
    }
    product
}

fn inverse(a: u8) -> u8 {
    (1..=255).find(|&b| times(a, b) == 1).expect("a is not 0")
}

fn power_of_two(exponent: usize) -> u8 {
    (0..exponent).fold(1, |power, _| times(power, 2))
}

/// What a member of a role contributes to the two syndromes: P + sum(D) = 0, Q + sum(2^i D_i) = 0.
fn weights(role: Role) -> [u8; 2] {
    match role {
        Role::Data(unit) => [1, power_of_two(unit)],
        Role::P => [1, 0],
        Role::Q => [0, 1],
    }
}

/// Members with bytes.
struct Bytes {
    geometry: Geometry,
    members: Vec<Vec<u8>>,
    failed: Vec<bool>,
}

impl Bytes {
    fn new(geometry: Geometry) -> Bytes {
        Bytes {
            geometry,
            members: vec![vec![0; ROWS * CHUNK]; geometry.members],
            failed: vec![false; geometry.members],
        }
    }

    fn live(&self) -> impl Fn(usize) -> bool + use<> {
        let failed = self.failed.clone();
        move |member| !failed[member]
    }

    fn at(&self, member: usize, byte: usize) -> u8 {
        assert!(
            !self.failed[member],
            "a plan touches the failed member {member}"
        );
        self.members[member][byte]
    }

    /// One byte of every member of a row, from those that are known; the unknown ones, two at the
    /// most, are worked out from the syndromes.
    fn solve(&self, row: u64, known: &[Option<u8>]) -> Vec<u8> {
        let unknown: Vec<usize> = (0..known.len()).filter(|&m| known[m].is_none()).collect();
        let weight = |member| weights(self.geometry.role(row, member));
        let mut sums = [0u8; 2];
        for (member, byte) in known.iter().enumerate() {
            let [p, q] = weight(member);
            sums[0] ^= times(p, byte.unwrap_or(0));
            sums[1] ^= times(q, byte.unwrap_or(0));
        }
        let mut all: Vec<u8> = known.iter().map(|byte| byte.unwrap_or(0)).collect();
        match unknown[..] {
            [] => {}
            [member] => {
                let [p, q] = weight(member);
                let (sum, weight) = if p != 0 { (sums[0], p) } else { (sums[1], q) };
                all[member] = times(sum, inverse(weight));
            }
            [a, b] => {
                let ([pa, qa], [pb, qb]) = (weight(a), weight(b));
                let over = inverse(times(pa, qb) ^ times(pb, qa));
                all[a] = times(times(qb, sums[0]) ^ times(pb, sums[1]), over);
                all[b] = times(times(qa, sums[0]) ^ times(pa, sums[1]), over);
            }
            _ => panic!("{} members of a row are unknown", unknown.len()),
        }
        all
    }

    /// Carries a plan out: only what it reads may be used, only what it writes changes.
    fn write(&mut self, row: u64, from: usize, data: &[u8]) {
        let live = self.live();
        let (from64, to64) = (from as u64, (from + data.len()) as u64);
        let plan = row_write(&self.geometry, &live, row, from64, to64, Known::default())
            .expect("few enough have failed");
        let base = row as usize * CHUNK;
        for within in 0..CHUNK {
            let byte = base + within;
            let covers = |extent: &&Extent| {
                extent.offset as usize <= byte && byte < (extent.offset + extent.len) as usize
            };
            let mut old = vec![None; self.geometry.members];
            for extent in plan.reads.iter().filter(covers) {
                old[extent.member] = Some(self.at(extent.member, byte));
            }
            let mut new: Vec<Option<u8>> = old.clone();
            for unit in 0..self.geometry.units() {
                let place = unit * CHUNK + within;
                if (from..from + data.len()).contains(&place) {
                    new[self.geometry.data_member(row, unit)] = Some(data[place - from]);
                }
            }
            let written: Vec<usize> = plan
                .writes
                .iter()
                .filter(covers)
                .map(|e| e.member)
                .collect();
            let values = self.values_to_write(row, plan.method, &old, &new, &written);
            for (member, value) in written.into_iter().zip(values) {
                assert!(
                    !self.failed[member],
                    "a plan writes the failed member {member}"
                );
                self.members[member][byte] = value;
            }
        }
    }

    fn values_to_write(
        &self,
        row: u64,
        method: Method,
        old: &[Option<u8>],
        new: &[Option<u8>],
        written: &[usize],
    ) -> Vec<u8> {
        if written.is_empty() {
            return Vec::new();
        }
        let role = |member| self.geometry.role(row, member);
        let all = match method {
            Method::ReadModifyWrite => {
                // Parity changes by what the data changes by.
                let mut all: Vec<u8> = new.iter().map(|byte| byte.unwrap_or(0)).collect();
                for &member in written {
                    if matches!(role(member), Role::Data(_)) {
                        continue;
                    }
                    let index = usize::from(role(member) == Role::Q);
                    let change = (0..self.geometry.members)
                        .filter(|&m| matches!(role(m), Role::Data(_)) && written.contains(&m))
                        .map(|m| times(weights(role(m))[index], old[m].unwrap() ^ new[m].unwrap()))
                        .fold(0, |sum, part| sum ^ part);
                    all[member] = old[member].expect("old parity is read") ^ change;
                }
                all
            }
            Method::Recover => {
                let mut all = self.solve(row, old);
                for (member, byte) in new.iter().enumerate() {
                    if matches!(role(member), Role::Data(_)) {
                        all[member] = byte.unwrap_or(all[member]);
                    }
                }
                let data = |m: usize| matches!(role(m), Role::Data(_)).then_some(all[m]);
                self.solve(row, &(0..all.len()).map(data).collect::<Vec<_>>())
            }
            Method::FullStripe | Method::ReconstructWrite => {
                let data = |m: usize| match role(m) {
                    Role::Data(_) => Some(new[m].expect("all data of the row is read or new")),
                    Role::P | Role::Q => None,
                };
                self.solve(row, &(0..new.len()).map(data).collect::<Vec<_>>())
            }
            Method::NoParity => new.iter().map(|byte| byte.unwrap_or(0)).collect(),
        };
        written.iter().map(|&member| all[member]).collect()
    }

    /// Reads all data, working out what is gone from what a plan reads.
    fn read_all(&self) -> Vec<u8> {
        let live = self.live();
        let mut data = Vec::new();
        for row in 0..ROWS as u64 {
            for unit in 0..self.geometry.units() {
                let member = self.geometry.data_member(row, unit);
                for byte in row as usize * CHUNK..(row as usize + 1) * CHUNK {
                    if live(member) {
                        data.push(self.at(member, byte));
                        continue;
                    }
                    let within = (byte % CHUNK) as u64;
                    let sources = recovery(&self.geometry, &live, row, member, within, 1)
                        .expect("few enough have failed");
                    let mut known = vec![None; self.geometry.members];
                    for extent in sources {
                        assert_eq!(extent.offset as usize, byte);
                        known[extent.member] = Some(self.at(extent.member, byte));
                    }
                    data.push(self.solve(row, &known)[member]);
                }
            }
        }
        data
    }
}

fn any_parity_geometry() -> impl Strategy<Value = Geometry> {
    let level = prop::sample::select(vec![Level::Raid5, Level::Raid6, Level::F1]);
    (level, 0usize..4).prop_map(|(level, more)| Geometry {
        level,
        members: level.members_min() + more,
        chunk_bytes: CHUNK as u64,
    })
}

/// Writes: row, and two places in it.
fn any_writes() -> impl Strategy<Value = Vec<(u64, usize, usize, u8)>> {
    let write = (0..ROWS as u64, any::<usize>(), any::<usize>(), any::<u8>());
    prop::collection::vec(write, 1..40)
}

fn apply(bytes: &mut Bytes, expected: &mut [u8], writes: &[(u64, usize, usize, u8)]) {
    let row_bytes = bytes.geometry.row_bytes() as usize;
    for &(row, a, b, seed) in writes {
        let (a, b) = (a % row_bytes, b % row_bytes);
        let (from, to) = (a.min(b), a.max(b) + 1);
        let data: Vec<u8> = (from..to)
            .map(|place| (place as u8).wrapping_mul(31).wrapping_add(seed))
            .collect();
        bytes.write(row, from, &data);
        let start = row as usize * row_bytes;
        expected[start + from..start + to].copy_from_slice(&data);
    }
}

proptest! {
    #[test]
    fn data_is_right_after_any_failures_the_level_bears(
        geometry in any_parity_geometry(),
        before in any_writes(),
        after in any_writes(),
        failures in prop::collection::vec(any::<prop::sample::Index>(), 2),
    ) {
        let mut bytes = Bytes::new(geometry);
        let mut expected = vec![0; ROWS * geometry.row_bytes() as usize];
        apply(&mut bytes, &mut expected, &before);
        prop_assert_eq!(&bytes.read_all(), &expected);
        for failure in failures.iter().take(geometry.level.parities()) {
            bytes.failed[failure.index(geometry.members)] = true;
            prop_assert_eq!(&bytes.read_all(), &expected);
        }
        // Degraded, it is written on.
        apply(&mut bytes, &mut expected, &after);
        prop_assert_eq!(&bytes.read_all(), &expected);
    }
}

#[test]
fn the_cheaper_way_to_parity_is_taken() {
    let geometry = Geometry {
        level: Level::Raid5,
        members: 6,
        chunk_bytes: 64,
    };
    let method = |from, to, known| row_write(&geometry, &|_| true, 0, from, to, known).unwrap();
    let none = Known::default();
    assert_eq!(method(0, 320, none).method, Method::FullStripe);
    let small = method(0, 8, none);
    assert_eq!(
        (small.method, small.reads.len(), small.writes.len()),
        (Method::ReadModifyWrite, 2, 2)
    );
    let most = method(0, 256, none);
    assert_eq!(
        (most.method, most.reads.len(), most.writes.len()),
        (Method::ReconstructWrite, 1, 5)
    );
}

#[test]
fn what_is_in_memory_is_not_read() {
    let geometry = Geometry {
        level: Level::Raid5,
        members: 6,
        chunk_bytes: 64,
    };
    let known = Known {
        from: 0,
        to: 128,
        parity: true,
    };
    let rest = row_write(&geometry, &|_| true, 0, 128, 320, known).unwrap();
    assert!(rest.reads.is_empty(), "{rest:?}");
}
