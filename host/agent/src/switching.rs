//! Which model answers, and how much it thinks: chosen by name, by a key that goes through a
//! scope, or from a list.

use crate::{
    core::{Core, Reply},
    engine::{clamp, model_fields},
    hooks::ModelSource,
    model::{Model, ModelInfo, ThinkingLevel},
    op::OpError,
    providers::ScopedModel,
    session::SessionError,
};
use serde_json::{Map, Value, json};
use std::{fmt::Write, sync::Arc};

/// Models of the list that `/model` prints.
const SHOWN: usize = 40;

impl Core {
    /// `Op::ListModels`.
    pub(crate) fn list_models(&self, reply: Reply) {
        let problems = self.models.refresh();
        let scope = self.scope();
        let current = self.state().model.as_ref().map(|m| m.info().clone());
        let models: Vec<Value> =
            self.candidates().iter().map(|info| listed(info, &scope, current.as_ref())).collect();
        reply.ok(json!({
            "models": models,
            "scoped": !scope.is_empty(),
            "current": current,
            "thinkingLevel": self.state().thinking,
            "problems": problems,
        }));
    }

    fn scope(&self) -> Vec<ScopedModel> {
        self.handle.models().map(|providers| providers.scope()).unwrap_or_default()
    }

    fn candidates(&self) -> Vec<ModelInfo> {
        self.models.list()
    }

    /// `Op::ChooseModel`: as `--model` would take it.
    pub(crate) fn choose_model(&self, pattern: &str, reply: Reply) {
        reply.send(self.chosen(pattern));
    }

    fn chosen(&self, pattern: &str) -> Result<Value, OpError> {
        let (model, level) = self.models.find(pattern).map_err(|why| OpError::new("model_not_found", why))?;
        let info = model.info().clone();
        self.switch(model, level, ModelSource::Set)?;
        Ok(json!({"model": info, "thinkingLevel": self.state().thinking}))
    }

    /// `Op::CycleModel`: the next one of the scope, or of all that have a key.
    pub(crate) fn cycle_model(&self, backward: bool, reply: Reply) {
        reply.send(self.cycled(backward));
    }

    fn cycled(&self, backward: bool) -> Result<Value, OpError> {
        let scope = self.scope();
        let is_scoped = !scope.is_empty();
        let all = match is_scoped {
            true => scope,
            false => self.candidates().iter().map(ScopedModel::of).collect(),
        };
        let usable: Vec<(Arc<dyn Model>, Option<ThinkingLevel>)> =
            all.iter().filter_map(|s| Some((self.models.get(&s.provider, &s.id)?, s.thinking))).collect();
        let current = self.state().model.as_ref().map(|m| m.info().clone());
        let same = |m: &Arc<dyn Model>, info: &ModelInfo| {
            m.info().provider == info.provider && m.info().id == info.id
        };
        let at = current.as_ref().and_then(|info| usable.iter().position(|(m, _)| same(m, info)));
        let count = usable.len();
        if count == 0 || (count == 1 && at.is_some()) {
            return Ok(Value::Null);
        }
        let next = match (at, backward) {
            (Some(at), false) => (at + 1) % count,
            (Some(at), true) => (at + count - 1) % count,
            (None, false) => 0,
            (None, true) => count - 1,
        };
        let Some((model, level)) = usable.get(next).cloned() else { return Ok(Value::Null) };
        let info = model.info().clone();
        self.switch(model, level, ModelSource::Cycle)?;
        Ok(json!({"model": info, "thinkingLevel": self.state().thinking, "isScoped": is_scoped}))
    }

    /// `Op::CycleThinkingLevel`: the next level of the model, behind the last the first.
    pub(crate) fn cycle_thinking(&self, reply: Reply) {
        let (levels, now) = {
            let state = self.state();
            (state.model.as_ref().map(|m| m.info().levels()).unwrap_or_default(), state.thinking)
        };
        if levels.len() < 2 {
            return reply.ok(Value::Null);
        }
        let at = levels.iter().position(|l| *l == now);
        let level = levels[at.map_or(0, |at| (at + 1) % levels.len())];
        reply.send(self.apply_thinking(level).map(|()| json!({"level": level})).map_err(Into::into));
    }

    /// Another model from the next request on; told if it differs.
    pub(crate) fn switch(
        &self,
        model: Arc<dyn Model>,
        level: Option<ThinkingLevel>,
        source: ModelSource,
    ) -> Result<(), SessionError> {
        let info = model.info().clone();
        let (previous, thinking) = {
            let mut state = self.state();
            state.primary = None;
            let previous = state.model.replace(model).map(|m| m.info().clone());
            let thinking = clamp(level.unwrap_or(state.thinking), Some(&info));
            (previous, (state.thinking != thinking).then_some(thinking))
        };
        let changed = previous.as_ref() != Some(&info);
        self.handle.update_view(|v| v.model = Some(info.clone()));
        let mut written = Ok(());
        if let Some(level) = thinking {
            written = self.apply_thinking(level);
        }
        if changed {
            written = written.and(self.append_shown("model_change", model_fields(&info)).map(drop));
            self.tell_model(info, previous, source);
        }
        written
    }

    /// `/model` and `/thinking`, in words; `None`: another command.
    pub(crate) fn switching_command(&self, name: &str, args: &str) -> Option<Result<String, OpError>> {
        let args = args.trim();
        match (name, args) {
            ("model", "") => Some(Ok(self.models_in_words())),
            ("model", pattern) => Some(self.chosen(pattern).map(|_| self.current_in_words())),
            ("thinking", "") => Some(Ok(self.levels_in_words())),
            ("thinking", level) => Some(match ThinkingLevel::parse(level) {
                Some(level) => {
                    let level = clamp(level, self.state().model.as_deref().map(Model::info));
                    // The lock ends here: what follows takes it too.
                    let same = level == self.state().thinking;
                    match same {
                        true => Ok(()),
                        false => self.apply_thinking(level),
                    }
                    .map(|()| self.current_in_words())
                    .map_err(Into::into)
                }
                None => Err(OpError::new(
                    "unknown_thinking_level",
                    format!("\"{level}\" is no thinking level. {}", self.levels_in_words()),
                )),
            }),
            _ => None,
        }
    }

    fn current_in_words(&self) -> String {
        let state = self.state();
        match &state.model {
            Some(model) => {
                format!("{}/{}, thinking {}", model.info().provider, model.info().id, state.thinking.name())
            }
            None => "no model is selected".to_owned(),
        }
    }

    fn levels_in_words(&self) -> String {
        let levels = self.state().model.as_ref().map(|m| m.info().levels()).unwrap_or_default();
        let names: Vec<&str> = levels.iter().map(|l| l.name()).collect();
        format!("{}; this model has {}", self.current_in_words(), names.join(", "))
    }

    fn models_in_words(&self) -> String {
        let problems = self.models.refresh();
        let scope = self.scope();
        let all = self.candidates();
        let mut text = format!("now {}\n", self.current_in_words());
        for info in all.iter().take(SHOWN) {
            let mark = if scope.iter().any(|s| s.is(info)) { "*" } else { " " };
            let _ = writeln!(text, " {mark} {}/{}  {}", info.provider, info.id, info.name);
        }
        if all.len() > SHOWN {
            let _ = writeln!(text, "   and {} more", all.len() - SHOWN);
        }
        if !scope.is_empty() {
            text.push_str(" * the key for the next model goes through these\n");
        }
        for problem in problems {
            let _ = writeln!(text, " ! {problem}");
        }
        text.push_str(
            "/model NAME chooses one; a part of a name is enough, :LEVEL behind it sets how much it thinks",
        );
        text
    }
}

fn listed(info: &ModelInfo, scope: &[ScopedModel], current: Option<&ModelInfo>) -> Value {
    let mut fields = match serde_json::to_value(info) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    };
    let scoped = scope.iter().find(|s| s.is(info));
    fields.insert("levels".into(), json!(info.levels()));
    fields.insert("scoped".into(), json!(scoped.is_some()));
    if let Some(level) = scoped.and_then(|s| s.thinking) {
        fields.insert("scopedThinkingLevel".into(), json!(level));
    }
    let is_current = current.is_some_and(|c| c.provider == info.provider && c.id == info.id);
    fields.insert("current".into(), json!(is_current));
    Value::Object(fields)
}
