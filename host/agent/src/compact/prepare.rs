//! What a compaction would work on (events.md D.3): the region that can be condensed, the tail
//! that stays. Read from a session, which is not changed.

use super::{
    estimate, ranges,
    settings::{CompactionSettings, Parameters},
    transcript::{self, Transcript},
};
use crate::{
    message::Message,
    session::{Session, Shown},
};
use serde::Serialize;
use std::{collections::BTreeMap, ops::ControlFlow};

/// A smaller region is not worth a planner.
pub const LEAST_LINES: usize = 20;

/// events.md D.3. Line numbers are 1-based.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Region {
    pub lines: Vec<String>,
    pub header_line_numbers: Vec<usize>,
    /// What old markers stand for.
    pub prior_marker_ns: BTreeMap<usize, u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub protected_line_numbers: Vec<usize>,
    pub token_estimate: u64,
}

impl Region {
    fn new(transcript: Transcript) -> Self {
        let Transcript { lines, headers, protected, .. } = transcript;
        // With the line breaks between them.
        let chars = lines.iter().map(|l| l.chars().count() + 1).sum::<usize>().saturating_sub(1);
        let markers = lines.iter().enumerate().filter_map(|(at, l)| Some((at + 1, ranges::marker(l)?)));
        Region {
            prior_marker_ns: markers.collect(),
            header_line_numbers: headers,
            protected_line_numbers: protected,
            token_estimate: estimate::tokens_of_chars(chars),
            lines,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preparation {
    /// Where the exact tail begins; `None`: it is empty.
    pub first_kept_entry_id: Option<String>,
    pub region: Region,
    pub region_entry_ids: Vec<String>,
    pub kept_tail_message_count: usize,
    /// Of the whole context.
    pub tokens_before: u64,
    pub parameters: Parameters,
    pub settings: CompactionSettings,
    /// Of the tail alone.
    #[serde(skip)]
    pub tail_tokens: u64,
    /// The place in the session where this was read.
    #[serde(skip)]
    pub leaf: Option<String>,
}

/// `None`: nothing is in the region.
pub fn prepare(
    session: &Session,
    parameters: Parameters,
    settings: CompactionSettings,
) -> Option<Preparation> {
    let context = session.condensable();
    let shown = &context.shown;
    let kept = usize::try_from(parameters.preserve_recent).unwrap_or(usize::MAX);
    let tail = tail_start(shown, kept);
    let mut transcript = Transcript::default();
    if let Some(summary) = &context.summary {
        transcript.push_summary(summary);
    }
    let mut region_entry_ids = Vec::new();
    for one in &shown[..tail] {
        if transcript.push(&one.message) {
            region_entry_ids.push(one.entry_id.clone());
        }
    }
    if transcript.lines.is_empty() {
        return None;
    }
    let tail_messages: Vec<&Shown> = shown[tail..].iter().filter(|s| transcript::tells(&s.message)).collect();
    Some(Preparation {
        first_kept_entry_id: tail_messages.first().map(|s| s.entry_id.clone()),
        region: Region::new(transcript),
        region_entry_ids,
        kept_tail_message_count: tail_messages.len(),
        tokens_before: tokens(session),
        tail_tokens: tail_messages.iter().map(|s| estimate::tokens_of(&s.message)).sum(),
        parameters,
        settings,
        leaf: session.leaf_id().map(str::to_owned),
    })
}

/// The newest so many that a model is told anything of.
fn tail_start(shown: &[Shown], kept: usize) -> usize {
    let mut left = kept;
    let mut start = shown.len();
    while left > 0 && start > 0 {
        start -= 1;
        left -= usize::from(transcript::tells(&shown[start].message));
    }
    start
}

/// What the next request is taken for: what a model counted last, and an estimate of what came
/// since. What it counted before a compaction is gone.
pub fn tokens(session: &Session) -> u64 {
    let mut sum = 0u64;
    let summary = session.visit_back(|message, fresh| {
        if let Some(counted) = message.as_assistant().filter(|_| fresh).and_then(estimate::counted) {
            sum = sum.saturating_add(counted);
            return ControlFlow::Break(());
        }
        sum = sum.saturating_add(estimate::tokens_of(message));
        ControlFlow::Continue(())
    });
    // Where nobody counted, what is left of earlier compactions has its share.
    sum.saturating_add(summary.as_deref().map_or(0, estimate::tokens_of_text))
}

/// The last words of the user.
pub fn last_user_text(session: &Session) -> Option<String> {
    let mut found = None;
    session.visit_back(|message, _| {
        if let Message::User(m) = message {
            found = Some(m.content.plain_text()).filter(|t| !t.trim().is_empty());
        }
        if found.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    found
}
