//! Services that extensions offer each other through tables of the host (boundary.md
//! "Shared tables"): one call, on the caller's thread, a value in and a value out.

use crate::{
    abi::instance::{Call, Outcome, Row},
    error::{Error, Result},
    extension::Extension,
    protocol::registry::{Provide, ServiceInfo, Token},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use std::collections::BTreeMap;

type Op = Box<dyn Fn(&[u8]) -> Outcome + Send + Sync>;
type Fallback = Box<dyn Fn(&str, &[u8]) -> Outcome + Send + Sync>;

/// A service in the making, for [`Extension::provide`]. Operations run on the thread of
/// whoever calls, without a runtime: they must not wait.
#[must_use = "give it to `pi.provide`"]
pub struct Service {
    key: String,
    major: u32,
    version: Option<String>,
    scope: Option<String>,
    ops: BTreeMap<String, Op>,
    fallback: Option<Fallback>,
}

impl Service {
    /// `key` names the contract (`pi-subagents.background-work`), `major` its version:
    /// a caller of another major does not find it.
    pub fn new(key: impl Into<String>, major: u32) -> Self {
        Service { key: key.into(), major, version: None, scope: None, ops: BTreeMap::new(), fallback: None }
    }
    /// Semver; default `MAJOR.0.0`.
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.version = Some(version.into());
        self
    }
    /// For services that must stand side by side.
    pub fn scope(mut self, scope: impl Into<String>) -> Self {
        self.scope = Some(scope.into());
        self
    }
    /// One operation.
    pub fn op<T, R, F>(mut self, name: impl Into<String>, f: F) -> Self
    where
        T: DeserializeOwned,
        R: Serialize,
        F: Fn(T) -> Result<R> + Send + Sync + 'static,
    {
        let op = move |body: &[u8]| Ok(serde_json::to_vec(&f(serde_json::from_slice(body)?)?)?);
        self.ops.insert(name.into(), Box::new(op));
        self
    }
    /// All operations that have no closure of their own, undecoded.
    pub fn raw(mut self, f: impl Fn(&str, &[u8]) -> Result<Vec<u8>> + Send + Sync + 'static) -> Self {
        self.fallback = Some(Box::new(f));
        self
    }
}

/// What was provided: it goes with `withdraw`, or with the generation. Dropping it
/// withdraws nothing.
pub struct ServiceToken {
    call: Call,
    token: Value,
    service: u64,
}

impl ServiceToken {
    /// Takes the service back; false when a later one of this extension has replaced it.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn withdraw(self) -> Result<bool> {
        let gone = self.call.get("tables.withdraw", &Token { token: self.token })?;
        self.call.state.drop_service(self.service);
        Ok(gone)
    }
}

/// A service of an extension, found with [`Extension::lookup`]. It may be kept: once its
/// provider is gone every call fails and no code of it runs.
#[derive(Clone)]
pub struct ServiceHandle(Row);

impl ServiceHandle {
    /// One operation.
    ///
    /// # Errors
    /// `retired` once the provider is gone, `unsupported` for an unknown operation, and
    /// what the operation itself answers.
    pub fn call<T: Serialize + ?Sized, R: DeserializeOwned>(&self, op: &str, body: &T) -> Result<R> {
        self.0.call(op, &serde_json::to_vec(body)?, |reply| {
            let reply = if reply.is_empty() { b"null".as_slice() } else { reply };
            serde_json::from_slice(reply)
                .map_err(|e| Error::new("malformed", format!("answer of `{op}`: {e}")))
        })
    }
    /// The provider's generation lives.
    pub fn is_live(&self) -> bool {
        self.0.live()
    }
    /// Who provides it.
    pub fn describe(&self) -> ServiceInfo {
        serde_json::from_slice(&self.0.describe()).unwrap_or_default()
    }
}

impl Extension {
    /// Offers a service to other extensions. The same key and scope again replaces it.
    ///
    /// # Errors
    /// `stale_context`, `bad_request` for a version that is no semver of the major.
    pub fn provide(&self, service: Service) -> Result<ServiceToken> {
        let Service { key, major, version, scope, ops, fallback } = service;
        let index = self.call.state.add_service(Box::new(move |op, body| match (ops.get(op), &fallback) {
            (Some(f), _) => f(body),
            (None, Some(f)) => f(op, body),
            (None, None) => Err(Error::new("unsupported", format!("no operation `{op}`"))),
        }));
        let version = version.unwrap_or_else(|| format!("{major}.0.0"));
        let body = Provide { key: &key, major, version: &version, scope: scope.as_deref(), service: index };
        match self.call.get::<Token>("tables.provide", &body) {
            Ok(Token { token }) => Ok(ServiceToken { call: self.call.clone(), token, service: index }),
            Err(e) => {
                self.call.state.drop_service(index);
                Err(e)
            }
        }
    }

    /// Finds a service of this major.
    ///
    /// # Errors
    /// When nobody provides it, or only another major; the error names both parties.
    pub fn lookup(&self, key: &str, major: u32) -> Result<ServiceHandle> {
        Ok(ServiceHandle(self.call.lookup(key, major, "")?))
    }

    /// The same, in a scope.
    ///
    /// # Errors
    /// As [`Extension::lookup`].
    pub fn lookup_in(&self, scope: &str, key: &str, major: u32) -> Result<ServiceHandle> {
        Ok(ServiceHandle(self.call.lookup(key, major, scope)?))
    }
}
