//! Which session a start goes on with: a file, the beginning of an id, the newest, a copy of one,
//! or a new one. Names are settled before anything is opened, since a session decides in which
//! folder the program works.

use crate::{args::RunArgs, card::Card, paths::Paths};
use atomic_agent::session::{self, Query, Row, Session, SessionError};
use std::path::{Path, PathBuf};

/// Where the session files of this start are.
pub fn dir(typed_in: &Paths, paths: &Paths, args: &RunArgs) -> PathBuf {
    let chosen = args.session_dir.as_ref().map(|d| typed_in.cwd.join(d));
    chosen
        .or_else(|| paths.session_dir.clone())
        .unwrap_or_else(|| session::default_dir(&paths.agent(), &paths.cwd))
}

/// Ids become files, and what contradicts itself is refused.
pub fn settle(paths: &Paths, args: &RunArgs) -> Result<RunArgs, Card> {
    let mut args = args.clone();
    let dir = dir(paths, paths, &args);
    if let Some(named) = &args.session {
        args.session = Some(found(&dir, paths, named)?);
    }
    if let Some(named) = &args.fork {
        args.fork = Some(found(&dir, paths, named)?);
    }
    if let Some(id) = &args.session_id
        && !session::valid_id(id)
    {
        return Err(Card::new("cli::session_id", format!("'{id}' can be no session's id"))
            .help("letters, digits, '.', '_' and '-', beginning and ending with a letter or a digit"));
    }
    Ok(args)
}

/// A file, or the session whose id begins so.
pub fn found(dir: &Path, paths: &Paths, named: &Path) -> Result<PathBuf, Card> {
    let file = paths.cwd.join(named);
    let text = named.to_string_lossy();
    let is_path = text.contains(['/', '\\']) || text.ends_with(".jsonl");
    if is_path || file.exists() || !session::valid_id(&text) {
        return Ok(file);
    }
    let all = session::list(&Query { dir: dir.to_owned(), ..Query::default() }).map_err(|e| refused(&e))?;
    let fitting: Vec<Row> = all.sessions.into_iter().filter(|s| s.id.starts_with(&*text)).collect();
    match fitting.as_slice() {
        [one] => Ok(one.path.clone()),
        [] => Err(Card::new("cli::no_session", format!("no session has an id that begins with '{text}'"))
            .file(dir)
            .help("`atomic sessions list --all` shows what there is")),
        several => {
            let ids: Vec<&str> = several.iter().take(5).map(|s| s.id.as_str()).collect();
            Err(Card::new(
                "cli::ambiguous_session",
                format!("{} sessions have an id that begins with '{text}'", several.len()),
            )
            .why(ids.join(", "))
            .help("give more of it"))
        }
    }
}

pub fn refused(e: &SessionError) -> Card {
    Card::told(e.code(), &e.to_string())
}

/// The one that this start would open and that another program has, if somebody can be offered a
/// copy of it.
pub fn in_use(paths: &Paths, args: &RunArgs) -> Option<PathBuf> {
    if args.no_session || args.fork.is_some() {
        return None;
    }
    let file = match &args.session {
        Some(file) => file.clone(),
        None if args.continue_session => {
            session::latest(&dir(paths, paths, args), &paths.cwd).ok().flatten()?
        }
        None => return None,
    };
    session::in_use(&file).then_some(file)
}

/// Opens it. `args` are settled.
pub fn open(
    typed_in: &Paths,
    paths: &Paths,
    args: &RunArgs,
    warnings: &mut Vec<Card>,
) -> Result<Session, Card> {
    let dir = dir(typed_in, paths, args);
    let refused = |e: SessionError| refused(&e);
    if args.no_session {
        return Ok(Session::in_memory(&paths.cwd, &dir));
    }
    if let Some(from) = &args.fork {
        let source = Session::read(from).map_err(refused)?;
        return source.copy_to(&paths.cwd, &dir).map_err(refused);
    }
    if let Some(file) = &args.session {
        return Session::open(file, &paths.cwd).map_err(refused);
    }
    if args.continue_session {
        let session = Session::continue_latest(&paths.cwd, &dir).map_err(refused)?;
        if session.file().is_none() {
            let card = Card::new("cli::no_session", "there is no session to go on with; this is a new one");
            warnings.push(card.why("nothing was said in this folder yet").file(dir));
        }
        return Ok(session);
    }
    match &args.session_id {
        Some(id) => match session::with_id(&dir, id).map_err(refused)? {
            // The same id again is the same session: that is what somebody names one for.
            Some(file) => Session::open(&file, &paths.cwd).map_err(refused),
            None => Ok(Session::create_named(&paths.cwd, &dir, None, id)),
        },
        None => Ok(Session::create(&paths.cwd, &dir, None)),
    }
}
