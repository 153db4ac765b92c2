//! Stories of the copies and of what is remembered, on real files.

use super::*;
use std::{cell::Cell, sync::Arc};

const TEN_SECONDS: Duration = Duration::from_secs(10);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

struct Place {
    dir: tempfile::TempDir,
    /// How much later than really it is.
    ahead: Arc<Mutex<Duration>>,
}

impl Place {
    fn new() -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap(), ahead: Arc::new(Mutex::new(TEN_SECONDS)) };
        place.write("a.so", "one");
        place
    }

    fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    fn cache(&self) -> PathBuf {
        self.home().join("cache/extensions")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.file(name), content).unwrap();
    }

    /// A start of the program.
    fn start(&self) -> Copies {
        let ahead = self.ahead.clone();
        Copies::with_clock(&self.home(), Box::new(move || SystemTime::now() + *ahead.lock().unwrap()))
    }

    fn identify(&self, copies: &Copies, name: &str) -> Identified<String> {
        copies.identify(filecheck::open(&self.file(name)).unwrap(), false, decode).unwrap()
    }

    fn later(&self, by: Duration) {
        *self.ahead.lock().unwrap() += by;
    }
}

/// The manifest of a test library is its content in capitals.
fn decode(bytes: &[u8]) -> Result<String, ()> {
    Ok(String::from_utf8_lossy(bytes).to_uppercase())
}

#[test]
fn a_copy_has_the_bytes_and_the_name_and_is_named_by_its_content() {
    let place = Place::new();
    let copies = place.start();
    let mut library = place.identify(&copies, "a.so");
    assert_eq!(library.manifest, "ONE");
    let copy = copies.place(&mut library, 0).unwrap();
    assert_eq!(copy, place.cache().join(sha256_hex(b"one")).join("a.so"));
    assert_eq!(fs::read(&copy).unwrap(), b"one");
    #[cfg(unix)]
    for path in [copy.as_path(), copy.parent().unwrap(), &place.cache()] {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o7777, 0o700, "{}", path.display());
    }
}

#[test]
fn a_second_mapping_is_the_same_bytes_under_another_name() {
    let place = Place::new();
    let copies = place.start();
    let mut library = place.identify(&copies, "a.so");
    let first = copies.place(&mut library, 0).unwrap();
    let second = copies.place(&mut library, 1).unwrap();
    assert_ne!(first, second);
    assert!(second.parent().unwrap().to_string_lossy().ends_with("-1"));
    assert_eq!(fs::read(second).unwrap(), fs::read(first).unwrap());
}

#[cfg(unix)]
#[test]
fn a_known_file_is_neither_read_nor_decoded_at_the_next_start() {
    let place = Place::new();
    let copies = place.start();
    let mut library = place.identify(&copies, "a.so");
    assert!(!library.was_remembered());
    let copy = copies.place(&mut library, 0).unwrap();
    copies.save();

    let copies = place.start();
    let decoded = Cell::new(false);
    let opened = filecheck::open(&place.file("a.so")).unwrap();
    let mut library = copies
        .identify(opened, false, |bytes| {
            decoded.set(true);
            decode(bytes)
        })
        .unwrap();
    assert!(library.was_remembered() && !decoded.get());
    assert_eq!((library.sha256.as_str(), library.manifest.as_str()), (sha256_hex(b"one").as_str(), "ONE"));
    assert_eq!(copies.place(&mut library, 0).unwrap(), copy);
}

#[cfg(unix)]
#[test]
fn b25_a_changed_file_is_noticed_although_size_and_mtime_are_the_same() {
    let place = Place::new();
    let copies = place.start();
    place.identify(&copies, "a.so");
    copies.save();
    let before = fs::metadata(place.file("a.so")).unwrap();
    let ctime = |m: &fs::Metadata| {
        use std::os::unix::fs::MetadataExt;
        (m.ctime(), m.ctime_nsec())
    };
    // The clock of a file system may be coarse: until it has moved on.
    while ctime(&fs::metadata(place.file("a.so")).unwrap()) == ctime(&before) {
        fs::write(place.file("a.so"), "two").unwrap();
        File::options()
            .write(true)
            .open(place.file("a.so"))
            .unwrap()
            .set_modified(before.modified().unwrap())
            .unwrap();
    }
    for copies in [copies, place.start()] {
        let library = place.identify(&copies, "a.so");
        assert_eq!((library.manifest.as_str(), library.was_remembered()), ("TWO", false));
    }
}

#[test]
fn a_young_file_is_hashed_every_time() {
    let place = Place::new();
    *place.ahead.lock().unwrap() = Duration::ZERO;
    let copies = place.start();
    place.identify(&copies, "a.so");
    // Hashed while it was young, it cannot be trusted later either.
    place.later(TEN_SECONDS);
    assert!(!place.identify(&copies, "a.so").was_remembered());
}

#[test]
fn a_pinned_file_is_hashed_every_time() {
    let place = Place::new();
    let copies = place.start();
    place.identify(&copies, "a.so");
    let opened = filecheck::open(&place.file("a.so")).unwrap();
    assert!(!copies.identify(opened, true, decode).unwrap().was_remembered());
}

#[test]
fn what_is_no_library_says_why_and_is_asked_again() {
    let place = Place::new();
    let copies = place.start();
    for _ in 0..2 {
        let opened = filecheck::open(&place.file("a.so")).unwrap();
        let refused = copies.identify(opened, false, |_| Err::<String, _>("no manifest"));
        assert!(matches!(refused, Err(NotIdentified::Manifest("no manifest"))));
    }
}

#[test]
fn a_file_that_changed_between_the_hash_and_the_copy_is_not_copied() {
    let place = Place::new();
    let copies = place.start();
    place.identify(&copies, "a.so");
    let mut library = place.identify(&copies, "a.so");
    // The hash is remembered, no copy is there yet.
    library.bytes = None;
    place.write("a.so", "two");
    let refused = copies.place(&mut library, 0).unwrap_err();
    assert_eq!(refused.code(), "extension::changed");
}

#[test]
fn a_copy_that_a_power_cut_left_short_is_made_again() {
    let place = Place::new();
    let copies = place.start();
    let copy = copies.place(&mut place.identify(&copies, "a.so"), 0).unwrap();
    File::options().write(true).open(&copy).unwrap().set_len(1).unwrap();
    let copies = place.start();
    let again = copies.place(&mut place.identify(&copies, "a.so"), 0).unwrap();
    assert_eq!((again, fs::read(&copy).unwrap()), (copy, b"one".to_vec()));
}

#[test]
fn a_corrupt_index_is_ignored_and_written_anew() {
    let place = Place::new();
    place.start().save();
    for broken in ["{\"version\":1,\"files\":{", "", "\u{0}\u{1}", "[]", r#"{"version":99,"files":{}}"#] {
        fs::write(place.cache().join(INDEX), broken).unwrap();
        let copies = place.start();
        assert!(!place.identify(&copies, "a.so").was_remembered());
        copies.save();
        #[cfg(unix)]
        assert!(place.identify(&place.start(), "a.so").was_remembered());
    }
}

#[cfg(unix)]
#[test]
fn a_hash_in_the_index_cannot_lead_out_of_the_cache() {
    let place = Place::new();
    let copies = place.start();
    place.identify(&copies, "a.so");
    copies.save();
    let index = fs::read_to_string(place.cache().join(INDEX)).unwrap();
    let forged = index.replace(&sha256_hex(b"one"), &("../".repeat(21) + "x"));
    assert_ne!(forged, index);
    fs::write(place.cache().join(INDEX), forged).unwrap();
    assert!(!place.identify(&place.start(), "a.so").was_remembered());
}

#[test]
fn b25_a_deleted_file_leaves_no_trace_in_what_others_are() {
    let place = Place::new();
    place.write("b.so", "other");
    let copies = place.start();
    place.identify(&copies, "a.so");
    place.identify(&copies, "b.so");
    copies.save();
    fs::remove_file(place.file("b.so")).unwrap();
    place.write("c.so", "third");
    let copies = place.start();
    assert_eq!(place.identify(&copies, "a.so").manifest, "ONE");
    assert_eq!(place.identify(&copies, "c.so").manifest, "THIRD");
    // An inode may be given to another file: it is told apart by its times.
}

#[test]
fn b25_without_a_cache_directory_copies_go_to_a_private_temporary_one() {
    let place = Place::new();
    // A file where the directory should be: not writable for anybody, root included.
    fs::create_dir_all(place.home()).unwrap();
    fs::write(place.home().join("cache"), "in the way").unwrap();
    let copies = place.start();
    assert!(copies.problem().is_some());
    let copy = copies.place(&mut place.identify(&copies, "a.so"), 0).unwrap();
    assert_eq!(fs::read(&copy).unwrap(), b"one");
    assert!(!copy.starts_with(place.home()));
    copies.save();
    drop(copies);
    assert!(!copy.exists(), "it goes with the process");
}

#[cfg(unix)]
#[test]
fn b81_a_cache_that_others_can_write_is_not_used() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    fs::create_dir_all(place.cache()).unwrap();
    fs::set_permissions(place.cache(), fs::Permissions::from_mode(0o777)).unwrap();
    let copies = place.start();
    assert!(copies.problem().unwrap().contains("every user may write it"));
    let copy = copies.place(&mut place.identify(&copies, "a.so"), 0).unwrap();
    assert!(!copy.starts_with(place.home()));
}

#[test]
fn two_starts_at_once_never_leave_a_broken_index() {
    let place = Place::new();
    for n in 0..8 {
        place.write(&format!("{n}.so"), &format!("library {n}"));
    }
    std::thread::scope(|scope| {
        for n in 0..8 {
            let place = &place;
            scope.spawn(move || {
                let copies = place.start();
                let mut library = place.identify(&copies, &format!("{n}.so"));
                copies.place(&mut library, 0).unwrap();
                copies.save();
            });
        }
    });
    let index: serde_json::Value =
        serde_json::from_slice(&fs::read(place.cache().join(INDEX)).unwrap()).unwrap();
    #[cfg(unix)]
    assert!(!index["files"].as_object().unwrap().is_empty());
    assert_eq!(index["version"], 1);
}

#[test]
fn copies_nobody_used_for_thirty_days_go_and_those_in_use_stay() {
    let place = Place::new();
    place.write("b.so", "other");
    let copies = place.start();
    let old = copies.place(&mut place.identify(&copies, "b.so"), 0).unwrap();
    place.later(20 * DAY);
    let copies = place.start();
    let used = copies.place(&mut place.identify(&copies, "a.so"), 0).unwrap();
    place.later(20 * DAY);
    let copies = place.start();
    copies.place(&mut place.identify(&copies, "a.so"), 0).unwrap();
    assert_eq!(copies.prune(), Pruned { copies: 1, bytes: 5, temporary: 0 });
    assert!(used.exists() && !old.exists());
}

#[test]
fn above_the_limit_the_oldest_go_first_but_never_one_of_this_process() {
    let place = Place::new();
    let copies = place.start();
    let mut paths = Vec::new();
    for n in 0..3 {
        let name = format!("{n}.so");
        place.write(&name, &format!("1234567{n}"));
        let path = copies.place(&mut place.identify(&copies, &name), 0).unwrap();
        File::open(&path).unwrap().set_modified(SystemTime::now() + n * DAY).unwrap();
        paths.push(path);
    }
    let ours: HashSet<PathBuf> = [paths[0].clone()].into();
    let pruned = prune::copies_over(&place.cache(), &ours, SystemTime::now(), 16);
    assert_eq!(pruned, Pruned { copies: 1, bytes: 8, temporary: 0 });
    assert_eq!(paths.iter().map(|p| p.exists()).collect::<Vec<_>>(), [true, false, true]);
}

#[cfg(unix)]
#[test]
fn what_a_dead_process_left_half_written_goes_and_nothing_else_does() {
    let place = Place::new();
    let copies = place.start();
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let dead = child.id();
    child.wait().unwrap();
    let (left, mine) = (format!("{TEMP_FILE}{dead}-0"), format!("{TEMP_FILE}{}-99", std::process::id()));
    for name in [left.as_str(), &mine, "notes.txt", ".tmp-nonsense"] {
        fs::write(place.cache().join(name), "half").unwrap();
    }
    fs::create_dir(place.cache().join("something-else")).unwrap();
    assert_eq!(copies.prune(), Pruned { copies: 0, bytes: 0, temporary: 1 });
    let mut names: Vec<_> =
        fs::read_dir(place.cache()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let mut expected = vec![mine, ".tmp-nonsense".into(), "notes.txt".into(), "something-else".into()];
    expected.sort();
    assert_eq!(names, expected);
}
