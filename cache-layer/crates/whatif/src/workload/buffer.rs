//! The database's own cache, which the disk never hears of: PostgreSQL's shared buffers.
//!
//! A clock passes over the buffers and takes the first that nobody uses and that was not used lately:
//! `StrategyGetBuffer`, src/backend/storage/buffer/freelist.c. A checkpoint writes what is dirty when
//! it begins, in the order of the files, spread over its time: `BufferSync`, bufmgr.c.

use super::Page;

/// How far uses are counted (`BM_MAX_USAGE_COUNT`).
const MOST_USES: u8 = 5;

#[derive(Clone, Copy)]
struct Frame {
    page: Page,
    uses: u8,
    dirty: bool,
}

/// What the disk is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Io {
    pub(super) page: Page,
    pub(super) write: bool,
}

pub(super) struct Buffer {
    frames: Vec<Frame>,
    most: usize,
    /// By page: its frame plus 1, or 0.
    places: Vec<u32>,
    hand: usize,
}

impl Buffer {
    pub(super) fn new(frames: usize) -> Buffer {
        Buffer {
            frames: Vec::new(),
            most: frames.max(1),
            places: Vec::new(),
            hand: 0,
        }
    }

    /// A page that exists is used.
    pub(super) fn touch(&mut self, page: Page, write: bool, ios: &mut Vec<Io>) {
        self.touched(page, write, true, ios);
    }

    /// A page at the end of a file comes to be: there is nothing to read.
    pub(super) fn create(&mut self, page: Page, ios: &mut Vec<Io>) {
        self.touched(page, true, false, ios);
    }

    fn touched(&mut self, page: Page, write: bool, exists: bool, ios: &mut Vec<Io>) {
        if page as usize >= self.places.len() {
            let len = (page as usize + 1).next_multiple_of(1 << 16);
            self.places.resize(len, 0);
        }
        if let Some(at) = self.places[page as usize].checked_sub(1) {
            let frame = &mut self.frames[at as usize];
            frame.uses = (frame.uses + 1).min(MOST_USES);
            frame.dirty |= write;
            return;
        }
        let frame = Frame {
            page,
            uses: 1,
            dirty: write,
        };
        let at = if self.frames.len() < self.most {
            self.frames.push(frame);
            self.frames.len() - 1
        } else {
            let at = self.victim(ios);
            self.frames[at] = frame;
            at
        };
        self.places[page as usize] = at as u32 + 1;
        if exists {
            ios.push(Io { page, write: false });
        }
    }

    fn victim(&mut self, ios: &mut Vec<Io>) -> usize {
        loop {
            let at = self.hand;
            self.hand = (at + 1) % self.frames.len();
            let frame = &mut self.frames[at];
            if frame.uses > 0 {
                frame.uses -= 1;
                continue;
            }
            self.places[frame.page as usize] = 0;
            if frame.dirty {
                ios.push(Io {
                    page: frame.page,
                    write: true,
                });
            }
            return at;
        }
    }

    /// The pages that a checkpoint has to write, in order.
    pub(super) fn dirty(&self) -> Vec<Page> {
        let dirty = self.frames.iter().filter(|frame| frame.dirty);
        let mut pages: Vec<Page> = dirty.map(|frame| frame.page).collect();
        pages.sort_unstable();
        pages
    }

    /// A checkpoint writes a page, if nobody has before.
    pub(super) fn clean(&mut self, page: Page, ios: &mut Vec<Io>) {
        let Some(at) = self.places[page as usize].checked_sub(1) else {
            return;
        };
        let frame = &mut self.frames[at as usize];
        if std::mem::replace(&mut frame.dirty, false) {
            ios.push(Io { page, write: true });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_what_is_dirty_is_written_when_it_goes() {
        let mut buffer = Buffer::new(2);
        let mut ios = Vec::new();
        buffer.touch(1, true, &mut ios);
        buffer.touch(2, false, &mut ios);
        (0..3).for_each(|_| buffer.touch(2, false, &mut ios));
        ios.clear();
        buffer.touch(3, false, &mut ios);
        let io = |page, write| Io { page, write };
        assert_eq!(ios, [io(1, true), io(3, false)]);
        ios.clear();
        buffer.touch(2, false, &mut ios);
        assert_eq!(ios, []);
        buffer.create(9, &mut ios);
        assert_eq!(ios, [], "neither read nor, as 3 was clean, written");
        assert_eq!(buffer.dirty(), [9]);
        buffer.clean(9, &mut ios);
        buffer.clean(9, &mut ios);
        assert_eq!(ios, [io(9, true)]);
    }
}
