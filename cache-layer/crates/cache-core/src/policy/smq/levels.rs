//! The stochastic multi-queue itself: 64 lists, in which members rise as they are used.
//!
//! A member that rises changes places with the oldest of the level above, and a periodic
//! redistribution gives every level its share, so the levels become a ranking without a sort.

use crate::policy::list::{Links, List, NONE};

/// Number of levels of every queue: the kernel's `NR_CACHE_LEVELS` and `NR_HOTSPOT_LEVELS`.
pub(super) const LEVELS: usize = 64;

/// Sentinels per level of a queue that has them.
const SENTINELS: usize = 2;

/// What the queues over one range of indices share: links and levels.
pub(super) struct Members {
    links: Links,
    levels: Vec<u8>,
    /// Indices from here on are sentinels.
    sentinels_from: u32,
}

impl Members {
    /// Members 0 up to `count`, in no queue, and room for the sentinels of one queue.
    pub fn new(count: u32) -> Members {
        let sentinels = (0..LEVELS * SENTINELS).map(|index| (index / SENTINELS) as u8);
        Members {
            links: Links::new(count + (LEVELS * SENTINELS) as u32),
            levels: vec![0; count as usize]
                .into_iter()
                .chain(sentinels)
                .collect(),
            sentinels_from: count,
        }
    }

    /// The level a member is at, or was at when it last was in a queue.
    pub fn level(&self, member: u32) -> u8 {
        self.levels[member as usize]
    }

    /// Sets the level of a member that is in no queue.
    pub fn set_level(&mut self, member: u32, level: u8) {
        self.levels[member as usize] = level;
    }

    fn is_sentinel(&self, index: u32) -> bool {
        index >= self.sentinels_from
    }

    fn sentinel(&self, level: usize, which: usize) -> u32 {
        self.sentinels_from + (level * SENTINELS + which) as u32
    }
}

/// One queue; every method must be given the same [`Members`].
pub(super) struct Queue {
    lists: [List; LEVELS],
    /// Number of members, sentinels not counted.
    len: u32,
    /// Number of levels at the top that share [`Queue::in_top_levels`] members.
    top_levels: usize,
    in_top_levels: u32,
    /// Which of the two sentinels of each level marks the more recent time; none: no sentinels.
    recent: Option<usize>,
}

impl Queue {
    /// An empty queue whose levels should all hold the same number of members.
    pub fn even() -> Queue {
        Queue::with_top(0, 0)
    }

    /// An empty queue whose `top_levels` should hold `in_top_levels` members between them.
    pub fn with_top(top_levels: usize, in_top_levels: u32) -> Queue {
        Queue {
            lists: [List::EMPTY; LEVELS],
            len: 0,
            top_levels,
            in_top_levels,
            recent: None,
        }
    }

    /// An even queue with two sentinels in every level (`sentinels_init`), which
    /// [`Queue::age`] moves; only one queue of its members can have them.
    pub fn with_sentinels(members: &mut Members) -> Queue {
        let mut queue = Queue::even();
        queue.recent = Some(1);
        for level in 0..LEVELS {
            for which in 0..SENTINELS {
                let sentinel = members.sentinel(level, which);
                queue.lists[level].push_back(&mut members.links, sentinel);
            }
        }
        queue
    }

    /// Number of members (`q_size`).
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Makes it the newest of its level (`q_push`).
    pub fn push(&mut self, members: &mut Members, member: u32) {
        self.list(members, member)
            .push_back(&mut members.links, member);
        self.len += 1;
    }

    /// Makes it the oldest of its level (`q_push_front`).
    pub fn push_front(&mut self, members: &mut Members, member: u32) {
        self.list(members, member)
            .push_front(&mut members.links, member);
        self.len += 1;
    }

    /// Takes it out (`q_del`).
    pub fn remove(&mut self, members: &mut Members, member: u32) {
        self.list(members, member)
            .remove(&mut members.links, member);
        self.len -= 1;
    }

    /// The oldest member of the lowest of the first `levels` that has one (`q_peek`).
    ///
    /// `aged`: only of those that are older than both sentinels.
    pub fn peek(&self, members: &Members, levels: usize, aged: bool) -> Option<u32> {
        self.lists[..levels].iter().find_map(|list| {
            let mut oldest = list.iter(&members.links);
            if aged {
                oldest.next().filter(|&index| !members.is_sentinel(index))
            } else {
                oldest.find(|&index| !members.is_sentinel(index))
            }
        })
    }

    /// Moves a member up and to the end of its new level; the oldest there takes its place
    /// (`q_requeue`).
    pub fn requeue(&mut self, members: &mut Members, member: u32, up: u8) {
        let level = members.level(member);
        let new_level = (level + up).min(LEVELS as u8 - 1);
        if new_level > level {
            self.swap_down(members, usize::from(new_level), level);
        }
        self.remove(members, member);
        members.set_level(member, new_level);
        self.push(members, member);
    }

    /// Moves the oldest member of a level down, to where its age puts it among the sentinels.
    fn swap_down(&mut self, members: &mut Members, from: usize, to: u8) {
        let mut passed = 0;
        let oldest = self.lists[from].iter(&members.links).find(|&index| {
            let sentinel = members.is_sentinel(index);
            passed += usize::from(sentinel);
            !sentinel
        });
        let Some(oldest) = oldest else { return };
        self.remove(members, oldest);
        members.set_level(oldest, to);
        match self.recent {
            Some(recent) if passed < SENTINELS => {
                let which = if passed == 0 { 1 - recent } else { recent };
                let sentinel = members.sentinel(usize::from(to), which);
                self.lists[usize::from(to)].insert_before(&mut members.links, sentinel, oldest);
                self.len += 1;
            }
            _ => self.push(members, oldest),
        }
    }

    /// A period is over: what the more recent sentinels mark is a period older, and the others
    /// mark the present (`update_sentinels`).
    pub fn age(&mut self, members: &mut Members) {
        let Some(recent) = self.recent.as_mut() else {
            return;
        };
        *recent = 1 - *recent;
        for level in 0..LEVELS {
            let sentinel = members.sentinel(level, *recent);
            self.lists[level].move_to_back(&mut members.links, sentinel);
        }
    }

    /// Gives every level the number of members it should have (`q_redistribute`): from the bottom
    /// up, a level with too few takes the oldest from above, one with too many passes on its
    /// newest.
    pub fn redistribute(&mut self, members: &mut Members) {
        let targets = self.targets();
        for (level, &target) in targets.iter().enumerate().take(LEVELS - 1) {
            while self.population(level) < target {
                let above = self.lists[level + 1..].iter();
                let Some(oldest) = above
                    .flat_map(|list| list.iter(&members.links))
                    .find(|&index| !members.is_sentinel(index))
                else {
                    break;
                };
                self.relevel(members, oldest, level);
            }
            while self.population(level) > target {
                let newest = self.lists[level]
                    .iter_from_back(&members.links)
                    .find(|&index| !members.is_sentinel(index))
                    .expect("the level has members");
                self.relevel(members, newest, level + 1);
            }
        }
    }

    fn relevel(&mut self, members: &mut Members, member: u32, level: usize) {
        self.remove(members, member);
        members.set_level(member, level as u8);
        self.push(members, member);
    }

    /// How many members each level should have (`q_set_targets`).
    fn targets(&self) -> [u32; LEVELS] {
        let mut targets = [0; LEVELS];
        let (bottom, top) = targets.split_at_mut(LEVELS - self.top_levels);
        spread(self.in_top_levels, top);
        spread(self.len.saturating_sub(self.in_top_levels), bottom);
        targets
    }

    fn population(&self, level: usize) -> u32 {
        let sentinels = if self.recent.is_some() { SENTINELS } else { 0 };
        self.lists[level].len() - sentinels as u32
    }

    fn list(&mut self, members: &Members, member: u32) -> &mut List {
        debug_assert!(member != NONE && !members.is_sentinel(member));
        &mut self.lists[usize::from(members.level(member))]
    }
}

/// Even shares; the first levels get the remainder.
fn spread(members: u32, levels: &mut [u32]) {
    let count = levels.len() as u32;
    for (level, target) in (0..).zip(levels) {
        *target = members / count + u32::from(level < members % count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(queue: &Queue, members: &Members, level: usize) -> Vec<u32> {
        queue.lists[level].iter(&members.links).collect()
    }

    #[test]
    fn a_member_that_rises_changes_places_with_the_oldest_above() {
        let mut members = Members::new(4);
        let mut queue = Queue::even();
        for (member, level) in [(0, 5), (1, 5), (2, 6), (3, 6)] {
            members.set_level(member, level);
            queue.push(&mut members, member);
        }
        queue.requeue(&mut members, 0, 1);
        assert_eq!(order(&queue, &members, 5), [1, 2]);
        assert_eq!(order(&queue, &members, 6), [3, 0]);
        queue.requeue(&mut members, 3, 0);
        assert_eq!(order(&queue, &members, 6), [0, 3], "only renewed");
        queue.requeue(&mut members, 3, 100);
        assert_eq!(members.level(3), 63);
        assert_eq!(queue.len(), 4);
    }

    #[test]
    fn redistribution_fills_the_levels_evenly_and_keeps_the_ranking() {
        let mut members = Members::new(130);
        let mut queue = Queue::even();
        for member in 0..130 {
            members.set_level(member, 63);
            queue.push(&mut members, member);
        }
        queue.redistribute(&mut members);
        assert_eq!(order(&queue, &members, 0), [0, 1, 2]);
        assert_eq!(order(&queue, &members, 1), [3, 4, 5]);
        assert_eq!(order(&queue, &members, 2), [6, 7]);
        assert_eq!(order(&queue, &members, 63), [128, 129]);
    }

    #[test]
    fn top_levels_are_kept_small() {
        let mut members = Members::new(200);
        let mut queue = Queue::with_top(8, 16);
        for member in 0..200 {
            queue.push(&mut members, member);
        }
        queue.redistribute(&mut members);
        let population: Vec<u32> = (0..LEVELS).map(|level| queue.population(level)).collect();
        assert_eq!(population[56..], [2; 8]);
        assert_eq!(population[..56].iter().sum::<u32>(), 184);
        assert!(
            population[..56]
                .iter()
                .all(|&count| count == 3 || count == 4)
        );
    }

    #[test]
    fn members_are_aged_after_two_periods() {
        let mut members = Members::new(2);
        let mut queue = Queue::with_sentinels(&mut members);
        queue.push(&mut members, 0);
        queue.age(&mut members);
        assert_eq!(queue.peek(&members, LEVELS, true), None);
        assert_eq!(queue.peek(&members, LEVELS, false), Some(0));
        queue.push(&mut members, 1);
        queue.age(&mut members);
        assert_eq!(queue.peek(&members, LEVELS, true), Some(0));
        // One that a riser pushes down keeps its age.
        queue.remove(&mut members, 0);
        members.set_level(0, 1);
        queue.push_front(&mut members, 0);
        queue.requeue(&mut members, 1, 1);
        assert_eq!((members.level(0), members.level(1)), (0, 1));
        assert_eq!(queue.peek(&members, LEVELS, true), Some(0));
    }
}
