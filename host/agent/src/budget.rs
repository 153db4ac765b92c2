//! What a tool result may cost a model: a text over the limit goes to a file, and the
//! model gets its path and a preview (events.md H.3). Comes after the `tool_result` hooks.

use crate::message::Content;
use std::{
    io::Write,
    path::{Path, PathBuf},
};

/// Characters. A tool can only lower it.
pub const CEILING: usize = 50_000;
const PREVIEW_BYTES: usize = 2_000;
const FILE_CAP: usize = 64 * 1024 * 1024;

/// Redirects the text of a result that is over `min(limit, CEILING)` characters to a new file
/// below `<session_dir>/tool-results/`. Images stay.
pub fn redirect_oversize(
    content: Vec<Content>,
    limit: Option<usize>,
    session_dir: &Path,
    tool_call_id: &str,
) -> Vec<Content> {
    let limit = limit.unwrap_or(CEILING).min(CEILING);
    // Bytes bound characters from above, so most results are never counted.
    let texts = || content.iter().filter_map(Content::as_text);
    if texts().map(str::len).sum::<usize>() <= limit {
        return content;
    }
    let chars = texts().map(|t| t.chars().count()).sum::<usize>();
    if chars <= limit {
        return content;
    }
    let text = texts().collect::<Vec<_>>().join("\n");
    let place = match persist(&text, session_dir, tool_call_id) {
        Ok(path) => format!("All of it is in {}; read the part you need.", path.display()),
        Err(e) => format!("The rest could not be kept: {e}."),
    };
    let preview = &text[..text.floor_char_boundary(PREVIEW_BYTES)];
    let block = format!(
        "<persisted-output>\nThis result is too large to show ({chars} characters). {place}\n\nIt begins with:\n\
         {preview}\n…\n</persisted-output>"
    );
    let others = content.into_iter().filter(|c| c.as_text().is_none());
    std::iter::once(Content::text(block)).chain(others).collect()
}

fn persist(text: &str, session_dir: &Path, tool_call_id: &str) -> std::io::Result<PathBuf> {
    let dir = session_dir.join("tool-results");
    std::fs::create_dir_all(&dir)?;
    // The id comes from a model: it must not choose a place.
    let id: String = tool_call_id
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        .take(64)
        .collect();
    let path = dir.join(format!("{id}-{:08x}.txt", uuid::Uuid::now_v7().as_u128() as u32));
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&path)?;
    let kept = text.floor_char_boundary(FILE_CAP);
    file.write_all(&text.as_bytes()[..kept])?;
    if kept < text.len() {
        write!(file, "\n[cut here: {} bytes more]\n", text.len() - kept)?;
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_at_the_limit_stays_and_one_over_it_goes_to_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let at = vec![Content::text("é".repeat(CEILING))];
        assert_eq!(redirect_oversize(at.clone(), None, dir.path(), "c"), at);

        let text = "é".repeat(CEILING + 1);
        let over = redirect_oversize(vec![Content::text(&text)], Some(1_000_000), dir.path(), "../../x");
        let shown = over[0].as_text().unwrap();
        let files: Vec<_> = std::fs::read_dir(dir.path().join("tool-results")).unwrap().flatten().collect();
        assert_eq!(files.len(), 1);
        assert_eq!(std::fs::read_to_string(files[0].path()).unwrap(), text);
        assert!(shown.starts_with("<persisted-output>") && shown.ends_with("</persisted-output>"));
        assert!(shown.contains(&files[0].path().display().to_string()), "{shown}");
        assert!(shown.len() < 3_000);
    }

    #[test]
    fn a_tool_can_lower_the_limit_and_images_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let image: Content =
            serde_json::from_value(serde_json::json!({"type": "image", "data": "", "mimeType": "image/png"}))
                .unwrap();
        let content = vec![image.clone(), Content::text("x".repeat(11))];
        let out = redirect_oversize(content, Some(10), dir.path(), "c");
        assert_eq!(out.len(), 2);
        assert_eq!(out[1], image);
    }

    #[test]
    fn a_place_that_cannot_be_written_costs_the_text_not_the_run() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("tool-results"), "a file is here").unwrap();
        let out = redirect_oversize(vec![Content::text("x".repeat(11))], Some(10), dir.path(), "c");
        assert!(out[0].as_text().unwrap().contains("could not be kept"));
    }
}
