//! A prompt that changed, as a model is told: as messages in their places if it takes system
//! messages between the others, else whole and in front. What stands in front stays byte for byte
//! what it was, which is what a provider's cache needs.

use crate::{
    message::{Extra, Message, MessageContent, SystemMessage},
    pairing, prompt,
};
use serde_json::Value;
use std::fmt::Write;

/// What goes in front, and the messages of the request. `whole`: the prompt as it is now.
pub(crate) fn place(chronological: bool, whole: String, messages: Vec<Message>) -> (String, Vec<Message>) {
    let is_system = |m: &Message| matches!(m, Message::System(_));
    if !chronological || messages.iter().filter(|m| is_system(m)).count() < 2 {
        return (whole, pairing::for_model(messages));
    }
    let mut front = None;
    let placed = messages.into_iter().filter_map(|message| match message {
        Message::System(head) if front.is_none() => {
            front = Some(prompt::of_messages(&[Message::System(head)]));
            None
        }
        Message::System(change) => told(&change),
        other => Some(other),
    });
    let placed = pairing::for_model_with_systems(placed.collect());
    (front.unwrap_or(whole), placed)
}

/// One change in words; `None`: nothing that concerns the model.
fn told(change: &SystemMessage) -> Option<Message> {
    let mut text = change.content.as_ref().map(MessageContent::plain_text).unwrap_or_default();
    let sections = change.extra.get("sections").and_then(Value::as_object);
    let all = || sections.into_iter().flatten();
    let now: Vec<(&String, &str)> = all().filter_map(|(tag, text)| Some((tag, text.as_str()?))).collect();
    if !now.is_empty() {
        separate(&mut text);
        text.push_str("These parts of your instructions have changed. From here on they read:");
        for (tag, section) in now {
            let _ = write!(text, "\n\n<{tag}>\n{section}\n</{tag}>");
        }
    }
    let gone: Vec<String> =
        all().filter(|(_, text)| text.is_null()).map(|(tag, _)| format!("<{tag}>")).collect();
    if !gone.is_empty() {
        separate(&mut text);
        let _ = write!(text, "These parts of your instructions no longer count: {}.", gone.join(", "));
    }
    for (key, words) in
        [("toolsAdded", "Tools that you now have: "), ("toolsRemoved", "Tools that you no longer have: ")]
    {
        let names: Vec<&str> = change
            .extra
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if !names.is_empty() {
            separate(&mut text);
            let _ = write!(text, "{words}{}.", names.join(", "));
        }
    }
    (!text.trim().is_empty()).then(|| {
        Message::System(SystemMessage {
            content: Some(MessageContent::Text(text)),
            timestamp: change.timestamp,
            extra: Extra::new(),
        })
    })
}

fn separate(text: &mut String) {
    if !text.is_empty() {
        text.push_str("\n\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn transcript() -> Vec<Message> {
        serde_json::from_value(json!([
            {"role": "system", "content": "", "sections": {"role": "Work.", "rules": "Be kind."}, "toolsAdded": ["read"]},
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": [{"type": "text", "text": "1"}], "stopReason": "stop"},
            {"role": "system", "content": "", "sections": {"rules": null, "environment": "Date: tomorrow"}, "toolsRemoved": ["read"]},
            {"role": "user", "content": "two"},
        ]))
        .unwrap()
    }

    #[test]
    fn a_model_that_takes_them_is_told_changes_in_their_place_and_the_front_stays_as_it_was() {
        let (front, messages) = place(true, "the whole prompt as it is now".into(), transcript());
        assert_eq!(front, "Work.\n\n<rules>\nBe kind.\n</rules>");
        let roles: Vec<&str> = messages.iter().map(Message::role).collect();
        assert_eq!(roles, ["user", "assistant", "system", "user"]);
        let Message::System(change) = &messages[2] else { unreachable!() };
        let text = change.content.as_ref().unwrap().plain_text();
        assert_eq!(
            text,
            "These parts of your instructions have changed. From here on they read:\n\n<environment>\nDate: tomorrow\n</environment>\n\n\
             These parts of your instructions no longer count: <rules>.\n\nTools that you no longer have: read."
        );
    }

    #[test]
    fn another_model_gets_the_prompt_whole_and_in_front() {
        let (front, messages) = place(false, "the whole prompt as it is now".into(), transcript());
        assert_eq!(front, "the whole prompt as it is now");
        assert!(messages.iter().all(|m| m.role() != "system"));
        let unchanged: Vec<Message> = transcript().into_iter().take(2).collect();
        assert_eq!(place(true, "whole".into(), unchanged).0, "whole", "nothing has changed yet");
    }
}
