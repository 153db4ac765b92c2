//! Renderers and shortcuts: what an extension draws, and the keys it takes (events.md E.1).

use crate::{
    abi::instance::Handler,
    context::Context,
    error::Result,
    extension::Extension,
    protocol::{
        message::CustomMessage,
        render::{MarkdownOptions, RenderOptions, Rendering},
        session::SessionEntry,
    },
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RegisterRenderer<'a> {
    kind: &'a str,
    custom_type: &'a str,
    handler: u64,
}

#[derive(Serialize)]
struct RegisterHandler {
    handler: u64,
}

#[derive(Deserialize)]
struct Render<T> {
    value: T,
    #[serde(default)]
    options: RenderOptions,
}

#[derive(Deserialize)]
struct Transform {
    markdown: String,
    #[serde(default)]
    options: MarkdownOptions,
}

#[derive(Serialize)]
struct Out<T> {
    result: T,
}

impl Extension {
    /// Draws messages of this custom type. The first registration of a type wins. It runs in
    /// the engine, not where the terminal is drawn; one that fails is as if it were not there.
    pub fn register_message_renderer(
        &self,
        custom_type: &str,
        f: impl Fn(&CustomMessage, &RenderOptions) -> Result<Rendering> + Send + Sync + 'static,
    ) {
        let handler = self.add(Handler::Sync(Arc::new(move |event, _| {
            let call: Render<CustomMessage> = serde_json::from_slice(event.json())?;
            Ok(serde_json::to_vec(&Out { result: f(&call.value, &call.options)? })?)
        })));
        self.registered(
            self.call.tell("renderers.register", &RegisterRenderer { kind: "message", custom_type, handler }),
        );
    }

    /// Draws `custom` entries of this type, which are not shown otherwise. First wins.
    pub fn register_entry_renderer(
        &self,
        custom_type: &str,
        f: impl Fn(&SessionEntry, &RenderOptions) -> Result<Rendering> + Send + Sync + 'static,
    ) {
        let handler = self.add(Handler::Sync(Arc::new(move |event, _| {
            let call: Render<SessionEntry> = serde_json::from_slice(event.json())?;
            Ok(serde_json::to_vec(&Out { result: f(&call.value, &call.options)? })?)
        })));
        self.registered(
            self.call.tell("renderers.register", &RegisterRenderer { kind: "entry", custom_type, handler }),
        );
    }

    /// Changes markdown before it is drawn, and nothing else of it. One an extension, the last
    /// replaces; those of all extensions form a chain in load order, and one that fails leaves
    /// the text as it was.
    pub fn register_markdown_transformer(
        &self,
        f: impl Fn(String, &MarkdownOptions) -> Result<String> + Send + Sync + 'static,
    ) {
        let handler = self.add(Handler::Sync(Arc::new(move |event, _| {
            let call: Transform = serde_json::from_slice(event.json())?;
            Ok(serde_json::to_vec(&Out { result: f(call.markdown, &call.options)? })?)
        })));
        self.registered(self.call.tell("markdown.register", &RegisterHandler { handler }));
    }
}

/// A key of the keyboard that does something. [`Shortcut::new`] begins one; `run` or `run_sync`
/// ends it.
#[must_use = "a shortcut ends with `.run(..)`"]
pub struct Shortcut {
    key: String,
    description: Option<String>,
    prefer_editor: bool,
    keybinding: Option<String>,
    run: Option<Handler>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RegisterShortcut<'a> {
    key: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    prefer_editor: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    keybinding: Option<&'a str>,
    handler: u64,
}

impl Shortcut {
    /// `ctrl+shift+p`, …
    pub fn new(key: impl Into<String>) -> Self {
        Shortcut { key: key.into(), description: None, prefer_editor: false, keybinding: None, run: None }
    }
    /// For lists.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }
    /// The editor's own meaning of the key wins while it has the focus.
    pub fn prefer_editor(mut self) -> Self {
        self.prefer_editor = true;
        self
    }
    /// The id under which the user can choose another key.
    pub fn keybinding(mut self, id: impl Into<String>) -> Self {
        self.keybinding = Some(id.into());
        self
    }
    /// What it does.
    #[cfg(feature = "tokio")]
    pub fn run<F, Fut>(mut self, f: F) -> Self
    where
        F: FnOnce(Context) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.run = Some(Handler::Async(Arc::new(move |_, call| {
            let f = f.clone();
            Box::pin(async move { f(Context::new(call)).await.map(|()| Vec::new()) })
        })));
        self
    }
    /// What it does, without waiting.
    pub fn run_sync(mut self, f: impl Fn(&Context) -> Result<()> + Send + Sync + 'static) -> Self {
        self.run = Some(Handler::Sync(Arc::new(move |_, call| f(&Context::new(call)).map(|()| Vec::new()))));
        self
    }
}

impl Extension {
    /// Takes a key. Keys the program cannot do without are refused with a warning; of two
    /// extensions the last in load order wins (events.md I.5).
    pub fn register_shortcut_with(&self, shortcut: Shortcut) {
        let Some(run) = shortcut.run else {
            return self.registered(Err(crate::Error::new(
                "bad_request",
                format!("shortcut `{}` has no `.run(..)`", shortcut.key),
            )));
        };
        let handler = self.add(run);
        let body = RegisterShortcut {
            key: &shortcut.key,
            description: shortcut.description.as_deref(),
            prefer_editor: shortcut.prefer_editor,
            keybinding: shortcut.keybinding.as_deref(),
            handler,
        };
        self.registered(self.call.tell("shortcuts.register", &body));
    }

    /// The same, with a handler alone.
    #[cfg(feature = "tokio")]
    pub fn register_shortcut<F, Fut>(&self, key: &str, f: F)
    where
        F: FnOnce(Context) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.register_shortcut_with(Shortcut::new(key).run(f));
    }
}
