//! Messages of the transcript and the blocks they are made of (events.md C.4, G.5).
//! Keys that this version does not know stay in `extra` and are written back.
//!
//! A block or message may also be read alone, without the enum that tells it apart. Its tag
//! is then skipped, or it would be in `extra` and be written twice once it is in the enum.

use super::system::SystemMessage;
use serde::{Deserialize, Serialize, de::IgnoredAny};
use serde_json::{Map, Value};

/// Keys this version does not know.
pub type Extra = Map<String, Value>;

/// One block of content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text(TextContent),
    /// A picture.
    Image(ImageContent),
    /// What the model thought.
    Thinking(ThinkingContent),
    /// A tool the model calls.
    ToolCall(ToolCallContent),
    /// A block of a later version.
    #[serde(untagged)]
    Other(Value),
}

impl Content {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Content::Text(TextContent { text: text.into(), ..Default::default() })
    }
    /// A picture: base64 and its media type.
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Content::Image(ImageContent { data: data.into(), mime_type: mime_type.into(), ..Default::default() })
    }
    /// The text of a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Content::Text(t) => Some(&t.text),
            _ => None,
        }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Content::text(text)
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Content::text(text)
    }
}

/// Text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TextContent {
    /// The text.
    pub text: String,
    #[serde(rename = "type", skip_serializing, default)]
    tag: IgnoredAny,
    /// See [`Extra`].
    #[serde(flatten)]
    pub extra: Extra,
}

/// A picture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct ImageContent {
    /// Base64.
    pub data: String,
    /// `image/png`, …
    pub mime_type: String,
    #[serde(rename = "type", skip_serializing, default)]
    tag: IgnoredAny,
    /// See [`Extra`].
    #[serde(flatten)]
    pub extra: Extra,
}

/// What the model thought.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ThinkingContent {
    /// The text; may be empty when the provider hides it.
    pub thinking: String,
    #[serde(rename = "type", skip_serializing, default)]
    tag: IgnoredAny,
    /// Signatures of the provider, which must go back unchanged, and other keys.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A tool the model calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolCallContent {
    /// Answered by exactly one result.
    pub id: String,
    /// The tool.
    pub name: String,
    /// As the model wrote them.
    #[serde(default)]
    pub arguments: Value,
    #[serde(rename = "type", skip_serializing, default)]
    tag: IgnoredAny,
    /// See [`Extra`].
    #[serde(flatten)]
    pub extra: Extra,
}

/// Text, or blocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MessageContent {
    /// Text alone.
    Text(String),
    /// Blocks.
    Blocks(Vec<Content>),
}

impl Default for MessageContent {
    fn default() -> Self {
        MessageContent::Text(String::new())
    }
}

impl MessageContent {
    /// All text of it, blocks joined by a newline.
    pub fn plain_text(&self) -> String {
        match self {
            MessageContent::Text(t) => t.clone(),
            MessageContent::Blocks(b) => plain_text(b),
        }
    }
}

/// The text blocks, joined by a newline.
pub fn plain_text(content: &[Content]) -> String {
    content.iter().filter_map(Content::as_text).collect::<Vec<_>>().join("\n")
}

impl From<&str> for MessageContent {
    fn from(text: &str) -> Self {
        MessageContent::Text(text.to_owned())
    }
}

impl From<String> for MessageContent {
    fn from(text: String) -> Self {
        MessageContent::Text(text)
    }
}

impl From<Vec<Content>> for MessageContent {
    fn from(blocks: Vec<Content>) -> Self {
        MessageContent::Blocks(blocks)
    }
}

wire_enum! {
    /// Why an assistant message ended.
    StopReason {
        Stop = "stop", Length = "length", ToolUse = "toolUse", Error = "error", Aborted = "aborted",
    }
}

/// Tokens and dollars.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Of `input`, from the cache.
    pub cache_read: u64,
    /// Into the cache.
    pub cache_write: u64,
    /// All of it.
    pub total_tokens: u64,
    /// `cost` in dollars, and what else there is.
    #[serde(flatten)]
    pub extra: Extra,
}

/// A message of the transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "camelCase")]
#[non_exhaustive]
pub enum AgentMessage {
    /// What the user said.
    User(UserMessage),
    /// What the model said.
    Assistant(AssistantMessage),
    /// What a tool answered.
    ToolResult(ToolResultMessage),
    /// A command the user ran.
    BashExecution(BashExecutionMessage),
    /// What an extension put there.
    Custom(CustomMessage),
    /// A branch that was left, in short.
    BranchSummary(BranchSummaryMessage),
    /// The prompt, or a change of it.
    System(SystemMessage),
    /// A role of a later version.
    #[serde(untagged)]
    Other(Value),
}

impl Default for AgentMessage {
    fn default() -> Self {
        AgentMessage::Other(Value::Null)
    }
}

impl AgentMessage {
    /// A message of the user.
    pub fn user(content: impl Into<MessageContent>) -> Self {
        AgentMessage::User(UserMessage { content: content.into(), ..Default::default() })
    }
    /// The role as JSON names it; empty when there is none.
    pub fn role(&self) -> &str {
        match self {
            AgentMessage::User(_) => "user",
            AgentMessage::Assistant(_) => "assistant",
            AgentMessage::ToolResult(_) => "toolResult",
            AgentMessage::BashExecution(_) => "bashExecution",
            AgentMessage::Custom(_) => "custom",
            AgentMessage::BranchSummary(_) => "branchSummary",
            AgentMessage::System(_) => "system",
            AgentMessage::Other(v) => v.get("role").and_then(Value::as_str).unwrap_or_default(),
        }
    }
    /// Its text.
    pub fn plain_text(&self) -> String {
        match self {
            AgentMessage::User(m) => m.content.plain_text(),
            AgentMessage::Assistant(m) => plain_text(&m.content),
            AgentMessage::ToolResult(m) => plain_text(&m.content),
            AgentMessage::BashExecution(m) => m.output.clone(),
            AgentMessage::Custom(m) => m.content.plain_text(),
            AgentMessage::BranchSummary(m) => m.summary.clone(),
            AgentMessage::System(m) => m.content.as_ref().map(MessageContent::plain_text).unwrap_or_default(),
            AgentMessage::Other(_) => String::new(),
        }
    }
    /// The assistant's.
    pub fn as_assistant(&self) -> Option<&AssistantMessage> {
        match self {
            AgentMessage::Assistant(m) => Some(m),
            _ => None,
        }
    }
}

macro_rules! message {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $ty:ty,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $ty,)*
            /// Milliseconds since 1970.
            pub timestamp: i64,
            #[serde(rename = "role", skip_serializing)]
            tag: IgnoredAny,
            /// See [`Extra`].
            #[serde(flatten)]
            pub extra: Extra,
        }
    };
}

message! {
    /// What the user said.
    UserMessage {
        /// Text or blocks.
        content: MessageContent,
    }
}

message! {
    /// What the model said.
    AssistantMessage {
        /// Text, thoughts and tool calls.
        content: Vec<Content>,
        /// The wire format it came by.
        api: String,
        /// Who served it.
        provider: String,
        /// The model's id.
        model: String,
        /// What it cost.
        usage: Usage,
        /// Absent while it streams.
        #[serde(skip_serializing_if = "Option::is_none")]
        stop_reason: Option<StopReason>,
        /// With `error` and `aborted`.
        #[serde(skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    }
}

message! {
    /// What a tool answered.
    ToolResultMessage {
        /// The call.
        tool_call_id: String,
        /// The tool.
        tool_name: String,
        /// What the model reads.
        content: Vec<Content>,
        /// What the user may see.
        #[serde(skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
        /// It failed.
        is_error: bool,
    }
}

message! {
    /// A command the user ran with `!`.
    BashExecutionMessage {
        /// The command.
        command: String,
        /// What it printed, cut.
        output: String,
        /// Absent when it was stopped.
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
        /// Stopped by the user.
        cancelled: bool,
        /// `output` is not all of it.
        truncated: bool,
    }
}

message! {
    /// A message of an extension, in the transcript and, unless excluded, in the context.
    CustomMessage {
        /// The extension's own name for it.
        custom_type: String,
        /// What the model reads.
        content: MessageContent,
        /// Shown to the user.
        display: bool,
        /// For renderers and for later.
        #[serde(skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
    }
}

impl CustomMessage {
    /// Shown to the user.
    pub fn new(custom_type: impl Into<String>, content: impl Into<MessageContent>) -> Self {
        CustomMessage {
            custom_type: custom_type.into(),
            content: content.into(),
            display: true,
            ..Default::default()
        }
    }
    /// Whether it is shown to the user.
    #[must_use]
    pub fn display(mut self, display: bool) -> Self {
        self.display = display;
        self
    }
    /// Data of your own; a value that is no JSON becomes `null`.
    #[must_use]
    pub fn details(mut self, details: impl Serialize) -> Self {
        self.details = serde_json::to_value(details).ok();
        self
    }
}

message! {
    /// A branch that was left, in short.
    BranchSummaryMessage {
        /// What happened there.
        summary: String,
        /// Where it forks.
        from_id: String,
    }
}

/// One step of an assistant message while it streams (events.md G.5).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[allow(missing_docs)]
#[non_exhaustive]
pub enum AssistantMessageEvent {
    /// It begins.
    #[default]
    Start,
    /// A text block begins.
    TextStart { content_index: usize },
    /// More of it.
    TextDelta { content_index: usize, delta: String },
    /// All of it.
    TextEnd { content_index: usize, content: String },
    /// A thought begins.
    ThinkingStart { content_index: usize },
    /// More of it.
    ThinkingDelta { content_index: usize, delta: String },
    /// All of it.
    ThinkingEnd { content_index: usize, content: String },
    /// A tool call begins.
    #[serde(rename = "toolcall_start")]
    ToolCallStart { content_index: usize },
    /// More of its arguments.
    #[serde(rename = "toolcall_delta")]
    ToolCallDelta { content_index: usize, delta: String },
    /// All of it.
    #[serde(rename = "toolcall_end")]
    ToolCallEnd { content_index: usize, tool_call: ToolCallContent },
    /// The message is whole.
    Done { reason: StopReason, message: Box<AssistantMessage> },
    /// It failed.
    Error { reason: StopReason, error: Box<AssistantMessage> },
    /// A step of a later version.
    #[serde(untagged)]
    Other(Value),
}

/// `message_update`: assistant messages only, one step of the stream each, never the whole
/// message. Many a second: prefer `on_sync`. (events.md A.4)
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct MessageUpdatePayload {
    /// The step.
    pub assistant_message_event: AssistantMessageEvent,
}

/// Answer of `message_end`: the message as it is shown, stored and sent. The role must stay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MessageEndAnswer {
    /// The replacement.
    pub message: AgentMessage,
}

impl MessageEndAnswer {
    /// Replaces the message.
    pub fn new(message: AgentMessage) -> Self {
        MessageEndAnswer { message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_message_read_alone_and_put_into_the_enum_is_written_as_it_was() {
        let json = json!({
            "role": "custom", "customType": "note", "content": [{"type": "image", "data": "", "mimeType": "image/png"}],
            "display": true, "timestamp": 3, "laterKey": 1,
        });
        let alone: CustomMessage = serde_json::from_value(json.clone()).unwrap();
        let written = serde_json::to_string(&AgentMessage::Custom(alone)).unwrap();
        assert_eq!(written.matches("role").count(), 1);
        assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), json);
    }

    #[test]
    fn a_role_and_a_block_of_a_later_version_are_carried() {
        for json in
            [json!({"role": "oracle", "says": 1}), json!({"role": "system", "sections": {"a": null}, "x": 1})]
        {
            let message: AgentMessage = serde_json::from_value(json.clone()).unwrap();
            assert_eq!(message.role(), json["role"]);
            assert_eq!(serde_json::to_value(&message).unwrap(), json);
        }
        let block = json!({"type": "hologram", "photons": 3});
        let read: Content = serde_json::from_value(block.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), block);
    }
}
