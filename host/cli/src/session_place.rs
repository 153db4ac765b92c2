//! Where a session that is gone on with belongs (events.md B.7): in the folder it was started in,
//! with that folder's trust. Reads the first line of its file, before anything of it is opened.

use crate::{args::RunArgs, card::Card, paths::Paths};
use serde_json::Value;
use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
};

/// Longest first line that is read.
const HEADER: u64 = 1024 * 1024;

/// The folder a start works in, and what is to be asked about it.
pub struct Place {
    pub paths: Paths,
    /// The session's own folder, when it is gone: it goes on here only if the person agrees.
    pub gone: Option<PathBuf>,
}

/// `can_ask`: somebody can be asked to go on elsewhere.
pub fn of(paths: &Paths, args: &RunArgs, can_ask: bool) -> Result<Place, Card> {
    let here = || Place { paths: paths.clone(), gone: None };
    let Some(file) = args.session.as_ref().filter(|_| !args.no_session) else { return Ok(here()) };
    let Some(cwd) = cwd_of(&paths.cwd.join(file)) else { return Ok(here()) };
    match (cwd.is_dir(), can_ask) {
        (true, _) => Ok(Place { paths: paths.at(cwd), gone: None }),
        (false, true) => Ok(Place { paths: paths.clone(), gone: Some(cwd) }),
        (false, false) => Err(Card::new("cli::session_cwd", "the folder this session belongs to is gone")
            .file(cwd)
            .help("make it again, or start `atomic --session FILE` at the prompt, which asks whether to go on here")),
    }
}

/// What its header says; a file that is no session is for whoever opens it to refuse.
fn cwd_of(file: &Path) -> Option<PathBuf> {
    if !file.is_file() {
        return None;
    }
    let mut line = String::new();
    BufReader::new(File::open(file).ok()?.take(HEADER)).read_line(&mut line).ok()?;
    let header: Value = serde_json::from_str(line.trim_start_matches('\u{feff}')).ok()?;
    let cwd = PathBuf::from(header.get("cwd")?.as_str()?);
    cwd.is_absolute().then_some(cwd)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn place(dir: &Path, header: &str, can_ask: bool) -> Result<Place, Card> {
        fs::write(dir.join("s.jsonl"), header).unwrap();
        let paths = Paths::from_environment().unwrap().scratch(dir.join("home"), dir.to_owned());
        let args = RunArgs { session: Some("s.jsonl".into()), ..RunArgs::default() };
        of(&paths, &args, can_ask)
    }

    #[test]
    fn b59_a_session_goes_on_in_its_own_folder() {
        let dir = tempfile::tempdir().unwrap();
        let other = dir.path().join("other");
        fs::create_dir(&other).unwrap();
        let header = serde_json::json!({"type": "session", "cwd": other}).to_string();
        assert_eq!(place(dir.path(), &header, false).unwrap().paths.cwd, other);
    }

    #[test]
    fn b59_a_folder_that_is_gone_is_a_question_or_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let gone = dir.path().join("gone");
        let header = serde_json::json!({"type": "session", "cwd": gone}).to_string();
        let asked = place(dir.path(), &header, true).unwrap();
        assert_eq!((asked.paths.cwd, asked.gone), (dir.path().to_owned(), Some(gone)));
        assert_eq!(place(dir.path(), &header, false).err().unwrap().code, "cli::session_cwd");
    }

    #[test]
    fn what_is_no_header_says_nothing() {
        let dir = tempfile::tempdir().unwrap();
        for text in ["", "nonsense", "{}", r#"{"cwd":7}"#, r#"{"cwd":"relative"}"#] {
            assert_eq!(place(dir.path(), text, false).unwrap().paths.cwd, dir.path(), "{text}");
        }
    }
}
