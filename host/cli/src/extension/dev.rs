//! `atomic extension dev PATH`: a session with a crate as `-e`, whose sources are watched. A
//! change is built and, if it builds, reloaded; if not, the errors are a notice and the old code
//! goes on. Knows files, cargo and the way to an engine; what a reload is, the engine knows.

use super::build::Build;
use crate::{card::Card, paths::Paths, trust};
use atomic_agent::{event::Event, handle::EngineHandle, op::Op};
use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

/// How often the sources are looked at. Editors write a file in several steps: what is built has
/// stood still for this long.
const LOOK: Duration = Duration::from_millis(300);
/// Of cargo's errors, in a notice.
const LINES: usize = 30;

/// What the session is started with; `rest` are its own options.
pub fn session(path: &Path, rest: Vec<OsString>) -> Vec<OsString> {
    let path = path.as_os_str().to_owned();
    ["-e".into(), path.clone(), "--watch-crate".into(), path].into_iter().chain(rest).collect()
}

/// Watches until the engine is gone. `loaded`: names and hashes of what the session has.
pub fn watch(
    paths: &Paths,
    dir: PathBuf,
    loaded: BTreeMap<String, String>,
    engine: EngineHandle,
) -> std::io::Result<()> {
    let watcher = Watcher { seen: sources(&dir), paths: paths.clone(), loaded, dir, engine };
    std::thread::Builder::new().name("atomic-dev".into()).spawn(move || watcher.work()).map(drop)
}

struct Watcher {
    paths: Paths,
    dir: PathBuf,
    engine: EngineHandle,
    /// What the last build was made from.
    seen: Sources,
    loaded: BTreeMap<String, String>,
}

type Sources = BTreeMap<PathBuf, (u64, Option<SystemTime>)>;

impl Watcher {
    fn work(mut self) {
        let mut before = self.seen.clone();
        loop {
            std::thread::sleep(LOOK);
            if self.engine.is_closed() {
                return;
            }
            let now = sources(&self.dir);
            let still = now == before;
            before.clone_from(&now);
            if still && now != self.seen {
                self.seen = now;
                self.changed();
            }
        }
    }

    fn changed(&mut self) {
        self.say("info", format!("{}: building", self.dir.display()));
        match build(&self.dir) {
            Err(card) => {
                let why = card.why.unwrap_or_default();
                self.say("error", format!("{}; the old code goes on\n{why}", card.what));
            }
            Ok(libraries) => {
                libraries.iter().for_each(|l| trust::command::repin(&self.paths, l));
                let built = hashes(&libraries);
                if built.iter().all(|(name, hash)| self.loaded.get(name) == Some(hash)) {
                    return self.say("info", "built, and nothing in it changed".to_owned());
                }
                let names = built.keys().cloned().collect();
                self.loaded.extend(built);
                self.engine.send(Op::Reload { names, now: false, origin: None });
            }
        }
    }

    fn say(&self, level: &str, message: String) {
        self.engine.emit(Event::Notify { message, level: level.into(), extension: None });
    }
}

fn build(dir: &Path) -> Result<Vec<PathBuf>, Card> {
    let build = Build { quiet: true, may_lock: true, kept: Some(LINES), ..Build::default() };
    Ok(build.run(dir)?.into_iter().map(|b| b.library).collect())
}

fn hashes(libraries: &[PathBuf]) -> BTreeMap<String, String> {
    let inspected = libraries.iter().filter_map(|l| atomic_extensions::inspect(l).ok());
    inspected.map(|i| (i.manifest.name, i.sha256)).collect()
}

/// Every file of the crate but what cargo and version control keep there.
fn sources(dir: &Path) -> Sources {
    let mut found = Sources::new();
    let mut left = vec![dir.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Ok(metadata) = entry.metadata() else { continue };
            if name.as_encoded_bytes().starts_with(b".") || name == "Cargo.lock" {
                continue;
            }
            let path = entry.path();
            match metadata.is_dir() {
                // Cargo marks what it writes into.
                true if path.join("CACHEDIR.TAG").exists() => {}
                true => left.push(path),
                false => drop(found.insert(path, (metadata.len(), metadata.modified().ok()))),
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cargo_and_version_control_keep_is_no_source() {
        let dir = tempfile::tempdir().unwrap();
        for file in
            ["src/lib.rs", "src/deep/x.rs", "Cargo.toml", ".git/HEAD", "target/CACHEDIR.TAG", "Cargo.lock"]
        {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let before = sources(dir.path());
        let names: Vec<_> =
            before.keys().map(|p| p.strip_prefix(dir.path()).unwrap().display().to_string()).collect();
        assert_eq!(names, ["Cargo.toml", "src/deep/x.rs", "src/lib.rs"]);
        fs::write(dir.path().join("src/deep/x.rs"), "fn x() {}").unwrap();
        assert_ne!(sources(dir.path()), before);
    }
}
