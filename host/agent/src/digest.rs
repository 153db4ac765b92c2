//! The part of a view that another process needs to show an engine: small, and whole each time.
//! Entries and tool schemas stay where the engine is.

use crate::{
    compact::CompactReason,
    handle::{Mode, View},
    model::{ModelInfo, ThinkingLevel},
    queue::QueueMode,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;

/// What a front end in another process knows of an engine's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Digest {
    #[serde(with = "crate::lossy_path")]
    pub cwd: PathBuf,
    pub mode: Mode,
    pub has_ui: bool,
    pub project_trusted: bool,
    pub session_id: String,
    #[serde(with = "crate::lossy_path::option")]
    pub session_file: Option<PathBuf>,
    #[serde(with = "crate::lossy_path")]
    pub session_dir: PathBuf,
    pub session_name: Option<String>,
    pub leaf_id: Option<String>,
    pub model: Option<ModelInfo>,
    pub thinking: ThinkingLevel,
    pub active_tools: Vec<String>,
    pub idle: bool,
    pub pending_messages: usize,
    pub queue_paused: bool,
    pub steering_mode: QueueMode,
    pub follow_up_mode: QueueMode,
    pub auto_retry: bool,
    pub compacting: Option<CompactReason>,
    pub auto_compaction: bool,
}

impl Digest {
    pub fn of(view: &View) -> Self {
        Digest {
            cwd: view.cwd.clone(),
            mode: view.mode,
            has_ui: view.has_ui,
            project_trusted: view.project_trusted,
            session_id: view.session_id.clone(),
            session_file: view.session_file.clone(),
            session_dir: view.session_dir.clone(),
            session_name: view.session_name.clone(),
            leaf_id: view.leaf_id.clone(),
            model: view.model.clone(),
            thinking: view.thinking,
            active_tools: view.active_tools.clone(),
            idle: view.idle,
            pending_messages: view.pending_messages,
            queue_paused: view.queue_paused,
            steering_mode: view.steering_mode,
            follow_up_mode: view.follow_up_mode,
            auto_retry: view.auto_retry,
            compacting: view.compacting,
            auto_compaction: view.auto_compaction,
        }
    }

    /// A view with nothing in the places that do not travel.
    pub fn into_view(self) -> View {
        View {
            cwd: self.cwd,
            mode: self.mode,
            has_ui: self.has_ui,
            project_trusted: self.project_trusted,
            session_id: self.session_id,
            session_file: self.session_file,
            session_dir: self.session_dir,
            session_name: self.session_name,
            header: Value::Null,
            entries: Vec::new(),
            leaf_id: self.leaf_id,
            model: self.model,
            thinking: self.thinking,
            tools: Vec::new(),
            active_tools: self.active_tools,
            idle: self.idle,
            pending_messages: self.pending_messages,
            queue_paused: self.queue_paused,
            steering_mode: self.steering_mode,
            follow_up_mode: self.follow_up_mode,
            auto_retry: self.auto_retry,
            lent: Vec::new(),
            compacting: self.compacting,
            auto_compaction: self.auto_compaction,
            system_prompt: String::new(),
            signal: None,
        }
    }
}
