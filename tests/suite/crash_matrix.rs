//! Ten ways for native code to take its process down, in four places each, under the supervisor:
//! the culprit is named, the session is whole, the next prompt is answered. And the same crash in
//! print mode: one line, exit 70.
//!
//! `cargo test -p atomic-tests --test all crash_matrix -- --nocapture` prints the table.

use atomic_tests::{
    env::{Home, Program},
    patch::misbehaving,
    session,
};
use rustix::process::{Pid, Signal, kill_process};

const FAULTS: [&str; 10] = [
    "null",
    "abort",
    "stack",
    "thread-stack",
    "loop",
    "exit",
    "double-free",
    "background",
    "kill",
    "illegal",
];
const PLACES: [&str; 4] = ["drop", "tool", "handler", "init"];

fn ctrl_c(program: &Program) {
    kill_process(Pid::from_raw(program.id().cast_signed()).unwrap(), Signal::INT).unwrap();
}

/// Twice, the second one when the first has had its time.
fn ctrl_c_twice(program: &Program) {
    ctrl_c(program);
    program.wait_for("the first Ctrl+C", |l| l.contains("(aborting)"));
    std::thread::sleep(std::time::Duration::from_millis(600));
    ctrl_c(program);
}

/// What the user sees of it, in one line.
fn cell(fault: &str, place: &str) -> String {
    let home = Home::new();
    let out = misbehaving(&home, "crasher", &format!("crash:{fault}-at-{place}"));
    let mut run = home.atomic(["--offline", "--mode", "lines"]).start();
    let mut users = Vec::new();
    if place != "init" {
        run.wait_for("the start", |l| l.contains("1 extension"));
    }
    match place {
        "handler" => run.say("first"),
        "tool" => run.say("call crash_tool {}"),
        "drop" => {
            run.say("first");
            run.wait_for("the first answer", |l| l.contains("You said: first"));
            run.say("/reload");
        }
        _ => {}
    }
    match (fault, place) {
        ("loop", "init" | "handler") => {
            if place == "handler" {
                run.wait_for("the one who holds it", |l| {
                    l.contains("crasher has held the engine in agent_start")
                });
            } else {
                atomic_tests::live::wait_for_file(&out, "loop in init");
            }
            ctrl_c_twice(&run);
        }
        ("loop", "tool") => {
            atomic_tests::live::wait_for_file(&out, "loop in tool");
            ctrl_c(&run);
        }
        _ => {}
    }
    let told = run.wait_for("the culprit's name", |l| {
        l.contains("crasher") && !l.contains("has held") && !l.contains("unchanged") && !l.contains("reload:")
    });
    match place {
        "handler" | "drop" => users.push("first"),
        "tool" => users.push("call crash_tool {}"),
        _ => {}
    }
    run.say("next");
    users.push("next");
    run.wait_for("the next answer", |l| l.contains("You said: next"));
    run.close_stdin();
    let done = run.finish().ok();
    // Loaded again by nobody: the session is there, and opens in another program.
    let last = home.atomic(["--offline", "--no-extensions", "-c", "-p", "last"]).run().ok();
    assert!(last.stdout.starts_with("You said: last\n"), "{}", last.stdout);
    let files = home.sessions();
    assert_eq!(files.len(), 1, "{fault} in {place}: one session\n{}", done.stdout);
    users.push("last");
    let session = session::read(&files[0]);
    let said: Vec<String> = session.of_role("user").iter().map(|m| session::text(m)).collect();
    // What was typed and not delivered is given back, never lost.
    for text in users {
        let back = done.stdout.contains(&format!("not delivered: {text}"));
        assert!(
            back || said.iter().any(|s| s == text),
            "{fault} in {place}: {text}\n{said:?}\n{}",
            done.stdout
        );
    }
    let left: Vec<_> = std::fs::read_dir(home.atomic_home().join("run")).unwrap().collect();
    assert!(left.is_empty(), "{fault} in {place}: {left:?}");
    told
}

#[test]
fn crash_matrix() {
    let mut rows = Vec::new();
    for place in PLACES {
        for fault in FAULTS {
            let at = std::time::Instant::now();
            let told = cell(fault, place);
            println!("{fault:<14}{place:<9}{:>6.1} s  {told}", at.elapsed().as_secs_f32());
            rows.push((fault, place, told));
        }
    }
    println!("{:<14}{:<9}what the user read", "fault", "place");
    for (fault, place, told) in &rows {
        println!("{fault:<14}{place:<9}{told}");
    }
    assert_eq!(rows.len(), FAULTS.len() * PLACES.len());
}
