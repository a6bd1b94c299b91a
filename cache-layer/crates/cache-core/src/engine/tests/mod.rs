//! What the engine promises, on modelled devices that fail, under random schedules.

mod bench;
mod bounded;
mod cleaning;
mod discards;
mod failures;
mod faults;
mod jobs;
mod shares;
mod steps;
mod world;
