//! `ctx.session_manager()`: the session, to be read (events.md E.3).

use crate::{
    abi::instance::Call,
    error::Result,
    protocol::{
        context::SessionGet,
        session::{SessionEntry, SessionHeader},
    },
};
use serde::de::DeserializeOwned;
use std::path::PathBuf;

/// Getters of the session. Each fails with `stale_context` once the generation is replaced.
#[derive(Clone)]
pub struct SessionManager {
    call: Call,
}

macro_rules! getters {
    ($($(#[$meta:meta])* $name:ident $member:literal -> $ty:ty;)*) => {$(
        $(#[$meta])*
        ///
        /// # Errors
        /// `stale_context`, `not_available` before there is a session.
        pub fn $name(&self) -> Result<$ty> {
            self.get($member, None, None)
        }
    )*};
}

impl SessionManager {
    pub(crate) fn new(call: Call) -> Self {
        SessionManager { call }
    }
    fn get<R: DeserializeOwned>(&self, member: &str, id: Option<&str>, from_id: Option<&str>) -> Result<R> {
        self.call.get("session.get", &SessionGet { member, id, from_id })
    }

    getters! {
        /// The directory it was started in.
        get_cwd "cwd" -> PathBuf;
        /// Where session files are.
        get_session_dir "sessionDir" -> Option<PathBuf>;
        /// Its id.
        get_session_id "sessionId" -> String;
        /// Its file; `None` when it is not written.
        get_session_file "sessionFile" -> Option<PathBuf>;
        /// The entry that the next one hangs under.
        get_leaf_id "leafId" -> Option<String>;
        /// The same, whole.
        get_leaf_entry "leafEntry" -> Option<SessionEntry>;
        /// The first line of its file.
        get_header "header" -> Option<SessionHeader>;
        /// All entries, in file order, other branches too.
        get_entries "entries" -> Vec<SessionEntry>;
        /// The name the user gave it.
        get_session_name "sessionName" -> Option<String>;
    }

    /// One entry.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn get_entry(&self, id: &str) -> Result<Option<SessionEntry>> {
        self.get("entry", Some(id), None)
    }
    /// The label of an entry.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn get_label(&self, id: &str) -> Result<Option<String>> {
        self.get("label", Some(id), None)
    }
    /// From the first entry to the leaf.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn get_branch(&self) -> Result<Vec<SessionEntry>> {
        self.get("branch", None, None)
    }
    /// From the first entry to this one.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn get_branch_from(&self, id: &str) -> Result<Vec<SessionEntry>> {
        self.get("branch", None, Some(id))
    }
}
