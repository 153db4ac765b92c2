//! Somebody replaces the file between the check and the load, a thousand times, in every way there
//! is: what is loaded always has the hash that was shown, or nothing is loaded.

use super::*;
use std::sync::atomic::AtomicBool;

const TIMES: usize = 1_000;

fn decode(bytes: &[u8]) -> Result<u64, ()> {
    Ok(bytes.len() as u64)
}

/// Contents of one length, so that size tells nothing.
fn content(n: usize) -> Vec<u8> {
    format!("library {n:08}").into_bytes()
}

fn replace(file: &Path, n: usize, in_place: bool) {
    if in_place {
        fs::write(file, content(n)).unwrap();
    } else {
        let new = file.with_extension("new");
        fs::write(&new, content(n)).unwrap();
        fs::rename(new, file).unwrap();
    }
}

/// The copy, or the reason that there is none, must agree with what was shown.
fn check(shown: &str, placed: Result<PathBuf, CopyError>) -> bool {
    match placed {
        Ok(copy) => {
            assert_eq!(sha256_hex(&fs::read(copy).unwrap()), shown);
            true
        }
        Err(e) => {
            assert_eq!(e.code(), "extension::changed", "{e}");
            false
        }
    }
}

#[test]
fn a_file_replaced_between_check_and_load_never_loads_other_bytes_than_were_shown() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.so");
    // So much later that hashes are remembered: then the second reading is the one that counts.
    let copies = Copies::with_clock(
        &dir.path().join("home"),
        Box::new(|| SystemTime::now() + Duration::from_secs(10)),
    );
    let mut loaded = 0;
    for n in 0..TIMES {
        replace(&file, 2 * n, n % 2 == 0);
        if n % 4 < 2 {
            // Remembered from an earlier look.
            let opened = filecheck::open(&file).unwrap();
            copies.identify(opened, false, decode).unwrap();
        }
        let opened = filecheck::open(&file).unwrap();
        let mut library = copies.identify(opened, n % 3 == 0, decode).unwrap();
        let shown = library.sha256.clone();
        replace(&file, 2 * n + 1, n % 3 == 1);
        loaded += usize::from(check(&shown, copies.place(&mut library, 0)));
    }
    assert!(loaded > TIMES / 2, "most swaps change nothing for what is open: {loaded}");
}

#[test]
fn a_file_that_is_replaced_all_the_time_never_loads_other_bytes_than_were_shown() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x.so");
    replace(&file, 0, false);
    let copies = Copies::open(&dir.path().join("home"));
    let done = AtomicBool::new(false);
    std::thread::scope(|s| {
        s.spawn(|| {
            for n in 1.. {
                if done.load(Relaxed) {
                    break;
                }
                replace(&file, n, n % 2 == 0);
            }
        });
        for _ in 0..TIMES {
            let opened = filecheck::open(&file).unwrap();
            // A file that changes while it is read may be caught half written: then that is shown.
            if let Ok(mut library) = copies.identify(opened, true, decode) {
                let shown = library.sha256.clone();
                check(&shown, copies.place(&mut library, 0));
            }
        }
        done.store(true, Relaxed);
    });
}
