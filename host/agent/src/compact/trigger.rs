//! When a session is compacted without anybody asking (events.md D.2): before a prompt and after
//! a run that has come near to what the model takes, between the tools of a run and its next
//! request, and when the model has refused a request as too long.

use super::{
    estimate,
    perform::{Flight, Landing},
    prepare,
    settings::{CompactOptions, CompactReason},
};
use crate::{
    handle::Mode,
    message::{AssistantMessage, Message, StopReason},
    run::{Outcome, Run},
    session::SessionError,
    stream::shell,
};
use tokio_util::sync::CancellationToken;

/// What a run does after the look before its next request.
pub(crate) enum Preflight {
    Go,
    End(Outcome),
}

impl Run<'_> {
    /// A prompt that would not fit any more finds a shorter context. Its failure is told and
    /// nothing else: the request may still be taken.
    pub(crate) async fn compact_before_prompt(&self, prompt: &Message) {
        if self.over_threshold(estimate::tokens_of(prompt)).is_some() && !self.gave_up_here() {
            self.compact(CompactReason::Threshold, false, false).await;
        }
    }

    /// Not where an answer is printed once all is over: the next prompt finds it before it begins.
    pub(crate) async fn compact_after_run(&self, outcome: Outcome) {
        let printed = self.core.handle.view(|v| v.mode == Mode::Print);
        if outcome == Outcome::Completed && !printed && self.over_threshold(0).is_some() {
            self.compact(CompactReason::Threshold, false, false).await;
        }
    }

    /// The results of tools are in; the request that follows must fit. The run goes on with what
    /// is left, or ends here.
    pub(crate) async fn before_next_request(&mut self) -> Result<Preflight, SessionError> {
        let Some(tokens) = self.over_threshold(0) else { return Ok(Preflight::Go) };
        let window = self.window();
        let fits = |tokens: u64| window == 0 || tokens <= window;
        let why = match self.compact(CompactReason::Threshold, true, true).await {
            Landing::Done { tokens, .. } if fits(tokens) => return Ok(Preflight::Go),
            Landing::Nothing if fits(tokens) => return Ok(Preflight::Go),
            Landing::Done { tokens, .. } => {
                format!("about {tokens} tokens are left, and the model takes {window}")
            }
            Landing::Nothing => {
                format!(
                    "there is nothing to compact, it is about {tokens} tokens, and the model takes {window}"
                )
            }
            Landing::Aborted if self.cancel.is_cancelled() => return Ok(Preflight::End(Outcome::Aborted)),
            Landing::Aborted => "it was cancelled".to_owned(),
            Landing::Failed(why) => why,
        };
        let said = format!("Post-tool context compaction failed before the next provider request: {why}");
        let mut message = shell(self.model.info());
        message.stop_reason = Some(StopReason::Error);
        message.error_message = Some(said);
        self.record(Message::Assistant(message)).await?;
        Ok(Preflight::End(Outcome::Failed))
    }

    /// True: the request that was refused can be made again.
    pub(crate) async fn compact_overflow(&self) -> bool {
        match self.compact(CompactReason::Overflow, false, true).await {
            Landing::Done { .. } => true,
            Landing::Nothing => {
                let why = "The context is more than the model takes, and there is nothing in it to compact.";
                self.tell_unresolved(why).await;
                false
            }
            Landing::Aborted | Landing::Failed(_) => false,
        }
    }

    /// The shorter request was refused as well.
    pub(crate) async fn overflow_is_unresolved(&self, refused: &AssistantMessage) {
        let said = refused.error_message.as_deref().unwrap_or_default();
        let why = format!("The context was compacted once, and is still more than the model takes: {said}");
        self.tell_unresolved(&why).await;
    }

    async fn tell_unresolved(&self, why: &str) {
        let cancel = self.cancel.child_token();
        self.flight(CompactReason::Overflow, false, true, cancel).tell_unresolved(why).await;
    }

    fn window(&self) -> u64 {
        self.core.state().model.as_ref().map_or(0, |m| m.info().context_window)
    }

    /// `Some`: the context, with so much more, is larger than it should become.
    fn over_threshold(&self, more: u64) -> Option<u64> {
        let model = {
            let state = self.core.state();
            state.model.as_ref().filter(|_| state.compacting.automatic).map(|m| m.info().clone())
        };
        if self.cancel.is_cancelled() {
            return None;
        }
        let most = self.core.compaction_settings().threshold(&model?)?;
        let tokens = prepare::tokens(&self.core.session()).saturating_add(more);
        (tokens > most).then_some(tokens)
    }

    fn gave_up_here(&self) -> bool {
        let leaf = self.core.session().leaf_id().map(str::to_owned);
        self.core.state().compacting.gave_up_at(leaf.as_deref())
    }

    fn flight(
        &self,
        reason: CompactReason,
        mid_turn: bool,
        load_bearing: bool,
        cancel: CancellationToken,
    ) -> Flight<'_> {
        let closing = self.closing.clone();
        Flight { core: self.core, reason, mid_turn, load_bearing, cancel, closing }
    }

    async fn compact(&self, reason: CompactReason, mid_turn: bool, load_bearing: bool) -> Landing {
        let cancel = self.cancel.child_token();
        self.core.begins_by_itself(reason, &cancel);
        let flight = self.flight(reason, mid_turn, load_bearing, cancel);
        let landing = flight.fly(&CompactOptions::default()).await;
        self.core.ended_by_itself(matches!(landing, Landing::Failed(_)));
        landing
    }
}
