//! Elements for tests and measurements: tasks that do nothing or call a handler, and checks of packets.

use element::Class;

mod check_packet;
mod random_seed;
mod tasks;

/// The classes of this folder.
pub const CLASSES: &[&Class] =
    &[&check_packet::CLASS, &random_seed::CLASS, &tasks::HANDLER_TASK, &tasks::NULL_TASK];

#[cfg(test)]
mod tests;
