//! `/compact`, and `ctx.compact()`.

use super::*;
use atomic_agent::{event::Event, op::Op};
use atomic_tests::{
    events,
    libs::first_party,
    live::{Setup, text},
    patch::misbehaving,
};
use std::fs;

#[test]
fn lines_go_the_numbers_add_up_and_the_next_request_has_what_is_left() {
    let server = two_long([plan("1,2\n10,20\n"), Answer::text("here")]);
    let home = home(&server, WINDOW);
    let run = typed(&home, &["one", "two", "/compact the  parser", "go on"]);
    server.assert_finished();
    let requests = server.requests();

    let asked = &requests[2];
    assert!(is_planner(asked) && asked.tools().is_empty(), "{:?}", asked.body);
    let text = asked.last_user_text();
    assert!(text.contains("Lines to keep, about: 17 of 33\n"), "{text}");
    assert!(text.contains("<query>\nthe  parser\n</query>"), "{text}");
    assert_eq!(numbered(asked)[..3], ["1→[User]: one", "2→", "3→[Assistant]: first 1"]);

    let file = the_session(&home);
    let [entry] = compactions(&file)[..] else { panic!("{:?}", file.entries) };
    let summary = entry["summary"].as_str().unwrap();
    let expected = format!(
        "(filtered 2 lines)\n[Assistant]: first 1\n{}\n(filtered 11 lines)\n{}",
        (2..=7).map(|n| format!("first {n}")).collect::<Vec<_>>().join("\n"),
        (19..=31).map(|n| format!("first {n}")).collect::<Vec<_>>().join("\n"),
    );
    assert_eq!(summary, expected);
    assert_eq!(weight(summary), 33);
    let details = &entry["details"];
    assert_eq!(details["strategy"], "verbatim-lines");
    assert_eq!((&details["rung"], &details["promptVersion"]), (&json!("planned"), &json!(4)));
    assert_eq!(details["plannerModel"], "fake-openai/fake");
    let stats = &details["stats"];
    assert_eq!((&stats["linesBefore"], &stats["linesDeleted"]), (&json!(33), &json!(13)));
    assert_eq!((&stats["linesKept"], &stats["rangeCount"]), (&json!(20), &json!(2)));
    assert_eq!(entry["usage"]["totalTokens"], 120, "what the planner cost");
    let kept = file.entries.iter().find(|e| e["id"] == entry["firstKeptEntryId"]).unwrap();
    assert_eq!(session::text(&kept["message"]), "two");

    // The tail is text too; what is said now is a message of its own.
    let messages = requests[3].body["messages"].as_array().unwrap();
    let roles: Vec<&str> = messages.iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "user"]);
    let sent = session::text(&messages[1]);
    assert!(
        sent.contains(&format!("{summary}\n\n[User]: two\n\n[Assistant]: second 1\nsecond 2\n")),
        "{sent}"
    );

    // A copy from before it.
    let backup = details["backupPath"].as_str().unwrap();
    assert!(backup.ends_with(".compact.bak"), "{backup}");
    let (copy, now) = (fs::read_to_string(backup).unwrap(), fs::read_to_string(&home.sessions()[0]).unwrap());
    assert!(now.starts_with(&copy) && !copy.contains("verbatim-lines"));
    assert!(run.stdout.contains("compacted: 13 of 33 lines went"), "{}", run.stdout);
}

#[test]
fn a_second_compaction_goes_on_from_what_the_first_left_and_old_markers_count() {
    let server =
        two_long([plan("4,30\n"), Answer::text(&many("third", 31)), plan("2,2\n"), Answer::text("ok")]);
    let home = home(&server, WINDOW);
    typed(&home, &["one", "two", "/compact", "three", "/compact", "four"]);
    server.assert_finished();
    let asked = numbered(&server.requests()[4]);
    assert_eq!(asked[3], "4→(filtered 27 lines)");
    assert_eq!(asked[7], "8→[User]: two", "one line break, no blank line, behind the summary: {asked:?}");
    let file = the_session(&home);
    let summaries: Vec<&str> = compactions(&file).iter().map(|e| e["summary"].as_str().unwrap()).collect();
    // Line 3 is kept, so the old marker is beside nothing that goes.
    assert!(
        summaries[1]
            .starts_with("[User]: one\n(filtered 1 lines)\n[Assistant]: first 1\n(filtered 27 lines)\n")
    );
    assert_eq!(weight(summaries[1]), 33 + 33);
}

#[test]
fn a_session_that_is_too_small_and_an_empty_one_are_said_to_be_and_nothing_is_written() {
    let server = ModelServer::start([Answer::text("hello")]);
    let home = home(&server, WINDOW);
    let run = typed(&home, &["/compact", "hi", "/compact"]);
    server.assert_finished();
    assert_eq!(run.stdout.matches("Nothing to compact (session too small)").count(), 2, "{}", run.stdout);
    assert!(compactions(&the_session(&home)).is_empty());
}

#[test]
fn a_planner_that_answers_prose_is_replaced_by_the_next_and_a_broken_reply_counts_for_nothing() {
    let server = two_long([plan("Sure! Delete 1,5"), plan("3,9\n\n10,12\n"), Answer::text("here")]);
    let home = home(&server, WINDOW);
    settings(&home, json!({"modelFallbacks": ["fake-openai/fake", "fake-anthropic/fake"]}));
    let run = typed(&home, &["one", "two", "/compact", "go on"]);
    server.assert_finished();
    assert!(
        run.stdout.contains("not compacted: fake-anthropic/fake: line 2 of the planner's answer"),
        "{}",
        run.stdout
    );
    assert!(compactions(&the_session(&home)).is_empty());
    // The model of the session once, then the other format; then the conversation as it was.
    let formats: Vec<_> = server.requests().iter().map(|r| r.format.unwrap()).collect();
    use atomic_tests::model_server::Format::{Anthropic, OpenAi};
    assert_eq!(formats, [OpenAi, OpenAi, OpenAi, Anthropic, OpenAi]);
    assert_eq!(server.requests()[4].body["messages"].as_array().unwrap().len(), 6);
}

#[test]
fn the_planner_may_be_another_model() {
    let server = two_long([plan("1,9\n")]);
    let home = home(&server, WINDOW);
    settings(
        &home,
        json!({"compactionModel": "fake-anthropic/fake", "compaction": {"compression_ratio": 0.25}}),
    );
    typed(&home, &["one", "two", "/compact"]);
    server.assert_finished();
    let asked = &server.requests()[2];
    assert_eq!(asked.format, Some(atomic_tests::model_server::Format::Anthropic));
    assert!(asked.last_user_text().contains("about: 8 of 33"), "{}", asked.last_user_text());
    assert_eq!(compactions(&the_session(&home))[0]["details"]["plannerModel"], "fake-anthropic/fake");
}

#[test]
fn of_an_answer_that_ran_into_the_output_limit_whole_lines_count() {
    let server = two_long([plan("3,9\n12,2").stop("length")]);
    let home = home(&server, WINDOW);
    typed(&home, &["one", "two", "/compact"]);
    let file = the_session(&home);
    assert_eq!(compactions(&file)[0]["details"]["stats"]["linesDeleted"], 7);
}

#[test]
fn of_a_region_that_is_more_than_the_planner_takes_the_oldest_half_goes_unseen() {
    let too_long = Answer::status_with(400, r#"{"error":{"message":"prompt is too long: 300000 tokens"}}"#);
    let server = two_long([too_long, plan("20,20\n")]);
    let home = home(&server, WINDOW);
    typed(&home, &["one", "two", "/compact"]);
    server.assert_finished();
    let asked = numbered(&server.requests()[3]);
    assert_eq!((asked[0].as_str(), asked.len()), ("18→first 16", 16));
    let file = the_session(&home);
    let summary = compactions(&file)[0]["summary"].as_str().unwrap();
    assert!(
        summary.starts_with("(filtered 17 lines)\nfirst 16\nfirst 17\n(filtered 1 lines)\n"),
        "{summary}"
    );
    assert_eq!(weight(summary), 33);
}

#[test]
fn what_the_user_wants_kept_is_kept_whatever_the_planner_says() {
    let kept = format!("<keepContext>\n{}\n</keepContext>\nmore", many("rule", 3));
    let server = ModelServer::start([Answer::text(&many("a", 30)), Answer::text("b"), plan("1,40\n")]);
    let home = home(&server, WINDOW);
    // A message of several lines comes from the command line.
    let run = home.atomic(["--mode", "lines", "--model", "fake-openai/fake"]).arg(&kept);
    run.run_with("two\n/compact\n").ok();
    let asked = server.requests()[2].last_user_text();
    assert!(asked.contains("Never delete: 1-5\n"), "{asked}");
    let file = the_session(&home);
    let summary = compactions(&file)[0]["summary"].as_str().unwrap();
    assert_eq!(
        summary,
        format!("[User]: <keepContext>\n{}\n</keepContext>\n(filtered 32 lines)", many("rule", 3))
    );
}

#[test]
fn an_extension_asks_for_one_with_its_own_parameters() {
    let server = two_long([plan("1,9\n")]);
    let home = home(&server, WINDOW);
    home.install(&first_party("event-log"));
    misbehaving(&home, "x", "act");
    let log = home.path("events.log");
    let run = home.atomic(["--mode", "lines", "--model", "fake-openai/fake", "--event-log"]).arg(&log);
    run.run_with("one\ntwo\n/act compact the tests\n").ok();
    server.assert_finished();
    assert!(server.requests()[2].last_user_text().contains("<query>\nthe tests\n</query>"));
    let logged = events::read(&log);
    let of = |name: &str| logged.iter().find(|l| l.event == name).map(|l| l.payload.clone()).unwrap();
    let (before, after) = (of("session_before_compact"), of("session_compact"));
    assert_eq!(
        before["parameters"],
        json!({"compression_ratio": 0.25, "preserve_recent": 1, "query": "the tests"})
    );
    let preparation = &before["preparation"];
    assert_eq!(preparation["keptTailMessageCount"], 1);
    assert_eq!(preparation["region"]["headerLineNumbers"], json!([1, 3, 35]));
    assert_eq!(preparation["region"]["lines"].as_array().unwrap().len(), 35);
    assert_eq!(preparation["regionEntryIds"].as_array().unwrap().len(), 3);
    assert!(before["branchEntries"].as_array().unwrap().len() >= 4);
    assert_eq!(after["fromExtension"], false);
    assert_eq!(after["compactionEntry"]["firstKeptEntryId"], preparation["firstKeptEntryId"]);
    assert_eq!(after["result"]["rung"], "planned");
    let order: Vec<&str> =
        logged.iter().map(|l| l.event.as_str()).filter(|n| n.contains("compact")).collect();
    assert_eq!(order, ["compaction_start", "session_before_compact", "session_compact", "compaction_end"]);
}

#[test]
fn a_handlers_text_stands_for_the_region_without_a_planner() {
    let server = two_long([Answer::text("here")]);
    let home = home(&server, WINDOW);
    misbehaving(&home, "x", "compacts");
    let run = typed(&home, &["one", "two", "/compact", "go on"]);
    server.assert_finished();
    let file = the_session(&home);
    let entry = compactions(&file)[0];
    assert_eq!((&entry["summary"], &entry["fromHook"]), (&json!("[User]: one"), &json!(true)));
    assert_eq!(entry["details"]["rung"], "extension");
    assert_eq!(entry["details"]["stats"]["rangeCount"], 0);
    assert!(run.stdout.contains("an extension gave what is left"), "{}", run.stdout);
    let sent = session::text(&server.requests()[2].body["messages"][1]);
    assert!(sent.contains("[User]: one\n\n[User]: two\n\n[Assistant]: second 1"), "{sent}");
}

#[test]
fn a_handler_that_cancels_or_gives_blanks_leaves_everything_as_it_was() {
    for (answer, told) in [
        (json!({"cancel": true}), "not compacted: it was cancelled"),
        (json!({"compactedText": "\t\n"}), "not compacted: No compacted text provided by extension"),
        (json!({"compactedText": 7}), "not compacted: No compacted text provided by extension"),
    ] {
        let server = two_long([Answer::text("here")]);
        let home = home(&server, WINDOW);
        misbehaving(&home, "x", &format!("replies:session_before_compact={answer}"));
        let run = typed(&home, &["one", "two", "/compact", "go on"]);
        server.assert_finished();
        assert!(run.stdout.contains(told), "{answer}: {}", run.stdout);
        assert!(compactions(&the_session(&home)).is_empty());
        assert_eq!(server.requests()[2].body["messages"].as_array().unwrap().len(), 6, "{answer}");
        let dir = home.sessions()[0].parent().unwrap().to_owned();
        assert_eq!(fs::read_dir(dir).unwrap().count(), 1, "{answer}: a copy is left");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn b61_compact_three_times_in_a_row_is_one_compaction_and_all_three_have_its_result() {
    let home = Home::new();
    let long = |tag: &str| text(&many(tag, 31));
    let turns = json!([long("first"), long("second"), text("3,12\n"), text("4,4\n")]);
    let live = Setup::new(&home).turns(turns).start().await;
    live.run("one").await;
    live.run("two").await;
    let ask = || live.engine.request(Op::Compact { custom_instructions: None, options: Default::default() });
    let (a, b, c) = tokio::join!(ask(), ask(), ask());
    assert_eq!(a.as_ref().unwrap()["stats"]["linesDeleted"], 10);
    assert!(a == b && b == c, "{a:?} {b:?} {c:?}");
    let events = live.events();
    let started = events.iter().filter(|e| matches!(***e, Event::CompactionStart { .. })).count();
    assert_eq!(started, 1);
    assert_eq!(compactions(&the_session(&home)).len(), 1);
    live.close().await;
}

#[test]
fn offline_a_compaction_can_be_seen_without_a_network() {
    let home = Home::new();
    let lines = ["one", "two", "three", "four", "five", "six", "/compact", "seven"];
    let run = home.atomic(["--offline", "--mode", "lines"]).run_with(&format!("{}\n", lines.join("\n"))).ok();
    assert!(run.stdout.contains("· compacted: "), "{}", run.stdout);
    let file = the_session(&home);
    let entry = compactions(&file)[0];
    let stats = &entry["details"]["stats"];
    let (before, kept) = (stats["linesBefore"].as_u64().unwrap(), stats["linesKept"].as_u64().unwrap());
    assert_eq!(kept, before.div_ceil(2), "half of them, as the settings say");
    assert_eq!(weight(entry["summary"].as_str().unwrap()), before);
    for said in ["one", "two", "three", "four", "five"] {
        assert!(entry["summary"].as_str().unwrap().contains(&format!("[User]: {said}")), "{said}");
    }
}
