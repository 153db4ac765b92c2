//! What is lent to the prompt: context files, SYSTEM.md and APPEND_SYSTEM.md, skills, templates.
//! From the command line, the user, a trusted project and the extensions, in this order; of two
//! of one name the first counts, so that a repository cannot stand in front of what the user has.

mod front_matter;
mod skills;
mod templates;

use crate::{args::LendArgs, context_files, paths::Paths, settings::Settings, trust};
use atomic_agent::{
    engine::PromptParts,
    hooks::Resources,
    prompt::{
        hidden::hidden,
        lent::{Lender, Loan, SourceInfo},
    },
};
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

/// Bytes of one file that may go into a prompt.
const MOST: u64 = 1024 * 1024;

/// Reads the disk when it is asked; knows what the command line said.
#[derive(Clone)]
pub struct Lending {
    /// Of the session.
    pub paths: Paths,
    /// Where the command line was typed.
    pub typed_in: PathBuf,
    pub args: LendArgs,
    /// Of `--system-prompt` and `--append-system-prompt`, read already.
    pub system_prompt: Option<String>,
    pub append_system_prompt: Option<String>,
}

/// A place to look in, and whose it is.
struct Place {
    path: PathBuf,
    scope: &'static str,
    source: String,
    /// It was named: that there is nothing is worth a word.
    named: bool,
}

impl Place {
    fn new(path: PathBuf, scope: &'static str, source: &str) -> Self {
        Place { path, scope, source: source.to_owned(), named: false }
    }
    fn named(self) -> Self {
        Place { named: true, ..self }
    }
    fn source_info(&self, file: &Path) -> SourceInfo {
        SourceInfo {
            path: file.to_owned(),
            source: self.source.clone(),
            scope: self.scope.to_owned(),
            origin: "top-level".to_owned(),
            base_dir: file.parent().map(Path::to_owned),
        }
    }
}

/// What has been taken so far, and what there is to say.
struct Taken<'w> {
    /// Real files.
    files: HashSet<PathBuf>,
    names: Vec<(String, PathBuf)>,
    warnings: &'w mut Vec<String>,
}

impl Taken<'_> {
    /// Whether this file was not taken by another name.
    fn is_new(&mut self, file: &Path) -> bool {
        self.files.insert(file.canonicalize().unwrap_or_else(|_| file.to_owned()))
    }
    /// Whether the name is free. `what`: skill, prompt template.
    fn claim(&mut self, what: &str, name: &str, file: &Path) -> bool {
        if let Some((_, first)) = self.names.iter().find(|(taken, _)| taken == name) {
            let text = format!(
                "two {what}s are named {name}: {} is used, {} is not",
                first.display(),
                file.display()
            );
            self.warnings.push(text);
            return false;
        }
        self.names.push((name.to_owned(), file.to_owned()));
        true
    }
}

/// A whole text file; hidden characters in it are counted.
fn read(path: &Path, warnings: &mut Vec<String>) -> Option<String> {
    let size = std::fs::metadata(path).map(|m| m.len());
    let bytes = match size.and_then(|size| if size > MOST { Ok(None) } else { std::fs::read(path).map(Some) })
    {
        Ok(Some(bytes)) => bytes,
        Ok(None) => {
            warnings.push(format!("{} is not read: it is larger than 1 MB", path.display()));
            return None;
        }
        Err(e) => {
            warnings.push(format!("{} cannot be read: {e}", path.display()));
            return None;
        }
    };
    let text = String::from_utf8_lossy(&bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned();
    warn_of_hidden(path, &text, warnings);
    Some(text)
}

/// Who reads the file does not see what the model reads.
fn warn_of_hidden(path: &Path, text: &str, warnings: &mut Vec<String>) {
    if let Some(told) = hidden(text).told() {
        warnings.push(format!("{} holds {told}: the model reads what you do not see", path.display()));
    }
}

impl Lender for Lending {
    fn lend(&self, cwd: &Path, trusted: bool, found: &Resources) -> Loan {
        Lending { paths: self.paths.at(cwd.to_owned()), ..self.clone() }.lend_here(trusted, found)
    }
}

impl Lending {
    fn lend_here(&self, trusted: bool, found: &Resources) -> Loan {
        let mut warnings = Vec::new();
        let context_files = match self.args.no_context_files {
            true => Vec::new(),
            false => context_files::read(&self.paths, trusted, &mut warnings),
        };
        for file in &context_files {
            warn_of_hidden(Path::new(&file.path), &file.content, &mut warnings);
        }
        let settings = Settings::read(&self.paths).unwrap_or_default();
        let skills = match self.args.no_skills {
            true => self.named(&self.args.skills),
            false => self.places("skills", &self.args.skills, &settings.skills, &found.skills, trusted),
        };
        let prompts = match self.args.no_prompt_templates {
            true => self.named(&self.args.prompt_templates),
            false => self.places(
                "prompts",
                &self.args.prompt_templates,
                &settings.prompts,
                &found.prompts,
                trusted,
            ),
        };
        let custom_prompt =
            self.system_prompt.clone().or_else(|| self.of_file("SYSTEM.md", trusted, &mut warnings));
        let append = self.append_system_prompt.clone();
        let append_system_prompt =
            append.or_else(|| self.of_file("APPEND_SYSTEM.md", trusted, &mut warnings));
        let parts = PromptParts {
            custom_prompt,
            append_system_prompt,
            context_files,
            skills: skills::load(&skills, &mut warnings),
            prompts: templates::load(&prompts, &mut warnings),
        };
        Loan { parts, warnings }
    }
}

impl Lending {
    fn named(&self, paths: &[PathBuf]) -> Vec<Place> {
        paths.iter().map(|p| Place::new(self.typed_in.join(p), "temporary", "cli").named()).collect()
    }

    /// Where things of this kind may be, in the order in which they count.
    fn places(
        &self,
        kind: &str,
        cli: &[PathBuf],
        settings: &[String],
        found: &[(PathBuf, PathBuf)],
        trusted: bool,
    ) -> Vec<Place> {
        let mut places = self.named(cli);
        let agent = self.paths.agent();
        places.push(Place::new(agent.join(kind), "user", "user"));
        let users_skills = self.paths.user_home.as_ref().map(|h| h.join(".agents/skills"));
        if let Some(dir) = users_skills.iter().find(|_| kind == "skills") {
            places.push(Place::new(dir.clone(), "user", "user"));
        }
        for entry in settings {
            let path = match (entry.strip_prefix("~/"), &self.paths.user_home) {
                (Some(rest), Some(home)) => home.join(rest),
                _ => agent.join(entry),
            };
            places.push(Place::new(path, "user", "settings").named());
        }
        if trusted {
            for folder in self.own_folders() {
                places.push(Place::new(folder.join(kind), "project", "project"));
            }
            if kind == "skills" {
                let above = self.paths.cwd.ancestors().map(|d| d.join(".agents/skills"));
                let above = above.filter(|d| Some(d) != users_skills.as_ref());
                places.extend(above.map(|d| Place::new(d, "project", "project")));
            }
        }
        let of_extensions = found
            .iter()
            .map(|(path, extension)| Place::new(path.clone(), "user", &extension.to_string_lossy()).named());
        places.extend(of_extensions);
        places
    }

    /// `.atomic` and `.pi` of the project, unless they are the user's own.
    fn own_folders(&self) -> impl Iterator<Item = PathBuf> {
        let users = trust::users(&self.paths);
        let own = [users.atomic_home.to_owned()].into_iter().chain(users.home.map(|h| h.join(".pi")));
        let own: Vec<PathBuf> = own.map(|d| d.canonicalize().unwrap_or(d)).collect();
        let folders = [".atomic", ".pi"].map(|f| self.paths.cwd.join(f));
        folders.into_iter().filter(move |d| !own.contains(&d.canonicalize().unwrap_or_else(|_| d.clone())))
    }

    /// The project's, else the user's.
    fn of_file(&self, name: &str, trusted: bool, warnings: &mut Vec<String>) -> Option<String> {
        let project: Vec<PathBuf> = if trusted { self.own_folders().collect() } else { Vec::new() };
        let file =
            project.into_iter().chain([self.paths.agent()]).map(|d| d.join(name)).find(|f| f.is_file())?;
        read(&file, warnings)
    }
}
