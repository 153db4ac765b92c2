//! The guard of an edit: reads like the type, and writes back when it goes.

use super::{Event, Inner, busy};
use crate::{
    error::{Error, Result},
    protocol::EventKind,
    tool::lenient,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};
use std::{
    ops::{Deref, DerefMut},
    sync::Arc,
};

/// A typed view of what an event lets its handlers change. What is changed through it
/// crosses back when the handler has returned; a handler that fails or is cancelled
/// changes nothing. It may be held over an `.await`. One at a time: asking for a second
/// while this one lives fails the handler, as does one that outlives it.
pub struct Edit<T: Serialize> {
    value: T,
    /// As it was, from the first `DerefMut` on.
    before: Option<Box<RawValue>>,
    inner: Arc<Inner>,
}

impl<E: EventKind> Event<E> {
    pub(super) fn edit<T: Serialize + DeserializeOwned>(&self) -> Result<Edit<T>> {
        // Taken before the value is read: between the two, another thread could write.
        if std::mem::replace(&mut self.inner.edits().guard_alive, true) {
            return Err(busy());
        }
        let value = self.current::<Value>().and_then(|v| match v {
            Some(v) => lenient(&v).map_err(|e| Error::new("malformed", e)),
            None => Err(Error::new("malformed", format!("event {} has no `{}`", E::NAME, E::PATCH))),
        });
        match value {
            Ok(value) => Ok(Edit { value, before: None, inner: self.inner.clone() }),
            Err(e) => {
                self.inner.edits().guard_alive = false;
                Err(e)
            }
        }
    }

    /// For accessors that answer no `Result`: the handler fails in their stead.
    pub(super) fn edit_or_fault<T: Serialize + DeserializeOwned>(&self, what: &str) -> Option<Edit<T>> {
        match self.edit() {
            Ok(edit) => Some(edit),
            Err(e) => {
                self.inner.fault(Error::new(&e.code, format!("{what}: {}", e.message)));
                None
            }
        }
    }
}

impl<T: Serialize> Deref for Edit<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Serialize> DerefMut for Edit<T> {
    fn deref_mut(&mut self) -> &mut T {
        if self.before.is_none() {
            // A value that cannot be written now cannot be written later either; the
            // drop says so. `null` differs from every argument object.
            self.before = Some(to_raw_value(&self.value).unwrap_or_default());
        }
        &mut self.value
    }
}

impl<T: Serialize> Drop for Edit<T> {
    fn drop(&mut self) {
        let after = self.before.take().map(|before| (before, to_raw_value(&self.value)));
        let mut edits = self.inner.edits();
        edits.guard_alive = false;
        match after {
            Some((before, Ok(after))) if before.get() != after.get() => edits.patch = Some(after),
            Some((_, Err(e))) => {
                edits
                    .fault
                    .get_or_insert(Error::new("malformed", format!("the edited value is no JSON: {e}")));
            }
            _ => {}
        }
    }
}
