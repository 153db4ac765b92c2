//! The operations of the host, as a test needs them: recorded, scripted, answered at once.

use super::script::{Dialog, Ending, Record, Script, default_of};
use crate::{
    abi::{
        frozen::Caller,
        instance::Outcome,
        test_host::{Back, Desk, Loaded, Service},
    },
    error::{Error, Result},
    protocol::{
        exec::{Exec, ExecResult},
        registry::Phase,
        session::SessionEntry,
        tool::ToolResult,
    },
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};
use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};
use tokio::sync::oneshot;

#[derive(Clone, Deserialize)]
pub(super) struct Handler {
    pub event: String,
    pub handler: u64,
    pub sync: bool,
    pub phase: Phase,
}

struct Open {
    op: String,
    back: Back,
}

#[derive(Default)]
pub(super) struct Inner {
    pub handlers: Vec<Handler>,
    pub tools: Vec<Value>,
    pub commands: Vec<Value>,
    pub flags: Vec<Value>,
    pub flag_values: Map<String, Value>,
    pub main: Option<u64>,
    pub record: Record,
    pub script: Script,
    pub ctx: Map<String, Value>,
    pub entries: Vec<SessionEntry>,
    pub labels: BTreeMap<String, String>,
    pub session_name: Option<String>,
    pub active_tools: Option<Vec<String>>,
    /// Running calls of tools, by the model's id.
    pub tool_calls: HashMap<u64, String>,
    /// `activate` has returned and there is a session.
    pub bound: bool,
    /// The generation has been replaced.
    pub fenced: bool,
    /// Calls whose own request has replaced their generation: their context is stale.
    stale: HashSet<(u64, u64)>,
    subscribers: Vec<(u64, String, u64)>,
    pub deliveries: VecDeque<(u64, Value)>,
    open: Vec<Open>,
    waiting: HashMap<u64, oneshot::Sender<Outcome>>,
    pub services: Vec<Provided>,
    pub state: BTreeMap<String, (u64, Value)>,
    next: u64,
    loaded: Weak<Loaded>,
}

pub(super) struct Provided {
    token: u64,
    pub key: String,
    pub major: u32,
    pub scope: String,
    pub version: String,
    service: u64,
}

#[derive(Default)]
pub(super) struct TestDesk(Mutex<Inner>);

fn parse<T: DeserializeOwned>(op: &str, body: &[u8]) -> Result<T> {
    let body = if body.is_empty() { b"{}".as_slice() } else { body };
    serde_json::from_slice(body).map_err(|e| Error::new("bad_request", format!("{op}: {e}")))
}

pub(super) fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

pub(super) fn bytes(value: &Value) -> Outcome {
    Ok(serde_json::to_vec(value)?)
}

const DONE: Outcome = Ok(Vec::new());

impl TestDesk {
    pub(super) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
    pub(super) fn bind(&self, loaded: &Arc<Loaded>) {
        let mut inner = self.lock();
        inner.bound = true;
        inner.loaded = Arc::downgrade(loaded);
    }
    /// Who waits for the outcome of this call.
    pub(super) fn expect(&self, call: u64) -> oneshot::Receiver<Outcome> {
        let (tx, rx) = oneshot::channel();
        self.lock().waiting.insert(call, tx);
        rx
    }
    pub(super) fn forget(&self, call: u64) {
        self.lock().waiting.remove(&call);
    }
    /// Open requests end: dialogs with their default, others stale; new ones are stale.
    pub(super) fn fence(&self) {
        let open = {
            let mut inner = self.lock();
            inner.fenced = true;
            std::mem::take(&mut inner.open)
        };
        for Open { op, back } in open {
            back.answer(match op.strip_prefix("ui.") {
                Some(kind) => bytes(&default_of(kind)),
                None => Err(Error::stale()),
            });
        }
    }
    fn admit(&self, caller: Caller) -> Result<MutexGuard<'_, Inner>> {
        let inner = self.lock();
        let stale = inner.stale.contains(&(caller.generation, caller.call));
        if inner.fenced || stale { Err(Error::stale()) } else { Ok(inner) }
    }

    fn dialog(
        &self,
        mut inner: MutexGuard<'_, Inner>,
        kind: &str,
        body: &[u8],
        back: Back,
    ) -> Option<Outcome> {
        let mut dialog: Dialog = match parse(kind, body) {
            Ok(d) => d,
            Err(e) => return Some(Err(e)),
        };
        kind.clone_into(&mut dialog.kind);
        inner.record.dialogs.push(dialog.clone());
        match inner.script.ending(kind) {
            Ending::Answered(value) => Some(bytes(&value)),
            Ending::Asked(f) => {
                // The test's closure may look at the host.
                drop(inner);
                Some(bytes(&f(&dialog)))
            }
            Ending::Open => {
                inner.open.push(Open { op: format!("ui.{kind}"), back });
                None
            }
        }
    }
}

impl Inner {
    pub fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
    fn bound(&self) -> Result<()> {
        if self.bound {
            return Ok(());
        }
        Err(Error::new("not_available", "there is no session yet: call this from session_start or later"))
    }
    fn ctx_get(&self, member: &str) -> Result<Value> {
        self.bound()?;
        Ok(self.ctx.get(member).cloned().unwrap_or(Value::Null))
    }
    fn session_get(&self, body: &Value) -> Result<Value> {
        self.bound()?;
        let id = body["id"].as_str();
        let entry = |id: Option<&str>| self.entries.iter().find(|e| Some(e.id.as_str()) == id);
        Ok(match body["member"].as_str().unwrap_or_default() {
            "leafId" => json!(self.entries.last().map(|e| &e.id)),
            "leafEntry" => json!(self.entries.last()),
            "entry" => json!(entry(id)),
            "entries" => json!(self.entries),
            "branch" => {
                let until =
                    body["fromId"].as_str().and_then(|id| self.entries.iter().position(|e| e.id == id));
                json!(&self.entries[..until.map_or(self.entries.len(), |i| i + 1)])
            }
            "label" => json!(id.and_then(|id| self.labels.get(id))),
            "sessionName" => json!(self.session_name),
            member => self.ctx.get(member).cloned().unwrap_or(Value::Null),
        })
    }
    fn tool_names(&self) -> Vec<String> {
        self.tools.iter().map(|t| text(t, "name")).collect()
    }
    fn register(list: &mut Vec<Value>, item: Value) {
        list.retain(|old| old["name"] != item["name"]);
        list.push(item);
    }
    fn append(&mut self, kind: &str, fields: Value) -> String {
        let id = format!("{:08x}", self.number());
        let parent_id = self.entries.last().map(|e| e.id.clone());
        let fields = fields.as_object().cloned().unwrap_or_default();
        let timestamp = "2026-01-01T00:00:00.000Z".to_owned();
        self.entries.push(SessionEntry {
            kind: kind.to_owned(),
            id: id.clone(),
            parent_id,
            timestamp,
            fields,
        });
        id
    }

    fn call(&mut self, caller: Caller, op: &str, body: &[u8]) -> Outcome {
        let v: Value = parse(op, body)?;
        match op {
            "handlers.add" => self.handlers.push(parse(op, body)?),
            "tools.register" => Self::register(&mut self.tools, v),
            "commands.register" => Self::register(&mut self.commands, v),
            "flags.register" => Self::register(&mut self.flags, v),
            "main.register" => self.main = v["handler"].as_u64(),
            "flags.get" => {
                let flag = self.flags.iter().find(|f| f["name"] == v["name"]);
                let value = flag.map(|f| self.flag_values.get(&text(f, "name")).unwrap_or(&f["default"]));
                return bytes(value.unwrap_or(&Value::Null));
            }
            "tool.update" => {
                let update: ToolResult = parse(op, body)?;
                let id = self.tool_calls.get(&caller.call).cloned().unwrap_or_default();
                self.record.updates.push((id, update));
            }
            "ui.notify" => self.record.notices.push(parse(op, body)?),
            "ui.setStatus" => {
                let key = text(&v, "key");
                match v["text"].as_str() {
                    Some(t) => self.record.status.insert(key, t.to_owned()),
                    None => self.record.status.remove(&key),
                };
            }
            "ui.setTitle" => self.record.title = Some(text(&v, "title")),
            "ctx.get" => return bytes(&self.ctx_get(v["member"].as_str().unwrap_or_default())?),
            "session.get" => return bytes(&self.session_get(&v)?),
            "tools.getActive" => {
                self.bound()?;
                return bytes(&json!(self.active_tools.clone().unwrap_or_else(|| self.tool_names())));
            }
            "tools.getAll" => {
                self.bound()?;
                return bytes(&json!(self.tools));
            }
            "commands.getAll" => {
                self.bound()?;
                let list = self.commands.iter().map(
                    |c| json!({"name": c["name"], "description": c["description"], "source": "extension"}),
                );
                return bytes(&list.collect());
            }
            "events.on" => {
                let id = self.number();
                let handler = v["handler"].as_u64().unwrap_or_default();
                self.subscribers.push((id, text(&v, "channel"), handler));
                return bytes(&json!({ "id": id }));
            }
            "events.off" => self.subscribers.retain(|(id, ..)| Some(*id) != v["id"].as_u64()),
            "events.emit" => self.emit(&text(&v, "channel"), &v["data"]),
            "tables.provide" => {
                let token = self.number();
                let (key, scope) = (text(&v, "key"), text(&v, "scope"));
                self.services.retain(|s| (&s.key, &s.scope) != (&key, &scope));
                self.services.push(Provided {
                    token,
                    key,
                    scope,
                    major: u32::try_from(v["major"].as_u64().unwrap_or_default()).unwrap_or_default(),
                    version: text(&v, "version"),
                    service: v["service"].as_u64().unwrap_or_default(),
                });
                return bytes(&json!({ "token": token }));
            }
            "tables.withdraw" => {
                let before = self.services.len();
                self.services.retain(|s| Some(s.token) != v["token"].as_u64());
                return bytes(&json!(self.services.len() < before));
            }
            "ctx.abort" => self.record.aborts += 1,
            "ctx.shutdown" => self.record.shutdowns += 1,
            "log" => self.record.logs.push(parse(op, body)?),
            _ => return self.more(op, v),
        }
        DONE
    }

    pub(super) fn emit(&mut self, channel: &str, data: &Value) {
        self.record.emitted.push((channel.to_owned(), data.clone()));
        let event = json!({"type": "bus", "channel": channel, "data": data});
        let to = self.subscribers.iter().filter(|(_, c, _)| c == channel);
        self.deliveries.extend(to.map(|(_, _, handler)| (*handler, event.clone())));
    }

    fn request(&mut self, caller: Caller, op: &str, body: &[u8]) -> Outcome {
        if op != "sleep" {
            self.bound()?;
        }
        let v: Value = parse(op, body)?;
        match op {
            "sleep" | "waitForIdle" => {}
            "sendMessage" => self.record.messages.push(parse(op, body)?),
            "sendUserMessage" => self.record.user_messages.push(parse(op, body)?),
            "appendEntry" => {
                let id = self.append("custom", v);
                return bytes(&json!({ "entryId": id }));
            }
            "setSessionName" => {
                self.session_name = Some(text(&v, "name").trim().to_owned()).filter(|n| !n.is_empty());
            }
            "setLabel" => {
                let id = text(&v, "entryId");
                if !self.entries.iter().any(|e| e.id == id) {
                    return Err(Error::new("bad_request", format!("no entry `{id}`")));
                }
                match v["label"].as_str() {
                    Some(label) => self.labels.insert(id, label.to_owned()),
                    None => self.labels.remove(&id),
                };
            }
            "setModel" => {
                let model = json!({"provider": v["provider"], "id": v["model"]});
                self.ctx.insert("model".into(), model);
                return bytes(&json!(true));
            }
            "setThinkingLevel" => {
                self.ctx.insert("thinkingLevel".into(), v["level"].clone());
            }
            "setActiveTools" => self.active_tools = Some(serde_json::from_value(v["names"].clone())?),
            "reload" => {
                self.stale.insert((caller.generation, caller.call));
                self.record.reloads.push(serde_json::from_value(v["names"].clone()).unwrap_or_default());
                return bytes(&json!({"extensions": [], "notes": []}));
            }
            "newSession" => {
                self.stale.insert((caller.generation, caller.call));
                self.record.new_sessions += 1;
                let generation = crate::abi::test_host::number();
                return bytes(&json!({"cancelled": false, "generation": generation}));
            }
            _ => return self.more_requests(op, v),
        }
        DONE
    }
}

impl Desk for TestDesk {
    fn call(&self, caller: Caller, op: &str, body: &[u8]) -> Outcome {
        // A fault is told whenever it happens, most of all while an instance goes.
        if op == "fault" {
            self.lock().record.faults.push(parse(op, body)?);
            return DONE;
        }
        self.admit(caller)?.call(caller, op, body)
    }

    fn request(&self, caller: Caller, back: Back, op: &str, body: &[u8]) -> Option<Outcome> {
        let mut inner = match self.admit(caller) {
            Ok(inner) => inner,
            Err(e) => return Some(Err(e)),
        };
        if let Some(kind) = op.strip_prefix("ui.") {
            if let Err(e) = inner.bound() {
                return Some(Err(e));
            }
            return self.dialog(inner, kind, body, back);
        }
        if op == "exec" {
            let exec: Exec = match parse(op, body) {
                Ok(exec) => exec,
                Err(e) => return Some(Err(e)),
            };
            inner.record.execs.push(exec.clone());
            let f = inner.script.exec.clone();
            drop(inner);
            let result = match f {
                Some(f) => f(&exec),
                None => {
                    let mut result = ExecResult::new("", 1);
                    result.stderr = format!("`{}`: the test has no `on_exec`", exec.command);
                    result
                }
            };
            return Some(serde_json::to_vec(&result).map_err(Error::from));
        }
        Some(inner.request(caller, op, body))
    }

    fn cancelled(&self, ticket: u64) {
        let mut inner = self.lock();
        if let Some(at) = inner.open.iter().position(|o| o.back.ticket == ticket) {
            let Open { op, back } = inner.open.remove(at);
            inner.record.cancelled.push(op);
            drop(inner);
            drop(back);
        }
    }

    fn completed(&self, call: u64, outcome: Outcome) {
        let waiting = self.lock().waiting.remove(&call);
        if let Some(tx) = waiting {
            let _ = tx.send(outcome);
        }
    }

    fn lookup(&self, key: &str, major: u32, scope: &str) -> Result<Arc<dyn Service>> {
        let inner = self.lock();
        let named = || inner.services.iter().filter(|s| s.key == key && s.scope == scope);
        match named().find(|s| s.major == major) {
            Some(s) => Ok(Arc::new(Found {
                loaded: inner.loaded.clone(),
                service: s.service,
                version: s.version.clone(),
            })),
            None => Err(match named().next() {
                Some(s) => Error::new(
                    "wrong_version",
                    format!("`{key}` is provided in version {}, not in {major}", s.version),
                ),
                None => Error::new("no_provider", format!("nobody provides `{key}`")),
            }),
        }
    }
}

struct Found {
    loaded: Weak<Loaded>,
    service: u64,
    version: String,
}

impl Service for Found {
    fn live(&self) -> bool {
        self.loaded.strong_count() > 0
    }
    fn call(&self, op: &str, body: &[u8]) -> Outcome {
        match self.loaded.upgrade() {
            Some(loaded) => loaded.service_call(self.service, op, body),
            None => Err(Error::new("retired", "the provider is gone")),
        }
    }
    fn describe(&self) -> Vec<u8> {
        let info = json!({"provider": "test", "version": self.version, "generation": 1});
        serde_json::to_vec(&info).unwrap_or_default()
    }
}
