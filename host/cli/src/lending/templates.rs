//! Finding and reading prompt templates: each `name.md` in a folder is `/name`.

use super::{Place, Taken, front_matter, read};
use atomic_agent::prompt::lent::Template;
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

/// Characters of a first line that stands in for a description.
const SHOWN: usize = 60;

pub fn load(places: &[Place], warnings: &mut Vec<String>) -> Vec<Template> {
    let mut taken = Taken { files: HashSet::new(), names: Vec::new(), warnings };
    let mut templates = Vec::new();
    for place in places {
        let files = match std::fs::read_dir(&place.path) {
            Ok(entries) => {
                let files = entries.flatten().map(|e| e.path()).filter(|p| p.is_file());
                let mut files: Vec<PathBuf> =
                    files.filter(|p| p.extension().is_some_and(|e| e == "md")).collect();
                files.sort();
                files
            }
            Err(_) if place.path.is_file() => vec![place.path.clone()],
            Err(_) => {
                if place.named {
                    taken.warnings.push(format!("there are no prompt templates at {}", place.path.display()));
                }
                continue;
            }
        };
        for file in files {
            if taken.is_new(&file)
                && let Some(template) = one(place, &file, taken.warnings)
                && taken.claim("prompt template", &template.name, &file)
            {
                templates.push(template);
            }
        }
    }
    templates
}

fn one(place: &Place, file: &Path, warnings: &mut Vec<String>) -> Option<Template> {
    let name = file.file_stem()?.to_string_lossy().into_owned();
    let text = read(file, warnings)?;
    let broken = match front_matter::parse(&text) {
        Ok(_) if name.contains(char::is_whitespace) => {
            warnings.push(format!("prompt template {} is not used: its name holds a space", file.display()));
            return None;
        }
        Ok(parsed) => {
            let field = |key: &str| parsed.fields.get(key)?.text().map(|t| t.trim().to_owned());
            let first = || parsed.body.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or_default();
            let description = field("description").filter(|d| !d.is_empty());
            return Some(Template {
                name,
                description: description.unwrap_or_else(|| first().chars().take(SHOWN).collect()),
                argument_hint: field("argument-hint").filter(|h| !h.is_empty()),
                source_info: place.source_info(file),
                body: parsed.body.trim_end().to_owned(),
            });
        }
        Err(broken) => broken,
    };
    let at = format!("{}:{}:{}", file.display(), broken.line, broken.column);
    warnings.push(format!("prompt template {at} is not used: {}", broken.why));
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_a_command_with_its_description_or_its_first_line() {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("fix.md", "---\ndescription: Fixes it\nargument-hint: <issue>\n---\nFix $1\n"),
            ("plain.md", "\nLook at $@ well\nand say so"),
            ("with space.md", "x"),
            ("broken.md", "---\nx"),
            ("notes.txt", "no"),
        ] {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        let mut warnings = Vec::new();
        let found = load(&[Place::new(dir.path().to_owned(), "project", "project")], &mut warnings);
        let shown: Vec<_> =
            found.iter().map(|t| (t.name.as_str(), t.description.as_str(), t.body.as_str())).collect();
        assert_eq!(
            shown,
            [("fix", "Fixes it", "Fix $1"), ("plain", "Look at $@ well", "\nLook at $@ well\nand say so")]
        );
        assert_eq!(found[0].argument_hint.as_deref(), Some("<issue>"));
        assert_eq!(found[0].source_info.scope, "project");
        assert_eq!(warnings.len(), 2, "{warnings:?}");
    }
}
