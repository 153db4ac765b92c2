//! A session as a page for people. What is in it was written by others: in HTML it is text and
//! nothing else (no script, no link, no style of its own), in Markdown it stands in fences.

use crate::{args::ExportFormat, card::Card, session_choice};
use atomic_agent::{
    message::{Content, Message},
    session::{self, Entry, Session, SessionError},
};
use std::{
    io::{self, Write},
    path::Path,
};

pub enum Failed {
    Session(SessionError),
    Write(io::Error),
}

impl Failed {
    pub fn card(&self, file: &Path, output: &Path) -> Card {
        match self {
            Failed::Session(e) => session_choice::refused(e).file(file),
            Failed::Write(e) => Card::new("cli::session_export", "the export could not be written")
                .file(output)
                .why(e.to_string()),
        }
    }
}

/// The branch that the session is on; of a file that is too large to be opened, all there is.
pub fn write(file: &Path, format: ExportFormat, to: &mut impl Write) -> Result<(), Failed> {
    match Session::read(file) {
        Ok(session) => {
            let title = session.name().unwrap_or_else(|| session.id().to_owned());
            begin(to, format, &title, &file.to_string_lossy()).map_err(Failed::Write)?;
            for entry in session.path() {
                part(to, format, entry).map_err(Failed::Write)?;
            }
        }
        Err(SessionError::TooLarge { .. }) => {
            let header = session::peek(file).map_err(Failed::Session)?;
            begin(to, format, &header.id, &file.to_string_lossy()).map_err(Failed::Write)?;
            let mut written = Ok(());
            let read = session::each_line(file, |_, line, _| {
                if let (Ok(()), Some(entry)) =
                    (&written, std::str::from_utf8(line).ok().and_then(Entry::parse))
                {
                    written = part(to, format, &entry);
                }
            });
            read.map_err(Failed::Session)?;
            written.map_err(Failed::Write)?;
        }
        Err(e) => return Err(Failed::Session(e)),
    }
    end(to, format).map_err(Failed::Write)
}

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em}\
section{border-top:1px solid #8884;padding:.5em 0}h2{font-size:.85em;margin:.3em 0;color:#777}\
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.3em 0;font:13px/1.5 ui-monospace,monospace}\
img{max-width:100%}";

fn begin(to: &mut impl Write, format: ExportFormat, title: &str, file: &str) -> io::Result<()> {
    match format {
        ExportFormat::Html => write!(
            to,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
             <title>{}</title>\n<style>{STYLE}</style></head>\n<body>\n<h1>{}</h1>\n<p>{}</p>\n",
            escaped(title),
            escaped(title),
            escaped(file)
        ),
        ExportFormat::Markdown => write!(to, "# Session\n\n{}\n{}\n", fenced(title), fenced(file)),
    }
}

fn end(to: &mut impl Write, format: ExportFormat) -> io::Result<()> {
    match format {
        ExportFormat::Html => writeln!(to, "</body></html>"),
        ExportFormat::Markdown => Ok(()),
    }
}

/// One entry; those that say nothing to a person are left out.
fn part(to: &mut impl Write, format: ExportFormat, entry: &Entry) -> io::Result<()> {
    let (who, text, images) = match (entry.kind(), entry.message()) {
        ("message", Some(Message::System(_))) | ("message", None) => return Ok(()),
        ("message", Some(message)) => (message.role().to_owned(), entry.said(), images(message)),
        ("custom_message", _) if !entry.is_true("display") => return Ok(()),
        ("custom_message", _) => (entry.str("customType").unwrap_or_default(), entry.said(), Vec::new()),
        ("compaction" | "branch_summary", _) => (entry.kind().replace('_', " "), entry.said(), Vec::new()),
        _ => return Ok(()),
    };
    match format {
        ExportFormat::Html => {
            writeln!(to, "<section><h2>{} · {}</h2>", escaped(&who), escaped(entry.timestamp()))?;
            if !text.is_empty() {
                writeln!(to, "<pre>{}</pre>", escaped(&text))?;
            }
            for (mime, data) in images {
                writeln!(to, "<img alt=\"\" src=\"data:{mime};base64,{data}\">")?;
            }
            writeln!(to, "</section>")
        }
        ExportFormat::Markdown => {
            let who: String = who.chars().filter(|c| c.is_alphanumeric() || " _-".contains(*c)).collect();
            writeln!(to, "\n## {who}\n\n{}", fenced(&text))
        }
    }
}

/// Pictures of the kinds that are nothing but pictures.
fn images(message: &Message) -> Vec<(&'static str, String)> {
    let blocks: Vec<Content> = match message {
        Message::User(m) => m.content.clone().blocks(),
        Message::ToolResult(m) => m.content.clone(),
        Message::Assistant(m) => m.content.clone(),
        _ => Vec::new(),
    };
    let mut found = Vec::new();
    for block in blocks {
        let Content::Image(image) = block else { continue };
        let mime = ["image/png", "image/jpeg", "image/gif", "image/webp"]
            .into_iter()
            .find(|m| *m == image.mime_type);
        let plain = image.data.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b));
        if let (Some(mime), true) = (mime, plain) {
            found.push((mime, image.data));
        }
    }
    found
}

/// Text and nothing else: also what a reader would take for a direction or a hidden letter.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if hidden(c) => out.push_str(&format!("[U+{:04X}]", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// Changes the order of what is read, or is not seen at all.
fn hidden(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
        || (c.is_control() && !matches!(c, '\n' | '\t'))
}

/// Behind a fence that is longer than any in it.
fn fenced(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let text: String = text
        .chars()
        .map(|c| if hidden(c) { format!("[U+{:04X}]", u32::from(c)) } else { c.to_string() })
        .collect();
    format!("{fence}text\n{text}\n{fence}")
}
