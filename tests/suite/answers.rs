//! Answers of extensions that cannot be used as they are, and what extensions ask of the host.

use atomic_tests::{
    env::Home,
    live::{Setup, bash, line, lines, text},
    patch::misbehaving,
};
use serde_json::json;

/// A block that nobody knows would be read as nothing: such an answer is ignored as a whole.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_with_content_of_an_unknown_type_changes_nothing_and_is_named() {
    for (event, answer, why) in [
        ("tool_result", r#"{"content":[{"type":"zork"}],"isError":true}"#, "unknown type, \"zork\""),
        (
            "message_end",
            r#"{"message":{"role":"assistant","content":[{"type":"zork"}]}}"#,
            "unknown type, \"zork\"",
        ),
        ("message_end", r#"{"message":{"role":"assistant","content":7}}"#, "no message of role"),
    ] {
        let home = Home::new();
        misbehaving(&home, "zorker", &format!("answer:{event}={answer}"));
        let live = Setup::new(&home).turns(json!([bash("echo real"), text("done")])).start().await;
        live.run("go").await;
        assert_eq!(live.tool_results(), [("bash".to_owned(), "real".to_owned(), false)], "{event}");
        let last = live.engine.view(|v| v.entries.last().map(|e| e.raw())).unwrap();
        assert_eq!(atomic_tests::session::text(&last["message"]), "done", "{event}");
        let named = live.faults().iter().filter(|(e, error)| e == event && error.contains(why)).count();
        assert!(named > 0, "{event}: {:?}", live.faults());
        live.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_error_of_a_command_names_the_extension_it_is_of() {
    let home = Home::new();
    misbehaving(&home, "a-shell", "shell");
    let live = Setup::new(&home).start().await;
    live.say("/static-client no-port").await.unwrap();
    let faults = live.faults();
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert_eq!(faults[0].0, "command");
    assert!(faults[0].1.starts_with("a-shell: "), "{faults:?}");
    live.close().await;
}

/// `exec` is over when the command is; what it left in the background may keep the pipes.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_leaves_a_child_behind_is_over_when_it_has_ended_itself() {
    let home = Home::new();
    let out = misbehaving(&home, "a", "shell");
    let live = Setup::new(&home).start().await;
    live.say("/shell sleep 30 & echo hi; echo $! > bg; exit 3").await.unwrap();
    let said = line(&out, "its end", |l| l.starts_with("shell 3")).await;
    assert_eq!(said, "shell 3 hi");
    let child: i32 = std::fs::read_to_string(home.cwd().join("bg")).unwrap().trim().parse().unwrap();
    let child = rustix::process::Pid::from_raw(child).unwrap();
    rustix::process::kill_process(child, rustix::process::Signal::KILL).expect("what it left goes on");
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_runs_ends_with_the_generation_that_asked_for_it() {
    let home = Home::new();
    let out = misbehaving(&home, "a", "shell");
    let live = Setup::new(&home).start().await;
    let shell = live.say("/shell echo $$ > pid; exec sleep 600");
    let reload = async {
        line(&out, "its begin", |l| l == "shell begins").await;
        let pid = home.cwd().join("pid");
        line(&pid, "its process", |l| l.parse::<i32>().is_ok()).await;
        live.replace().await;
        let pid: i32 = lines(&pid)[0].parse().unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        while rustix::process::test_kill_process(pid).is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let (shell, ()) = atomic_tests::live::patient("both", async { tokio::join!(shell, reload) }).await;
    assert!(!lines(&out).iter().any(|l| l.starts_with("shell 0")), "{shell:?} {:?}", lines(&out));
    live.close().await;
}
