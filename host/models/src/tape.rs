//! Traffic on a tape: recorded once from a real provider, played back without network. A tape is
//! one JSON object a line, `{"request": {"url", "body"}, "response": {"status", "headers", "body"}}`.
//! Keys never get onto it: no request header is kept, of the answer's only the harmless ones, and
//! what the redactor knows is taken out everywhere.

use crate::{
    excerpt::Redactor,
    received::{Body, Lost, Received},
};
use futures_util::{Stream, stream};
use reqwest::{
    Url,
    header::{HeaderMap, HeaderName, HeaderValue},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{
    collections::{BTreeMap, VecDeque},
    fs::File,
    io::Write as _,
    path::{Path, PathBuf},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

/// Headers of an answer that are kept.
const KEPT: [&str; 4] = ["content-type", "content-encoding", "retry-after", "retry-after-ms"];

#[derive(Clone, Debug)]
pub struct Tape(Arc<Kind>);

#[derive(Debug)]
enum Kind {
    Recording(Mutex<File>),
    Playing(Mutex<VecDeque<Exchange>>),
}

#[derive(Debug, Serialize, Deserialize)]
struct Exchange {
    request: Asked,
    response: Answered,
}

#[derive(Debug, Serialize, Deserialize)]
struct Asked {
    url: String,
    body: Value,
}

#[derive(Debug, Serialize, Deserialize)]
struct Answered {
    status: u16,
    headers: BTreeMap<String, String>,
    body: String,
}

/// Why there is no tape.
#[derive(Debug, thiserror::Error)]
pub enum TapeError {
    /// Also when it is there already: a recording overwrites nothing.
    #[error("cannot record to {}: {reason}", path.display())]
    NotWritable { path: PathBuf, reason: String },
    #[error("cannot read the recording {}: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("{}:{line}: not an exchange: {reason}", path.display())]
    Malformed { path: PathBuf, line: usize, reason: String },
}

impl TapeError {
    /// Stable; `atomic explain` knows it.
    pub fn code(&self) -> &'static str {
        match self {
            TapeError::NotWritable { .. } => "models::tape_not_writable",
            TapeError::Unreadable { .. } | TapeError::Malformed { .. } => "models::tape_unreadable",
        }
    }
}

impl Tape {
    /// `more`: behind what is there already.
    ///
    /// # Errors
    /// The file is there already, or cannot be made.
    pub fn record(path: &Path, more: bool) -> Result<Self, TapeError> {
        let mut options = File::options();
        match more {
            true => options.append(true).create(true),
            false => options.write(true).create_new(true),
        };
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path);
        let file =
            file.map_err(|e| TapeError::NotWritable { path: path.to_owned(), reason: e.to_string() })?;
        Ok(Tape(Arc::new(Kind::Recording(Mutex::new(file)))))
    }

    /// # Errors
    /// It cannot be read, or is no recording.
    pub fn play(path: &Path) -> Result<Self, TapeError> {
        let bytes = crate::file::read(path)
            .map_err(|e| TapeError::Unreadable { path: path.to_owned(), reason: e.to_string() })?;
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let exchanges = lines.map(|(at, line)| {
            serde_json::from_str(line).map_err(|e| TapeError::Malformed {
                path: path.to_owned(),
                line: at + 1,
                reason: crate::config::reason(&e),
            })
        });
        Ok(Tape(Arc::new(Kind::Playing(Mutex::new(exchanges.collect::<Result<_, _>>()?)))))
    }

    /// `None`: it records. `Err`: what was asked is not what was recorded.
    pub(crate) fn answer(&self, url: &Url, body: &Value) -> Option<Result<Received, String>> {
        let Kind::Playing(left) = &*self.0 else { return None };
        let next = left.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(Exchange { request, response }) = next else {
            return Some(Err("nothing is left on the recording".to_owned()));
        };
        let path = Url::parse(&request.url).map(|u| u.path().to_owned()).unwrap_or_default();
        if path != url.path() {
            return Some(Err(format!("the recording has {path} next, asked was {}", url.path())));
        }
        if let Some(at) = difference("", &request.body, body) {
            return Some(Err(format!("the request differs from the recorded one at {at}")));
        }
        let mut headers = HeaderMap::new();
        for (name, value) in &response.headers {
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                headers.insert(name, value);
            }
        }
        let events: Vec<Result<Vec<u8>, Lost>> =
            response.body.split_inclusive("\n\n").map(|e| Ok(e.as_bytes().to_vec())).collect();
        let body: Body = Box::pin(stream::iter(events));
        Some(Ok(Received { status: response.status, headers, body }))
    }

    /// The same answer; what of it was read is on the tape once nobody reads on.
    pub(crate) fn listen(
        &self,
        url: &Url,
        body: &Value,
        redactor: &Redactor,
        received: Received,
    ) -> Received {
        if !matches!(*self.0, Kind::Recording(_)) {
            return received;
        }
        let kept = |name: &&&str| received.headers.contains_key(**name);
        let headers =
            KEPT.iter().filter(kept).map(|n| ((*n).to_owned(), received.header(n).to_owned())).collect();
        let mut shown = url.clone();
        let _ = shown.set_username("");
        let _ = shown.set_password(None);
        shown.set_query(None);
        let tee = Tee {
            tape: self.clone(),
            redactor: redactor.clone(),
            asked: (shown.to_string(), body.clone()),
            status: received.status,
            headers,
            read: Vec::new(),
            body: received.body,
        };
        Received { status: received.status, headers: received.headers, body: Box::pin(tee) }
    }
}

struct Tee {
    tape: Tape,
    redactor: Redactor,
    asked: (String, Value),
    status: u16,
    headers: BTreeMap<String, String>,
    read: Vec<u8>,
    body: Body,
}

impl Stream for Tee {
    type Item = Result<Vec<u8>, Lost>;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = self.body.as_mut().poll_next(cx);
        if let Poll::Ready(Some(Ok(bytes))) = &next {
            self.read.extend_from_slice(bytes);
        }
        next
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        let Kind::Recording(file) = &*self.tape.0 else { return };
        let (url, body) = std::mem::take(&mut self.asked);
        let exchange = Exchange {
            request: Asked { url, body },
            response: Answered {
                status: self.status,
                headers: std::mem::take(&mut self.headers),
                body: String::from_utf8_lossy(&self.read).into_owned(),
            },
        };
        // Whole lines: text that is escaped twice may hide no key from the redactor.
        let line =
            serde_json::to_string(&exchange).map(|line| self.redactor.clean(&line)).unwrap_or_default();
        let mut file = file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = writeln!(file, "{line}") {
            tracing::error!(%error, "the recording cannot be written");
        }
    }
}

/// Where the two differ first, as a path. The prompt tells the day and the folder, and a session
/// has its own id: those are not compared.
fn difference(at: &str, recorded: &Value, now: &Value) -> Option<String> {
    const FREE: [&str; 5] = ["system", "instructions", "systemInstruction", "prompt_cache_key", "timestamp"];
    match (recorded, now) {
        (Value::Object(a), Value::Object(b)) => {
            let prompt = |o: &serde_json::Map<String, Value>| {
                o.get("role").is_some_and(|r| r == "system" || r == "developer")
            };
            if prompt(a) && prompt(b) {
                return None;
            }
            let mut names: Vec<&String> = a.keys().chain(b.keys()).collect();
            names.sort();
            names.dedup();
            names.retain(|n| !FREE.contains(&n.as_str()));
            names.into_iter().find_map(|name| {
                let path = format!("{at}/{name}");
                match (a.get(name), b.get(name)) {
                    (Some(a), Some(b)) => difference(&path, a, b),
                    _ => Some(path),
                }
            })
        }
        (Value::Array(a), Value::Array(b)) => {
            let inner =
                a.iter().zip(b).enumerate().find_map(|(n, (a, b))| difference(&format!("{at}/{n}"), a, b));
            inner.or_else(|| (a.len() != b.len()).then(|| format!("{at}/{}", a.len().min(b.len()))))
        }
        _ => (recorded != now).then(|| at.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_are_compared_but_for_the_prompt_and_the_sessions_own_id() {
        let body = |text: &str, system: &str, key: &str| {
            json!({"messages": [{"role": "system", "content": system}, {"role": "user", "content": text}],
                "instructions": system, "prompt_cache_key": key})
        };
        assert_eq!(difference("", &body("a", "s", "k"), &body("a", "t", "l")), None);
        assert_eq!(
            difference("", &body("a", "s", "k"), &body("b", "s", "k")).unwrap(),
            "/messages/1/content"
        );
        assert_eq!(difference("", &json!({"m": [1]}), &json!({"m": [1, 2]})).unwrap(), "/m/1");
        assert_eq!(difference("", &json!({"a": 1}), &json!({})).unwrap(), "/a");
    }
}
