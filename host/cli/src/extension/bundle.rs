//! `atomic extension bundle`: the first-party extensions, laid out in `extensions/` beside
//! the executable, where every start finds them.

use super::{build::Build, installed, place};
use crate::{card::Card, paths::Paths};
use std::path::{Path, PathBuf};

pub fn run(paths: &Paths, dir: Option<&Path>) -> Result<String, Card> {
    let target = paths.bundled().ok_or_else(|| {
        Card::new(
            "extension::bundle",
            "the place of this executable is not known, so nothing can lie beside it",
        )
    })?;
    let libraries = match dir {
        Some(dir) => in_folder(&paths.cwd.join(dir))?,
        None => from_source(paths)?,
    };
    let mut text = String::new();
    for library in libraries {
        let inspection = atomic_extensions::inspect(&library).map_err(|r| Card::from(&r))?;
        let m = &inspection.manifest;
        let installed = place::put(&library, &target, &place::file_name(&m.name))?;
        text += &format!("{:<24} {:<10} {}\n", m.name, m.version, installed.display());
    }
    Ok(text)
}

/// A folder of finished libraries; others than extensions are left out.
fn in_folder(dir: &Path) -> Result<Vec<PathBuf>, Card> {
    let found = installed::scan_dir(dir);
    let libraries: Vec<PathBuf> =
        found.into_iter().filter(|f| f.manifest.is_ok()).map(|f| f.library).collect();
    match libraries.is_empty() {
        true => Err(Card::new("extension::bundle", "there are no extensions in this folder to lay out")
            .file(dir)
            .help("the folder is where they are taken from; they are laid out beside the executable. Without a folder they are built from the source tree")),
        false => Ok(libraries),
    }
}

/// With the profile of this executable, so that a development build shares its target folder.
fn from_source(paths: &Paths) -> Result<Vec<PathBuf>, Card> {
    let tree = paths.source_tree().ok_or_else(|| {
        Card::new(
            "extension::bundle",
            "the first-party extensions are built from Atomic's source tree, and this is not in one",
        )
        .help("run it from the tree, or give a folder with built libraries: atomic extension bundle DIR")
    })?;
    let build = Build { release: !cfg!(debug_assertions), workspace: true, ..Build::default() };
    let built = build.run(&tree)?;
    let plugins = tree.join("plugins");
    Ok(built.into_iter().filter(|b| plugins.join(&b.package).is_dir()).map(|b| b.library).collect())
}
