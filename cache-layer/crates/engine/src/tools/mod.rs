//! Small programs beside the engine.

pub mod ask;
pub mod compare;
pub mod copy;
pub mod record;
