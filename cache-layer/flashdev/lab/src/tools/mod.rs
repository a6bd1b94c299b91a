//! Small programs beside the served devices.

pub mod cpu;
pub mod relay;
pub mod replay;
