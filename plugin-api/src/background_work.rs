//! The shared table `pi-subagents.background-work.v1`: who has work going on that a session
//! should wait for (boundary.md "Shared tables"). A provider is one row, its scope its name, so
//! that any number stand side by side in all sessions of the process.

use crate::{
    error::{Error, Result},
    extension::Extension,
    service::{Service, ServiceToken},
};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Name of the table.
pub const TABLE: &str = "pi-subagents.background-work";
/// Its major version.
pub const VERSION: u32 = 1;
/// Providers there may be at once; replacing one is always allowed.
pub const MAX_PROVIDERS: usize = 100;
/// Pieces of work one provider may list.
pub const MAX_ITEMS: usize = 10_000;

/// One piece of work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WorkItem {
    /// Unique within its provider and session.
    pub id: String,
    /// Whose it is: providers serve all sessions of the process.
    pub session_id: String,
}

impl WorkItem {
    /// Of this session.
    pub fn new(id: impl Into<String>, session_id: impl Into<String>) -> Self {
        WorkItem { id: id.into(), session_id: session_id.into() }
    }
}

/// A piece of work and whose it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListedWork {
    /// Name of the provider.
    pub provider: String,
    /// Its id there.
    pub id: String,
    /// The session.
    pub session_id: String,
}

/// What is going on in one session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkSnapshot {
    /// All that were asked, in the order they were provided.
    pub providers: Vec<String>,
    /// What they listed for the session.
    pub items: Vec<ListedWork>,
}

/// When a provider is to look whether what it lists is still so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reconcile {
    /// The session that asks.
    pub session_id: String,
    /// Milliseconds since 1970.
    pub now_ms: i64,
}

type List = Box<dyn Fn() -> Result<Vec<WorkItem>> + Send + Sync>;
type Look = Box<dyn Fn(Reconcile) -> Result<()> + Send + Sync>;

/// A provider in the making. Its closures run on the thread of whoever asks and must not wait.
#[must_use = "give it to `pi.provide_background_work`"]
pub struct BackgroundWork {
    name: String,
    wake_channels: Vec<String>,
    list: List,
    reconcile: Option<Look>,
}

impl BackgroundWork {
    /// `list` answers what is going on now, in all sessions.
    pub fn new(
        name: impl Into<String>,
        list: impl Fn() -> Result<Vec<WorkItem>> + Send + Sync + 'static,
    ) -> Self {
        BackgroundWork { name: name.into(), wake_channels: Vec::new(), list: Box::new(list), reconcile: None }
    }
    /// A channel of the event bus that says: look again.
    pub fn wake_channel(mut self, channel: impl Into<String>) -> Self {
        self.wake_channels.push(channel.into());
        self
    }
    /// Asked before `list`.
    pub fn reconcile(mut self, f: impl Fn(Reconcile) -> Result<()> + Send + Sync + 'static) -> Self {
        self.reconcile = Some(Box::new(f));
        self
    }
}

fn word(what: &str, text: &str, max: usize) -> Result<()> {
    let bad = text.is_empty() || text.trim() != text || text.contains('\0') || text.chars().count() > max;
    if bad {
        return Err(Error::new(
            "bad_request",
            format!("{what} {text:?}: 1 to {max} characters, without spaces at its ends"),
        ));
    }
    Ok(())
}

fn checked(provider: &str, items: &[WorkItem]) -> Result<()> {
    if items.len() > MAX_ITEMS {
        return Err(Error::new("malformed", format!("{provider} lists more than {MAX_ITEMS} items")));
    }
    let mut seen = HashSet::new();
    for item in items {
        word("id", &item.id, 256)?;
        word("sessionId", &item.session_id, 256)?;
        if !seen.insert(item) {
            return Err(Error::new("malformed", format!("{provider} lists {:?} twice", item.id)));
        }
    }
    Ok(())
}

impl Extension {
    /// Offers a provider of background work. The same name again replaces it at once.
    ///
    /// # Errors
    /// `bad_request` for a name or channel that is none, `too_many` beyond
    /// [`MAX_PROVIDERS`], `stale_context`.
    pub fn provide_background_work(&self, work: BackgroundWork) -> Result<ServiceToken> {
        let BackgroundWork { name, wake_channels, list, reconcile } = work;
        word("provider name", &name, 128)?;
        let mut distinct = HashSet::new();
        for channel in &wake_channels {
            word("wake channel", channel, 256)?;
            if !distinct.insert(channel) {
                return Err(Error::new("bad_request", format!("wake channel {channel:?} twice")));
            }
        }
        let known = self.list_services(TABLE, VERSION)?;
        if known.len() >= MAX_PROVIDERS && !known.iter().any(|s| s.scope == name) {
            return Err(Error::new("too_many", format!("there are {MAX_PROVIDERS} providers already")));
        }
        let service = Service::new(TABLE, VERSION)
            .scope(name)
            .op("wakeChannels", move |(): ()| Ok(wake_channels.clone()))
            .op("reconcile", move |at: Reconcile| reconcile.as_ref().map_or(Ok(()), |f| f(at)))
            .op("listActiveWork", move |(): ()| list());
        self.provide(service)
    }

    /// Names of all providers, in the order they were provided.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn list_background_providers(&self) -> Result<Vec<String>> {
        Ok(self.list_services(TABLE, VERSION)?.into_iter().map(|s| s.scope).collect())
    }

    /// Channels that say: look again. Asks nobody what is going on.
    ///
    /// # Errors
    /// Names the provider that failed.
    pub fn list_wake_channels(&self) -> Result<Vec<String>> {
        let mut all = Vec::new();
        for name in self.list_background_providers()? {
            let channels: Vec<String> = self.asked(&name, "wakeChannels", &())?;
            all.extend(channels.into_iter().filter(|c| !all.contains(c)).collect::<Vec<_>>());
        }
        Ok(all)
    }

    /// What is going on in a session. One provider that fails or answers nonsense fails all of
    /// it: work that nobody knows of must not look finished.
    ///
    /// # Errors
    /// Names the provider, and which step of it failed.
    pub fn background_work_snapshot(&self, session_id: &str, now_ms: i64) -> Result<WorkSnapshot> {
        let mut snapshot = WorkSnapshot { providers: self.list_background_providers()?, items: Vec::new() };
        for name in &snapshot.providers {
            let at = Reconcile { session_id: session_id.to_owned(), now_ms };
            self.asked::<_, ()>(name, "reconcile", &at)?;
            let items: Vec<WorkItem> = self.asked(name, "listActiveWork", &())?;
            checked(name, &items).map_err(|e| failed(name, "listActiveWork", &e))?;
            let own = items.into_iter().filter(|i| i.session_id == session_id);
            snapshot.items.extend(own.map(|i| ListedWork {
                provider: name.clone(),
                id: i.id,
                session_id: i.session_id,
            }));
        }
        Ok(snapshot)
    }

    fn asked<T: Serialize, R: serde::de::DeserializeOwned>(
        &self,
        name: &str,
        op: &str,
        body: &T,
    ) -> Result<R> {
        let answer = self.lookup_in(name, TABLE, VERSION).and_then(|service| service.call(op, body));
        answer.map_err(|e| failed(name, op, &e))
    }
}

fn failed(name: &str, phase: &str, e: &Error) -> Error {
    Error::new(e.code.clone(), format!("background work of {name}: {phase}: {}", e.message))
}
