//! What an extension registers. Invisible until its generation is committed; afterwards
//! effective on the next lookup (events.md I.6).

use super::{Asker, Failure, NOTHING, Outcome, body, json, unsupported};
use crate::convert;
use crate::dispatch::event_index;
use crate::registry::{CommandEntry, FlagEntry, FlagKind, HandlerEntry, Phase, ToolEntry};
use atomic_agent::tool::{ExecutionMode, ToolSource, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct AddHandler {
    event: String,
    handler: u64,
    #[serde(default)]
    sync: bool,
    #[serde(default)]
    phase: Phase,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RegisterTool {
    name: String,
    #[serde(default)]
    label: Option<String>,
    description: String,
    parameters: Value,
    #[serde(default)]
    prompt_snippet: Option<String>,
    #[serde(default)]
    prompt_guidelines: Vec<String>,
    #[serde(default)]
    execution_mode: ExecutionMode,
    #[serde(default)]
    concurrency: Option<String>,
    #[serde(default)]
    max_result_size_chars: Option<usize>,
    handler: u64,
}

#[derive(Deserialize)]
struct RegisterCommand {
    name: String,
    #[serde(default)]
    description: Option<String>,
    handler: u64,
    #[serde(default)]
    completions: Option<u64>,
}

#[derive(Deserialize)]
struct RegisterFlag {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(rename = "type")]
    kind: FlagKind,
    #[serde(default)]
    default: Option<Value>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

pub(super) fn call(a: &Asker, op: &str, bytes: &[u8]) -> Outcome {
    let registered = a.host.registered(&a.generation).ok_or_else(Failure::stale)?;
    let mut heard = None;
    match op {
        "handlers.add" => {
            let h: AddHandler = body(op, bytes)?;
            heard = event_index(&h.event);
            registered.add_handler(HandlerEntry {
                event: h.event,
                handler: h.handler,
                sync: h.sync,
                phase: h.phase,
            });
        }
        "tools.register" => {
            let t: RegisterTool = body(op, bytes)?;
            let spec = ToolSpec {
                label: t.label.unwrap_or_else(|| t.name.clone()),
                source: ToolSource::Extension { id: registered.name.clone(), path: registered.path.clone() },
                name: t.name,
                description: t.description,
                parameters: t.parameters,
                prompt_snippet: t.prompt_snippet,
                prompt_guidelines: t.prompt_guidelines,
                execution_mode: t.execution_mode,
                max_result_size_chars: t.max_result_size_chars,
            };
            check_tool(&spec)?;
            let exclusive = t.concurrency.as_deref() == Some("exclusive");
            registered.add_tool(ToolEntry { spec, handler: t.handler, exclusive });
        }
        "commands.register" => {
            let c: RegisterCommand = body(op, bytes)?;
            if c.name.is_empty()
                || c.name.contains(|ch: char| ch.is_whitespace() || ch.is_control() || ch == '/')
            {
                return Err(Failure::new(
                    "bad_request",
                    format!("command name {:?}: one word without a slash", c.name),
                ));
            }
            registered.add_command(CommandEntry {
                name: c.name,
                description: c.description,
                handler: c.handler,
                completions: c.completions,
            });
        }
        "flags.register" => {
            let f: RegisterFlag = body(op, bytes)?;
            check_flag(&f.name)?;
            if a.host.config().reserved_flags.contains(&f.name) {
                // Told, not failed: another version of the program may have it free.
                let error = format!("flag --{} is the program's own and was not registered", f.name);
                a.host.diagnose(a.generation.owner(), "registration", &error);
                return Ok(NOTHING);
            }
            registered.add_flag(FlagEntry {
                name: f.name,
                description: f.description,
                kind: f.kind,
                default: f.default,
            });
        }
        "flags.get" => {
            let n: Named = body(op, bytes)?;
            return json(&a.host.flag(&registered, &n.name));
        }
        "main.register" => return Ok(NOTHING),
        "tools.getActive" => return json(&a.host.engine(op)?.view(|v| v.active_tools.clone())),
        "tools.getAll" => {
            let all = a.host.engine(op)?.view(|v| v.tools.iter().map(described).collect::<Vec<_>>());
            return json(&all);
        }
        "commands.getAll" => {
            let all: Vec<Value> = a
                .host
                .command_list()
                .into_iter()
                .map(|c| json!({"name": c.name, "description": c.description, "source": "extension", "sourceInfo": {"path": convert::path(&c.path), "source": c.extension}}))
                .collect();
            return json(&all);
        }
        _ => return Err(unsupported(op)),
    }
    a.host.registrations_changed(&a.generation, heard);
    Ok(NOTHING)
}

fn described(t: &ToolSpec) -> Value {
    let source = match &t.source {
        ToolSource::Builtin => json!({"source": "builtin"}),
        ToolSource::Extension { id, path } => json!({"source": id, "path": convert::path(path)}),
    };
    json!({
        "name": t.name, "description": t.description, "parameters": t.parameters,
        "promptGuidelines": t.prompt_guidelines, "sourceInfo": source,
    })
}

/// What a command line can say: `--name` or `--name=value`.
fn check_flag(name: &str) -> Result<(), Failure> {
    let bad = |c: char| c.is_whitespace() || c.is_control() || c == '=';
    if name.is_empty() || name.starts_with('-') || name.contains(bad) {
        return Err(Failure::new(
            "bad_request",
            format!(
                "flag name {name:?}: one word without '=', spaces or control characters, and without its dashes"
            ),
        ));
    }
    Ok(())
}

fn check_tool(spec: &ToolSpec) -> Result<(), Failure> {
    let bad = |m: String| Err(Failure::new("bad_request", m));
    // The providers' own rule for tool names.
    let legal = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    if spec.name.is_empty() || spec.name.len() > 64 || !spec.name.bytes().all(legal) {
        return bad(format!("tool name {:?}: letters, digits, '_' and '-', at most 64", spec.name));
    }
    if spec.parameters.get("type").and_then(Value::as_str) != Some("object") {
        return bad(format!("tool {}: the root of its parameters must be an object schema", spec.name));
    }
    Ok(())
}
