//! What the two context hooks make of a request.

use crate::doubles::*;
use atomic_agent::message::{Message, MessageContent};

fn without_system(messages: &[Message]) -> Vec<Message> {
    messages.iter().filter(|m| !matches!(m, Message::System(_))).cloned().collect()
}

#[tokio::test]
async fn messages_that_context_changed_get_their_folded_prompt_back_at_the_head() {
    let log = |log: &mut Log| {
        log.context = Some(Box::new(|messages| messages[messages.len() - 1..].to_vec()));
    };
    let rig = build([Step::Text("one"), Step::Text("two")]).log(log).start().await;
    rig.run("first").await;
    rig.run("second").await;
    assert_eq!(rig.log.count("context_with_system roles=[\"system\",\"user\"]"), 2);
    let (first, second) = (rig.model.request(0), rig.model.request(1));
    assert_eq!(second.messages.len(), 1);
    assert_eq!(second.system_prompt, first.system_prompt);
}

#[tokio::test]
async fn a_transcript_without_its_system_message_is_sent_without_a_prompt() {
    let log = |log: &mut Log| log.context_with_system = Some(Box::new(without_system));
    let rig = build([Step::Text("one")]).log(log).start().await;
    rig.run("hi").await;
    assert_eq!(rig.model.request(0).system_prompt, "");
    assert_eq!(rig.model.request(0).messages.len(), 1);
}

#[tokio::test]
async fn a_section_that_context_with_system_changes_is_what_the_model_reads_and_the_file_does_not_know() {
    let log = |log: &mut Log| {
        log.context_with_system = Some(Box::new(|messages| {
            let mut messages = messages.to_vec();
            let Some(Message::System(head)) = messages.first_mut() else { panic!("no head") };
            head.content = Some(MessageContent::Text("Above all: be brief.".into()));
            head.extra["sections"]["role"] = "You are a poet.".into();
            messages
        }));
    };
    let rig = build([Step::Text("one")]).log(log).start().await;
    rig.run("hi").await;
    let prompt = rig.model.request(0).system_prompt;
    assert!(prompt.starts_with("Above all: be brief.\n\nYou are a poet.\n\n"), "{prompt}");
    assert!(prompt.contains("<environment>"), "{prompt}");
    assert!(
        !std::fs::read_to_string(rig.handle.view(|v| v.session_file.clone()).unwrap())
            .unwrap()
            .contains("poet")
    );
}

#[tokio::test]
async fn the_head_of_an_unchanged_transcript_says_what_is_sent() {
    let heads = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = heads.clone();
    let log = move |log: &mut Log| {
        log.context_with_system = Some(Box::new(move |messages| {
            seen.lock().unwrap().push(atomic_agent::prompt::of_messages(messages));
            messages.to_vec()
        }));
    };
    let rig = build([Step::Text("one")]).log(log).start().await;
    rig.run("hi").await;
    assert_eq!(heads.lock().unwrap()[0], rig.model.request(0).system_prompt);
}
