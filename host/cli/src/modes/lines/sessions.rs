//! The session commands of the plain prompt: numbered lists to choose from, and what the engine
//! answers to a choice. A number means the list that was shown last; without one, the list that
//! would be shown.

use crate::{card::Card, sanitize, stdio::Stdio};
use atomic_agent::{
    op::{ForkPosition, Op},
    session::{self, Query},
};
use serde_json::Value;
use std::{
    fmt::Write as _,
    io::{BufRead as _, Write as _},
    path::{Path, PathBuf},
};

/// Rows of a list.
const ROWS: usize = 15;
/// Characters of a row's text.
const TEXT: usize = 60;

/// What the user asks of sessions.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    /// Without a choice: the list. A word that is neither a number nor a file searches.
    Resume(Option<Choice>),
    Fork(Option<usize>),
    Clone,
    Tree {
        choice: Option<usize>,
        summarize: bool,
        label: Option<String>,
    },
    /// `None`: which it has; empty: none any more.
    Name(Option<String>),
    Stats,
    Import(PathBuf),
}

#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    Number(usize),
    /// A file, or words to search for.
    Words(String),
}

/// What an answer is for.
#[derive(Clone, Debug, PartialEq)]
pub enum Want {
    /// Nothing of it is shown here.
    Other,
    List,
    /// The one of this number, once the list is there.
    Pick(Wish),
    /// The session was replaced.
    Replaced,
    Moved,
    Stats,
    Done(&'static str),
    /// Told once the answer is there.
    Said(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sessions,
    Messages,
    Tree,
}

/// The list that was shown last.
#[derive(Default)]
pub struct Lists {
    shown: Option<(Kind, Vec<String>)>,
}

/// What is to be done next.
pub enum Next {
    Ask(Op, Want),
    Say(String),
    Refuse(Card),
}

impl Wish {
    /// `None`: no command of sessions.
    pub fn parse(name: &str, args: &str) -> Option<Result<Wish, Card>> {
        let args = args.trim();
        let number = |text: &str| text.parse::<usize>().ok().filter(|n| *n > 0);
        let wrong = |usage: &str| {
            Card::new("lines::bad_argument", format!("/{name} does not take '{args}'")).help(usage.to_owned())
        };
        Some(Ok(match name {
            "resume" if args.is_empty() => Wish::Resume(None),
            "resume" => Wish::Resume(Some(match number(args) {
                Some(n) => Choice::Number(n),
                None => Choice::Words(args.to_owned()),
            })),
            "fork" if args.is_empty() => Wish::Fork(None),
            "fork" => match number(args) {
                Some(n) => Wish::Fork(Some(n)),
                None => {
                    return Some(Err(wrong(
                        "/fork lists your messages; /fork NUMBER begins anew before one",
                    )));
                }
            },
            "clone" => Wish::Clone,
            "session" => Wish::Stats,
            "name" if args.is_empty() => Wish::Name(None),
            "name" if args == "--clear" => Wish::Name(Some(String::new())),
            "name" => Wish::Name(Some(args.to_owned())),
            "import" if args.is_empty() => return Some(Err(wrong("/import FILE"))),
            "import" => Wish::Import(args.into()),
            "tree" => match tree(args) {
                Some(wish) => wish,
                None => return Some(Err(wrong("/tree [NUMBER] [--summarize] [--label TEXT]"))),
            },
            _ => return None,
        }))
    }
}

fn tree(args: &str) -> Option<Wish> {
    let (args, label) = match args.split_once("--label") {
        Some((before, label)) => (before, Some(label.trim().to_owned()).filter(|l| !l.is_empty())),
        None => (args, None),
    };
    let (mut choice, mut summarize) = (None, false);
    for word in args.split_whitespace() {
        match (word, word.parse::<usize>()) {
            ("--summarize", _) => summarize = true,
            (_, Ok(n)) if n > 0 && choice.is_none() => choice = Some(n),
            _ => return None,
        }
    }
    Some(Wish::Tree { choice, summarize, label })
}

impl Lists {
    /// `name`: of the session that is open.
    pub fn wish(&mut self, wish: Wish, name: Option<&str>) -> Next {
        match &wish {
            Wish::Resume(None) => Next::Ask(list(None), Want::List),
            Wish::Resume(Some(Choice::Words(words))) if looks_like_file(words) => {
                Next::Ask(switch(words), Want::Replaced)
            }
            Wish::Resume(Some(Choice::Words(words))) => Next::Ask(list(Some(words)), Want::List),
            Wish::Fork(None) => Next::Ask(Op::ForkMessages, Want::List),
            Wish::Tree { choice: None, .. } => Next::Ask(Op::SessionTree, Want::List),
            Wish::Resume(Some(Choice::Number(n))) => self.pick(Kind::Sessions, *n, list(None), wish),
            Wish::Fork(Some(n)) => self.pick(Kind::Messages, *n, Op::ForkMessages, wish),
            Wish::Tree { choice: Some(n), .. } => self.pick(Kind::Tree, *n, Op::SessionTree, wish),
            Wish::Clone => Next::Ask(Op::Clone { origin: None }, Want::Replaced),
            Wish::Import(path) => {
                Next::Ask(Op::ImportSession { path: path.clone(), origin: None }, Want::Replaced)
            }
            Wish::Name(None) => Next::Say(match name {
                Some(name) => format!("this session is called {name}"),
                None => "this session has no name; /name TEXT gives it one".to_owned(),
            }),
            Wish::Name(Some(name)) => Next::Ask(
                Op::SetSessionName { name: Some(name.clone()) },
                Want::Done(if name.is_empty() { "the name is gone" } else { "named" }),
            ),
            Wish::Stats => Next::Ask(Op::SessionStats, Want::Stats),
        }
    }

    /// From the list that is on the screen, if it is one of these.
    fn pick(&mut self, kind: Kind, n: usize, otherwise: Op, wish: Wish) -> Next {
        match &self.shown {
            Some((shown, ids)) if *shown == kind => match ids.get(n - 1) {
                Some(id) => chosen(&wish, id),
                None => Next::Refuse(
                    Card::new("lines::no_such_row", format!("the list has no row {n}"))
                        .help(format!("it ends at {}", ids.len())),
                ),
            },
            _ => Next::Ask(otherwise, Want::Pick(wish)),
        }
    }

    /// What an answer means; `Ok(text)` is shown.
    pub fn answered(&mut self, want: Want, answer: &Value) -> Result<String, Next> {
        match want {
            Want::Other => Ok(String::new()),
            Want::List => Ok(self.show(answer)),
            Want::Pick(wish) => {
                self.show(answer);
                let n = match &wish {
                    Wish::Resume(Some(Choice::Number(n)))
                    | Wish::Fork(Some(n))
                    | Wish::Tree { choice: Some(n), .. } => *n,
                    _ => return Ok(String::new()),
                };
                let kind = self.shown.as_ref().map(|(kind, _)| *kind);
                Err(self.pick(kind.unwrap_or(Kind::Sessions), n, Op::SessionStats, wish))
            }
            Want::Replaced => {
                self.shown = None;
                Ok(to_say_again(answer.get("text")))
            }
            Want::Moved => {
                self.shown = None;
                if answer["aborted"] == true {
                    return Ok("· stopped: the session stays where it is".into());
                }
                let mut text = to_say_again(answer.get("editorText"));
                if answer.get("summaryEntry").is_some() {
                    text = format!("· the branch that was left is kept in short\n{text}");
                }
                Ok(text)
            }
            Want::Stats => Ok(stats(answer)),
            Want::Done(text) => Ok(format!("· {text}")),
            Want::Said(text) => Ok(text),
        }
    }

    fn show(&mut self, answer: &Value) -> String {
        let rows = |key: &str| answer[key].as_array().cloned().unwrap_or_default();
        let id = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
        if answer.get("sessions").is_some() {
            let all = rows("sessions");
            self.shown = Some((Kind::Sessions, all.iter().map(|r| id(r, "path")).collect()));
            return sessions(&all, answer["total"].as_u64().unwrap_or(0));
        }
        if answer.get("messages").is_some() {
            let all = rows("messages");
            self.shown = Some((Kind::Messages, all.iter().map(|r| id(r, "entryId")).collect()));
            let lines: Vec<String> =
                all.iter().enumerate().map(|(n, r)| row(n, &short(&r["text"]))).collect();
            return match lines.is_empty() {
                true => "· nothing was said yet".into(),
                false => format!("{}\n/fork NUMBER begins anew before one of them", lines.join("\n")),
            };
        }
        let all: Vec<Value> = rows("nodes").into_iter().filter(is_shown).collect();
        self.shown = Some((Kind::Tree, all.iter().map(|r| id(r, "id")).collect()));
        tree_lines(&all, answer["leafId"].as_str())
    }
}

/// Before there is an engine: a numbered list, and a number. `None`: the person left.
pub fn pick_session(dir: &Path, cwd: &Path, stdio: &mut Stdio) -> Result<Option<PathBuf>, Card> {
    let mut query = Query { dir: dir.to_owned(), cwd: Some(cwd.to_owned()), limit: ROWS, ..Query::default() };
    loop {
        let page = session::list(&query).map_err(|e| Card::told(e.code(), &e.to_string()))?;
        if page.total == 0 && query.search.is_none() {
            let card = Card::new("cli::no_session", "there is no session to go on with");
            return Err(card.why("nothing was said in this folder yet").file(dir));
        }
        let rows: Vec<Value> = page.sessions.iter().filter_map(|r| serde_json::to_value(r).ok()).collect();
        let shown = sessions(&rows, page.total as u64);
        let rows_only = shown.rsplit_once('\n').map_or("", |(rows, _)| rows);
        let text = format!("{rows_only}\nWhich one? A number, words to search for, or q to leave: ");
        let _ = stdio.out.write_all(sanitize::text(&text).as_bytes()).and_then(|()| stdio.out.flush());
        let mut line = String::new();
        if std::io::stdin().lock().read_line(&mut line).unwrap_or(0) == 0 {
            return Ok(None);
        }
        let line = line.trim();
        match line.parse::<usize>() {
            Ok(n) if n > 0 => {
                if let Some(row) = page.sessions.get(n - 1) {
                    return Ok(Some(row.path.clone()));
                }
            }
            _ if line == "q" || line == "quit" => return Ok(None),
            _ => query.search = Some(line.to_owned()).filter(|l| !l.is_empty()),
        }
    }
}

/// Changes of model and the like are no places to go to.
fn is_shown(node: &Value) -> bool {
    let said =
        matches!(node["type"].as_str(), Some("message" | "custom_message" | "branch_summary" | "compaction"));
    (said && node["role"] != "system" && node["role"] != "toolResult") || node.get("label").is_some()
}

fn chosen(wish: &Wish, id: &str) -> Next {
    match wish {
        Wish::Fork(_) => Next::Ask(
            Op::Fork { entry_id: id.to_owned(), position: ForkPosition::Before, origin: None },
            Want::Replaced,
        ),
        Wish::Tree { summarize, label, .. } => Next::Ask(
            Op::NavigateTree {
                target_id: id.to_owned(),
                summarize: *summarize,
                custom_instructions: None,
                replace_instructions: false,
                label: label.clone(),
            },
            Want::Moved,
        ),
        _ => Next::Ask(switch(id), Want::Replaced),
    }
}

fn switch(path: &str) -> Op {
    Op::SwitchSession { path: path.into(), origin: None }
}

fn list(search: Option<&String>) -> Op {
    Op::ListSessions { all: false, search: search.cloned(), offset: 0, limit: ROWS }
}

fn looks_like_file(words: &str) -> bool {
    words.ends_with(".jsonl") || words.contains('/') || words.contains('\\')
}

fn to_say_again(text: Option<&Value>) -> String {
    match text.and_then(Value::as_str).filter(|t| !t.is_empty()) {
        Some(text) => {
            let lines: Vec<String> = text.lines().map(|l| format!("    {l}")).collect();
            format!("· what was said there, to be said again:\n{}", lines.join("\n"))
        }
        None => String::new(),
    }
}

fn short(text: &Value) -> String {
    sanitize::line(text.as_str().unwrap_or_default(), TEXT)
}

fn row(n: usize, text: &str) -> String {
    format!("{:>4}  {text}", n + 1)
}

fn sessions(all: &[Value], total: u64) -> String {
    if all.is_empty() {
        return "· no session is there".into();
    }
    let now = atomic_agent::message::now_ms();
    let mut text = String::new();
    for (n, s) in all.iter().enumerate() {
        let name = match s["name"].as_str() {
            Some(name) => format!("[{}] ", sanitize::line(name, TEXT)),
            None => String::new(),
        };
        let here = if s["current"] == true { "* " } else { "" };
        let first = short(&s["firstMessage"]);
        let age = ago(now - s["modified"].as_i64().unwrap_or(now));
        let _ = writeln!(
            text,
            "{}",
            row(n, &format!("{age:>8}  {:>7}  {here}{name}{first}", size(s["size"].as_u64().unwrap_or(0))))
        );
    }
    let more = total.saturating_sub(all.len() as u64);
    if more > 0 {
        let _ = writeln!(text, "      and {more} older; /resume WORDS searches them");
    }
    text + "/resume NUMBER goes on with one of them"
}

fn tree_lines(all: &[Value], leaf: Option<&str>) -> String {
    if all.is_empty() {
        return "· nothing was said yet".into();
    }
    let mut text = String::new();
    for (n, node) in all.iter().enumerate() {
        let depth = usize::try_from(node["depth"].as_u64().unwrap_or(0)).unwrap_or(0).min(20);
        let mark = match (node["id"].as_str() == leaf, node["onPath"] == true) {
            (true, _) => "●",
            (_, true) => "│",
            _ => " ",
        };
        let who = node["role"].as_str().or(node["type"].as_str()).unwrap_or_default();
        let label = match node["label"].as_str() {
            Some(label) => format!("[{}] ", sanitize::line(label, TEXT)),
            None => String::new(),
        };
        let line = format!("{mark} {}{label}{who}: {}", "  ".repeat(depth), short(&node["text"]));
        let _ = writeln!(text, "{}", row(n, &line));
    }
    text + "/tree NUMBER goes there; --summarize keeps what is left in short, --label TEXT marks it"
}

fn stats(s: &Value) -> String {
    let n = |v: &Value| v.as_u64().unwrap_or(0);
    let mut lines = vec![match s["sessionName"].as_str() {
        Some(name) => {
            format!("{} ({})", s["sessionId"].as_str().unwrap_or_default(), sanitize::line(name, TEXT))
        }
        None => s["sessionId"].as_str().unwrap_or_default().to_owned(),
    }];
    match s["sessionFile"].as_str() {
        Some(file) => lines.push(format!("{file}, {}", size(n(&s["fileSize"])))),
        None => lines.push("in no file".into()),
    }
    lines.push(format!(
        "{} messages: {} of yours, {} of the model; {} tool calls; {} branches",
        n(&s["totalMessages"]),
        n(&s["userMessages"]),
        n(&s["assistantMessages"]),
        n(&s["toolCalls"]),
        n(&s["branches"]).max(1),
    ));
    let t = &s["tokens"];
    lines.push(format!(
        "tokens: {} in, {} out, {} read from the cache, {} written to it; ${:.4}",
        n(&t["input"]),
        n(&t["output"]),
        n(&t["cacheRead"]),
        n(&t["cacheWrite"]),
        s["cost"].as_f64().unwrap_or(0.0),
    ));
    lines.join("\n")
}

/// `5 min`, `3 h`, `12 d`.
pub fn ago(ms: i64) -> String {
    let minutes = ms.max(0) / 60_000;
    match minutes {
        0 => "now".into(),
        1..60 => format!("{minutes} min"),
        60..1440 => format!("{} h", minutes / 60),
        _ => format!("{} d", minutes / 1440),
    }
}

pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["B", "KB", "MB", "GB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    match (unit, value < 10.0) {
        (0, _) => format!("{bytes} B"),
        (_, true) => format!("{value:.1} {}", UNITS[unit]),
        _ => format!("{value:.0} {}", UNITS[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(line: &str) -> Option<Result<Wish, Card>> {
        let (name, args) = line.split_once(' ').unwrap_or((line, ""));
        Wish::parse(name, args)
    }

    #[test]
    fn words_numbers_and_files_are_told_apart() {
        let ok = |line: &str| parse(line).unwrap().unwrap();
        assert_eq!(ok("resume"), Wish::Resume(None));
        assert_eq!(ok("resume 3"), Wish::Resume(Some(Choice::Number(3))));
        assert_eq!(ok("resume the bug"), Wish::Resume(Some(Choice::Words("the bug".into()))));
        assert_eq!(ok("name my work"), Wish::Name(Some("my work".into())));
        assert_eq!(
            ok("tree 4 --summarize --label dead end"),
            Wish::Tree { choice: Some(4), summarize: true, label: Some("dead end".into()) }
        );
        for wrong in ["fork x", "fork 0", "tree x", "tree 1 2", "import"] {
            assert!(parse(wrong).unwrap().is_err(), "{wrong}");
        }
        assert!(parse("new").is_none());
    }

    #[test]
    fn a_number_means_the_list_that_was_shown_and_without_one_the_list_that_would_be() {
        let mut lists = Lists::default();
        let page = json!({"sessions": [{"path": "/a"}, {"path": "/b"}], "total": 2, "offset": 0});
        let wish = |n| Wish::Resume(Some(Choice::Number(n)));
        let Next::Ask(Op::ListSessions { .. }, want) = lists.wish(wish(2), None) else { panic!() };
        let Err(Next::Ask(Op::SwitchSession { path, .. }, _)) = lists.answered(want, &page) else { panic!() };
        assert_eq!(path, PathBuf::from("/b"));
        let Next::Ask(Op::SwitchSession { path, .. }, _) = lists.wish(wish(1), None) else { panic!() };
        assert_eq!(path, PathBuf::from("/a"));
        let Next::Refuse(card) = lists.wish(wish(3), None) else { panic!() };
        assert_eq!(card.code, "lines::no_such_row");
        // The list of another kind says nothing about it.
        let Next::Ask(Op::ForkMessages, _) = lists.wish(Wish::Fork(Some(1)), None) else { panic!() };
    }

    #[test]
    fn sizes_and_ages_are_for_people() {
        assert_eq!([size(12), size(2_100_000), size(734_000_000)], ["12 B", "2.1 MB", "734 MB"]);
        assert_eq!([ago(0), ago(300_000), ago(7_200_000), ago(864_000_000)], ["now", "5 min", "2 h", "10 d"]);
    }
}
