//! Paths to complete: what git would see under the working folder.

use ignore::WalkBuilder;
use std::path::Path;

/// Names that are looked at.
const MOST: usize = 20_000;

/// Relative paths, folders with a slash at their end, nearest first.
pub fn under(cwd: &Path) -> Vec<String> {
    let mut walk = WalkBuilder::new(cwd);
    walk.hidden(false).max_depth(Some(12)).filter_entry(|e| e.file_name() != ".git");
    let mut paths: Vec<String> = walk
        .build()
        .flatten()
        .take(MOST)
        .filter_map(|e| {
            let path = e.path().strip_prefix(cwd).ok()?.to_str()?.replace('\\', "/");
            let folder = e.file_type().is_some_and(|t| t.is_dir());
            (!path.is_empty()).then(|| if folder { path + "/" } else { path })
        })
        .collect();
    paths.sort_by_key(|p| (p.trim_end_matches('/').matches('/').count(), p.clone()));
    paths
}
