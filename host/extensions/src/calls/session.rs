//! Requests that change the session: handed to the engine, answered when it accepts.

use super::{Asker, Caller, Failure, Outcome, body, json, unsupported};
use crate::{breadcrumb, generation};
use atomic_agent::{
    hooks::{Origin, StreamingBehavior},
    message::MessageContent,
    model::ThinkingLevel,
    op::{ForkPosition, Op, OutgoingMessage, SendOptions, SetupEntry},
};
use serde::Deserialize;
use serde_json::Value;
use std::path::PathBuf;

#[derive(Deserialize)]
struct SendMessage {
    message: OutgoingMessage,
    #[serde(default)]
    options: SendOptions,
}

#[derive(Deserialize)]
struct SendMessages {
    messages: Vec<OutgoingMessage>,
    #[serde(default)]
    options: SendOptions,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendUserMessage {
    content: MessageContent,
    #[serde(default)]
    deliver_as: Option<StreamingBehavior>,
    #[serde(default)]
    expand_prompt_templates: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AppendEntry {
    custom_type: String,
    #[serde(default)]
    data: Option<Value>,
}

#[derive(Deserialize)]
struct Name {
    #[serde(default)]
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Label {
    entry_id: String,
    #[serde(default)]
    label: Option<String>,
}

#[derive(Deserialize)]
struct Model {
    provider: String,
    model: String,
}

#[derive(Deserialize)]
struct Level {
    level: ThinkingLevel,
}

#[derive(Deserialize)]
struct Names {
    names: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Reload {
    names: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NewSession {
    parent_session: Option<PathBuf>,
    setup: Vec<SetupEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fork {
    entry_id: String,
    #[serde(default)]
    position: ForkPosition,
}

#[derive(Deserialize)]
struct Switch {
    path: PathBuf,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Navigate {
    target_id: String,
    #[serde(default)]
    summarize: bool,
    #[serde(default)]
    custom_instructions: Option<String>,
    #[serde(default)]
    replace_instructions: bool,
    #[serde(default)]
    label: Option<String>,
}

fn origin(c: Caller) -> Option<Origin> {
    Some(Origin { owner: c.owner, generation: c.generation, call: c.call })
}

/// An absent body is an empty object.
fn optional<T: Default + serde::de::DeserializeOwned>(op: &str, bytes: &[u8]) -> Result<T, Failure> {
    Ok(body::<Option<T>>(op, bytes)?.unwrap_or_default())
}

pub(super) async fn request(a: &Asker, op: &str, bytes: &[u8]) -> Outcome {
    let waits =
        matches!(op, "waitForIdle" | "reload" | "newSession" | "fork" | "switchSession" | "navigateTree");
    // The types of the SDK do not let anybody; whoever asks by hand would wait for himself.
    if waits && generation::kind_of(a.caller.call) >= breadcrumb::kind::EVENTS {
        return Err(Failure::new(
            "not_available",
            format!("{op} would wait for the handler that asks for it: use it from a command"),
        ));
    }
    let asked = match op {
        "sendMessage" => {
            let SendMessage { message, options } = body(op, bytes)?;
            Op::SendMessage { message, options }
        }
        "sendMessages" => {
            let SendMessages { messages, options } = body(op, bytes)?;
            Op::SendMessages { messages, options }
        }
        "getSystemPromptOptions" => Op::GetSystemPromptOptions,
        "sendUserMessage" => {
            let m: SendUserMessage = body(op, bytes)?;
            Op::SendUserMessage {
                content: m.content,
                deliver_as: m.deliver_as,
                expand: m.expand_prompt_templates,
            }
        }
        "appendEntry" => {
            let AppendEntry { custom_type, data } = body(op, bytes)?;
            Op::AppendEntry { custom_type, data }
        }
        "setSessionName" => Op::SetSessionName { name: body::<Name>(op, bytes)?.name },
        "setLabel" => {
            let Label { entry_id, label } = body(op, bytes)?;
            Op::SetLabel { entry_id, label }
        }
        "setModel" => {
            let Model { provider, model } = body(op, bytes)?;
            Op::SetModel { provider, model }
        }
        "setThinkingLevel" => Op::SetThinkingLevel { level: body::<Level>(op, bytes)?.level },
        "setActiveTools" => Op::SetActiveTools { names: body::<Names>(op, bytes)?.names },
        "waitForIdle" => Op::WaitForIdle,
        "reload" => {
            Op::Reload { names: optional::<Reload>(op, bytes)?.names, now: false, origin: origin(a.caller) }
        }
        "newSession" => {
            let NewSession { parent_session, setup } = optional(op, bytes)?;
            Op::NewSession { parent_session, origin: origin(a.caller), setup }
        }
        "fork" => {
            let Fork { entry_id, position } = body(op, bytes)?;
            Op::Fork { entry_id, position, origin: origin(a.caller) }
        }
        "switchSession" => {
            Op::SwitchSession { path: body::<Switch>(op, bytes)?.path, origin: origin(a.caller) }
        }
        "navigateTree" => {
            let to: Navigate = body(op, bytes)?;
            Op::NavigateTree {
                target_id: to.target_id,
                summarize: to.summarize,
                custom_instructions: to.custom_instructions,
                replace_instructions: to.replace_instructions,
                label: to.label,
            }
        }
        _ => return Err(unsupported(op)),
    };
    let mut answer = a.host.engine(op)?.request(asked).await?;
    if matches!(op, "newSession" | "fork" | "switchSession")
        && let Some(object) = answer.as_object_mut()
    {
        // The handle given to `with_session` speaks for the new generation.
        object.insert("generation".into(), a.host.generation_of(a.caller.owner).into());
    }
    json(&answer)
}
