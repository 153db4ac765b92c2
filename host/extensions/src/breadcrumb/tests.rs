//! Real crashes of real processes: this test binary runs itself, dies in a
//! given way, and the page it leaves behind is read.

#![allow(unsafe_code)]

use super::*;
use std::{
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
};

const A: u64 = 3;
const B: u64 = 4;
const TOOL_CALL: u16 = kind::EVENTS + 5;

/// What the child does; its page is named by a variable of its environment.
const WAY: &str = "CRUMB_TEST_WAY";
const PAGE: &str = "CRUMB_TEST_PAGE";

struct Death {
    status: ExitStatus,
    stderr: String,
    blame: Blame,
    _dir: tempfile::TempDir,
}

fn die(way: &str) -> Death {
    let dir = tempfile::tempdir().unwrap();
    let page: PathBuf = dir.path().join("crumbs");
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "breadcrumb::tests::the_child", "--nocapture", "--include-ignored"])
        .env(WAY, way)
        .env(PAGE, &page)
        .output()
        .unwrap();
    let blame = blame(&open(&page).unwrap().unwrap());
    Death {
        status: output.status,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        blame,
        _dir: dir,
    }
}

/// Not a test of its own.
#[test]
#[ignore = "run by the other tests, as a process that dies"]
fn the_child() {
    let (Ok(way), Ok(page)) = (std::env::var(WAY), std::env::var(PAGE)) else { return };
    install(Some(Path::new(&page))).unwrap();
    if way.starts_with("print ") {
        watch_for_exit();
    }
    let (way, then) = match way.strip_prefix("print ") {
        Some(way) => (way, OnFatal::PrintAndExit),
        None => (way.as_str(), OnFatal::Die),
    };
    catch_fatal_signals(then).unwrap();
    name_extension(A, "alpha");
    name_extension(B, "beta");
    name_event(TOOL_CALL, "tool_call");
    // alpha waits on another thread all the time: an innocent suspect.
    let (ready, waits) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _crumb = crumb(A, kind::TOOL);
        ready.send(()).unwrap();
        loop {
            std::thread::park();
        }
    });
    waits.recv().unwrap();
    match way {
        "null" => {
            let _outer = crumb(A, kind::COMMAND);
            let _inner = crumb(B, TOOL_CALL);
            null_write();
        }
        "after" => {
            let _outer = crumb(A, kind::COMMAND);
            drop(crumb(B, TOOL_CALL));
            null_write();
        }
        "abort" => {
            let _crumb = crumb(B, kind::ACTIVATE);
            std::process::abort();
        }
        "overflow" => {
            let _crumb = crumb(B, TOOL_CALL);
            overflow(1);
        }
        "thread" => in_thread(|| {
            thread_start(B);
            null_write();
        }),
        "thread overflow" => in_thread(|| {
            // As a thread of a library: its std gave it no signal stack.
            drop_signal_stack();
            thread_start(B);
            let _crumb = crumb(B, kind::TASK);
            overflow(1);
        }),
        "ip" => {
            assert!(note_library(B, null_write as *const () as usize));
            in_thread(null_write);
        }
        "nobody" => in_thread(null_write),
        "exit" => {
            let _crumb = crumb(B, TOOL_CALL);
            std::process::exit(0);
        }
        "exit thread" => in_thread(|| std::process::exit(0)),
        "exit in order" => {
            let _crumb = crumb(B, TOOL_CALL);
            leave_in_order();
            std::process::exit(0);
        }
        "clean" => {
            let _crumb = crumb(B, TOOL_CALL);
            mark_clean();
            std::process::exit(0);
        }
        other => panic!("no such way: {other}"),
    }
}

fn in_thread(what: fn()) {
    let _ = std::thread::spawn(what).join();
}

#[inline(never)]
fn null_write() {
    // SAFETY: none: crashing is the point.
    unsafe { std::ptr::without_provenance_mut::<u8>(std::hint::black_box(8)).write_volatile(1) };
}

#[inline(never)]
#[allow(unconditional_recursion)]
fn overflow(n: u64) -> u64 {
    let big = std::hint::black_box([n; 512]);
    overflow(n + 1) + big[(n % 512) as usize]
}

fn drop_signal_stack() {
    let off = libc::stack_t { ss_sp: std::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
    // SAFETY: it only takes the stack of this thread away.
    assert_eq!(unsafe { libc::sigaltstack(&raw const off, std::ptr::null_mut()) }, 0);
}

fn suspect(owner: u64, extension: &str, event: Option<&str>) -> Suspect {
    Suspect { owner, extension: Some(extension.into()), event: event.map(Into::into) }
}

#[test]
fn a_fault_is_blamed_on_the_innermost_frame_of_its_thread() {
    let death = die("null");
    assert_eq!(death.status.signal(), Some(libc::SIGSEGV));
    assert_eq!(death.blame.by, By::Crumb);
    assert_eq!(death.blame.suspects, [suspect(B, "beta", Some("tool_call"))]);
    let fault = death.blame.fault.unwrap();
    assert_eq!((fault.signal, fault.address), (libc::SIGSEGV, 8));
    assert_ne!(fault.ip, 0);
}

#[test]
fn a_frame_that_has_ended_is_not_blamed() {
    assert_eq!(die("after").blame.suspects, [suspect(A, "alpha", Some("a command"))]);
}

#[test]
fn an_abort_is_blamed_like_a_fault() {
    let death = die("abort");
    assert_eq!(death.status.signal(), Some(libc::SIGABRT));
    assert_eq!(death.blame.suspects, [suspect(B, "beta", Some("activate"))]);
}

#[test]
fn a_stack_overflow_is_blamed() {
    let death = die("overflow");
    assert_eq!(death.blame.by, By::Crumb);
    assert_eq!(death.blame.suspects, [suspect(B, "beta", Some("tool_call"))]);
}

#[test]
fn a_thread_of_an_extension_is_blamed_by_its_base_crumb() {
    let death = die("thread");
    assert_eq!(death.blame.by, By::Crumb);
    assert_eq!(death.blame.suspects, [suspect(B, "beta", Some("a thread of its own"))]);
}

// native-abi 7: without a signal stack of its own the handler did not run
#[test]
fn a_stack_overflow_on_a_thread_of_a_library_still_reaches_the_handler() {
    let death = die("thread overflow");
    assert!(death.blame.fault.is_some());
    assert_eq!(death.blame.suspects, [suspect(B, "beta", Some("a background task"))]);
}

#[test]
fn a_thread_without_a_crumb_is_blamed_on_the_library_it_crashed_in() {
    let death = die("ip");
    assert_eq!(death.blame.by, By::Library);
    assert_eq!(death.blame.suspects, [suspect(B, "beta", None)]);
}

#[test]
fn otherwise_all_who_ran_are_suspects() {
    let death = die("nobody");
    assert_eq!(death.blame.by, By::Suspects);
    assert_eq!(death.blame.suspects, [suspect(A, "alpha", Some("a tool"))]);
}

#[test]
fn an_extension_that_exits_the_process_is_a_suspect_although_the_code_is_zero() {
    let death = die("exit");
    assert!(death.status.success());
    assert_eq!(death.blame.fault, None);
    assert_eq!(death.blame.by, By::Suspects);
    assert!(death.blame.suspects.contains(&suspect(B, "beta", Some("tool_call"))));
}

#[test]
fn an_orderly_exit_blames_nobody() {
    assert_eq!(die("clean").blame, Blame { by: By::Nobody, fault: None, suspects: vec![] });
}

#[test]
fn print_mode_says_it_in_one_line_and_exits_70() {
    let death = die("print null");
    assert_eq!(death.status.code(), Some(70));
    assert_eq!(
        death.stderr,
        "atomic: extension beta crashed the program (SIGSEGV in tool_call); \
         the session can be opened again with --continue\n"
    );
    assert_eq!(death.blame.by, By::Crumb);
}

#[test]
fn print_mode_names_the_suspects_when_nobody_is_sure() {
    let death = die("print nobody");
    assert_eq!(death.status.code(), Some(70));
    assert_eq!(
        death.stderr,
        "atomic: the program crashed (SIGSEGV), while these extensions ran: alpha; \
         the session can be opened again with --continue\n"
    );
}

#[test]
fn an_exit_of_an_extension_in_print_mode_is_one_line_and_exits_70() {
    let death = die("print exit");
    assert_eq!(death.status.code(), Some(70));
    assert_eq!(
        death.stderr,
        "atomic: extension beta ended the program (exit called in tool_call); \
         the session can be opened again with --continue\n"
    );
    let death = die("print exit thread");
    assert_eq!(death.status.code(), Some(70));
    assert!(death.stderr.contains("while these extensions ran: alpha"), "{}", death.stderr);
}

#[test]
fn an_exit_of_the_program_itself_is_left_alone() {
    let death = die("print exit in order");
    assert!(death.status.success(), "{:?}", death.status);
    assert_eq!(death.stderr, "");
    assert!(die("print clean").status.success());
}

#[test]
fn a_name_cannot_carry_an_escape_sequence_to_the_terminal() {
    let page = Box::new(Page::new());
    page.extensions.set(7, "evil\x1b[2Jname");
    assert_eq!(page.extensions.get(7).unwrap().text(), "evil?[2Jname");
}

#[test]
fn frames_deeper_than_the_slot_are_counted_and_end_in_order() {
    let read = || {
        let tid = signal::thread_id();
        let slot = page().slots.iter().find(|s| s.tid.load(std::sync::atomic::Ordering::Relaxed) == tid);
        slot.and_then(|slot| slot.innermost()).map(|frame| (frame.owner(), frame.kind()))
    };
    std::thread::spawn(move || {
        let outer = push(A, kind::TOOL);
        let frames: Vec<u64> = (0..40).map(|n| push(B, kind::EVENTS + n)).collect();
        assert_eq!(read().unwrap().0, B);
        frames.into_iter().rev().for_each(pop);
        assert_eq!(read(), Some((A, kind::TOOL)));
        pop(outer);
        assert_eq!(read(), None);
    })
    .join()
    .unwrap();
}

#[test]
fn what_is_no_page_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    std::fs::write(&path, "short").unwrap();
    assert!(open(&path).unwrap().is_none());
    std::fs::write(&path, vec![0u8; size_of::<Page>()]).unwrap();
    assert!(open(&path).unwrap().is_none());
}
