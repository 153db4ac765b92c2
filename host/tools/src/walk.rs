//! Which files the paths and globs of `find` and `search` mean. Order is by path, so that pages of a
//! result join without gaps; `.git` is never entered unless it is named.

use crate::{args::Args, path};
use atomic_agent::tool::ToolError;
use globset::{GlobBuilder, GlobMatcher};
use ignore::WalkBuilder;
use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

#[derive(Debug)]
pub struct Root {
    pub base: PathBuf,
    /// Matched against the path below `base`; without one, everything below matches.
    glob: Option<GlobMatcher>,
    /// The argument itself reaches into `.git`.
    git: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Filter {
    pub hidden: bool,
    pub gitignore: bool,
}

#[derive(Debug)]
pub struct Found {
    pub path: PathBuf,
    pub is_dir: bool,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walked {
    All,
    Stopped,
    TimedOut,
    Cancelled,
}

impl Root {
    /// What exists by its literal name is that; else the part before the first glob character is the
    /// directory to walk. A glob without a slash matches at any depth, as in a .gitignore; so does a bare
    /// file name where `names` says that one is looked for.
    pub fn parse(
        args: &Args<'_>,
        field: &str,
        cwd: &Path,
        given: &str,
        names: bool,
    ) -> Result<Root, ToolError> {
        path::check(args, field, given)?;
        let full = path::resolve(cwd, given);
        let git = given.split(['/', '\\']).any(|part| part == ".git");
        if full.exists() {
            return Ok(Root { base: full, glob: None, git });
        }
        let is_glob = |part: &str| part.contains(['*', '?', '[', '{']);
        let parts: Vec<String> =
            full.components().map(|c| c.as_os_str().to_string_lossy().into_owned()).collect();
        let bare = !given.contains(['/', '\\', '~']);
        let first = match parts.iter().position(|p| is_glob(p)) {
            Some(first) => first,
            None if names && bare => parts.len() - 1,
            None => return Err(path::missing(cwd, &full)),
        };
        let base: PathBuf = full.components().take(first).collect();
        if !base.is_dir() {
            return Err(path::missing(cwd, &base));
        }
        let anywhere = bare && parts.len() == first + 1;
        let pattern = format!("{}{}", if anywhere { "**/" } else { "" }, parts[first..].join("/"));
        let glob = GlobBuilder::new(&pattern)
            .literal_separator(true)
            .build()
            .map_err(|e| args.error(field, format!("is no valid glob: {e}")))?;
        Ok(Root { base, glob: Some(glob.compile_matcher()), git })
    }

    pub fn is_file(&self) -> bool {
        self.glob.is_none() && self.base.is_file()
    }

    /// Calls `each` for every match, directories only where a glob matches them. Blocking.
    pub fn walk(
        &self,
        filter: Filter,
        deadline: Instant,
        cancel: &CancellationToken,
        mut each: impl FnMut(Found) -> ControlFlow<()>,
    ) -> Walked {
        let git = self.git;
        let walk = WalkBuilder::new(&self.base)
            .hidden(!filter.hidden)
            .parents(filter.gitignore)
            .ignore(filter.gitignore)
            .git_ignore(filter.gitignore)
            .git_global(filter.gitignore)
            .git_exclude(filter.gitignore)
            .require_git(false)
            .follow_links(false)
            .sort_by_file_name(Ord::cmp)
            .filter_entry(move |e| git || e.depth() == 0 || e.file_name() != ".git")
            .build();
        for entry in walk {
            if cancel.is_cancelled() {
                return Walked::Cancelled;
            }
            if Instant::now() >= deadline {
                return Walked::TimedOut;
            }
            // Unreadable directories and broken ignore files leave the rest findable.
            let Ok(entry) = entry else { continue };
            let is_dir = entry.file_type().is_some_and(|t| t.is_dir());
            let matches = match &self.glob {
                Some(glob) => {
                    entry.depth() > 0
                        && entry.path().strip_prefix(&self.base).is_ok_and(|below| glob.is_match(below))
                }
                None => !is_dir,
            };
            if matches && each(Found { path: entry.into_path(), is_dir }).is_break() {
                return Walked::Stopped;
            }
        }
        Walked::All
    }
}
