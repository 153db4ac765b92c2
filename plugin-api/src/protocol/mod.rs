//! What crosses between an extension and its host, one file per capability: event
//! payloads, answers, requests and replies. All of it is JSON on the way, in the names of
//! the TypeScript API (camelCase there, snake_case here); keys and values of a later
//! version are kept or skipped, never an error.

/// A string with known values; a later version may add some, which arrive as `Other`.
macro_rules! wire_enum {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $text:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $(#[doc = concat!("`", $text, "`")] $variant,)*
            /// A value of a later version.
            Other(String),
        }
        impl $name {
            /// As it is written in JSON.
            pub fn as_str(&self) -> &str {
                match self { $(Self::$variant => $text,)* Self::Other(s) => s }
            }
        }
        impl Default for $name {
            fn default() -> Self { Self::from([$($text),*][0]) }
        }
        impl From<&str> for $name {
            fn from(s: &str) -> Self {
                match s { $($text => Self::$variant,)* other => Self::Other(other.to_owned()) }
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(self.as_str()) }
        }
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(self.as_str())
            }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                Ok(Self::from(<std::borrow::Cow<'de, str>>::deserialize(d)?.as_ref()))
            }
        }
    };
}

pub mod agent;
pub mod bash;
pub mod before;
pub mod boundary;
pub mod builtin;
mod class;
pub mod command;
pub mod compaction;
pub mod context;
pub mod delivery;
pub mod events;
pub mod exec;
pub mod input;
pub mod message;
pub mod provider;
pub mod recovery;
pub mod registry;
pub mod render;
pub mod session;
pub mod system;
mod table;
pub mod tool;
pub mod trust;
pub mod turn;
pub mod ui;
pub mod workflow;
pub mod workflow_events;

use crate::error::Result;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;

/// An event that `pi.on` can name.
pub trait EventKind: Copy + Send + Sync + 'static {
    /// As the TypeScript API names it.
    const NAME: &'static str;
    /// The member that handlers may change (events.md J.2 N1).
    #[doc(hidden)]
    const PATCH: &'static str = "";
    /// The small fields, which `Event` shows as its own; big ones have methods.
    type Payload: DeserializeOwned + Default + Send + Sync + 'static;
    /// What a handler may return: `()`, or an `Option` whose `None` is "no opinion".
    type Answer: Answer;
    /// `NAME`, or what `Raw` was made with.
    fn name(&self) -> &'static str {
        Self::NAME
    }
}

/// What a handler returns.
pub trait Answer: Send + 'static {
    #[doc(hidden)]
    fn into_json(self) -> Result<Option<Box<RawValue>>>;
}

impl Answer for () {
    fn into_json(self) -> Result<Option<Box<RawValue>>> {
        Ok(None)
    }
}

impl<T: Serialize + Send + 'static> Answer for Option<T> {
    fn into_json(self) -> Result<Option<Box<RawValue>>> {
        Ok(match self {
            Some(v) => Some(serde_json::value::to_raw_value(&v)?),
            None => None,
        })
    }
}

/// Events without fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
pub struct NoPayload {}

pub use class::Class;
pub use table::*;

/// Any event by its name, also one this version does not know: that is accepted and
/// never fires (events.md U4). Fields are a JSON value, the answer is JSON too.
#[derive(Clone, Copy, Debug)]
pub struct Raw(
    /// The event's name.
    pub &'static str,
);

impl EventKind for Raw {
    const NAME: &'static str = "";
    type Payload = serde_json::Value;
    type Answer = Option<serde_json::Value>;
    fn name(&self) -> &'static str {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_a_later_version_is_kept_as_it_was_written() {
        let reason: session::StartReason = serde_json::from_str("\"recycled\"").unwrap();
        assert_eq!(reason, session::StartReason::Other("recycled".into()));
        assert_eq!(serde_json::to_string(&reason).unwrap(), "\"recycled\"");
    }
}
