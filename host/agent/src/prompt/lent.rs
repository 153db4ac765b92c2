//! What the user, a trusted project and extensions lend to the prompt: skills and templates, each
//! with where it comes from. Reads no file; the program around does, when it is asked.

use super::template;
use crate::{engine::PromptParts, hooks::Resources};
use serde::{Deserialize, Serialize};
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

/// Reads it all anew: at the start, once the project is decided about, and on `/reload`.
pub trait Lender: Send + Sync {
    /// For the session that works in `cwd`. `found`: what `resources_discover` brought. Blocks on
    /// the disk.
    fn lend(&self, cwd: &Path, project_trusted: bool, found: &Resources) -> Loan;
}

#[derive(Clone, Debug, Default)]
pub struct Loan {
    pub parts: PromptParts,
    /// One sentence each, for a person.
    pub warnings: Vec<String>,
}

/// Where something comes from (events.md E.1).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SourceInfo {
    #[serde(with = "crate::lossy_path")]
    pub path: PathBuf,
    /// `user`, `project`, `cli`, or the extension's name or file.
    pub source: String,
    /// `user`, `project`, `temporary`.
    pub scope: String,
    /// `top-level`, `package`.
    pub origin: String,
    #[serde(with = "crate::lossy_path::option", skip_serializing_if = "Option::is_none")]
    pub base_dir: Option<PathBuf>,
}

/// A folder or a file of instructions for one kind of work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Skill {
    pub name: String,
    pub description: String,
    #[serde(with = "crate::lossy_path")]
    pub file_path: PathBuf,
    /// What relative paths in it are relative to.
    #[serde(with = "crate::lossy_path")]
    pub base_dir: PathBuf,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed_tools: Vec<String>,
    /// Only the user calls it up; the model is not told of it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub disable_model_invocation: bool,
    pub source_info: SourceInfo,
    /// Without its front matter.
    #[serde(skip)]
    pub body: String,
}

/// A message with places to fill in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Template {
    pub name: String,
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument_hint: Option<String>,
    pub source_info: SourceInfo,
    #[serde(skip)]
    pub body: String,
}

/// A command that is no extension's, as `get_commands` lists it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LentCommand {
    pub name: String,
    pub description: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub argument_hint: Option<String>,
    /// `prompt` or `skill`.
    pub source: String,
    pub source_info: SourceInfo,
}

/// Prompts, then skills.
pub fn commands(parts: &PromptParts) -> Vec<LentCommand> {
    let prompts = parts.prompts.iter().map(|t| LentCommand {
        name: t.name.clone(),
        description: t.description.clone(),
        argument_hint: t.argument_hint.clone(),
        source: "prompt".into(),
        source_info: t.source_info.clone(),
    });
    let skills = parts.skills.iter().map(|s| LentCommand {
        name: format!("skill:{}", s.name),
        description: s.description.clone(),
        argument_hint: None,
        source: "skill".into(),
        source_info: s.source_info.clone(),
    });
    prompts.chain(skills).collect()
}

/// `/skill:name …` and `/template …` as the model is to read them; all else as it is. What comes
/// out is not looked at again: neither an argument nor a file can call up another.
pub fn expand(parts: &PromptParts, text: &str) -> Option<String> {
    let command = text.strip_prefix('/')?;
    let (name, args) = match command.find(char::is_whitespace) {
        Some(at) => (&command[..at], command[at..].trim()),
        None => (command, ""),
    };
    if let Some(skill) = name.strip_prefix("skill:") {
        let skill = parts.skills.iter().find(|s| s.name == skill)?;
        return Some(call_up(skill, args));
    }
    let template = parts.prompts.iter().find(|t| t.name == name)?;
    Some(template::fill(&template.body, args))
}

fn call_up(skill: &Skill, args: &str) -> String {
    let tools = match skill.allowed_tools.is_empty() {
        true => String::new(),
        false => format!(" allowed-tools=\"{}\"", quoted(&skill.allowed_tools.join(" "))),
    };
    let mut text = format!(
        "<skill name=\"{}\" location=\"{}\"{tools}>\nRelative paths in it start at {}.\n\n{}\n</skill>",
        quoted(&skill.name),
        quoted(&skill.file_path.to_string_lossy()),
        skill.base_dir.display(),
        skill.body.trim()
    );
    if !args.is_empty() {
        text.push_str("\n\n");
        text.push_str(args);
    }
    text
}

fn quoted(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;")
}

/// The section that tells the model which skills there are.
pub fn section(skills: &[Skill]) -> String {
    let mut seen = HashSet::new();
    let lines: Vec<String> = skills
        .iter()
        .filter(|s| !s.disable_model_invocation && seen.insert(&s.name))
        .map(|s| {
            let description = s.description.split_whitespace().collect::<Vec<_>>().join(" ");
            format!("- {}: {description} ({})", s.name, s.file_path.display())
        })
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    format!(
        "A skill is a file of instructions for one kind of work. When a task is of that kind, read the file \
         first and follow it; relative paths in it start at its folder.\n{}",
        lines.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> PromptParts {
        let skill = Skill {
            name: "review".into(),
            description: "Reviews\nchanges".into(),
            file_path: "/s/review/SKILL.md".into(),
            base_dir: "/s/review".into(),
            allowed_tools: vec!["read".into()],
            body: "\nLook at $1 twice.\n".into(),
            ..Skill::default()
        };
        let hidden = Skill { name: "quiet".into(), disable_model_invocation: true, ..skill.clone() };
        let template = Template { name: "fix".into(), body: "Fix $1 in $2.".into(), ..Template::default() };
        PromptParts { skills: vec![skill, hidden], prompts: vec![template], ..PromptParts::default() }
    }

    #[test]
    fn a_skill_and_a_template_are_called_up_by_name_and_nothing_else_is_touched() {
        let skill = expand(&parts(), "/skill:review  src/lib.rs $1 ").unwrap();
        assert_eq!(
            skill,
            "<skill name=\"review\" location=\"/s/review/SKILL.md\" allowed-tools=\"read\">\n\
             Relative paths in it start at /s/review.\n\nLook at $1 twice.\n</skill>\n\nsrc/lib.rs $1"
        );
        assert_eq!(expand(&parts(), "/fix it\nnow").unwrap(), "Fix it in now.");
        for text in ["fix it", "/fixes it", "/skill:none", "/skill:", "/", " /fix it", "/review x"] {
            assert_eq!(expand(&parts(), text), None, "{text}");
        }
    }

    #[test]
    fn the_model_is_told_of_skills_it_may_call_up() {
        let section = section(&parts().skills);
        assert!(section.ends_with("\n- review: Reviews changes (/s/review/SKILL.md)"), "{section}");
        assert_eq!(super::section(&parts().skills[1..]), "");
    }

    #[test]
    fn both_are_commands_with_where_they_come_from() {
        let names: Vec<_> = commands(&parts()).into_iter().map(|c| (c.name, c.source)).collect();
        let of = |n: &str, s: &str| (n.to_owned(), s.to_owned());
        assert_eq!(names, [of("fix", "prompt"), of("skill:review", "skill"), of("skill:quiet", "skill")]);
    }
}
