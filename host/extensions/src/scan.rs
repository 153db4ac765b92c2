//! A look at the disk: which files are extensions that may be opened. Files are opened,
//! checked on the descriptor, hashed and copied here; no code of theirs runs.

use crate::{
    discover::{self, Note},
    host::{Extensions, lock},
    loading::{Prepared, Scan},
    refusal::{Refusal, Why},
    trust::Judged,
};
use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

/// Hashing and copying are worth a second thread from this many files on.
const PARALLEL: usize = 4;

impl Extensions {
    /// Everything, for a reload: also what projects bring, as far as they are trusted. `chosen`:
    /// by name, whom a question may be about.
    pub(crate) async fn scan(&self, chosen: &(dyn Fn(&str) -> bool + Sync)) -> Scan {
        let mut scan = self.scan_safe().await;
        self.scan_projects(&mut scan, chosen).await;
        self.leave_out(&mut scan);
        scan
    }

    /// What is not to be loaded here, or this time.
    fn leave_out(&self, scan: &mut Scan) {
        scan.drop_disabled(self);
        if let Some(only) = &self.config().only {
            scan.prepared.retain(|p| p.name == *only);
        }
        let skipped = lock(self.skipped());
        scan.prepared.retain(|p| !skipped.contains(&p.name));
    }

    /// What needs no trust.
    pub(crate) async fn scan_safe(&self) -> Scan {
        let Some(me) = self.weak().upgrade() else { return Scan::default() };
        let scanned = self.runtime().spawn_blocking(move || me.scan_now()).await;
        scanned.unwrap_or_default()
    }

    pub(crate) fn places(&self) -> discover::Places {
        let config = self.config();
        discover::Places {
            cli: config.cli.clone(),
            cwd: self.cwd(),
            home: config.home.clone(),
            global_dirs: config.global_dirs.clone(),
            bundled_dir: config.bundled_dir.clone(),
            no_extensions: config.no_extensions,
            listed: self.listed(),
            lenders: config.trust.as_ref().map(|t| t.borrowed.clone()).unwrap_or_default(),
            target: atomic_plugin_api::manifest::TARGET.to_owned(),
        }
    }

    fn scan_now(&self) -> Scan {
        let found = discover::discover(&self.places());
        let mut scan = Scan::default();
        for note in found.notes {
            scan.take(note);
        }
        let prepared = in_parallel(&found.candidates, |c| {
            Judged::of(&self.copies, c, false).and_then(|j| j.place(&self.copies))
        });
        for (rank, p) in prepared.into_iter().enumerate() {
            match p {
                // Refused ones keep their place: a generation that goes on in it is not moved.
                Ok(p) => scan.prepared.push(Prepared { rank, ..p }),
                Err(refusal) => scan.refused.push(refusal),
            }
        }
        self.leave_out(&mut scan);
        self.copies.save();
        scan
    }
}

impl Scan {
    fn take(&mut self, note: Note) {
        match note {
            Note::Refused { scope, path, refusal } => {
                let why = Why::Entry { code: refusal.code(), detail: refusal.to_string() };
                self.refused.push(Refusal::new(&path, why).from_scope(scope));
            }
            other => self.notes.push(other.to_string()),
        }
    }

    /// Not loaded because somebody said so. What the command line names is meant all the same.
    fn drop_disabled(&mut self, host: &Extensions) {
        let disabled = host.disabled();
        let off = |p: &Prepared| p.scope != discover::Scope::Cli && disabled.contains(&p.name);
        self.disabled.extend(self.prepared.iter().filter(|p| off(p)).map(|p| p.name.clone()));
        self.prepared.retain(|p| !off(p));
    }
}

/// `work` on each item, on two threads when there are many; results in order.
fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    if items.len() < PARALLEL {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(items.len()));
    let run = || {
        while let Some((i, item)) = {
            let i = next.fetch_add(1, Ordering::Relaxed);
            items.get(i).map(|item| (i, item))
        } {
            let result = work(item);
            lock(&results).push((i, result));
        }
    };
    std::thread::scope(|s| {
        s.spawn(run);
        run();
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(i, _)| *i);
    results.into_iter().map(|(_, r)| r).collect()
}
