//! Reading arguments that a gate may have changed after they were validated (field case B43): exactly the
//! value that is there, or an error that names the field. Unknown keys are ignored, null is absent.

use atomic_agent::tool::ToolError;
use serde_json::{Map, Value};

pub struct Args<'a> {
    tool: &'a str,
    map: &'a Map<String, Value>,
}

impl<'a> Args<'a> {
    pub fn new(tool: &'a str, args: &'a Value) -> Result<Self, ToolError> {
        match args {
            Value::Object(map) => Ok(Args { tool, map }),
            other => Err(ToolError(format!("{tool}: arguments must be an object, got {}", shown(other)))),
        }
    }

    fn get(&self, field: &str) -> Option<&'a Value> {
        self.map.get(field).filter(|v| !v.is_null())
    }

    /// `{tool}: {field} {problem}`.
    pub fn error(&self, field: &str, problem: impl std::fmt::Display) -> ToolError {
        ToolError(format!("{}: `{field}` {problem}", self.tool))
    }

    fn wrong(&self, field: &str, expected: &str, got: &Value) -> ToolError {
        self.error(field, format!("must be {expected}, got {}", shown(got)))
    }

    pub fn opt_str(&self, field: &str) -> Result<Option<&'a str>, ToolError> {
        match self.get(field) {
            None => Ok(None),
            Some(Value::String(s)) => Ok(Some(s)),
            Some(other) => Err(self.wrong(field, "a string", other)),
        }
    }

    pub fn str(&self, field: &str) -> Result<&'a str, ToolError> {
        self.opt_str(field)?.ok_or_else(|| self.error(field, "is missing"))
    }

    pub fn opt_bool(&self, field: &str) -> Result<Option<bool>, ToolError> {
        match self.get(field) {
            None => Ok(None),
            Some(Value::Bool(b)) => Ok(Some(*b)),
            Some(other) => Err(self.wrong(field, "true or false", other)),
        }
    }

    /// A whole number in `min..=max`; `5.0` counts as one, `"5"` does not.
    pub fn opt_whole(&self, field: &str, min: u64, max: u64) -> Result<Option<u64>, ToolError> {
        let Some(value) = self.get(field) else { return Ok(None) };
        let whole = value.as_u64().or_else(|| {
            // 2^53: beyond it a float no longer names one whole number.
            value.as_f64().filter(|f| f.fract() == 0.0 && (0.0..=9e15).contains(f)).map(|f| f as u64)
        });
        match whole {
            Some(n) if (min..=max).contains(&n) => Ok(Some(n)),
            _ if max == u64::MAX => Err(self.wrong(field, &format!("a whole number from {min}"), value)),
            _ => Err(self.wrong(field, &format!("a whole number from {min} to {max}"), value)),
        }
    }

    pub fn opt_number(&self, field: &str) -> Result<Option<f64>, ToolError> {
        match self.get(field) {
            None => Ok(None),
            Some(Value::Number(n)) if n.as_f64().is_some() => Ok(n.as_f64()),
            Some(other) => Err(self.wrong(field, "a number", other)),
        }
    }

    /// A list of strings; with `one`, a single string stands for a list of it.
    pub fn opt_strings(&self, field: &str, one: bool) -> Result<Option<Vec<&'a str>>, ToolError> {
        match self.get(field) {
            None => Ok(None),
            Some(Value::String(s)) if one => Ok(Some(vec![s])),
            Some(Value::Array(items)) => items
                .iter()
                .enumerate()
                .map(|(i, v)| v.as_str().ok_or_else(|| self.wrong(&format!("{field}[{i}]"), "a string", v)))
                .collect::<Result<_, _>>()
                .map(Some),
            Some(other) => Err(self.wrong(field, "a list of strings", other)),
        }
    }

    pub fn opt_list(&self, field: &str) -> Result<Option<&'a Vec<Value>>, ToolError> {
        match self.get(field) {
            None => Ok(None),
            Some(Value::Array(items)) => Ok(Some(items)),
            Some(other) => Err(self.wrong(field, "a list", other)),
        }
    }

    pub fn opt_map(&self, field: &str) -> Result<Option<&'a Map<String, Value>>, ToolError> {
        match self.get(field) {
            None => Ok(None),
            Some(Value::Object(map)) => Ok(Some(map)),
            Some(other) => Err(self.wrong(field, "an object", other)),
        }
    }
}

/// A value as an error may quote it: its kind, and its first characters.
fn shown(value: &Value) -> String {
    let kind = match value {
        Value::Null => return "null".into(),
        Value::Bool(b) => return b.to_string(),
        Value::Number(n) => return n.to_string(),
        Value::String(s) if s.chars().nth(60).is_none() => return format!("the string {s:?}"),
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    kind.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn a_float_that_is_whole_is_a_whole_number_and_a_string_is_not() {
        let value = json!({"a": 5.0, "b": "5", "c": 1e308, "d": null});
        let args = Args::new("t", &value).unwrap();
        assert_eq!(args.opt_whole("a", 1, 10).unwrap(), Some(5));
        assert!(args.opt_whole("b", 1, 10).unwrap_err().0.contains("`b`"));
        assert!(args.opt_whole("c", 1, 10).unwrap_err().0.contains("`c`"));
        assert_eq!(args.opt_whole("d", 1, 10).unwrap(), None);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::Bool),
            any::<i64>().prop_map(|n| json!(n)),
            any::<f64>().prop_map(|n| json!(n)),
            ".*".prop_map(Value::String),
        ];
        leaf.prop_recursive(2, 12, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::vec(("[a-z]", inner), 0..4)
                    .prop_map(|kv| Value::Object(kv.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_value_panics_and_every_refusal_names_the_field(value in any_json()) {
            let object = json!({"field": value});
            let args = Args::new("t", &object).unwrap();
            let refusals = [
                args.opt_str("field").err(),
                args.opt_bool("field").err(),
                args.opt_whole("field", 1, 100).err(),
                args.opt_number("field").err(),
                args.opt_strings("field", true).err(),
                args.opt_list("field").err(),
                args.opt_map("field").err(),
            ];
            for refusal in refusals.into_iter().flatten() {
                prop_assert!(refusal.0.starts_with("t: `field"));
                prop_assert!(refusal.0.len() < 400);
            }
        }
    }
}
