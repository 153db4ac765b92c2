//! The examples of plugin-api, each in a real session: what every member of `pi` and `ctx` does.

mod bus;
mod local_shell;
mod messages;
mod provider;
mod session_state;
mod surface;
mod tables;
mod tools;
mod workflow;

use atomic_agent::event::Event;
use atomic_tests::{
    env::Home,
    libs::{example, file_name},
    live::Live,
    patch::manifest_copy,
};

/// Installs an example. All of them are of one package, so each is given its own name.
fn install(home: &Home, name: &str) {
    install_as(home, name, name);
}

/// The same, under another name.
fn install_as(home: &Home, name: &str, id: &str) {
    let to = home.extensions().join(file_name(id));
    manifest_copy(&example(name), &to, |m| {
        m.insert("name".into(), id.into());
    });
}

/// The first notice from a mark on that holds.
async fn noticed(live: &Live, mark: usize, what: &str, holds: impl Fn(&str) -> bool) -> String {
    let event = live
        .wait_after(
            mark,
            what,
            |e| matches!(e, Event::Notify { message, extension: Some(_), .. } if holds(message)),
        )
        .await;
    match &*event {
        Event::Notify { message, .. } => message.clone(),
        _ => unreachable!("only notices hold"),
    }
}

/// What a command says.
async fn says(live: &Live, command: &str) -> String {
    let mark = live.mark();
    live.say(command).await.unwrap();
    noticed(live, mark, command, |_| true).await
}
