//! The supervised engine seen from outside: who dies with whom, what is asked, what is kept.
//! What each fault costs is in `crash_matrix`.

use atomic_tests::{
    env::{Home, Program, rounds},
    live::{lines, text, wait_for_file},
    patch::{manifest_copy, misbehaving, misbehaving_project},
    pty::Terminal,
    session,
    tree::repo,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::{fs, path::Path};

fn pid(id: u32) -> Pid {
    Pid::from_raw(id.cast_signed()).unwrap()
}

/// Its children, by process id, whichever thread started them.
fn children(of: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten();
    let lists = threads.map(|t| fs::read_to_string(t.path().join("children")).unwrap_or_default());
    let mut all: Vec<u32> =
        lists.flat_map(|l| l.split_whitespace().map(|p| p.parse().unwrap()).collect::<Vec<_>>()).collect();
    all.sort_unstable();
    all
}

/// The one engine it has, as soon as it has one.
fn engine_of(run: &Program) -> u32 {
    let until = std::time::Instant::now() + atomic_tests::env::PATIENCE;
    loop {
        match children(run.id())[..] {
            [engine] => return engine,
            _ => assert!(std::time::Instant::now() < until, "no engine\n{}", run.stdout()),
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn the_engine_goes_with_its_terminal() {
    let home = Home::new();
    let out = misbehaving(&home, "listener", "none");
    let run = home.atomic(["--offline", "--mode", "lines"]).start();
    run.wait_for("the start", |l| l.contains("1 extension"));
    let engines = children(run.id());
    assert_eq!(engines.len(), 1, "one engine");
    kill_process(pid(run.id()), Signal::KILL).unwrap();
    // As after a signal: the extensions are told, then the process goes.
    wait_for_file(&out, "session_shutdown quit");
    let until = std::time::Instant::now() + atomic_tests::env::PATIENCE;
    while Path::new(&format!("/proc/{}/exe", engines[0])).exists() {
        assert!(std::time::Instant::now() < until, "the engine is still there");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

#[test]
fn at_a_terminal_a_crash_is_a_question_and_the_user_decides() {
    for (answer, loaded) in [("1", false), ("2", true)] {
        let home = Home::new();
        misbehaving(&home, "crasher", "crash:null-at-tool");
        let mut screen = Terminal::start(&home.atomic(["--offline"]), 40, 120);
        screen.wait_for("the prompt", |s| s.contains("1 extension") && s.ends_with("> "));
        screen.line("call crash_tool {}");
        let asked = screen.wait_for("the question", |s| s.contains("3) quit") && s.contains("number:"));
        for part in [
            "crasher crashed the engine (SIGSEGV in a tool)",
            "crash_tool {} has no result: it may have run, and had effects",
            "1) go on without crasher",
            "2) go on with crasher",
        ] {
            assert!(asked.contains(part), "{part} is missing:\n{asked}");
        }
        screen.line(answer);
        screen.wait_for("the session", |s| s.contains("the session goes on"));
        screen.line("hello again");
        screen.wait_for("the answer", |s| s.contains("You said: hello again"));
        screen.line("/extensions");
        let listed = screen.wait_for("the list", |s| s.contains("/extensions") && s.ends_with("> "));
        assert_eq!(listed.contains("crash_tool, "), loaded, "{listed}");
        screen.line("/quit");
        assert_eq!(screen.finish(), 0);
    }
}

#[test]
fn b24_a_crash_at_every_start_is_left_out_once_and_said_and_a_clean_end_says_nothing() {
    let home = Home::new();
    misbehaving(&home, "crasher", "init-segv");
    let run = |args: &[&str]| home.atomic(["--offline", "-p", "hi"]).args(args).run();
    let first = run(&[]).exit(70);
    assert!(first.stderr.contains("crasher"), "{}", first.stderr);
    let second = run(&[]).ok();
    assert!(second.stderr.contains("crasher crashed atomic the last time (SIGSEGV in"), "{}", second.stderr);
    assert!(second.stdout.contains("You said: hi"), "{}", second.stdout);
    // Once: after a start without it, it has its chance again.
    run(&[]).exit(70);
    let bare = run(&["--no-extensions"]).ok();
    assert!(bare.stdout.contains("You said: hi"));
    fs::remove_file(home.extensions().join(atomic_tests::libs::file_name("crasher"))).unwrap();
    misbehaving(&home, "honest", "none");
    for _ in 0..2 {
        assert_eq!(run(&[]).ok().stderr, "");
    }
}

#[test]
fn one_that_exits_at_every_start_is_left_out_too() {
    let home = Home::new();
    misbehaving(&home, "leaver", "init-exit");
    let run = || home.atomic(["--offline", "-p", "hi"]).run();
    run().exit(70);
    let second = run().ok();
    assert!(second.stderr.contains("leaver crashed atomic the last time (exit in"), "{}", second.stderr);
}

#[test]
fn at_a_terminal_the_next_start_asks_about_the_crash_before() {
    let home = Home::new();
    misbehaving(&home, "crasher", "init-segv");
    home.atomic(["--offline", "-p", "hi"]).run().exit(70);
    let mut screen = Terminal::start(&home.atomic(["--offline"]), 30, 120);
    screen.wait_for("the question", |s| {
        s.contains("crasher crashed atomic the last time") && s.contains("[Y/n]")
    });
    screen.line("");
    screen.wait_for("a start without it", |s| s.contains("0 extensions"));
    screen.line("/quit");
    assert_eq!(screen.finish(), 0);
}

/// Nobody can press Ctrl+C on a pipe: the engine is replaced, and the end of the input ends it.
#[test]
fn over_a_pipe_an_engine_that_hangs_is_replaced_unasked_after_what_the_user_set() {
    let home = Home::new();
    settings(&home, r#"{"engine": {"hangKillMs": 12000}}"#);
    misbehaving(&home, "blocker", "sync-hang:sync-tool_call");
    let mut run = home.atomic(["--offline", "--mode", "lines"]).start();
    run.say("call bash {\"command\":\"echo hi\"}");
    run.close_stdin();
    let done = run.finish().ok();
    let held = done.stdout.split("blocker held the engine for ").nth(1).and_then(|t| t.split(' ').next());
    // Not the 10 s that hold without the setting.
    assert!(held.and_then(|s| s.parse::<f32>().ok()).is_some_and(|s| s >= 12.0), "{}", done.stdout);
    assert!(!done.stdout.contains("Ctrl+C"), "{}", done.stdout);
}

/// That nothing had to be trusted is no answer about what comes later.
#[test]
fn after_a_loss_a_project_that_brought_nothing_is_asked_about_when_it_brings_something() {
    for before_the_loss in [false, true] {
        let home = Home::new();
        let mut run = home.atomic(["--offline", "--mode", "lines"]).start();
        run.say("hi");
        run.wait_for("an answer", |l| l.contains("You said: hi"));
        let mut mine = before_the_loss.then(|| misbehaving_project(&home, "mine", "none"));
        kill_process(pid(engine_of(&run)), Signal::KILL).unwrap();
        run.wait_for("the loss", |l| l.contains("the engine ended"));
        if mine.is_none() {
            run.wait_for("the next one", |l| l.contains("the session goes on"));
            mine = Some(misbehaving_project(&home, "mine", "none"));
            run.say("/reload");
        }
        run.wait_for("the question", |l| l.contains("Trust the project"));
        assert!(lines(&mine.unwrap()).is_empty(), "it was opened unasked");
        run.close_stdin();
        run.finish().ok();
    }
}

#[test]
fn without_extensions_there_are_no_guards_so_only_the_user_goes_on_like_that() {
    let home = Home::new();
    misbehaving(&home, "honest", "none");
    let run = home.atomic(["--offline", "--mode", "lines"]).start();
    run.wait_for("the start", |l| l.contains("1 extension"));
    let mut at = 0;
    for n in 1..=3 {
        kill_process(pid(engine_of(&run)), Signal::KILL).unwrap();
        at = run.wait_after(at, "the loss", |l| l.contains("the engine ended")).0 + 1;
        if n < 3 {
            at = run.wait_after(at, "the next one", |l| l.contains("a new session begins")).0 + 1;
        }
    }
    let done = run.finish().exit(1);
    assert!(done.stdout.contains("cli::engine_lost"), "{}", done.stdout);
    assert!(done.stdout.contains("--no-extensions --continue"), "{}", done.stdout);
    run_is_over(&home);
}

#[test]
fn a_command_that_does_not_stop_is_named_with_the_way_out() {
    let home = Home::new();
    let out = misbehaving(&home, "hanger", "none");
    let mut run = home.atomic(["--offline", "--mode", "lines"]).start();
    run.wait_for("the start", |l| l.contains("1 extension"));
    run.say("/hang");
    wait_for_file(&out, "hanging");
    kill_process(pid(run.id()), Signal::INT).unwrap();
    run.wait_for("its name", |l| l.contains("busy in a command; /reload hanger replaces it"));
    run.say("/reload hanger");
    run.wait_for("the reload", |l| l.contains("reload: hanger"));
    run.say("hello");
    run.wait_for("an answer", |l| l.contains("You said: hello"));
    run.close_stdin();
    run.finish().ok();
}

/// Threads that ignore the shutdown, and a thread-local of the extension on the host's thread.
#[test]
fn b20_live_threads_and_thread_locals_survive_twenty_reloads_and_the_end() {
    let home = Home::new();
    settings(&home, r#"{"engine": {"maxLeftThreads": 1000}}"#);
    let out = misbehaving(&home, "ticker", "ticker");
    let mut run = home.atomic(["--offline", "--mode", "lines"]).start();
    run.wait_for("the start", |l| l.contains("1 extension"));
    let mut at = 0;
    for _ in 0..20 {
        run.say("/reload");
        at = run.wait_after(at, "a reload", |l| l.contains("reload: ticker")).0 + 1;
    }
    wait_for_file(&out, "tick: stale_context");
    run.say("hello");
    run.wait_for("an answer", |l| l.contains("You said: hello"));
    run.close_stdin();
    let done = run.finish().ok();
    assert!(!done.stdout.contains("! "), "nothing crashed:\n{}", done.stdout);
}

#[test]
fn b30_a_reload_reads_the_settings_again_and_keeps_what_it_does_not_know() {
    let home = Home::new();
    let golden = repo().join("tests/golden/1.0/libgolden.so");
    fs::create_dir_all(home.path("mine")).unwrap();
    fs::copy(golden, home.path("mine/libgolden.so")).unwrap();
    let listed = json!({"extensions": [home.path("mine/libgolden.so")]});
    settings(&home, &listed.to_string());
    misbehaving(&home, "other", "none");
    let mut run = home.atomic(["--offline", "--mode", "lines"]).start();
    run.wait_for("both", |l| l.contains("2 extensions"));
    let changed = r#"{"extensions": [], "x": 1}"#;
    settings(&home, changed);
    run.say("/reload");
    run.wait_for("the listed one is gone", |l| l.contains("golden 1.0.0") && l.contains("gone"));
    run.say("/extensions disable other");
    run.wait_for("a setting is written", |l| l.contains("other"));
    run.close_stdin();
    run.finish().ok();
    let kept: serde_json::Value =
        serde_json::from_slice(&fs::read(home.atomic_home().join("agent/settings.json")).unwrap()).unwrap();
    assert_eq!((&kept["x"], &kept["extensions"]), (&json!(1), &json!([])), "{kept}");
}

/// A guard must not be got rid of by taking its file away and ending the engine.
#[test]
fn an_extension_that_is_gone_when_the_engine_is_lost_is_not_simply_left_out() {
    let gone = |home: &Home| fs::remove_file(home.extensions().join(atomic_tests::libs::file_name("guard")));
    let home = Home::new();
    misbehaving(&home, "guard", "block:no");
    let run = home.atomic(["--offline", "--mode", "lines"]).start();
    run.wait_for("the start", |l| l.contains("1 extension"));
    gone(&home).unwrap();
    kill_process(pid(engine_of(&run)), Signal::KILL).unwrap();
    let done = run.finish().exit(1);
    assert!(done.stdout.contains("extension::vanished"), "{}", done.stdout);

    misbehaving(&home, "guard", "block:no");
    let mut screen = Terminal::start(&home.atomic(["--offline"]), 30, 120);
    screen.wait_for("the prompt", |s| s.contains("1 extension") && s.ends_with("> "));
    gone(&home).unwrap();
    screen.line("!kill -9 $PPID");
    screen.wait_for("the question", |s| s.contains("guard (") && s.contains("2) quit"));
    screen.line("2");
    screen.finish();
}

fn run_is_over(home: &Home) {
    assert_eq!(fs::read_dir(home.atomic_home().join("run")).unwrap().count(), 0);
}

#[test]
fn a_program_nobody_reads_ends_on_a_signal() {
    let home = Home::new();
    let run = home.atomic(["--offline", "--mode", "lines"]);
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut child = run.start_writing_to(writer);
    child.say(&format!("!seq 1 200000; echo {}", "x".repeat(100)));
    // Something has come, so it runs; then nobody reads any more.
    std::io::Read::read_exact(&mut reader, &mut [0; 1000]).unwrap();
    kill_process(pid(child.id()), Signal::TERM).unwrap();
    // By itself, or because it could not.
    let done = child.finish();
    assert!(matches!((done.code, done.signal), (Some(0 | 143), None)), "{done:?}");
    drop(reader);
}

#[test]
fn what_was_typed_and_not_heard_comes_back() {
    let home = Home::new();
    misbehaving(&home, "crasher", "segv:sync-input");
    let mut run = home.atomic(["--offline", "--mode", "lines"]).start();
    run.wait_for("the start", |l| l.contains("1 extension"));
    run.say("a long thought that nobody wants to type again");
    run.wait_for("the text", |l| l.contains("not delivered: a long thought that nobody wants to type again"));
    run.say("next");
    run.wait_for("the answer", |l| l.contains("You said: next"));
    run.close_stdin();
    run.finish().ok();
}

#[test]
fn the_session_goes_on_in_the_same_file_with_a_result_for_every_call() {
    let home = Home::new();
    misbehaving(&home, "crasher", "crash:abort-at-tool");
    let mut run = home.atomic(["--offline", "--mode", "lines"]).start();
    run.wait_for("the start", |l| l.contains("1 extension"));
    run.say("call crash_tool {}");
    run.wait_for("the loss", |l| l.contains("crasher crashed the engine"));
    // The offline model refuses nothing, so what it is shown is read from its answer.
    run.say("next");
    run.wait_for("the answer", |l| l.contains("You said: next"));
    run.close_stdin();
    run.finish().ok();
    let files = home.sessions();
    assert_eq!(files.len(), 1);
    let session = session::read(&files[0]);
    assert_eq!(session.of_role("user").len(), 2);
}

#[test]
fn an_allocation_that_is_refused_names_who_asked_for_it() {
    let home = Home::new();
    misbehaving(&home, "glutton", "huge-alloc:sync-agent_start");
    let mut run = home.atomic(["--offline", "--mode", "lines"]).start();
    run.wait_for("the start", |l| l.contains("1 extension"));
    run.say("first");
    run.wait_for("the name", |l| l.contains("glutton crashed the engine (SIGABRT in agent_start)"));
    run.say("next");
    run.wait_for("the answer", |l| l.contains("You said: next"));
    run.close_stdin();
    run.finish().ok();
}

fn settings(home: &Home, text: &str) {
    let agent = home.atomic_home().join("agent");
    fs::create_dir_all(&agent).unwrap();
    fs::write(agent.join("settings.json"), text).unwrap();
}

/// Resident memory of a process in KiB, and its open descriptors.
fn weight(id: u32) -> (u64, usize) {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap_or("0");
    let kb = line.trim().trim_end_matches(" kB").parse().unwrap_or(0);
    let open = fs::read_dir(format!("/proc/{id}/fd")).map(Iterator::count).unwrap_or(0);
    (kb, open)
}

fn pair(run: &Program) -> (u64, usize) {
    let ours = weight(run.id());
    let engine = children(run.id()).first().map(|c| weight(*c)).unwrap_or_default();
    (ours.0 + engine.0, ours.1 + engine.1)
}

/// The golden extension with another version each time: other bytes, the same code.
fn install_version(home: &Home, n: usize) {
    let golden = repo().join("tests/golden/1.0/libgolden.so");
    let fresh = home.path("fresh.so");
    manifest_copy(&golden, &fresh, |m| {
        m.insert("version".into(), format!("1.0.{n}").into());
    });
    // As an installer does it.
    fs::rename(&fresh, home.extensions().join("libgolden.so")).unwrap();
}

#[test]
fn hundreds_of_reloads_of_changing_code_cost_nothing_that_stays() {
    let n = if rounds(1000) == 1000 { 1000 } else { 100 };
    let home = Home::new();
    install_version(&home, 0);
    let mut run = home.atomic(["--offline", "--mode", "lines"]).start();
    run.wait_for("the start", |l| l.contains("1 extension"));
    let first_engine = children(run.id());
    let mut at = 0;
    let mut early = (0, 0);
    for i in 1..=n {
        install_version(&home, i);
        run.say("/reload");
        let told = format!("golden 1.0.{} -> 1.0.{i}", i - 1);
        // An engine that took over meanwhile has loaded it already.
        let loaded = |l: &str| l.contains(&told) || l.contains("reload: golden unchanged");
        at = run.wait_after(at, &told, loaded).0 + 1;
        if i == 50 {
            early = pair(&run);
        }
    }
    run.say("still there");
    run.wait_for("an answer", |l| l.contains("You said: still there"));
    let late = pair(&run);
    assert_ne!(children(run.id()), first_engine, "the engine was replaced on the way");
    run.close_stdin();
    let done = run.finish().ok();
    assert!(done.stdout.contains("replaced libraries are still mapped"), "{}", done.stdout);
    assert!(!done.stdout.contains("! "), "nothing crashed:\n{}", done.stdout);
    println!(
        "{n} reloads: {} KB and {} descriptors after 50, {} KB and {} at the end",
        early.0, early.1, late.0, late.1
    );
    assert!(late.0 < early.0 * 3 / 2, "memory grew: {early:?} -> {late:?}");
    assert!(late.1 <= early.1 + 2, "descriptors grew: {early:?} -> {late:?}");
    assert_eq!(fs::read_dir(home.atomic_home().join("run")).unwrap().count(), 0);
    let left = fs::read_dir(home.path("tmp")).unwrap().count();
    assert_eq!(left, 0, "temporary files");
}

#[test]
fn the_budget_of_what_is_left_behind_is_a_setting() {
    let home = Home::new();
    settings(&home, r#"{"engine": {"maxLeftLibraries": 2}}"#);
    install_version(&home, 0);
    let mut run = home.atomic(["--offline", "--mode", "lines"]).start();
    run.wait_for("the start", |l| l.contains("1 extension"));
    for i in 1..=3 {
        install_version(&home, i);
        run.say("/reload");
        run.wait_for("a reload", |l| l.contains(&format!("-> 1.0.{i}")));
    }
    run.wait_for("the reason", |l| l.contains("3 replaced libraries are still mapped"));
    run.wait_for("the successor", |l| l.contains("(the engine was replaced)"));
    run.close_stdin();
    run.finish().ok();
}

#[test]
fn hundreds_of_reloads_of_unchanged_code_leave_nothing() {
    let n = if rounds(1000) == 1000 { 1000 } else { 100 };
    let home = Home::new();
    install_version(&home, 0);
    let mut run = home.atomic(["--offline", "--mode", "lines"]).start();
    run.wait_for("the start", |l| l.contains("1 extension"));
    let engine = children(run.id());
    let mut at = 0;
    let mut early = (0, 0);
    for i in 1..=n {
        run.say("/reload");
        at = run.wait_after(at, "a reload", |l| l.contains("reload: golden")).0 + 1;
        if i == 50 {
            early = pair(&run);
        }
    }
    let late = pair(&run);
    assert_eq!(children(run.id()), engine, "the same engine");
    run.close_stdin();
    run.finish().ok();
    assert!(late.0 < early.0 * 5 / 4, "memory grew: {early:?} -> {late:?}");
    assert!(late.1 <= early.1 + 1, "descriptors grew: {early:?} -> {late:?}");
}

#[test]
fn an_engine_that_is_replaced_keeps_what_the_user_had_set() {
    let home = Home::new();
    let out = misbehaving(&home, "leaker", "leak-thread");
    let script = home.script(&json!([text("one"), text("two")]));
    let mut run = home.atomic(["--mode", "lines", "--script", script.to_str().unwrap()]).start();
    run.wait_for("the start", |l| l.contains("1 extension"));
    run.say("first");
    run.wait_for("the first answer", |l| l.contains("one"));
    let engine = children(run.id());
    // The old life's thread stays: one is one too many.
    run.say("/reload");
    run.wait_for("the reason", |l| l.contains("The engine is replaced") && l.contains("leaker"));
    run.wait_for("the successor", |l| l.contains("(the engine was replaced)"));
    assert_ne!(children(run.id()), engine);
    run.say("second");
    run.wait_for("an answer", |l| l.contains("two"));
    run.close_stdin();
    run.finish().ok();
    let heard = lines(&out);
    assert!(heard.contains(&"session_shutdown reload".to_owned()), "{heard:#?}");
    assert_eq!(heard.iter().filter(|l| *l == "session_shutdown quit").count(), 1, "{heard:#?}");
    assert_eq!(home.sessions().len(), 1);
}

#[test]
fn an_engine_that_is_lost_after_a_switch_goes_on_with_the_session_that_was_open() {
    let home = Home::new();
    home.atomic(["-p", "--offline", "said in the other"]).run().ok();
    let other = home.sessions()[0].clone();
    // The command line names a session too: that was for the first engine.
    home.atomic(["-p", "--offline", "--session-id", "named", "said in the named"]).run().ok();
    let mut run = home.atomic(["--offline", "--mode", "lines", "--session", "named"]).start();
    run.say(&format!("/resume {}", other.display()));
    let id = other.file_stem().unwrap().to_string_lossy().rsplit('_').next().unwrap().to_owned();
    run.wait_for("the switch", |l| l.contains(&format!("· session {id}")));
    kill_process(pid(engine_of(&run)), Signal::KILL).unwrap();
    run.wait_for("the next engine", |l| l.contains("the session goes on"));
    run.say("after the loss");
    run.wait_for("the answer", |l| l.contains("You said: after the loss"));
    run.close_stdin();
    run.finish().ok();
    assert!(fs::read_to_string(&other).unwrap().contains("after the loss"));
    let named = home.sessions().into_iter().find(|f| f.to_string_lossy().ends_with("_named.jsonl")).unwrap();
    assert!(!fs::read_to_string(named).unwrap().contains("after the loss"));
}

#[test]
fn a_script_goes_on_where_it_was_when_another_engine_takes_over() {
    let home = Home::new();
    let script = home.script(&json!([text("the first answer"), text("the second answer")]));
    let mut run = home.atomic(["--mode", "lines", "--script", script.to_str().unwrap()]).start();
    run.say("hi");
    run.wait_for("the first", |l| l.contains("the first answer"));
    kill_process(pid(engine_of(&run)), Signal::KILL).unwrap();
    run.wait_for("another engine", |l| l.contains("the session goes on"));
    run.say("and");
    run.wait_for("the second", |l| l.contains("the second answer"));
    run.close_stdin();
    let done = run.finish().ok();
    assert_eq!(done.stdout.matches("the first answer").count(), 1, "{}", done.stdout);
}
