//! `TestHost`.

use super::{
    desk::{Handler, TestDesk},
    merge::FireResult,
    script::{Dialog, Record},
    step::Step,
};
use crate::{
    abi::{
        instance::Outcome,
        test_host::{Loaded, number},
    },
    error::{Error, Result},
    extension::Activate,
    protocol::{
        Class, EVENTS, EventKind,
        command::Completion,
        exec::{Exec, ExecResult},
        registry::{FlagValue, Phase},
        session::SessionEntry,
        tool::ToolResult,
    },
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// Holds one instance of an extension. See the [module](super).
pub struct TestHost {
    desk: Arc<TestDesk>,
    loaded: Arc<Loaded>,
    /// Calls going on now.
    running: Mutex<BTreeSet<u64>>,
}

/// How an instance ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Nothing is left of it.
    pub clean: bool,
    /// Threads that did not end.
    pub threads: u64,
    /// Futures that could not be dropped.
    pub tasks: u64,
    /// Panics of drops.
    pub note: Option<String>,
}

fn notify_class(event: &str) -> bool {
    EVENTS.iter().any(|row| row.name == event && row.class == Class::Notify)
}

fn decode<T: serde::de::DeserializeOwned + Default>(outcome: Outcome) -> Result<T> {
    #[derive(Deserialize)]
    struct Out<T> {
        result: Option<T>,
    }
    let bytes = outcome?;
    if bytes.is_empty() {
        return Ok(T::default());
    }
    Ok(serde_json::from_slice::<Out<T>>(&bytes)?.result.unwrap_or_default())
}

impl TestHost {
    /// Activates the extension: a `fn` or `async fn`, as `export_extension!` takes it.
    ///
    /// # Panics
    /// When the activation fails, with its error.
    #[track_caller]
    pub fn new<Marker, F: Activate<Marker> + Send>(activate: F) -> TestHost {
        match Self::try_new(activate) {
            Ok(host) => host,
            Err(e) => panic!("the activation failed: {} ({})", e.message, e.code),
        }
    }

    /// The same, for an activation that may fail.
    ///
    /// # Errors
    /// What the activation answered, `panic` when it panicked.
    pub fn try_new<Marker, F: Activate<Marker> + Send>(activate: F) -> Result<TestHost> {
        let desk = Arc::new(TestDesk::default());
        desk.lock().ctx = json!({
            "mode": "tui", "hasUI": true, "cwd": "/project", "isIdle": true, "isProjectTrusted": true,
            "hasPendingMessages": false, "thinkingLevel": "off", "systemPrompt": "", "signalAborted": false,
            "sessionId": "test-session", "sessionDir": "/sessions",
        })
        .as_object()
        .cloned()
        .unwrap_or_default();
        let loaded = Loaded::activate(number(), number(), desk.clone(), move |pi| activate.run(pi))?;
        let loaded = Arc::new(loaded);
        desk.bind(&loaded);
        Ok(TestHost { desk, loaded, running: Mutex::default() })
    }

    async fn run(&self, handler: u64, event: &Value, inline: bool, tool: Option<&str>) -> Outcome {
        let call = number();
        let answer = self.desk.expect(call);
        if let Some(id) = tool {
            self.desk.lock().tool_calls.insert(call, id.to_owned());
        }
        let mut running = Running { host: self, call, open: true };
        self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(call);
        let outcome = match self.loaded.on_event(handler, call, serde_json::to_vec(event)?, inline) {
            Some(outcome) => outcome,
            None => answer.await.unwrap_or_else(|_| Err(Error::new("cancelled", "the call was cancelled"))),
        };
        running.open = false;
        outcome
    }

    fn run_sync(&self, handler: u64, event: &Value) -> Outcome {
        self.loaded.on_sync(handler, number(), serde_json::to_vec(event)?)
    }

    /// Delivers what was emitted on the bus meanwhile; also done after every other step.
    pub fn settle(&self) -> Step<'_, ()> {
        Step::new(self.deliver())
    }
    async fn deliver(&self) {
        loop {
            let next = self.desk.lock().deliveries.pop_front();
            let Some((handler, event)) = next else { return };
            if let Err(e) = self.run(handler, &event, true, None).await {
                let fault = super::Fault { place: "bus".into(), error: e.message };
                self.desk.lock().record.faults.push(fault);
            }
        }
    }

    /// Fires an event with these fields, and merges what the handlers answer.
    pub fn fire<E: EventKind>(&self, event: E, fields: Value) -> Step<'_, FireResult> {
        let name = event.name();
        Step::new(async move {
            let mut object = Map::from_iter([("type".to_owned(), Value::from(name))]);
            object.extend(fields.as_object().cloned().unwrap_or_default());
            let mut result = FireResult { event: Value::Object(object), ..FireResult::default() };
            let mut handlers: Vec<Handler> =
                self.desk.lock().handlers.iter().filter(|h| h.event == name).cloned().collect();
            handlers.sort_by_key(|h| match h.phase {
                Phase::Early => 0,
                Phase::Normal => 1,
                Phase::Late => 2,
            });
            for h in handlers {
                let outcome = if h.sync {
                    self.run_sync(h.handler, &result.event)
                } else {
                    self.run(h.handler, &result.event, notify_class(name), None).await
                };
                if !result.merge(name, outcome) {
                    break;
                }
            }
            self.deliver().await;
            result
        })
    }

    fn handler(&self, list: &str, name: &str, key: &str) -> Result<u64> {
        let inner = self.desk.lock();
        let rows = if list == "tool" { &inner.tools } else { &inner.commands };
        rows.iter()
            .find(|r| r["name"] == name)
            .and_then(|r| r[key].as_u64())
            .ok_or_else(|| Error::new("unknown", format!("the extension registered no {list} `{name}`")))
    }

    /// Calls a tool as the model would, without the check of the arguments against their
    /// schema. An `Err` is what the model would read as the failure.
    pub fn call_tool<'a>(&'a self, name: &'a str, params: Value) -> Step<'a, Result<ToolResult>> {
        Step::new(async move {
            let handler = self.handler("tool", name, "handler")?;
            let id = format!("call-{}", number());
            let cwd = self.desk.lock().ctx.get("cwd").cloned();
            let event = json!({
                "type": "tool_execute", "toolCallId": id, "toolName": name, "params": params, "cwd": cwd,
            });
            let outcome = self.run(handler, &event, false, Some(&id)).await;
            self.deliver().await;
            decode(outcome)
        })
    }

    /// Runs `/name args`.
    pub fn command<'a>(&'a self, name: &'a str, args: &'a str) -> Step<'a, Result<()>> {
        Step::new(async move {
            let handler = self.handler("command", name, "handler")?;
            let event = json!({"type": "command", "name": name, "args": args});
            let outcome = self.run(handler, &event, false, None).await;
            self.deliver().await;
            outcome.map(drop)
        })
    }

    /// Asks a command what it suggests after `/name prefix`.
    pub fn completions<'a>(
        &'a self,
        name: &'a str,
        prefix: &'a str,
    ) -> Step<'a, Result<Option<Vec<Completion>>>> {
        Step::new(async move {
            let handler = self.handler("command", name, "completions")?;
            decode(self.run(handler, &json!({"type": "completions", "prefix": prefix}), false, None).await)
        })
    }

    /// Runs the extension as a program; the answer is its exit code.
    pub fn main<'a>(&'a self, args: &'a [&'a str]) -> Step<'a, Result<i32>> {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Exit {
            exit_code: i32,
        }
        Step::new(async move {
            let main = self.desk.lock().main;
            let handler = main.ok_or_else(|| Error::new("unknown", "the extension is no program"))?;
            let event = json!({"type": "main", "args": args});
            let exit: Exit = decode(self.run(handler, &event, false, None).await)?;
            Ok(exit.exit_code)
        })
    }

    /// Emits on the bus, as another extension would, and delivers.
    pub fn emit<'a>(&'a self, channel: &'a str, data: &'a (impl Serialize + ?Sized)) -> Step<'a, ()> {
        Step::new(async move {
            let data = serde_json::to_value(data).unwrap_or_default();
            self.desk.lock().emit(channel, &data);
            self.deliver().await;
        })
    }

    /// Raises the cancel signal of all that runs, as Escape does first.
    pub fn abort(&self) {
        self.desk.lock().ctx.insert("signalAborted".into(), Value::Bool(true));
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).clone();
        for call in running {
            self.loaded.raise_signal(call);
        }
    }

    /// What a `confirm` answers.
    pub fn on_confirm(&self, f: impl Fn(&Dialog) -> bool + Send + Sync + 'static) {
        self.on_dialog("confirm", move |d| Value::Bool(f(d)));
    }
    /// What a `select` answers.
    pub fn on_select(&self, f: impl Fn(&Dialog) -> Option<String> + Send + Sync + 'static) {
        self.on_dialog("select", move |d| json!(f(d)));
    }
    /// What an `input` answers.
    pub fn on_input(&self, f: impl Fn(&Dialog) -> Option<String> + Send + Sync + 'static) {
        self.on_dialog("input", move |d| json!(f(d)));
    }
    /// What an `editor` answers.
    pub fn on_editor(&self, f: impl Fn(&Dialog) -> Option<String> + Send + Sync + 'static) {
        self.on_dialog("editor", move |d| json!(f(d)));
    }
    fn on_dialog(&self, kind: &'static str, f: impl Fn(&Dialog) -> Value + Send + Sync + 'static) {
        self.desk.lock().script.by_kind.insert(kind, Arc::new(f));
    }
    /// What the next dialog answers, whatever it is: `true`, `"text"`, `Value::Null`.
    /// Several calls make a queue, which comes before the closures.
    pub fn answer_next(&self, answer: impl Into<Value>) {
        self.desk.lock().script.next.push_back(answer.into());
    }
    /// Dialogs that nothing answers stay open until the end, instead of answering their
    /// default at once.
    pub fn leave_dialogs_open(&self) {
        self.desk.lock().script.leave_open = true;
    }
    /// What `exec` answers; without it every program fails to start.
    pub fn on_exec(&self, f: impl Fn(&Exec) -> ExecResult + Send + Sync + 'static) {
        self.desk.lock().script.exec = Some(Arc::new(f));
    }
    /// Sets a member of the context by its TypeScript name: `hasUI`, `mode`, `cwd`,
    /// `isIdle`, `model`, `systemPrompt`, `sessionFile`, …
    pub fn set(&self, member: &str, value: impl Into<Value>) {
        self.desk.lock().ctx.insert(member.to_owned(), value.into());
    }
    /// Gives a flag on the command line.
    pub fn set_flag(&self, name: &str, value: impl Into<FlagValue>) {
        let value = serde_json::to_value(value.into()).unwrap_or_default();
        self.desk.lock().flag_values.insert(name.to_owned(), value);
    }
    /// Puts entries into the session, as they stand in a session file.
    ///
    /// # Panics
    /// When it is no entry.
    #[track_caller]
    pub fn add_entry(&self, entry: Value) {
        match serde_json::from_value(entry) {
            Ok(entry) => self.desk.lock().entries.push(entry),
            Err(e) => panic!("no session entry: {e}"),
        }
    }
    /// The session's entries, those of `pi.append_entry` among them.
    pub fn entries(&self) -> Vec<SessionEntry> {
        self.desk.lock().entries.clone()
    }
    /// The name the extension gave the session.
    pub fn session_name(&self) -> Option<String> {
        self.desk.lock().session_name.clone()
    }
    /// All that the extension has done so far.
    pub fn record(&self) -> Record {
        self.desk.lock().record.clone()
    }
    /// A registered tool, as the host was told: `name`, `parameters`, …
    pub fn tool(&self, name: &str) -> Option<Value> {
        self.desk.lock().tools.iter().find(|t| t["name"] == name).cloned()
    }
    /// A registered command.
    pub fn registered_command(&self, name: &str) -> Option<Value> {
        self.desk.lock().commands.iter().find(|t| t["name"] == name).cloned()
    }
    /// A registered flag.
    pub fn flag(&self, name: &str) -> Option<Value> {
        self.desk.lock().flags.iter().find(|t| t["name"] == name).cloned()
    }

    /// Replaces the generation without telling it: open dialogs close, and from now on
    /// every call of the extension is stale.
    pub fn fence(&self) {
        self.desk.fence();
    }

    /// Ends the extension as a host does: `session_shutdown`, the fence, what still runs
    /// is cancelled, and the instance is dropped. `deadline` is for the last part.
    pub fn close(self, deadline: Duration) -> Step<'static, (FireResult, ShutdownReport)> {
        Step::new(async move {
            let told = self.fire(crate::protocol::SessionShutdown, json!({"reason": "quit"})).await;
            self.desk.fence();
            let ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
            let report = serde_json::from_slice(&self.loaded.shutdown(ms)).unwrap_or_default();
            (told, report)
        })
    }
}

impl Drop for TestHost {
    fn drop(&mut self) {
        self.desk.fence();
    }
}

/// A call that is going on: dropped before its end, it is cancelled.
struct Running<'a> {
    host: &'a TestHost,
    call: u64,
    open: bool,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.host.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.call);
        self.host.desk.forget(self.call);
        if self.open {
            self.host.loaded.cancel(self.call);
        }
    }
}
