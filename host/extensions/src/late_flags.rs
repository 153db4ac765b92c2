//! Flags of the command line that may belong to an extension that comes in later.

use crate::{
    host::{Extensions, lock},
    registry::FlagKind,
};
use serde_json::Value;
use std::collections::BTreeMap;

impl Extensions {
    /// Flags nobody knows yet, while extensions may still come in.
    pub fn defer_flags(&self, flags: BTreeMap<String, Option<String>>) {
        *lock(&self.late_flags) = flags;
    }

    /// Gives them to those who have come in, and names those that nobody has.
    pub(crate) fn settle_late_flags(&self) {
        let known = self.flags();
        for (name, given) in std::mem::take(&mut *lock(&self.late_flags)) {
            let kind = known.iter().find(|f| f.name == name).map(|f| f.kind);
            let value = match (kind, given) {
                (Some(FlagKind::String), Some(text)) => Value::String(text),
                (Some(FlagKind::Boolean), given) if given.as_deref() != Some("false") => Value::Bool(true),
                (Some(FlagKind::Boolean), _) => Value::Bool(false),
                (Some(FlagKind::String), None) => {
                    self.warn(format!("--{name} needs its value after an equals sign: --{name}=VALUE"));
                    continue;
                }
                (None, _) => {
                    self.warn(format!(
                        "--{name} is no option of this program or of an extension; it was ignored"
                    ));
                    continue;
                }
            };
            lock(&self.flag_values).insert(name, value);
        }
    }
}
