//! What an extension registers. Invisible until its generation is committed; afterwards
//! effective on the next lookup (events.md I.6).

use super::{Asker, Failure, NOTHING, Outcome, body, json, unsupported};
use crate::convert;
use crate::dispatch::event_index;
use crate::host::Scope;
use crate::registry::{
    CommandEntry, FlagEntry, FlagKind, HandlerEntry, Phase, RendererEntry, RendererKind, ShortcutEntry,
    ToolEntry,
};
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
    #[serde(default)]
    output_schema: Option<Value>,
    #[serde(default)]
    constrained_sampling: Option<Value>,
    #[serde(default)]
    structured_output: bool,
    #[serde(default)]
    render_shell: Option<String>,
    #[serde(default)]
    prepare: Option<u64>,
    #[serde(default)]
    concurrency_handler: Option<u64>,
    #[serde(default)]
    render_call: Option<u64>,
    #[serde(default)]
    render_result: Option<u64>,
    handler: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RegisterShortcut {
    key: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    prefer_editor: bool,
    #[serde(default)]
    keybinding: Option<String>,
    handler: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RegisterRenderer {
    kind: RendererKind,
    custom_type: String,
    handler: u64,
}

#[derive(Deserialize)]
struct RegisterHandler {
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
                output_schema: t.output_schema,
                constrained_sampling: t.constrained_sampling,
                structured_output: t.structured_output,
                render_shell: t.render_shell,
            };
            check_tool(&spec)?;
            let exclusive = t.concurrency.as_deref() == Some("exclusive");
            registered.add_tool(ToolEntry {
                spec,
                handler: t.handler,
                exclusive,
                prepare: t.prepare,
                concurrency: t.concurrency_handler,
                render_call: t.render_call,
                render_result: t.render_result,
            });
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
        "shortcuts.register" => {
            let s: RegisterShortcut = body(op, bytes)?;
            let key = s.key.trim().to_lowercase();
            if key.is_empty() || key.chars().any(|c| c.is_whitespace() || c.is_control()) {
                return Err(Failure::new(
                    "bad_request",
                    format!("key {:?}: one word, as in \"ctrl+shift+p\"", s.key),
                ));
            }
            if a.host.config().reserved_keys.iter().any(|k| k.eq_ignore_ascii_case(&key)) {
                // Told, not failed: the user may have it free tomorrow.
                let error = format!("key {key} is the program's own and was not taken");
                a.host.diagnose(a.generation.owner(), "registration", &error);
                return Ok(NOTHING);
            }
            registered.add_shortcut(ShortcutEntry {
                key,
                description: s.description,
                prefer_editor: s.prefer_editor,
                keybinding: s.keybinding,
                handler: s.handler,
            });
        }
        "renderers.register" => {
            let r: RegisterRenderer = body(op, bytes)?;
            let RegisterRenderer { kind, custom_type, handler } = r;
            registered.add_renderer(RendererEntry { kind, custom_type, handler });
        }
        "markdown.register" => registered.set_transformer(body::<RegisterHandler>(op, bytes)?.handler),
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
            let tools = a.host.engine(op)?.view(|v| v.tools.clone());
            let all: Vec<Value> = tools.iter().map(|t| described(a, t)).collect();
            return json(&all);
        }
        "commands.getAll" => {
            let lent = a.host.engine(op).map(|e| e.view(|v| v.lent.clone())).unwrap_or_default();
            let all: Vec<Value> = a
                .host
                .command_list()
                .into_iter()
                .map(|c| json!({"name": c.name, "description": c.description, "source": "extension", "sourceInfo": source_info(a, &c.extension, &c.path)}))
                .chain(lent.iter().map(|c| json!(c)))
                .collect();
            return json(&all);
        }
        _ => return Err(unsupported(op)),
    }
    a.host.registrations_changed(&a.generation, heard);
    Ok(NOTHING)
}

fn described(a: &Asker, t: &ToolSpec) -> Value {
    let source = match &t.source {
        ToolSource::Builtin => json!({"source": "builtin", "scope": "user", "origin": "top-level"}),
        ToolSource::Extension { id, path } => source_info(a, id, path),
    };
    let mut tool = json!({
        "name": t.name, "description": t.description, "parameters": t.parameters,
        "promptGuidelines": t.prompt_guidelines, "sourceInfo": source,
    });
    if let Some((o, how)) = tool.as_object_mut().zip(t.constrained_sampling.clone()) {
        o.insert("constrainedSampling".into(), how);
    }
    tool
}

/// Where something of an extension comes from (events.md E.1).
fn source_info(a: &Asker, extension: &str, path: &std::path::Path) -> Value {
    let scope = a.host.slots().iter().find(|s| s.name == extension).map(|s| s.scope);
    let (kind, origin) = match scope {
        Some(Scope::Cli) => ("temporary", "top-level"),
        Some(Scope::Project) => ("project", "top-level"),
        Some(Scope::Bundled) => ("user", "package"),
        _ => ("user", "top-level"),
    };
    json!({
        "path": convert::path(path), "source": extension, "scope": kind, "origin": origin,
        "baseDir": path.parent().map(convert::path),
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
