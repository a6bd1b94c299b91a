//! What a cache would do: [`trace`] is what was asked of a device and when, [`workload`] what a
//! database would ask, [`curve`] what LRU caches of every size hit of it, [`hit_ratio`] what a policy makes
//! of it ([`policies`]), [`belady`] the most that any could and [`rates`] one that knows less
//! ([`outcome`] counts all three), [`timed`] what the engine makes of it on modelled devices.

pub mod belady;
pub mod curve;
pub mod hit_ratio;
pub mod outcome;
pub mod policies;
pub mod rates;
pub mod timed;
pub mod workload;

pub use block_trace as trace;
