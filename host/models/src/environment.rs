//! The one place of this crate that reads environment variables.
//! A value, so that tests give their own and the process's is never changed.

use std::{collections::BTreeMap, fmt};

/// Where `$VAR` and the well-known key variables are looked up.
#[derive(Clone, Default)]
pub struct Environment(Source);

#[derive(Clone, Default)]
enum Source {
    #[default]
    Process,
    Fixed(BTreeMap<String, String>),
}

impl Environment {
    pub fn process() -> Self {
        Environment(Source::Process)
    }
    /// Only these variables exist.
    pub fn fixed<K: Into<String>, V: Into<String>>(vars: impl IntoIterator<Item = (K, V)>) -> Self {
        Environment(Source::Fixed(vars.into_iter().map(|(k, v)| (k.into(), v.into())).collect()))
    }
    /// The trimmed value; an empty one counts as unset.
    pub fn get(&self, name: &str) -> Option<String> {
        let value = match &self.0 {
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
        f.write_str(match &self.0 {
            Source::Process => "Environment(process)",
            Source::Fixed(_) => "Environment(fixed)",
        })
    }
}
