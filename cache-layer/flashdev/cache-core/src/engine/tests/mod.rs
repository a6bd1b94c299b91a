//! What the engine promises, on modelled devices that fail, under random schedules.

mod faults;
mod steps;
mod world;
