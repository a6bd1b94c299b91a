//! What TPC-C asks of a disk: the five transactions (TPC-C 5.11, clause 2), their rows by the laws
//! that the specification draws them by, on the pages of a PostgreSQL that keeps them as a loader
//! leaves them, warehouse by warehouse, through the database's own cache ([`super::buffer`]).
//!
//! What is modelled: rows of the sizes of clause 1.3 and PostgreSQL's overhead on pages of 8 KiB;
//! the leaves of the indexes (their inner pages are always cached); tables that grow at their ends, in
//! extents of a megabyte behind all else; indexes that grow at the end of each district; checkpoints.
//! Left out: the log (it has a disk of its own), vacuum, transactions that roll back, and waiting:
//! transactions begin as if users were many, at the rate that is given.

use virtual_time::{NANOS_PER_S, Nanos};

use super::buffer::{Buffer, Io};
use super::dice::Dice;
use super::{PAGE, Page};
use crate::trace::{About, Request, Trace};

const DISTRICTS: u64 = 10;
const CUSTOMERS: u64 = 3000;
const ITEMS: u64 = 100_000;
/// Orders of a district after the load, and the first that is not delivered (clause 4.3.3.1).
const ORDERS: u64 = 3000;
const FIRST_NEW: u64 = 2100;
const LINES: u64 = 10;
const EXTENT_PAGES: u32 = 128;
/// At the disk's end: for tables' last extents, and for more than one transaction adds.
const SPARE_PAGES: Page = 16 * EXTENT_PAGES;
/// Requests of a transaction come so far apart.
const STEP: Nanos = 1000;
/// A checkpoint spreads its writes over this part of its time (`checkpoint_completion_target`).
const CHECKPOINT_PART: f64 = 0.9;

/// Rows on a page: 8168 bytes by what a row takes with its header, its pointer and alignment.
const CUSTOMERS_A_PAGE: u64 = 13;
const STOCKS_A_PAGE: u64 = 24;
const ITEMS_A_PAGE: u64 = 74;
const ORDERS_A_PAGE: u64 = 130;
const LINES_A_PAGE: u64 = 87;
const NEW_ORDERS_A_PAGE: u64 = 204;
const HISTORY_A_PAGE: u64 = 107;
/// Entries of an index's leaf: after a load 90 % full, where rows come at the end as full.
const KEYS_A_LEAF: u64 = 300;
const NAMES_A_LEAF: u64 = 170;

/// What is generated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// Its scale: some 100 MB each.
    pub warehouses: u32,
    /// The database's own cache.
    pub buffer_bytes: u64,
    /// Transactions of all kinds in a second.
    pub per_second: f64,
    /// How long it goes on.
    pub seconds: f64,
    /// Between the beginnings of two checkpoints.
    pub checkpoint_s: f64,
    /// Of the random numbers.
    pub seed: u64,
}

/// The largest scale: pages have 32-bit numbers.
pub const WAREHOUSES_MOST: u32 = 100_000;

impl Load {
    /// The requests, as they are drawn.
    pub fn trace(self) -> Trace {
        let about = About {
            timed: true,
            requests: None,
            end: Some(u64::from(self.disk_pages()) * PAGE),
            lasts: Some((self.seconds * NANOS_PER_S) as Nanos),
        };
        Trace::new(about, Generator::new(self).map(Ok))
    }

    /// The size of the disk: the tables, and room for what may come. Beyond it nothing is drawn.
    fn disk_pages(&self) -> Page {
        let transactions = self.per_second * self.seconds;
        // Ten times their deviation above the mean of what comes by chance: it never does.
        let most = |mean: f64| (mean + 10.0 * mean.sqrt() + 100.0) as u64;
        let (orders, payments) = (most(0.45 * transactions), most(0.43 * transactions));
        let lines = orders * LINES;
        let districts = u64::from(self.warehouses) * DISTRICTS;
        let grown = [
            (orders, ORDERS_A_PAGE),
            (orders, NEW_ORDERS_A_PAGE),
            (lines, LINES_A_PAGE),
            (payments, HISTORY_A_PAGE),
        ];
        let tails: u64 = grown.map(|(rows, a_page)| rows / a_page).iter().sum();
        let leaves = 2 * districts.min(orders) + (orders + lines) / KEYS_A_LEAF;
        let (_, tables) = Tables::new(self.warehouses);
        let pages = u64::from(tables) + tails + leaves + u64::from(SPARE_PAGES);
        pages.min(u64::from(Page::MAX)) as Page
    }
}

/// A part of the disk with pages for each warehouse.
#[derive(Clone, Copy)]
struct Table {
    first: Page,
    /// Of one warehouse.
    pages: u32,
}

impl Table {
    fn page(self, warehouse: u64, row: u64, a_page: u64) -> Page {
        self.first + warehouse as u32 * self.pages + (row / a_page) as u32
    }
}

/// Pages that come to be at the end of the disk.
struct End {
    next: Page,
}

/// A table that grows: what is new lies in extents of its own.
#[derive(Default)]
struct Tail {
    extents: Vec<Page>,
    rows: u64,
}

impl Tail {
    fn page(&self, row: u64, a_page: u64) -> Page {
        let page = row / a_page;
        self.extents[(page / u64::from(EXTENT_PAGES)) as usize]
            + (page % u64::from(EXTENT_PAGES)) as u32
    }

    /// A row more: its page, and whether that is new.
    fn add(&mut self, a_page: u64, end: &mut End) -> (Page, bool) {
        let page = self.rows / a_page;
        if page as usize >= self.extents.len() * EXTENT_PAGES as usize {
            self.extents.push(end.next);
            end.next += EXTENT_PAGES;
        }
        let is_new = self.rows % a_page == 0;
        self.rows += 1;
        (self.page(self.rows - 1, a_page), is_new)
    }
}

/// Leaves of an index that came to be at the end of a district's range.
#[derive(Default)]
struct Leaves(Vec<Page>);

/// A district's orders since the load.
#[derive(Default)]
struct District {
    /// By order: the rows in the tails where it and its first line are, and how many lines.
    orders: Vec<(u32, u32, u8)>,
    /// The number of the oldest that is not delivered.
    oldest: u64,
    line_leaves: Leaves,
    order_leaves: Leaves,
}

struct Tables {
    warehouse: Table,
    district: Table,
    customer: Table,
    customer_key: Table,
    customer_name: Table,
    stock: Table,
    stock_key: Table,
    item: Table,
    item_key: Table,
    orders: Table,
    orders_key: Table,
    lines: Table,
    lines_key: Table,
    new_orders: Table,
}

impl Tables {
    /// Laid out one behind the other, and where the next page would be.
    fn new(warehouses: u32) -> (Tables, Page) {
        let mut next = 0;
        let mut table = |rows: u64, a_page: u64, shared: bool| {
            let pages = rows.div_ceil(a_page) as u32;
            let first = next;
            next += pages * if shared { 1 } else { warehouses };
            Table { first, pages }
        };
        let orders = ORDERS * DISTRICTS;
        let tables = Tables {
            warehouse: table(1, 1, false),
            district: table(DISTRICTS, DISTRICTS, false),
            customer: table(CUSTOMERS * DISTRICTS, CUSTOMERS_A_PAGE, false),
            customer_key: table(CUSTOMERS * DISTRICTS, KEYS_A_LEAF, false),
            customer_name: table(CUSTOMERS * DISTRICTS, NAMES_A_LEAF, false),
            stock: table(ITEMS, STOCKS_A_PAGE, false),
            stock_key: table(ITEMS, KEYS_A_LEAF, false),
            item: table(ITEMS, ITEMS_A_PAGE, true),
            item_key: table(ITEMS, KEYS_A_LEAF, true),
            orders: table(orders, ORDERS_A_PAGE, false),
            orders_key: table(orders, KEYS_A_LEAF, false),
            lines: table(orders * LINES, LINES_A_PAGE, false),
            lines_key: table(orders * LINES, KEYS_A_LEAF, false),
            new_orders: table((ORDERS - FIRST_NEW) * DISTRICTS, NEW_ORDERS_A_PAGE, false),
        };
        (tables, next)
    }
}

/// A district of a warehouse, both from 0.
#[derive(Clone, Copy)]
struct Where {
    warehouse: u64,
    district: u64,
}

impl Where {
    /// A row of the district's, where each district has so many.
    fn row(self, row: u64, a_district: u64) -> u64 {
        self.district * a_district + row
    }
}

/// Draws transactions and hands out what they ask of the disk.
struct Generator {
    load: Load,
    dice: Dice,
    buffer: Buffer,
    tables: Tables,
    end: End,
    disk_pages: Page,
    order_tail: Tail,
    line_tail: Tail,
    new_order_tail: Tail,
    history_tail: Tail,
    districts: Vec<District>,
    /// When the next transaction begins, seconds.
    next_s: f64,
    now: Nanos,
    checkpoint: Checkpoint,
    ios: Vec<Io>,
    handed: usize,
}

#[derive(Default)]
struct Checkpoint {
    begun_s: f64,
    pages: Vec<Page>,
    written: usize,
}

impl Generator {
    fn new(load: Load) -> Generator {
        let (tables, next) = Tables::new(load.warehouses);
        let district = || District {
            oldest: FIRST_NEW,
            ..District::default()
        };
        Generator {
            load,
            dice: Dice::new(load.seed),
            buffer: Buffer::new((load.buffer_bytes / PAGE) as usize),
            tables,
            end: End { next },
            disk_pages: load.disk_pages(),
            order_tail: Tail::default(),
            line_tail: Tail::default(),
            new_order_tail: Tail::default(),
            history_tail: Tail::default(),
            districts: (0..u64::from(load.warehouses) * DISTRICTS)
                .map(|_| district())
                .collect(),
            next_s: 0.0,
            now: 0,
            checkpoint: Checkpoint::default(),
            ios: Vec::new(),
            handed: 0,
        }
    }

    /// The next transaction, with what a checkpoint writes meanwhile; false: the time is over, or the
    /// disk full.
    fn transact(&mut self) -> bool {
        self.next_s += self.dice.wait() / self.load.per_second;
        let is_full = self.disk_pages - self.end.next < SPARE_PAGES / 2;
        if self.next_s > self.load.seconds || is_full {
            return false;
        }
        self.now = self.now.max((self.next_s * NANOS_PER_S) as Nanos);
        self.write_checkpoint();
        let at = Where {
            warehouse: self.dice.below(u64::from(self.load.warehouses)),
            district: self.dice.below(DISTRICTS),
        };
        // The mix that drivers deal out: 45 % new orders, 43 % payments, 4 % of the others.
        match self.dice.below(100) {
            0..45 => self.new_order(at),
            45..88 => self.payment(at),
            88..92 => self.order_status(at),
            92..96 => self.delivery(at.warehouse),
            _ => self.stock_level(at),
        }
        true
    }

    fn write_checkpoint(&mut self) {
        let since = self.next_s - self.checkpoint.begun_s;
        if since > self.load.checkpoint_s {
            self.checkpoint = Checkpoint {
                begun_s: self.next_s,
                pages: self.buffer.dirty(),
                written: 0,
            };
            return;
        }
        let part = since / (self.load.checkpoint_s * CHECKPOINT_PART);
        let pages = &self.checkpoint.pages;
        let due = ((pages.len() as f64 * part) as usize).min(pages.len());
        for at in self.checkpoint.written.min(due)..due {
            self.buffer.clean(self.checkpoint.pages[at], &mut self.ios);
        }
        self.checkpoint.written = self.checkpoint.written.max(due);
    }

    fn touch(&mut self, page: Page, write: bool) {
        self.buffer.touch(page, write, &mut self.ios);
    }

    fn append(&mut self, (page, is_new): (Page, bool)) {
        match is_new {
            true => self.buffer.create(page, &mut self.ios),
            false => self.touch(page, true),
        }
    }

    /// The page of a customer, by number or by name: then of all with the name, the middle one
    /// counts (clause 2.5.2.2); names are dealt out over the customers, three to each.
    fn customer(&mut self, at: Where, write: bool) {
        let Where { warehouse, .. } = at;
        if !self.dice.percent(60) {
            let row = at.row(self.dice.customer(), CUSTOMERS);
            self.touch(
                self.tables.customer_key.page(warehouse, row, KEYS_A_LEAF),
                false,
            );
            self.touch(
                self.tables.customer.page(warehouse, row, CUSTOMERS_A_PAGE),
                write,
            );
            return;
        }
        let name = self.dice.name();
        let entry = at.row(name * CUSTOMERS / 1000, CUSTOMERS);
        self.touch(
            self.tables
                .customer_name
                .page(warehouse, entry, NAMES_A_LEAF),
            false,
        );
        for which in 0..CUSTOMERS / 1000 {
            let row = at.row(name + which * 1000, CUSTOMERS);
            let page = self.tables.customer.page(warehouse, row, CUSTOMERS_A_PAGE);
            self.touch(page, write && which == 1);
        }
    }

    fn district_at(&mut self, at: Where) -> &mut District {
        &mut self.districts[(at.warehouse * DISTRICTS + at.district) as usize]
    }

    fn warehouse_and_district(&mut self, at: Where, write: (bool, bool)) {
        self.touch(self.tables.warehouse.page(at.warehouse, 0, 1), write.0);
        let page = self
            .tables
            .district
            .page(at.warehouse, at.district, DISTRICTS);
        self.touch(page, write.1);
    }

    fn stock(&mut self, warehouse: u64, item: u64, write: bool) {
        self.touch(
            self.tables.stock_key.page(warehouse, item, KEYS_A_LEAF),
            false,
        );
        self.touch(
            self.tables.stock.page(warehouse, item, STOCKS_A_PAGE),
            write,
        );
    }

    /// Clause 2.4.
    fn new_order(&mut self, at: Where) {
        self.warehouse_and_district(at, (false, true));
        let row = at.row(self.dice.customer(), CUSTOMERS);
        self.touch(
            self.tables
                .customer_key
                .page(at.warehouse, row, KEYS_A_LEAF),
            false,
        );
        self.touch(
            self.tables
                .customer
                .page(at.warehouse, row, CUSTOMERS_A_PAGE),
            false,
        );
        let lines = 5 + self.dice.below(11);
        let rows = (self.order_tail.rows as u32, self.line_tail.rows as u32);
        self.district_at(at)
            .orders
            .push((rows.0, rows.1, lines as u8));
        let page = self.order_tail.add(ORDERS_A_PAGE, &mut self.end);
        self.append(page);
        let page = self.new_order_tail.add(NEW_ORDERS_A_PAGE, &mut self.end);
        self.append(page);
        self.touch_order_leaf(at);
        for _ in 0..lines {
            let item = self.dice.item();
            self.touch(self.tables.item_key.page(0, item, KEYS_A_LEAF), false);
            self.touch(self.tables.item.page(0, item, ITEMS_A_PAGE), false);
            let supplier = match self.dice.percent(1) {
                true => self.dice.below(u64::from(self.load.warehouses)),
                false => at.warehouse,
            };
            self.stock(supplier, item, true);
            let page = self.line_tail.add(LINES_A_PAGE, &mut self.end);
            self.append(page);
        }
        self.touch_line_leaf(at);
    }

    /// The last leaf of the district's orders, which may be a new one.
    fn touch_order_leaf(&mut self, at: Where) {
        let next = self.end.next;
        let district = self.district_at(at);
        let leaf = (district.orders.len() as u64 - 1) / KEYS_A_LEAF;
        grow(&mut district.order_leaves, leaf, next);
        let page = district.order_leaves.0[leaf as usize];
        self.touch_leaf(page);
    }

    fn touch_line_leaf(&mut self, at: Where) {
        let next = self.end.next;
        let district = self.district_at(at);
        let leaf = (district.orders.len() as u64 * LINES - 1) / KEYS_A_LEAF;
        grow(&mut district.line_leaves, leaf, next);
        let page = district.line_leaves.0[leaf as usize];
        self.touch_leaf(page);
    }

    fn touch_leaf(&mut self, page: Page) {
        let is_new = page == self.end.next;
        self.end.next += u32::from(is_new);
        self.append((page, is_new));
    }

    /// Clause 2.5.
    fn payment(&mut self, at: Where) {
        self.warehouse_and_district(at, (true, true));
        let home = !self.dice.percent(15);
        let of = Where {
            warehouse: match home {
                true => at.warehouse,
                false => self.dice.below(u64::from(self.load.warehouses)),
            },
            district: match home {
                true => at.district,
                false => self.dice.below(DISTRICTS),
            },
        };
        self.customer(of, true);
        let page = self.history_tail.add(HISTORY_A_PAGE, &mut self.end);
        self.append(page);
    }

    /// Clause 2.6: a customer's last order; who has made none since the load has one of its.
    fn order_status(&mut self, at: Where) {
        self.customer(at, false);
        let known = self.district_at(at).orders.len() as u64;
        let order = ORDERS + known - 1 - self.dice.below(ORDERS);
        self.order(at, order, false);
    }

    /// An order of a district, by its number from 0, and its lines.
    fn order(&mut self, at: Where, order: u64, write: bool) {
        if let Some(new) = order.checked_sub(ORDERS) {
            let (row, first, lines) = self.district_at(at).orders[new as usize];
            self.touch(self.order_tail.page(row.into(), ORDERS_A_PAGE), write);
            self.new_lines(first, lines, write);
            return;
        }
        let row = at.row(order, ORDERS);
        let Where { warehouse, .. } = at;
        self.touch(
            self.tables.orders_key.page(warehouse, row, KEYS_A_LEAF),
            false,
        );
        self.touch(
            self.tables.orders.page(warehouse, row, ORDERS_A_PAGE),
            write,
        );
        self.old_lines(at, order, write);
    }

    fn new_lines(&mut self, first: u32, lines: u8, write: bool) {
        let rows = u64::from(first)..u64::from(first) + u64::from(lines);
        let pages = [rows.start, rows.end - 1].map(|row| self.line_tail.page(row, LINES_A_PAGE));
        self.touch(pages[0], write);
        if pages[1] != pages[0] {
            self.touch(pages[1], write);
        }
    }

    fn old_lines(&mut self, at: Where, order: u64, write: bool) {
        let row = at.row(order, ORDERS) * LINES;
        let Where { warehouse, .. } = at;
        self.touch(
            self.tables.lines_key.page(warehouse, row, KEYS_A_LEAF),
            false,
        );
        let pages =
            [row, row + LINES - 1].map(|row| self.tables.lines.page(warehouse, row, LINES_A_PAGE));
        self.touch(pages[0], write);
        if pages[1] != pages[0] {
            self.touch(pages[1], write);
        }
    }

    /// Clause 2.7: the oldest order of each district.
    fn delivery(&mut self, warehouse: u64) {
        for district in 0..DISTRICTS {
            let at = Where {
                warehouse,
                district,
            };
            let place = self.district_at(at);
            let order = place.oldest;
            if order >= ORDERS + place.orders.len() as u64 {
                continue;
            }
            place.oldest += 1;
            let page = match order.checked_sub(ORDERS) {
                Some(new) => {
                    let (row, ..) = self.district_at(at).orders[new as usize];
                    self.new_order_tail.page(row.into(), NEW_ORDERS_A_PAGE)
                }
                None => {
                    let row = at.row(order - FIRST_NEW, ORDERS - FIRST_NEW);
                    self.tables
                        .new_orders
                        .page(warehouse, row, NEW_ORDERS_A_PAGE)
                }
            };
            self.touch(page, true);
            self.order(at, order, true);
            let row = at.row(self.dice.below(CUSTOMERS), CUSTOMERS);
            self.touch(
                self.tables.customer_key.page(warehouse, row, KEYS_A_LEAF),
                false,
            );
            self.touch(
                self.tables.customer.page(warehouse, row, CUSTOMERS_A_PAGE),
                true,
            );
        }
    }

    /// Clause 2.8: the stock of what the last 20 orders are of.
    fn stock_level(&mut self, at: Where) {
        self.warehouse_and_district(at, (false, false));
        let known = ORDERS + self.district_at(at).orders.len() as u64;
        for order in known - 20..known {
            match order.checked_sub(ORDERS) {
                Some(new) => {
                    let (_, first, lines) = self.district_at(at).orders[new as usize];
                    self.new_lines(first, lines, false);
                }
                None => self.old_lines(at, order, false),
            }
            for _ in 0..LINES {
                let item = self.dice.item();
                self.stock(at.warehouse, item, false);
            }
        }
    }
}

fn grow(leaves: &mut Leaves, leaf: u64, next: Page) {
    if leaf as usize >= leaves.0.len() {
        leaves.0.push(next);
    }
}

impl Iterator for Generator {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        while self.handed == self.ios.len() {
            self.ios.clear();
            self.handed = 0;
            if !self.transact() {
                return None;
            }
        }
        let Io { page, write } = self.ios[self.handed];
        self.handed += 1;
        self.now += STEP;
        Some(Request {
            at: self.now,
            write,
            offset: u64::from(page) * PAGE,
            bytes: PAGE,
        })
    }
}

#[cfg(test)]
mod tests;
