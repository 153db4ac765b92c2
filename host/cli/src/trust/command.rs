//! `atomic trust`: looks at and changes what was answered about a folder. Reads manifests of its
//! libraries, runs nothing.

use super::{standing, users};
use crate::{
    args::TrustCommand,
    card::Card,
    extension::installed,
    paths::Paths,
    settings::{self, Around, Settings},
};
use atomic_extensions::{
    Refusal,
    trust::{
        self, Difference, Entry, Hashes, Pins, Shown, Surroundings, TrustStore, canonical, described,
        differences,
    },
};
use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

pub fn run(paths: &Paths, command: TrustCommand) -> Result<String, Card> {
    match command {
        TrustCommand::Status { path } => status(&of(paths, path)?),
        TrustCommand::Allow { path } => allow(&of(paths, path)?),
        TrustCommand::Deny { path } => set(&of(paths, path)?, Entry::No, "is not trusted"),
        TrustCommand::Forget { path } => set(&of(paths, path)?, Entry::Remove, "was forgotten"),
    }
}

/// The same program as if it stood in that folder.
fn of(paths: &Paths, path: Option<PathBuf>) -> Result<Paths, Card> {
    let dir = paths.cwd.join(path.unwrap_or_default());
    if !dir.is_dir() {
        return Err(Card::new("trust::no_folder", "trust is given to a folder, and this is none")
            .file(dir)
            .help("name a folder, or leave it out for the current one"));
    }
    Ok(paths.at(canonical(&dir)))
}

fn libraries(paths: &Paths) -> (Vec<Shown>, Vec<Refusal>) {
    let listed = Around { paths: paths.clone() }.listed(&paths.cwd);
    trust::look(&installed::places(paths), &paths.cwd, listed.as_ref())
}

fn hashes(libraries: &[Shown]) -> Hashes {
    libraries.iter().map(|l| (l.file.clone(), l.sha256.clone())).collect()
}

fn status(paths: &Paths) -> Result<String, Card> {
    let store = TrustStore::of(&paths.agent());
    let saved = store.read().map_err(|e| settings::card(&e))?;
    let inputs = trust::inputs(&paths.cwd, users(paths));
    let mut text = format!("{}\n", paths.cwd.display());
    let settings = Settings::read(paths).unwrap_or_default();
    text += &match saved.lookup(&paths.cwd) {
        Some(a) if a.at == paths.cwd => format!("  saved: {}\n", word(a.trusted)),
        Some(a) => format!("  saved: {}, for {}\n", word(a.trusted), a.at.display()),
        None => "  saved: nothing\n".to_owned(),
    };
    text += &match (inputs.is_empty(), standing(paths)) {
        (true, _) => "  it brings nothing that needs trust\n".to_owned(),
        (false, true) => "  the next start: trusted\n".to_owned(),
        (false, false) if saved.lookup(&paths.cwd).is_none() => {
            format!(
                "  the next start: {}\n",
                match settings.default_trust {
                    trust::DefaultTrust::Never => "not trusted (defaultProjectTrust)",
                    _ => "asked at the prompt, not trusted elsewhere",
                }
            )
        }
        (false, false) => "  the next start: not trusted\n".to_owned(),
    };
    for input in &inputs {
        let _ = writeln!(text, "  brings {}", input.strip_prefix(&paths.cwd).unwrap_or(input).display());
    }
    text += &told(paths, &settings)?;
    Ok(text)
}

/// How the libraries of a pinned project differ from their pins.
pub fn changes(paths: &Paths, pinned: &Hashes) -> Vec<String> {
    let (libraries, _) = libraries(paths);
    let found = hashes(&libraries);
    let gone = pinned.keys().filter(|file| !found.contains_key(*file)).map(|file| format!("gone: {file}"));
    let differ = differences(pinned, &found).into_iter().map(|(file, difference)| match difference {
        Difference::Added => format!("new: {file}"),
        Difference::Changed { .. } => format!("changed: {file}"),
    });
    differ.chain(gone).collect()
}

/// Somebody has just built this library here: where the current project has pinned it, the pin
/// follows (decisions.md "Pinning"). What is not pinned stays so.
pub fn repin(paths: &Paths, library: &Path) {
    let pins = Pins::of(&paths.agent());
    let project = canonical(&paths.cwd);
    let real = canonical(library);
    let Ok(Some(mut pinned)) = pins.get(&project) else { return };
    let known = pinned.iter_mut().find(|(file, _)| canonical(&project.join(file)) == real);
    if let (Some((_, hash)), Ok(built)) = (known, atomic_extensions::inspect(&real))
        && *hash != built.sha256
    {
        *hash = built.sha256;
        // It is asked about at the next start instead.
        let _ = pins.set(&project, Some(&pinned));
    }
}

fn word(trusted: bool) -> &'static str {
    if trusted { "trusted" } else { "not trusted" }
}

/// Each library, and how it stands to its pin.
fn told(paths: &Paths, settings: &Settings) -> Result<String, Card> {
    let (libraries, refused) = libraries(paths);
    let pinned = Pins::of(&paths.agent()).get(&paths.cwd).map_err(|e| settings::card(&e))?;
    let mut text = String::new();
    let differ = pinned.as_ref().map(|pinned| differences(pinned, &hashes(&libraries)));
    for library in &libraries {
        text += &described(library, "  ");
        text += match differ.as_ref().map(|d| d.get(&library.file)) {
            None => "    not pinned\n",
            Some(_) if settings.pinning_off => "    pinning is off\n",
            Some(None) => "    pinned\n",
            Some(Some(Difference::Added)) => "    NOT PINNED: it came after the project was trusted\n",
            Some(Some(Difference::Changed { .. })) => "    CHANGED since the project was trusted\n",
        };
    }
    for refusal in refused {
        let _ = writeln!(text, "  not loadable: {} ({})", refusal.file.display(), refusal.why.sentence());
    }
    Ok(text)
}

fn allow(paths: &Paths) -> Result<String, Card> {
    let store = TrustStore::of(&paths.agent());
    let settings = Settings::read(paths)?;
    let (libraries, refused) = libraries(paths);
    store.set(&[(paths.cwd.clone(), Entry::Yes)]).map_err(|e| settings::card(&e))?;
    let mut text = format!("{} is trusted.\n", paths.cwd.display());
    if !settings.pinning_off {
        Pins::of(&paths.agent())
            .set(&paths.cwd, Some(&hashes(&libraries)))
            .map_err(|e| settings::card(&e))?;
        if !libraries.is_empty() {
            text += "These extensions may run, as they are now:\n";
        }
    }
    for library in &libraries {
        text += &described(library, "  ");
    }
    for refusal in refused {
        let _ = writeln!(text, "  not loadable: {} ({})", refusal.file.display(), refusal.why.sentence());
    }
    Ok(text)
}

fn set(paths: &Paths, entry: Entry, what: &str) -> Result<String, Card> {
    let store = TrustStore::of(&paths.agent());
    store.set(&[(paths.cwd.clone(), entry)]).map_err(|e| settings::card(&e))?;
    Pins::of(&paths.agent()).set(&paths.cwd, None).map_err(|e| settings::card(&e))?;
    let mut text = format!("{} {what}.\n", paths.cwd.display());
    if let Some(above) = above(&store, &paths.cwd) {
        let _ = writeln!(text, "What is said for {above} counts.");
    }
    Ok(text)
}

/// Whose answer counts when there is none of its own.
fn above(store: &TrustStore, dir: &Path) -> Option<String> {
    let answer = store.read().ok()?.lookup(dir).filter(|a| a.at != dir)?;
    Some(format!("{} ({})", answer.at.display(), word(answer.trusted)))
}
