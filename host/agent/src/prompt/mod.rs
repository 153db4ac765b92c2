//! The system prompt, made of named sections so that a later change can be recorded
//! as the sections that changed. Knows options, reads nothing from the machine.

pub mod hidden;
pub mod lent;
pub mod template;

use crate::{
    hooks::SystemPromptOptions,
    message::{Extra, Message, MessageContent, SystemMessage, now_ms},
    session::{PromptState, fold_system},
    tool::ToolSpec,
};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

const ROLE: &str = "You are a coding agent working in a terminal, on the user's own machine. You read, change and run \
code with the tools you are given, until what was asked is done and you have checked that it works.";

const HABITS: &[&str] = &[
    "Look before you change: read the file first, and follow the style you find there.",
    "Say plainly what you did and what you did not. Never claim a result you have not seen.",
    "Keep answers short. Name files by their path.",
];

/// Sections in the order they are sent, and the whole text. A forced text replaces what is
/// sent; the sections are still what is recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SystemPrompt {
    pub sections: Vec<(String, String)>,
    pub text: String,
}

/// Fills in what the active tools contribute.
pub fn with_tools(mut options: SystemPromptOptions, active: &[&ToolSpec]) -> SystemPromptOptions {
    options.selected_tools = Some(active.iter().map(|t| t.name.clone()).collect());
    for tool in active {
        if let Some(snippet) = &tool.prompt_snippet {
            options.tool_snippets.entry(tool.name.clone()).or_insert_with(|| snippet.clone());
        }
        if !tool.prompt_guidelines.is_empty() {
            options
                .tool_guidelines
                .entry(tool.name.clone())
                .or_insert_with(|| tool.prompt_guidelines.clone());
        }
    }
    options
}

/// `today` as it is to be told.
pub fn build(options: &SystemPromptOptions, today: &str) -> SystemPrompt {
    let selected = options.selected_tools.clone().unwrap_or_default();
    let mut sections: Vec<(String, String)> = Vec::new();
    let mut add = |tag: &str, text: String| {
        if !text.trim().is_empty() {
            sections.push((tag.to_owned(), text));
        }
    };

    add("role", options.custom_prompt.clone().unwrap_or_else(|| ROLE.to_owned()));
    let snippets = selected.iter().filter_map(|t| Some((t, options.tool_snippets.get(t)?)));
    add("tools", lines(snippets.map(|(tool, snippet)| format!("{tool}: {snippet}"))));
    let own = if options.custom_prompt.is_none() { HABITS } else { &[] };
    let of_tools = selected.iter().filter_map(|t| options.tool_guidelines.get(t)).flatten();
    let mut guidelines: Vec<String> = Vec::new();
    for line in own.iter().map(|s| (*s).to_owned()).chain(of_tools.chain(&options.prompt_guidelines).cloned())
    {
        if !guidelines.contains(&line) {
            guidelines.push(line);
        }
    }
    add("guidelines", lines(guidelines.into_iter()));
    for (tag, text) in &options.sections {
        add(tag, text.clone());
    }
    add("instructions", options.append_system_prompt.clone().unwrap_or_default());
    let files = options.context_files.iter().map(|f| {
        format!("<file path=\"{}\">\n{}\n</file>", f.path.replace('"', "&quot;"), f.content.trim_end())
    });
    add("project", files.collect::<Vec<_>>().join("\n"));
    // Without a way to read their files the list would be of no use.
    if selected.iter().any(|t| t == "read" || t == "bash" || t == "powershell") {
        add("skills", lent::section(&options.skills));
    }
    add("environment", format!("Working directory: {}\nDate: {today}", options.cwd));

    let joined = || join(sections.iter().map(|(tag, text)| (tag.as_str(), text.as_str())));
    let text = options.force_system_prompt.clone().unwrap_or_else(joined);
    SystemPrompt { sections, text }
}

fn join<'s>(sections: impl Iterator<Item = (&'s str, &'s str)>) -> String {
    let section = |(tag, text): (&str, &str)| {
        if tag == "role" { text.to_owned() } else { format!("<{tag}>\n{text}\n</{tag}>") }
    };
    sections.map(section).collect::<Vec<_>>().join("\n\n")
}

/// The prompt that system messages add up to: what they say, then their sections.
pub fn of_messages(messages: &[Message]) -> String {
    let systems = messages.iter().filter_map(|m| match m {
        Message::System(m) => Some(m),
        _ => None,
    });
    let Some(folded) = fold_system(systems) else { return String::new() };
    let said = folded.content.map(|c| c.plain_text()).unwrap_or_default();
    let sections = folded.extra.get("sections").and_then(Value::as_object);
    let sections =
        sections.into_iter().flatten().filter_map(|(tag, text)| Some((tag.as_str(), text.as_str()?)));
    let parts = [said, join(sections)];
    parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn lines(items: impl Iterator<Item = String>) -> String {
    items.map(|i| format!("- {i}")).collect::<Vec<_>>().join("\n")
}

/// What has to be recorded so that the session knows this prompt and these tools: everything
/// the first time, later only what changed. `None`: nothing did.
pub fn transition(known: &PromptState, prompt: &SystemPrompt, tools: &[String]) -> Option<SystemMessage> {
    let now: BTreeMap<&str, &str> = prompt.sections.iter().map(|(t, s)| (t.as_str(), s.as_str())).collect();
    let mut sections = Map::new();
    for (tag, text) in &prompt.sections {
        if known.sections.get(tag) != Some(text) {
            sections.insert(tag.clone(), text.clone().into());
        }
    }
    for tag in known.sections.keys().filter(|t| !now.contains_key(t.as_str())) {
        sections.insert(tag.clone(), Value::Null);
    }
    let added: Vec<&String> = tools.iter().filter(|t| !known.tools.contains(t)).collect();
    let removed: Vec<&String> = known.tools.iter().filter(|t| !tools.contains(t)).collect();
    if !known.absent && sections.is_empty() && added.is_empty() && removed.is_empty() {
        return None;
    }
    let mut extra = Extra::new();
    extra.insert("sections".into(), Value::Object(sections));
    if !added.is_empty() {
        extra.insert("toolsAdded".into(), added.into_iter().cloned().collect());
    }
    if !removed.is_empty() {
        extra.insert("toolsRemoved".into(), removed.into_iter().cloned().collect());
    }
    Some(SystemMessage { content: Some(MessageContent::Text(String::new())), timestamp: now_ms(), extra })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::ContextFile;

    fn options() -> SystemPromptOptions {
        SystemPromptOptions {
            cwd: "/here".into(),
            selected_tools: Some(vec!["read".into()]),
            tool_snippets: [("read".into(), "read a file".into()), ("off".into(), "never".into())].into(),
            tool_guidelines: [("read".into(), vec!["Read whole files.".into()])].into(),
            sections: [("rules".into(), "be kind".into())].into(),
            context_files: vec![ContextFile { path: "AGENTS.md".into(), content: "use tabs\n".into() }],
            ..Default::default()
        }
    }

    #[test]
    fn the_prompt_tells_active_tools_sections_files_place_and_date() {
        let prompt = build(&options(), "2026-01-31");
        for part in [
            "- read: read a file",
            "- Read whole files.",
            "<rules>\nbe kind\n</rules>",
            "<file path=\"AGENTS.md\">\nuse tabs\n</file>",
            "Working directory: /here\nDate: 2026-01-31",
        ] {
            assert!(prompt.text.contains(part), "{part} is missing in\n{}", prompt.text);
        }
        assert!(!prompt.text.contains("never"), "an inactive tool is listed");
    }

    #[test]
    fn only_what_changed_is_recorded_and_a_forced_prompt_is_sent_but_never_recorded() {
        let tools = vec!["read".to_owned()];
        let first = build(&options(), "2026-01-31");
        let head = transition(&PromptState { absent: true, ..Default::default() }, &first, &tools).unwrap();
        assert_eq!(head.extra["sections"].as_object().unwrap().len(), first.sections.len());

        let known = PromptState {
            absent: false,
            sections: first.sections.iter().cloned().collect(),
            tools: tools.clone(),
        };
        assert_eq!(transition(&known, &first, &tools), None);

        let mut changed = options();
        changed.sections.clear();
        let patch = transition(&known, &build(&changed, "2026-02-01"), &[]).unwrap();
        let sections = patch.extra["sections"].as_object().unwrap();
        assert_eq!(sections.keys().collect::<Vec<_>>(), ["environment", "rules"]);
        assert_eq!(sections["rules"], Value::Null);
        assert_eq!(patch.extra["toolsRemoved"], serde_json::json!(["read"]));

        let mut forced = options();
        forced.force_system_prompt = Some("only this".into());
        let forced = build(&forced, "2026-01-31");
        assert_eq!(forced.text, "only this");
        assert_eq!(transition(&known, &forced, &tools), None);
    }
}
