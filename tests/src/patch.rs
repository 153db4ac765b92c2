//! Libraries that differ from a real one by a few bytes: another target in the manifest, another
//! name, another mode of the misbehaving fixture. Nothing is built for them.

use serde_json::{Map, Value};
use std::{fs, path::Path};

const MAGIC: &[u8; 8] = atomic_plugin_api::manifest::MAGIC;
const HEADER: usize = atomic_plugin_api::manifest::HEADER;

/// Where the manifest's JSON is. The magic alone also stands in code that reads manifests.
fn json_at(bytes: &[u8]) -> std::ops::Range<usize> {
    let starts = bytes.windows(MAGIC.len()).enumerate().filter(|(_, w)| w == MAGIC).map(|(at, _)| at);
    let mut found = starts.filter_map(|at| {
        let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize);
        let (schema, len) = (word(at + 8)?, word(at + 12)?);
        let json = at + HEADER..at + HEADER + len;
        (schema == 1 && serde_json::from_slice::<Value>(bytes.get(json.clone())?).is_ok()).then_some(json)
    });
    let first = found.next().expect("no manifest in this file");
    assert_eq!(found.next(), None, "two manifests in one file");
    first
}

/// The manifest of a library.
pub fn manifest(library: &Path) -> Value {
    let bytes = fs::read(library).unwrap();
    serde_json::from_slice(&bytes[json_at(&bytes)]).unwrap()
}

/// A copy whose manifest says something else.
pub fn manifest_copy(library: &Path, to: &Path, edit: impl FnOnce(&mut Map<String, Value>)) {
    let mut bytes = fs::read(library).unwrap();
    let at = json_at(&bytes);
    let mut json: Map<String, Value> = serde_json::from_slice(&bytes[at.clone()]).unwrap();
    edit(&mut json);
    let mut text = serde_json::to_vec(&json).unwrap();
    if text.len() > at.len() && json.contains_key("rustc") {
        // Diagnostics only: it makes room.
        json.insert("rustc".into(), "".into());
        text = serde_json::to_vec(&json).unwrap();
    }
    assert!(text.len() <= at.len(), "the patched manifest is {} bytes too long", text.len() - at.len());
    // The length stays; JSON allows spaces at its end.
    text.resize(at.len(), b' ');
    bytes[at].copy_from_slice(&text);
    fs::write(to, bytes).unwrap();
}

/// What the misbehaving fixture reads its switch from.
const SWITCH: &[u8] = b"ATOMIC-FIXTURE-SWITCH:";
/// Bytes behind the marker.
const SWITCH_LEN: usize = 256;

/// A copy of a fixture under its own id that misbehaves as `mode` says.
pub fn misbehaving_copy(library: &Path, to: &Path, id: &str, mode: &str) {
    manifest_copy(library, to, |m| {
        m.insert("name".into(), id.into());
    });
    let mut bytes = fs::read(to).unwrap();
    let starts: Vec<usize> =
        bytes.windows(SWITCH.len()).enumerate().filter(|(_, w)| *w == SWITCH).map(|(at, _)| at).collect();
    assert_eq!(starts.len(), 1, "the fixture has one switch");
    let at = starts[0] + SWITCH.len();
    let mut switch = mode.as_bytes().to_vec();
    assert!(switch.len() <= SWITCH_LEN);
    switch.resize(SWITCH_LEN, 0);
    bytes[at..at + SWITCH_LEN].copy_from_slice(&switch);
    fs::write(to, bytes).unwrap();
}

/// Installs a misbehaving copy for everybody in this home; answers the file that tells what it
/// did. The library is `lib<id>.so`.
pub fn misbehaving(home: &crate::env::Home, id: &str, mode: &str) -> std::path::PathBuf {
    let out = home.path(format!("{id}.out"));
    let to = home.extensions().join(crate::libs::file_name(id));
    // A new inode, as an installer makes one: the old file may be mapped by somebody.
    let _ = fs::remove_file(&to);
    let fixture = crate::libs::fixture("misbehaving");
    misbehaving_copy(&fixture, &to, id, &format!("{mode} {}", out.display()));
    out
}

/// The same for whoever works in this home's project: `.atomic/extensions` there.
pub fn misbehaving_project(home: &crate::env::Home, id: &str, mode: &str) -> std::path::PathBuf {
    misbehaving_in(home, &home.cwd().join(".atomic/extensions"), id, mode)
}

/// The same in this folder.
pub fn misbehaving_in(home: &crate::env::Home, dir: &Path, id: &str, mode: &str) -> std::path::PathBuf {
    let out = home.path(format!("{id}.out"));
    fs::create_dir_all(dir).unwrap();
    let to = dir.join(crate::libs::file_name(id));
    let _ = fs::remove_file(&to);
    let fixture = crate::libs::fixture("misbehaving");
    misbehaving_copy(&fixture, &to, id, &format!("{mode} {}", out.display()));
    out
}
