//! Systems where the end of the process is not watched.

/// See the unix twin.
pub fn watch_for_exit() {}

/// See the unix twin.
pub fn leave_in_order() {}
