//! The full screen on a real terminal: what a person sees and types.

use atomic_tests::{
    env::Home,
    libs::first_party,
    live::{bash, text},
    patch::misbehaving,
    pty::Terminal,
};
use serde_json::{Value, json};

const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";
const ESCAPE: &str = "\u{1b}";
const DOWN: &str = "\u{1b}[B";

/// The program's own home is seen under a name that is the same each time.
fn start(home: &Home, args: &[&str]) -> Terminal {
    let terminal = Terminal::full(&home.atomic(args), 30, 90);
    terminal.wait_for("the start", |s| s.contains("· /help") && !s.contains("starting"));
    terminal
}

fn scripted(home: &Home, turns: &Value) -> Terminal {
    let script = home.script(turns).display().to_string();
    start(home, &["--script", &script])
}

/// Nobody answers a question in the moment it comes up; what is typed in one go is no answer.
fn read_it() {
    std::thread::sleep(std::time::Duration::from_millis(1200));
}

fn leave(mut terminal: Terminal) {
    terminal.keys(CTRL_D);
    assert_eq!(terminal.finish(), 0);
}

#[test]
fn an_answer_is_formatted_and_a_tool_shows_its_beginning() {
    let home = Home::new();
    let answer = "# Result\n\n- one\n- two\n\n```rust\nfn main() {}\n```";
    let mut terminal = scripted(&home, &json!([bash("seq 30"), text(answer)]));
    terminal.line("go");
    let screen = terminal.wait_for("the answer", |s| s.contains("fn main() {}") && !s.contains("working"));
    for part in
        ["› go", "● bash seq 30", "  8\n", "… 22 more lines (Ctrl+O shows them)", "\nResult\n", "• two"]
    {
        assert!(screen.contains(part), "{part:?} is missing:\n{screen}");
    }
    assert!(!screen.contains("```") && !screen.contains("\n  9\n"), "{screen}");
    terminal.keys("\u{f}");
    terminal.wait_for("the whole result", |s| s.contains("\n  30\n"));
    leave(terminal);
}

#[test]
fn what_is_typed_during_a_run_steers_it_and_escape_gives_it_back() {
    let home = Home::new();
    let mut terminal = scripted(&home, &json!([bash("sleep 600"), text("never"), text("I heard it")]));
    terminal.line("go");
    terminal.wait_for("the tool", |s| s.contains("bash sleep 600") && s.contains("Escape stops it"));
    terminal.line("turn left");
    terminal.wait_for("the queue", |s| s.contains("next: turn left"));
    terminal.keys(ESCAPE);
    let screen = terminal.wait_for("the end", |s| s.contains("> turn left") && !s.contains("next:"));
    assert!(screen.contains("aborting"), "{screen}");
    terminal.wait_for("rest", |s| s.contains("✗ bash sleep 600"));
    terminal.keys(CTRL_C);
    terminal.wait_for("an empty editor", |s| !s.contains("> turn left"));
    leave(terminal);
}

#[test]
fn a_question_stands_in_the_editors_place_and_only_yes_approves() {
    let home = Home::new();
    home.install(&first_party("permission-gate"));
    let call = bash("rm -rf nothing-here");
    let turns = json!([call, text("blocked"), call, text("ran")]);
    let mut terminal = scripted(&home, &turns);
    terminal.line("first");
    let asked = terminal.wait_for("the question", |s| s.contains("❯ No") && s.contains("rm -rf"));
    assert!(asked.contains("? permission-gate: "), "{asked}");
    read_it();
    terminal.keys("\r");
    terminal.wait_for("the block", |s| s.contains("✗ bash rm -rf") && s.contains("\nblocked\n"));
    terminal.line("second");
    terminal.wait_for("the question again", |s| s.contains("❯ No"));
    read_it();
    terminal.keys("y");
    terminal.wait_for("the run", |s| s.contains("● bash rm -rf") && s.contains("\nran\n"));
    leave(terminal);
}

#[test]
fn commands_are_offered_as_they_are_typed_and_explained() {
    let home = Home::new();
    let mut terminal = start(&home, &["--offline"]);
    terminal.keys("/relo");
    terminal.wait_for("the offer", |s| s.contains("❯ reload") && s.contains("take in changed extensions"));
    terminal.keys("\t");
    terminal.wait_for("the command", |s| s.contains("> /reload") && !s.contains("❯"));
    terminal.keys("\r");
    terminal.wait_for("the reload", |s| s.contains("reload: there are no extensions"));
    terminal.line("/help compact");
    terminal.wait_for("the explanation", |s| s.contains("/compact [WHAT MATTERS]"));
    terminal.line("/nope");
    terminal.wait_for("the refusal", |s| s.contains("there is no command /nope") && s.contains("> /nope"));
    leave_after_clearing(terminal);
}

fn leave_after_clearing(mut terminal: Terminal) {
    terminal.keys(CTRL_C);
    terminal.wait_for("an empty editor", |s| !s.contains("> /nope"));
    leave(terminal);
}

#[test]
fn files_are_offered_behind_an_at_sign() {
    let home = Home::new();
    home.write("project/src/deep/needle.rs", "x");
    let cwd = home.cwd();
    std::fs::create_dir_all(cwd.join("src")).unwrap();
    std::fs::write(cwd.join("src/haystack.rs"), "x").unwrap();
    let mut terminal = start(&home, &["--offline"]);
    terminal.keys("look at @hayst");
    terminal.wait_for("the offer", |s| s.contains("❯ src/haystack.rs"));
    terminal.keys("\r");
    terminal.wait_for("the path", |s| s.contains("> look at @src/haystack.rs"));
    terminal.keys("please\r");
    terminal.wait_for("the answer", |s| s.contains("You said: look at @src/haystack.rs please"));
    leave(terminal);
}

#[test]
fn a_paste_is_one_text_and_a_long_one_a_word_until_it_is_sent() {
    let home = Home::new();
    let mut terminal = start(&home, &["--offline"]);
    terminal.keys("\u{1b}[200~one\ntwo\u{1b}[201~");
    terminal.wait_for("two rows", |s| s.contains("> one\n  two"));
    terminal.keys("\r");
    terminal.wait_for("the answer", |s| s.contains("› one\n  two"));
    let long: String = (0..40).map(|n| format!("row {n}\n")).collect();
    terminal.keys(&format!("\u{1b}[200~{long}\u{1b}[201~"));
    terminal.wait_for("a word for it", |s| s.contains("[paste #1 +40 lines]"));
    terminal.keys("\r");
    terminal.wait_for("the whole of it", |s| s.contains("row 39"));
    leave(terminal);
}

#[test]
fn an_engine_that_crashes_is_a_question_and_the_draft_stays() {
    let home = Home::new();
    misbehaving(&home, "crasher", "crash:null-at-tool");
    let mut terminal = start(&home, &["--offline"]);
    terminal.line("call crash_tool {}");
    let asked =
        terminal.wait_for("the question", |s| s.contains("go on without crasher") && s.contains("quit"));
    for part in ["crasher crashed the engine (SIGSEGV in a tool)", "it may have run, and had effects"] {
        assert!(asked.contains(part), "{part} is missing:\n{asked}");
    }
    read_it();
    terminal.keys("\r");
    terminal.wait_for("the session", |s| s.contains("the session goes on without crasher"));
    terminal.line("hello again");
    terminal.wait_for("the answer", |s| s.contains("You said: hello again"));
    leave(terminal);
}

#[test]
fn what_was_typed_outlives_the_program() {
    let home = Home::new();
    let mut terminal = start(&home, &["--offline"]);
    terminal.keys("half a thought");
    let drafts = || {
        let files = std::fs::read_dir(home.atomic_home().join("run")).into_iter().flatten().flatten();
        files.map(|f| f.path()).find(|p| p.extension().is_some_and(|e| e == "draft"))
    };
    while drafts().and_then(|f| std::fs::read_to_string(f).ok()).is_none_or(|t| t != "half a thought") {
        std::thread::yield_now();
    }
    drop(terminal);
    let terminal = start(&home, &["--offline"]);
    terminal.wait_for("the draft", |s| s.contains("> half a thought"));
}

#[test]
fn an_earlier_session_is_chosen_from_a_list_and_shown() {
    let home = Home::new();
    home.atomic(["--offline", "-p", "the needle in the haystack"]).run().ok();
    let mut terminal = start(&home, &["--offline"]);
    terminal.line("/resume");
    terminal.wait_for("the list", |s| s.contains("session:") && s.contains("❯ the needle in the haystack"));
    terminal.keys("needle\r");
    terminal.wait_for("what was said", |s| s.contains("› the needle in the haystack"));
    terminal.line("/tree");
    terminal.wait_for("the tree", |s| s.contains("go to:") && s.contains("• user: the needle"));
    terminal.keys(ESCAPE);
    terminal.wait_for("the editor", |s| !s.contains("go to:"));
    terminal.line("and more");
    terminal.wait_for("the answer", |s| s.contains("You said: and more"));
    leave(terminal);
    let one = home.sessions();
    assert_eq!(one.len(), 1, "{one:?}");
}

#[test]
fn what_is_typed_in_flow_when_a_question_comes_up_goes_on_in_the_editor() {
    let home = Home::new();
    home.install(&first_party("permission-gate"));
    let mut terminal = scripted(&home, &json!([bash("rm -rf nothing-here"), text("it was refused")]));
    // The letters follow so closely that some of them meet the question, a y among them.
    terminal.line("go");
    for letter in "yyyyyyyyyyyyyyyyyyyy".chars() {
        terminal.keys(&letter.to_string());
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    terminal.wait_for("the question, unanswered", |s| s.contains("❯ No"));
    terminal.keys(ESCAPE);
    terminal
        .wait_for("the refusal", |s| s.contains("it was refused") && s.contains("> yyyyyyyyyyyyyyyyyyyy"));
    terminal.keys(CTRL_C);
    terminal.wait_for("an empty editor", |s| !s.contains("> y"));
    leave(terminal);
}

#[test]
fn session_commands_take_numbers_and_names_as_at_the_plain_prompt() {
    let home = Home::new();
    let mut terminal = start(&home, &["--offline"]);
    for said in ["the first", "the second"] {
        terminal.line(said);
        terminal
            .wait_for("the answer", |s| s.contains(&format!("You said: {said}")) && !s.contains("working"));
    }
    terminal.line("/name");
    terminal.wait_for("that there is none", |s| s.contains("this session has no name"));
    terminal.line("/name of mine");
    terminal.wait_for("the name", |s| s.contains("· named"));
    terminal.line("/name");
    terminal.wait_for("what it is", |s| s.contains("this session is called of mine"));
    terminal.line("/fork 2");
    terminal.wait_for("the branch", |s| s.contains("what was said there, to be said again:\n    the second"));
    leave(terminal);
    assert_eq!(home.sessions().len(), 2);
}

#[test]
fn an_aborted_command_is_over_and_the_next_one_is_aborted_for_itself() {
    let home = Home::new();
    let mut terminal = start(&home, &["--offline"]);
    terminal.line("hello");
    terminal.wait_for("the answer", |s| s.contains("You said: hello") && !s.contains("working"));
    for seconds in ["600", "601"] {
        terminal.line(&format!("!sleep {seconds}"));
        terminal.wait_for("the command", |s| s.contains("running · Escape stops it"));
        terminal.keys(ESCAPE);
        let over = |s: &str| s.matches("(cancelled)").count() == 1 + usize::from(seconds == "601");
        terminal.wait_for("its end", |s| over(s) && !s.contains("⠋ aborting") && !s.contains("running"));
    }
    let screen = terminal.wait_for("rest", |s| s.lines().rev().take(4).all(|l| !l.contains("aborting")));
    assert!(!screen.contains("another one takes over"), "{screen}");
    leave(terminal);
}

#[test]
fn a_start_that_is_refused_says_why() {
    for _ in 0..atomic_tests::env::rounds(50) {
        let home = Home::new();
        let terminal = Terminal::full(&home.atomic(["--model", "no/such"]), 30, 90);
        terminal.wait_for("the reason", |s| s.contains("help:"));
        assert_eq!(terminal.finish(), 1);
    }
}

/// Every size, while an answer comes: nothing panics, and the screen is right at the end.
#[test]
fn a_terminal_of_any_size_can_be_dragged_while_an_answer_comes() {
    let home = Home::new();
    let long: String = (0..300).map(|n| format!("wörd{n} 日本語 👨‍👩‍👧 ")).collect();
    let mut terminal = scripted(&home, &json!([bash("seq 500"), text(&long), text("the end of it")]));
    terminal.line("go");
    for columns in (1..=200).step_by(13).chain([1, 2, 3, 20, 90]) {
        terminal.resize(1 + columns / 7, columns);
    }
    terminal.resize(30, 90);
    terminal.wait_for("the answer", |s| s.contains("wörd299") && !s.contains("working"));
    terminal.line("once more");
    let screen = terminal.wait_for("another", |s| s.contains("the end of it") && !s.contains("working"));
    assert!(screen.lines().last().is_some_and(|l| l.contains("offline/scripted")), "{screen}");
    leave(terminal);
}

#[test]
fn lists_move_with_the_arrows_and_close_with_escape() {
    let home = Home::new();
    let mut terminal = start(&home, &["--offline"]);
    terminal.line("/theme");
    terminal.wait_for("the list", |s| s.contains("theme:") && s.contains("light"));
    terminal.keys(DOWN);
    terminal
        .wait_for("the next one", |s| s.contains("❯ light") || s.contains("❯ dark") || s.contains("❯ none"));
    terminal.keys("light\r");
    terminal.wait_for("the choice", |s| s.contains("theme: light"));
    leave(terminal);
    let settings = std::fs::read_to_string(home.atomic_home().join("agent/settings.json")).unwrap();
    assert!(settings.contains("\"theme\": \"light\""), "{settings}");
}

#[test]
fn where_the_terminal_can_do_nothing_there_are_lines() {
    let home = Home::new();
    for invocation in
        [home.atomic(["--offline", "--plain"]), home.atomic(["--offline"]).env("ATOMIC_PLAIN", "1")]
    {
        let mut terminal = Terminal::full(&invocation, 30, 90);
        terminal.wait_for("the prompt", |s| s.ends_with("> ") && !s.contains("───"));
        terminal.line("/quit");
        assert_eq!(terminal.finish(), 0);
    }
}

/// What stands in docs/keybindings.md is what the keys do.
#[test]
fn the_page_of_keys_is_made_from_the_table() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/keybindings.md");
    let mut rows = String::new();
    for (_, name, keys, what) in atomic_tui::keys::ACTIONS {
        let keys: Vec<String> = keys.iter().map(|k| format!("`{k}`")).collect();
        rows += &format!("| `{name}` | {} | {what} |\n", keys.join(", "));
    }
    let now = std::fs::read_to_string(&page).unwrap();
    let head = now.split("| Action |").next().unwrap();
    let wanted = format!("{head}| Action | Keys | What it does |\n|---|---|---|\n{rows}");
    if std::env::var_os("ATOMIC_BLESS").is_some() {
        return std::fs::write(&page, &wanted).unwrap();
    }
    assert!(now == wanted, "docs/keybindings.md is not what the table says; ATOMIC_BLESS=1 writes it");
}
