//! The models there are, and those that extensions add while the program runs (events.md E.5).
//! A provider that is registered hides the program's own of that name; without it the program's
//! own are back.

use crate::model::{Model, ModelInfo, Models, ThinkingLevel};
use serde_json::Value;
use std::sync::{Arc, PoisonError, RwLock};

struct Added {
    provider: String,
    /// Who registered it: a later registration replaces, and only its own end takes it away.
    by: u64,
    models: Vec<Arc<dyn Model>>,
}

/// One of the models that a key switches between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopedModel {
    pub provider: String,
    pub id: String,
    /// How much it thinks then.
    pub thinking: Option<ThinkingLevel>,
}

impl ScopedModel {
    pub fn of(info: &ModelInfo) -> Self {
        ScopedModel { provider: info.provider.clone(), id: info.id.clone(), thinking: None }
    }
    pub fn is(&self, info: &ModelInfo) -> bool {
        self.provider == info.provider && self.id == info.id
    }
}

/// The program's models with those of extensions over them.
pub struct Providers {
    base: Arc<dyn Models>,
    added: RwLock<Vec<Added>>,
    /// Empty: a key switches between all.
    scope: RwLock<Vec<ScopedModel>>,
}

impl Providers {
    pub fn new(base: Arc<dyn Models>) -> Self {
        Providers { base, added: RwLock::default(), scope: RwLock::default() }
    }

    /// What `--models` says.
    pub fn set_scope(&self, scope: Vec<ScopedModel>) {
        *self.scope.write().unwrap_or_else(PoisonError::into_inner) = scope;
    }

    pub fn scope(&self) -> Vec<ScopedModel> {
        self.scope.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The last registration of a name replaces; `by` is free for whoever registers.
    pub fn register(&self, provider: &str, by: u64, models: Vec<Arc<dyn Model>>) {
        let mut added = self.added.write().unwrap_or_else(PoisonError::into_inner);
        let old = added.iter().position(|a| a.provider == provider).map(|i| added.remove(i));
        added.push(Added { provider: provider.to_owned(), by, models });
        drop(added);
        drop(old);
    }

    /// As the program itself would read this configuration.
    ///
    /// # Errors
    /// What is wrong with it, for a person.
    pub fn configure(&self, provider: &str, by: u64, config: &Value) -> Result<(), String> {
        let models = self.base.configure(provider, config)?;
        self.register(provider, by, models);
        Ok(())
    }

    /// A model of a registered provider as it is now; `None`: it is the program's own, or gone.
    pub fn added(&self, provider: &str, id: &str) -> Option<Arc<dyn Model>> {
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        let own = added.iter().find(|a| a.provider == provider)?;
        own.models.iter().find(|m| m.info().id == id).cloned()
    }

    /// False: there was none.
    pub fn unregister(&self, provider: &str) -> bool {
        self.take(|a| a.provider == provider)
    }

    /// All that `by` registered.
    pub fn forget(&self, by: u64) -> bool {
        self.take(|a| a.by == by)
    }

    fn take(&self, which: impl Fn(&Added) -> bool) -> bool {
        let mut added = self.added.write().unwrap_or_else(PoisonError::into_inner);
        let gone: Vec<Added> = added.extract_if(.., |a| which(a)).collect();
        drop(added);
        !gone.is_empty()
    }
}

impl Models for Providers {
    fn get(&self, provider: &str, id: &str) -> Option<Arc<dyn Model>> {
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        match added.iter().find(|a| a.provider == provider) {
            Some(own) => own.models.iter().find(|m| m.info().id == id).cloned(),
            None => {
                drop(added);
                self.base.get(provider, id)
            }
        }
    }

    fn list(&self) -> Vec<ModelInfo> {
        let base = self.base.list();
        let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
        let hidden = |i: &ModelInfo| added.iter().any(|a| a.provider == i.provider);
        let own = added.iter().flat_map(|a| a.models.iter().map(|m| m.info().clone()));
        base.into_iter().filter(|i| !hidden(i)).chain(own).collect()
    }

    /// Those of extensions first: their names are nobody else's.
    fn find(&self, pattern: &str) -> Result<(Arc<dyn Model>, Option<ThinkingLevel>), String> {
        let level = pattern.rsplit_once(':').and_then(|(text, l)| Some((text, ThinkingLevel::parse(l)?)));
        let texts = std::iter::once((pattern, None)).chain(level.map(|(text, level)| (text, Some(level))));
        {
            let added = self.added.read().unwrap_or_else(PoisonError::into_inner);
            let models = || added.iter().flat_map(|a| a.models.iter());
            for (text, level) in texts {
                let named = |m: &&Arc<dyn Model>| {
                    let info = m.info();
                    info.id == text || text.split_once('/') == Some((&info.provider, &info.id))
                };
                if let Some(model) = models().find(named) {
                    return Ok((model.clone(), level));
                }
            }
        }
        let (model, level) = self.base.find(pattern)?;
        // A provider that hides the program's own hides it here too.
        let shown = self.get(&model.info().provider, &model.info().id);
        let gone = || format!("there is no model \"{pattern}\": an extension has replaced its provider");
        Ok((shown.ok_or_else(gone)?, level))
    }

    fn refresh(&self) -> Vec<String> {
        self.base.refresh()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        message::AssistantMessage,
        model::{ModelRequest, StreamSink},
    };
    use async_trait::async_trait;
    use serde_json::json;
    use tokio_util::sync::CancellationToken;

    struct Named(ModelInfo);

    fn named(provider: &str, id: &str) -> Arc<dyn Model> {
        let info = json!({"id": id, "name": id, "provider": provider, "api": "test"});
        Arc::new(Named(serde_json::from_value(info).unwrap()))
    }

    #[async_trait]
    impl Model for Named {
        fn info(&self) -> &ModelInfo {
            &self.0
        }
        async fn stream(
            &self,
            _: ModelRequest,
            _: &mut dyn StreamSink,
            _: &CancellationToken,
        ) -> AssistantMessage {
            unreachable!("nobody asks")
        }
    }

    struct Base;

    impl Models for Base {
        fn get(&self, provider: &str, id: &str) -> Option<Arc<dyn Model>> {
            (provider == "own" && id == "a").then(|| named("own", "a"))
        }
        fn list(&self) -> Vec<ModelInfo> {
            vec![named("own", "a").info().clone()]
        }
    }

    fn names(providers: &Providers) -> Vec<String> {
        providers.list().into_iter().map(|i| format!("{}/{}", i.provider, i.id)).collect()
    }

    #[test]
    fn a_registered_provider_hides_the_programs_own_until_it_is_gone() {
        let providers = Providers::new(Arc::new(Base));
        providers.register("own", 1, vec![named("own", "b")]);
        providers.register("new", 1, vec![named("new", "c")]);
        assert_eq!(names(&providers), ["own/b", "new/c"]);
        assert!(providers.get("own", "a").is_none());
        assert!(providers.unregister("own"));
        assert!(!providers.unregister("own"));
        assert_eq!(names(&providers), ["own/a", "new/c"]);
        assert!(providers.get("own", "a").is_some());
    }

    #[test]
    fn the_end_of_one_who_registered_takes_only_what_is_still_his() {
        let providers = Providers::new(Arc::new(Base));
        providers.register("p", 1, vec![named("p", "old")]);
        providers.register("p", 2, vec![named("p", "new")]);
        assert!(!providers.forget(1));
        assert_eq!(names(&providers), ["own/a", "p/new"]);
    }
}
