//! W-TinyLFU: Einziger, Friedman, Manes, "TinyLFU: a highly efficient cache admission policy", ACM
//! Transactions on Storage 13(4), 2017: a window of one slot in a hundred, behind it a segmented LRU
//! of which 80 % are protected, and between them a count of touches that ages: who leaves the window
//! gets a place behind it only if it was touched more often than who would have to go.

use cache_core::policy::list::{Links, List};
use cache_core::policy::{Block, Textbook, Touch};

const ROWS: usize = 4;
const MOST: u8 = 15;
/// Touches for each slot after which all counts are halved.
const SAMPLE: u64 = 10;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Segment {
    None,
    Window,
    Probation,
    Protected,
}

/// W-TinyLFU.
pub struct TinyLfu {
    links: Links,
    segments: Vec<Segment>,
    window: List,
    probation: List,
    protected: List,
    window_most: u32,
    main_most: u32,
    protected_most: u32,
    sketch: Sketch,
}

impl TinyLfu {
    fn push(&mut self, block: Block, segment: Segment) {
        self.segments[block as usize] = segment;
        let list = match segment {
            Segment::Probation => &mut self.probation,
            Segment::Protected => &mut self.protected,
            Segment::Window | Segment::None => &mut self.window,
        };
        list.push_back(&mut self.links, block);
    }

    /// Who was on probation is touched again.
    fn protect(&mut self, block: Block) {
        self.probation.remove(&mut self.links, block);
        self.push(block, Segment::Protected);
        let over = self.protected.len() > self.protected_most;
        if let Some(oldest) = over
            .then(|| self.protected.pop_front(&mut self.links))
            .flatten()
        {
            self.push(oldest, Segment::Probation);
        }
    }

    /// The window has one too many: who has to go?
    fn leave_window(&mut self) -> Option<Block> {
        let candidate = self.window.pop_front(&mut self.links)?;
        self.segments[candidate as usize] = Segment::None;
        if self.probation.len() + self.protected.len() < self.main_most {
            self.push(candidate, Segment::Probation);
            return None;
        }
        let on_probation = self.probation.front();
        let Some(victim) = on_probation.or(self.protected.front()) else {
            return Some(candidate);
        };
        if self.sketch.count(candidate) <= self.sketch.count(victim) {
            return Some(candidate);
        }
        match on_probation {
            Some(_) => self.probation.pop_front(&mut self.links),
            None => self.protected.pop_front(&mut self.links),
        };
        self.segments[victim as usize] = Segment::None;
        self.push(candidate, Segment::Probation);
        Some(victim)
    }
}

impl TinyLfu {
    /// An empty cache of at least one slot, for blocks below `origin_blocks`.
    pub fn new(origin_blocks: u32, slots: u32) -> TinyLfu {
        let window_most = (slots / 100).max(1);
        let main_most = slots - window_most;
        TinyLfu {
            links: Links::new(origin_blocks),
            segments: vec![Segment::None; origin_blocks as usize],
            window: List::EMPTY,
            probation: List::EMPTY,
            protected: List::EMPTY,
            window_most,
            main_most,
            protected_most: (u64::from(main_most) * 8 / 10) as u32,
            sketch: Sketch::new(slots),
        }
    }
}

impl Textbook for TinyLfu {
    fn touch(&mut self, block: Block) -> Touch {
        self.sketch.add(block);
        match self.segments[block as usize] {
            Segment::Window => self.window.move_to_back(&mut self.links, block),
            Segment::Probation => self.protect(block),
            Segment::Protected => self.protected.move_to_back(&mut self.links, block),
            Segment::None => {
                self.push(block, Segment::Window);
                let over = self.window.len() > self.window_most;
                let left = over.then(|| self.leave_window()).flatten();
                return Touch::came(left);
            }
        }
        Touch::HIT
    }
}

/// How often blocks were touched lately, at most 15 times; never too few (Cormode, Muthukrishnan,
/// "An improved data stream summary: the count-min sketch", 2005).
struct Sketch {
    counters: Vec<[u8; ROWS]>,
    touches: u64,
    sample: u64,
}

impl Sketch {
    fn new(slots: u32) -> Sketch {
        let width = (slots as usize * 4).next_power_of_two().max(16);
        Sketch {
            counters: vec![[0; ROWS]; width],
            touches: 0,
            sample: SAMPLE * u64::from(slots),
        }
    }

    fn places(&self, block: Block) -> [usize; ROWS] {
        let mut hash = u64::from(block).wrapping_add(1);
        [0; ROWS].map(|_: u8| {
            hash = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (hash >> 32) as usize & (self.counters.len() - 1)
        })
    }

    fn count(&self, block: Block) -> u8 {
        let places = self.places(block).into_iter().enumerate();
        let counts = places.map(|(row, place)| self.counters[place][row]);
        counts.min().unwrap_or(0)
    }

    fn add(&mut self, block: Block) {
        for (row, place) in self.places(block).into_iter().enumerate() {
            let counter = &mut self.counters[place][row];
            *counter = (*counter + 1).min(MOST);
        }
        self.touches += 1;
        if self.touches >= self.sample {
            self.touches /= 2;
            self.counters.iter_mut().flatten().for_each(|one| *one /= 2);
        }
    }
}
