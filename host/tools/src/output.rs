//! What a command has written so far: its end in memory, all of it in a file once it is too long for a
//! result. Memory stays bounded however much comes.

use crate::truncate::{Limits, Truncated, count_lines, truncate_tail};
use std::{
    io,
    path::{Path, PathBuf},
};
use tokio::io::AsyncWriteExt;

/// events.md H.3, "persisted file cap".
const MAX_FILE: u64 = 64 * 1024 * 1024;

#[derive(Debug)]
pub struct Collected {
    limits: Limits,
    dir: PathBuf,
    decoder: Utf8,
    /// The end of the text, at least `limits.bytes` of it; the whole while `spill` is unset.
    tail: String,
    total_bytes: usize,
    newlines: usize,
    spill: Spill,
}

#[derive(Debug)]
enum Spill {
    NotYet,
    To { file: tokio::fs::File, path: PathBuf, written: u64 },
    Failed(String),
}

impl Collected {
    pub fn new(dir: &Path, limits: Limits) -> Self {
        Collected {
            limits,
            dir: dir.to_path_buf(),
            decoder: Utf8::default(),
            tail: String::new(),
            total_bytes: 0,
            newlines: 0,
            spill: Spill::NotYet,
        }
    }

    /// Answers the text that became complete.
    pub async fn push(&mut self, bytes: &[u8]) -> String {
        let text = self.decoder.push(bytes);
        self.take(&text).await;
        text
    }

    /// The command is gone: a character it did not finish stays unfinished.
    pub async fn finish(&mut self) -> String {
        let text = self.decoder.finish();
        self.take(&text).await;
        if let Spill::To { file, .. } = &mut self.spill
            && let Err(e) = file.flush().await
        {
            self.spill = Spill::Failed(e.to_string());
        }
        text
    }

    async fn take(&mut self, text: &str) {
        self.total_bytes += text.len();
        self.newlines += text.bytes().filter(|&b| b == b'\n').count();
        self.tail.push_str(text);
        let too_long = self.total_bytes > self.limits.bytes || self.newlines > self.limits.lines;
        match &mut self.spill {
            Spill::NotYet if too_long => {
                self.spill = match start_file(&self.dir, &self.tail).await {
                    Ok((file, path)) => Spill::To { file, path, written: self.tail.len() as u64 },
                    Err(e) => Spill::Failed(e.to_string()),
                }
            }
            Spill::To { file, written, .. } if *written < MAX_FILE => {
                *written += text.len() as u64;
                let mut result = file.write_all(text.as_bytes()).await;
                if result.is_ok() && *written >= MAX_FILE {
                    result = file.write_all(b"\n[64 MB reached; the rest was not written]\n").await;
                }
                if let Err(e) = result {
                    self.spill = Spill::Failed(e.to_string());
                }
            }
            _ => {}
        }
        // Twice the limit, so that the beginning is not moved for every chunk.
        if self.tail.len() > 2 * self.limits.bytes && !matches!(self.spill, Spill::NotYet) {
            let mut cut = self.tail.len() - self.limits.bytes;
            while !self.tail.is_char_boundary(cut) {
                cut -= 1;
            }
            self.tail.drain(..cut);
        }
    }

    /// The end of the text within the limits, with the totals of the whole.
    pub fn view(&self) -> Truncated {
        let mut view = truncate_tail(&self.tail, self.limits);
        let unfinished = usize::from(!self.tail.is_empty() && !self.tail.ends_with('\n'));
        view.info.total_bytes = self.total_bytes;
        view.info.total_lines = self.newlines + unfinished;
        debug_assert!(view.info.output_lines >= count_lines(&view.content));
        view
    }

    /// The file with everything; or why there is none although the output is too long.
    pub fn full(&self) -> Result<Option<&Path>, &str> {
        match &self.spill {
            Spill::NotYet => Ok(None),
            Spill::To { path, .. } => Ok(Some(path)),
            Spill::Failed(why) => Err(why),
        }
    }
}

/// A new file with an unguessable name, private to the user, never one that was there (field case B82).
async fn start_file(dir: &Path, text: &str) -> io::Result<(tokio::fs::File, PathBuf)> {
    let dir = dir.to_path_buf();
    let made = tokio::task::spawn_blocking(move || {
        if !dir.exists() {
            let mut builder = std::fs::DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(&dir)?;
        }
        let temp = tempfile::Builder::new().prefix("atomic-output-").suffix(".log").tempfile_in(&dir)?;
        temp.keep().map_err(io::Error::from)
    });
    let (file, path) = made.await.map_err(io::Error::other)??;
    let mut file = tokio::fs::File::from_std(file);
    file.write_all(text.as_bytes()).await?;
    Ok((file, path))
}

/// Decodes a stream whose chunks may end inside a character.
#[derive(Debug, Default)]
struct Utf8 {
    pending: Vec<u8>,
}

impl Utf8 {
    fn push(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let mut text = String::with_capacity(self.pending.len());
        let mut rest = self.pending.as_slice();
        let unfinished = loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    break &[][..];
                }
                Err(e) => {
                    let (valid, bad) = rest.split_at(e.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    let Some(n) = e.error_len() else { break bad };
                    text.push('\u{fffd}');
                    rest = &bad[n..];
                }
            }
        };
        self.pending = unfinished.to_vec();
        text
    }

    fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_stream_cut_anywhere_decodes_as_the_whole_does(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(b'a'), 0xc2u8..0xf4], 0..40), at in 0usize..40
        ) {
            let at = at.min(bytes.len());
            let mut decoder = Utf8::default();
            let text = decoder.push(&bytes[..at]) + &decoder.push(&bytes[at..]) + &decoder.finish();
            prop_assert_eq!(text, String::from_utf8_lossy(&bytes));
        }
    }

    #[tokio::test]
    async fn a_long_output_keeps_its_end_and_is_whole_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut out = Collected::new(&dir.path().join("new"), Limits { lines: 10, bytes: 100 });
        let mut all = String::new();
        for n in 0..200 {
            all.push_str(&out.push(format!("line {n}\n").as_bytes()).await);
        }
        out.finish().await;
        let view = out.view();
        assert!(view.content.ends_with("line 198\nline 199\n") && view.content.len() <= 100);
        assert_eq!((view.info.total_lines, view.info.total_bytes), (200, all.len()));
        let file = out.full().unwrap().unwrap();
        assert_eq!(std::fs::read_to_string(file).unwrap(), all);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |p: &Path| std::fs::metadata(p).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(file), mode(&dir.path().join("new"))), (0o600, 0o700));
        }
    }

    #[tokio::test]
    async fn a_short_output_makes_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let mut out = Collected::new(dir.path(), Limits::default());
        out.push(b"short").await;
        out.finish().await;
        assert_eq!((out.view().content.as_str(), out.full()), ("short", Ok(None)));
        assert_eq!(dir.path().read_dir().unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_made_costs_only_itself() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("f"), "").unwrap();
        let mut out = Collected::new(&dir.path().join("f/sub"), Limits { lines: 1, bytes: 10 });
        out.push(&[b'x'; 50]).await;
        assert_eq!(out.view().content, "x".repeat(10));
        assert!(out.full().is_err());
    }
}
