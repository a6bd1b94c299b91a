//! What a user types: inputs of the five transactions (clauses 2.4.1 to 2.8.1) and their mix.
//!
//! The same stream as `Terminal` of `hotset/tpcc/transactions.py`, draw by draw; a test compares
//! them. Change both or none.

use std::sync::LazyLock;

use crate::mersenne::Mersenne;
use crate::options::{Options, UserOptions};

const DISTRICTS: u32 = 10;
const CUSTOMERS: u32 = 3000;
const ITEMS: u32 = 100_000;
const UNUSED_ITEM: i32 = ITEMS as i32 + 1;

static LAST_NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    const SYLLABLES: [&str; 10] = [
        "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
    ];
    (0..1000)
        .map(|n| {
            [n / 100, n / 10 % 10, n % 10]
                .map(|digit| SYLLABLES[digit])
                .concat()
        })
        .collect()
});

/// One argument of a procedure.
#[derive(Debug, PartialEq, serde::Serialize)]
#[serde(untagged)]
pub enum Value {
    /// SQL's null.
    Null,
    /// An integer.
    Number(i32),
    /// The items, warehouses or quantities of one order.
    Numbers(Vec<i32>),
    /// A last name.
    Name(&'static str),
    /// An amount of money, in hundredths.
    Cents(u32),
}

/// The five types, in the order of their clauses 2.4 to 2.8, as numbers 0 to 4.
pub type Kind = u8;

/// One user's endless, reproducible sequence of transactions.
pub struct Terminal<'o> {
    options: &'o Options,
    user: &'o UserOptions,
    random: Mersenne,
    hand: Vec<Kind>,
}

impl<'o> Terminal<'o> {
    /// The terminal of one user.
    pub fn new(options: &'o Options, user: &'o UserOptions) -> Self {
        Self {
            options,
            user,
            random: Mersenne::new(&user.seed),
            hand: Vec::new(),
        }
    }

    /// Deals the next card and fills in its inputs, in the order of the procedure's parameters.
    pub fn next(&mut self) -> (Kind, Vec<Value>) {
        if self.hand.is_empty() {
            self.hand.clone_from(&self.options.deck);
            self.random.shuffle(&mut self.hand);
        }
        let kind = self.hand.pop().expect("a deck has cards");
        let warehouse = if self.options.all_warehouses {
            self.warehouse()
        } else {
            self.user.warehouse
        };
        let inputs = match kind {
            0 => self.new_order(warehouse),
            1 => self.payment(warehouse),
            2 => self.order_status(warehouse),
            3 => vec![number(warehouse), number(1 + self.random.below(10))],
            _ => self.stock_level(warehouse),
        };
        (kind, inputs)
    }

    /// A think time in seconds (clause 5.2.5.4), cut off at ten times its mean.
    pub fn think_s(&mut self, kind: Kind) -> f64 {
        let mean = self.options.think_s[usize::from(kind)];
        self.random.exponential(mean).min(10.0 * mean)
    }

    fn new_order(&mut self, warehouse: u32) -> Vec<Value> {
        let count = 5 + self.random.below(11) as usize;
        let unused = self.random.random() < 0.01;
        // Few enough that looking through them beats a map. (supplying warehouse, item, quantity)
        let mut lines: Vec<(i32, i32, i32)> = Vec::with_capacity(count);
        while lines.len() < count - usize::from(unused) {
            let item = self.item() as i32;
            let local = self.random.random() >= 0.01;
            let supply = if local {
                warehouse
            } else {
                self.other_than(warehouse)
            } as i32;
            let quantity = 1 + self.random.below(10) as i32;
            // An item drawn twice takes the later quantity.
            match lines
                .iter_mut()
                .find(|line| (line.0, line.1) == (supply, item))
            {
                Some(line) => line.2 = quantity,
                None => lines.push((supply, item, quantity)),
            }
        }
        if unused {
            lines.push((
                warehouse as i32,
                UNUSED_ITEM,
                1 + self.random.below(10) as i32,
            ));
        }
        lines.sort_unstable();
        let local = lines.iter().all(|line| line.0 == warehouse as i32);
        vec![
            number(warehouse),
            number(1 + self.random.below(DISTRICTS)),
            number(self.customer()),
            Value::Number(i32::from(local)),
            Value::Numbers(lines.iter().map(|line| line.1).collect()),
            Value::Numbers(lines.iter().map(|line| line.0).collect()),
            Value::Numbers(lines.iter().map(|line| line.2).collect()),
        ]
    }

    fn payment(&mut self, warehouse: u32) -> Vec<Value> {
        let district = 1 + self.random.below(DISTRICTS);
        let (mut customer_warehouse, mut customer_district) = (warehouse, district);
        if self.random.random() < 0.15 && self.options.warehouses > 1 {
            customer_warehouse = self.other_than(warehouse);
            customer_district = 1 + self.random.below(DISTRICTS);
        }
        let [customer, name] = self.customer_or_name();
        let amount = Value::Cents(100 + self.random.below(499_901));
        vec![
            number(warehouse),
            number(district),
            number(customer_warehouse),
            number(customer_district),
            customer,
            name,
            amount,
        ]
    }

    fn order_status(&mut self, warehouse: u32) -> Vec<Value> {
        let district = 1 + self.random.below(DISTRICTS);
        let [customer, name] = self.customer_or_name();
        vec![number(warehouse), number(district), customer, name]
    }

    fn stock_level(&mut self, warehouse: u32) -> Vec<Value> {
        let district = if self.options.all_warehouses {
            1 + self.random.below(DISTRICTS)
        } else {
            self.user.district
        };
        vec![
            number(warehouse),
            number(district),
            number(10 + self.random.below(11)),
        ]
    }

    fn warehouse(&mut self) -> u32 {
        1 + self.random.below(self.options.warehouses)
    }

    /// Another warehouse, uniformly; the same one if there is no other.
    fn other_than(&mut self, warehouse: u32) -> u32 {
        if self.options.warehouses == 1 {
            return warehouse;
        }
        let other = 1 + self.random.below(self.options.warehouses - 1);
        if other < warehouse { other } else { other + 1 }
    }

    fn item(&mut self) -> u32 {
        if self.options.uniform {
            return 1 + self.random.below(ITEMS);
        }
        self.nurand(8191, self.options.constants.item, 1, ITEMS)
    }

    fn customer(&mut self) -> u32 {
        if self.options.uniform {
            return 1 + self.random.below(CUSTOMERS);
        }
        self.nurand(1023, self.options.constants.customer, 1, CUSTOMERS)
    }

    /// 60 % by last name (clauses 2.5.1.2 and 2.6.1.2).
    fn customer_or_name(&mut self) -> [Value; 2] {
        if self.random.random() < 0.6 {
            let name = self.nurand(255, self.options.constants.last_name, 0, 999);
            return [Value::Null, Value::Name(&LAST_NAMES[name as usize])];
        }
        [number(self.customer()), Value::Null]
    }

    /// NURand(A, x, y) of clause 2.1.6.
    fn nurand(&mut self, a: u32, c: u32, low: u32, high: u32) -> u32 {
        let span = high - low + 1;
        let either = self.random.below(a + 1) | (low + self.random.below(span));
        (either + c) % span + low
    }
}

fn number(value: u32) -> Value {
    Value::Number(value as i32)
}
