//! Who may depend on whom (ARCHITECTURE.md, "Arrows"), and the versions two places repeat.

use atomic_tests::tree::repo;
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};
use std::{collections::BTreeSet, fs, path::Path, process::Command};

fn metadata() -> Metadata {
    let mut command = MetadataCommand::new();
    command.manifest_path(repo().join("Cargo.toml")).no_deps();
    command.other_options(vec!["--locked".to_owned(), "--offline".to_owned()]).exec().unwrap()
}

/// `host/agent`, `plugins/todo`, …
fn room(p: &Package) -> String {
    let dir = p.manifest_path.parent().unwrap();
    dir.as_std_path().strip_prefix(repo()).unwrap().to_string_lossy().replace('\\', "/")
}

fn member_room(path: &Path) -> String {
    path.strip_prefix(repo()).map(|p| p.to_string_lossy().replace('\\', "/")).unwrap_or_default()
}

/// May the crate in room `from` use the crate in room `to`?
fn allowed(from: &str, to: &str) -> bool {
    let below = |a: &str, b: &str| a == b || a.starts_with(&format!("{b}/"));
    match from {
        "plugin-api" => to == "plugin-api/derive",
        "plugin-api/derive" | "host/agent" => false,
        "host/models" | "host/tools" | "host/tui" => to == "host/agent",
        "host/extensions" => to == "host/agent" || to == "plugin-api",
        "host/cli" => to != "tests" && !to.starts_with("plugins/"),
        "tests" => to != "host/cli",
        plugin if plugin.starts_with("plugins/") => {
            let own: Vec<&str> = plugin.splitn(3, '/').take(2).collect();
            to == "plugin-api"
                || below(to, &own.join("/"))
                || (to.starts_with("plugins/") && to.ends_with("/api"))
        }
        _ => false,
    }
}

#[test]
fn no_crate_depends_on_one_that_the_architecture_forbids() {
    let metadata = metadata();
    let mut faults = Vec::new();
    for p in metadata.workspace_packages() {
        for d in &p.dependencies {
            // The tests of a crate may use the test crate's parts; nothing built for users does.
            let Some(path) = &d.path else { continue };
            let (from, to) = (room(p), member_room(path.as_std_path()));
            if d.kind == DependencyKind::Normal && !allowed(&from, &to) {
                faults.push(format!("{from} -> {to}"));
            }
            if to == "host/cli" || (to == "tests" && d.kind == DependencyKind::Normal) {
                faults.push(format!("{from} -> {to}: nobody imports this one"));
            }
        }
    }
    assert!(faults.is_empty(), "forbidden arrows: {faults:#?}");
}

#[test]
fn the_rule_itself_refuses_what_it_should() {
    assert!(!allowed("plugins/todo", "host/agent"));
    assert!(!allowed("plugins/todo", "plugins/hello"));
    assert!(allowed("plugins/todo", "plugins/workflows/api"));
    assert!(allowed("plugins/workflows", "plugins/workflows/engine"));
    assert!(!allowed("plugins/work", "plugins/workflows"));
    assert!(!allowed("host/tui", "host/extensions"));
    assert!(!allowed("plugin-api", "host/agent"));
    assert!(!allowed("host/agent", "plugin-api"));
    assert!(!allowed("host/somewhere-new", "host/agent"), "a new room needs its own row");
}

#[test]
fn only_the_boundary_depends_on_the_abi_crates() {
    let metadata = metadata();
    for p in metadata.workspace_packages() {
        for d in p.dependencies.iter().filter(|d| ["abi_stable", "libloading"].contains(&d.name.as_str())) {
            let room = room(p);
            assert!(
                room == "host/extensions" || (room == "plugin-api" && d.name == "abi_stable"),
                "{room} depends on {}",
                d.name
            );
        }
    }
}

#[test]
fn plugin_api_inherits_nothing_and_repeats_the_versions_of_the_workspace() {
    // It is unpacked as the SDK outside any workspace, where `workspace = true` means nothing.
    for manifest in ["plugin-api/Cargo.toml", "plugin-api/derive/Cargo.toml"] {
        let text = fs::read_to_string(repo().join(manifest)).unwrap();
        let inherits =
            text.lines().find(|l| !l.trim_start().starts_with('#') && l.contains("workspace = true"));
        assert_eq!(inherits, None, "{manifest}");
    }
    // Every requirement beside the same one of another member (which does inherit).
    let metadata = metadata();
    let packages = metadata.workspace_packages();
    let api: Vec<&&Package> = packages.iter().filter(|p| room(p).starts_with("plugin-api")).collect();
    assert_eq!(api.len(), 2);
    let mut compared = 0;
    for d in api.iter().flat_map(|p| &p.dependencies).filter(|d| d.path.is_none()) {
        for other in packages.iter().filter(|p| !room(p).starts_with("plugin-api")) {
            for same in other.dependencies.iter().filter(|o| o.name == d.name) {
                assert_eq!(same.req, d.req, "{} in {} and in plugin-api", d.name, other.name);
                compared += 1;
            }
        }
    }
    assert!(compared > 0, "nothing was compared");
}

#[test]
fn plugin_api_needs_no_tokio_unless_its_feature_is_on() {
    let tree = |features: &[&str]| -> BTreeSet<String> {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        command.args(["tree", "--locked", "--offline", "-q", "-p", "atomic-plugin-api", "--prefix", "none"]);
        command.args(["-e", "normal", "--no-default-features"]).args(features).current_dir(repo());
        let out = command.output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        let text = String::from_utf8(out.stdout).unwrap();
        text.lines().filter_map(|l| l.split(' ').next()).map(str::to_owned).collect()
    };
    assert!(!tree(&[]).contains("tokio"));
    assert!(tree(&["--features", "tokio"]).contains("tokio"), "the check itself sees tokio");
}
