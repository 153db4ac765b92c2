//! Builds what the tests load and run: the program and the first-party libraries in the
//! target directory the tests themselves come from, fixtures beside it in `fixtures`.
//! Each at most once a process, under a file lock between processes.

use crate::tree::repo;
use std::{
    collections::HashMap,
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{LazyLock, Mutex, OnceLock},
};

/// `target/debug` or `target/release`, where this test binary was built.
pub fn profile_dir() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let dir = exe.parent().unwrap();
    if dir.ends_with("deps") { dir.parent().unwrap().to_owned() } else { dir.to_owned() }
}

fn target_dir() -> PathBuf {
    profile_dir().parent().unwrap().to_owned()
}

fn lock(name: &str) -> File {
    let file = File::create(target_dir().join(name)).unwrap();
    file.lock().unwrap();
    file
}

fn cargo(dir: &Path, target: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    command.current_dir(dir).arg("build").arg("--locked").arg("--target-dir").arg(target);
    if profile_dir().ends_with("release") {
        command.arg("--release");
    }
    // What cargo told this test about itself is not true for another crate.
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("CARGO_PKG_") || name == "CARGO_MANIFEST_DIR" || name == "CARGO_MANIFEST_PATH" {
            command.env_remove(name);
        }
    }
    command
}

fn run(mut command: Command) {
    let out = command.stdin(Stdio::null()).output().unwrap();
    assert!(out.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&out.stderr));
}

/// The workspace's libraries and binaries, fresh. `cargo test` leaves libraries only in
/// `deps`, and builds no binary of another crate. The whole workspace is selected, because a
/// `-p` would select other features and build all dependencies a second time.
fn workspace() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let _lock = lock(".atomic-tests-workspace");
        let mut command = cargo(repo(), &target_dir());
        command.args(["--workspace", "--lib", "--bins"]);
        run(command);
        profile_dir()
    })
}

/// Where crates that a test makes in a scratch home are built: their dependencies are the same
/// each time.
pub fn crates_target() -> PathBuf {
    target_dir().join("fixtures/crates")
}

/// `lib<name>.so`, as this system calls it.
pub fn file_name(crate_name: &str) -> String {
    let name = crate_name.replace('-', "_");
    format!("{}{name}{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX)
}

/// The program.
pub fn atomic() -> PathBuf {
    workspace().join(format!("atomic{}", std::env::consts::EXE_SUFFIX))
}

/// A first-party extension: `hello`, `event-log`, …
pub fn first_party(name: &str) -> PathBuf {
    workspace().join(file_name(name))
}

/// A crate of the workspace `tests/fixtures`.
pub fn fixture(name: &str) -> PathBuf {
    fixture_as(name, name)
}

/// The same, when the library has another name than its crate.
pub fn fixture_as(name: &str, library: &str) -> PathBuf {
    built(&repo().join("tests/fixtures"), name, library)
}

/// A crate of a few lines that is built against another plugin-api.
pub fn against(api: &Path, name: &str) -> PathBuf {
    let dir = api.parent().unwrap().join(name);
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"cdylib\"]\n\
         [dependencies]\natomic-plugin-api = {{ path = \"../plugin-api\" }}\n[workspace]\n\
         [profile.dev]\ndebug = \"line-tables-only\"\n[profile.dev.package.\"*\"]\ndebug = false\n"
    );
    let source = "use atomic_plugin_api::prelude::*;\nexport_extension!(activate);\n\
                  fn activate(_: &Extension) -> Result<()> {\n    Ok(())\n}\n";
    fs::create_dir_all(dir.join("src")).unwrap();
    for (file, text) in [("Cargo.toml", manifest.as_str()), ("src/lib.rs", source)] {
        if fs::read_to_string(dir.join(file)).ok().as_deref() != Some(text) {
            fs::write(dir.join(file), text).unwrap();
        }
    }
    // The versions of the fixtures: the same dependencies are built already.
    if !dir.join("Cargo.lock").exists() {
        fs::copy(repo().join("tests/fixtures/Cargo.lock"), dir.join("Cargo.lock")).unwrap();
        let mut relock = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        relock.current_dir(&dir).args(["update", "--workspace", "--offline", "--quiet"]);
        run(relock);
    }
    built(&dir, name, name)
}

/// A crate anywhere that holds one library, in the shared fixture target.
pub fn built(dir: &Path, package: &str, library: &str) -> PathBuf {
    static BUILT: LazyLock<Mutex<HashMap<(PathBuf, String), PathBuf>>> = LazyLock::new(Mutex::default);
    let mut known = BUILT.lock().unwrap_or_else(|e| e.into_inner());
    let key = (dir.to_owned(), package.to_owned());
    if let Some(path) = known.get(&key) {
        return path.clone();
    }
    let target = target_dir().join("fixtures");
    fs::create_dir_all(&target).unwrap();
    let _lock = lock(".atomic-tests-fixtures");
    let mut command = cargo(dir, &target);
    command.args(["-p", package, "--lib"]);
    run(command);
    let path = target.join(profile_dir().file_name().unwrap()).join(file_name(library));
    assert!(path.is_file(), "{}", path.display());
    known.insert(key, path.clone());
    path
}

/// A fresh copy of plugin-api with `edit` made to one of its files, for a fixture that is built
/// against it. Answers the copy's folder; it is rewritten only when it would differ, so that a
/// second run builds nothing.
pub fn changed_plugin_api(copy: &str, file: &str, edit: impl Fn(&str) -> String) -> PathBuf {
    let to = target_dir().join("fixtures").join(copy).join("plugin-api");
    let _lock = lock(".atomic-tests-copies");
    copy_tree(&repo().join("plugin-api"), &to, &|below, bytes| {
        if below == Path::new(file) {
            let text = String::from_utf8(bytes).unwrap();
            let edited = edit(&text);
            assert_ne!(text, edited, "the edit changed nothing");
            edited.into_bytes()
        } else {
            bytes
        }
    });
    to
}

/// Copies a tree through `map`, touching only files that differ.
pub fn copy_tree(from: &Path, to: &Path, map: &dyn Fn(&Path, Vec<u8>) -> Vec<u8>) {
    fn walk(root: &Path, dir: &Path, to: &Path, map: &dyn Fn(&Path, Vec<u8>) -> Vec<u8>) {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name());
            if name == "target" {
                continue;
            }
            if path.is_dir() {
                walk(root, &path, &to.join(name), map);
            } else {
                let bytes = map(path.strip_prefix(root).unwrap(), fs::read(&path).unwrap());
                let file = to.join(name);
                if fs::read(&file).ok().as_deref() != Some(&bytes) {
                    fs::write(file, bytes).unwrap();
                }
            }
        }
    }
    walk(from, from, to, map);
}
