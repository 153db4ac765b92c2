//! An assistant message while it is being received: blocks opened, appended to and closed,
//! each step told as an `AssistantEvent`. Knows no wire format; must not panic on anything.

use atomic_agent::{
    message::{
        AssistantEvent, AssistantMessage, Content, Cost, Extra, StopReason, TextContent, ThinkingContent,
        ToolCall, Usage, now_ms,
    },
    model::{ModelCost, ModelInfo},
};
use serde_json::{Map, Value, json};

pub(crate) struct Draft {
    message: AssistantMessage,
    blocks: Vec<Block>,
    events: Vec<AssistantEvent>,
    prices: ModelCost,
}

/// Beside each content block: what the message type has no place for.
struct Block {
    open: bool,
    /// Argument text of a tool call, as it arrived.
    raw: String,
}

impl Draft {
    pub fn new(info: &ModelInfo) -> Self {
        Draft {
            message: AssistantMessage {
                content: Vec::new(),
                api: info.api.clone(),
                provider: info.provider.clone(),
                model: info.id.clone(),
                usage: Usage::default(),
                stop_reason: None,
                error_message: None,
                timestamp: now_ms(),
                extra: Extra::new(),
            },
            blocks: Vec::new(),
            events: vec![AssistantEvent::Start],
            prices: info.cost.clone(),
        }
    }

    pub fn open_text(&mut self) -> usize {
        let content_index = self.push(Content::text(""));
        self.events.push(AssistantEvent::TextStart { content_index });
        content_index
    }

    pub fn open_thinking(&mut self) -> usize {
        let content_index = self.push(Content::Thinking(ThinkingContent {
            thinking: String::new(),
            thinking_signature: None,
            extra: Extra::new(),
        }));
        self.events.push(AssistantEvent::ThinkingStart { content_index });
        content_index
    }

    /// An id that is missing or already taken in this message is replaced: two calls of one
    /// id could not both be answered.
    pub fn open_tool(&mut self, id: &str, name: &str) -> usize {
        let taken = |id: &str, m: &AssistantMessage| m.tool_calls().any(|c| c.id == id);
        let mut own = id.to_owned();
        let mut n = self.blocks.len();
        while own.is_empty() || taken(&own, &self.message) {
            own = if id.is_empty() { format!("call_{}_{n}", now_ms()) } else { format!("{id}_{n}") };
            n += 1;
        }
        let content_index = self.push(Content::ToolCall(ToolCall {
            id: own,
            name: name.to_owned(),
            arguments: json!({}),
            extra: Extra::new(),
        }));
        self.events.push(AssistantEvent::ToolCallStart { content_index });
        content_index
    }

    fn push(&mut self, content: Content) -> usize {
        self.message.content.push(content);
        self.blocks.push(Block { open: true, raw: String::new() });
        self.blocks.len() - 1
    }

    /// More text, thinking or argument text. Empty pieces and closed blocks are ignored.
    pub fn append(&mut self, content_index: usize, piece: &str) {
        let (Some(block), Some(content)) =
            (self.blocks.get_mut(content_index), self.message.content.get_mut(content_index))
        else {
            return;
        };
        if piece.is_empty() || !block.open {
            return;
        }
        let delta = piece.to_owned();
        self.events.push(match content {
            Content::Text(TextContent { text, .. }) => {
                text.push_str(piece);
                AssistantEvent::TextDelta { content_index, delta }
            }
            Content::Thinking(t) => {
                t.thinking.push_str(piece);
                AssistantEvent::ThinkingDelta { content_index, delta }
            }
            Content::ToolCall(_) => {
                block.raw.push_str(piece);
                AssistantEvent::ToolCallDelta { content_index, delta }
            }
            Content::Image(_) | Content::Other(_) => return,
        });
    }

    /// A piece of the opaque signature of a thinking block.
    pub fn sign(&mut self, content_index: usize, piece: &str) {
        if let Some(Content::Thinking(t)) = self.message.content.get_mut(content_index) {
            t.thinking_signature.get_or_insert_default().push_str(piece);
        }
    }

    /// A key this program carries for the format that wrote it (`redacted`, `textSignature`).
    pub fn mark(&mut self, content_index: usize, key: &str, value: Value) {
        let extra = match self.message.content.get_mut(content_index) {
            Some(Content::Thinking(t)) => &mut t.extra,
            Some(Content::Text(t)) => &mut t.extra,
            Some(Content::ToolCall(call)) => &mut call.extra,
            _ => return,
        };
        extra.insert(key.to_owned(), value);
    }

    /// A name that came after the call was opened.
    pub fn name_tool(&mut self, content_index: usize, name: &str) {
        if let Some(Content::ToolCall(call)) = self.message.content.get_mut(content_index)
            && call.name.is_empty()
        {
            call.name = name.to_owned();
        }
    }

    /// Arguments that came whole; pieces that follow win over them.
    pub fn preset_arguments(&mut self, content_index: usize, arguments: &Map<String, Value>) {
        if let Some(Content::ToolCall(call)) = self.message.content.get_mut(content_index) {
            call.arguments = Value::Object(arguments.clone());
        }
    }

    pub fn close(&mut self, content_index: usize) {
        let (Some(block), Some(content)) =
            (self.blocks.get_mut(content_index), self.message.content.get_mut(content_index))
        else {
            return;
        };
        if !std::mem::take(&mut block.open) {
            return;
        }
        let event = match content {
            Content::Text(t) => AssistantEvent::TextEnd { content_index, content: t.text.clone() },
            Content::Thinking(t) => {
                AssistantEvent::ThinkingEnd { content_index, content: t.thinking.clone() }
            }
            Content::ToolCall(call) => {
                settle_arguments(call, &block.raw);
                AssistantEvent::ToolCallEnd { content_index, tool_call: call.clone() }
            }
            Content::Image(_) | Content::Other(_) => return,
        };
        self.events.push(event);
    }

    pub fn close_all(&mut self) {
        for index in 0..self.blocks.len() {
            self.close(index);
        }
    }

    /// What the message says beside what its type has a place for.
    pub fn extra(&mut self) -> &mut Extra {
        &mut self.message.extra
    }

    pub fn usage(&mut self) -> &mut Usage {
        &mut self.message.usage
    }

    pub fn take_events(&mut self) -> Vec<AssistantEvent> {
        std::mem::take(&mut self.events)
    }

    /// The answer is complete. A server's `stop` beside tool calls still means that they are to run.
    pub fn finish(mut self, reason: StopReason) -> (AssistantMessage, Vec<AssistantEvent>) {
        self.close_all();
        let calls = self.message.tool_calls().next().is_some();
        let reason = match reason {
            StopReason::Stop if calls => StopReason::ToolUse,
            StopReason::ToolUse if !calls => StopReason::Stop,
            other => other,
        };
        self.price();
        self.message.stop_reason = Some(reason);
        self.events.push(AssistantEvent::Done { reason, message: Box::new(self.message.clone()) });
        (self.message, self.events)
    }

    /// It ended early. What had arrived stays; open blocks get no end of their own.
    pub fn fail(mut self, reason: StopReason, why: String) -> (AssistantMessage, Vec<AssistantEvent>) {
        for (block, content) in self.blocks.iter().zip(&mut self.message.content) {
            if let (true, Content::ToolCall(call)) = (block.open, content) {
                settle_arguments(call, &block.raw);
            }
        }
        self.price();
        self.message.stop_reason = Some(reason);
        self.message.error_message = Some(why);
        self.events.push(AssistantEvent::Error { reason, error: Box::new(self.message.clone()) });
        (self.message, self.events)
    }

    fn price(&mut self) {
        let p = &self.prices;
        let u = &mut self.message.usage;
        let dollars = |tokens: u64, per_million: f64| tokens as f64 * per_million / 1_000_000.0;
        let (input, output) = (dollars(u.input, p.input), dollars(u.output, p.output));
        let (cache_read, cache_write) =
            (dollars(u.cache_read, p.cache_read), dollars(u.cache_write, p.cache_write));
        if u.total_tokens == 0 {
            u.total_tokens = [u.input, u.output, u.cache_read, u.cache_write]
                .iter()
                .fold(0, |sum: u64, n| sum.saturating_add(*n));
        }
        u.cost = Cost {
            input,
            output,
            cache_read,
            cache_write,
            total: input + output + cache_read + cache_write,
            extra: Extra::new(),
        };
    }
}

/// Text that is no JSON stays as a string, which no object schema accepts: the call fails
/// where every bad call fails, with the text in sight, and never runs on guessed arguments.
fn settle_arguments(call: &mut ToolCall, raw: &str) {
    if raw.trim().is_empty() {
        return;
    }
    match serde_json::from_str::<Value>(raw) {
        // Some servers write "null" for a call without arguments.
        Ok(Value::Null) => call.arguments = json!({}),
        Ok(arguments) => call.arguments = arguments,
        Err(error) => {
            call.arguments = Value::String(raw.to_owned());
            call.extra.insert(
                ARGUMENTS_ERROR.to_owned(),
                Value::String(format!("the model's arguments are not valid JSON: {error}")),
            );
        }
    }
}

/// Key in a tool call whose `arguments` are the raw text of broken JSON.
pub(crate) const ARGUMENTS_ERROR: &str = "argumentsError";
