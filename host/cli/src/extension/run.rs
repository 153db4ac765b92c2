//! `atomic extension run`: an extension that is a program (boundary.md 14). It alone is
//! loaded, gets the real stdin and stdout, and its exit code is the program's.

use super::installed;
use crate::{card::Card, launch, paths::Paths};
use atomic_extensions::Extensions;
use std::path::{Path, PathBuf};

pub async fn run(paths: &Paths, id: &str, args: Vec<String>, no_extensions: bool) -> Result<u8, Card> {
    let (library, name) = find(paths, id, no_extensions)?;
    let config = launch::without_session(paths, library)?;
    let (extensions, report) = Extensions::load(config).await;
    if let Some(refusal) = report.refused.first() {
        return Err(Card::from(refusal));
    }
    let code = extensions.run_main(&name, args).await;
    extensions.close().await;
    match code {
        // As a shell would see it.
        Ok(code) => Ok((code & 0xff) as u8),
        Err(e) => {
            Err(Card::new(e.code(), e.to_string()).help("atomic extension list shows what is installed"))
        }
    }
}

fn find(paths: &Paths, id: &str, no_extensions: bool) -> Result<(PathBuf, String), Card> {
    // A bare name is never looked for in the current folder: what lies there would be built, or run.
    if id.contains(['/', '\\']) {
        let library = launch::libraries(&[paths.cwd.join(id)], true)?.into_iter().next();
        let library = library.and_then(|l| installed::library(&l));
        let library = library.ok_or_else(|| not_found(id))?;
        let inspection = atomic_extensions::inspect(&library).map_err(|r| Card::from(&r))?;
        return Ok((library, inspection.manifest.name));
    }
    let all = if no_extensions { Vec::new() } else { installed::scan(paths, false).0 };
    // A project's own needs trust, which there is nobody to give here: name its path instead.
    let found = all.into_iter().find(|f| f.id() == Some(id));
    found.map(|f| (f.library, id.to_owned())).ok_or_else(|| not_found(id))
}

fn not_found(id: &str) -> Card {
    Card::new("extension::not_installed", format!("no extension '{id}' is installed"))
        .help("atomic extension list shows them; a path works as well, one of this\nfolder as ./NAME")
        .file(Path::new(id))
}
