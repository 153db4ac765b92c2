//! One compaction from its first event to its last (events.md C.1, D): asked of the hooks,
//! planned, written, told. Nothing is written before all of it is there.

use super::{
    backup, estimate,
    ladder::{Condensed, Ladder, Unplanned, name},
    planner::PROMPT_VERSION,
    prepare::{self, LEAST_LINES, Preparation},
    settings::{CompactOptions, CompactReason},
};
use crate::{
    core::Core,
    decisions::{BeforeEvent, RoomEvent, SessionBefore},
    event::Event,
    hooks::Notice,
    message::Usage,
    op::OpError,
    session::VERBATIM,
};
use serde_json::{Map, Value, json};
use std::{path::PathBuf, sync::Arc};
use tokio_util::sync::CancellationToken;

const TOO_SMALL: &str = "Nothing to compact (session too small)";
const NO_TEXT: &str = "No compacted text provided by extension";
const NO_MODEL: &str = "no model is selected that could say which lines to keep";

/// How a compaction ended.
#[derive(Clone, Debug)]
pub(super) enum Landing {
    /// It is written. `tokens`: what the next request is taken for.
    Done {
        result: Value,
        tokens: u64,
    },
    /// There was nothing to do, and nobody was told.
    Nothing,
    Aborted,
    Failed(String),
}

pub(super) struct Flight<'c> {
    pub core: &'c Arc<Core>,
    pub reason: CompactReason,
    /// Between two requests of one run.
    pub mid_turn: bool,
    /// The run cannot go on without it.
    pub load_bearing: bool,
    pub cancel: CancellationToken,
    /// Cuts short what is told about an end that somebody wanted.
    pub closing: CancellationToken,
}

/// What an operation that somebody waits for answers.
pub(super) async fn asked_for(
    core: &Arc<Core>,
    options: CompactOptions,
    cancel: CancellationToken,
    closing: CancellationToken,
) -> Result<Value, OpError> {
    let reason = CompactReason::Manual;
    let flight = Flight { core, reason, mid_turn: false, load_bearing: false, cancel, closing };
    match flight.fly(&options).await {
        Landing::Done { result, .. } => Ok(result),
        Landing::Aborted => Err(OpError::new("compact_cancelled", "The compaction was cancelled.")),
        Landing::Nothing => Err(OpError::new("compact_failed", TOO_SMALL)),
        Landing::Failed(why) => Err(OpError::new("compact_failed", why)),
    }
}

/// How an attempt ended before its last events.
enum Ended {
    Aborted,
    Failed(String),
}

impl Flight<'_> {
    pub async fn fly(&self, options: &CompactOptions) -> Landing {
        let asked_for = self.reason == CompactReason::Manual;
        let prepared = self.prepare(options);
        if prepared.is_none() && !asked_for {
            return Landing::Nothing;
        }
        self.tell_start().await;
        let mut from_extension = false;
        let done = match prepared {
            None => Err(Ended::Failed(TOO_SMALL.to_owned())),
            Some(preparation) => self.condense(&preparation, &mut from_extension).await,
        };
        match done {
            Ok((entry, result, parameters)) => {
                let told = json!({"reason": self.reason, "parameters": parameters, "result": result,
                    "compactionEntry": *entry, "fromExtension": from_extension});
                self.tell(RoomEvent::SessionCompact, told).await;
                self.tell_end(Some(&result), false, None).await;
                let tokens = prepare::tokens(&self.core.session());
                Landing::Done { result, tokens }
            }
            Err(Ended::Aborted) => {
                self.tell_failure(None, from_extension).await;
                Landing::Aborted
            }
            Err(Ended::Failed(why)) => {
                self.tell_failure(Some(&why), from_extension).await;
                Landing::Failed(why)
            }
        }
    }

    fn prepare(&self, options: &CompactOptions) -> Option<Preparation> {
        let settings = (*self.core.compaction_settings()).clone();
        let model = self.core.state().model.as_ref().map(|m| m.info().clone());
        let session = self.core.session();
        let query = prepare::last_user_text(&session);
        let parameters = settings.parameters(options, model.as_ref(), query.as_deref());
        let prepared = prepare::prepare(&session, parameters, settings)?;
        (self.load_bearing || prepared.region.lines.len() >= LEAST_LINES).then_some(prepared)
    }

    /// Written when it answers `Ok`.
    async fn condense(
        &self,
        of: &Preparation,
        from_extension: &mut bool,
    ) -> Result<(Arc<Value>, Value, Value), Ended> {
        let condensed = match self.ask_hooks(of).await? {
            Some(text) => {
                *from_extension = true;
                if text.trim().is_empty() {
                    return Err(Ended::Failed(NO_TEXT.to_owned()));
                }
                Condensed::of_extension(text, of)
            }
            None if self.core.state().model.is_none() => return Err(Ended::Failed(NO_MODEL.to_owned())),
            None => {
                let Flight { core, reason, load_bearing, cancel, .. } = self;
                let ladder = Ladder { core, reason: *reason, load_bearing: *load_bearing, cancel };
                ladder.climb(of).await.map_err(|why| match why {
                    Unplanned::Aborted => Ended::Aborted,
                    Unplanned::Failed(why) => Ended::Failed(why),
                })?
            }
        };
        self.write(of, condensed, *from_extension)
    }

    /// `Some`: an extension gives the text.
    async fn ask_hooks(&self, of: &Preparation) -> Result<Option<String>, Ended> {
        if !self.core.hooks.hears_before(BeforeEvent::Compact) {
            return if self.cancel.is_cancelled() { Err(Ended::Aborted) } else { Ok(None) };
        }
        let branch: Vec<Value> = self.core.session().path().iter().map(|e| e.raw()).collect();
        let asked = json!({"reason": self.reason, "parameters": of.parameters, "preparation": of,
            "branchEntries": branch});
        let before = SessionBefore::new(BeforeEvent::Compact, asked);
        let verdict = self.core.dispatch(&self.cancel, self.core.hooks.session_before(before)).await;
        let Some(verdict) = verdict else { return Err(Ended::Aborted) };
        if let Some(by) = verdict.cancelled_by {
            self.core.notify("info", format!("{by} cancelled the compaction."));
            return Err(Ended::Aborted);
        }
        match verdict.result.as_ref().and_then(|r| r.get("compactedText")) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            // As no text: there is no falling back to a planner that nobody wanted.
            Some(_) => Ok(Some(String::new())),
        }
    }

    fn write(
        &self,
        of: &Preparation,
        done: Condensed,
        from_extension: bool,
    ) -> Result<(Arc<Value>, Value, Value), Ended> {
        if self.cancel.is_cancelled() {
            return Err(Ended::Aborted);
        }
        let backup = self.back_up();
        let parameters = serde_json::to_value(&of.parameters).unwrap_or_default();
        let stats = stats(of, &done);
        let mut details = json!({"strategy": VERBATIM, "promptVersion": PROMPT_VERSION,
            "parameters": parameters, "stats": stats, "rung": done.rung});
        let mut result = json!({"compactedText": done.text, "firstKeptEntryId": null,
            "tokensBefore": of.tokens_before, "stats": stats, "parameters": parameters,
            "promptVersion": PROMPT_VERSION, "rung": done.rung});
        if let Some(planner) = &done.planner {
            details["plannerModel"] = planner.clone().into();
            result["plannerModel"] = planner.clone().into();
        }
        if let Some(model) = self.core.state().model.as_ref().map(|m| name(m.info())) {
            details["model"] = model.into();
        }
        if let Some(path) = &backup {
            let path = path.to_string_lossy().into_owned();
            details["backupPath"] = path.clone().into();
            result["backupPath"] = path.into();
        }
        let mut fields = Map::new();
        fields.insert("summary".into(), done.text.into());
        fields.insert("firstKeptEntryId".into(), Value::Null);
        fields.insert("tokensBefore".into(), of.tokens_before.into());
        fields.insert("details".into(), details);
        if from_extension {
            fields.insert("fromHook".into(), true.into());
        }
        if done.usage != Usage::default() {
            fields.insert("usage".into(), serde_json::to_value(&done.usage).unwrap_or_default());
        }
        let kept = of.first_kept_entry_id.clone().filter(|_| !done.without_tail);
        let written = self.core.append_shown_with("compaction", |session| {
            // What came while it was planned was in nobody's region.
            let kept = kept.or_else(|| session.first_shown_behind(of.leaf.as_deref()));
            fields.insert("firstKeptEntryId".into(), kept.map_or(Value::Null, Value::from));
            fields
        });
        let entry = written.map_err(|e| {
            if let Some(path) = &backup {
                let _ = std::fs::remove_file(path);
            }
            Ended::Failed(e.to_string())
        })?;
        result["firstKeptEntryId"] = entry["firstKeptEntryId"].clone();
        if let Some(file) = self.core.session().file() {
            backup::prune(file);
        }
        Ok((entry, result, parameters))
    }

    /// A session that is in no file has nothing to copy.
    fn back_up(&self) -> Option<PathBuf> {
        let file = self.core.session().file().map(PathBuf::from)?;
        match backup::copy(&file, self.reason) {
            Ok(path) => Some(path),
            Err(e) => {
                let why = format!("There is no backup from before the compaction of {}: {e}", file.display());
                self.core.notify("warning", why);
                None
            }
        }
    }

    async fn tell_start(&self) {
        let mut told = json!({"reason": self.reason});
        if self.mid_turn {
            told["midTurn"] = true.into();
        }
        self.tell(RoomEvent::CompactionStart, told).await;
        self.core.handle.emit(Event::CompactionStart { reason: self.reason, mid_turn: self.mid_turn });
    }

    async fn tell_failure(&self, why: Option<&str>, from_extension: bool) {
        let mut told = json!({"reason": self.reason, "aborted": why.is_none(), "willRetry": false,
            "fromExtension": from_extension});
        if let Some(why) = why {
            told["errorMessage"] = why.into();
        }
        self.tell(RoomEvent::SessionCompactFailed, told).await;
        self.tell_end(None, why.is_none(), why).await;
    }

    async fn tell_end(&self, result: Option<&Value>, aborted: bool, why: Option<&str>) {
        let overflow = self.reason == CompactReason::Overflow;
        let taken_over = self.reason != CompactReason::Manual && self.core.state().compacting.is_asked_for();
        self.emit_end(Event::CompactionEnd {
            reason: self.reason,
            result: result.cloned(),
            aborted,
            // The request that did not fit is made again.
            will_retry: overflow && result.is_some(),
            unresolved_overflow: overflow && result.is_none() && !aborted,
            error_message: why.map(str::to_owned),
            mid_turn: self.mid_turn,
            manual_takeover_pending: taken_over,
        })
        .await;
    }

    async fn emit_end(&self, event: Event) {
        if let Ok(Value::Object(mut fields)) = serde_json::to_value(&event) {
            fields.shift_remove("type");
            self.tell(RoomEvent::CompactionEnd, Value::Object(fields)).await;
        }
        self.core.handle.emit(event);
    }

    /// It was made shorter once, and the model refused it again.
    pub async fn tell_unresolved(&self, said: &str) {
        self.tell_start().await;
        self.tell_failure(Some(said), false).await;
    }

    /// To extensions.
    async fn tell(&self, event: RoomEvent, fields: Value) {
        let Value::Object(fields) = fields else { return };
        let notice = Notice::Room { event, fields: &fields };
        if self.core.hooks.hears(&notice) {
            let until = if self.cancel.is_cancelled() { &self.closing } else { &self.cancel };
            self.core.dispatch(until, self.core.hooks.notify(notice)).await;
        }
    }
}

/// events.md D.6, D.9.
fn stats(of: &Preparation, done: &Condensed) -> Value {
    let before = of.region.token_estimate;
    let after = estimate::tokens_of_text(&done.text);
    let percent = match before {
        0 => 0.0,
        n => ((n as f64 - after as f64) / n as f64 * 1000.0).round() / 10.0,
    };
    json!({"linesBefore": of.region.lines.len(), "linesDeleted": done.lines_deleted,
        "linesKept": done.lines_kept, "rangeCount": done.range_count, "tokensBefore": before,
        "tokensAfter": after, "percentReduction": percent})
}
