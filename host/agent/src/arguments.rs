//! Whether a call's arguments fit the tool's schema: lightly coerced first, since models
//! quote numbers and whole arrays. What does not fit is told back by field.

use serde_json::{Map, Value};

/// The coerced arguments, or the text the model gets instead of a result.
pub fn validate(tool: &str, schema: &Value, args: Value) -> Result<Value, String> {
    let mut coerced = if args.is_null() { Value::Object(Map::new()) } else { args.clone() };
    coerce(schema, &mut coerced);
    let validator = jsonschema::validator_for(schema)
        .map_err(|e| format!("Tool \"{tool}\" cannot be called: its parameter schema is broken ({e})"))?;
    let faults: Vec<String> = validator
        .iter_errors(&coerced)
        .map(|e| {
            use jsonschema::error::ValidationErrorKind as Kind;
            let place = e.instance_path().to_string();
            let place = place.trim_start_matches('/').replace('/', ".");
            match e.kind() {
                Kind::Required { property } => {
                    let name = property.as_str().unwrap_or_default();
                    let dot = if place.is_empty() { "" } else { "." };
                    format!("  - {place}{dot}{name}: missing")
                }
                _ if place.is_empty() => format!("  - {}", e.masked()),
                _ => format!("  - {place}: {}", e.masked()),
            }
        })
        .collect();
    if faults.is_empty() {
        return Ok(coerced);
    }
    // The model knows what it sent; a megabyte of it would only cost.
    let mut received = serde_json::to_string_pretty(&args).unwrap_or_default();
    if received.len() > 2_000 {
        received.truncate(received.floor_char_boundary(2_000));
        received.push('…');
    }
    Err(format!(
        "Validation failed for tool \"{tool}\":\n{}\n\nReceived arguments:\n{received}",
        faults.join("\n")
    ))
}

fn coerce(schema: &Value, value: &mut Value) {
    let wanted: Vec<&str> = match schema.get("type") {
        Some(Value::String(t)) => vec![t],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !wanted.is_empty() && !wanted.iter().any(|t| is(t, value)) {
        for kind in &wanted {
            if let Some(better) = as_kind(kind, value) {
                *value = better;
                break;
            }
        }
    }
    match value {
        Value::Object(fields) => {
            let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
            for (name, field) in fields.iter_mut() {
                if let Some(schema) = properties.get(name) {
                    coerce(schema, field);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                items.iter_mut().for_each(|item| coerce(schema, item));
            }
        }
        _ => {}
    }
}

fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|f| f.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

fn as_kind(kind: &str, value: &Value) -> Option<Value> {
    match (kind, value) {
        ("number" | "integer" | "boolean" | "array" | "object", Value::String(text)) => {
            let parsed: Value = serde_json::from_str(text.trim()).ok()?;
            is(kind, &parsed).then_some(parsed)
        }
        ("string", Value::Number(_) | Value::Bool(_)) => Some(Value::String(value.to_string())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "limit": {"type": "integer", "minimum": 1},
                "all": {"type": "boolean"},
                "edits": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "number"}}}},
            },
            "required": ["path"],
            "additionalProperties": false,
        })
    }

    #[test]
    fn quoted_numbers_booleans_and_arrays_are_taken_for_what_they_are() {
        let args = json!({"path": 7, "limit": "3", "all": "true", "edits": "[{\"n\": \"1.5\"}]"});
        let got = validate("t", &schema(), args).unwrap();
        assert_eq!(got, json!({"path": "7", "limit": 3, "all": true, "edits": [{"n": 1.5}]}));
    }

    #[test]
    fn each_fault_names_its_field() {
        let text = validate("read", &schema(), json!({"nope": true, "limit": 0})).unwrap_err();
        assert!(text.starts_with("Validation failed for tool \"read\":\n"), "{text}");
        for part in ["path: missing", "limit: ", "nope", "Received arguments:"] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
    }

    #[test]
    fn values_that_mean_nothing_else_are_refused() {
        for args in [json!({"path": {}}), json!({"path": "p", "limit": "many"}), json!("p"), json!([1])] {
            assert!(validate("t", &schema(), args.clone()).is_err(), "{args}");
        }
    }

    #[test]
    fn no_arguments_at_all_are_an_empty_object() {
        assert_eq!(validate("t", &json!({"type": "object"}), Value::Null), Ok(json!({})));
    }
}
