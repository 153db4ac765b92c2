//! `docs/events.md`, made of the table of events and the doc comments of its types. The page says
//! nothing that is not said there.

use atomic_plugin_api::protocol::{Class, EVENTS, EventRow, Fired};
use std::{collections::BTreeMap, fmt::Write as _, fs, path::Path};

/// The whole page.
pub fn page(repository: &Path) -> String {
    let source = |below: &str| {
        let mut files: Vec<_> =
            fs::read_dir(repository.join(below)).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        files.iter().filter(|p| p.is_file()).map(|p| fs::read_to_string(p).unwrap()).collect::<String>()
    };
    let types = structs(&source("plugin-api/src/protocol"));
    let methods = methods(&source("plugin-api/src/event"));
    let mut out = String::from(
        "# Events\n\n\
         <!-- Made by `cargo run -p atomic-tests --example events-page`; do not edit. -->\n\n\
         `pi.on(Kind, handler)` and `pi.on_sync(Kind, handler)` subscribe. Handlers of an event run one after \
         another: first those of `Phase::Early`, then normal, then `Phase::Late` (`pi.on_with`); inside a phase in \
         load order, inside an extension in the order they were registered. The list is fixed when the event is \
         dispatched. Every payload has `type`, the event's name. Small fields are fields of the event, big ones are \
         methods; nothing is decoded before it is read. `pi.on(Raw(\"name\"), …)` takes any name, and gets JSON.\n\n\
         ## Classes\n\n\
         | Class | What becomes of the answers | A handler that fails, panics, overruns or answers what cannot be read |\n\
         |---|---|---|\n",
    );
    for class in Class::ALL {
        let _ = writeln!(out, "| {} | {} | {} |", class.name(), class.merge(), class.errors());
    }
    out.push_str("\n## All\n\n| Event | Type | Class | Modes | Fired |\n|---|---|---|---|---|\n");
    for row in EVENTS {
        let _ = writeln!(
            out,
            "| [`{}`](#{}) | `{}` | {} | {} | {} |",
            row.name,
            row.name,
            row.kind,
            row.class.name(),
            row.modes,
            fired(row)
        );
    }
    for row in EVENTS {
        section(&mut out, row, &types, methods.get(row.kind));
    }
    out
}

fn fired(row: &EventRow) -> String {
    match row.fired {
        Fired::In(file) => format!("`{file}`"),
        Fired::Later(room) => format!("not yet; comes with {room}"),
        _ => String::new(),
    }
}

type Methods = Vec<(String, String)>;

fn section(out: &mut String, row: &EventRow, types: &BTreeMap<String, Struct>, methods: Option<&Methods>) {
    let _ = writeln!(out, "\n### {}\n", row.name);
    if let Some(doc) = types.get(row.payload).map(|s| &s.doc).filter(|d| !d.is_empty()) {
        let _ = writeln!(out, "{doc}\n");
    }
    let rate = if row.high_rate { " Comes many times a second." } else { "" };
    let _ = writeln!(out, "`{}` · {}. {}{rate}", row.kind, row.class.name(), row.rule.trim());
    let fields = types.get(row.payload).map(|s| &s.fields[..]).unwrap_or_default();
    if !fields.is_empty() {
        out.push('\n');
    }
    for f in fields {
        let _ = writeln!(out, "- `{}: {}` {}", f.name, f.ty, f.doc);
    }
    let methods = methods.map(|m| &m[..]).unwrap_or_default();
    if !methods.is_empty() {
        out.push('\n');
    }
    for (name, doc) in methods {
        let _ = writeln!(out, "- `event.{name}()` {doc}");
    }
    if !row.patch.is_empty() {
        let _ = writeln!(out, "\nChanged in place: `{}`.", row.patch);
    }
    let Some(answer) = row.answer.strip_prefix("Option <").or(row.answer.strip_prefix("Option<")) else {
        return;
    };
    let answer = answer.trim_end_matches('>').trim();
    let _ = writeln!(
        out,
        "\nReturns `Option<{answer}>`{}",
        match types.get(answer) {
            Some(s) if !s.fields.is_empty() => {
                let keys: Vec<_> = s.fields.iter().map(|f| format!("`{}`", f.json)).collect();
                format!(": {}.", keys.join(", "))
            }
            _ => ".".to_owned(),
        }
    );
}

struct Struct {
    doc: String,
    fields: Vec<Field>,
}

struct Field {
    name: String,
    ty: String,
    /// As it crosses.
    json: String,
    doc: String,
}

/// Plain structs of a source, by name.
fn structs(source: &str) -> BTreeMap<String, Struct> {
    let mut all = BTreeMap::new();
    let mut doc: Vec<&str> = Vec::new();
    let mut lines = source.lines();
    while let Some(line) = lines.next() {
        if let Some(text) = line.strip_prefix("///") {
            doc.push(text.trim());
        } else if let Some(name) = line.strip_prefix("pub struct ").and_then(|l| l.strip_suffix(" {")) {
            let body: Vec<&str> = lines.by_ref().take_while(|l| *l != "}").collect();
            all.insert(name.to_owned(), Struct { doc: words(&doc), fields: fields(&body) });
            doc.clear();
        } else if !line.starts_with("#[") {
            doc.clear();
        }
    }
    all
}

fn fields(body: &[&str]) -> Vec<Field> {
    let mut fields = Vec::new();
    let (mut doc, mut renamed) = (Vec::new(), None);
    for line in body.iter().map(|l| l.trim()) {
        if let Some(text) = line.strip_prefix("///") {
            doc.push(text.trim());
        } else if let Some(text) = line.strip_prefix("#[serde(rename = \"") {
            renamed = text.split('"').next();
        } else if let Some((name, ty)) = line.strip_prefix("pub ").and_then(|l| l.split_once(": ")) {
            fields.push(Field {
                name: name.to_owned(),
                ty: ty.trim_end_matches(',').to_owned(),
                json: renamed.take().map_or_else(|| camel(name), str::to_owned),
                doc: words(&doc),
            });
            doc.clear();
        }
    }
    fields
}

/// Methods of `Event<Kind>` by kind, those of macros too.
fn methods(source: &str) -> BTreeMap<String, Methods> {
    let mut of_macro: BTreeMap<&str, Methods> = BTreeMap::new();
    let mut all: BTreeMap<String, Methods> = BTreeMap::new();
    let (mut into, mut call, mut doc): (Option<(bool, &str)>, Option<&str>, Vec<&str>) =
        (None, None, Vec::new());
    for line in source.lines() {
        let text = line.trim();
        let invoked = of_macro.keys().find(|m| line.starts_with(&format!("{m}!"))).copied();
        if let Some(name) = line.strip_prefix("macro_rules! ").and_then(|l| l.strip_suffix(" {")) {
            into = Some((true, name));
            of_macro.insert(name, Methods::new());
        } else if let Some(kind) = line.strip_prefix("impl Event<").and_then(|l| l.strip_suffix("> {")) {
            into = Some((false, kind));
        } else if let Some(doc_line) = text.strip_prefix("///") {
            doc.push(doc_line.trim());
        } else if let Some(built) = text.strip_prefix("#[doc = concat!(\"") {
            doc.push(built.split('"').next().unwrap_or_default().trim_end_matches(", "));
        } else if let Some(name) = text.strip_prefix("pub fn ").and_then(|l| l.split(['(', '<']).next()) {
            let first = doc.split(|l| l.is_empty()).next().unwrap_or_default();
            let method = (name.to_owned(), words(first));
            match into {
                Some((true, name)) => of_macro.entry(name).or_default().push(method),
                Some((false, kind)) => all.entry(kind.to_owned()).or_default().push(method),
                None => {}
            }
            doc.clear();
        } else if invoked.is_some() || call.is_some() {
            let name = invoked.or(call).unwrap_or_default();
            for kind in
                line.split(|c: char| !c.is_alphanumeric()).filter(|k| EVENTS.iter().any(|r| r.kind == *k))
            {
                all.entry(kind.to_owned()).or_default().extend(of_macro[name].clone());
            }
            call = Some(name).filter(|_| !(line.ends_with(");") || line == "}"));
        } else if !text.starts_with("#[") {
            doc.clear();
        }
    }
    all
}

fn words(lines: &[&str]) -> String {
    lines.join(" ").trim().to_owned()
}

fn camel(name: &str) -> String {
    let mut parts = name.trim_start_matches("r#").split('_');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (first, rest) = part.split_at(1.min(part.len()));
        out.push_str(&first.to_uppercase());
        out.push_str(rest);
    }
    out
}
