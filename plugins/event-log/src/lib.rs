//! Writes one JSON line for every event to a file: `{"event", "generation", "payload"}`, where
//! the generation counts the activations of this library in the process: a reload or a new
//! session makes it go up.
//!
//! The file is the one of the flag `--event-log FILE`, or of `ATOMIC_EVENT_LOG`; without
//! either nothing is written. Lines are appended in one write each, so that several programs
//! may share a file. All handlers are synchronous: logging starts no runtime, and the order in
//! the file is the order of dispatch. Values of headers that carry credentials are left out.

mod redact;

use atomic_plugin_api::{prelude::*, protocol::EVENT_NAMES};
use std::{
    fs::{File, OpenOptions},
    io::Write as _,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

export_extension!(activate);

const FLAG: &str = "event-log";
const VARIABLE: &str = "ATOMIC_EVENT_LOG";

static ACTIVATIONS: AtomicU64 = AtomicU64::new(0);

fn activate(pi: &Extension) -> Result<()> {
    pi.register_flag(FLAG, Flag::string().description("Append one JSON line per event to this file"));
    let generation = ACTIVATIONS.fetch_add(1, Ordering::Relaxed) + 1;
    let log = Arc::new(Log { generation, file: Mutex::default(), early: Mutex::default() });
    for name in EVENT_NAMES {
        let log = log.clone();
        // Early: a call that a gate blocks is logged too, as the model made it.
        pi.on_sync_with(Phase::Early, Raw(name), move |event, ctx| {
            log.line(name, event.json(), ctx)?;
            Ok(None)
        });
    }
    Ok(())
}

struct Log {
    generation: u64,
    /// Opened by the first event: in `activate` the command line may not be read yet.
    file: Mutex<Option<Sink>>,
    /// Lines of `project_trust`, which comes before flags have values.
    early: Mutex<Vec<u8>>,
}

enum Sink {
    To(File),
    /// Nobody asked for a log.
    Off,
}

impl Log {
    fn line(&self, event: &str, payload: &[u8], ctx: &Context) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let mut early = self.early.lock().unwrap_or_else(PoisonError::into_inner);
        if event == "project_trust" && file.is_none() {
            early.extend(encode(event, self.generation, payload));
            return Ok(());
        }
        if file.is_none() {
            *file = Some(Sink::open(ctx)?);
        }
        let early = std::mem::take(&mut *early);
        if let (Some(Sink::To(to)), false) = (file.as_mut(), early.is_empty()) {
            to.write_all(&early)?;
        }
        match file.as_mut() {
            Some(Sink::To(to)) => Ok(to.write_all(&encode(event, self.generation, payload))?),
            _ => Ok(()),
        }
    }
}

impl Sink {
    fn open(ctx: &Context) -> Result<Self> {
        let flag = ctx.pi().get_flag(FLAG)?.and_then(|v| v.as_str().map(PathBuf::from));
        let Some(path) = flag.or_else(|| std::env::var_os(VARIABLE).map(PathBuf::from)) else {
            return Ok(Sink::Off);
        };
        let path = if path.is_absolute() { path } else { ctx.cwd()?.join(path) };
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        // Prompts and file contents: the user's alone.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let opened = options.open(&path);
        Ok(Sink::To(opened.map_err(|e| Error::msg(format!("event log {}: {e}", path.display())))?))
    }
}

fn encode(event: &str, generation: u64, payload: &[u8]) -> Vec<u8> {
    let mut line = format!("{{\"event\":\"{event}\",\"generation\":{generation},\"payload\":").into_bytes();
    if event == "before_provider_headers" {
        line.extend(redact::headers(payload));
    } else {
        line.extend(payload);
    }
    line.extend(b"}\n");
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_json_object_with_the_payload_as_it_came() {
        let line = encode("turn_start", 7, br#"{"type":"turn_start","turnIndex":0}"#);
        assert_eq!(
            String::from_utf8(line).unwrap(),
            "{\"event\":\"turn_start\",\"generation\":7,\"payload\":{\"type\":\"turn_start\",\"turnIndex\":0}}\n"
        );
    }

    #[test]
    fn no_credential_of_a_request_reaches_the_log() {
        let payload = br#"{"type":"before_provider_headers","headers":{"x-api-key":"sk-1","accept":"*/*"}}"#;
        let line = String::from_utf8(encode("before_provider_headers", 1, payload)).unwrap();
        assert!(!line.contains("sk-1"), "{line}");
        assert!(line.contains(r#""accept":"*/*""#), "{line}");
    }
}
