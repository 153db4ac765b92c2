//! What of a server's words may be shown: short, without secrets, without control characters.

use serde_json::Value;
use std::collections::BTreeMap;

/// Characters of a body that a message quotes.
const LIMIT: usize = 400;

/// Texts that must not appear in a message.
#[derive(Clone, Default)]
pub(crate) struct Redactor(Vec<String>);

impl Redactor {
    pub fn add(&mut self, secret: &str) {
        // Shorter ones would blank out ordinary words.
        if secret.len() >= 5 && !self.0.iter().any(|known| known == secret) {
            self.0.push(secret.to_owned());
            self.0.sort_by_key(|s| std::cmp::Reverse(s.len()));
        }
    }
    /// Values of headers that carry credentials, whoever set them.
    pub fn add_headers(&mut self, headers: &BTreeMap<String, Option<String>>) {
        const TELLING: [&str; 6] = ["auth", "key", "token", "secret", "cookie", "credential"];
        for (name, value) in headers {
            let name = name.to_ascii_lowercase();
            if let Some(value) = value.as_deref().filter(|_| TELLING.iter().any(|t| name.contains(t))) {
                self.add(value);
                if let Some((_, bare)) = value.split_once(' ') {
                    self.add(bare.trim());
                }
            }
        }
    }
    pub fn clean(&self, text: &str) -> String {
        let mut out = text.to_owned();
        for secret in &self.0 {
            out = out.replace(secret.as_str(), "[redacted]");
        }
        out
    }
}

/// The message inside an error body if it has one, else its beginning. Secrets go first,
/// so that a cut never leaves half of one.
pub(crate) fn of_body(body: &str, redactor: &Redactor) -> String {
    let clean = redactor.clean(body);
    let said = serde_json::from_str::<Value>(&clean).ok().and_then(|v| message_of(&v));
    shorten(said.as_deref().unwrap_or(&clean))
}

/// `error.message`, `error`, `message` or `detail`, with the kind before it if there is one.
pub(crate) fn message_of(value: &Value) -> Option<String> {
    let error = match value.get("error") {
        Some(Value::String(text)) => return Some(text.clone()),
        Some(error @ Value::Object(_)) => error,
        _ => value,
    };
    let text = ["message", "detail"].iter().find_map(|k| error.get(k).and_then(Value::as_str))?;
    let kind = ["type", "code"].iter().find_map(|k| error.get(k).and_then(Value::as_str));
    Some(match kind {
        Some(kind) if kind != "error" => format!("{text} ({kind})"),
        _ => text.to_owned(),
    })
}

/// One line, at most `LIMIT` characters, nothing that could steer a terminal.
pub(crate) fn shorten(text: &str) -> String {
    let mut out = String::new();
    let mut count = 0;
    for word in text.split_whitespace() {
        if count > 0 {
            out.push(' ');
            count += 1;
        }
        for c in word.chars().filter(|c| !c.is_control() && !is_bidi(*c)) {
            if count >= LIMIT {
                out.push('…');
                return out;
            }
            out.push(c);
            count += 1;
        }
    }
    out
}

fn is_bidi(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_body_is_quoted_short_and_without_the_key() {
        let mut redactor = Redactor::default();
        redactor.add_headers(&BTreeMap::from([(
            "Authorization".to_owned(),
            Some("Bearer sk-123456".to_owned()),
        )]));
        for (body, want) in [
            (r#"{"error":{"message":"bad key sk-123456","type":"auth"}}"#, "bad key [redacted] (auth)"),
            (r#"{"error":"nope"}"#, "nope"),
            (r#"{"detail":"gone"}"#, "gone"),
            ("<h1>502</h1>\n\n\u{1b}[31mred\u{202e}", "<h1>502</h1> [31mred"),
        ] {
            assert_eq!(of_body(body, &redactor), want);
        }
        let long = format!("{} sk-123456", "x".repeat(LIMIT - 4));
        assert!(!of_body(&long, &redactor).contains("sk-1"));
    }
}
