//! The offline model `offline/scripted`: deterministic, no network, no key.
//!
//! With a script (`--script FILE`) each request takes the next turn:
//! `{"turns": [{"text"?, "thinking"?, "toolCalls"?: [{"name", "arguments"?}], "stopReason"?,
//! "delayMs"?, "error"?}]}`. Beyond the last turn it says that the script is over.
//!
//! Without one, `call NAME {json}` in a prompt makes it call that tool; several such
//! places, on one line or on many, make several calls in one answer, and the JSON may span
//! lines. `call NAME` alone on a line calls without arguments. Once results are there it
//! answers with the beginning of each. Any other prompt is repeated, with a hint. As the planner
//! of a compaction it takes the oldest lines out, so that `/compact` can be seen without a network;
//! with a script a planner's request takes the next turn like any other.

mod builtin;
mod planner;
mod script;

pub use script::{Script, ScriptError, Turn, TurnCall};

use crate::draft::Draft;
use async_trait::async_trait;
use atomic_agent::{
    message::{AssistantMessage, Message, StopReason},
    model::{Model, ModelCost, ModelInfo, ModelRequest, StreamSink},
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, HashSet},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};
use tokio_util::sync::CancellationToken;

pub const PROVIDER: &str = "offline";
pub const MODEL: &str = "scripted";

/// One instance holds the place in its script: share it, do not make a second one.
pub struct ScriptedModel {
    info: ModelInfo,
    script: Option<Script>,
    next: AtomicUsize,
}

impl ScriptedModel {
    pub fn new(script: Option<Script>) -> Self {
        ScriptedModel { info: info(), script, next: AtomicUsize::new(0) }
    }

    fn turn(&self, request: &ModelRequest) -> Turn {
        match &self.script {
            None => match planner::answer(request) {
                Some(ranges) => Turn { text: Some(ranges), ..Turn::default() },
                None => builtin::answer(request),
            },
            Some(script) => {
                let n = self.next.fetch_add(1, Ordering::SeqCst);
                script.turns.get(n).cloned().unwrap_or_else(|| script.over(n))
            }
        }
    }

    async fn play(
        &self,
        turn: Turn,
        request: &ModelRequest,
        draft: &mut Draft,
        sink: &mut dyn StreamSink,
        cancel: &CancellationToken,
    ) -> Result<StopReason, (StopReason, String)> {
        let aborted = || (StopReason::Aborted, "aborted".to_owned());
        let mut headers = BTreeMap::from([("content-type".to_owned(), Some("application/json".to_owned()))]);
        sink.headers(&mut headers).await;
        let mut payload = json!({
            "model": self.info.id,
            "system": request.system_prompt,
            "messages": request.messages,
            "tools": request.tools,
            "thinking": request.thinking,
        });
        sink.payload(&mut payload).await;
        if cancel.is_cancelled() {
            return Err(aborted());
        }
        let answered = BTreeMap::from([("content-type".to_owned(), "text/event-stream".to_owned())]);
        sink.response(200, answered).await;
        flush(draft, sink).await;
        if turn.delay_ms > 0 {
            let pause = tokio::time::sleep(Duration::from_millis(turn.delay_ms));
            cancel.run_until_cancelled(pause).await.ok_or_else(aborted)?;
        }
        let input = (request.system_prompt.len() + payload["messages"].to_string().len()) as u64 / 4 + 1;
        draft.usage().input = input;

        let thinking = turn.thinking.iter().map(|t| (true, t));
        for (is_thinking, text) in thinking.chain(turn.text.iter().map(|t| (false, t))) {
            let index = if is_thinking { draft.open_thinking() } else { draft.open_text() };
            for piece in pieces(text) {
                if cancel.is_cancelled() {
                    return Err(aborted());
                }
                sink.provider_event(&json!({"type": "delta", "index": index, "text": piece})).await;
                draft.append(index, piece);
                draft.usage().output += piece.len() as u64 / 4 + 1;
                flush(draft, sink).await;
            }
            draft.close(index);
            flush(draft, sink).await;
        }
        let mut ids = Ids::after(&request.messages);
        for call in turn.tool_calls.iter().flatten() {
            if cancel.is_cancelled() {
                return Err(aborted());
            }
            let index = draft.open_tool(&ids.next(), &call.name);
            let arguments = call.arguments.to_string();
            for piece in pieces(&arguments) {
                sink.provider_event(&json!({"type": "delta", "index": index, "arguments": piece})).await;
                draft.append(index, piece);
                draft.usage().output += piece.len() as u64 / 4 + 1;
                flush(draft, sink).await;
            }
            draft.close(index);
            flush(draft, sink).await;
        }
        if cancel.is_cancelled() {
            return Err(aborted());
        }
        match (turn.error, turn.stop_reason) {
            (Some(why), reason) => Err((reason.unwrap_or(StopReason::Error), why)),
            (None, Some(reason @ (StopReason::Error | StopReason::Aborted))) => {
                Err((reason, "the script says that this answer fails".to_owned()))
            }
            (None, reason) => Ok(reason.unwrap_or(StopReason::Stop)),
        }
    }
}

#[async_trait]
impl Model for ScriptedModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn stream(
        &self,
        request: ModelRequest,
        sink: &mut dyn StreamSink,
        cancel: &CancellationToken,
    ) -> AssistantMessage {
        let mut draft = Draft::new(&self.info);
        let turn = self.turn(&request);
        let (message, rest) = match self.play(turn, &request, &mut draft, sink, cancel).await {
            Ok(reason) => draft.finish(reason),
            Err((reason, why)) => draft.fail(reason, why),
        };
        for event in rest {
            sink.event(event).await;
        }
        message
    }
}

async fn flush(draft: &mut Draft, sink: &mut dyn StreamSink) {
    for event in draft.take_events() {
        sink.event(event).await;
    }
}

fn info() -> ModelInfo {
    ModelInfo {
        id: MODEL.to_owned(),
        name: "Scripted (offline)".to_owned(),
        provider: PROVIDER.to_owned(),
        api: "offline".to_owned(),
        base_url: String::new(),
        reasoning: true,
        input: vec!["text".to_owned(), "image".to_owned()],
        cost: ModelCost::default(),
        context_window: 200_000,
        max_tokens: 16_384,
        ..ModelInfo::default()
    }
}

/// Several deltas for any text longer than a word, cut between characters.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    const SIZE: usize = 16;
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut at = SIZE.min(rest.len());
        while !rest.is_char_boundary(at) {
            at += 1;
        }
        let (piece, after) = rest.split_at(at);
        rest = after;
        Some(piece)
    })
}

/// Ids count on from the calls of the transcript: deterministic, and a resumed session never
/// sees one twice.
struct Ids {
    taken: HashSet<String>,
    n: usize,
}

impl Ids {
    fn after(messages: &[Message]) -> Self {
        let calls = messages.iter().filter_map(Message::as_assistant).flat_map(|m| m.tool_calls());
        let taken: HashSet<String> = calls.map(|c| c.id.clone()).collect();
        Ids { n: taken.len(), taken }
    }
    fn next(&mut self) -> String {
        loop {
            self.n += 1;
            let id = format!("call_{}", self.n);
            if self.taken.insert(id.clone()) {
                return id;
            }
        }
    }
}

/// `{}` for a call written without arguments.
pub(crate) fn no_arguments() -> Value {
    json!({})
}
