//! The one place of this crate that reads environment variables.
//! A value, so that tests give their own and the process's is never changed.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

/// Where `$VAR` and the well-known key variables are looked up.
#[derive(Clone, Default)]
pub struct Environment {
    source: Source,
    /// Variables that count as unset.
    hidden: BTreeSet<String>,
}

#[derive(Clone, Default)]
enum Source {
    #[default]
    Process,
    Fixed(BTreeMap<String, String>),
}

impl Environment {
    pub fn process() -> Self {
        Environment::default()
    }
    /// Only these variables exist.
    pub fn fixed<K: Into<String>, V: Into<String>>(vars: impl IntoIterator<Item = (K, V)>) -> Self {
        let vars = vars.into_iter().map(|(k, v)| (k.into(), v.into())).collect();
        Environment { source: Source::Fixed(vars), hidden: BTreeSet::new() }
    }
    /// These count as unset.
    pub(crate) fn without(&self, names: impl IntoIterator<Item = String>) -> Self {
        Environment { source: self.source.clone(), hidden: names.into_iter().collect() }
    }
    /// The trimmed value; an empty one counts as unset.
    pub fn get(&self, name: &str) -> Option<String> {
        if self.hidden.contains(name) {
            return None;
        }
        let value = match &self.source {
            Source::Process => std::env::var(name).ok(),
            Source::Fixed(vars) => vars.get(name).cloned(),
        }?;
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }
}

impl fmt::Debug for Environment {
    // Values are secrets more often than not.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.source {
            Source::Process => "Environment(process)",
            Source::Fixed(_) => "Environment(fixed)",
        })
    }
}
