use super::*;
use std::path::Path;

fn write(dir: &Path, text: &str) -> PathBuf {
    let path = dir.join("models.json");
    std::fs::write(&path, text).unwrap();
    path
}

fn set(vars: &[(&str, &str)], models_json: &str) -> (tempfile::TempDir, ModelSet) {
    let dir = tempfile::tempdir().unwrap();
    let path = write(dir.path(), models_json);
    let environment = Environment::fixed(vars.iter().copied());
    let set = ModelSet::load(Sources { models_json: Some(path), environment, ..Sources::default() });
    (dir, set)
}

fn name(result: Result<Chosen, ResolveError>) -> String {
    match result {
        Ok(chosen) => {
            let info = chosen.model.info();
            let level = chosen.thinking.map_or(String::new(), |l| format!(" {}", l.name()));
            format!("{}/{}{level}", info.provider, info.id)
        }
        Err(error) => format!("{}: {error}", error.code()),
    }
}

const LOCAL: &str = r#"{"providers": {"local": {
    "baseUrl": "http://127.0.0.1:1/v1/", "api": "openai-completions", "apiKey": "k",
    "models": [{"id": "llama3:8b"}, {"id": "org/model", "reasoning": true}, {"id": "gpt-5"}]
}}}"#;

#[test]
fn a_pattern_names_provider_model_and_thinking_level() {
    let (_dir, set) = set(&[("ANTHROPIC_API_KEY", "k")], LOCAL);
    for (pattern, want) in [
        ("local/llama3:8b", "local/llama3:8b"),
        ("local/llama3:8b:high", "local/llama3:8b high"),
        ("local/org/model:off", "local/org/model off"),
        ("org/model", "local/org/model"),
        ("llama3:8b", "local/llama3:8b"),
        ("claude-haiku-4-5:low", "anthropic/claude-haiku-4-5 low"),
        // Two providers have it, one has a key.
        ("gpt-5", "local/gpt-5"),
        ("offline/scripted", "offline/scripted"),
    ] {
        assert_eq!(name(set.find(&Selection::model(pattern))), want, "{pattern}");
    }
    let both = |provider: &str, model: Option<&str>| Selection {
        provider: Some(provider.to_owned()),
        model: model.map(str::to_owned),
    };
    assert_eq!(name(set.find(&both("local", Some("org/model:max")))), "local/org/model max");
    assert_eq!(name(set.find(&both("local", Some("local/gpt-5")))), "local/gpt-5");
    assert_eq!(name(set.find(&both("local", None))), "local/llama3:8b");
}

#[test]
fn what_cannot_be_found_is_refused_with_the_nearest_names() {
    let (_dir, set) = set(&[("ANTHROPIC_API_KEY", "k"), ("OPENAI_API_KEY", "k")], LOCAL);
    for (pattern, code, words) in [
        ("antropic/claude-haiku-4-5", "models::unknown_provider", "did you mean anthropic"),
        ("anthropic/claude-haiku-45", "models::unknown_model", "claude-haiku-4-5"),
        ("claude-haiku-45", "models::unknown_model", "anthropic/claude-haiku-4-5"),
        ("anthropic/claude-haiku-4-5:hihg", "models::unknown_thinking_level", "levels: off"),
        ("gpt-5", "models::ambiguous_model", "local/gpt-5, openai/gpt-5"),
        ("groq/anything", "models::unknown_model", "models.json"),
    ] {
        let text = name(set.find(&Selection::model(pattern)));
        assert!(text.starts_with(code) && text.contains(words), "{pattern}: {text}");
    }
}

#[test]
fn a_provider_without_a_key_says_which_variable_to_set() {
    let (_dir, set) = set(
        &[],
        r#"{"providers": {
            "a": {"baseUrl": "http://x", "api": "openai-completions", "apiKey": "$A_KEY", "models": [{"id": "m"}]},
            "b": {"baseUrl": "http://x", "api": "openai-completions", "apiKey": "!pass b", "models": [{"id": "m"}]},
            "c": {"baseUrl": "http://x", "api": "openai-completions", "models": [{"id": "m"}]}
        }}"#,
    );
    for (pattern, words) in [
        ("anthropic/claude-haiku-4-5", "set ANTHROPIC_API_KEY"),
        ("a/m", "export A_KEY="),
        ("b/m", "not run yet"),
        ("c/m", "\"apiKey\": \"$VARIABLE\""),
    ] {
        let text = name(set.find(&Selection::model(pattern)));
        assert!(text.starts_with("models::no_key") && text.contains(words), "{text}");
    }
}

#[test]
fn nothing_configured_names_both_ways_out() {
    let (dir, set) = set(&[], "");
    let text = name(set.find(&Selection::default()));
    assert!(text.starts_with("models::nothing_configured"), "{text}");
    for words in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "--offline", dir.path().to_str().unwrap()] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn the_default_is_what_the_user_wrote_first_then_whatever_has_a_key() {
    let key = [("OPENAI_API_KEY", "k")];
    assert_eq!(name(set(&key, LOCAL).1.find(&Selection::default())), "local/llama3:8b");
    assert_eq!(name(set(&key, "").1.find(&Selection::default())), "openai/gpt-5.2");
    let offline =
        ModelSet::load(Sources { environment: Environment::fixed(key), offline: true, ..Sources::default() });
    assert_eq!(name(offline.find(&Selection::default())), "offline/scripted");
}

#[test]
fn a_broken_file_is_a_problem_that_later_refusals_repeat() {
    let (_dir, set) = set(&[], "{\n  oops");
    assert_eq!(set.problems().len(), 1);
    let text = name(set.find(&Selection::default()));
    assert!(text.contains("models.json:2:"), "{text}");
    let text = name(set.find(&Selection::model("mine/x")));
    assert!(text.contains("models.json:2:"), "{text}");
}

#[test]
fn one_bad_provider_or_model_leaves_the_others_usable() {
    let (_dir, set) = set(
        &[],
        r#"{"providers": {
            "bad": {"apiKey": "k", "models": [{"id": "m"}]},
            "later": {"apiKey": "k", "baseUrl": "http://x", "api": "telepathy", "models": [{"id": "m"}, {"id": "n", "api": "anthropic-messages"}]},
            "offline": {"apiKey": "k"},
            "empty": {"apiKey": "k"}
        }}"#,
    );
    let problems: Vec<_> = set.problems().iter().map(ToString::to_string).collect();
    for words in
        ["\"bad\": model \"m\" has no \"api\"", "telepathy", "belongs to the offline", "no \"models\""]
    {
        assert!(problems.iter().any(|p| p.contains(words)), "{words}: {problems:#?}");
    }
    assert_eq!(name(set.find(&Selection::model("later/n"))), "later/n");
}

#[test]
fn an_entry_without_models_changes_only_the_transport_of_a_built_in_provider() {
    let (_dir, set) = set(
        &[("PROXY_KEY", "k")],
        r#"{"providers": {"anthropic": {"baseUrl": "http://127.0.0.1:9", "apiKey": "${PROXY_KEY}"}}}"#,
    );
    let model = set.get("anthropic", "claude-haiku-4-5").unwrap();
    assert_eq!(model.info().base_url, "http://127.0.0.1:9");
    assert_eq!(model.info().context_window, 200_000);
    assert!(set.problems().is_empty());
}

#[test]
fn every_variable_that_may_hold_a_credential_is_known() {
    let (_dir, set) = set(
        &[],
        r#"{"providers": {"x": {"apiKey": "$X_KEY", "headers": {"a": "${HEADER_KEY}", "b": "plain", "c": null},
            "models": [{"id": "m", "headers": {"d": "$MODEL_KEY"}}]}}}"#,
    );
    for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "X_KEY", "HEADER_KEY", "MODEL_KEY"] {
        assert!(set.credential_variables().iter().any(|v| v == name), "{name}");
    }
}

#[test]
fn the_offline_model_keeps_its_place_in_the_script_however_it_is_fetched() {
    let set = ModelSet::load(Sources { offline: true, ..Sources::default() });
    let a = set.get("offline", "scripted").unwrap();
    let b = set.find(&Selection::default()).unwrap().model;
    assert!(Arc::ptr_eq(&a, &b));
}

#[test]
fn a_model_that_is_there_but_cannot_be_used_says_why() {
    for (provider, words) in [
        (
            r#""base_url": "http://127.0.0.1:1/v1", "api": "openai-completions""#,
            &[
                "the key \"base_url\" is not read; did you mean \"baseUrl\"?",
                "model \"qwen\" has no \"baseUrl\"",
            ][..],
        ),
        (
            r#""baseUrl": "http://127.0.0.1:1/v1", "api": "openai-completion""#,
            &["the api \"openai-completion\"", "did you mean \"openai-completions\"?"],
        ),
        (
            r#""baseUrl": "not a url", "api": "openai-completions""#,
            &["the baseUrl \"not a url\" is no address"],
        ),
        (
            r#""baseUrl": "ftp://u:hunter22@h/?k=hunter22", "api": "openai-completions""#,
            &["the baseUrl \"h/\" is no address"],
        ),
    ] {
        let text = format!(
            r#"{{"providers": {{"local": {{{provider}, "apiKey": "k", "models": [{{"id": "qwen"}}]}}}}}}"#
        );
        let (_dir, set) = set(&[], &text);
        let error = name(set.find(&Selection::model("local/qwen")));
        assert!(error.starts_with("models::unknown_model"), "{error}");
        for words in words {
            assert!(error.contains(words), "{words}:\n{error}");
        }
        assert!(!error.contains("hunter22"), "{error}");
    }
}
