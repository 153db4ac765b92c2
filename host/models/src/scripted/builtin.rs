//! What the offline model does without a script: enough to try tools by hand.

use super::{Turn, TurnCall, no_arguments};
use atomic_agent::{
    message::{Message, MessageContent},
    model::ModelRequest,
};
use serde_json::Value;

/// Characters of each result that the summary quotes.
const QUOTED: usize = 300;

pub(super) fn answer(request: &ModelRequest) -> Turn {
    let results: Vec<_> = request
        .messages
        .iter()
        .rev()
        .map_while(|m| match m {
            Message::ToolResult(result) => Some(result),
            _ => None,
        })
        .collect();
    if !results.is_empty() {
        let lines = results.iter().rev().map(|result| {
            let text = MessageContent::Blocks(result.content.clone()).plain_text();
            let verb = if result.is_error { "failed" } else { "answered" };
            format!("{} {verb}: {}", result.tool_name, quote(&text))
        });
        return say(lines.collect::<Vec<_>>().join("\n"));
    }
    let prompt = request
        .messages
        .iter()
        .rev()
        .find_map(|m| match m {
            Message::User(user) => Some(user.content.plain_text()),
            _ => None,
        })
        .unwrap_or_default();
    match calls_in(&prompt) {
        Err(problem) => say(problem),
        Ok(calls) if !calls.is_empty() => {
            let names: Vec<_> = calls.iter().map(|c| c.name.as_str()).collect();
            Turn {
                text: Some(format!("Calling {}.", names.join(", "))),
                tool_calls: Some(calls),
                ..Turn::default()
            }
        }
        Ok(_) => {
            let tools: Vec<_> = request.tools.iter().map(|t| t.name.as_str()).collect();
            let known = if tools.is_empty() {
                "No tools are active.".to_owned()
            } else {
                format!(
                    "To make me call a tool, write for example: call bash {{\"command\":\"ls\"}}. Active tools: {}.",
                    tools.join(", ")
                )
            };
            say(format!(
                "You said: {}\nI am the offline model: I repeat what I am told and call tools on request. {known}",
                quote(&prompt)
            ))
        }
    }
}

fn say(text: String) -> Turn {
    Turn { text: Some(text), ..Turn::default() }
}

fn quote(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(QUOTED) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Every `call NAME {json}` of a prompt, in order; an unreadable one spoils the whole answer,
/// so that nobody wonders which half ran.
fn calls_in(prompt: &str) -> Result<Vec<TurnCall>, String> {
    let mut calls = Vec::new();
    let mut from = 0;
    while let Some(found) = prompt[from..].find("call ") {
        let start = from + found;
        from = start + "call ".len();
        if prompt[..start].chars().next_back().is_some_and(char::is_alphanumeric) {
            continue;
        }
        let rest = prompt[from..].trim_start_matches(' ');
        let at = prompt.len() - rest.len();
        let name = &rest[..rest.find(|c: char| !is_name(c)).unwrap_or(rest.len())];
        let after_name = &rest[name.len()..];
        let json = after_name.trim_start();
        if name.is_empty() {
            continue;
        }
        if json.starts_with('{') {
            let mut values = serde_json::Deserializer::from_str(json).into_iter::<Value>();
            match values.next() {
                Some(Ok(arguments)) => calls.push(TurnCall { name: name.to_owned(), arguments }),
                Some(Err(error)) => {
                    return Err(format!(
                        "I cannot read the arguments after \"call {name}\": {error}. Nothing was called."
                    ));
                }
                None => {}
            }
            from = prompt.len() - json.len() + values.byte_offset();
        } else if prompt[..start]
            .lines()
            .next_back()
            .is_none_or(|l| l.trim().is_empty() || prompt[..start].ends_with('\n'))
            && after_name.lines().next().is_none_or(|l| l.trim().is_empty())
        {
            calls.push(TurnCall { name: name.to_owned(), arguments: no_arguments() });
            from = at + name.len();
        }
    }
    Ok(calls)
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_call_of_a_prompt_is_found_in_order() {
        for (prompt, want) in [
            ("call bash {\"command\":\"ls\"}", json!([["bash", {"command": "ls"}]])),
            ("please call a {} and then call b {\"x\":\n 1}.", json!([["a", {}], ["b", {"x": 1}]])),
            ("call a {}\ncall b\n", json!([["a", {}], ["b", {}]])),
            ("call me later", json!([])),
            ("recall bash {}", json!([])),
            ("call a {\"text\":\"call b {}\"}", json!([["a", {"text": "call b {}"}]])),
            ("ça: call é {}", json!([])),
            ("", json!([])),
        ] {
            let calls = calls_in(prompt).unwrap();
            let got: Vec<_> = calls.into_iter().map(|c| json!([c.name, c.arguments])).collect();
            assert_eq!(json!(got), want, "{prompt}");
        }
    }

    #[test]
    fn unreadable_arguments_are_said_and_nothing_is_called() {
        let problem = calls_in("call a {}\ncall bash {\"command\": }").unwrap_err();
        assert!(problem.contains("call bash") && problem.contains("line 1"), "{problem}");
    }

    proptest::proptest! {
        #[test]
        fn no_prompt_makes_the_offline_model_panic(prompt in "(call |[a-zé{}\":, \n]|call x \\{){0,30}") {
            let _ = calls_in(&prompt);
            let _ = quote(&prompt);
        }
    }
}
