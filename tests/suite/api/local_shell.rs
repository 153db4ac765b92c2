//! What the host's tools lend to extensions: the local shell, a file's turn, cutting text.

use super::{install, noticed, says};
use atomic_agent::{event::Event, message::Message, op::Op};
use atomic_tests::{env::Home, live::Setup};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn the_local_shell_tells_its_output_as_it_comes_and_how_it_ended() {
    let home = Home::new();
    install(&home, "local_shell");
    let live = Setup::new(&home).start().await;
    // It waits for a file that is only made once its first words were heard.
    let mark = live.mark();
    let command = "/sh echo first $WHO; while ! [ -e go ]; do sleep 0.02; done; echo second >&2; exit 3";
    let said = live.say(command);
    let make = async {
        noticed(&live, mark, "its first words", |m| m == "heard first an extension\n").await;
        std::fs::write(home.cwd().join("go"), "").unwrap();
    };
    let (said, ()) = tokio::join!(said, make);
    said.unwrap();
    noticed(&live, mark, "its last words", |m| m == "heard second\n").await;
    noticed(&live, mark, "its end", |m| m == "ended Some(3), timed out false, all heard true").await;
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_its_time_limit_and_when_nobody_waits_it_is_killed_with_all_it_started() {
    let home = Home::new();
    install(&home, "local_shell");
    let live = Setup::new(&home).start().await;
    assert_eq!(says(&live, "/hurry sleep 600 & echo $! > one; wait").await, "hurried true");
    let mark = live.mark();
    let stopped = live.say("/sh sleep 600 & echo $! > two; echo there; wait");
    let abort = async {
        noticed(&live, mark, "the command", |m| m == "heard there\n").await;
        live.engine.request(Op::Abort).await.unwrap();
    };
    let _ = tokio::join!(stopped, abort);
    for file in ["one", "two"] {
        let pid: i32 = std::fs::read_to_string(home.cwd().join(file)).unwrap().trim().parse().unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        while rustix::process::test_kill_process(pid).is_ok() {
            tokio::task::yield_now().await;
        }
    }
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_changed_by_one_at_a_time_whoever_it_is() {
    let home = Home::new();
    install(&home, "local_shell");
    let write = json!({"toolCalls": [{"name": "edit", "arguments": {"path": "list.txt", "edits": [{"oldText": "start", "newText": "begun"}]}}]});
    let live = Setup::new(&home).turns(json!([write, {"text": "done"}])).start().await;
    std::fs::write(home.cwd().join("list.txt"), "start\n").unwrap();
    let append = async |n| live.say(&format!("/append {n}")).await;
    let appends = futures_util::future::join_all((0..4).map(append));
    let (appended, ()) = tokio::join!(appends, live.run("go"));
    assert!(appended.into_iter().all(|a| a.is_ok()));
    let text = std::fs::read_to_string(home.cwd().join("list.txt")).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.remove(0), "begun", "{text}");
    lines.sort_unstable();
    assert_eq!(lines, ["0", "1", "2", "3"], "nobody's change was lost");
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn text_is_cut_as_a_tools_result_is() {
    let home = Home::new();
    install(&home, "local_shell");
    let live = Setup::new(&home).start().await;
    assert_eq!(says(&live, "/cut a b c d").await, r#""a\nb" … "c\nd" of 4"#);
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_of_the_user_runs_in_the_local_shell_with_something_around_it() {
    let home = Home::new();
    install(&home, "local_shell");
    let live = Setup::new(&home).start().await;
    live.engine
        .request(Op::UserBash { command: "echo mine; exit 4".into(), exclude_from_context: false })
        .await
        .unwrap();
    let event = live.wait("its end", |e| matches!(e, Event::BashExecuted { .. })).await;
    let Event::BashExecuted { message } = &*event else { unreachable!() };
    let Message::BashExecution(done) = &**message else { panic!("{message:?}") };
    assert_eq!((done.output.trim(), done.exit_code), ("before\nmine", Some(4)));
    live.close().await;
}
