//! Doubly linked lists whose links lie in one array: moving a member touches no allocator.
//!
//! Members are indices into the array (slots, blocks); lists that share it are disjoint. Front is
//! the oldest member, next to leave, back the newest.

/// No member.
pub(super) const NONE: u32 = u32::MAX;

/// [`Link::older`] of an index that is in no list.
const UNLINKED: u32 = u32::MAX - 1;

#[derive(Clone, Copy)]
struct Link {
    older: u32,
    newer: u32,
}

/// The links of all lists over one range of indices: 8 bytes each.
pub struct Links(Vec<Link>);

impl Links {
    /// Links for the indices 0 up to `count`, all of them in no list.
    pub fn new(count: u32) -> Links {
        let mut links = Links::with_room_for(count);
        links.grow(count, count);
        links
    }

    /// No links yet, but room for so many: to be made little by little, as a processor writes no
    /// more than some hundred megabytes in the time of a disk's I/O.
    pub(super) fn with_room_for(count: u32) -> Links {
        Links(Vec::with_capacity(count as usize))
    }

    /// Makes links for so many more indices, all of them in no list; whether there are `count` now.
    pub(super) fn grow(&mut self, more: u32, count: u32) -> bool {
        let unlinked = Link {
            older: UNLINKED,
            newer: UNLINKED,
        };
        let len = self.0.len().saturating_add(more as usize);
        self.0.resize(len.min(count as usize), unlinked);
        self.0.len() == count as usize
    }

    /// Whether the index is in a list.
    pub fn is_linked(&self, index: u32) -> bool {
        self.0[index as usize].older != UNLINKED
    }

    /// The member that came next after this one.
    pub fn newer(&self, index: u32) -> Option<u32> {
        some(self.0[index as usize].newer)
    }

    /// Something of an index's links, and of those of its neighbours.
    pub(super) fn peek(&self, index: u32) -> u32 {
        let Link { older, newer } = self.0[index as usize];
        let of = |index: u32| self.0.get(index as usize).map_or(0, |link| link.older);
        of(older) ^ of(newer)
    }

    fn at(&mut self, index: u32) -> &mut Link {
        &mut self.0[index as usize]
    }
}

/// One list; every method must be given the same [`Links`].
#[derive(Clone, Copy)]
pub struct List {
    front: u32,
    back: u32,
    len: u32,
}

impl List {
    /// A list of nothing.
    pub const EMPTY: List = List {
        front: NONE,
        back: NONE,
        len: 0,
    };

    /// Number of members.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether it has no member.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The oldest member.
    pub fn front(&self) -> Option<u32> {
        some(self.front)
    }

    /// Makes an index that is in no list the newest member.
    pub fn push_back(&mut self, links: &mut Links, index: u32) {
        self.link(links, self.back, index, NONE);
    }

    /// Makes an index that is in no list the oldest member.
    pub fn push_front(&mut self, links: &mut Links, index: u32) {
        self.link(links, NONE, index, self.front);
    }

    /// Puts an index that is in no list just before `newer`, a member of this one.
    pub fn insert_before(&mut self, links: &mut Links, newer: u32, index: u32) {
        let older = links.at(newer).older;
        self.link(links, older, index, newer);
    }

    /// Takes a member out.
    pub fn remove(&mut self, links: &mut Links, index: u32) {
        let Link { older, newer } = *links.at(index);
        match older {
            NONE => self.front = newer,
            older => links.at(older).newer = newer,
        }
        match newer {
            NONE => self.back = older,
            newer => links.at(newer).older = older,
        }
        links.at(index).older = UNLINKED;
        self.len -= 1;
    }

    /// Takes the oldest member out.
    pub fn pop_front(&mut self, links: &mut Links) -> Option<u32> {
        let oldest = self.front()?;
        self.remove(links, oldest);
        Some(oldest)
    }

    /// Makes a member the newest.
    pub fn move_to_back(&mut self, links: &mut Links, index: u32) {
        self.remove(links, index);
        self.push_back(links, index);
    }

    /// The members from the newest to the oldest.
    pub fn iter_from_back<'a>(&self, links: &'a Links) -> impl Iterator<Item = u32> + use<'a> {
        std::iter::successors(some(self.back), |&at| some(links.0[at as usize].older))
    }

    /// The members from the oldest to the newest.
    pub fn iter<'a>(&self, links: &'a Links) -> impl Iterator<Item = u32> + use<'a> {
        std::iter::successors(some(self.front), |&at| links.newer(at))
    }

    fn link(&mut self, links: &mut Links, older: u32, index: u32, newer: u32) {
        debug_assert!(!links.is_linked(index), "{index} is in a list already");
        *links.at(index) = Link { older, newer };
        match older {
            NONE => self.front = index,
            older => links.at(older).newer = index,
        }
        match newer {
            NONE => self.back = index,
            newer => links.at(newer).older = index,
        }
        self.len += 1;
    }
}

fn some(index: u32) -> Option<u32> {
    (index != NONE).then_some(index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn a_list_behaves_like_a_deque(steps in prop::collection::vec((0..5u8, 0..8u32), 0..200)) {
            let mut links = Links::new(8);
            let mut list = List::EMPTY;
            let mut deque: VecDeque<u32> = VecDeque::new();
            for (step, index) in steps {
                let position = deque.iter().position(|&member| member == index);
                match (step, position) {
                    (0, None) => { list.push_back(&mut links, index); deque.push_back(index); }
                    (1, None) => { list.push_front(&mut links, index); deque.push_front(index); }
                    (2, None) if !deque.is_empty() => {
                        let at = index as usize % deque.len();
                        list.insert_before(&mut links, deque[at], index);
                        deque.insert(at, index);
                    }
                    (3, Some(at)) => { list.remove(&mut links, index); deque.remove(at); }
                    (4, Some(at)) => {
                        list.move_to_back(&mut links, index);
                        deque.remove(at);
                        deque.push_back(index);
                    }
                    (_, Some(_)) => {
                        prop_assert_eq!(list.pop_front(&mut links), deque.pop_front());
                    }
                    _ => {}
                }
                prop_assert!(list.iter(&links).eq(deque.iter().copied()));
                prop_assert!(list.iter_from_back(&links).eq(deque.iter().rev().copied()));
                prop_assert_eq!(list.len() as usize, deque.len());
                prop_assert_eq!(links.is_linked(index), deque.contains(&index));
            }
        }
    }
}
