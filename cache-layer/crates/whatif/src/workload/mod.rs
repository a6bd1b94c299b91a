//! Requests of databases that nobody has loaded: TPC-C at any scale, and the scans of TPC-H.

mod buffer;
mod dice;
pub mod tpcc;
pub mod tpch;

/// Size of a page of the database.
pub const PAGE: u64 = 8192;

/// A page of the database, counted from the start of its disk.
pub type Page = u32;
