//! What there is to say about what was found, and what was not taken.

use super::Scope;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Info,
    Warning,
    /// Named with `-e`: the start ends with exit code 1.
    Fatal,
}

/// Said once a start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// Extensions of another program.
    Scripts {
        paths: Vec<PathBuf>,
    },
    Refused {
        scope: Scope,
        path: PathBuf,
        refusal: Refusal,
    },
    /// Two files, one id: the second is not loaded.
    Shadowed {
        name: String,
        winner: PathBuf,
        winner_scope: Scope,
        loser: PathBuf,
        same_version: bool,
    },
}

/// Why an entry is no candidate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("{0}")]
    Unreadable(String),
    #[error("it is a script; this program loads native libraries only")]
    Script,
    #[error("there is no extension library in it")]
    NoLibrary,
    #[error("it is a library for another operating system")]
    OtherSystem,
    #[error("it holds {0} libraries; say which one in an extension.json, or keep only one")]
    Ambiguous(usize),
    #[error("its extension.json cannot be used: {0}")]
    BadManifest(String),
    #[error("its extension.json names no library for {wanted}, only for: {has}")]
    OtherTargets { wanted: String, has: String },
    #[error("its extension.json names `{0}`, which is outside its folder")]
    Escapes(String),
    #[error("{0}")]
    Unsafe(String),
}

impl Refusal {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "extension::unreadable",
            Self::Script => "extension::script",
            Self::NoLibrary => "extension::no_library",
            Self::OtherSystem => "extension::other_system",
            Self::Ambiguous(_) => "extension::ambiguous_folder",
            Self::BadManifest(_) => "extension::bad_extension_json",
            Self::OtherTargets { .. } => "extension::no_library_for_target",
            Self::Escapes(_) => "extension::path_escapes",
            Self::Unsafe(_) => "extension::writable_by_others",
        }
    }
}

impl Note {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Scripts { .. } => "extension::script",
            Self::Refused { refusal, .. } => refusal.code(),
            Self::Shadowed { .. } => "extension::shadowed",
        }
    }

    pub fn severity(&self) -> Severity {
        match self {
            Self::Refused { scope: Scope::Cli, .. } => Severity::Fatal,
            Self::Refused { .. } => Severity::Warning,
            Self::Scripts { .. } => Severity::Info,
            // What was asked for, or the very same thing twice.
            Self::Shadowed { winner_scope: Scope::Cli, .. } | Self::Shadowed { same_version: true, .. } => {
                Severity::Info
            }
            Self::Shadowed { .. } => Severity::Warning,
        }
    }

    /// The file it is about.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Scripts { paths } => paths.first().map(PathBuf::as_path),
            Self::Refused { path, .. } => Some(path),
            Self::Shadowed { loser, .. } => Some(loser),
        }
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Scripts { paths } => {
                let first = paths.first().map(|path| path.display().to_string()).unwrap_or_default();
                match paths.len() {
                    0 | 1 => write!(f, "{first} was skipped: ")?,
                    n => write!(f, "{first} and {} more were skipped: ", n - 1)?,
                }
                f.write_str("this program loads native libraries only")
            }
            Self::Refused { path, refusal, .. } => write!(f, "{} was skipped: {refusal}", path.display()),
            Self::Shadowed { name, winner, loser, .. } => write!(
                f,
                "extension {name} is loaded from {}; {} has the same name and was skipped",
                winner.display(),
                loser.display()
            ),
        }
    }
}
