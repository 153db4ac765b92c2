//! Compactions that nobody asked for: near the threshold, between tools and the next request,
//! and when the model has refused a request as too long.

use super::*;
use atomic_tests::patch::misbehaving;

/// The threshold is 3,616 tokens.
const SMALL: u64 = 20_000;

fn bash() -> Answer {
    Answer::calls([("bash", json!({"command": "echo one"}))])
}

/// The kinds of what is told of runs and compactions.
fn chain(events: &[Value]) -> Vec<String> {
    let kinds = ["agent_start", "agent_end", "agent_settled", "compaction_start", "compaction_end"];
    let name = |e: &Value| e["type"].as_str().unwrap().to_owned();
    events.iter().map(name).filter(|n| kinds.contains(&n.as_str())).collect()
}

const PLAIN: [&str; 3] = ["agent_start", "agent_end", "agent_settled"];

#[test]
fn after_a_run_that_came_near_the_limit_the_context_is_compacted_before_the_run_settles() {
    let answers = [
        Answer::text(&many("first", 31)),
        Answer::text(&many("second", 31)).counted(5_000),
        plan("3,20\n"),
        Answer::text("here"),
    ];
    let server = ModelServer::start(answers);
    let home = home(&server, SMALL);
    let (run, events) = said(&home, &["one", "two", "three"]);
    run.ok();
    server.assert_finished();
    let expected = [
        &PLAIN[..],
        &["agent_start", "agent_end", "compaction_start", "compaction_end", "agent_settled"],
        &PLAIN,
    ]
    .concat();
    assert_eq!(chain(&events), expected);
    assert_eq!(
        *of(&events, "compaction_start")[0],
        json!({"type": "compaction_start", "reason": "threshold"})
    );
    let end = of(&events, "compaction_end")[0];
    assert_eq!((&end["aborted"], &end["willRetry"]), (&json!(false), &json!(false)));
    assert_eq!(end["result"]["stats"]["linesDeleted"], 18);
    assert_eq!(end["result"]["tokensBefore"], 5_020);
    let appended = of(&events, "entry_appended");
    assert!(appended.iter().any(|e| e["entry"]["type"] == "compaction"), "{appended:?}");
    let file = the_session(&home);
    let backup = compactions(&file)[0]["details"]["backupPath"].as_str().unwrap().to_owned();
    assert!(backup.ends_with(".auto-compact.bak"), "{backup}");
}

#[test]
fn an_answer_that_is_printed_waits_for_no_planner_and_the_next_start_finds_the_session_as_large() {
    let server = ModelServer::start([
        Answer::text(&many("first", 31)),
        Answer::text(&many("second", 31)).counted(5_000),
        plan("3,20\n"),
        Answer::text("here"),
    ]);
    let home = home(&server, SMALL);
    let print = |args: &[&str]| home.atomic(["-p", "--model", "fake-openai/fake"]).args(args).run().ok();
    print(&["one", "two"]);
    assert_eq!(server.requests().len(), 2, "nobody plans behind the last answer");
    assert_eq!(print(&["-c", "three"]).stdout, "here\n");
    server.assert_finished();
    assert_eq!(compactions(&the_session(&home)).len(), 1);
}

#[test]
fn a_prompt_that_would_not_fit_finds_a_shorter_context() {
    let server = two_long([plan("3,20\n"), Answer::text("here")]);
    let home = home(&server, SMALL);
    let long = "x".repeat(14_000);
    let (run, events) = said(&home, &["one", "two", &long]);
    run.ok();
    server.assert_finished();
    let expected = [&PLAIN[..], &PLAIN, &["compaction_start", "compaction_end"], &PLAIN].concat();
    assert_eq!(chain(&events), expected, "before the run begins");
    assert!(is_planner(&server.requests()[2]));
}

#[test]
fn switched_off_nothing_happens_by_itself_and_asking_still_works() {
    let server = ModelServer::start([
        Answer::text(&many("first", 31)).counted(50_000),
        Answer::text(&many("second", 31)).counted(50_000),
        plan("1,9\n"),
    ]);
    let home = home(&server, SMALL);
    settings(&home, json!({"compaction": {"enabled": false}}));
    typed(&home, &["one", "two", "/compact"]);
    server.assert_finished();
    assert_eq!(compactions(&the_session(&home)).len(), 1);
}

/// A run whose tool's result brings the context over the threshold.
fn mid_turn(then: impl IntoIterator<Item = Answer>) -> ModelServer {
    let answers = [Answer::text(&many("first", 31)), bash().counted(5_000)];
    ModelServer::start(answers.into_iter().chain(then))
}

#[test]
fn between_tools_and_the_next_request_the_same_run_goes_on_with_what_is_left() {
    let server = mid_turn([plan("3,20\n"), Answer::text("done")]);
    let home = home(&server, SMALL);
    let (run, events) = said(&home, &["one", "two"]);
    run.ok();
    server.assert_finished();
    let expected =
        [&PLAIN[..], &["agent_start", "compaction_start", "compaction_end", "agent_end", "agent_settled"]]
            .concat();
    assert_eq!(chain(&events), expected, "no new agent_start");
    assert_eq!(of(&events, "compaction_start")[0]["midTurn"], true);
    let end = events.iter().position(|e| e["type"] == "turn_end" && !e["toolResults"][0].is_null()).unwrap();
    let start = events.iter().position(|e| e["type"] == "compaction_start").unwrap();
    assert!(end < start, "the turn ends first");
    let sent = server.requests()[3].body["messages"].clone();
    let roles: Vec<&str> = sent.as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user"], "calls and results are text by now");
    let text = session::text(&sent[1]);
    assert!(
        text.ends_with("[Assistant tool calls]: bash(command=\"echo one\")\n\n[Tool result]: one"),
        "{text}"
    );
}

#[test]
fn a_planner_that_fails_everywhere_costs_the_region_and_not_the_run() {
    let server = mid_turn([Answer::status(500), Answer::text("done")]);
    let home = home(&server, SMALL);
    settings(&home, json!({"retry": {"maxRetries": 0}}));
    let (run, events) = said(&home, &["one", "two"]);
    run.ok();
    server.assert_finished();
    let result = &of(&events, "compaction_end")[0]["result"];
    assert_eq!((&result["rung"], &result["compactedText"]), (&json!("fresh"), &json!("(filtered 35 lines)")));
    assert!(result["firstKeptEntryId"].is_string(), "the tail fits");
    assert_eq!(of(&events, "agent_start").len(), 2);
}

#[test]
fn a_planner_that_fails_by_chance_is_asked_again_and_that_is_told() {
    let server = mid_turn([Answer::status(503), plan("3,20\n"), Answer::text("done")]);
    let home = home(&server, SMALL);
    settings(&home, json!({"retry": {"baseDelayMs": 1}}));
    let (run, events) = said(&home, &["one", "two"]);
    run.ok();
    server.assert_finished();
    let scheduled = of(&events, "summarization_retry_scheduled")[0];
    assert_eq!(
        (&scheduled["attempt"], &scheduled["maxAttempts"], &scheduled["delayMs"]),
        (&json!(1), &json!(3), &json!(1))
    );
    let again = of(&events, "summarization_retry_attempt_start")[0];
    assert_eq!(
        *again,
        json!({"type": "summarization_retry_attempt_start", "source": "compaction", "reason": "threshold"})
    );
    assert_eq!(of(&events, "summarization_retry_finished").len(), 1);
    assert_eq!(of(&events, "compaction_end")[0]["result"]["rung"], "planned");
}

#[test]
fn a_compaction_that_is_refused_between_tools_ends_the_run_and_says_so() {
    for (answer, why) in [
        (json!({"cancel": true}), "it was cancelled"),
        (json!({"compactedText": ""}), "No compacted text provided by extension"),
    ] {
        let server = mid_turn([]);
        let home = home(&server, SMALL);
        misbehaving(&home, "x", &format!("replies:session_before_compact={answer}"));
        let (run, events) = said(&home, &["one", "two"]);
        run.exit(1);
        server.assert_finished();
        let said = format!("Post-tool context compaction failed before the next provider request: {why}");
        let ends = of(&events, "agent_end");
        let last = ends[1]["messages"].as_array().unwrap().last().unwrap();
        assert_eq!((&last["stopReason"], &last["errorMessage"]), (&json!("error"), &json!(said)));
        the_session(&home).assert_paired();
    }
}

#[test]
fn nothing_to_compact_is_no_reason_to_stop() {
    // The first prompt of all: its region is empty.
    let server = ModelServer::start([bash().counted(5_000), Answer::text("done")]);
    let home = home(&server, SMALL);
    settings(&home, json!({"compaction": {"preserve_recent": 9}}));
    let (run, events) = said(&home, &["one"]);
    run.ok();
    assert!(of(&events, "compaction_start").is_empty());
}

fn too_long() -> Answer {
    Answer::status_with(400, r#"{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#)
}

#[test]
fn a_request_that_was_too_long_is_made_again_with_less() {
    let server = two_long([too_long(), plan("3,20\n"), Answer::text("here")]);
    let home = home(&server, WINDOW);
    let (run, events) = said(&home, &["one", "two", "three"]);
    run.ok();
    server.assert_finished();
    let again = ["agent_start", "agent_end", "compaction_start", "compaction_end"];
    let expected = [&PLAIN[..], &PLAIN, &again, &PLAIN].concat();
    assert_eq!(chain(&events), expected);
    assert_eq!(of(&events, "agent_end")[2]["willRetry"], true);
    let end = of(&events, "compaction_end")[0];
    assert_eq!((&end["reason"], &end["willRetry"]), (&json!("overflow"), &json!(true)));
    let sent = server.requests()[4].body["messages"].clone();
    assert!(session::text(&sent[1]).ends_with("[User]: three"), "the question is asked: {sent}");
    let file = the_session(&home);
    let backup = compactions(&file)[0]["details"]["backupPath"].as_str().unwrap().to_owned();
    assert!(backup.ends_with(".overflow-auto-compact.bak"), "{backup}");
}

#[test]
fn b61_a_second_overflow_is_told_and_ends_it_and_a_rate_limit_compacts_nothing() {
    let server = two_long([too_long(), plan("3,20\n"), too_long()]);
    let home = home(&server, WINDOW);
    let (run, events) = said(&home, &["one", "two", "three"]);
    run.exit(1);
    server.assert_finished();
    let ends = of(&events, "compaction_end");
    assert_eq!((ends.len(), &ends[1]["unresolvedOverflow"]), (2, &json!(true)));
    assert_eq!(ends[1]["willRetry"], false);
    assert!(ends[1]["errorMessage"].as_str().unwrap().contains("prompt is too long"), "{}", ends[1]);
    assert_eq!(compactions(&the_session(&home)).len(), 1);

    let server = two_long([Answer::status(429), Answer::text("here")]);
    let home = self::home(&server, WINDOW);
    settings(&home, json!({"retry": {"baseDelayMs": 1}}));
    let (run, events) = said(&home, &["one", "two", "three"]);
    run.ok();
    server.assert_finished();
    assert_eq!(of(&events, "auto_retry_start").len(), 1);
    assert!(of(&events, "compaction_start").is_empty());
}

#[test]
fn b61_a_planner_that_fails_at_the_threshold_leaves_the_transcript_and_is_told() {
    let answers = [
        Answer::text(&many("first", 31)),
        Answer::text(&many("second", 31)).counted(5_000),
        // Once: nothing has happened when the next prompt comes.
        plan("none"),
        Answer::text("here"),
    ];
    let server = ModelServer::start(answers);
    let home = home(&server, SMALL);
    let out = misbehaving(&home, "x", "replies:session_compact_failed=null");
    let (run, events) = said(&home, &["one", "two", "three"]);
    run.ok();
    server.assert_finished();
    let end = of(&events, "compaction_end")[0];
    assert!(end["errorMessage"].as_str().unwrap().contains("is no range"), "{end}");
    let told = std::fs::read_to_string(out).unwrap();
    assert!(
        told.contains(r#""reason":"threshold","aborted":false,"willRetry":false,"fromExtension":false"#),
        "{told}"
    );
    let sent = server.requests()[3].body["messages"].as_array().unwrap().len();
    assert_eq!(sent, 6, "the next request is what it would have been");
    assert!(compactions(&the_session(&home)).is_empty());
}
