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
            "b": {"baseUrl": "http://x", "api": "openai-completions", "apiKey": " ", "models": [{"id": "m"}]},
            "c": {"baseUrl": "http://x", "api": "openai-completions", "models": [{"id": "m"}]}
        }}"#,
    );
    for (pattern, words) in [
        ("anthropic/claude-haiku-4-5", "set ANTHROPIC_API_KEY"),
        ("a/m", "export A_KEY="),
        ("b/m", "is empty"),
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
    assert_eq!(name(set(&key, "").1.find(&Selection::default())), "openai/gpt-6.1-sol");
    let offline =
        ModelSet::load(Sources { environment: Environment::fixed(key), offline: true, ..Sources::default() });
    assert_eq!(name(offline.find(&Selection::default())), "offline/scripted");
}

#[test]
fn a_described_provider_whose_variable_is_unset_is_named_with_it_and_not_called_nothing() {
    let described = r#"{"providers": {"mine": {"baseUrl": "http://x", "api": "openai-completions", "apiKey": "$MINE_KEY", "models": [{"id": "m"}]}}}"#;
    let (_dir, set) = set(&[], described);
    let text = name(set.find(&Selection::default()));
    assert!(text.starts_with("models::no_key: provider \"mine\" has no key"), "{text}");
    assert!(text.contains("$MINE_KEY, which is not set: export MINE_KEY="), "{text}");
}

#[test]
fn part_of_a_name_means_the_newest_model_it_fits_and_aggregators_ids_are_known_by_their_end() {
    let router = r#"{"providers": {"router": {"baseUrl": "http://x", "api": "openai-completions", "apiKey": "k",
        "models": [{"id": "maker/one-2"}, {"id": "maker/one-1", "name": "Uno"}, {"id": "other/two"}]}}}"#;
    let (_dir, set) = set(&[("ANTHROPIC_API_KEY", "k")], router);
    for (pattern, want) in [
        ("sonnet", "anthropic/claude-sonnet-5-5"),
        ("Opus:high", "anthropic/claude-opus-5-5 high"),
        ("anthropic/haiku", "anthropic/claude-haiku-4-5"),
        ("CLAUDE-HAIKU-4-5", "anthropic/claude-haiku-4-5"),
        ("one-1", "router/maker/one-1"),
        ("two:low", "router/other/two low"),
        ("uno", "router/maker/one-1"),
        ("router/one", "router/maker/one-2"),
    ] {
        assert_eq!(name(set.find(&Selection::model(pattern))), want, "{pattern}");
    }
    // Nobody has a key for it: what is lacking is said, not that it is unknown.
    let text = name(set.find(&Selection::model("gemini")));
    assert!(text.starts_with("models::no_key") && text.contains("GEMINI_API_KEY"), "{text}");
    assert!(
        name(set.find(&Selection::model("op"))).starts_with("models::unknown_model"),
        "two letters are a typo"
    );
}

#[test]
fn a_scope_takes_patterns_in_their_order_each_model_once() {
    let (_dir, set) = set(&[("ANTHROPIC_API_KEY", "k"), ("GOOGLE_API_KEY", "k")], LOCAL);
    let (scope, unmet) = set.scope(&[
        "sonnet:high",
        "anthropic/*opus*:low",
        "*SONNET*",
        "local/llama3:8b",
        "*nobody*",
        "typo!",
    ]);
    let names: Vec<String> = scope
        .iter()
        .map(|s| {
            format!(
                "{}/{}{}",
                s.provider,
                s.id,
                s.thinking.map_or(String::new(), |l| format!(" {}", l.name()))
            )
        })
        .collect();
    assert_eq!(names[..2], ["anthropic/claude-sonnet-5-5 high", "anthropic/claude-opus-5-5 low"]);
    assert!(names.contains(&"anthropic/claude-sonnet-4-5".to_owned()));
    assert_eq!(names.last().unwrap(), "local/llama3:8b");
    assert_eq!(names.iter().filter(|n| n.contains("claude-sonnet-5-5")).count(), 1);
    assert!(!names.iter().any(|n| n.contains("openai/")), "models without a key are not switched to");
    assert_eq!(unmet.len(), 2, "{unmet:?}");
}

#[test]
fn a_stored_key_counts_before_the_file_and_the_file_before_the_environment() {
    let dir = tempfile::tempdir().unwrap();
    let models_json = write(
        dir.path(),
        r#"{"providers": {"openai": {"apiKey": "$FILE_KEY"}, "anthropic": {"apiKey": "$FILE_KEY"}}}"#,
    );
    let auth_json = dir.path().join("auth.json");
    std::fs::write(
        &auth_json,
        r#"{"openai": {"type": "api_key", "key": "$STORED"}, "google": {"type": "oauth", "refresh": "x"}, "groq": {"key": "k"}}"#,
    )
    .unwrap();
    let environment = Environment::fixed([
        ("OPENAI_API_KEY", "e"),
        ("FILE_KEY", "f"),
        ("STORED", "s"),
        ("ANTHROPIC_API_KEY", "e"),
    ]);
    let set = ModelSet::load(Sources {
        models_json: Some(models_json),
        auth_json: Some(auth_json),
        environment,
        ..Sources::default()
    });
    let state = |name: &str| set.key_states().into_iter().find(|s| s.provider == name).unwrap().key;
    assert_eq!(state("openai").unwrap(), "auth.json");
    assert_eq!(state("anthropic").unwrap(), "FILE_KEY");
    assert_eq!(state("groq").unwrap(), "auth.json");
    assert!(state("google").unwrap_err().contains("of the kind \"oauth\""));
    assert!(state("xai").unwrap_err().contains("set XAI_API_KEY"));
    assert!(set.credential_variables().iter().any(|v| v == "STORED"));
}

#[test]
fn overrides_change_one_model_and_name_one_that_is_not_there() {
    let (_dir, set) = set(
        &[("ANTHROPIC_API_KEY", "k")],
        r#"{"providers": {"anthropic": {"compat": {"supportsCacheControl": false}, "modelOverrides": {
            "claude-haiku-4-5": {"name": "Mine", "contextWindow": 5, "cost": {"output": 9}, "thinkingLevels": ["off", "high"]},
            "claude-haiku-4-6": {}
        }}}}"#,
    );
    let info = set.get("anthropic", "claude-haiku-4-5").unwrap().info().clone();
    assert_eq!((info.name.as_str(), info.context_window, info.max_tokens), ("Mine", 5, 64_000));
    assert_eq!((info.cost.input, info.cost.output), (1.0, 9.0));
    assert_eq!(info.levels(), [ThinkingLevel::Off, ThinkingLevel::High]);
    let problems: Vec<_> = set.problems().iter().map(ToString::to_string).collect();
    assert!(
        problems.len() == 1 && problems[0].contains("did you mean \"claude-haiku-4-5\"?"),
        "{problems:?}"
    );
}

#[test]
fn an_extension_starts_no_command_for_its_key_and_the_users_own_file_does() {
    let described = serde_json::json!({"baseUrl": "http://127.0.0.1:1", "api": "openai-completions",
        "apiKey": "!echo key", "models": [{"id": "m"}]});
    let file = serde_json::json!({"providers": {"mine": described}}).to_string();
    let (_dir, set) = set(&[], &file);
    assert!(set.get("mine", "m").is_ok());
    let error = set.configure("theirs", &described).map(drop).unwrap_err();
    assert!(error.contains("only if your own models.json"), "{error}");
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

#[test]
fn files_that_changed_are_read_again_but_a_secret_nobody_knew_is_not_taken_in() {
    let (dir, set) = set(&[("NEW_KEY", "n"), ("ANTHROPIC_API_KEY", "a")], LOCAL);
    write(
        dir.path(),
        r#"{"providers": {
            "other": {"baseUrl": "http://x", "api": "openai-completions", "apiKey": "$NEW_KEY", "models": [{"id": "m"}]},
            "plain": {"baseUrl": "http://x", "api": "openai-completions", "apiKey": "k", "models": [{"id": "n"}]}
        }}"#,
    );
    let again = set.reload();
    assert_eq!(name(again.find(&Selection::model("plain/n"))), "plain/n");
    let text = name(again.find(&Selection::model("other/m")));
    assert!(text.starts_with("models::no_key") && text.contains("NEW_KEY"), "{text}");
    assert!(name(again.find(&Selection::model("local/gpt-5"))).contains("no provider \"local\""));
    assert_eq!(name(again.find(&Selection::model("haiku"))), "anthropic/claude-haiku-4-5");
}
