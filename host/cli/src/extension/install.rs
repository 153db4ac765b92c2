//! `atomic extension install` and `remove`.

use super::{
    build::Build,
    installed::{self, Found},
    is_crate, place,
};
use crate::{card::Card, paths::Paths, trust};
use std::path::{Path, PathBuf};

pub fn run(paths: &Paths, path: &Path, offline: bool) -> Result<String, Card> {
    let libraries = find(path, offline)?;
    let mut text = String::new();
    for library in libraries {
        trust::command::repin(paths, &library);
        text += &one(paths, &library)?;
    }
    Ok(text)
}

/// What a path stands for: a library, a folder with one, or a crate that makes some.
fn find(path: &Path, offline: bool) -> Result<Vec<PathBuf>, Card> {
    if is_crate(path) {
        let build = Build { release: true, offline, ..Build::default() };
        return Ok(build.run(path)?.into_iter().map(|b| b.library).collect());
    }
    // A file of any name may be given by name; what it is, its manifest says.
    let library = if path.is_file() { Some(path.to_owned()) } else { installed::library(path) };
    library.map(|l| vec![l]).ok_or_else(|| {
        let card = Card::new("extension::not_found", "there is nothing to install").file(path);
        match path.exists() {
            true => card
                .why("the folder is no crate and holds no library, or several")
                .help("give a shared library, a folder with exactly one, or a crate"),
            false => card.why("there is no such file").help("give a shared library or the folder of a crate"),
        }
    })
}

fn one(paths: &Paths, library: &Path) -> Result<String, Card> {
    let inspection = atomic_extensions::inspect(library).map_err(|r| Card::from(&r))?;
    let id = &inspection.manifest.name;
    let dir = paths.extensions();
    let name = place::file_name(id);
    let before: Vec<Found> = installed::of_user(paths);
    let target = dir.join(&name);
    let replaced = before.iter().find(|f| f.entry == target);
    if let Some(other) = replaced.and_then(Found::id).filter(|other| other != id) {
        return Err(Card::new(
            "extension::name_clash",
            format!("'{id}' would replace the extension '{other}'"),
        )
        .file(&target)
        .help(format!("remove that one first: atomic extension remove {other}")));
    }
    let installed = place::put(library, &dir, &name)?;
    let mut text = installed::describe(&installed, &inspection);
    text += "\n";
    if let Some(old) = replaced.and_then(|f| f.manifest.as_ref().ok()) {
        text += &format!("Replaced {id} {}.\n", old.manifest.version);
    }
    for other in before.iter().filter(|f| f.id() == Some(id) && f.entry != target) {
        text +=
            &format!("Note: {} has the same name; the first in load order is used.\n", other.entry.display());
    }
    text += &format!("Installed. In a running session: /reload {id}. A new one loads it by itself.\n");
    Ok(text)
}

/// By its declared name, or by the name of its file or folder.
pub fn remove(paths: &Paths, name: &str) -> Result<String, Card> {
    let mut found: Vec<Found> = installed::of_user(paths);
    let is_named =
        |f: &Found| f.id() == Some(name) || f.entry.file_name().is_some_and(|n| n.to_string_lossy() == name);
    if !found.iter().any(is_named) {
        let names: Vec<_> = found.iter().filter_map(|f| f.id().map(str::to_owned)).collect();
        let card = Card::new("extension::not_installed", format!("no extension '{name}' is installed"));
        return Err(match names.is_empty() {
            true => card.help(format!("there are none in {}", paths.extensions().display())),
            false => card.help(format!("installed: {}", names.join(", "))),
        });
    }
    found.retain(is_named);
    let mut text = String::new();
    for f in found {
        let to = place::discard(paths, &f.entry, name).map_err(|e| {
            Card::new("extension::remove", "the extension could not be moved to the trash")
                .file(&f.entry)
                .why(e.to_string())
        })?;
        text += &format!("Moved {}\n   to {}\n", f.entry.display(), to.display());
    }
    text += "A running session keeps it until /reload.\n";
    Ok(text)
}
