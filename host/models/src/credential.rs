//! What a key may be written as, and a secret that cannot be printed by accident.

use crate::environment::Environment;
use std::{fmt, sync::Arc};

/// Text that never shows in `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// A secret, or the way to one that is only gone when it is needed.
#[derive(Clone, Debug)]
pub(crate) enum Credential {
    Known(Secret),
    Command(Arc<crate::key_command::KeyCommand>),
}

/// A value of `models.json` that may name a variable: `"$VAR"`, `"${VAR}"`, `"!command"` or itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Written {
    Literal(Secret),
    Variable(String),
    /// Prints the key. Run only if a person's own file says so.
    Command(String),
}

impl Written {
    pub fn parse(text: &str) -> Self {
        if let Some(command) = text.strip_prefix('!') {
            return Written::Command(command.trim().to_owned());
        }
        let name = text
            .strip_prefix("${")
            .and_then(|rest| rest.strip_suffix('}'))
            .or_else(|| text.strip_prefix('$'))
            .filter(|name| is_variable_name(name));
        match name {
            Some(name) => Written::Variable(name.to_owned()),
            None => Written::Literal(Secret::new(text)),
        }
    }
    /// `None`: an empty text, a variable that is not set, or a command.
    pub fn known(&self, environment: &Environment) -> Option<Secret> {
        match self {
            Written::Literal(secret) => (!secret.expose().trim().is_empty()).then(|| secret.clone()),
            Written::Variable(name) => environment.get(name).map(Secret::new),
            Written::Command(_) => None,
        }
    }
}

fn is_variable_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dollar_names_a_variable_only_when_a_name_follows() {
        for (text, want) in [
            ("$KEY", Written::Variable("KEY".into())),
            ("${MY_KEY2}", Written::Variable("MY_KEY2".into())),
            ("$2y$10", Written::Literal(Secret::new("$2y$10"))),
            ("$", Written::Literal(Secret::new("$"))),
            ("sk-abc", Written::Literal(Secret::new("sk-abc"))),
            ("!pass show key", Written::Command("pass show key".into())),
        ] {
            assert_eq!(Written::parse(text), want, "{text}");
        }
    }

    #[test]
    fn a_secret_does_not_show_in_debug() {
        assert!(!format!("{:?}", Written::parse("sk-abc")).contains("sk-abc"));
    }
}
