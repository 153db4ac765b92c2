//! `atomic doctor`: what there is and how it stands, read from files alone. Nothing of an
//! extension runs; what only a running engine knows, `/extensions` says there.

use crate::{
    extension::installed,
    paths::Paths,
    settings::Settings,
    trust::{command, standing},
};
use atomic_extensions::trust::{Pins, TrustStore, canonical};
use std::{fmt::Write, fs, path::Path};

pub fn run(paths: &Paths) -> String {
    let mut text = format!(
        "atomic {} · api {} · {}\nhome {}\n",
        env!("CARGO_PKG_VERSION"),
        atomic_plugin_api::manifest::API_VERSION,
        atomic_plugin_api::manifest::TARGET,
        paths.home.display()
    );
    section(&mut text, "settings", &settings(paths));
    section(&mut text, "extensions", &extensions(paths));
    section(&mut text, "trust", &trust(paths));
    section(&mut text, "pins", &pins(paths));
    section(&mut text, "cache", &cache(&paths.home.join("cache").join("extensions")));
    section(
        &mut text,
        "engine",
        "what reloads left behind belongs to a running session: type /extensions in it\n",
    );
    text
}

fn section(text: &mut String, name: &str, body: &str) {
    let _ = writeln!(text, "\n{name}");
    for line in body.lines() {
        let _ = writeln!(text, "  {line}");
    }
}

fn settings(paths: &Paths) -> String {
    let path = paths.agent().join("settings.json");
    match Settings::read(paths) {
        Err(card) => format!("BROKEN {}: {}\n", path.display(), card.what),
        Ok(s) => {
            let state = if path.exists() { "ok" } else { "none" };
            let mut text = format!("{state} {}\n", path.display());
            for card in s.warnings {
                let _ = writeln!(text, "warning: {} ({})", card.what, card.help.unwrap_or_default());
            }
            text
        }
    }
}

fn extensions(paths: &Paths) -> String {
    let (mut text, refused) = installed::list(paths);
    for card in refused {
        let file = card.file.map(|f| f.display().to_string()).unwrap_or_default();
        let _ = writeln!(text, "not loadable: {file} {} ({})", card.why.unwrap_or(card.what), card.code);
    }
    text
}

fn trust(paths: &Paths) -> String {
    let store = TrustStore::of(&paths.agent());
    let saved = match store.read() {
        Ok(saved) => saved,
        Err(e) => return format!("BROKEN, so nothing is trusted: {e}\n"),
    };
    let mut text =
        format!("{}: {}\n", paths.cwd.display(), if standing(paths) { "trusted" } else { "not trusted" });
    for (dir, answer) in saved.all() {
        let word = match answer {
            Some(true) => "trusted",
            Some(false) => "not trusted",
            None => "as the folder above",
        };
        let gone = if Path::new(dir).exists() { "" } else { "  (there is no such folder any more)" };
        let _ = writeln!(text, "{word:<20} {dir}{gone}");
    }
    text
}

fn pins(paths: &Paths) -> String {
    let pins = match Pins::of(&paths.agent()).all() {
        Ok(pins) => pins,
        Err(e) => return format!("BROKEN: {e}\n"),
    };
    let mut text = String::new();
    for (project, pinned) in &pins {
        let _ = writeln!(text, "{}: {} libraries", project.display(), pinned.len());
        let there = paths.at(canonical(project));
        for line in command::changes(&there, pinned) {
            let _ = writeln!(text, "  {line}");
        }
    }
    if text.is_empty() {
        text = "none\n".to_owned();
    }
    text
}

fn cache(dir: &Path) -> String {
    let (mut copies, mut bytes, mut temporary) = (0_usize, 0_u64, 0_usize);
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(b".tmp-") {
            temporary += 1;
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            copies += 1;
            let files = fs::read_dir(entry.path()).into_iter().flatten().flatten();
            bytes += files.filter_map(|f| f.metadata().ok()).map(|m| m.len()).sum::<u64>();
        }
    }
    let mut text = format!("{}\n{copies} copies, {} MiB", dir.display(), bytes / (1024 * 1024));
    if temporary > 0 {
        let _ = write!(text, ", {temporary} half-written");
    }
    if let Err(refusal) = atomic_extensions::filecheck::check_directory(dir)
        && dir.exists()
    {
        let _ = write!(text, "\nNOT USED: {refusal}");
    }
    text + "\n"
}
