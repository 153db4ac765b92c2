//! Breadcrumb pages of this home: one file a process that runs extensions, removed when it ends
//! in order. One that stays behind belongs to a process that crashed, and says who it was
//! (decisions.md "Crash in an extension").

use super::loss;
use crate::paths::Paths;
use atomic_extensions::breadcrumb;
use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

/// What an earlier process died of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    pub extension: String,
    pub event: Option<String>,
    /// "SIGSEGV".
    pub signal: String,
}

fn dir(paths: &Paths) -> PathBuf {
    paths.home.join("run")
}

/// For the next process that runs extensions; `None` where the home cannot be written.
pub fn fresh(paths: &Paths) -> Option<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let dir = dir(paths);
    fs::create_dir_all(&dir).ok()?;
    #[cfg(unix)]
    let _ = fs::set_permissions(&dir, std::os::unix::fs::PermissionsExt::from_mode(0o700));
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    Some(dir.join(format!("{}-{n}.crumbs", std::process::id())))
}

/// After an orderly end, and once a crash has been told.
pub fn forget(page: Option<&Path>) {
    if let Some(page) = page {
        let _ = fs::remove_file(page);
    }
}

/// What processes that are gone left behind. Each crash is answered once: the page is removed.
pub fn earlier(paths: &Paths) -> Vec<Crash> {
    let Ok(entries) = fs::read_dir(dir(paths)) else { return Vec::new() };
    let mut crashes: Vec<Crash> = Vec::new();
    for path in entries.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "crumbs")) {
        let page = match breadcrumb::open(&path) {
            Ok(Some(page)) if alive(page.pid()) => continue,
            Ok(page) => page,
            Err(_) => continue,
        };
        let found = page.and_then(|p| loss::fatal(&p));
        crashes.extend(found.filter(|c| !crashes.iter().any(|k| k.extension == c.extension)));
        let _ = fs::remove_file(&path);
    }
    crashes
}

#[cfg(unix)]
fn alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// A page that is mapped cannot be removed there, so nothing is lost by trying.
#[cfg(windows)]
fn alive(_: u32) -> bool {
    false
}
