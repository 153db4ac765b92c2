//! `ctx.session_manager()`: the session, to be read (events.md E.3).

use crate::{
    abi::instance::Call,
    error::Result,
    protocol::{
        context::SessionGet,
        message::CustomMessage,
        session::{SessionEntry, SessionHeader, SessionNameState, SessionTreeNode},
    },
};
use serde::de::DeserializeOwned;
use serde_json::json;
use std::{collections::HashMap, path::PathBuf};

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
        /// The same, and whether one was taken away.
        get_session_name_state "sessionNameState" -> SessionNameState;
        /// Its files are where the program puts them by itself.
        uses_default_session_dir "usesDefaultSessionDir" -> bool;
    }

    /// All entries as a tree; more than one root when a file was edited by hand.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn get_tree(&self) -> Result<Vec<SessionTreeNode>> {
        Ok(tree(self.get_entries()?))
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

/// What a session begins with, before anybody is told of it: see `NewSession::setup`.
#[derive(Clone, Debug, Default, serde::Serialize)]
#[serde(transparent)]
pub struct SessionSetup(Vec<serde_json::Value>);

impl SessionSetup {
    /// State of yours, which no model sees; read again with `SessionEntry::data_as`.
    ///
    /// # Errors
    /// The data is no JSON.
    pub fn append_entry(&mut self, custom_type: &str, data: &impl serde::Serialize) -> Result<()> {
        let data = serde_json::to_value(data)?;
        self.0.push(json!({"type": "custom", "customType": custom_type, "data": data}));
        Ok(())
    }
    /// Read by the model with the first prompt.
    ///
    /// # Errors
    /// Its details are no JSON.
    pub fn append_message(&mut self, message: CustomMessage) -> Result<()> {
        let mut entry = serde_json::to_value(message)?;
        entry["type"] = "custom_message".into();
        self.0.push(entry);
        Ok(())
    }
    /// The name of the session.
    pub fn name(&mut self, name: impl Into<String>) {
        self.0.push(json!({"type": "session_info", "name": name.into()}));
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Children after their parents, as they are in a file; a parent that is not there makes a root.
fn tree(entries: Vec<SessionEntry>) -> Vec<SessionTreeNode> {
    let text = |e: &SessionEntry, key: &str| e.fields.get(key).and_then(|v| v.as_str()).map(str::to_owned);
    let mut labels: HashMap<String, Option<String>> = HashMap::new();
    for e in entries.iter().filter(|e| e.kind == "label") {
        if let Some(target) = text(e, "targetId") {
            labels.insert(target, text(e, "label"));
        }
    }
    let known: HashMap<String, usize> = entries.iter().enumerate().map(|(i, e)| (e.id.clone(), i)).collect();
    let mut nodes: Vec<Option<SessionTreeNode>> = entries
        .into_iter()
        .map(|entry| {
            let label = labels.remove(&entry.id).flatten();
            Some(SessionTreeNode { entry, label, children: Vec::new() })
        })
        .collect();
    let mut roots = Vec::new();
    // From the end: whoever is taken has all its children already.
    for at in (0..nodes.len()).rev() {
        let Some(mut node) = nodes.get_mut(at).and_then(Option::take) else { continue };
        node.children.reverse();
        let parent = node.entry.parent_id.as_ref().and_then(|id| known.get(id)).copied();
        match parent.filter(|p| *p < at).and_then(|p| nodes.get_mut(p)).and_then(Option::as_mut) {
            Some(parent) => parent.children.push(node),
            None => roots.push(node),
        }
    }
    roots.reverse();
    roots
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_become_a_tree_with_their_last_labels_in_file_order() {
        let entry = |id: &str, parent: Option<&str>| {
            serde_json::from_value(json!({"type": "custom", "id": id, "parentId": parent})).unwrap()
        };
        let label = |id: &str, text: Option<&str>| {
            let label = json!({"type": "label", "id": id, "parentId": "b", "targetId": "a", "label": text});
            serde_json::from_value(label).unwrap()
        };
        let all = vec![
            entry("a", None),
            entry("b", Some("a")),
            entry("c", Some("a")),
            label("l1", Some("old")),
            label("l2", Some("new")),
            entry("lost", Some("nobody")),
        ];
        let roots = tree(all);
        let names = |n: &[SessionTreeNode]| n.iter().map(|n| n.entry.id.clone()).collect::<Vec<_>>();
        assert_eq!(names(&roots), ["a", "lost"]);
        assert_eq!(roots[0].label.as_deref(), Some("new"));
        assert_eq!(names(&roots[0].children), ["b", "c"]);
        assert_eq!(names(&roots[0].children[0].children), ["l1", "l2"]);
    }
}
