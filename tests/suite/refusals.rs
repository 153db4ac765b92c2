//! What is refused before any code of it runs, by patched bytes: each with a card that says
//! what, which file, which versions, what to type; the others load.

use atomic_extensions::inspect;
use atomic_tests::{
    env::Home,
    libs::{self, file_name},
    live::{Live, Setup},
    patch::{manifest, manifest_copy, misbehaving},
};
use serde_json::{Map, Value};
use std::{fs, path::PathBuf};

/// A home with one honest neighbour, and a place for the bad file.
fn home() -> (Home, PathBuf) {
    let home = Home::new();
    misbehaving(&home, "neighbour", "none");
    let bad = home.extensions().join(file_name("bad"));
    (home, bad)
}

/// The bad file is the only one refused, and nothing on disk was touched.
async fn refused(home: &Home, bad: &PathBuf, code: &str) -> String {
    let before = fs::read(bad).unwrap();
    let live: Live = Setup::new(home).start().await;
    let names: Vec<String> = live.extensions.list().into_iter().map(|e| e.name).collect();
    assert_eq!(names, ["neighbour"], "{code}");
    let cards: Vec<String> = live.report.refused.iter().map(ToString::to_string).collect();
    assert_eq!(cards.len(), 1, "{code}: {cards:?}");
    assert_eq!(live.report.refused[0].code(), code);
    assert!(!live.report.refused[0].fatal, "{code}");
    assert!(cards[0].contains(bad.to_str().unwrap()), "names the file: {}", cards[0]);
    assert!(cards[0].contains("help: "), "{}", cards[0]);
    assert_eq!(fs::read(bad).unwrap(), before, "{code}: the file was changed");
    live.close().await;
    cards.into_iter().next().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_that_does_not_fit_is_refused_by_its_own_rule() {
    type Edit = fn(&mut Map<String, Value>);
    let set: [(&str, Edit, &[&str]); 7] = [
        (
            "extension::other_target",
            |m| drop(m.insert("target".into(), "s390x-ibm-zos".into())),
            &["s390x-ibm-zos"],
        ),
        ("extension::panic_abort", |m| drop(m.insert("panic".into(), "abort".into())), &["panic"]),
        (
            "extension::abi_too_new",
            |m| drop(m.insert("apiVersion".into(), "2.0.0".into())),
            &["2.0.0", "1.0.0"],
        ),
        (
            "extension::abi_too_old",
            |m| drop(m.insert("apiVersion".into(), "0.9.0".into())),
            &["0.9.0", "1.0.0"],
        ),
        ("extension::bad_manifest", |m| drop(m.insert("apiVersion".into(), "one".into())), &["apiVersion"]),
        ("extension::bad_name", |m| drop(m.insert("name".into(), "../evil".into())), &["../evil"]),
        ("extension::bad_manifest", |m| drop(m.remove("target")), &["target"]),
    ];
    for (code, edit, says) in set {
        let (home, bad) = home();
        manifest_copy(&libs::fixture("misbehaving"), &bad, edit);
        let card = refused(&home, &bad, code).await;
        for part in says {
            assert!(card.contains(part), "{code} says {part}: {card}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_no_extension_are_refused_with_what_they_are() {
    let library = libs::fixture("misbehaving");
    let bytes = fs::read(&library).unwrap();
    let magic = bytes.windows(8).position(|w| w == atomic_plugin_api::manifest::MAGIC).unwrap();
    let mut other_magic = bytes.clone();
    other_magic[magic] ^= 0xff;
    let mut other_schema = bytes.clone();
    other_schema[magic + 8] = 99;
    let mut endless = bytes.clone();
    endless[magic + 12..magic + 16].copy_from_slice(&u32::MAX.to_le_bytes());
    // Byte 18 of an ELF header is its machine; 0x28 is 32-bit Arm, on no machine that runs this.
    let mut other_machine = bytes.clone();
    other_machine[18] = 0x28;
    for (what, content, code) in [
        #[cfg(target_os = "linux")]
        ("another machine's code", other_machine, "extension::other_machine"),
        ("a text", b"hello".to_vec(), "extension::not_a_library"),
        ("nothing", Vec::new(), "extension::not_a_library"),
        ("half a library", bytes[..bytes.len() / 2].to_vec(), "extension::not_a_library"),
        ("a few bytes of one", bytes[..100].to_vec(), "extension::not_a_library"),
        (
            "a library without a manifest",
            fs::read(libs::fixture_as("stray", "dep")).unwrap(),
            "extension::not_an_extension",
        ),
        ("another magic", other_magic, "extension::bad_manifest"),
        ("another schema", other_schema, "extension::bad_manifest"),
        ("an endless manifest", endless, "extension::bad_manifest"),
    ] {
        eprintln!("{what}");
        let (home, bad) = home();
        fs::write(&bad, content).unwrap();
        refused(&home, &bad, code).await;
        assert_eq!(inspect(&bad).unwrap_err().code(), code, "{what}: inspect agrees with the loader");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_really_changed_layout_is_refused_and_a_patched_fingerprint_loads() {
    // Two fields of a plain struct change places, under the same api version. The copy compiles:
    // nobody names them by their position.
    let api = libs::changed_plugin_api("changed-layout", "src/abi/frozen.rs", |text| {
        let field = |name: &str| {
            let at = text.find(&format!("    pub {name}: u64,")).unwrap();
            let comment = text[..at].rfind("    ///").unwrap();
            let end = at + text[at..].find('\n').unwrap() + 1;
            &text[comment..end]
        };
        let (owner, generation) = (field("owner"), field("generation"));
        text.replacen(&format!("{owner}{generation}"), &format!("{generation}{owner}"), 1)
    });
    let library = libs::against(&api, "changed-layout");
    let (home, bad) = home();
    fs::copy(&library, &bad).unwrap();
    let card = refused(&home, &bad, "extension::layout").await;
    assert!(card.len() < 2_000, "no dump of the layout: {} characters", card.len());

    // The fingerprint alone decides nothing.
    let (home, other) = self::home();
    manifest_copy(&libs::fixture("misbehaving"), &other, |m| {
        drop(m.insert("layout".into(), "0000000000000000".into()))
    });
    let live = Setup::new(&home).start().await;
    assert!(live.report.refused.is_empty(), "{:?}", live.report.refused);
    let notes = inspect(&other).unwrap().notes;
    assert!(notes.iter().any(|n| n.contains("layout")), "{notes:?}");
    live.close().await;
}

/// Field case B22: one message, both versions, no second error of the system behind it.
#[tokio::test(flavor = "multi_thread")]
async fn b22_an_extension_of_another_host_version_is_one_message_and_the_prompt_comes() {
    let home = Home::new();
    misbehaving(&home, "a", "none");
    misbehaving(&home, "c", "none");
    let b = home.extensions().join(file_name("b"));
    manifest_copy(&libs::fixture("misbehaving"), &b, |m| {
        m.insert("name".into(), "b".into());
        m.insert("apiVersion".into(), "0.4.0".into());
    });
    let live = Setup::new(&home).start().await;
    let names: Vec<String> = live.extensions.list().into_iter().map(|e| e.name).collect();
    assert_eq!(names, ["a", "c"]);
    let card = live.report.refused[0].to_string();
    assert!(card.contains("built for api 0.4.0, this host has api 1.0.0"), "{card}");
    assert!(!card.contains("os error"), "{card}");
    assert_eq!(live.report.refused.len(), 1);
    live.close().await;
}

/// Field case B11: the constructor of a library that is no extension never runs.
#[test]
fn b11_a_stray_library_is_skipped_and_its_constructor_never_runs() {
    let home = Home::new();
    let good = misbehaving(&home, "good", "none");
    let stray = libs::fixture_as("stray", "dep");
    home.install(&stray);
    fs::write(home.extensions().join(file_name("readme")), "text").unwrap();
    fs::write(home.extensions().join(file_name("empty")), "").unwrap();
    let foreign = home.extensions().join(file_name("foreign"));
    let mut elf = fs::read(&stray).unwrap();
    // e_machine of another CPU (SPARC).
    elf[18] = 2;
    fs::write(&foreign, elf).unwrap();
    let constructed = home.path("ctor");
    let script = home.script(&serde_json::json!([{ "text": "hello" }]));
    let done = home
        .atomic(["-p", "hi", "--script", script.to_str().unwrap()])
        .env("STRAY_OUT", &constructed)
        .run()
        .ok();
    assert_eq!(done.stdout, "hello\n");
    for file in [file_name("dep"), file_name("readme"), file_name("empty"), file_name("foreign")] {
        assert!(done.stderr.contains(&file), "{file} is named:\n{}", done.stderr);
    }
    assert!(!constructed.exists(), "the constructor ran");
    assert!(atomic_tests::live::lines(&good).contains(&"agent_settled".to_owned()));
    // The fixture really has one: whoever opens it runs it.
    assert!(manifest(&libs::fixture("misbehaving"))["name"] == "misbehaving");
}
