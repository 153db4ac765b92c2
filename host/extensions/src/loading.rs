//! From files to staged generations: scan, judge, open, activate. Nothing here is
//! published; that is the caller's one step.

use crate::{
    breadcrumb, calls, discover,
    generation::{self, Body, Generation, activate_on_thread},
    host::{Extensions, LoadReport, Scope, Slot, lock},
    load::{Library, Live},
    refusal::{Refusal, Why},
    registry::Registered,
};
use atomic_plugin_api::manifest::Manifest;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex},
};

/// A candidate that may be opened: its manifest is read and judged, no code of it has run.
#[derive(Clone)]
pub(crate) struct Prepared {
    pub(crate) name: String,
    pub(crate) scope: Scope,
    /// Place in the load order.
    pub(crate) rank: usize,
    /// The author's file.
    pub(crate) path: PathBuf,
    pub(crate) sha256: String,
    pub(crate) manifest: Manifest,
    /// The private copy that is mapped.
    pub(crate) copy: PathBuf,
}

/// Who has which name. Settled among what really loads: a file that the system's loader or its
/// own activation refuses shadows nobody.
#[derive(Default)]
pub(crate) struct Names(HashMap<String, (PathBuf, Scope, String)>);

impl Names {
    pub(crate) fn take(&mut self, slot: &Slot) {
        let holder = (slot.path.clone(), slot.scope, slot.library.manifest.version.clone());
        self.0.insert(slot.name.clone(), holder);
    }
    /// What there is to say of a file whose name is taken.
    pub(crate) fn shadowed(&self, p: &Prepared) -> Option<String> {
        let (winner, winner_scope, version) = self.0.get(&p.name)?;
        let note = discover::Note::Shadowed {
            name: p.name.clone(),
            winner: winner.clone(),
            winner_scope: *winner_scope,
            loser: p.path.clone(),
            same_version: *version == p.manifest.version,
        };
        Some(note.to_string())
    }
}

/// What a look at the disk found, in load order.
#[derive(Default)]
pub(crate) struct Scan {
    pub(crate) prepared: Vec<Prepared>,
    pub(crate) refused: Vec<Refusal>,
    pub(crate) notes: Vec<String>,
}

pub(crate) type Activated = Slot;

/// All mappings of the process by content. A hash has more than one when an earlier generation
/// of it did not end cleanly.
static LIBRARIES: LazyLock<Mutex<HashMap<String, Vec<Arc<Library>>>>> = LazyLock::new(Mutex::default);

/// The clean mapping of this content, opened if there is none. Constructors run here.
fn open(p: &Prepared, owner: u64) -> Result<Arc<Library>, Why> {
    let (clean, mappings) = {
        let all = lock(&LIBRARIES);
        let known = all.get(&p.sha256).map(Vec::as_slice).unwrap_or_default();
        (known.iter().find(|l| !l.dirty()).cloned(), known.len())
    };
    if let Some(library) = clean {
        return Ok(library);
    }
    let copy = if mappings == 0 { p.copy.clone() } else { another_copy(&p.copy, &p.sha256, mappings)? };
    let frame = breadcrumb::push(owner, breadcrumb::kind::LOAD);
    let opened = Library::open(&copy, p.manifest.clone(), p.sha256.clone());
    breadcrumb::pop(frame);
    let library = opened?;
    lock(&LIBRARIES).entry(p.sha256.clone()).or_default().push(library.clone());
    Ok(library)
}

impl Extensions {
    pub(crate) async fn load_all(self: &Arc<Self>) -> LoadReport {
        let scan = self.scan().await;
        let mut report = LoadReport { notes: scan.notes, refused: scan.refused, ..LoadReport::default() };
        let mut slots: Vec<Slot> = Vec::new();
        let mut names = Names::default();
        // Strictly one after another, in load order (events.md I.2).
        for p in scan.prepared {
            if let Some(note) = names.shadowed(&p) {
                report.notes.push(note);
                continue;
            }
            match self.activate(p, None).await {
                Ok(slot) => {
                    names.take(&slot);
                    slots.push(slot);
                }
                Err(refusal) => report.refused.push(refusal),
            }
        }
        *self.slots() = slots.clone();
        for s in &slots {
            let _ = s.generation.commit();
        }
        report.notes.extend(self.publish());
        report.loaded = self.list();
        report
    }

    /// A candidate generation, staged. `old`: the one it would replace, whose owner it takes over.
    pub(crate) async fn activate(&self, p: Prepared, old: Option<&Slot>) -> Result<Activated, Refusal> {
        let card = |why: Why| Refusal::new(&p.path, why).named(&p.manifest).from_scope(p.scope);
        let owner = old.map_or_else(generation::next_owner, |s| s.owner);
        calls::own(owner, &self.weak());
        breadcrumb::name_extension(owner, &p.name);
        let generation = Generation::new(owner, &p.name, self.graveyard.clone());
        let registered = Registered::new(p.name.clone(), p.path.clone());
        self.expect_registrations(&generation, &registered);
        let number = generation.number();
        // The boundary's error crosses the thread beside the state machine, which knows only text.
        let failed: Arc<Mutex<Option<Why>>> = Arc::default();
        let (why, candidate) = (failed.clone(), p.clone());
        let activated = activate_on_thread(&generation, self.config().init_timeout, move || {
            let opened = open(&candidate, owner);
            let frame = breadcrumb::push(owner, breadcrumb::kind::ACTIVATE);
            let live = opened.and_then(|library| {
                library.note_ranges(owner);
                library.activate(owner, number)
            });
            breadcrumb::pop(frame);
            live.map(|l| l as Arc<dyn Body>).map_err(|e| {
                let text = e.sentence();
                *lock(&why) = Some(e);
                text
            })
        })
        .await;
        let live = match activated {
            Ok(_) => Live::of(&generation),
            Err(e) => {
                self.forget_registrations(number);
                let why = lock(&failed).take().unwrap_or_else(|| match e.code() {
                    "extension::init_timeout" => Why::InitTimeout {
                        limit_ms: u64::try_from(self.config().init_timeout.as_millis()).unwrap_or(u64::MAX),
                    },
                    code => Why::InitFailed { code: code.to_owned(), message: e.to_string() },
                });
                return Err(card(why));
            }
        };
        let Some(live) = live else {
            return Err(card(Why::InitFailed {
                code: "internal".into(),
                message: "the instance was lost".into(),
            }));
        };
        let library = live.library().clone();
        Ok(Slot {
            owner,
            name: p.name,
            scope: p.scope,
            rank: p.rank,
            path: p.path,
            library,
            generation,
            live,
            registered,
        })
    }

    /// The same library under a new generation, without the disk.
    pub(crate) async fn activate_again(&self, slot: &Slot) -> Result<Activated, Refusal> {
        let p = Prepared {
            name: slot.name.clone(),
            scope: slot.scope,
            rank: slot.rank,
            path: slot.path.clone(),
            sha256: slot.library.sha256.clone(),
            manifest: slot.library.manifest.clone(),
            copy: slot.library.copy.clone(),
        };
        self.activate(p, Some(slot)).await
    }
}

/// The same bytes under another name, for content whose last mapping may not be used again:
/// the loader answers a known path with the old mapping.
fn another_copy(copy: &Path, sha256: &str, mapping: usize) -> Result<PathBuf, Why> {
    let failed = |e: std::io::Error| Why::Copy { code: "extension::copy_failed", detail: e.to_string() };
    let (Some(name), Some(cache)) = (copy.file_name(), copy.parent().and_then(Path::parent)) else {
        return Err(failed(std::io::ErrorKind::InvalidInput.into()));
    };
    let folder = cache.join(format!("{sha256}-{mapping}"));
    std::fs::create_dir_all(&folder).map_err(failed)?;
    let temporary = tempfile::Builder::new().prefix(".tmp").tempfile_in(&folder).map_err(failed)?;
    std::fs::copy(copy, temporary.path()).map_err(failed)?;
    let other = folder.join(name);
    temporary.persist(&other).map_err(|e| failed(e.error))?;
    Ok(other)
}
