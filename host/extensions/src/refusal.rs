//! Why an extension was not loaded, as a person should read it: what, which file, which
//! versions, what to type. Every reason has a stable code that `atomic explain` knows.

use atomic_plugin_api::manifest::Manifest;
use std::{
    fmt,
    path::{Path, PathBuf},
};

/// One reason, one code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// `extension::unreadable`
    Unreadable { detail: String },
    /// `extension::not_a_library`
    NotALibrary { detail: String },
    /// `extension::not_an_extension`
    NotAnExtension,
    /// `extension::bad_manifest`
    BadManifest { detail: String },
    /// `extension::bad_name`
    BadName { name: String },
    /// `extension::other_target`
    OtherTarget { built_for: String, host: String },
    /// `extension::other_machine`: the manifest claims this target, the code is for another one.
    OtherMachine { built_for: String, host: String },
    /// `extension::panic_abort`
    PanicAbort,
    /// `extension::abi_too_new`
    ApiTooNew { built_for: String, host: String },
    /// `extension::abi_too_old`
    ApiTooOld { built_for: String, host: String },
    /// `extension::layout`: the same api version, another layout of the frozen tables.
    Layout { detail: String },
    /// `extension::dlopen`
    Open { detail: String },
    /// `extension::init_failed`
    InitFailed { code: String, message: String },
    /// `extension::init_timeout`
    InitTimeout { limit_ms: u64 },
    /// `extension::unsafe_place`
    UnsafePlace { detail: String },
    /// `extension::too_big`, `extension::changed`, `extension::copy_failed`
    Copy { code: &'static str, detail: String },
    /// The entry of a directory, or what `-e` names, is no extension; the code says in which way.
    Entry { code: &'static str, detail: String },
    /// `extension::same_id`
    SameId { id: String, winner: PathBuf },
}

impl Why {
    pub fn code(&self) -> &'static str {
        match self {
            Why::Unreadable { .. } => "extension::unreadable",
            Why::NotALibrary { .. } => "extension::not_a_library",
            Why::NotAnExtension => "extension::not_an_extension",
            Why::BadManifest { .. } => "extension::bad_manifest",
            Why::BadName { .. } => "extension::bad_name",
            Why::OtherTarget { .. } => "extension::other_target",
            Why::OtherMachine { .. } => "extension::other_machine",
            Why::PanicAbort => "extension::panic_abort",
            Why::ApiTooNew { .. } => "extension::abi_too_new",
            Why::ApiTooOld { .. } => "extension::abi_too_old",
            Why::Layout { .. } => "extension::layout",
            Why::Open { .. } => "extension::dlopen",
            Why::InitFailed { .. } => "extension::init_failed",
            Why::InitTimeout { .. } => "extension::init_timeout",
            Why::UnsafePlace { .. } => "extension::unsafe_place",
            Why::Copy { code, .. } => code,
            Why::Entry { code, .. } => code,
            Why::SameId { .. } => "extension::same_id",
        }
    }

    /// What happened, in one sentence.
    pub fn sentence(&self) -> String {
        match self {
            Why::Unreadable { detail } => format!("the file cannot be read: {detail}"),
            Why::NotALibrary { detail } => {
                format!("this is not a shared library of a known format ({detail})")
            }
            Why::NotAnExtension => {
                "a shared library, but not an Atomic extension: it has no manifest section".into()
            }
            Why::BadManifest { detail } => format!("its manifest cannot be used: {detail}"),
            Why::BadName { name } => format!("its declared name {name:?} is not allowed"),
            Why::OtherTarget { built_for, host } => {
                format!("built for {built_for}, this host runs on {host}")
            }
            Why::OtherMachine { built_for, host } => {
                format!("its code is for {built_for}, this machine runs {host}")
            }
            Why::PanicAbort => {
                "built with panic = \"abort\": a panic in it would end the whole program".into()
            }
            Why::ApiTooNew { built_for, host } => {
                format!("built for api {built_for}, this host has api {host}")
            }
            Why::ApiTooOld { built_for, host } => {
                format!("built for api {built_for}, this host has api {host} and no longer loads that major")
            }
            Why::Layout { detail } => format!("its tables do not have the layout of this api: {detail}"),
            Why::Open { detail } => format!("the system's loader refused it: {detail}"),
            Why::InitFailed { code, message } if code == "panic" => {
                format!("its activate panicked: {message}")
            }
            Why::InitFailed { message, .. } => format!("its activate failed: {message}"),
            Why::InitTimeout { limit_ms } => {
                format!("its activate did not return within {limit_ms} ms and was given up")
            }
            Why::UnsafePlace { detail } => format!("other users could replace it: {detail}"),
            Why::Copy { detail, .. } => format!("no private copy could be made: {detail}"),
            Why::Entry { detail, .. } => detail.clone(),
            Why::SameId { id, winner } => format!("the id {id:?} is already taken by {}", winner.display()),
        }
    }

    /// What to type.
    pub fn help(&self) -> String {
        match self {
            Why::Unreadable { .. } => "check the path and its permissions".into(),
            Why::NotALibrary { .. } | Why::NotAnExtension => {
                "move it out of the extensions directory, or build it as an extension: `atomic extension new NAME` shows how".into()
            }
            Why::BadManifest { .. } => "rebuild it with the current atomic-plugin-api and `export_extension!`".into(),
            Why::BadName { .. } => "give its crate a name of letters, digits, '.', '_' or '-', at most 64 characters".into(),
            Why::OtherTarget { host, .. } => format!("build it for this machine: `cargo build --lib --target {host}`"),
            Why::OtherMachine { .. } => {
                "build it again on this machine; the file was damaged, or put together from two builds".into()
            }
            Why::PanicAbort => "remove `panic = \"abort\"` from its Cargo profile and rebuild".into(),
            Why::ApiTooNew { .. } => "update atomic, or build the extension with an older atomic-plugin-api".into(),
            Why::ApiTooOld { .. } => "rebuild the extension: `atomic extension install PATH-OF-ITS-CRATE`".into(),
            Why::Layout { .. } => "rebuild it against the published atomic-plugin-api: `atomic extension install PATH-OF-ITS-CRATE`".into(),
            Why::Open { .. } => "check the libraries it depends on with `ldd` (Linux) or `otool -L` (macOS)".into(),
            Why::InitFailed { .. } => "fix the cause it names, then `/reload`; the others are not affected".into(),
            Why::InitTimeout { .. } => "move slow work from `activate` to `session_start`, or raise extensions.initTimeoutMs".into(),
            Why::UnsafePlace { .. } => "`chmod go-w` the path it names, or move the extension".into(),
            Why::Copy { .. } => "check the free space and the permissions of $ATOMIC_HOME/cache, then start again".into(),
            Why::Entry { .. } => {
                "an extension is a library, or a folder with exactly one, or with an extension.json that names one inside it".into()
            }
            Why::SameId { .. } => "remove one of the two files, or rename one crate".into(),
        }
    }
}

/// A card: one extension that did not load.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub file: PathBuf,
    /// Declared name and version, when they could be read.
    pub name: Option<String>,
    pub version: Option<String>,
    pub why: Why,
    /// It was named with `-e`: the start ends with exit code 1.
    pub fatal: bool,
}

impl Refusal {
    pub fn new(file: &Path, why: Why) -> Self {
        Refusal { file: file.to_owned(), name: None, version: None, why, fatal: false }
    }
    #[must_use]
    pub fn named(mut self, m: &Manifest) -> Self {
        self.name = Some(m.name.clone());
        self.version = Some(m.version.clone());
        self
    }
    #[must_use]
    pub fn from_scope(mut self, scope: crate::discover::Scope) -> Self {
        self.fatal = scope == crate::discover::Scope::Cli;
        self
    }
    pub fn code(&self) -> &'static str {
        self.why.code()
    }
    pub fn help(&self) -> String {
        self.why.help()
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.name, &self.version) {
            (Some(n), Some(v)) => writeln!(f, "extension {n} {v} was not loaded: {}", self.why.sentence())?,
            _ => writeln!(f, "an extension was not loaded: {}", self.why.sentence())?,
        }
        writeln!(f, "  file: {}", self.file.display())?;
        writeln!(f, "  code: {}", self.code())?;
        write!(f, "  help: {}", self.help())
    }
}

impl std::error::Error for Refusal {}

impl From<crate::filecheck::Refusal> for Why {
    fn from(e: crate::filecheck::Refusal) -> Self {
        use crate::filecheck::Refusal as File;
        match e {
            File::WritableByOthers { place, why, .. } => {
                Why::UnsafePlace { detail: format!("{}: {why}", place.display()) }
            }
            File::NotAFile { .. } => Why::NotALibrary { detail: "not a regular file".into() },
            File::Unreadable { source, .. } => Why::Unreadable { detail: source.to_string() },
        }
    }
}

impl From<crate::copies::CopyError> for Why {
    fn from(e: crate::copies::CopyError) -> Self {
        match e {
            crate::copies::CopyError::Unreadable { source, .. } => {
                Why::Unreadable { detail: source.to_string() }
            }
            other => Why::Copy { code: other.code(), detail: other.to_string() },
        }
    }
}
