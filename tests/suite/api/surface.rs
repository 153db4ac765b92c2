//! Renderers, transformers, shortcuts, and what stands around the transcript (events.md E.7, I.5).

use super::{install, install_as, noticed, says};
use atomic_agent::{event::Event, surface::Update};
use atomic_extensions::Rendering;
use atomic_tests::{
    env::Home,
    live::{Live, Setup},
};
use serde_json::{Value, json};

fn note(text: &str) -> Value {
    json!({"role": "custom", "customType": "note", "content": text, "display": true})
}

#[tokio::test(flavor = "multi_thread")]
async fn renderers_make_styled_lines_and_what_fails_is_the_default() {
    let home = Home::new();
    install(&home, "surface");
    let live = Setup::new(&home).start().await;
    let drawn = live.extensions.render_message(&note("hi\u{1b}[31m"), true, 80).await;
    let Rendering::Lines(lines) = drawn else { panic!("{drawn:?}") };
    assert_eq!(
        (lines[0][0].text.as_str(), lines[0][0].fg.as_deref(), lines[0][0].bold),
        ("hi[31m", Some("accent"), true)
    );
    assert_eq!(lines[1][0].text, "all of it");
    assert_eq!(live.extensions.render_message(&note("secret"), false, 80).await, Rendering::Hidden);
    assert_eq!(live.extensions.render_message(&note("broken"), false, 80).await, Rendering::Default);
    let other = json!({"role": "custom", "customType": "nobody's", "content": "x"});
    assert_eq!(live.extensions.render_message(&other, false, 80).await, Rendering::Default);
    let entry = json!({"type": "custom", "id": "1", "customType": "mark", "data": "here"});
    let drawn = live.extensions.render_entry(&entry, false, 80).await;
    let Rendering::Lines(lines) = drawn else { panic!("{drawn:?}") };
    assert_eq!(lines[0][0].text, "here");
    let faults = live.faults();
    assert!(
        faults.iter().any(|(e, f)| e == "render_message" && f.contains("cannot draw that")),
        "{faults:?}"
    );
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn markdown_goes_through_all_transformers_and_one_that_fails_changes_nothing() {
    let home = Home::new();
    install(&home, "surface");
    install_as(&home, "surface", "surface-too");
    let live = Setup::new(&home).start().await;
    let through = |text: &str| live.extensions.transform_markdown(text.to_owned(), "assistant", false, 80);
    assert_eq!(through("x").await, "x (assistant) (assistant)");
    assert_eq!(through("broken").await, "broken");
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_taken_by_the_last_who_asks_and_the_programs_own_by_nobody() {
    let home = Home::new();
    install(&home, "surface");
    install_as(&home, "surface", "surface-too");
    let live = Setup::new(&home).start().await;
    let keys = live.extensions.shortcuts();
    assert_eq!(keys.len(), 1, "{keys:?}");
    assert_eq!((keys[0].key.as_str(), keys[0].extension.as_str()), ("ctrl+shift+k", "surface-too"));
    assert!(keys[0].prefer_editor);
    assert_eq!(keys[0].keybinding.as_deref(), Some("example.hello"));
    assert!(live.report.notes.iter().any(|n| n.contains("ctrl+shift+k")), "{:?}", live.report.notes);
    let faults = live.faults();
    assert!(faults.iter().any(|(_, f)| f.contains("ctrl+c is the program's own")), "{faults:?}");
    let mark = live.mark();
    assert_eq!(live.extensions.run_shortcut("CTRL+SHIFT+K").await, Some(Ok(())));
    noticed(&live, mark, "the key", |m| m == "hello from a key").await;
    assert_eq!(live.extensions.run_shortcut("ctrl+c").await, None);
    live.close().await;
}

fn updates(live: &Live, mark: usize) -> Vec<Update> {
    let update = |e: &std::sync::Arc<Event>| match &**e {
        Event::Surface { update, .. } => Some(update.clone()),
        _ => None,
    };
    live.events().iter().skip(mark).filter_map(update).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_extension_puts_on_the_screen_is_taken_away_with_its_generation() {
    let home = Home::new();
    install(&home, "surface");
    let live = Setup::new(&home).start().await;
    assert_eq!(says(&live, "/draw").await, "\"\" false", "nobody reports an editor here");
    let drawn = updates(&live, 0);
    assert_eq!(drawn.len(), 12, "{drawn:#?}");
    assert!(
        matches!(&drawn[0], Update::SetWidget { key, lines: Some(l), .. } if key == "work" && l[0][0].text == "one line")
    );
    assert!(drawn.iter().any(|u| matches!(u, Update::SetTitle { title } if title == "a title")));
    let mark = live.mark();
    live.reload().await;
    live.wait_after(mark, "the widget's end", |e| {
        matches!(e, Event::Surface { update: Update::SetWidget { lines: None, .. }, .. })
    })
    .await;
    live.wait_after(mark, "the footer's end", |e| {
        matches!(e, Event::Surface { update: Update::SetFooter { lines: None }, .. })
    })
    .await;
    live.close().await;
}
