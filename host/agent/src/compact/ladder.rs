//! From a preparation to the text that stands for its region (events.md D.7): what an extension
//! gave; else a planner's, the session's model first and then those that stand in for it; else,
//! where the run cannot go on without it, nothing of the region at all.

use super::{
    ask::{Asking, ask},
    estimate,
    planner::{self, Question},
    prepare::{LEAST_LINES, Preparation},
    ranges::{self, Reconstructed},
    settings::CompactReason,
};
use crate::{
    core::Core,
    faults::{self, Fault},
    message::{AssistantMessage, Content, Message, StopReason, Usage, now_ms},
    model::{Model, ModelInfo, ModelRequest, ThinkingLevel},
};
use serde::Serialize;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Rung {
    Extension,
    Planned,
    Fresh,
}

/// What a region came to.
#[derive(Clone, Debug)]
pub struct Condensed {
    pub text: String,
    pub rung: Rung,
    pub lines_deleted: usize,
    pub lines_kept: usize,
    pub range_count: usize,
    /// `provider/id`.
    pub planner: Option<String>,
    /// Of all attempts.
    pub usage: Usage,
    /// The exact tail goes too: it alone is more than the model takes.
    pub without_tail: bool,
}

impl Condensed {
    fn new(done: Reconstructed, rung: Rung, of: &Preparation) -> Self {
        Condensed {
            lines_kept: of.region.lines.len() - done.lines_deleted,
            text: done.text,
            rung,
            lines_deleted: done.lines_deleted,
            range_count: done.range_count,
            planner: None,
            usage: Usage::default(),
            without_tail: false,
        }
    }

    /// As it was given.
    pub fn of_extension(text: String, of: &Preparation) -> Self {
        let (before, lines) = (of.region.lines.len(), text.split('\n').count());
        Condensed {
            text,
            rung: Rung::Extension,
            lines_deleted: before.saturating_sub(lines),
            lines_kept: lines,
            range_count: 0,
            planner: None,
            usage: Usage::default(),
            without_tail: false,
        }
    }

    /// Nothing of it is left.
    pub fn fresh(of: &Preparation, window: u64) -> Self {
        let lines = of.region.lines.len();
        let all = ranges::reconstruct(&of.region.lines, &[1..=lines], &of.region.prior_marker_ns, &[]);
        let without_tail = window > 0 && of.tail_tokens > window;
        Condensed { without_tail, ..Condensed::new(all, Rung::Fresh, of) }
    }
}

/// Why no planner's text came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unplanned {
    Aborted,
    /// For a person.
    Failed(String),
}

pub(super) struct Ladder<'c> {
    pub core: &'c Core,
    pub reason: CompactReason,
    /// The run cannot go on without it.
    pub load_bearing: bool,
    pub cancel: &'c CancellationToken,
}

impl Ladder<'_> {
    pub async fn climb(&self, of: &Preparation) -> Result<Condensed, Unplanned> {
        let mut usage = Usage::default();
        // A planner is not asked about a handful of lines.
        let small = of.region.lines.len() < LEAST_LINES;
        let planned = match small {
            true => Err(Unplanned::Failed("the region is too small for a planner".to_owned())),
            false => self.planned(of, &mut usage).await,
        };
        let done = match planned {
            Ok(done) => Ok(done),
            Err(Unplanned::Failed(_)) if self.load_bearing => {
                let window = self.core.state().model.as_ref().map_or(0, |m| m.info().context_window);
                Ok(Condensed::fresh(of, window))
            }
            Err(why) => Err(why),
        };
        done.map(|done| Condensed { usage, ..done })
    }

    /// The first attempt that succeeds.
    async fn planned(&self, of: &Preparation, usage: &mut Usage) -> Result<Condensed, Unplanned> {
        let mut why = "no model is selected".to_owned();
        for model in self.models(of) {
            match self.attempt(&*model, of, usage).await {
                Err(Unplanned::Failed(said)) => why = format!("{}: {said}", name(model.info())),
                done => return done,
            }
        }
        Err(Unplanned::Failed(why))
    }

    /// Each once, in their order.
    fn models(&self, of: &Preparation) -> Vec<Arc<dyn Model>> {
        let of_session = self.core.state().model.clone();
        let chosen = of.settings.planner.as_ref();
        let chosen = chosen.and_then(|(provider, id)| self.core.models.get(provider, id));
        let settings = self.core.recovery_settings();
        let fallbacks = settings.fallbacks.iter().filter_map(|(p, id)| self.core.models.get(p, id));
        let mut models: Vec<Arc<dyn Model>> = Vec::new();
        for model in chosen.or(of_session).into_iter().chain(fallbacks) {
            if !models.iter().any(|m| name(m.info()) == name(model.info())) {
                models.push(model);
            }
        }
        models
    }

    async fn attempt(
        &self,
        model: &dyn Model,
        of: &Preparation,
        usage: &mut Usage,
    ) -> Result<Condensed, Unplanned> {
        let region = &of.region;
        let (lines, protected) = (&region.lines, region.protected_line_numbers.as_slice());
        let mut first = 1;
        loop {
            let shown = lines.len() + 1 - first;
            let safe = protected.iter().filter(|l| **l >= first).count();
            if safe == shown {
                return Err(Unplanned::Failed(match first {
                    1 => "every line is protected".to_owned(),
                    _ => "no part of the region fits into it".to_owned(),
                }));
            }
            let keep = planner::keep_target(shown, of.parameters.compression_ratio, safe);
            let question = Question { lines, first, protected, keep, query: &of.parameters.query }.text();
            // The oldest half goes unseen, and again, until the rest fits.
            let half = first + shown.div_ceil(2);
            if room(model.info()).is_some_and(|room| estimate::tokens_of_text(&question) > room) {
                first = half;
                continue;
            }
            let request = request(self.core, question);
            let asking = Asking { source: "compaction", reason: Some(self.reason) };
            let Some(answer) = ask(self.core, model, request, asking, self.cancel).await else {
                return Err(Unplanned::Aborted);
            };
            add(usage, &answer.usage);
            if faults::of(&answer) == Some(Fault::Overflow) {
                first = half;
                continue;
            }
            let mut records = records(&answer).map_err(Unplanned::Failed)?;
            if first > 1 {
                records.push((1, first as u64 - 1));
            }
            let deleted = ranges::usable(&records, lines.len(), protected);
            if deleted.is_empty() {
                return Err(Unplanned::Failed("it named no line that can be deleted".to_owned()));
            }
            let done = ranges::reconstruct(lines, &deleted, &region.prior_marker_ns, protected);
            let planner = Some(name(model.info()));
            return Ok(Condensed { planner, ..Condensed::new(done, Rung::Planned, of) });
        }
    }
}

pub(super) fn name(info: &ModelInfo) -> String {
    format!("{}/{}", info.provider, info.id)
}

/// Tokens of a question that leave it something to answer with. `None`: nobody knows.
fn room(info: &ModelInfo) -> Option<u64> {
    let window = info.context_window;
    (window > 0).then(|| window - (window / 4).min(16_384))
}

fn request(core: &Core, question: String) -> ModelRequest {
    ModelRequest {
        system_prompt: planner::SYSTEM.to_owned(),
        messages: vec![Message::user(question, now_ms())],
        tools: Vec::new(),
        thinking: ThinkingLevel::Off,
        max_tokens: None,
        session_id: core.handle.view(|v| v.session_id.clone()),
    }
}

fn records(answer: &AssistantMessage) -> Result<Vec<ranges::Record>, String> {
    if answer.failed() {
        return Err(answer.error_message.clone().unwrap_or_else(|| "it gave no answer".to_owned()));
    }
    if answer.stop_reason == Some(StopReason::ToolUse) {
        return Err("it called a tool".to_owned());
    }
    let text: String = answer.content.iter().filter_map(Content::as_text).collect();
    planner::read(&text, answer.stop_reason)
}

fn add(sum: &mut Usage, usage: &Usage) {
    sum.input += usage.input;
    sum.output += usage.output;
    sum.cache_read += usage.cache_read;
    sum.cache_write += usage.cache_write;
    sum.total_tokens += estimate::total(usage);
    sum.cost.input += usage.cost.input;
    sum.cost.output += usage.cost.output;
    sum.cost.cache_read += usage.cost.cache_read;
    sum.cost.cache_write += usage.cost.cache_write;
    sum.cost.total += usage.cost.total;
}
