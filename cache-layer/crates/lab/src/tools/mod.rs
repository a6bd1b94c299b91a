//! Small programs beside the served devices.

pub mod relay;
pub mod replay;
