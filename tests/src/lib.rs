//! atomic-tests
