//! What passes between `atomic` and the engine it supervises: one JSON object a line, each way,
//! over the engine's stdin and stdout. The first line each way is a hello with the protocol's
//! number; nothing of it is inherited by the engine's children.

use crate::{card::Card, said::Said};
use atomic_agent::{
    digest::Digest,
    event::Event,
    handle::Mode,
    hooks::{CommandInfo, StartReason},
    lossy_path,
    op::{Op, OpError},
    prompt::lent::LentCommand,
};
use atomic_extensions::LoadedInfo;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// Of this wire. The two sides are one program, so another number is a program that was replaced
/// while it ran.
pub const PROTOCOL: u32 = 2;
/// One line.
pub const LIMIT: usize = 64 * 1024 * 1024;

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "frame", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ToEngine {
    Hello(Box<Hello>),
    /// Answered by `FromEngine::Answer` with its id.
    Op {
        id: u64,
        op: Op,
    },
    /// Nobody waits for an answer.
    Post {
        op: Op,
    },
}

/// All that an engine is told beside the command line, which it has itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    pub protocol: u32,
    pub version: String,
    pub mode: Mode,
    pub has_ui: bool,
    /// Where the breadcrumb page goes.
    #[serde(with = "lossy_path::option")]
    pub page: Option<PathBuf>,
    /// What `-e` names, crates built.
    pub extensions: Vec<PathBuf>,
    /// Left out until the next `/reload`.
    pub skip: Vec<String>,
    /// Load nothing at all: the last resort.
    pub bare: bool,
    pub reason: StartReason,
    /// This session rather than the command line's.
    #[serde(with = "lossy_path::option")]
    pub session: Option<PathBuf>,
    /// With a copy of this one.
    #[serde(with = "lossy_path::option")]
    pub fork: Option<PathBuf>,
    /// An engine ran before: what the command line says of sessions was for that one.
    pub again: bool,
    /// From the engine before: what the user had switched on.
    pub active_tools: Option<Vec<String>>,
    /// What somebody answered the engine before about the project.
    pub trusted: Option<bool>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "frame", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum FromEngine {
    Hello {
        protocol: u32,
        version: String,
    },
    /// It does not start. Nothing follows.
    Refused {
        card: Card,
    },
    /// It runs; its events follow.
    Ready {
        view: Box<Digest>,
        catalogue: Catalogue,
        warnings: Vec<Card>,
        /// What is left of the command line to say.
        messages: Vec<Said>,
        /// The session is not a new one.
        resumed: Option<Resumed>,
    },
    View {
        view: Box<Digest>,
    },
    Catalogue {
        catalogue: Catalogue,
    },
    Event {
        event: Box<Event>,
    },
    Answer {
        id: u64,
        ok: Option<Value>,
        error: Option<OpError>,
    },
    /// It holds more of what cannot be given back than it should (boundary.md 11).
    Tired {
        why: String,
        /// What must end before it can be replaced; empty: now is a good moment.
        postponed: Vec<String>,
        /// Over twice its budget.
        badly: bool,
    },
    /// In order, after everything else.
    Bye,
}

/// What a session that goes on is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resumed {
    pub name: Option<String>,
    /// Of the user and of the model.
    pub messages: usize,
    /// What the user said last.
    pub last: Option<String>,
}

/// What is loaded, for lists and for reading what the user types.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Catalogue {
    pub commands: Vec<CommandInfo>,
    /// Prompt templates and skills.
    pub lent: Vec<LentCommand>,
    pub extensions: Vec<LoadedInfo>,
    /// What cannot be given back.
    pub graves: Option<String>,
    /// What somebody has answered about the project, for an engine that comes after this one.
    pub trusted: Option<bool>,
}

impl Catalogue {
    /// Those of extensions first; the others are named after whose they are.
    pub fn all_commands(&self) -> Vec<CommandInfo> {
        let lent = self.lent.iter().map(|c| CommandInfo {
            name: c.name.clone(),
            description: Some(c.description.clone()),
            extension: c.source_info.scope.clone(),
            path: c.source_info.path.clone(),
        });
        self.commands.iter().cloned().chain(lent).collect()
    }
}
