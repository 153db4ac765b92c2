//! The full screen on a supervised engine: what a typed line means, and what only the program
//! can do for the front end.

use super::{
    end,
    lines::{
        input::{self, Line},
        sessions::{self, Lists},
    },
};
use crate::{
    auth,
    card::Card,
    paths::Paths,
    settings::{self, Settings},
    signals::{self, Signal},
    stdio::Stdio,
    supervise::{Desk, First},
};
use atomic_agent::op::Op;
use atomic_tui::{Ended, Follow, Greeting, Program, Seat, Step, keys::Keymap, theme::Theme};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{
    env, fs,
    io::Write,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::{mpsc, oneshot};

/// Commands that only this face has.
const OF_SCREEN: [(&str, &str); 4] = [
    ("/theme [NAME]", "what the screen looks like"),
    ("/hotkeys", "every key and what it does"),
    ("/copy", "the last answer into the clipboard"),
    ("/settings", "what is set, and where"),
];

/// Whether this terminal can show it: one that says it can do nothing gets lines.
pub fn can() -> bool {
    let plain = env::var_os("ATOMIC_PLAIN").is_some_and(|v| !v.is_empty());
    let dumb = env::var_os("TERM").map_or(!cfg!(windows), |t| t == "dumb");
    !plain && !dumb
}

pub async fn run(mut desk: Desk, paths: &Paths, set: &Settings, stdio: &mut Stdio) -> Result<u8, Card> {
    let failed = |what: &str, e: std::io::Error| Card::new("cli::screen", what).why(e.to_string());
    let mut heard = signals::listen(true).map_err(|e| failed("signals cannot be listened to", e))?;
    let (tell, signals) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(signal) = heard.recv().await {
            if matches!(signal, Signal::Terminate | Signal::HangUp) {
                let _ = tell.send(());
            }
        }
    });
    let (_, nothing) = mpsc::unbounded_channel();
    let events = std::mem::replace(&mut desk.events, nothing);
    let (_, none) = oneshot::channel();
    let first = std::mem::replace(&mut desk.started, none);
    let desk = Arc::new(desk);
    let (settings, problems) = screen_settings(paths, set);
    let (told, started) = oneshot::channel();
    let greeter = desk.clone();
    tokio::spawn(async move {
        // Without an answer it comes to an end that is told as an event.
        if let Ok(first) = first.await {
            let _ = told.send(first.map(|f| greeting(f, &greeter, problems)).map_err(|c| c.to_string()));
        }
    });
    let out = stdio.out.try_clone().map_err(|e| failed("the terminal cannot be used", e))?;
    let seat = Seat {
        handle: desk.handle.clone(),
        events,
        started,
        program: Arc::new(Face { desk: desk.clone(), paths: paths.clone(), lists: Default::default() }),
        settings,
        out,
        signals,
    };
    let ended = atomic_tui::run(seat).await.map_err(|e| failed("the terminal cannot be drawn on", e));
    let from_signal = matches!(ended, Ok(Ended::Quit { from_signal: true }) | Err(_));
    let asked = desk.handle.request(Op::Shutdown { from_signal });
    let told = tokio::time::timeout(end::ENGINE, asked).await;
    desk.control.end(if told.is_ok() { end::LEFTOVER } else { Duration::ZERO }).await;
    match ended? {
        Ended::Refused(card) => {
            let _ = stdio.err.write_all(card.as_bytes());
            Ok(1)
        }
        Ended::Quit { .. } => Ok(u8::from(desk.failed())),
    }
}

fn greeting(first: First, desk: &Desk, problems: Vec<Card>) -> Greeting {
    let model = desk.handle.view(|v| v.model.clone());
    let model = model.map(|m| format!("{}/{}", m.provider, m.id)).unwrap_or_default();
    let count = desk.catalogue().extensions.len();
    let plural = if count == 1 { "" } else { "s" };
    let version = env!("CARGO_PKG_VERSION");
    Greeting {
        warnings: first.warnings.iter().chain(&problems).map(Card::warning).collect(),
        greeting: format!("atomic {version} · {model} · {count} extension{plural} · /help"),
        messages: first.messages.into_iter().map(|s| (s.text, s.images)).collect(),
    }
}

/// What is wrong with a file is told, and what it means otherwise is not lost.
fn screen_settings(paths: &Paths, set: &Settings) -> (atomic_tui::Settings, Vec<Card>) {
    let mut problems = Vec::new();
    let theme = match (env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty()), &set.theme) {
        (true, _) => Theme::plain(),
        (false, None) => theme(paths, "auto").unwrap_or_default(),
        (false, Some(name)) => theme(paths, name).unwrap_or_else(|card| {
            problems.push(card);
            Theme::default()
        }),
    };
    let file = paths.agent().join("keybindings.json");
    let keys = match fs::read_to_string(&file) {
        Ok(text) => match serde_json::from_str::<Value>(text.trim_start_matches('\u{feff}')) {
            Ok(json) => {
                let (keys, unclear) = Keymap::read(&json);
                problems.extend(unclear.iter().map(|why| {
                    Card::new("cli::keybindings", "a key is not used").file(&file).why(why.clone())
                }));
                keys
            }
            Err(e) => {
                let card = Card::new("cli::keybindings", "the keys are as they come").file(&file);
                problems.push(card.why(e.to_string()).help("correct the file; /hotkeys lists the keys"));
                Keymap::default()
            }
        },
        Err(_) => Keymap::default(),
    };
    let cwd: String = Sha256::digest(paths.cwd.as_os_str().as_encoded_bytes())
        .iter()
        .take(8)
        .map(|b| format!("{b:02x}"))
        .collect();
    let screen = atomic_tui::Settings {
        theme,
        keys,
        history: Some(paths.agent().join("prompt-history")),
        draft: Some(paths.home.join("run").join(format!("{cwd}.draft"))),
        home: paths.user_home.clone(),
        notify: set.notify,
    };
    (screen, problems)
}

fn themes_dir(paths: &Paths) -> PathBuf {
    paths.agent().join("themes")
}

fn theme(paths: &Paths, name: &str) -> Result<Theme, Card> {
    if let Some(theme) = Theme::named(name, env::var("COLORFGBG").ok().as_deref()) {
        return Ok(theme);
    }
    let file = themes_dir(paths).join(format!("{name}.json"));
    let refuse = |why: String| {
        Card::new("cli::theme", format!("the theme {name} cannot be used"))
            .file(&file)
            .why(why)
            .help("/theme lists what there is")
    };
    if name.contains(['/', '\\']) {
        return Err(refuse("a theme has a name, not a path".to_owned()));
    }
    let text = fs::read_to_string(&file).map_err(|e| refuse(e.to_string()))?;
    let json: Value = serde_json::from_str(&text).map_err(|e| refuse(e.to_string()))?;
    let (theme, unclear) = Theme::read(&json).map_err(&refuse)?;
    match unclear.first() {
        Some(why) => Err(refuse(why.clone())),
        None => Ok(theme),
    }
}

struct Face {
    desk: Arc<Desk>,
    paths: Paths,
    /// What the numbers of the session commands mean, as at the plain prompt.
    lists: Arc<Mutex<Lists>>,
}

fn lock(lists: &Mutex<Lists>) -> MutexGuard<'_, Lists> {
    lists.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a session command asks, and what its answer leads to.
fn step(lists: Arc<Mutex<Lists>>, next: sessions::Next) -> Step {
    match next {
        sessions::Next::Say(text) => Step::Tell(text),
        sessions::Next::Refuse(card) => Step::Refuse(card.to_string()),
        sessions::Next::Ask(op, want) => Step::Follow(
            op,
            Follow(Box::new(move |answer| {
                let said = lock(&lists).answered(want, answer);
                match said {
                    Ok(text) => Step::Tell(text),
                    Err(next) => step(lists, next),
                }
            })),
        ),
    }
}

/// Who reads it may choose a model with that key: it is told when the key counts.
fn keys_changed(said: Result<String, Card>) -> Step {
    match said {
        Ok(text) => Step::Follow(Op::RefreshModels, Follow(Box::new(|_| Step::Tell(text)))),
        Err(card) => Step::Refuse(card.to_string()),
    }
}

impl Face {
    fn help(&self, name: &str) -> String {
        let all = Program::commands(self);
        let name = name.trim().trim_start_matches('/');
        let bare = |usage: &str| {
            usage.trim_start_matches('/').split_whitespace().next().unwrap_or_default().to_owned()
        };
        if !name.is_empty() {
            let own = input::OWN.iter().chain(&OF_SCREEN).map(|(u, w)| ((*u).to_owned(), (*w).to_owned()));
            let found: Vec<String> = own
                .chain(all)
                .filter(|(usage, _)| bare(usage) == name)
                .map(|(usage, what)| format!("{usage}\n  {what}"))
                .take(1)
                .collect();
            return match found.first() {
                Some(text) => text.clone(),
                None => format!("there is no command /{name}; /help lists them"),
            };
        }
        let row = |usage: &str, what: &str| format!("  {usage:<28} {what}");
        let mut lines: Vec<String> =
            input::OWN.iter().chain(&OF_SCREEN).map(|(usage, what)| row(usage, what)).collect();
        let of_others = self.desk.catalogue().all_commands();
        if !of_others.is_empty() {
            lines.push("Of extensions, skills and templates:".to_owned());
        }
        for c in of_others {
            lines.push(row(&format!("/{}", c.name), c.description.as_deref().unwrap_or_default()));
        }
        lines.push("/hotkeys lists the keys.".to_owned());
        lines.join("\n")
    }
}

impl Program for Face {
    fn commands(&self) -> Vec<(String, String)> {
        let own = input::OWN.iter().chain(&OF_SCREEN).filter(|(usage, _)| usage.starts_with('/'));
        let own = own.map(|(usage, what)| {
            (usage.split_whitespace().next().unwrap_or(usage).to_owned(), (*what).to_owned())
        });
        let others = self.desk.catalogue().all_commands();
        own.chain(others.into_iter().map(|c| (format!("/{}", c.name), c.description.unwrap_or_default())))
            .collect()
    }

    fn line(&self, line: &str) -> Step {
        if let Some(name) = line.trim().strip_prefix("/help") {
            return Step::Tell(self.help(name));
        }
        match input::parse(line, &self.desk.catalogue().all_commands()) {
            Line::Nothing => Step::Nothing,
            Line::Quit => Step::Quit,
            Line::Help => Step::Tell(self.help("")),
            Line::Login(provider) => Step::Login(provider),
            Line::Logout(provider) => keys_changed(auth::logout(&self.paths, &provider)),
            Line::Host { name, args } => Step::Ask(Op::HostCommand { name, args }),
            Line::Reload { names, now } => Step::Ask(Op::Reload { names, now, origin: None }),
            Line::New => Step::Ask(Op::NewSession { parent_session: None, origin: None, setup: vec![] }),
            Line::Compact(custom_instructions) => {
                Step::Ask(Op::Compact { custom_instructions, options: Default::default() })
            }
            Line::Session(wish) => {
                let name = self.desk.handle.view(|v| v.session_name.clone());
                let next = lock(&self.lists).wish(wish, name.as_deref());
                step(self.lists.clone(), next)
            }
            Line::Bash { command, hidden } => {
                Step::Ask(Op::UserBash { command, exclude_from_context: hidden })
            }
            Line::Unknown(card) => Step::Refuse(card.to_string()),
            Line::Say(text) => Step::Say(text, Vec::new()),
        }
    }

    fn card(&self, code: &str, message: &str) -> String {
        Card::told(code, message).to_string()
    }

    fn store_key(&self, provider: &str, key: &str) -> Step {
        keys_changed(auth::store(&self.paths, provider, key))
    }

    fn restart(&self) {
        self.desk.control.restart();
    }

    fn theme(&self, name: &str) -> Result<Theme, String> {
        theme(&self.paths, name).map_err(|card| card.to_string())
    }

    fn themes(&self) -> Vec<String> {
        let mut names: Vec<String> = ["auto", "dark", "light", "none"].map(str::to_owned).into();
        let files = fs::read_dir(themes_dir(&self.paths)).into_iter().flatten().flatten();
        let mut own: Vec<String> =
            files.filter_map(|e| Some(e.file_name().to_str()?.strip_suffix(".json")?.to_owned())).collect();
        own.sort();
        names.append(&mut own);
        names
    }

    fn keep_theme(&self, name: &str) -> Result<(), String> {
        settings::keep_theme(&self.paths, name).map_err(|card| card.to_string())
    }

    fn settings(&self) -> String {
        settings::overview(&self.paths)
    }
}
