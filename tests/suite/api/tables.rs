//! Shared tables between two libraries that know nothing of each other (boundary.md "Shared
//! tables"). The tables are the process's: these stories run one after another.

use super::{install, install_as, noticed, says};
use atomic_tests::{
    env::Home,
    live::{Live, Setup},
};

static ONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

async fn session() -> (Home, Live) {
    let home = Home::new();
    install(&home, "background_work");
    install(&home, "work_list");
    let live = Setup::new(&home).start().await;
    (home, live)
}

#[tokio::test(flavor = "multi_thread")]
async fn work_of_one_extension_is_listed_by_another_and_fails_closed() {
    let _one = ONE.lock().await;
    let (_home, live) = session().await;
    assert_eq!(says(&live, "/list").await, "0 providers, ");
    assert_eq!(says(&live, "/offer builds").await, "offered");
    live.say("/busy a b").await.unwrap();
    assert_eq!(says(&live, "/list").await, "1 providers, builds/a builds/b", "not that of other sessions");
    assert_eq!(says(&live, "/channels").await, "builds:done");
    for (broken, code) in [("panic", "panic"), ("error", "error"), ("a a", "malformed")] {
        live.say(&format!("/busy {broken}")).await.unwrap();
        let said = says(&live, "/list").await;
        assert!(said.starts_with(&format!("{code}: background work of builds: listActiveWork")), "{said}");
    }
    live.say("/busy").await.unwrap();
    assert_eq!(says(&live, "/list").await, "1 providers, ");
    let said = says(&live, "/other-version builds").await;
    assert!(
        said.starts_with("wrong_version: work_list asks for") && said.contains("background_work provides"),
        "{said}"
    );
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_replaced_at_once_and_an_old_token_takes_nothing_away() {
    let _one = ONE.lock().await;
    let (_home, live) = session().await;
    assert_eq!(says(&live, "/offer builds").await, "offered");
    assert_eq!(says(&live, "/offer builds").await, "offered");
    assert_eq!(says(&live, "/withdraw-first").await, "withdrew false");
    assert_eq!(says(&live, "/list").await, "1 providers, ");
    assert_eq!(says(&live, "/withdraw-first").await, "withdrew true");
    assert_eq!(says(&live, "/list").await, "0 providers, ");
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_a_hundred_providers_and_not_one_more() {
    let _one = ONE.lock().await;
    let (_home, live) = session().await;
    for n in 0..100 {
        assert_eq!(says(&live, &format!("/offer p{n}")).await, "offered");
    }
    assert_eq!(says(&live, "/offer one-too-many").await, "refused too_many");
    assert_eq!(says(&live, "/offer p7").await, "offered", "replacing is always allowed");
    assert_eq!(says(&live, "/list").await, "100 providers, ");
    assert_eq!(says(&live, "/offer  x").await, "refused bad_request", "a name has no space at its ends");
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retired_provider_is_never_called_and_whoever_watches_is_told() {
    let _one = ONE.lock().await;
    let (home, live) = session().await;
    live.say("/watch").await.unwrap();
    noticed(&live, 0, "what is there", |m| m == "watched []").await;
    says(&live, "/offer builds").await;
    noticed(&live, 0, "what came", |m| m == "watched [builds]").await;
    live.say("/keep builds").await.unwrap();
    assert_eq!(says(&live, "/kept").await, "live true says builds:done");
    // The provider alone goes.
    std::fs::remove_file(home.extensions().join(atomic_tests::libs::file_name("background_work"))).unwrap();
    let mark = live.mark();
    let op = atomic_agent::op::Op::Reload { names: vec!["background_work".into()], now: false, origin: None };
    live.engine.request(op).await.unwrap();
    noticed(&live, mark, "its end", |m| m == "watched []").await;
    assert_eq!(says(&live, "/kept").await, "live false says retired");
    assert_eq!(says(&live, "/ceilings").await, "ceilings 0", "its policy went with it");
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sessions_share_a_table_and_never_rob_each_other() {
    let _one = ONE.lock().await;
    let (_home, a) = session().await;
    let other = Home::new();
    install_as(&other, "background_work", "other_work");
    install_as(&other, "work_list", "other_list");
    let b = Setup::new(&other).start().await;
    says(&a, "/offer builds").await;
    says(&b, "/offer tests").await;
    a.say("/busy a").await.unwrap();
    b.say("/busy b").await.unwrap();
    assert_eq!(says(&a, "/list").await, "2 providers, builds/a");
    assert_eq!(says(&b, "/list").await, "2 providers, tests/b");
    // One name in both: the newer covers the older, and gives it back when it goes.
    says(&b, "/offer builds").await;
    assert_eq!(says(&a, "/list").await, "2 providers, ");
    b.close().await;
    assert_eq!(says(&a, "/list").await, "1 providers, builds/a");
    a.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_in_force_at_every_moment_of_its_owners_reload() {
    let _one = ONE.lock().await;
    let (_home, live) = session().await;
    assert_eq!(says(&live, "/ceilings").await, "ceilings 1");
    let watching = async {
        let op = |names: &[&str]| atomic_agent::op::Op::Reload {
            names: names.iter().map(|n| (*n).to_owned()).collect(),
            now: false,
            origin: None,
        };
        for _ in 0..5 {
            live.engine.request(op(&["background_work"])).await.unwrap();
        }
    };
    let asking = async {
        for _ in 0..40 {
            assert_eq!(says(&live, "/ceilings").await, "ceilings 1");
        }
    };
    tokio::join!(watching, asking);
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_threads_call_and_list_while_the_provider_is_reloaded() {
    let _one = ONE.lock().await;
    let (_home, live) = session().await;
    says(&live, "/offer builds").await;
    let reload = async {
        let names = vec!["background_work".to_owned()];
        live.engine.request(atomic_agent::op::Op::Reload { names, now: false, origin: None }).await.unwrap();
    };
    let mark = live.mark();
    let stress = live.engine.ask(atomic_agent::op::Op::Prompt {
        text: "/stress builds".into(),
        images: Vec::new(),
        streaming_behavior: None,
        source: atomic_agent::hooks::InputSource::Interactive,
    });
    let (_, done) = tokio::join!(reload, stress);
    done.unwrap();
    noticed(&live, mark, "the end of the stress", |m| m.starts_with("stress")).await;
    assert!(live.faults().is_empty(), "{:?}", live.faults());
    live.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_hangs_holds_up_who_asked_and_nobody_else() {
    let _one = ONE.lock().await;
    let home = Home::new();
    install(&home, "background_work");
    install(&home, "work_list");
    install_as(&home, "work_list", "other_list");
    let live = Setup::new(&home).start().await;
    says(&live, "/offer builds").await;
    live.say("/keep:1 builds").await.unwrap();
    live.say("/busy hang").await.unwrap();
    let asked = live.engine.ask(atomic_agent::op::Op::Prompt {
        text: "/list:2".into(),
        images: Vec::new(),
        streaming_behavior: None,
        source: atomic_agent::hooks::InputSource::Interactive,
    });
    noticed(&live, 0, "the call", |m| m == "hanging").await;
    assert_eq!(says(&live, "/kept:1").await, "live true says builds:done", "another asks it meanwhile");
    let names = vec!["background_work".to_owned()];
    live.engine.request(atomic_agent::op::Op::Reload { names, now: false, origin: None }).await.unwrap();
    assert_eq!(says(&live, "/kept:1").await, "live false says retired");
    assert_eq!(says(&live, "/offer builds").await, "offered", "its next life stands in its place");
    drop(asked);
    live.close().await;
}
