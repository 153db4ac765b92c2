//! Keys and what they do.

use super::{ABORT, App, Ended, Leave, Step, Want};
use crate::{
    files,
    keys::Action,
    list::Item,
    palette::{self, Kind, Palette},
};
use atomic_agent::{
    hooks::{InputSource, StreamingBehavior},
    message::ImageContent,
    op::Op,
};
use crossterm::event::{Event as Terminal, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::time::{Duration, Instant};

/// Keys that follow each other so closely belong together: what was meant for the editor is no
/// answer to a question that comes up meanwhile.
const IN_FLOW: Duration = Duration::from_millis(1000);
/// Two presses within this time are one wish.
pub(super) const TWICE: Duration = Duration::from_millis(1500);

impl App {
    pub(super) fn terminal_event(&mut self, event: Terminal) {
        match event {
            Terminal::Key(key) if key.kind != KeyEventKind::Release => self.key(key),
            Terminal::Paste(text) => self.paste(&crate::sanitize::text(&text)),
            _ => {}
        }
    }

    fn paste(&mut self, text: &str) {
        if let Some((_, key)) = &mut self.secret {
            key.push_str(text.trim());
        } else if let Some(open) = self.dialogs.front_mut() {
            open.paste(text);
        } else if let Some(picker) = &mut self.picker {
            text.chars().filter(|c| !c.is_control()).for_each(|c| picker.push(c));
        } else {
            self.composer.paste(text);
            self.typed();
        }
    }

    fn key(&mut self, key: KeyEvent) {
        let action = self.settings.keys.action(&key);
        if action != Some(Action::Clear) {
            self.interrupted = None;
        }
        if self.secret.is_some() {
            return self.secret_key(key, action);
        }
        let in_flow = self.pressed.replace(Instant::now()).is_some_and(|at| at.elapsed() < IN_FLOW);
        if let Some(open) = self.dialogs.front_mut()
            && open.takes(action, in_flow)
        {
            if action == Some(Action::ExternalEditor) && open.editable().is_some() {
                self.leave = Some(Leave::Editor);
            } else if let Some(answer) = open.key(key, &self.settings.keys) {
                let id = open.id;
                self.dialogs.pop_front();
                self.handle.send(Op::Answer { id, answer });
            }
            return;
        }
        if self.picker.is_some() {
            return self.picker_key(key, action);
        }
        if self.palette.is_some() && self.palette_key(action) {
            return;
        }
        match action {
            Some(action) => self.act(action, key),
            None => {
                self.composer.key(key);
                self.typed();
            }
        }
    }

    fn act(&mut self, action: Action, key: KeyEvent) {
        match action {
            Action::Submit => self.submit(false),
            Action::FollowUp => self.submit(true),
            Action::NewLine => self.composer.new_line(),
            Action::Abort => self.escape(),
            Action::Clear => self.clear(),
            Action::Quit if self.composer.is_empty() => {
                self.end = Some(Ended::Quit { from_signal: false });
            }
            Action::Quit => self.composer.key(KeyEvent::new(KeyCode::Delete, KeyModifiers::NONE)),
            Action::Suspend => self.leave = Some(Leave::Suspend),
            Action::Complete => self.complete(),
            Action::Up if !self.composer.up() => self.composer.older(),
            Action::Down if !self.composer.down() => self.composer.newer(),
            Action::Up | Action::Down => {}
            Action::PageUp | Action::PageDown => self.composer.key(key),
            Action::CycleModel => self.ask(Op::CycleModel { backward: false }, Want::Model),
            Action::CycleModelBack => self.ask(Op::CycleModel { backward: true }, Want::Model),
            Action::SelectModel => self.ask(Op::ListModels, Want::Models),
            Action::CycleThinking => self.ask(Op::CycleThinkingLevel, Want::Level),
            Action::ToggleThinking => {
                self.transcript.hide_thinking ^= true;
                let what = if self.transcript.hide_thinking { "hidden" } else { "shown" };
                self.transcript.remark(&format!("what the model thinks is {what} from now on"));
            }
            Action::ExpandTools => {
                self.transcript.expanded ^= true;
                let what = if self.transcript.expanded { "whole" } else { "short" };
                self.transcript.remark(&format!("results of tools are shown {what} from now on"));
            }
            Action::ShowResult => self.transcript.show_last_result(),
            Action::ExternalEditor => self.leave = Some(Leave::Editor),
            Action::TakeBack => self.ask(Op::ClearQueue, Want::Other),
        }
    }

    // ---- ends

    /// Ctrl+C: what is typed goes, then what runs, then the program.
    fn clear(&mut self) {
        if self.busy() && self.composer.is_empty() {
            return self.abort();
        }
        if !self.composer.is_empty() {
            self.composer.take();
            self.typed();
            return;
        }
        if !self.ready && self.aborting.is_none() {
            return self.abort();
        }
        if self.interrupted.replace(Instant::now()).is_some_and(|at| at.elapsed() < TWICE) {
            self.end = Some(Ended::Quit { from_signal: false });
        } else {
            // Said in the live area, as long as it is true.
        }
    }

    fn escape(&mut self) {
        if self.busy() || !self.ready {
            self.abort();
        }
    }

    /// The terminal answers at once; what is aborted may take its time. A second one replaces an
    /// engine that has not come to rest.
    fn abort(&mut self) {
        match self.aborting {
            None => {
                self.aborting = Some(Instant::now());
                self.transcript.remark("aborting");
                if self.compacting {
                    self.handle.send(Op::AbortCompaction);
                }
                self.ask(Op::Abort, Want::Other);
                self.ask(Op::ClearQueue, Want::Other);
                for (text, _) in self.first.drain(..) {
                    self.composer.insert(&text);
                }
            }
            Some(since) if since.elapsed() < ABORT => {
                self.handle.send(Op::Abort);
                let (handle, program) = (self.handle.clone(), self.program.clone());
                tokio::spawn(async move {
                    let settled = handle.request(Op::WaitForIdle);
                    if tokio::time::timeout(ABORT, settled).await.is_err() {
                        program.restart();
                    }
                });
            }
            Some(_) => {
                self.transcript.warning("the engine does not come to rest: another one takes over");
                self.program.restart();
            }
        }
    }

    // ---- what is typed

    /// The text changed.
    fn typed(&mut self) {
        self.palette_closed = false;
        self.offer();
    }

    fn offer(&mut self) {
        self.palette = None;
        let before = self.composer.before_cursor();
        let Some((kind, typed)) = palette::wanted(&before, self.composer.on_first_line()) else { return };
        if self.palette_closed {
            return;
        }
        let items: Vec<Item<String>> = match kind {
            Kind::Command => {
                let commands = self.program.commands();
                commands.iter().map(|(c, what)| Item::new(&c[1..], what, c[1..].to_owned())).collect()
            }
            Kind::File => {
                let cwd = self.handle.view(|v| v.cwd.clone());
                let files = self.files.get_or_insert_with(|| files::under(&cwd));
                files.iter().map(|f| Item::new(f, "", f.clone())).collect()
            }
        };
        self.palette = Palette::new(kind, typed, items);
    }

    fn complete(&mut self) {
        if self.palette.is_none() {
            self.palette_closed = false;
            // Files may have come and gone since the last list.
            self.files = None;
            self.offer();
        } else {
            self.take_offer();
        }
    }

    fn take_offer(&mut self) -> bool {
        let Some(palette) = self.palette.take() else { return false };
        let Some(text) = palette.text() else { return false };
        self.composer.replace_before(palette.typed, &text);
        if text.ends_with('/') {
            self.offer();
        }
        true
    }

    /// Whether the key was the list's.
    fn palette_key(&mut self, action: Option<Action>) -> bool {
        let Some(palette) = &mut self.palette else { return false };
        match action {
            Some(Action::Up) => palette.step(-1),
            Some(Action::Down) => palette.step(1),
            Some(Action::PageUp) => palette.step(-8),
            Some(Action::PageDown) => palette.step(8),
            Some(Action::Abort) => {
                self.palette = None;
                self.palette_closed = true;
            }
            Some(Action::Complete) => drop(self.take_offer()),
            Some(Action::Submit) => {
                // A command that is typed whole, or chosen, is meant to run.
                let command = palette.kind == Kind::Command;
                if !command || palette.meant() {
                    self.take_offer();
                }
                if command {
                    self.submit(false);
                }
            }
            _ => return false,
        }
        true
    }

    fn submit(&mut self, follow_up: bool) {
        let text = self.composer.text();
        if text.trim().is_empty() {
            return;
        }
        self.palette = None;
        self.files = None;
        self.composer.take();
        self.save_draft();
        if self.own_command(text.trim()) {
            return;
        }
        let step = self.program.line(&text);
        if matches!(step, Step::Refuse(_)) {
            self.composer.set(&text);
        }
        self.step(step, follow_up);
    }

    pub(super) fn step(&mut self, step: Step, follow_up: bool) {
        match step {
            Step::Nothing => {}
            Step::Quit => self.end = Some(Ended::Quit { from_signal: false }),
            Step::Ask(op) => {
                let want = match &op {
                    Op::UserBash { command, .. } => {
                        self.bash = true;
                        self.transcript.bash_started(command);
                        Want::Bash
                    }
                    _ => Want::Other,
                };
                self.ask(op, want);
            }
            Step::Follow(op, follow) => {
                let id = self.follows.keys().max().map_or(0, |last| last + 1);
                self.follows.insert(id, follow);
                self.ask(op, Want::Follow(id));
            }
            Step::Tell(text) if text.trim().is_empty() => {}
            Step::Tell(text) => self.transcript.plain(text.trim_end()),
            Step::Refuse(card) => self.transcript.error(card.trim_end()),
            Step::Login(provider) => self.secret = Some((provider, String::new())),
            Step::Say(text, images) if self.aborting.is_some() => self.first.push_back((text, images)),
            Step::Say(text, images) => self.say(text, images, follow_up),
        }
    }

    pub(super) fn say(&mut self, text: String, images: Vec<ImageContent>, follow_up: bool) {
        self.transcript.said(&text);
        let behavior = if follow_up { StreamingBehavior::FollowUp } else { StreamingBehavior::Steer };
        let want = Want::Prompt(text.clone());
        self.ask(
            Op::Prompt { text, images, streaming_behavior: Some(behavior), source: InputSource::Interactive },
            want,
        );
    }

    // ---- a key of a provider

    fn secret_key(&mut self, key: KeyEvent, action: Option<Action>) {
        let Some((provider, typed)) = &mut self.secret else { return };
        match (key.code, action) {
            (_, Some(Action::Abort | Action::Clear)) => self.secret = None,
            (_, Some(Action::Submit)) => {
                let step = self.program.store_key(provider, typed.trim());
                self.secret = None;
                self.step(step, false);
            }
            (KeyCode::Backspace, _) => drop(typed.pop()),
            (KeyCode::Char(c), _) if !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) => {
                typed.push(c);
            }
            _ => {}
        }
    }
}
