//! The loop: keys, what the engine tells and what it answers come in; ops go out; what changed
//! is drawn. Nothing here waits for an engine.

mod draw;
mod engine;
mod input;
mod pickers;

use crate::{
    bell, composer::Composer, dialog::Open, palette::Palette, reader::Reader, screen::Screen,
    settings::Settings, status::Status, surfaces::Surfaces, transcript::Transcript,
};
use atomic_agent::{
    event::Event,
    handle::EngineHandle,
    message::ImageContent,
    op::{Op, OpError},
};
use crossterm::{
    event::{
        DisableBracketedPaste, EnableBracketedPaste, KeyboardEnhancementFlags, PopKeyboardEnhancementFlags,
        PushKeyboardEnhancementFlags,
    },
    terminal,
};
use pickers::Picker;
use serde_json::Value;
use std::{
    collections::{HashMap, VecDeque},
    fs::File,
    io,
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::sync::{mpsc, oneshot};

/// What the program around gives: what a typed line means, and what only it can do.
pub trait Program: Send + Sync {
    /// Every command with its slash, and what it does.
    fn commands(&self) -> Vec<(String, String)>;
    fn line(&self, line: &str) -> Step;
    /// An error with a code, as a person reads it.
    fn card(&self, code: &str, message: &str) -> String;
    /// Stores a key of a provider, and says so or why not.
    fn store_key(&self, provider: &str, key: &str) -> Step;
    /// The engine does not come to rest: another one takes over.
    fn restart(&self);
    /// `(file, text)` of a theme, by its name.
    fn theme(&self, name: &str) -> Result<crate::theme::Theme, String>;
    /// Names that `theme` knows.
    fn themes(&self) -> Vec<String>;
    /// It is kept for the next start.
    fn keep_theme(&self, name: &str) -> Result<(), String>;
    /// The keys of the settings, each with its value now and what it is; for `/settings`.
    fn settings(&self) -> String;
}

/// What a line comes to.
#[derive(Debug)]
pub enum Step {
    Nothing,
    Quit,
    Ask(Op),
    Tell(String),
    Refuse(String),
    Say(String, Vec<ImageContent>),
    /// A key is asked for, unseen.
    Login(String),
    /// What comes of the answer.
    Follow(Op, Follow),
}

/// From an op's answer to what it comes to.
pub struct Follow(pub Box<dyn FnOnce(&Value) -> Step + Send>);

impl std::fmt::Debug for Follow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Follow")
    }
}

/// What the first start came to.
pub struct Greeting {
    pub warnings: Vec<String>,
    pub greeting: String,
    /// What is left of the command line to say.
    pub messages: Vec<(String, Vec<ImageContent>)>,
}

/// Where this front end sits.
pub struct Seat {
    pub handle: EngineHandle,
    pub events: mpsc::UnboundedReceiver<Arc<Event>>,
    /// Comes once; `Err`: it does not start, and this is why.
    pub started: oneshot::Receiver<Result<Greeting, String>>,
    pub program: Arc<dyn Program>,
    pub settings: Settings,
    /// The terminal.
    pub out: File,
    /// Somebody outside ends the program.
    pub signals: mpsc::UnboundedReceiver<()>,
}

/// How it ended.
#[derive(Debug)]
pub enum Ended {
    Quit {
        from_signal: bool,
    },
    /// It did not start.
    Refused(String),
}

type Answer = (Want, Result<Value, OpError>);

/// What an answer is for.
#[derive(Clone, Debug, PartialEq)]
enum Want {
    Other,
    Bash,
    Prompt(String),
    Sessions,
    Tree,
    Messages,
    Models,
    Moved,
    Stats,
    Replay,
    Model,
    Level,
    Done(&'static str),
    /// One of `App::follows`.
    Follow(u64),
}

/// At most so many frames a second.
const FRAME: Duration = Duration::from_millis(16);
/// How often what moves by itself is drawn.
const TICK: Duration = Duration::from_millis(100);
/// What the reason of a start that failed may take to get here.
const REASON: Duration = Duration::from_millis(500);
/// What an abort may take before the engine counts as hung.
const ABORT: Duration = Duration::from_millis(500);

struct App {
    handle: EngineHandle,
    program: Arc<dyn Program>,
    settings: Settings,
    transcript: Transcript,
    composer: Composer,
    dialogs: VecDeque<Open>,
    picker: Option<Picker>,
    palette: Option<Palette>,
    /// Closed by Escape until the text changes.
    palette_closed: bool,
    files: Option<Vec<String>>,
    /// A key is typed for this provider.
    secret: Option<(String, String)>,
    status: Status,
    surfaces: Surfaces,
    answers: mpsc::UnboundedSender<Answer>,
    queue: (Vec<String>, Vec<String>),
    ready: bool,
    waiting: usize,
    bash: bool,
    compacting: bool,
    running_since: Option<Instant>,
    aborting: Option<Instant>,
    interrupted: Option<Instant>,
    first: VecDeque<(String, Vec<ImageContent>)>,
    /// What goes to the terminal beside rows.
    bytes: String,
    rows: usize,
    frame: usize,
    end: Option<Ended>,
    /// The reader is to pause, for the shell or an editor.
    leave: Option<Leave>,
    saved_draft: String,
    follows: HashMap<u64, Follow>,
    /// The session that the transcript shows.
    shown: String,
    /// When a key was last pressed.
    pressed: Option<Instant>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Leave {
    Suspend,
    Editor,
}

/// Takes the terminal until the user leaves. The caller ends the engine.
pub async fn run(seat: Seat) -> io::Result<Ended> {
    let Seat { handle, mut events, mut started, program, settings, out, mut signals } = seat;
    let (columns, rows) = terminal::size().unwrap_or((80, 24));
    let mut screen = Screen::new(io::BufWriter::new(out.try_clone()?), columns.max(1));
    let guard = Raw::begin(out)?;
    let mut reader = Reader::start()?;
    let (answers, mut answered) = mpsc::unbounded_channel();
    let mut app = App::new(handle, program, settings, answers, usize::from(columns), usize::from(rows));
    app.restore_draft();
    let mut starting = true;
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    let mut drawn = Instant::now() - FRAME;
    let mut dirty = true;
    loop {
        app.at_rest();
        app.say_first();
        if dirty && drawn.elapsed() >= FRAME {
            app.draw(&mut screen)?;
            (dirty, drawn) = (false, Instant::now());
        }
        if let Some(mut end) = app.end.take() {
            // Why it did not start comes beside the event that says so, and is what is told.
            if starting && let Ok(Ok(Err(card))) = tokio::time::timeout(REASON, &mut started).await {
                end = Ended::Refused(card);
            }
            app.draw(&mut screen)?;
            screen.clear()?;
            drop(guard);
            app.save_draft();
            return Ok(end);
        }
        if let Some(leave) = app.leave.take() {
            reader.pause();
            screen.clear()?;
            guard.leave();
            app.away(leave);
            guard.enter()?;
            reader.resume();
            if let Ok((columns, rows)) = terminal::size() {
                screen.resized(columns)?;
                app.resized(usize::from(columns), usize::from(rows));
            }
            dirty = true;
            continue;
        }
        let wait = FRAME.saturating_sub(drawn.elapsed());
        tokio::select! {
            biased;
            signal = signals.recv() => {
                let _ = signal;
                app.end = Some(Ended::Quit { from_signal: true });
            }
            key = reader.events.recv() => match key {
                Some(crossterm::event::Event::Resize(columns, rows)) => {
                    screen.resized(columns)?;
                    app.resized(usize::from(columns), usize::from(rows));
                    dirty = true;
                }
                Some(event) => {
                    app.terminal_event(event);
                    // A key is seen at once.
                    drawn = Instant::now() - FRAME;
                    dirty = true;
                }
                None => app.end = Some(Ended::Quit { from_signal: true }),
            },
            first = &mut started, if starting => {
                starting = false;
                match first {
                    Ok(Ok(greeting)) => app.greet(greeting),
                    Ok(Err(card)) => app.end = Some(Ended::Refused(card)),
                    // It comes to an end that is told as an event.
                    Err(_) => {}
                }
                dirty = true;
            }
            event = events.recv() => {
                match event {
                    Some(event) => app.event(&event),
                    None => app.end = Some(Ended::Quit { from_signal: false }),
                }
                dirty = true;
            }
            Some((want, answer)) = answered.recv() => {
                app.answer(want, answer);
                dirty = true;
            }
            () = tokio::time::sleep(wait), if dirty => {}
            _ = tick.tick() => {
                dirty |= app.tick();
            }
        }
    }
}

impl App {
    fn new(
        handle: EngineHandle,
        program: Arc<dyn Program>,
        settings: Settings,
        answers: mpsc::UnboundedSender<Answer>,
        columns: usize,
        rows: usize,
    ) -> Self {
        App {
            handle,
            program,
            transcript: Transcript::new(settings.theme.clone(), columns),
            composer: Composer::new(settings.history.clone()),
            status: Status::new(settings.home.clone()),
            settings,
            dialogs: VecDeque::new(),
            picker: None,
            palette: None,
            palette_closed: false,
            files: None,
            secret: None,
            surfaces: Surfaces::default(),
            answers,
            queue: Default::default(),
            ready: false,
            waiting: 0,
            bash: false,
            compacting: false,
            running_since: None,
            aborting: None,
            interrupted: None,
            first: VecDeque::new(),
            bytes: String::new(),
            rows,
            frame: 0,
            end: None,
            leave: None,
            saved_draft: String::new(),
            follows: HashMap::new(),
            shown: String::new(),
            pressed: None,
        }
    }

    fn resized(&mut self, columns: usize, rows: usize) {
        (self.transcript.columns, self.rows) = (columns.max(1), rows.max(1));
    }

    fn idle(&self) -> bool {
        self.ready && !self.bash && self.handle.view(|v| v.idle)
    }

    /// Something goes on that the user may want to end.
    fn busy(&self) -> bool {
        self.waiting > 0 || self.bash || self.compacting || !self.handle.view(|v| v.idle)
    }

    /// What was aborted has come to rest.
    fn at_rest(&mut self) {
        if self.ready && !self.busy() {
            self.aborting = None;
        }
    }

    /// Asks without waiting; the answer comes through the channel.
    fn ask(&mut self, op: Op, want: Want) {
        self.waiting += 1;
        let (asked, answers) = (self.handle.ask(op), self.answers.clone());
        tokio::spawn(async move {
            let _ = answers.send((want, asked.await));
        });
    }

    fn say_first(&mut self) {
        if self.idle()
            && self.waiting == 0
            && self.dialogs.is_empty()
            && let Some((text, images)) = self.first.pop_front()
        {
            self.say(text, images, false);
        }
    }

    fn greet(&mut self, greeting: Greeting) {
        self.transcript.remark(&greeting.greeting);
        for warning in &greeting.warnings {
            self.transcript.warning(warning.trim_end());
        }
        self.first = greeting.messages.into();
        if self.handle.view(|v| v.session_file.is_some()) {
            self.ask(Op::SessionMessages, Want::Replay);
        }
    }

    /// Whether anything on the screen moves by itself.
    fn tick(&mut self) -> bool {
        self.frame = self.frame.wrapping_add(1);
        if self.frame.is_multiple_of(10) {
            self.save_draft();
        }
        // The hint of a first Ctrl+C goes by itself.
        let hint = self.interrupted.take_if(|at| at.elapsed() >= input::TWICE).is_some();
        hint || self.busy()
            || self.transcript.running()
            || self.dialogs.front().is_some_and(Open::counts_down)
    }

    // ---- what is being typed outlives this process

    fn save_draft(&mut self) {
        let Some(file) = &self.settings.draft else { return };
        let text = self.composer.text();
        if text == self.saved_draft {
            return;
        }
        let kept = match text.trim().is_empty() {
            true => std::fs::remove_file(file),
            false => file
                .parent()
                .map_or(Ok(()), std::fs::create_dir_all)
                .and_then(|()| std::fs::write(file, &text)),
        };
        // It is a second line of defence: nobody is bothered when it cannot be had.
        let _ = kept;
        self.saved_draft = text;
    }

    fn restore_draft(&mut self) {
        let Some(text) = self.settings.draft.as_ref().and_then(|f| std::fs::read_to_string(f).ok()) else {
            return;
        };
        if !text.trim().is_empty() {
            self.composer.set(&text);
            self.transcript.remark("what was typed before is in the editor again");
        }
        self.saved_draft = text;
    }

    // ---- away from the screen

    fn away(&mut self, leave: Leave) {
        match leave {
            Leave::Suspend => suspend(),
            Leave::Editor => self.edit_outside(),
        }
    }

    /// `$VISUAL` or `$EDITOR` with what is typed; an editor that fails changes nothing.
    fn edit_outside(&mut self) {
        let composer = match self.dialogs.front_mut() {
            Some(open) => open.editable(),
            None => Some(&mut self.composer),
        };
        let Some(composer) = composer else { return };
        let wished =
            ["VISUAL", "EDITOR"].iter().find_map(|n| std::env::var(n).ok().filter(|v| !v.is_empty()));
        let wished = wished.unwrap_or_else(|| if cfg!(windows) { "notepad" } else { "vi" }.to_owned());
        let file = std::env::temp_dir().join(format!("atomic-draft-{}.md", std::process::id()));
        let mut words = wished.split_whitespace();
        let edited = std::fs::write(&file, composer.text()).and_then(|()| {
            let program = words.next().unwrap_or_default();
            let terminal =
                || File::options().read(true).write(true).open("/dev/tty").map(std::process::Stdio::from);
            let mut command = std::process::Command::new(program);
            command.args(words).arg(&file);
            // This process's own standard output is elsewhere.
            if cfg!(unix) {
                command.stdin(terminal()?).stdout(terminal()?).stderr(terminal()?);
            }
            let status = command.status()?;
            match status.success() {
                true => std::fs::read_to_string(&file),
                false => Err(io::Error::other(format!("it ended with {status}"))),
            }
        });
        match edited {
            Ok(text) => composer.set(text.trim_end_matches('\n')),
            Err(e) => self.transcript.error(&format!("✗ {wished}: {e}; what is typed is as it was")),
        }
        let _ = std::fs::remove_file(&file);
    }

    fn tell_elsewhere(&mut self, text: &str) {
        if self.settings.notify {
            self.bytes += &bell::notify(text);
        }
    }
}

#[cfg(unix)]
fn suspend() {
    let _ = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
}

#[cfg(windows)]
fn suspend() {}

/// The terminal in the state this front end needs; dropping it gives it back.
struct Raw {
    out: File,
    enhanced: bool,
}

impl Raw {
    fn begin(out: File) -> io::Result<Self> {
        let raw = Raw { out, enhanced: std::env::var_os("TERM").is_some_and(|t| keys_are_told_well(&t)) };
        raw.enter()?;
        Ok(raw)
    }

    fn enter(&self) -> io::Result<()> {
        terminal::enable_raw_mode()?;
        let mut out = &self.out;
        crossterm::queue!(out, EnableBracketedPaste)?;
        if self.enhanced {
            crossterm::queue!(
                out,
                PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES)
            )?;
        }
        io::Write::flush(&mut out)
    }

    fn leave(&self) {
        let mut out = &self.out;
        if self.enhanced {
            let _ = crossterm::queue!(out, PopKeyboardEnhancementFlags);
        }
        let _ = crossterm::queue!(out, DisableBracketedPaste, crossterm::cursor::Show);
        let _ = io::Write::flush(&mut out);
        let _ = terminal::disable_raw_mode();
    }
}

/// Terminals that do not know the sequence ignore it; the console of Linux prints it.
fn keys_are_told_well(term: &std::ffi::OsStr) -> bool {
    term != "linux" && term != "dumb"
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.leave();
    }
}
