//! The last row: where, which model, how full, what it cost, and what extensions say.

use crate::{
    sanitize, styled,
    theme::{Role, Theme},
};
use atomic_agent::{message::Usage, model::ModelInfo};
use ratatui::text::{Line, Span};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

#[derive(Default)]
pub struct Status {
    home: Option<PathBuf>,
    /// By extension and key.
    texts: BTreeMap<(String, String), String>,
    /// Tokens of the context, as the last answer told.
    tokens: u64,
    cost: f64,
    /// The branch of a folder, and when it was looked up.
    branch: Option<(PathBuf, Instant, Option<String>)>,
}

/// How old a branch's name may be: each drawing would read it otherwise, sixty times a second.
const BRANCH: Duration = Duration::from_secs(1);

/// What the engine's view gives.
pub struct Seen {
    pub cwd: PathBuf,
    pub model: Option<ModelInfo>,
    pub thinking: String,
    pub session: Option<String>,
}

impl Status {
    pub fn new(home: Option<PathBuf>) -> Self {
        Status { home, ..Status::default() }
    }

    pub fn set(&mut self, extension: &str, key: &str, text: Option<&str>) {
        let slot = (extension.to_owned(), key.to_owned());
        match text {
            Some(text) => drop(self.texts.insert(slot, sanitize::line(text, 200))),
            None => drop(self.texts.remove(&slot)),
        }
    }

    /// Of an answer that has ended.
    pub fn used(&mut self, usage: &Usage) {
        let tokens = usage.input + usage.cache_read + usage.cache_write + usage.output;
        if tokens > 0 {
            self.tokens = tokens;
        }
        self.cost += usage.cost.total;
    }

    /// Another session, or a shorter one.
    pub fn forget(&mut self, all: bool) {
        self.tokens = 0;
        if all {
            self.cost = 0.0;
        }
    }

    pub fn rows(&mut self, seen: &Seen, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        let dim = theme.style(Role::Dim);
        let mut left = vec![Span::styled(self.place(&seen.cwd), dim)];
        if let Some(name) = &seen.session {
            left.push(Span::styled(format!(" · {}", sanitize::line(name, 40)), dim));
        }
        let mut right = Vec::new();
        if self.cost > 0.0 {
            right.push(Span::styled(format!("${:.3} · ", self.cost), dim));
        }
        if let Some(model) = &seen.model {
            if self.tokens > 0 && model.context_window > 0 {
                let percent = self.tokens as f64 * 100.0 / model.context_window as f64;
                let role = match percent {
                    p if p >= 90.0 => Role::Error,
                    p if p >= 70.0 => Role::Warning,
                    _ => Role::Dim,
                };
                let window = short(model.context_window);
                right.push(Span::styled(format!("{percent:.0}% of {window} · "), theme.style(role)));
            }
            let name = sanitize::line(&format!("{}/{}", model.provider, model.id), 60);
            right.push(Span::styled(name, dim));
            if model.reasoning {
                right.push(Span::styled(format!(" · {}", seen.thinking), dim));
            }
        }
        let mut rows = vec![styled::justify(Line::from(left), Line::from(right), columns)];
        if !self.texts.is_empty() {
            let texts: Vec<&str> = self.texts.values().map(String::as_str).collect();
            rows.push(styled::cut(&styled::line(texts.join(" · "), dim), columns));
        }
        rows
    }

    fn place(&mut self, cwd: &Path) -> String {
        let shown = match self.home.as_ref().and_then(|h| cwd.strip_prefix(h).ok()) {
            Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
            Some(rest) => format!("~/{}", rest.display()),
            None => cwd.display().to_string(),
        };
        let fresh = self.branch.as_ref().is_some_and(|(of, at, _)| of == cwd && at.elapsed() < BRANCH);
        if !fresh {
            self.branch = Some((cwd.to_owned(), Instant::now(), branch(cwd)));
        }
        let branch = self.branch.as_ref().and_then(|(.., b)| b.as_ref());
        let branch = branch.map(|b| format!(" ({b})")).unwrap_or_default();
        sanitize::line(&(shown + &branch), 200)
    }
}

fn short(tokens: u64) -> String {
    match tokens {
        0..1000 => tokens.to_string(),
        1000..1_000_000 => format!("{}k", tokens / 1000),
        _ => format!("{:.1}M", tokens as f64 / 1e6),
    }
}

/// Of the repository that the folder is in.
fn branch(cwd: &Path) -> Option<String> {
    let git = cwd.ancestors().map(|d| d.join(".git")).find(|g| g.exists())?;
    let git = match git.is_file() {
        // A worktree's names where its own is.
        true => {
            let text = fs::read_to_string(&git).ok()?;
            git.parent()?.join(text.strip_prefix("gitdir:")?.trim())
        }
        false => git,
    };
    let head = fs::read_to_string(git.join("HEAD")).ok()?;
    let head = head.trim();
    Some(match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => branch.to_owned(),
        None => head.chars().take(8).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::texts;

    fn seen() -> Seen {
        let model = ModelInfo {
            id: "m".into(),
            name: "M".into(),
            provider: "p".into(),
            api: "x".into(),
            base_url: String::new(),
            reasoning: true,
            input: vec![],
            cost: Default::default(),
            context_window: 200_000,
            max_tokens: 1,
            ..serde_json::from_str(r#"{"id":"","name":"","provider":"","api":""}"#).unwrap()
        };
        Seen {
            cwd: "/nowhere/home/x".into(),
            model: Some(model),
            thinking: "high".into(),
            session: Some("n".into()),
        }
    }

    #[test]
    fn it_says_where_and_with_which_model_and_how_full() {
        let mut status = Status { home: Some("/nowhere/home".into()), ..Status::default() };
        let mut usage = Usage { input: 30_000, cache_read: 20_000, ..Usage::default() };
        usage.cost.total = 0.25;
        status.used(&usage);
        status.set("e", "k", Some("3 tasks\u{1b}[1m"));
        let rows = texts(&status.rows(&seen(), 60, &Theme::dark()));
        assert!(rows[0].starts_with("~/x · n") && rows[0].ends_with("$0.250 · 25% of 200k · p/m · high"));
        assert_eq!(rows[1], "3 tasks");
        status.set("e", "k", None);
        assert_eq!(status.rows(&seen(), 60, &Theme::dark()).len(), 1);
    }

    #[test]
    fn on_a_narrow_screen_the_place_stays() {
        let mut status = Status::default();
        assert_eq!(texts(&status.rows(&seen(), 20, &Theme::dark())), ["/nowhere/home/x · n"]);
    }
}
