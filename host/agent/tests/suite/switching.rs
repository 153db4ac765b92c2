//! The key that goes from model to model, and from level to level.

use crate::doubles::build;
use atomic_agent::{event::Event, hooks::ModelSource, model::ThinkingLevel, op::Op, providers::ScopedModel};
use serde_json::{Value, json};

#[tokio::test]
async fn a_key_goes_through_all_models_and_back_and_listeners_are_told_how() {
    let mut rig = build([]).start().await;
    let cycle = |backward| Op::CycleModel { backward };
    let next = rig.handle.request(cycle(false)).await.unwrap();
    assert_eq!((&next["model"]["id"], &next["isScoped"]), (&json!("second"), &json!(false)));
    let told = rig.until(|e| matches!(e, Event::ModelChanged { .. })).await;
    let Event::ModelChanged { model, previous_model, source } = &*told else { unreachable!() };
    assert_eq!((model.id.as_str(), *source), ("second", ModelSource::Cycle));
    assert_eq!(previous_model.as_ref().unwrap().id, "m");
    assert_eq!(rig.handle.request(cycle(false)).await.unwrap()["model"]["id"], "m", "round it goes");
    assert_eq!(rig.handle.request(cycle(true)).await.unwrap()["model"]["id"], "second");
    assert_eq!(rig.handle.view(|v| v.model.clone()).unwrap().id, "second");
}

#[tokio::test]
async fn a_scope_narrows_the_key_and_says_how_much_is_thought() {
    let rig = build([]).start().await;
    let providers = rig.handle.models().unwrap().clone();
    let scoped = |id: &str, thinking| ScopedModel { provider: "p".into(), id: id.into(), thinking };
    providers.set_scope(vec![scoped("gone", None), scoped("second", Some(ThinkingLevel::High))]);
    let next = rig.handle.request(Op::CycleModel { backward: false }).await.unwrap();
    assert_eq!(
        (&next["model"]["id"], &next["thinkingLevel"], &next["isScoped"]),
        (&json!("second"), &json!("high"), &json!(true))
    );
    let alone = rig.handle.request(Op::CycleModel { backward: false }).await.unwrap();
    assert_eq!(alone, Value::Null, "there is no other");

    let list = rig.handle.request(Op::ListModels).await.unwrap();
    let row = |id: &str| list["models"].as_array().unwrap().iter().find(|m| m["id"] == id).unwrap().clone();
    assert_eq!((&row("second")["scoped"], &row("second")["current"]), (&json!(true), &json!(true)));
    assert_eq!(row("second")["scopedThinkingLevel"], "high");
    assert_eq!((&row("m")["scoped"], &row("m")["levels"][1]), (&json!(false), &json!("minimal")));
    assert_eq!((&list["scoped"], &list["thinkingLevel"]), (&json!(true), &json!("high")));
}

#[tokio::test]
async fn a_key_goes_through_the_levels_of_the_model() {
    let rig = build([]).start().await;
    let mut seen = Vec::new();
    for _ in 0..8 {
        seen.push(rig.handle.request(Op::CycleThinkingLevel).await.unwrap()["level"].clone());
    }
    assert_eq!(json!(seen), json!(["minimal", "low", "medium", "high", "xhigh", "max", "off", "minimal"]));
    assert_eq!(rig.handle.view(|v| v.thinking), ThinkingLevel::Minimal);
}

#[tokio::test]
async fn a_model_that_is_not_there_is_refused_and_the_other_stays() {
    let rig = build([]).start().await;
    let refused = rig.handle.request(Op::ChooseModel { pattern: "p/nope".into() }).await.unwrap_err();
    assert_eq!(refused.code, "model_not_found");
    let chosen = rig.handle.request(Op::ChooseModel { pattern: "p/second".into() }).await.unwrap();
    assert_eq!(chosen["model"]["id"], "second");
}
