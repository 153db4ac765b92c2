//! System messages of a transcript: the prompt at its head, and later changes of it.

use super::message::{AgentMessage, Extra, MessageContent};
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::{Map, Value};

/// The prompt, or a change of it: sections by tag (`null` takes one away) and tools that came
/// or went.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct SystemMessage {
    /// Text beside the sections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<MessageContent>,
    /// By tag; absent in a message that changes none.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub sections: Map<String, Value>,
    /// Names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools_added: Vec<String>,
    /// Names.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools_removed: Vec<String>,
    /// Milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<i64>,
    #[serde(rename = "role", skip_serializing)]
    tag: IgnoredAny,
    /// See [`Extra`].
    #[serde(flatten)]
    pub extra: Extra,
}

/// What the system messages among these add up to, as the one message that could stand for them:
/// the head of a transcript whose beginning is dropped. `None`: there is none among them.
pub fn current_system_message(messages: &[AgentMessage]) -> Option<AgentMessage> {
    let mut systems = messages.iter().filter_map(|m| match m {
        AgentMessage::System(m) => Some(m),
        _ => None,
    });
    let mut head = systems.next()?.clone();
    for later in systems {
        head.sections.extend(later.sections.clone());
        head.tools_added.retain(|t| !later.tools_removed.contains(t));
        for tool in &later.tools_added {
            if !head.tools_added.contains(tool) {
                head.tools_added.push(tool.clone());
            }
        }
        if later.content.as_ref().is_some_and(|c| !c.plain_text().is_empty()) {
            head.content.clone_from(&later.content);
        }
        head.timestamp = later.timestamp.or(head.timestamp);
    }
    head.sections.retain(|_, text| !text.is_null());
    head.tools_removed.clear();
    Some(AgentMessage::System(head))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_dropped_beginning_lives_on_in_one_head() {
        let messages: Vec<AgentMessage> = serde_json::from_value(json!([
            {"role": "system", "content": "", "sections": {"role": "You are A.", "rules": "be kind"}, "toolsAdded": ["read", "bash"]},
            {"role": "user", "content": "hi"},
            {"role": "system", "sections": {"role": "You are B.", "rules": null}, "toolsRemoved": ["bash"], "toolsAdded": ["find"]},
        ]))
        .unwrap();
        let head = serde_json::to_value(current_system_message(&messages).unwrap()).unwrap();
        assert_eq!(
            head,
            json!({"role": "system", "content": "", "sections": {"role": "You are B."}, "toolsAdded": ["read", "find"]})
        );
        assert_eq!(current_system_message(&messages[1..2]), None);
    }
}
