//! An event as its handler sees it: fields are decoded when they are read, and what is
//! changed is kept aside until the handler has returned.

mod edit;
mod views;

pub use edit::Edit;

use crate::{
    abi::instance::{EventRef, Outcome},
    error::{Error, Result},
    protocol::{Answer, EventKind},
};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{
    marker::PhantomData,
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

/// What a handler was called for. The small fields of the event are fields of this
/// (`event.reason`, `event.turn_index`), the big ones are methods. Nothing is decoded
/// until something is read. Cheap to clone.
pub struct Event<E: EventKind> {
    inner: Arc<Inner>,
    payload: OnceLock<E::Payload>,
    kind: PhantomData<E>,
}

struct Inner {
    event: EventRef,
    edits: Mutex<Edits>,
}

#[derive(Default)]
struct Edits {
    /// The new value of the event's patch member.
    patch: Option<Box<RawValue>>,
    guard_alive: bool,
    /// Turns the handler's answer into an error: a gate that misread its event must not pass.
    fault: Option<Error>,
}

impl Inner {
    fn edits(&self) -> MutexGuard<'_, Edits> {
        self.edits.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn fault(&self, error: Error) {
        self.edits().fault.get_or_insert(error);
    }
}

impl<E: EventKind> Clone for Event<E> {
    fn clone(&self) -> Self {
        Event { inner: self.inner.clone(), payload: OnceLock::new(), kind: PhantomData }
    }
}

impl<E: EventKind> Deref for Event<E> {
    type Target = E::Payload;
    fn deref(&self) -> &E::Payload {
        self.payload()
    }
}

impl<E: EventKind> Event<E> {
    pub(crate) fn new(event: EventRef) -> Self {
        let inner = Arc::new(Inner { event, edits: Mutex::default() });
        Event { inner, payload: OnceLock::new(), kind: PhantomData }
    }

    /// The small fields. An event that does not have the shape it should have shows
    /// defaults here, and the handler's answer becomes the error `malformed`.
    pub fn payload(&self) -> &E::Payload {
        self.payload.get_or_init(|| match serde_json::from_slice(self.json()) {
            Ok(p) => p,
            Err(e) => {
                self.inner.fault(Error::new("malformed", format!("event {}: {e}", E::NAME)));
                E::Payload::default()
            }
        })
    }

    /// The whole event as it came, JSON in UTF-8: `{"type": name, …}`. Edits of this
    /// handler are not in it.
    pub fn json(&self) -> &[u8] {
        self.inner.event.json()
    }

    /// The whole event as a type of your own.
    ///
    /// # Errors
    /// When it has another shape.
    pub fn decode<'a, T: Deserialize<'a>>(&'a self) -> Result<T> {
        Ok(serde_json::from_slice(self.json())?)
    }

    /// One field of the event; `None` when it is absent or null. Other fields cost nothing.
    ///
    /// # Errors
    /// When it has another shape.
    pub fn field<'a, T: Deserialize<'a>>(&'a self, name: &str) -> Result<Option<T>> {
        let mut de = serde_json::Deserializer::from_slice(self.json());
        let found = Field { name, found: PhantomData }
            .deserialize(&mut de)
            .map_err(|e| Error::new("malformed", format!("event {}, field `{name}`: {e}", E::NAME)))?;
        Ok(found)
    }

    /// The patch member as this handler left it.
    fn current<T: for<'a> Deserialize<'a>>(&self) -> Result<Option<T>> {
        if let Some(patch) = &self.inner.edits().patch {
            return Ok(serde_json::from_str(patch.get())?);
        }
        self.field(E::PATCH)
    }

    fn patch(&self, value: &impl serde::Serialize) -> Result<()> {
        let raw = serde_json::value::to_raw_value(value)?;
        let mut edits = self.inner.edits();
        if edits.guard_alive {
            return Err(busy());
        }
        edits.patch = Some(raw);
        Ok(())
    }
}

fn busy() -> Error {
    Error::new("busy", "the event is being edited: drop the guard of the first edit before the next")
}

/// What a handler leaves behind for the end of its call.
pub(crate) struct Trail(Arc<Inner>);

impl<E: EventKind> Event<E> {
    pub(crate) fn trail(&self) -> Trail {
        Trail(self.inner.clone())
    }
}

impl Trail {
    /// `{"result"?, "patch"?}`, empty for no opinion.
    pub(crate) fn outcome<E: EventKind>(self, answer: Result<E::Answer>) -> Outcome {
        #[derive(serde::Serialize)]
        struct Out<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            result: Option<Box<RawValue>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            patch: Option<std::collections::BTreeMap<&'a str, Box<RawValue>>>,
        }
        let result = answer?.into_json()?;
        let edits = std::mem::take(&mut *self.0.edits());
        if let Some(fault) = edits.fault {
            return Err(fault);
        }
        if edits.guard_alive {
            return Err(Error::new("busy", "the handler returned while the event was still being edited"));
        }
        if result.is_none() && edits.patch.is_none() {
            return Ok(Vec::new());
        }
        let patch = edits.patch.map(|p| [(E::PATCH, p)].into());
        Ok(serde_json::to_vec(&Out { result, patch })?)
    }
}

/// Reads one field and skips the others without building them.
struct Field<'n, T> {
    name: &'n str,
    found: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for Field<'_, T> {
    type Value = Option<T>;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Option<T>, D::Error> {
        d.deserialize_map(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Field<'_, T> {
    type Value = Option<T>;
    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an event")
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Option<T>, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            if key == self.name {
                found = map.next_value()?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}
