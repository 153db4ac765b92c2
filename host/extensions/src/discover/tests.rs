//! Stories of discovery on a real disk.

use super::*;

const DLL: &str = std::env::consts::DLL_EXTENSION;

struct Disk {
    dir: tempfile::TempDir,
    places: Places,
}

impl Disk {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let places = Places {
            cwd: root.join("project"),
            home: root.join("home"),
            global_dirs: vec![root.join("g1"), root.join("g2")],
            bundled_dir: Some(root.join("bin/extensions")),
            target: "x86_64-test-os".into(),
            ..Places::default()
        };
        fs::create_dir_all(&places.cwd).unwrap();
        Self { dir, places }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    /// A library, if the name has no extension.
    fn file(&self, name: &str) -> PathBuf {
        let name = if name.rsplit('/').next().unwrap().contains('.') {
            name.into()
        } else {
            format!("{name}.{DLL}")
        };
        self.write(&name, "not opened")
    }

    fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    fn discover(&self) -> Found {
        discover(&self.places)
    }

    fn project(&self, before: &Found) -> Found {
        let before: Vec<PathBuf> = before.candidates.iter().map(|c| c.real.clone()).collect();
        discover_project(&self.places, &self.places.cwd, None, &before)
    }

    /// Entries relative to the root, without the suffix of a library.
    fn names(&self, found: &Found) -> Vec<String> {
        let root = self.path("");
        let name =
            |c: &Candidate| c.entry.strip_prefix(&root).unwrap().with_extension("").display().to_string();
        found.candidates.iter().map(name).collect()
    }

    fn refusal(&self) -> Refusal {
        match self.discover().notes.remove(0) {
            Note::Refused { refusal, .. } => refusal,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn b10_scopes_come_in_their_order_and_names_in_byte_order_whatever_the_disk_says() {
    let names = ["z", "a", "m", "A", "10", "2"];
    for reversed in [false, true] {
        let mut disk = Disk::new();
        let mut order: Vec<&str> = names.into();
        if reversed {
            order.reverse();
        }
        for dir in ["g2", "g1", "bin/extensions", "home/agent/extensions", "project/.atomic/extensions"] {
            disk.file(&format!("{dir}/one"));
        }
        for name in order {
            disk.file(&format!("home/extensions/{name}"));
        }
        disk.places.cli = vec![disk.file("x/second"), disk.file("x/first")];
        let found = disk.discover();
        let expected = [
            "x/second",
            "x/first",
            "home/extensions/10",
            "home/extensions/2",
            "home/extensions/A",
            "home/extensions/a",
            "home/extensions/m",
            "home/extensions/z",
            "home/agent/extensions/one",
            "g1/one",
            "g2/one",
            "bin/extensions/one",
        ];
        assert_eq!(disk.names(&found), expected);
        assert!(found.candidates.is_sorted_by_key(|c| c.scope));
        assert_eq!(found.notes, []);
        let project = disk.project(&found);
        assert_eq!(disk.names(&project), ["project/.atomic/extensions/one"]);
    }
}

#[test]
fn directories_that_are_not_there_are_nothing_to_talk_about() {
    let disk = Disk::new();
    let found = disk.discover();
    assert!(found.candidates.is_empty() && found.notes.is_empty());
}

#[test]
fn without_extensions_only_what_is_named_is_there() {
    let mut disk = Disk::new();
    disk.file("home/extensions/a");
    disk.file("bin/extensions/b");
    disk.file("project/.atomic/extensions/c");
    disk.places.no_extensions = true;
    assert!(disk.discover().candidates.is_empty());
    disk.places.cli = vec![disk.file("d")];
    let found = disk.discover();
    assert_eq!(disk.names(&found), ["d"]);
    assert!(disk.project(&found).candidates.is_empty());
    assert!(list_project(&disk.places, &disk.places.cwd).is_empty());
}

#[test]
fn the_current_directory_is_never_a_global_one() {
    let mut disk = Disk::new();
    disk.places.global_dirs = vec!["".into(), "relative".into()];
    assert!(disk.places.directories().iter().all(|(scope, _)| *scope != Scope::Global));
}

#[cfg(unix)]
#[test]
fn b09_one_file_under_four_names_is_one_candidate_and_the_named_one_wins_silently() {
    let mut disk = Disk::new();
    let file = disk.file("home/extensions/a");
    std::os::unix::fs::symlink(&file, disk.path(&format!("home/extensions/b.{DLL}"))).unwrap();
    fs::hard_link(&file, disk.path(&format!("home/extensions/c.{DLL}"))).unwrap();
    fs::create_dir_all(disk.path("project/.atomic/extensions")).unwrap();
    fs::hard_link(&file, disk.path(&format!("project/.atomic/extensions/d.{DLL}"))).unwrap();
    let found = disk.discover();
    assert_eq!(disk.names(&found), ["home/extensions/a"]);
    assert!(disk.project(&found).candidates.is_empty());
    disk.places.cli = vec![format!("../project/../home/extensions/b.{DLL}").into()];
    let found = disk.discover();
    let [only] = found.candidates.as_slice() else { panic!("{found:?}") };
    assert_eq!((only.scope, &only.real), (Scope::Cli, &file));
    assert_eq!(found.notes, []);
}

#[test]
fn a_project_in_the_home_directory_does_not_load_the_users_extensions_again() {
    let mut disk = Disk::new();
    disk.places.home = disk.places.cwd.join(".atomic");
    disk.file("project/.atomic/extensions/a");
    let found = disk.discover();
    assert_eq!(found.candidates[0].scope, Scope::User);
    assert!(disk.project(&found).candidates.is_empty());
}

fn candidate(scope: Scope, path: &str) -> Candidate {
    Candidate { scope, entry: path.into(), path: path.into(), real: path.into(), declared: None }
}

fn with(scope: Scope, path: &str, name: &str, version: &str) -> (Candidate, String, String) {
    (candidate(scope, path), name.into(), version.into())
}

#[test]
fn b07_a_named_library_wins_over_the_installed_one_and_one_info_line_says_so() {
    let all = vec![with(Scope::User, "/u/t.so", "t", "1.0.0"), with(Scope::Cli, "/x/t_new.so", "t", "2.0.0")];
    let (kept, notes) = resolve_identity(all);
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].candidate.path, Path::new("/x/t_new.so"));
    assert_eq!(
        notes[0].to_string(),
        "extension t is loaded from /x/t_new.so; /u/t.so has the same name and was skipped"
    );
    assert_eq!(
        (notes.len(), notes[0].severity(), notes[0].code()),
        (1, Severity::Info, "extension::shadowed")
    );
}

#[test]
fn a_project_never_takes_the_place_of_what_the_user_installed() {
    for installed in [Scope::User, Scope::Global, Scope::Bundled] {
        let all =
            vec![with(Scope::Project, "/p/t.so", "t", "9.0.0"), with(installed, "/u/t.so", "t", "1.0.0")];
        let (kept, notes) = resolve_identity(all);
        assert_eq!(kept[0].candidate.path, Path::new("/u/t.so"));
        assert_eq!(notes[0].severity(), Severity::Warning);
    }
}

#[test]
fn others_keep_their_order_and_the_same_version_twice_is_no_warning() {
    let all = vec![
        with(Scope::User, "/u/a.so", "a", "1.0.0"),
        with(Scope::User, "/u/b.so", "b", "1.0.0"),
        with(Scope::User, "/v/a.so", "a", "1.0.0"),
        with(Scope::Bundled, "/b/c.so", "c", "1.0.0"),
    ];
    let (kept, notes) = resolve_identity(all);
    assert_eq!(kept.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!(notes.iter().map(Note::severity).collect::<Vec<_>>(), [Severity::Info]);
}

// ---- what an entry is

fn extension_json(library: &str) -> String {
    format!(r#"{{"name": "greet", "version": "1.2.0", "library": {library}}}"#)
}

#[test]
fn a_folder_says_which_library_is_its_by_target_or_by_system() {
    let disk = Disk::new();
    let short = format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH);
    let (by_target, by_system) =
        (disk.file("home/extensions/greet/a"), disk.file("home/extensions/greet/lib/b"));
    let both = format!(r#"{{"{short}": "lib/b.{DLL}", "x86_64-test-os": "./a.{DLL}"}}"#);
    disk.write("home/extensions/greet/extension.json", &extension_json(&both));
    let found = disk.discover();
    assert_eq!(found.candidates[0].real, by_target);
    assert_eq!(found.candidates[0].entry, disk.path("home/extensions/greet"));
    assert_eq!(
        found.candidates[0].declared,
        Some(Declared { name: "greet".into(), version: "1.2.0".into() })
    );
    let text = format!("\u{feff}{}", extension_json(&format!(r#"{{"{short}": "lib/b.{DLL}"}}"#)));
    disk.write("home/extensions/greet/extension.json", &text);
    assert_eq!(disk.discover().candidates[0].real, by_system);
}

#[test]
fn b81_a_folder_cannot_name_a_library_outside_of_itself() {
    let disk = Disk::new();
    let outside = disk.file("x");
    fs::create_dir_all(disk.path("home/extensions/greet")).unwrap();
    let name = outside.display().to_string();
    for path in [format!("../../../x.{DLL}"), name, format!("a/../../../../x.{DLL}"), String::new()] {
        let library = serde_json::json!({ "x86_64-test-os": path }).to_string();
        disk.write("home/extensions/greet/extension.json", &extension_json(&library));
        assert_eq!(disk.refusal(), Refusal::Escapes(path));
        assert!(disk.discover().candidates.is_empty());
    }
    #[cfg(unix)]
    {
        let inner = format!("inner.{DLL}");
        std::os::unix::fs::symlink(&outside, disk.path("home/extensions/greet").join(&inner)).unwrap();
        let library = serde_json::json!({ "x86_64-test-os": inner }).to_string();
        disk.write("home/extensions/greet/extension.json", &extension_json(&library));
        assert_eq!(disk.refusal(), Refusal::Escapes(inner));
    }
}

#[test]
fn a_folder_manifest_that_cannot_be_used_says_why() {
    let disk = Disk::new();
    let write = |text: &str| disk.write("home/extensions/greet/extension.json", text);
    write("{");
    assert_eq!(disk.refusal().code(), "extension::bad_extension_json");
    write(&" ".repeat(70_000));
    assert_eq!(disk.refusal(), Refusal::BadManifest("it is longer than 64 KiB".into()));
    write(&extension_json(r#"{"riscv": "a.so", "s390x": "b.so"}"#));
    let has = "riscv, s390x".to_owned();
    assert_eq!(disk.refusal(), Refusal::OtherTargets { wanted: "x86_64-test-os".into(), has });
    write(&extension_json(r#"{"x86_64-test-os": "missing.so"}"#));
    assert_eq!(disk.refusal().code(), "extension::unreadable");
}

#[test]
fn a_folder_without_a_manifest_holds_exactly_one_library() {
    let disk = Disk::new();
    let library = disk.file("home/extensions/greet/libgreet");
    disk.write("home/extensions/greet/README.md", "");
    disk.file("home/extensions/greet/deeper/libother");
    disk.write("home/extensions/data/notes.txt", "");
    let found = disk.discover();
    assert_eq!((found.candidates.len(), &found.candidates[0].path, found.notes.len()), (1, &library, 0));
    disk.file("home/extensions/greet/libmore");
    assert_eq!(disk.refusal(), Refusal::Ambiguous(2));
    assert!(disk.discover().candidates.is_empty());
}

#[test]
fn scripts_of_another_program_are_mentioned_once() {
    let mut disk = Disk::new();
    let first = disk.file("home/extensions/gate.ts");
    disk.file("home/extensions/old.js");
    disk.file("home/agent/extensions/tool/index.ts");
    disk.file("home/extensions/a");
    let found = disk.discover();
    assert_eq!(disk.names(&found), ["home/extensions/a"]);
    let [note] = found.notes.as_slice() else { panic!("{:?}", found.notes) };
    assert_eq!(note.severity(), Severity::Info);
    assert_eq!(
        note.to_string(),
        format!("{} and 2 more were skipped: this program loads native libraries only", first.display())
    );
    disk.places.cli = vec![first];
    assert_eq!(disk.discover().notes[0].severity(), Severity::Fatal);
}

#[test]
fn a_named_path_that_is_not_there_or_holds_nothing_is_fatal() {
    let mut disk = Disk::new();
    fs::create_dir_all(disk.path("empty")).unwrap();
    disk.places.cli = vec!["missing.so".into(), disk.path("empty")];
    let notes = disk.discover().notes;
    assert_eq!(notes.iter().map(Note::severity).collect::<Vec<_>>(), [Severity::Fatal, Severity::Fatal]);
    assert_eq!(
        notes.iter().map(Note::code).collect::<Vec<_>>(),
        ["extension::unreadable", "extension::no_library"]
    );
    assert_eq!(notes[0].path(), Some(disk.path("project/missing.so").as_path()));
}

#[cfg(unix)]
#[test]
fn a_link_to_nowhere_is_named_and_the_others_go_on() {
    let disk = Disk::new();
    disk.file("home/extensions/b");
    std::os::unix::fs::symlink("nowhere", disk.path(&format!("home/extensions/a.{DLL}"))).unwrap();
    let found = disk.discover();
    assert_eq!(disk.names(&found), ["home/extensions/b"]);
    assert_eq!(found.notes[0].code(), "extension::unreadable");
}

#[cfg(target_os = "linux")]
#[test]
fn a_library_for_another_system_is_named_not_tried() {
    let disk = Disk::new();
    disk.file("home/extensions/a.dylib");
    assert_eq!(disk.refusal(), Refusal::OtherSystem);
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_of_a_project_is_opened_before_it_is_trusted() {
    let disk = Disk::new();
    let library = disk.file("project/.atomic/extensions/a");
    let folder = disk.path("project/.atomic/extensions/greet");
    fs::create_dir_all(&folder).unwrap();
    // Whoever opened it would wait here for ever.
    let pipe = folder.join("extension.json");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
    let atime = || std::os::unix::fs::MetadataExt::atime_nsec(&fs::metadata(&library).unwrap());
    let before = atime();
    assert!(disk.discover().candidates.is_empty());
    assert_eq!(list_project(&disk.places, &disk.places.cwd), [library.clone(), folder]);
    assert_eq!(atime(), before);
}
