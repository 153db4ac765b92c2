//! Which headers of a request carry credentials.

use serde_json::Value;

/// Parts of names whose values are nobody's business.
const SECRET: [&str; 6] = ["auth", "key", "token", "secret", "cookie", "password"];

/// The payload with the values of such headers replaced.
pub(crate) fn headers(payload: &[u8]) -> Vec<u8> {
    let Ok(mut value) = serde_json::from_slice::<Value>(payload) else {
        return b"null".to_vec();
    };
    if let Some(headers) = value.get_mut("headers").and_then(Value::as_object_mut) {
        for (name, value) in headers.iter_mut() {
            let name = name.to_ascii_lowercase();
            if !value.is_null() && SECRET.iter().any(|part| name.contains(part)) {
                *value = "[not logged]".into();
            }
        }
    }
    value.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_whatever_their_case() {
        let payload =
            br#"{"headers":{"Authorization":"Bearer a","X-Api-Key":"b","cookie":null,"accept":"c"}}"#;
        let out: Value = serde_json::from_slice(&headers(payload)).unwrap();
        let h = &out["headers"];
        assert_eq!(h["Authorization"], "[not logged]");
        assert_eq!(h["X-Api-Key"], "[not logged]");
        assert_eq!(h["cookie"], Value::Null);
        assert_eq!(h["accept"], "c");
    }
}
