//! Rows whose content is in memory: md's stripe cache.
//!
//! It is what makes a stream of writes that are no whole stripes cheap: the write that completes a
//! row finds the row's beginning here.

use std::ops::Range;

use super::plan::Known;

/// The rows, by most recent use.
#[derive(Debug)]
pub(super) struct RowCache {
    rows_max: usize,
    rows: Vec<(u64, Known)>,
}

impl RowCache {
    pub(super) fn new(rows_max: usize) -> RowCache {
        RowCache {
            rows_max,
            rows: Vec::new(),
        }
    }

    /// What is known of a row.
    pub(super) fn known(&self, row: u64) -> Known {
        let entry = self.rows.iter().rev().find(|(number, _)| *number == row);
        entry.map_or(Known::default(), |(_, known)| *known)
    }

    /// A range of the row has been written, and with it the parity.
    pub(super) fn written(&mut self, row: u64, from: u64, to: u64) {
        if self.rows_max == 0 {
            return;
        }
        let mut known = Known {
            from,
            to,
            parity: true,
        };
        if let Some(index) = self.rows.iter().position(|(number, _)| *number == row) {
            let (_, before) = self.rows.remove(index);
            let meets = before.from <= to && from <= before.to;
            if meets {
                known.from = known.from.min(before.from);
                known.to = known.to.max(before.to);
            }
        } else if self.rows.len() == self.rows_max {
            self.rows.remove(0);
        }
        self.rows.push((row, known));
    }

    /// Nobody knows what is in these rows now.
    pub(super) fn forget(&mut self, rows: &Range<u64>) {
        self.rows.retain(|(number, _)| !rows.contains(number));
    }

    /// Forgets everything: the members have changed.
    pub(super) fn clear(&mut self) {
        self.rows.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_writes_make_one_known_range() {
        let mut cache = RowCache::new(2);
        cache.written(7, 0, 10);
        cache.written(7, 10, 20);
        let all = Known {
            from: 0,
            to: 20,
            parity: true,
        };
        assert_eq!(cache.known(7), all);
        cache.written(7, 50, 60);
        assert_eq!(cache.known(7).from, 50, "a gap is not known");
    }

    #[test]
    fn the_least_recently_written_row_goes_first() {
        let mut cache = RowCache::new(2);
        for row in [1, 2, 1, 3] {
            cache.written(row, 0, 10);
        }
        assert_eq!(cache.known(2), Known::default());
        assert!(cache.known(1).parity && cache.known(3).parity);
    }
}
