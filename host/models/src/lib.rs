//! atomic-models
