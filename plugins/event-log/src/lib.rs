//! event-log
