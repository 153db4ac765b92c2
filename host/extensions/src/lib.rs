//! atomic-extensions
