//! What outlives a generation: state of the session, and reasons to keep the engine
//! (events.md E.1 `sessionScopedExtensionState`, boundary.md 11).

use crate::{
    abi::instance::Call,
    error::{Error, Result},
    extension::Extension,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::marker::PhantomData;

#[derive(Serialize)]
struct Key<'a> {
    key: &'a str,
}

#[derive(Serialize)]
struct Put<'a, T: Serialize + ?Sized> {
    key: &'a str,
    value: &'a T,
    /// Only over this revision.
    revision: u64,
}

/// A value, and how often it has been written; 0: never.
#[derive(Deserialize)]
struct Found {
    revision: u64,
    #[serde(default)]
    value: Value,
}

/// A value that all extensions of a session share by its key. It survives `/reload` and goes
/// with the session. Kept as JSON: the next generation may be other code.
pub struct SessionState<T> {
    call: Call,
    key: String,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for SessionState<T> {
    fn clone(&self) -> Self {
        SessionState { call: self.call.clone(), key: self.key.clone(), value: PhantomData }
    }
}

impl<T: Serialize + DeserializeOwned> SessionState<T> {
    fn found(&self) -> Result<Found> {
        self.call.get("state.get", &Key { key: &self.key })
    }
    /// False: somebody else wrote since.
    fn put(&self, value: &T, revision: u64) -> Result<bool> {
        self.call.get("state.put", &Put { key: &self.key, value, revision })
    }
    /// As it is now.
    ///
    /// # Errors
    /// `stale_context`; `malformed` when it is no `T`.
    pub fn get(&self) -> Result<T> {
        let found = self.found()?;
        serde_json::from_value(found.value)
            .map_err(|e| Error::new("malformed", format!("session state `{}`: {e}", self.key)))
    }
    /// Replaces it.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn set(&self, value: &T) -> Result<()> {
        loop {
            if self.put(value, self.found()?.revision)? {
                return Ok(());
            }
        }
    }
    /// Changes it as one step, also when others do the same at once: `f` may run again.
    ///
    /// # Errors
    /// `stale_context`; `malformed` when it is no `T`.
    pub fn update<R>(&self, mut f: impl FnMut(&mut T) -> R) -> Result<R> {
        loop {
            let Found { revision, value } = self.found()?;
            let mut value: T = serde_json::from_value(value)
                .map_err(|e| Error::new("malformed", format!("session state `{}`: {e}", self.key)))?;
            let answer = f(&mut value);
            if self.put(&value, revision)? {
                return Ok(answer);
            }
        }
    }
}

/// While it lives the engine is not replaced by a fresh one in the background; what the user
/// asks for happens all the same. Dropping it releases; so does the end of the generation.
#[must_use = "dropping it releases it"]
pub struct KeepAlive {
    call: Call,
    id: u64,
}

#[derive(Serialize)]
struct Hold<'a> {
    reason: &'a str,
}

#[derive(Serialize, Deserialize)]
struct Held {
    id: u64,
}

impl Drop for KeepAlive {
    fn drop(&mut self) {
        // Stale: released already.
        let _ = self.call.tell("keepAlive.release", &Held { id: self.id });
    }
}

impl Extension {
    /// State of the session under a key, made by `create` at its first use. Keys are shared by
    /// all extensions: begin yours with your name.
    ///
    /// # Errors
    /// `stale_context`; `malformed` when another extension keeps something else under the key.
    pub fn session_scoped_extension_state<T: Serialize + DeserializeOwned>(
        &self,
        key: &str,
        create: impl FnOnce() -> T,
    ) -> Result<SessionState<T>> {
        let state = SessionState { call: self.call.clone(), key: key.to_owned(), value: PhantomData };
        if state.found()?.revision == 0 {
            // Somebody else may be first; then his value stays.
            let _ = state.put(&create(), 0)?;
        }
        state.get()?;
        Ok(state)
    }

    /// Keeps the engine from being replaced in the background while the guard lives: for work
    /// that a new process would not know of. The reason is shown to the user.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn keep_alive(&self, reason: &str) -> Result<KeepAlive> {
        let Held { id } = self.call.get("keepAlive.hold", &Hold { reason })?;
        Ok(KeepAlive { call: self.call.clone(), id })
    }
}
