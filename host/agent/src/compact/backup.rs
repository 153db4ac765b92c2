//! A copy of the session file from before a compaction (events.md D.8). The file itself only
//! grows, so a copy is for whoever wants the session as it was; a few of them are enough.

use super::settings::CompactReason;
use crate::{message::now_ms, session::iso};
use std::{
    io,
    path::{Path, PathBuf},
};

/// Copies of one session that are left lying.
const KEPT: usize = 5;

/// Ends the name of a copy that is not whole yet.
const PART: &str = ".part";

fn label(reason: CompactReason) -> &'static str {
    match reason {
        CompactReason::Manual => "compact",
        CompactReason::Threshold => "auto-compact",
        CompactReason::Overflow => "overflow-auto-compact",
    }
}

/// `<file>.<time>.<label>.bak`.
pub(super) fn copy(file: &Path, reason: CompactReason) -> io::Result<PathBuf> {
    let stamp = iso(now_ms()).replace([':', '.'], "-");
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let name = format!("{name}.{stamp}.{}.bak", label(reason));
    let to = file.with_file_name(&name);
    // Half a copy, of a full disk or a killed program, must not look like a whole one.
    let part = file.with_file_name(format!("{name}{PART}"));
    let mut from = std::fs::File::open(file)?;
    let copied = new_file(&part)
        .and_then(|mut out| io::copy(&mut from, &mut out))
        .and_then(|_| std::fs::rename(&part, &to));
    if let Err(e) = copied {
        let _ = std::fs::remove_file(&part);
        return Err(e);
    }
    Ok(to)
}

/// Nobody else's to read, and never over something that is there.
fn new_file(path: &Path) -> io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The oldest of this session's copies go, and what a killed program left half copied; other files
/// are not looked at. Whoever calls it holds the session's lock: nobody copies meanwhile.
pub(super) fn prune(file: &Path) {
    let (Some(dir), Some(name)) = (file.parent(), file.file_name()) else { return };
    let stem = format!("{}.", name.to_string_lossy());
    let ours = |name: &str| {
        let stamped = name.strip_prefix(&stem).and_then(|n| n.strip_suffix(".bak"));
        let (stamp, label) = stamped.and_then(|n| n.split_once('.')).unwrap_or_default();
        let digits = stamp.chars().filter(char::is_ascii_digit).count();
        digits == 17 && matches!(label, "compact" | "auto-compact" | "overflow-auto-compact")
    };
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let names = entries.filter_map(|e| e.file_name().into_string().ok());
    let (halves, mut copies): (Vec<String>, Vec<String>) =
        names.filter(|n| ours(n.strip_suffix(PART).unwrap_or(n))).partition(|n| n.ends_with(PART));
    copies.sort();
    for old in halves.iter().chain(copies.iter().take(copies.len().saturating_sub(KEPT))) {
        let _ = std::fs::remove_file(dir.join(old));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_the_file_and_the_oldest_of_many_go_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a.jsonl");
        std::fs::write(&file, "lines").unwrap();
        for second in 0..7 {
            let name = format!("a.jsonl.2026-01-01T00-00-0{second}-000Z.compact.bak");
            std::fs::write(dir.path().join(name), "old").unwrap();
        }
        std::fs::write(dir.path().join("a.jsonl.2026-01-01T00-00-09-000Z.compact.bak.part"), "hal").unwrap();
        for other in ["a.jsonl.mine.bak", "b.jsonl.2026-01-01T00-00-00-000Z.compact.bak"] {
            std::fs::write(dir.path().join(other), "of somebody").unwrap();
        }
        let copied = copy(&file, CompactReason::Overflow).unwrap();
        assert_eq!(std::fs::read_to_string(&copied).unwrap(), "lines");
        assert!(copied.to_string_lossy().ends_with("Z.overflow-auto-compact.bak"));
        prune(&file);
        let mut left: Vec<String> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left.len(), KEPT + 3, "{left:?}");
        assert!(
            copied.exists() && !left.contains(&"a.jsonl.2026-01-01T00-00-02-000Z.compact.bak".to_owned())
        );
        assert!(copy(&dir.path().join("gone.jsonl"), CompactReason::Manual).is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), left.len(), "half a copy is left");
    }
}
