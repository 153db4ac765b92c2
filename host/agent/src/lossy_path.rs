//! Paths as they cross to another process: text. What is not Unicode in a path is shown with
//! replacement characters rather than failing the whole line it stands in.
//!
//! `#[serde(with = "lossy_path")]`, and `lossy_path::option` for an `Option<PathBuf>`.

use serde::{Deserialize, Deserializer, Serializer};
use std::path::{Path, PathBuf};

pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&path.to_string_lossy())
}

pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
    PathBuf::deserialize(from)
}

pub mod option {
    use super::{Deserialize, Deserializer, PathBuf, Serializer};

    // The signature is serde's.
    #[allow(clippy::ref_option)]
    pub fn serialize<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
        match path {
            Some(path) => to.serialize_some(&path.to_string_lossy()),
            None => to.serialize_none(),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
        Option::deserialize(from)
    }
}
