//! A look at the disk: which files are extensions that may be opened. Files are opened,
//! checked on the descriptor, hashed and copied here; no code of theirs runs.

use crate::{
    copies::{Copies, NotIdentified},
    discover::{self, Candidate, Note},
    filecheck,
    host::{Extensions, lock},
    load::read,
    loading::{Prepared, Scan},
    refusal::{Refusal, Why},
};
use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

/// Hashing and copying are worth a second thread from this many files on.
const PARALLEL: usize = 4;

impl Extensions {
    pub(crate) async fn scan(&self) -> Scan {
        let Some(me) = self.weak().upgrade() else { return Scan::default() };
        let scanned = self.runtime().spawn_blocking(move || me.scan_now()).await;
        scanned.unwrap_or_default()
    }

    fn scan_now(&self) -> Scan {
        let config = self.config();
        let places = discover::Places {
            cli: config.cli.clone(),
            cwd: config.cwd.clone(),
            home: config.home.clone(),
            global_dirs: config.global_dirs.clone(),
            bundled_dir: config.bundled_dir.clone(),
            no_extensions: config.no_extensions,
            target: atomic_plugin_api::manifest::TARGET.to_owned(),
        };
        let mut found = discover::discover(&places);
        let mut scan = Scan::default();
        if config.project_trusted {
            let project = discover::discover_project(&places, &found);
            found.candidates.extend(project.candidates);
            found.notes.extend(project.notes);
        } else if let skipped @ [_, ..] = discover::list_project(&places).as_slice() {
            let names: Vec<String> = skipped.iter().map(|p| p.display().to_string()).collect();
            scan.notes.push(format!(
                "this project is not trusted, so its extensions were not opened: {}; start with --approve to load them once",
                names.join(", ")
            ));
        }
        for note in found.notes {
            scan.take(note);
        }
        let prepared = in_parallel(&found.candidates, |c| prepare(&self.copies, c));
        for (rank, (candidate, p)) in found.candidates.into_iter().zip(prepared).enumerate() {
            match p {
                // Refused ones keep their place: a generation that goes on in it is not moved.
                Ok(p) => scan.prepared.push(Prepared { rank, ..p }),
                Err(refusal) => scan.refused.push(refusal.from_scope(candidate.scope)),
            }
        }
        if let Some(only) = &config.only {
            scan.prepared.retain(|p| p.name == *only);
        }
        let skipped = lock(self.skipped());
        scan.prepared.retain(|p| !skipped.contains(&p.name));
        drop(skipped);
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
}

fn prepare(copies: &Copies, c: &Candidate) -> Result<Prepared, Refusal> {
    let refused = |why: Why| Refusal::new(&c.path, why);
    let opened = filecheck::open(&c.path).map_err(|e| refused(e.into()))?;
    let mut library = copies.identify(opened, false, read::read_manifest).map_err(|e| match e {
        NotIdentified::Copy(e) => refused(e.into()),
        NotIdentified::Manifest(why) => refused(why),
    })?;
    // Judged each time: what is remembered may be older than this program.
    read::judge(&library.manifest).map_err(|why| refused(why).named(&library.manifest))?;
    if let Some(d) = &c.declared
        && (d.name != library.manifest.name || d.version != library.manifest.version)
    {
        let detail = format!(
            "its extension.json says {} {}, its library {} {}",
            d.name, d.version, library.manifest.name, library.manifest.version
        );
        return Err(refused(Why::Entry { code: "extension::bad_extension_json", detail }));
    }
    let copy = copies.place(&mut library, 0).map_err(|e| refused(e.into()).named(&library.manifest))?;
    Ok(Prepared {
        name: library.manifest.name.clone(),
        scope: c.scope,
        rank: 0,
        path: c.path.clone(),
        sha256: library.sha256,
        manifest: library.manifest,
        copy,
    })
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
