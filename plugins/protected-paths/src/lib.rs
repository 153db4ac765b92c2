//! protected-paths
