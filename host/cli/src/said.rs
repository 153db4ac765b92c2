//! What the command line says to the model first: messages, files named with `@`, and what was
//! piped in, all of it in the first message.

use crate::card::Card;
use atomic_agent::message::ImageContent;
use atomic_tools::images;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Bytes of a text file; an image may be larger, it is made smaller.
const MAX_TEXT: u64 = 10 * 1024 * 1024;
const MAX_IMAGE: u64 = 100 * 1024 * 1024;

/// One message of the command line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Said {
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ImageContent>,
}

impl From<String> for Said {
    fn from(text: String) -> Self {
        Said { text, images: Vec::new() }
    }
}

/// `resize`: images are made to fit what models take.
pub fn all(
    stdin: Option<String>,
    messages: Vec<String>,
    cwd: &Path,
    resize: bool,
) -> Result<Vec<Said>, Card> {
    let mut first = Said::default();
    let mut parts: Vec<String> = stdin.into_iter().collect();
    let mut plain = Vec::new();
    for message in messages {
        match message.strip_prefix('@').filter(|name| !name.is_empty()) {
            Some(name) if cwd.join(name).exists() || !name.contains(char::is_whitespace) => {
                parts.push(file(name, cwd, resize, &mut first.images)?);
            }
            _ => plain.push(message),
        }
    }
    let mut plain = plain.into_iter();
    if parts.is_empty() {
        return Ok(plain.map(Said::from).collect());
    }
    parts.extend(plain.next());
    first.text = parts.join("\n");
    Ok([first].into_iter().chain(plain.map(Said::from)).collect())
}

/// How a file is told; an image is put beside the text.
fn file(name: &str, cwd: &Path, resize: bool, beside: &mut Vec<ImageContent>) -> Result<String, Card> {
    let path = cwd.join(name);
    let refused = |why: String| {
        Card::new("cli::file_argument", format!("@{name} cannot be put into the message"))
            .file(&path)
            .why(why)
    };
    let meta = std::fs::metadata(&path).map_err(|e| {
        refused(e.to_string()).help("to say a word that begins with @, put it into a longer message")
    })?;
    if !meta.is_file() {
        return Err(refused("it is no file".into()));
    }
    if meta.len() > MAX_IMAGE {
        return Err(refused("it is larger than 100 MB".into()));
    }
    let bytes = std::fs::read(&path).map_err(|e| refused(e.to_string()))?;
    let tag = format!("<file name=\"{}\">", path.display().to_string().replace('"', "&quot;"));
    if let Some(mime) = images::kind(&bytes) {
        let given = images::content(&bytes, mime);
        let (image, note) = match resize.then(|| images::fit(&given)).flatten() {
            Some((image, note)) => (image, note),
            None if bytes.len() as u64 > images::MOST_AS_IT_IS => {
                return Err(refused(
                    "models do not take an image of this size, and it could not be made smaller".into(),
                ));
            }
            None => (given, String::new()),
        };
        beside.push(image);
        return Ok(format!("{tag}{note}</file>"));
    }
    if bytes.contains(&0) {
        return Err(refused("it is no text, and no image that models take (png, jpeg, gif, webp)".into()));
    }
    if meta.len() > MAX_TEXT {
        return Err(refused("it is larger than 10 MB".into()));
    }
    let text = String::from_utf8_lossy(&bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    Ok(format!("{tag}\n{}\n</file>", text.trim_end()))
}

/// A text, or the file that holds it (`--system-prompt`).
pub fn text_or_file(given: &str, cwd: &Path) -> Result<String, Card> {
    let path = cwd.join(given);
    // A text of several lines is none; asking about it could fail for its length alone.
    if given.is_empty() || given.contains('\n') || given.len() > 4096 || !path.is_file() {
        return Ok(given.to_owned());
    }
    let bytes = std::fs::read(&path).map_err(|e| {
        Card::new("cli::prompt_file", "a file for the system prompt cannot be read")
            .file(&path)
            .why(e.to_string())
    })?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.strip_prefix('\u{feff}').unwrap_or(&text).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(stdin: Option<&str>, messages: &[&str], cwd: &Path) -> Vec<String> {
        let messages = messages.iter().map(|m| (*m).to_owned()).collect();
        let said = all(stdin.map(str::to_owned), messages, cwd, true).unwrap();
        said.into_iter().map(|s| s.text).collect()
    }

    #[test]
    fn what_is_piped_and_files_come_before_the_first_message() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.txt"), "\u{feff}text\n").unwrap();
        let tag = format!("<file name=\"{}\">\ntext\n</file>", dir.path().join("a.txt").display());
        assert_eq!(
            texts(Some("piped"), &["first", "@a.txt", "second"], dir.path()),
            [format!("piped\n{tag}\nfirst"), "second".into()]
        );
        assert_eq!(texts(None, &["@a.txt"], dir.path()), [tag]);
        assert_eq!(texts(None, &["@ann look", "@"], dir.path()), ["@ann look", "@"]);
        assert_eq!(texts(Some("piped"), &[], dir.path()), ["piped"]);
        assert!(all(None, vec!["@gone.txt".into()], dir.path(), true).is_err());
        assert!(all(None, vec!["@.".into()], dir.path(), true).is_err());
    }

    #[test]
    fn a_text_is_a_text_and_the_name_of_a_file_is_what_it_holds() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("p.md"), "be brief").unwrap();
        assert_eq!(text_or_file("p.md", dir.path()).unwrap(), "be brief");
        assert_eq!(text_or_file("You are p.md", dir.path()).unwrap(), "You are p.md");
        assert_eq!(text_or_file(&"x".repeat(9000), dir.path()).unwrap().len(), 9000);
    }
}
