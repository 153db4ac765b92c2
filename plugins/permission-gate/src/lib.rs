//! permission-gate
