//! The steps of the demo, in order.

use super::{Stage, evidence::Evidence, workshop::Workshop};
use crate::{
    args::RunArgs,
    card::Card,
    extension::{build::Built, place},
    extension_flags::Unsettled,
    launch::{Face, Launched, Origin, launch},
    paths::Paths,
};
use atomic_agent::{
    handle::Mode,
    hooks::{ExtensionChange, InputSource, ReplaceReport},
    op::Op,
};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    time::Instant,
};

/// What was not observed; a `Card` is for what could not even be tried.
type Seen<T> = Result<Result<T, String>, Card>;

macro_rules! observe {
    ($step:expr) => {
        match $step {
            Ok(value) => value,
            Err(missing) => return Ok(Err(missing)),
        }
    };
}

struct Scene<'a> {
    stage: &'a mut Stage,
    workshop: Workshop,
    evidence: Evidence,
    home: PathBuf,
    cwd: PathBuf,
    session: Launched,
}

pub async fn all(paths: &Paths, scratch: &Path, stage: &mut Stage, broken: Option<&str>) -> Seen<String> {
    stage.step("Three extensions are built as shared libraries");
    let workshop = Workshop::open(paths)?;
    workshop.set_up()?;
    let started = Instant::now();
    let built = workshop.build()?;
    stage.observed(&format!("{} libraries, {:.0?}", built.len(), started.elapsed()));

    stage.step("They are installed into the home's extensions folder");
    let (home, cwd) = (scratch.join("home"), scratch.join("project"));
    let names: &[&str] = match broken {
        Some("gate") => &["event-log", "greet"],
        _ => &["event-log", "permission-gate", "greet"],
    };
    for name in names {
        let installed = install(&built, name, &home)?;
        stage.detail(&installed.display().to_string());
    }
    let precious = cwd.join("precious");
    fs::create_dir_all(&precious)
        .and_then(|()| fs::write(precious.join("file"), "still here"))
        .and_then(|()| fs::write(scratch.join("script.json"), script().to_string()))
        .map_err(|e| Card::new("demo::scratch", "the scratch folder cannot be written").why(e.to_string()))?;

    let evidence = Evidence { events: scratch.join("events.jsonl"), sessions: scratch.join("sessions") };
    let session = start(paths, scratch, &home, &cwd, &evidence).await?;
    let loaded: Vec<String> = session.extensions.list().into_iter().map(|e| e.name).collect();
    for name in names {
        if !loaded.iter().any(|l| l == name) {
            let why = session.warnings.iter().map(ToString::to_string).collect::<String>();
            return Ok(Err(format!("{name} was not loaded\n{why}")));
        }
    }
    stage.observed(&format!("loaded: {}", loaded.join(", ")));

    let mut scene = Scene { stage, workshop, evidence, home, cwd, session };
    let seen = scene.play().await?;
    crate::modes::shut_down(&scene.session, false).await;
    observe!(seen);
    observe!(scene.evidence.in_order(&["session_start", "agent_settled", "session_shutdown"]));
    let events = scene.evidence.names().len();
    Ok(Ok(format!(
        "the lifecycle in {events} logged events, rm -rf blocked by the gate, a tool of an extension, \
         its new code after /reload in the same process (greet v1 -> v2), and v2 kept when its library broke"
    )))
}

impl Scene<'_> {
    async fn play(&mut self) -> Seen<()> {
        observe!(self.first_run().await?);
        observe!(self.change_and_reload().await?);
        observe!(self.break_and_reload().await?);
        Ok(Ok(()))
    }

    async fn first_run(&mut self) -> Seen<()> {
        self.stage.step("A run: the model wants `rm -rf precious`, then calls the extension's tool greet");
        observe!(self.say("Clean up, then greet the world.").await);
        let names = self.evidence.names();
        self.stage.detail(&format!("event-log saw: {}", squeezed(&names)));
        let lifecycle = [
            "session_start",
            "agent_start",
            "turn_start",
            "tool_call",
            "turn_end",
            "agent_end",
            "agent_settled",
        ];
        observe!(self.evidence.in_order(&lifecycle));

        let calls = self.evidence.results("bash");
        let Some(blocked) = calls.first() else {
            return Ok(Err("the session has no answer to the call".into()));
        };
        if !self.cwd.join("precious/file").exists() {
            return Ok(Err("rm -rf ran: precious is gone, and no gate blocked it".into()));
        }
        if !blocked.is_error || self.evidence.has_event_of("tool_result", &blocked.id) {
            return Ok(Err("the call of rm -rf was not blocked".into()));
        }
        self.stage.observed(&format!("blocked, precious is still there: \"{}\"", blocked.text));
        observe!(self.greeted(1));
        Ok(Ok(()))
    }

    async fn change_and_reload(&mut self) -> Seen<()> {
        self.stage.step("The source of greet is changed, built, installed, and /reload takes it in");
        self.stage.detail(&format!("{}: greet v1 becomes greet v2", self.workshop.greet_source().display()));
        self.workshop.write_greet(2)?;
        let built = self.workshop.build()?;
        install(&built, "greet", &self.home)?;
        let report = observe!(self.reload().await);
        let greet = report.extensions.iter().find(|e| e.name == "greet");
        let Some(greet) = greet.filter(|e| e.change == ExtensionChange::Reloaded) else {
            return Ok(Err(format!(
                "the reload did not take greet's new code: {greet:?} {:?}",
                report.notes
            )));
        };
        let major = |v: &Option<String>| v.as_deref().and_then(|v| v.split('.').next().map(str::to_owned));
        let line = match (major(&greet.from_version), major(&greet.to_version)) {
            (Some(from), Some(to)) => format!("reload: greet v{from} -> v{to}"),
            _ => return Ok(Err("the reload does not say which versions".into())),
        };
        if line != "reload: greet v1 -> v2" {
            return Ok(Err(format!("other versions were expected: {line}")));
        }
        self.stage.detail(&line);
        observe!(self.say("Greet again.").await);
        observe!(self.greeted(2));
        Ok(Ok(()))
    }

    async fn break_and_reload(&mut self) -> Seen<()> {
        self.stage.step("A broken library is put in greet's place");
        let place = self.home.join("extensions").join(place::file_name("greet"));
        let whole = fs::read(&place).unwrap_or_default();
        let half = self.cwd.join("half");
        fs::write(&half, &whole[..whole.len() / 2]).map_err(|e| {
            Card::new("demo::scratch", "the scratch folder cannot be written").why(e.to_string())
        })?;
        place::put(&half, &self.home.join("extensions"), &place::file_name("greet"))?;
        let report = observe!(self.reload().await);
        let greet = report.extensions.iter().find(|e| e.name == "greet");
        let Some(greet) = greet.filter(|e| e.change == ExtensionChange::Kept) else {
            return Ok(Err(format!(
                "the reload does not say that greet is kept: {greet:?} {:?}",
                report.notes
            )));
        };
        let why = greet.reason.clone().unwrap_or_default();
        if why.trim().is_empty() {
            return Ok(Err("the reload does not say why greet is kept".into()));
        }
        self.stage.detail(&format!("reload: greet keeps v2: {}", why.trim()));
        observe!(self.say("Greet once more.").await);
        observe!(self.greeted(2));
        Ok(Ok(()))
    }

    /// The last answer of greet came from that version.
    fn greeted(&mut self, version: u32) -> Result<(), String> {
        let results = self.evidence.results("greet");
        let last = results.last().ok_or("the session has no answer of greet")?;
        let wanted = format!("greet v{version} ");
        if last.is_error || !last.text.contains(&wanted) {
            return Err(format!("greet answered \"{}\", not as {}", last.text, wanted.trim()));
        }
        self.stage.observed(&format!("\"{}\"", last.text));
        Ok(())
    }

    async fn say(&mut self, text: &str) -> Result<(), String> {
        let prompt = Op::Prompt {
            text: text.to_owned(),
            images: Vec::new(),
            streaming_behavior: None,
            source: InputSource::Interactive,
        };
        let handle = &self.session.handle;
        handle.request(prompt).await.map_err(|e| e.message)?;
        handle.request(Op::WaitForIdle).await.map(drop).map_err(|e| e.message)
    }

    async fn reload(&mut self) -> Result<ReplaceReport, String> {
        let op = Op::Reload { names: Vec::new(), now: false, origin: None };
        let answer = self.session.handle.request(op).await.map_err(|e| e.message)?;
        serde_json::from_value(answer).map_err(|e| e.to_string())
    }
}

fn install(built: &[Built], name: &str, home: &Path) -> Result<PathBuf, Card> {
    let library = built.iter().find(|b| b.package == name).map(|b| &b.library);
    let library =
        library.ok_or_else(|| Card::new("demo::build", format!("the build made no library of {name}")))?;
    place::put(library, &home.join("extensions"), &place::file_name(name))
}

async fn start(
    paths: &Paths,
    scratch: &Path,
    home: &Path,
    cwd: &Path,
    evidence: &Evidence,
) -> Result<Launched, Card> {
    let args = RunArgs {
        offline: true,
        script: Some(scratch.join("script.json")),
        session_dir: Some(evidence.sessions.clone()),
        ..RunArgs::default()
    };
    let flag = Unsettled {
        name: "event-log".into(),
        inline: Some(evidence.events.display().to_string()),
        follower: None,
    };
    // Nobody is asked, so the gate says no by itself.
    let face = Face { mode: Mode::Print, has_ui: false, crash_line: true, page: None, skip: Vec::new() };
    launch(&paths.scratch(home.to_owned(), cwd.to_owned()), &args, vec![flag], face, Origin::default()).await
}

/// What the offline model answers, request by request.
fn script() -> Value {
    let call = |name: &str, arguments: Value| json!({"toolCalls": [{"name": name, "arguments": arguments}]});
    json!({"turns": [
        call("bash", json!({"command": "rm -rf precious"})),
        call("greet", json!({"name": "world"})),
        {"text": "The folder could not be removed; the world is greeted."},
        call("greet", json!({"name": "world"})),
        {"text": "Greeted again."},
        call("greet", json!({"name": "world"})),
        {"text": "Greeted once more."},
    ]})
}

/// `a b b b c` as `a b×3 c`.
fn squeezed(names: &[String]) -> String {
    let runs = names.chunk_by(|a, b| a == b);
    let shown = runs.map(|run| match run.len() {
        1 => run[0].clone(),
        n => format!("{}×{n}", run[0]),
    });
    shown.collect::<Vec<_>>().join(" ")
}
