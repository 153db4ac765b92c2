//! `read`: a stretch of a text file, or an image.

use crate::{
    aborted,
    args::Args,
    blocking, images, path, spec,
    truncate::{Limits, TruncatedBy, Truncation, format_size},
};
use async_trait::async_trait;
use atomic_agent::{
    message::Content,
    tool::{Tool, ToolError, ToolInvocation, ToolOutput, ToolSpec},
};
use serde_json::json;
use std::{
    fs::File,
    io::{self, Read as _, Seek},
    path::Path,
};
use tokio_util::sync::CancellationToken;

/// Of text with its line numbers: with what is said about it, it must stay below what a result may
/// hold.
const MAX_TEXT: usize = atomic_agent::budget::CEILING - 1_872;
/// Of an image that will be made to fit.
const MAX_IMAGE: u64 = 100 * 1024 * 1024;

pub struct Read {
    spec: ToolSpec,
    fit_images: bool,
}

impl Read {
    pub fn new(fit_images: bool) -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "File to read; relative to the working directory, absolute, or starting with ~/"},
                "offset": {"type": "integer", "minimum": 1, "description": "First line to read, counted from 1 (default 1)"},
                "limit": {"type": "integer", "minimum": 1, "description": "How many lines to read (default: as many as fit)"}
            },
            "required": ["path"],
            "additionalProperties": false
        });
        let spec = spec(
            "read",
            "Read a file. Each line of text comes behind its number and a tab, which are no part of the file. Text is \
             cut after 2000 lines or 47 KB, whichever comes first; use offset and limit to read on. Images (png, jpeg, gif, webp) are shown to you.",
            parameters,
            "Read files and images",
            &["Use read to look at files, not cat or sed."],
        );
        Read { spec, fit_images }
    }
}

#[async_trait]
impl Tool for Read {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn execute(&self, call: ToolInvocation) -> Result<ToolOutput, ToolError> {
        let args = Args::new("read", &call.args)?;
        let file = path::arg(&args, &call.cwd, "path")?;
        let offset = args.opt_whole("offset", 1, u64::MAX)?.unwrap_or(1);
        let limit = args.opt_whole("limit", 1, u64::MAX)?;
        let (cwd, cancel, fitted) = (call.cwd.clone(), call.cancel.clone(), self.fit_images);
        blocking(&call.cancel, move || read(&cwd, &file, offset, limit, fitted, &cancel)).await
    }
}

fn read(
    cwd: &Path,
    file: &Path,
    offset: u64,
    limit: Option<u64>,
    fitted: bool,
    cancel: &CancellationToken,
) -> Result<ToolOutput, ToolError> {
    let shown = path::shown(cwd, file);
    let failed = |e: &io::Error| path::io_error(cwd, file, "read", e);
    // Asked before opening: opening a pipe without a writer would wait for one.
    let meta = std::fs::metadata(file).map_err(|e| failed(&e))?;
    if meta.is_dir() {
        return Err(ToolError(format!(
            "{shown} is a directory: use ls to list it, find to look for files in it"
        )));
    }
    if !meta.is_file() {
        return Err(ToolError(format!("{shown} is a device or a pipe, not a file: use bash")));
    }
    let mut open = File::open(file).map_err(|e| failed(&e))?;
    let mut start = Vec::new();
    open.by_ref().take(8192).read_to_end(&mut start).map_err(|e| failed(&e))?;
    open.rewind().map_err(|e| failed(&e))?;
    if let Some(mime) = images::kind(&start) {
        return image(&shown, mime, open, meta.len(), fitted);
    }
    if start.contains(&0) {
        let utf16 = start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff");
        let hint = match utf16 {
            true => "convert a copy with bash: iconv -f UTF-16 -t UTF-8",
            false => "look into it with bash: file, strings, xxd | head",
        };
        let size = format_size(meta.len());
        return Err(ToolError(format!("{shown} is not text but binary data ({size}); {hint}")));
    }
    let limits = Limits { bytes: MAX_TEXT, ..Limits::default() };
    let lines = limit.unwrap_or(u64::MAX).min(limits.lines as u64);
    let part = Part::of(open, offset, lines, limits.bytes, cancel).map_err(|e| match e.kind() {
        io::ErrorKind::Interrupted => aborted(),
        _ => failed(&e),
    })?;
    if part.total_lines == 0 {
        return Ok(ToolOutput::text(format!("[{shown} is empty]")));
    }
    if offset > part.total_lines {
        return Err(ToolError(format!(
            "read: `offset` {offset} is beyond the end of {shown}, which has {} lines",
            part.total_lines
        )));
    }
    Ok(part.output(&shown, offset, limit, limits))
}

fn image(shown: &str, mime: &str, file: File, size: u64, fitted: bool) -> Result<ToolOutput, ToolError> {
    let size_text = format_size(size);
    let most = if fitted { MAX_IMAGE } else { images::MOST_AS_IT_IS };
    if size > most {
        let most = format_size(most);
        return Err(ToolError(format!(
            "{shown} is an image of {size_text}; models take {most} at most: make a smaller copy with bash"
        )));
    }
    let mut bytes = Vec::new();
    file.take(MAX_IMAGE)
        .read_to_end(&mut bytes)
        .map_err(|e| ToolError(format!("Cannot read {shown}: {e}")))?;
    let image = images::content(&bytes, mime);
    let note = Content::text(format!("[{shown}: {mime}, {size_text}]"));
    Ok(ToolOutput { content: vec![note, Content::Image(image)], ..Default::default() })
}

const BOM: &[u8] = b"\xef\xbb\xbf";

/// The lines asked for, and how much there is in all. Memory stays at the limit, whatever the file's size.
struct Part {
    /// Each line behind its number.
    kept: Vec<u8>,
    kept_lines: u64,
    cut_by_bytes: bool,
    total_lines: u64,
    total_bytes: u64,
}

impl Part {
    fn of(
        mut file: impl io::Read,
        offset: u64,
        lines: u64,
        bytes: usize,
        cancel: &CancellationToken,
    ) -> io::Result<Self> {
        let mut part =
            Part { kept: Vec::new(), kept_lines: 0, cut_by_bytes: false, total_lines: 0, total_bytes: 0 };
        let (mut chunk, mut line, mut line_start) = (vec![0; 64 * 1024], 1u64, 0);
        let mut in_line = false;
        let wanted = offset..offset.saturating_add(lines);
        loop {
            if cancel.is_cancelled() {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let n = file.read(&mut chunk)?;
            if n == 0 {
                break;
            }
            part.total_bytes += n as u64;
            for piece in chunk[..n].split_inclusive(|&b| b == b'\n') {
                let ends = piece.ends_with(b"\n");
                if wanted.contains(&line) && !part.cut_by_bytes {
                    if !in_line {
                        let piece = if line == 1 { piece.strip_prefix(BOM).unwrap_or(piece) } else { piece };
                        part.kept.extend_from_slice(format!("{line}\t").as_bytes());
                        part.kept.extend_from_slice(piece);
                    } else {
                        part.kept.extend_from_slice(piece);
                    }
                    if part.kept.len() - usize::from(ends) > bytes {
                        part.kept.truncate(line_start);
                        part.cut_by_bytes = true;
                    } else if ends {
                        part.kept_lines += 1;
                    }
                }
                in_line = !ends;
                if ends {
                    line += 1;
                    line_start = part.kept.len();
                }
            }
        }
        part.total_lines = line - 1 + u64::from(in_line);
        if in_line && wanted.contains(&line) && !part.cut_by_bytes {
            part.kept_lines += 1;
        }
        Ok(part)
    }

    fn output(self, shown: &str, offset: u64, limit: Option<u64>, limits: Limits) -> ToolOutput {
        let text = String::from_utf8_lossy(&self.kept);
        let lossy = matches!(text, std::borrow::Cow::Owned(_));
        let (last, total) = (offset + self.kept_lines - 1, self.total_lines);
        let mut notes = Vec::new();
        let unfinished = last < total;
        // What the call itself asked to leave out is no truncation.
        let as_asked = !self.cut_by_bytes && limit.is_some_and(|l| l <= limits.lines as u64);
        if self.cut_by_bytes && self.kept_lines == 0 {
            let most = format_size(limits.bytes as u64);
            notes.push(format!(
                "[Line {offset} alone is longer than {most}. Use bash: sed -n '{offset}p' {shown} | head -c {}]",
                limits.bytes
            ));
        } else if unfinished && as_asked {
            notes.push(format!("[{} more lines. Read on with offset={}]", total - last, last + 1));
        } else if unfinished {
            let why = if self.cut_by_bytes {
                format_size(limits.bytes as u64)
            } else {
                format!("{} lines", limits.lines)
            };
            notes.push(format!(
                "[Lines {offset}-{last} of {total}, cut at {why}. Read on with offset={}]",
                last + 1
            ));
        }
        if lossy {
            notes.push("[Bytes that are not UTF-8 are shown as \u{fffd}]".into());
        }
        let details = (unfinished && !as_asked).then(|| {
            json!({"truncation": Truncation {
                truncated: true,
                truncated_by: Some(if self.cut_by_bytes { TruncatedBy::Bytes } else { TruncatedBy::Lines }),
                total_lines: total as usize,
                total_bytes: self.total_bytes as usize,
                output_lines: self.kept_lines as usize,
                output_bytes: text.len(),
                first_line_exceeds_limit: self.kept_lines == 0,
                max_lines: limits.lines,
                max_bytes: limits.bytes,
                ..Default::default()
            }})
        });
        let text = match notes.is_empty() {
            true => text.into_owned(),
            false if text.is_empty() => notes.join("\n"),
            false => format!("{}\n\n{}", text.trim_end_matches('\n'), notes.join("\n")),
        };
        ToolOutput { details, ..ToolOutput::text(text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use serde_json::Value;

    async fn of(content: &[u8], mut args: Value) -> Result<ToolOutput, ToolError> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), content).unwrap();
        args["path"] = json!("f");
        testing::call("read", dir.path(), args).await
    }

    async fn text_of(content: &[u8], args: Value) -> String {
        testing::joined(&of(content, args).await.unwrap())
    }

    #[tokio::test]
    async fn a_small_file_comes_whole() {
        assert_eq!(text_of("\u{feff}a\nb\n".as_bytes(), json!({})).await, "1\ta\n2\tb\n");
        assert_eq!(text_of(b"", json!({})).await, "[f is empty]");
    }

    #[tokio::test]
    async fn offset_and_limit_choose_lines_and_say_how_to_read_on() {
        let five = b"1\n2\n3\n4\n5";
        assert_eq!(
            text_of(five, json!({"offset": 2, "limit": 2})).await,
            "2\t2\n3\t3\n\n[2 more lines. Read on with offset=4]"
        );
        assert_eq!(text_of(five, json!({"offset": 5})).await, "5\t5");
        let error = of(five, json!({"offset": 6})).await.unwrap_err();
        assert_eq!(error.0, "read: `offset` 6 is beyond the end of f, which has 5 lines");
    }

    #[tokio::test]
    async fn more_than_2000_lines_are_cut_and_reading_on_loses_none() {
        let content: String = (1..=4500).map(|n| format!("line {n}\n")).collect();
        let mut offset = 1;
        let mut seen = Vec::new();
        loop {
            let output = of(content.as_bytes(), json!({"offset": offset})).await.unwrap();
            let text = testing::joined(&output);
            seen.extend(text.lines().filter_map(|l| Some(l.split_once("\tline ")?.1.to_owned())));
            let Some((_, next)) = text.split_once("Read on with offset=") else { break };
            assert_eq!(output.details.unwrap()["truncation"]["truncatedBy"], "lines");
            offset = next.trim_end_matches(']').parse().unwrap();
        }
        let all: Vec<String> = (1..=4500).map(|n| n.to_string()).collect();
        assert_eq!(seen, all);
    }

    #[tokio::test]
    async fn more_than_50_kb_are_cut_at_a_whole_line() {
        let content = format!("{}\n", "x".repeat(999)).repeat(100);
        let output = of(content.as_bytes(), json!({})).await.unwrap();
        let text = testing::joined(&output);
        assert!(text.ends_with("[Lines 1-47 of 100, cut at 47.0 KB. Read on with offset=48]"), "{text}");
        let truncation = &output.details.unwrap()["truncation"];
        assert_eq!((&truncation["totalLines"], &truncation["outputLines"]), (&json!(100), &json!(47)));
    }

    #[tokio::test]
    async fn a_line_longer_than_the_limit_is_told_with_a_way_to_see_it() {
        let content = format!("a\n{}", "x".repeat(200_000));
        let text = text_of(content.as_bytes(), json!({"offset": 2})).await;
        assert!(text.starts_with("[Line 2 alone is longer than 47.0 KB. Use bash: sed -n '2p' f"), "{text}");
    }

    #[tokio::test]
    async fn bytes_that_are_not_utf8_are_shown_and_noted() {
        let text = text_of(b"caf\xe9\n", json!({})).await;
        assert_eq!(text, "1\tcaf\u{fffd}\n\n[Bytes that are not UTF-8 are shown as \u{fffd}]");
    }

    #[tokio::test]
    async fn binary_data_is_refused_with_what_to_do_instead() {
        let error = of(b"\x7fELF\0\0", json!({})).await.unwrap_err();
        assert!(error.0.contains("binary data (6 B)") && error.0.contains("bash"), "{error}");
        assert!(of(b"\xff\xfea\0", json!({})).await.unwrap_err().0.contains("iconv"));
    }

    #[tokio::test]
    async fn an_image_comes_as_an_image_block() {
        let output = of(b"\x89PNG\r\n\x1a\n\0", json!({})).await.unwrap();
        let Content::Image(image) = &output.content[1] else { panic!("{output:?}") };
        assert_eq!((image.mime_type.as_str(), image.data.as_str()), ("image/png", "iVBORw0KGgoA"));
        let large = [b"\x89PNG".as_slice(), &[0; 5_000_000]].concat();
        assert!(of(&large, json!({})).await.is_ok(), "it will be made to fit");
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), large).unwrap();
        let call = testing::invocation(dir.path(), json!({"path": "f"}), CancellationToken::new());
        let error = Read::new(false).execute(call).await.unwrap_err();
        assert!(error.0.contains("smaller copy"), "{error}");
    }

    #[tokio::test]
    async fn directories_and_devices_are_refused_with_a_hint() {
        let dir = tempfile::tempdir().unwrap();
        let error = testing::call("read", dir.path(), json!({"path": "."})).await.unwrap_err();
        assert!(error.0.contains("is a directory: use ls"), "{error}");
        #[cfg(unix)]
        {
            let error = testing::call("read", dir.path(), json!({"path": "/dev/zero"})).await.unwrap_err();
            assert!(error.0.contains("use bash"), "{error}");
        }
    }
}
