//! `atomic sessions`: lists, searches, checks, deletes and exports session files. Starts no engine.

mod export;
mod search;

use crate::{
    args::{ExportFormat, RunArgs, SessionsCommand},
    card::Card,
    paths::Paths,
    sanitize, session_choice, stdio,
};
use atomic_agent::session::{self, Query, Row, SessionError};
use std::{
    fmt::Write as _,
    io::Write as _,
    path::{Path, PathBuf},
};

pub fn run(paths: &Paths, command: SessionsCommand, args: &RunArgs) -> Result<u8, Card> {
    let dir = session_choice::dir(paths, paths, args);
    match command {
        SessionsCommand::List { all, json, words } => {
            let query = Query {
                dir,
                cwd: (!all).then(|| paths.cwd.clone()),
                search: Some(words.join(" ")).filter(|w| !w.is_empty()),
                ..Query::default()
            };
            list(&query, json)
        }
        SessionsCommand::Search { all, words } => {
            let cwd = (!all).then(|| paths.cwd.clone());
            search::run(&Query { dir, cwd, ..Query::default() }, &words.join(" "))
        }
        SessionsCommand::Check { file, json } => check(&session_choice::found(&dir, paths, &file)?, json),
        SessionsCommand::Delete { session } => delete(paths, &session_choice::found(&dir, paths, &session)?),
        SessionsCommand::Export { session, format, output } => {
            let file = session_choice::found(&dir, paths, &session)?;
            let output = output.map(|o| paths.cwd.join(o));
            let format = format.or_else(|| of_name(output.as_deref())).unwrap_or(ExportFormat::Html);
            export(&file, format, output)
        }
        SessionsCommand::Help(of) => {
            crate::args::help_of(std::iter::once("sessions").chain(of.command.iter().map(String::as_str)))
                .map(|text| stdio::say(&text))
        }
    }
}

fn of_name(output: Option<&Path>) -> Option<ExportFormat> {
    match output?.extension()?.to_str()? {
        "md" | "markdown" => Some(ExportFormat::Markdown),
        "html" | "htm" => Some(ExportFormat::Html),
        _ => None,
    }
}

fn refused(e: &SessionError) -> Card {
    session_choice::refused(e)
}

fn list(query: &Query, json: bool) -> Result<u8, Card> {
    let page = session::list(query).map_err(|e| refused(&e))?;
    let mut text = String::new();
    for row in &page.sessions {
        match (json, serde_json::to_string(row)) {
            (true, Ok(line)) => _ = writeln!(text, "{line}"),
            _ => _ = writeln!(text, "{}", line(row, query.cwd.is_none())),
        }
    }
    for unread in &page.unread {
        eprintln!("{}", sanitize::line(unread, 300));
    }
    if page.sessions.is_empty() && !json {
        text.push_str("no session is there");
        if query.cwd.is_some() {
            text.push_str(" of this folder; --all shows those of others");
        }
        text.push('\n');
    }
    Ok(stdio::say(&text))
}

/// One session, on a line.
fn line(row: &Row, with_folder: bool) -> String {
    let when = jiff_date(row.modified);
    let name = row.name.as_ref().map(|n| format!("[{}] ", sanitize::line(n, 60))).unwrap_or_default();
    let first = sanitize::line(row.first_message.as_deref().unwrap_or_default(), 60);
    let folder = match with_folder {
        true => format!("  {}", sanitize::line(&row.cwd.display().to_string(), 120)),
        false => String::new(),
    };
    let size = crate::modes::size(row.size);
    format!("{}  {when}  {size:>7}  {name}{first}{folder}", sanitize::line(&row.id, 40))
}

fn jiff_date(ms: i64) -> String {
    atomic_agent::session::minute(ms)
}

fn check(file: &Path, json: bool) -> Result<u8, Card> {
    let report = session::check(file).map_err(|e| refused(&e))?;
    let code = u8::from(!report.is_sound());
    if json {
        let text = serde_json::to_string(&report).unwrap_or_default();
        return Ok(stdio::say(&format!("{text}\n")).max(code));
    }
    let mut text = format!(
        "{}\nsession {}, format {}, {} entries, {} (longest line {})\n",
        file.display(),
        report.id,
        report.version,
        report.entries,
        crate::modes::size(report.bytes),
        crate::modes::size(report.longest_line as u64),
    );
    for f in &report.findings {
        let mark = if f.is_error { "✗" } else { "·" };
        let _ = writeln!(text, "{mark} line {}: {}", f.line, f.what);
    }
    text.push_str(match (report.findings.is_empty(), code) {
        (true, _) => "nothing is wrong with it\n",
        (false, 0) => "it can be used as it is\n",
        _ => "it can be used; what is named above is passed over, and stays in the file\n",
    });
    Ok(stdio::say(&sanitize::text(&text)).max(code))
}

/// Into the trash of Atomic's home, from where it can be taken back.
fn delete(paths: &Paths, file: &Path) -> Result<u8, Card> {
    // Nothing that is no session is ever moved.
    session::peek(file).map_err(|e| refused(&e))?;
    if session::in_use(file) {
        return Err(refused(&SessionError::Locked(file.to_owned())));
    }
    let failed = |e: std::io::Error| {
        Card::new("cli::session_delete", "the session could not be moved to the trash")
            .file(file)
            .why(e.to_string())
            .help("it is where it was")
    };
    let trash = paths.trash().join("sessions");
    std::fs::create_dir_all(&trash).map_err(failed)?;
    let name = file.file_name().unwrap_or_default();
    let mut to = trash.join(name);
    for n in 1.. {
        if to.symlink_metadata().is_err() {
            break;
        }
        to = trash.join(format!("{n}-{}", name.to_string_lossy()));
    }
    match std::fs::rename(file, &to) {
        Err(e) if e.kind() == std::io::ErrorKind::CrossesDevices => {
            std::fs::copy(file, &to).and_then(|_| std::fs::remove_file(file)).map_err(failed)?;
        }
        other => other.map_err(failed)?,
    }
    Ok(stdio::say(&sanitize::text(&format!("moved to {}\n", to.display()))))
}

fn export(file: &Path, format: ExportFormat, output: Option<PathBuf>) -> Result<u8, Card> {
    let failed = |to: &Path, e: std::io::Error| {
        Card::new("cli::session_export", "the export could not be written").file(to).why(e.to_string())
    };
    let Some(output) = output else {
        let mut out = Vec::new();
        export::write(file, format, &mut out).map_err(|e| e.card(file, file))?;
        return Ok(stdio::say(&String::from_utf8_lossy(&out)));
    };
    let mut options = std::fs::OpenOptions::new();
    // What is there already may be somebody's only copy.
    options.write(true).create_new(true);
    let made = options.open(&output).map_err(|e| failed(&output, e))?;
    let mut to = std::io::BufWriter::new(made);
    export::write(file, format, &mut to).map_err(|e| e.card(file, &output))?;
    to.flush().map_err(|e| failed(&output, e))?;
    Ok(stdio::say(&sanitize::text(&format!("{}\n", output.display()))))
}
