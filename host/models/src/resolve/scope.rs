//! `--models`: the models that a key switches between, by patterns like `anthropic/*`, `*sonnet*`
//! or any text that `--model` takes, each also with `:level` behind it.

use super::{ModelSet, Selection};
use atomic_agent::model::{ModelInfo, ThinkingLevel};
use globset::{GlobBuilder, GlobMatcher};

/// One model of a scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scoped {
    pub provider: String,
    pub id: String,
    /// How much it thinks then.
    pub thinking: Option<ThinkingLevel>,
}

impl ModelSet {
    /// In the order of the patterns, each model once; and what of them fits nothing, in words.
    pub fn scope<S: AsRef<str>>(&self, patterns: &[S]) -> (Vec<Scoped>, Vec<String>) {
        let (mut found, mut unmet) = (Vec::<Scoped>::new(), Vec::new());
        for pattern in patterns.iter().map(|p| p.as_ref().trim()).filter(|p| !p.is_empty()) {
            let matching = match self.matching(pattern) {
                Ok(matching) => matching,
                Err(why) => {
                    unmet.push(format!("--models: \"{pattern}\": {why}"));
                    continue;
                }
            };
            for scoped in matching {
                if !found.iter().any(|f| f.provider == scoped.provider && f.id == scoped.id) {
                    found.push(scoped);
                }
            }
        }
        (found, unmet)
    }

    fn matching(&self, pattern: &str) -> Result<Vec<Scoped>, String> {
        if !pattern.contains(['*', '?', '[']) {
            let chosen = self.find(&Selection::model(pattern)).map_err(|e| e.to_string())?;
            let info = chosen.model.info();
            return Ok(vec![of(info, chosen.thinking)]);
        }
        let (text, thinking) = match pattern.rsplit_once(':') {
            Some((text, level)) if ThinkingLevel::parse(level).is_some() => {
                (text, ThinkingLevel::parse(level))
            }
            _ => (pattern, None),
        };
        let glob = glob(text).map_err(|e| e.to_string())?;
        let fits = |i: &&ModelInfo| glob.is_match(&i.id) || glob.is_match(format!("{}/{}", i.provider, i.id));
        let found: Vec<Scoped> = self.usable().filter(fits).map(|i| of(i, thinking)).collect();
        match found.is_empty() {
            true => Err("no model with a key fits it; atomic --list-models shows them".to_owned()),
            false => Ok(found),
        }
    }
}

fn of(info: &ModelInfo, thinking: Option<ThinkingLevel>) -> Scoped {
    Scoped { provider: info.provider.clone(), id: info.id.clone(), thinking }
}

/// A star goes over slashes: ids hold them.
fn glob(text: &str) -> Result<GlobMatcher, globset::Error> {
    Ok(GlobBuilder::new(text).case_insensitive(true).literal_separator(false).build()?.compile_matcher())
}
