//! Two files, one id: which of them is loaded. Asked once the manifests are read.

use super::{Candidate, note::Note};
use std::collections::HashMap;

/// A candidate with what its manifest says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    pub candidate: Candidate,
    pub name: String,
    pub version: String,
}

/// Keeps the first of each id in load order (CLI, then what needs no trust, then
/// the project), in that order, and says what was left out.
pub fn resolve_identity(mut all: Vec<(Candidate, String, String)>) -> (Vec<Resolved>, Vec<Note>) {
    // Stable: inside a scope the order of discovery stays.
    all.sort_by_key(|(candidate, ..)| candidate.scope);
    let mut kept: Vec<Resolved> = Vec::new();
    let mut by_name: HashMap<String, usize> = HashMap::new();
    let mut notes = Vec::new();
    for (candidate, name, version) in all {
        match by_name.get(&name) {
            Some(at) => notes.push(Note::Shadowed {
                name,
                winner: kept[*at].candidate.path.clone(),
                winner_scope: kept[*at].candidate.scope,
                loser: candidate.path,
                same_version: kept[*at].version == version,
            }),
            None => {
                by_name.insert(name.clone(), kept.len());
                kept.push(Resolved { candidate, name, version });
            }
        }
    }
    (kept, notes)
}
