//! Systems where the end of the process is not watched.

/// See the unix twin.
pub fn watch_for_exit(_: super::signal::OnFatal) {}

/// See the unix twin.
pub fn leave_in_order() {}
