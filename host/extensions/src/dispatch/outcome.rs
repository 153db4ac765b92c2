//! What a handler answered, decoded: `{"result"?, "patch"?}`, empty for no opinion.

use serde::Deserialize;
use serde_json::Value;

#[derive(Default, Deserialize)]
pub(super) struct Answer {
    #[serde(default)]
    pub(super) result: Option<Value>,
    #[serde(default)]
    patch: Option<Value>,
}

impl Answer {
    /// `Err` says why the bytes are no answer.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, String> {
        if bytes.is_empty() {
            return Ok(Answer::default());
        }
        serde_json::from_slice(bytes).map_err(|e| format!("malformed result: {e}"))
    }

    /// The patch's member; absent means unchanged.
    pub(super) fn patched(&mut self, member: &str) -> Option<Value> {
        self.patch.as_mut()?.as_object_mut()?.shift_remove(member)
    }

    /// The result as an object with at least one of the known keys; anything else is no answer
    /// (decisions.md "Empty answers"), a value of another kind is a fault.
    pub(super) fn known(&self, keys: &[&str]) -> Result<Option<&serde_json::Map<String, Value>>, String> {
        match &self.result {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(o)) => Ok(keys.iter().any(|k| o.contains_key(*k)).then_some(o)),
            Some(other) => Err(format!("malformed result: expected an object, got {other}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_without_a_known_key_is_no_answer_and_a_string_is_a_fault() {
        let of = |s: &str| Answer::decode(s.as_bytes()).unwrap();
        assert!(of(r#"{"result":{"other":1}}"#).known(&["block"]).unwrap().is_none());
        assert!(of(r#"{"result":null}"#).known(&["block"]).unwrap().is_none());
        assert!(of("").known(&["block"]).unwrap().is_none());
        assert!(of(r#"{"result":{"block":true}}"#).known(&["block"]).unwrap().is_some());
        assert!(of(r#"{"result":"no"}"#).known(&["block"]).is_err());
    }
}
