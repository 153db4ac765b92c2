//! Which model a text means: its whole name, an id, the end of an id, or a part of one, each also
//! with `:level` behind it.

use super::{Chosen, ModelSet, ResolveError};
use atomic_agent::model::{ModelInfo, ThinkingLevel};

/// How well a text fits an id; the first that anything fits counts.
const WAYS: [fn(&ModelInfo, &str) -> bool; 4] = [
    |info, text| info.id == text,
    |info, text| info.id.eq_ignore_ascii_case(text),
    // Ids of aggregators begin with the maker.
    |info, text| info.id.to_ascii_lowercase().ends_with(&format!("/{text}")),
    |info, text| text.len() >= 3 && (has(&info.id, text) || has(&info.name, text)),
];

fn has(name: &str, text: &str) -> bool {
    name.to_ascii_lowercase().contains(text)
}

impl ModelSet {
    /// Of one provider. Of several that a part of an id fits the first counts: lists begin with
    /// what is newest.
    pub(super) fn within(&self, provider: &str, pattern: &str) -> Result<Chosen, ResolveError> {
        if !self.knows(provider) {
            return Err(self.unknown_provider(provider));
        }
        let infos: Vec<&ModelInfo> = self.list().filter(|i| i.provider == provider).collect();
        let found = |text: &str| {
            let low = text.to_ascii_lowercase();
            let exact = infos.iter().find(|i| WAYS[0](i, text));
            exact.or_else(|| WAYS[1..].iter().find_map(|way| infos.iter().find(|i| way(i, &low))))
        };
        if let Some(info) = found(pattern) {
            return Ok(Chosen { model: self.get(provider, &info.id)?, thinking: None });
        }
        match pattern.rsplit_once(':').and_then(|(text, level)| Some((found(text)?, level))) {
            Some((info, level)) => {
                let thinking = ThinkingLevel::parse(level)
                    .ok_or_else(|| ResolveError::UnknownThinking { level: level.to_owned() })?;
                Ok(Chosen { model: self.get(provider, &info.id)?, thinking: Some(thinking) })
            }
            None => Err(self.unknown_model(provider, pattern)),
        }
    }

    /// A text without a provider. `None`: no provider has anything like it.
    pub(super) fn anywhere(&self, pattern: &str) -> Option<Result<Chosen, ResolveError>> {
        let bare = pattern.rsplit_once(':').map(|(text, _)| text);
        for text in std::iter::once(pattern).chain(bare) {
            let low = text.to_ascii_lowercase();
            for (n, way) in WAYS.iter().enumerate() {
                let asked = if n == 0 { text } else { low.as_str() };
                let having = |usable: bool| -> Vec<&str> {
                    let providers = self.providers.iter().filter(|p| !usable || p.key.usable());
                    let has = |p: &&super::Provider| p.models.iter().any(|e| way(&e.info, asked));
                    providers.filter(has).map(|p| p.name.as_str()).collect()
                };
                let usable = having(true);
                let mut candidates = if usable.is_empty() { having(false) } else { usable };
                // A part of an id that several fit, none with a key: the first says what it lacks.
                if n > 1 && !self.any_usable(&candidates) {
                    candidates.truncate(1);
                }
                return Some(match candidates.as_slice() {
                    [] => continue,
                    [provider] => self.within(provider, pattern),
                    several => Err(ResolveError::Ambiguous {
                        name: pattern.to_owned(),
                        candidates: several.iter().map(|p| format!("{p}/{pattern}")).collect(),
                    }),
                });
            }
        }
        None
    }

    fn any_usable(&self, names: &[&str]) -> bool {
        self.providers.iter().any(|p| p.key.usable() && names.contains(&p.name.as_str()))
    }
}
