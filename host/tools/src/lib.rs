//! atomic-tools
