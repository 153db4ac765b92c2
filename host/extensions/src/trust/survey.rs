//! What a project would load, read from its files: opened, checked, hashed, manifests decoded. No
//! code of it runs. What is shown is what is kept open: exactly those bytes are loaded later.

use super::pins::{Hashes, name_in};
use crate::{
    copies::{Copies, Identified, NotIdentified},
    discover::{self, Candidate, Listed, Note, Places},
    filecheck,
    load::read,
    loading::Prepared,
    refusal::{Refusal, Why},
};
use atomic_plugin_api::manifest::Manifest;
use std::path::{Path, PathBuf};

/// Bytes that wait in memory for an answer; a project with more is read again after a yes.
const KEPT: u64 = 256 * 1024 * 1024;

/// A library as a question shows it.
#[derive(Clone, Debug)]
pub struct Shown {
    /// Inside its project, as pins name it.
    pub file: String,
    pub manifest: Manifest,
    pub size: u64,
    pub sha256: String,
}

/// A library that may be loaded: identified, still open, not copied yet.
pub(crate) struct Judged {
    pub(crate) candidate: Candidate,
    library: Identified<Manifest>,
}

/// Everything of one territory.
#[derive(Default)]
pub(crate) struct Survey {
    pub(crate) judged: Vec<Judged>,
    pub(crate) refused: Vec<Refusal>,
    pub(crate) notes: Vec<Note>,
}

impl Judged {
    /// `always_hash`: nothing that is remembered of the file counts.
    pub(crate) fn of(copies: &Copies, c: &Candidate, always_hash: bool) -> Result<Self, Refusal> {
        let refused = |why: Why| Refusal::new(&c.path, why).from_scope(c.scope);
        let opened = filecheck::open(&c.path).map_err(|e| refused(e.into()))?;
        let library = copies.identify(opened, always_hash, read::read_manifest).map_err(|e| match e {
            NotIdentified::Copy(e) => refused(e.into()),
            NotIdentified::Manifest(why) => refused(why),
        })?;
        accept(c, &library.manifest).map_err(refused).map_err(|r| r.named(&library.manifest))?;
        Ok(Judged { candidate: c.clone(), library })
    }

    pub(crate) fn name(&self) -> &str {
        &self.library.manifest.name
    }

    pub(crate) fn manifest(&self) -> &Manifest {
        &self.library.manifest
    }

    pub(crate) fn shown(&self, project: &Path) -> Shown {
        Shown {
            file: name_in(project, &self.candidate.path),
            manifest: self.library.manifest.clone(),
            size: self.library.size(),
            sha256: self.library.sha256.clone(),
        }
    }

    /// The private copy, from the descriptor that was checked: another content than was shown is
    /// refused, whatever lies at the path by now.
    pub(crate) fn place(mut self, copies: &Copies) -> Result<Prepared, Refusal> {
        let c = self.candidate;
        let refused = |why: Why, m: &Manifest| Refusal::new(&c.path, why).named(m).from_scope(c.scope);
        let copy =
            copies.place(&mut self.library, 0).map_err(|e| refused(e.into(), &self.library.manifest))?;
        Ok(Prepared {
            name: self.library.manifest.name.clone(),
            scope: c.scope,
            rank: 0,
            path: c.path,
            sha256: self.library.sha256,
            manifest: self.library.manifest,
            copy,
        })
    }
}

/// The verdict on a manifest, and on what a folder says about its library. Judged each time: what
/// is remembered may be older than this program.
fn accept(c: &Candidate, m: &Manifest) -> Result<(), Why> {
    read::judge(m)?;
    match &c.declared {
        Some(d) if d.name != m.name || d.version != m.version => Err(Why::Entry {
            code: "extension::bad_extension_json",
            detail: format!(
                "its extension.json says {} {}, its library {} {}",
                d.name, d.version, m.name, m.version
            ),
        }),
        _ => Ok(()),
    }
}

impl Survey {
    pub(crate) fn of(
        copies: &Copies,
        places: &Places,
        project: &Path,
        listed: Option<&Listed>,
        before: &[PathBuf],
    ) -> Self {
        let found = discover::discover_project(places, project, listed, before);
        let mut survey = Survey { notes: found.notes, ..Survey::default() };
        let mut kept = 0;
        for candidate in &found.candidates {
            // Pins are about bytes: what the index remembers of a project's files does not count.
            match Judged::of(copies, candidate, true) {
                Ok(mut judged) => {
                    kept += judged.library.size();
                    if kept > KEPT {
                        judged.library.release();
                    }
                    survey.judged.push(judged);
                }
                Err(refusal) => survey.refused.push(refusal),
            }
        }
        survey
    }

    pub(crate) fn shown(&self, project: &Path) -> Vec<Shown> {
        self.judged.iter().map(|j| j.shown(project)).collect()
    }
}

/// What is pinned of these.
pub(crate) fn hashes(shown: &[Shown]) -> Hashes {
    shown.iter().map(|s| (s.file.clone(), s.sha256.clone())).collect()
}

/// The same without a host, for `atomic trust` and `atomic doctor`: read, not kept.
pub fn look(places: &Places, project: &Path, listed: Option<&Listed>) -> (Vec<Shown>, Vec<Refusal>) {
    let found = discover::discover_project(places, project, listed, &[]);
    let mut shown = Vec::new();
    let mut refused = Vec::new();
    for c in found.candidates {
        let looked = filecheck::open(&c.path).map_err(|e| Refusal::new(&c.path, e.into()));
        let looked = looked.and_then(|opened| read::inspect_file(&c.path, opened.file));
        match looked
            .and_then(|i| accept(&c, &i.manifest).map(|()| i).map_err(|why| Refusal::new(&c.path, why)))
        {
            Ok(i) => shown.push(Shown {
                file: name_in(project, &c.path),
                manifest: i.manifest,
                size: i.size,
                sha256: i.sha256,
            }),
            Err(refusal) => refused.push(refusal),
        }
    }
    (shown, refused)
}
