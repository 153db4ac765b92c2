//! `atomic auth`: keys of providers, stored where only their owner reads them. A key is typed
//! without being shown, or comes over a pipe; it is never an argument, which others could see.

use crate::{args::AuthCommand, card::Card, models, nearest::nearest, paths::Paths, sanitize, secret, stdio};
use atomic_models::{AuthError, AuthStore, KeyState, ModelSet};
use std::fmt::Write;

/// What is said where a login other than a key might be expected.
pub const KEYS_ONLY: &str = "API keys only: logging in with a subscription (OAuth) comes in a later version";

fn card(e: AuthError) -> Card {
    Card::told(e.code(), &e.to_string())
}

pub fn run(paths: &Paths, command: AuthCommand) -> Result<u8, Card> {
    let said = match command {
        AuthCommand::Login { provider } => login(paths, provider)?,
        AuthCommand::Logout { provider } => logout(paths, &provider)?,
        AuthCommand::List => list(paths)?,
        AuthCommand::Check { provider } => return check(paths, provider.as_deref()),
        AuthCommand::Help(_) => String::new(),
    };
    Ok(stdio::say(&sanitize::text(&said)))
}

fn login(paths: &Paths, provider: Option<String>) -> Result<String, Card> {
    let states = ModelSet::load(models::sources(paths)).key_states();
    let Some(provider) = provider else {
        let names: Vec<&str> = states.iter().map(|s| s.provider.as_str()).collect();
        return Err(Card::new("cli::no_provider", "which provider is the key for?")
            .why(format!("known are {}", names.join(", ")))
            .help("atomic auth login PROVIDER"));
    };
    known(&states, &provider)?;
    eprintln!("{KEYS_ONLY}");
    let key = secret::ask(&format!("key for {provider} (it is not shown): "))?;
    store(paths, &provider, &key)
}

/// Stores a key that was typed. Answers what to say.
pub fn store(paths: &Paths, provider: &str, key: &str) -> Result<String, Card> {
    let key = key.trim();
    let odd = key.contains(|c: char| c.is_whitespace() || c.is_control());
    // "$VAR" and "!command" are as in models.json; a command has spaces.
    if key.is_empty() || (odd && !key.starts_with('!')) {
        let what = if key.is_empty() { "no key was typed" } else { "this is no key: it has spaces in it" };
        return Err(Card::new("cli::no_key_typed", what)
            .help(format!("atomic auth login {provider}, then the key and Enter; or over a pipe")));
    }
    let auth = AuthStore::new(paths.auth_json());
    auth.set_key(provider, key).map_err(card)?;
    let mut said =
        format!("the key for {provider} is in {}, which only you can read\n", auth.path().display());
    let states = ModelSet::load(models::sources(paths)).key_states();
    match states.iter().find(|s| s.provider == provider) {
        None => {
            let _ = writeln!(
                said,
                "no provider of that name is described yet: an extension or models.json may bring it"
            );
        }
        Some(state) if state.models == 0 => {
            let _ = writeln!(said, "it has no models yet: list them in {}", paths.models_json().display());
        }
        Some(_) => {}
    }
    Ok(said)
}

pub fn logout(paths: &Paths, provider: &str) -> Result<String, Card> {
    let auth = AuthStore::new(paths.auth_json());
    if !auth.remove(provider).map_err(card)? {
        let kept: Vec<String> = auth.providers().map_err(card)?.into_iter().map(|(name, _)| name).collect();
        let kept = if kept.is_empty() { "there is none".to_owned() } else { kept.join(", ") };
        return Err(Card::new("cli::no_stored_key", format!("no key of {provider} is stored"))
            .file(auth.path())
            .why(format!("stored: {kept}")));
    }
    let mut said = format!("the key of {provider} was removed from {}\n", auth.path().display());
    let states = ModelSet::load(models::sources(paths)).key_states();
    if let Some(KeyState { key: Ok(from), .. }) = states.iter().find(|s| s.provider == provider) {
        let _ = writeln!(said, "it still has one, from {from}");
    }
    Ok(said)
}

fn list(paths: &Paths) -> Result<String, Card> {
    let stored = AuthStore::new(paths.auth_json()).providers().map_err(card)?;
    let states = ModelSet::load(models::sources(paths)).key_states();
    let mut said = String::new();
    for state in &states {
        let how = match &state.key {
            Ok(from) => format!("key from {from}"),
            Err(_) => "no key".to_owned(),
        };
        let _ = writeln!(said, "{:<14} {how}, {} models", state.provider, state.models);
    }
    for (name, kind) in stored.iter().filter(|(n, _)| !states.iter().any(|s| s.provider == *n)) {
        let _ = writeln!(said, "{name:<14} {kind} in auth.json, for a provider that is not described");
    }
    let _ = writeln!(said, "\n{KEYS_ONLY}");
    Ok(said)
}

/// Looks, asks no provider. Exit 1: a key is missing.
fn check(paths: &Paths, provider: Option<&str>) -> Result<u8, Card> {
    AuthStore::new(paths.auth_json()).providers().map_err(card)?;
    let states = ModelSet::load(models::sources(paths)).key_states();
    let Some(provider) = provider else {
        let ready: Vec<&KeyState> = states.iter().filter(|s| s.key.is_ok()).collect();
        if ready.is_empty() {
            return Err(Card::new("models::nothing_configured", "no provider has a key")
                .help("atomic auth login PROVIDER; atomic auth list shows the providers"));
        }
        let line =
            |s: &&KeyState| format!("{}: key from {}\n", s.provider, s.key.as_deref().unwrap_or_default());
        return Ok(stdio::say(&sanitize::text(&ready.iter().map(line).collect::<String>())));
    };
    known(&states, provider)?;
    match states.iter().find(|s| s.provider == provider).map(|s| &s.key) {
        Some(Ok(from)) => Ok(stdio::say(&sanitize::text(&format!("{provider}: key from {from}\n")))),
        Some(Err(todo)) => {
            Err(Card::new("models::no_key", format!("provider \"{provider}\" has no key")).help(todo.clone()))
        }
        None => Err(Card::new("models::unknown_provider", format!("there is no provider \"{provider}\""))
            .help("atomic auth list shows the providers")),
    }
}

/// A name that is nearly a known one is a typo; any other may be an extension's.
fn known(states: &[KeyState], provider: &str) -> Result<(), Card> {
    if states.iter().any(|s| s.provider == provider) {
        return Ok(());
    }
    match nearest(provider, states.iter().map(|s| s.provider.clone())) {
        Some(near) => {
            Err(Card::new("models::unknown_provider", format!("there is no provider \"{provider}\""))
                .help(format!("did you mean {near}?")))
        }
        None => Ok(()),
    }
}
