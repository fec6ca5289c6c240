//! Layers, one over the other.

use super::*;
use crate::config::{LEGACY_KEYS, ResetMode, Switch};

struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("scratch"))
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).expect("file");
        path
    }
}

fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(own).collect()
}

#[test]
fn the_documented_defaults_hold_where_nobody_says_otherwise() {
    let config = Layers::default().load().expect("defaults").config;
    assert_eq!(config.agents.default, "main");
    assert_eq!(config.signals.max_age.to_string(), "30d");
    assert_eq!(config.signals.max_rows, 50_000);
}

#[test]
fn the_documented_defaults_of_sessions_and_cron_hold() {
    let settings = Layers::default().load().expect("defaults").settings;
    let shown: Vec<String> = settings
        .iter()
        .filter(|setting| {
            !setting.key.starts_with("agents.") && !setting.key.starts_with("signals.")
        })
        .map(|setting| format!("{} {}", setting.key, setting.value))
        .collect();
    assert_eq!(
        shown,
        [
            "cron.runLog.keepLines 2000",
            "cron.sessionRetention \"1d\"",
            "http.hosts []",
            "http.tlsCert false",
            "http.tlsKey false",
            "session.dmScope \"main\"",
            "session.mainKey \"main\"",
            "session.maintenance.highWaterBytes \"80%\"",
            "session.maintenance.maxDiskBytes false",
            "session.maintenance.maxEntries 500",
            "session.maintenance.mode \"enforce\"",
            "session.maintenance.pruneAfter \"30d\"",
            "session.maintenance.resetArchiveRetention \"pruneAfter\"",
            "session.reset.atHour 4",
            "session.reset.idleMinutes false",
            "session.reset.mode \"daily\"",
            "session.scope \"per-sender\"",
            "session.visibility \"all\"",
            "session.writeLock.acquireTimeoutMs 60000",
            "session.writeLock.maxHoldMs 300000",
            "session.writeLock.staleMs 1800000",
            "wake.command false",
        ]
    );
}

#[test]
fn the_older_name_of_idle_minutes_means_silence_only_where_it_stands_alone() {
    let scratch = Scratch::new();
    for (content, mode, minutes) in [
        (
            "session.idleMinutes = 90\n",
            ResetMode::Idle,
            Switch::On(90),
        ),
        (
            "session.idleMinutes = 90\nsession.reset.atHour = 5\n",
            ResetMode::Daily,
            Switch::On(90),
        ),
        (
            "session.idleMinutes = 90\nsession.reset.idleMinutes = 7\n",
            ResetMode::Daily,
            Switch::On(7),
        ),
        (
            "session.idleMinutes = 90\nsession.resetByType.group.atHour = 5\n",
            ResetMode::Daily,
            Switch::On(90),
        ),
        (
            "session.reset.idleMinutes = 7\n",
            ResetMode::Daily,
            Switch::On(7),
        ),
    ] {
        let layers = Layers {
            given_file: Some(scratch.file("c.toml", content)),
            ..Layers::default()
        };
        let reset = layers.load().expect(content).config.session.reset;
        assert_eq!(
            (reset.mode, reset.idle_minutes),
            (mode, minutes),
            "{content}"
        );
    }
}

#[test]
fn keys_of_older_versions_are_accepted_and_names_with_dots_keep_them() {
    let scratch = Scratch::new();
    let content = "[session]\nparentForkMaxTokens = 1000\n\
                       maintenance.rotateBytes = \"10mb\"\n\
                       identityLinks.\"ada.l\" = [\"telegram:1\"]\n\
                       [cron.runLog]\nmaxBytes = 5\n";
    let layers = Layers {
        given_file: Some(scratch.file("c.toml", content)),
        ..Layers::default()
    };
    let loaded = layers.load().expect("accepted");
    let links = &loaded.config.session.identity_links;
    assert_eq!(links["ada.l"], ["telegram:1"]);
    let legacy = loaded
        .settings
        .iter()
        .filter(|s| LEGACY_KEYS.contains(&s.key.as_str()));
    assert_eq!(legacy.count(), 3);
}

#[test]
fn a_later_layer_wins_value_by_value_and_each_value_says_where_it_came_from() {
    let scratch = Scratch::new();
    let weak = scratch.file("weak.toml", "[signals]\nmaxAge = \"1d\"\nmaxRows = 1\n");
    let strong = scratch.file("strong.toml", "signals.maxRows = 2\n");
    let layers = Layers {
        optional_files: vec![weak.clone(), scratch.0.path().join("absent.toml")],
        given_file: Some(strong.clone()),
        environment: variables(&[("Tidings__Agents__DEFAULT", "ops"), ("HOME", "/x")]),
    };
    let loaded = layers.load().expect("loads");
    let origins: Vec<(&str, String)> = loaded
        .settings
        .iter()
        .filter(|setting| setting.origin != Origin::Default)
        .map(|setting| (setting.key.as_str(), setting.origin.to_string()))
        .collect();
    assert_eq!(
        origins,
        [
            ("agents.default", "Tidings__Agents__DEFAULT".to_owned()),
            ("signals.maxAge", weak.display().to_string()),
            ("signals.maxRows", strong.display().to_string()),
        ]
    );
    assert_eq!(loaded.config.signals.max_rows, 2);
    assert_eq!(loaded.config.agents.default, "ops");
}

#[test]
fn what_cannot_be_meant_names_its_place_and_what_was_perhaps_meant() {
    let scratch = Scratch::new();
    for (content, message, hint) in [
        (
            "[signals]\nmaxAg = \"1d\"\n",
            "line 2: unknown field `maxAg`",
            "did you mean maxAge?",
        ),
        (
            "[signal]\n",
            "line 1: unknown field `signal`",
            "did you mean signals?",
        ),
        (
            "[signals]\nmaxAge = \"soon\"\n",
            "line 2: a duration is",
            "take the line out",
        ),
        ("[signals\n", "line 1:", "take the line out"),
        (
            "agents.default = \"a:b\"\n",
            "agents.default: an agent id",
            "take the line out",
        ),
        ("signals.maxRows = -1\n", "line 1:", "take the line out"),
        (
            "session.mainKey = \"a b\"\n",
            "session.mainKey: a session key has no white space",
            "take the line out",
        ),
        (
            "session.resetByType.group.atHour = 24\n",
            "line 1: an hour is 0 to 23",
            "take the line out",
        ),
        (
            "session.maintenance.maxEntries = 0\n",
            "session.maintenance.maxEntries: 0 would leave nothing",
            "take the line out",
        ),
        (
            "wake.command = \"wake.sh\"\n",
            "wake.command: this path is not absolute",
            "take the line out",
        ),
        (
            "http.hosts = [\"tidings.example:7431\"]\n",
            "http.hosts: a host is a name without port or path",
            "take the line out",
        ),
        (
            "http.tlsCert = \"/x.pem\"\n",
            "http.tlsCert: a certificate without its key: http.tlsKey",
            "take the line out",
        ),
        (
            "http.tlsKey = \"/x.pem\"\n",
            "http.tlsKey: a key without its certificate: http.tlsCert",
            "take the line out",
        ),
        (
            "[session.maintenance]\nmaxDiskBytes = true\n",
            "line 2: a size is a number of bytes: 20mb, 1gb, 4096; or false",
            "take the line out",
        ),
    ] {
        let layers = Layers {
            given_file: Some(scratch.file("c.toml", content)),
            ..Layers::default()
        };
        let error = ApiError::from(layers.load().expect_err(content));
        assert_eq!(error.error_type, ErrorType::Configuration);
        assert!(
            error.message.contains(message),
            "{content}: {}",
            error.message
        );
        assert!(error.message.contains("c.toml"), "{}", error.message);
        let given = error.hint.unwrap_or_default();
        assert!(given.contains(hint), "{content}: {given}");
    }
}

#[test]
fn a_variable_without_a_key_and_a_file_that_is_not_there_are_named() {
    let layers = Layers {
        environment: variables(&[("TIDINGS__SIGNALS__MAXROW", "1")]),
        ..Layers::default()
    };
    let error = ApiError::from(layers.load().expect_err("no such key"));
    assert_eq!(
        error.message,
        "TIDINGS__SIGNALS__MAXROW: there is no such key"
    );
    assert_eq!(error.hint.as_deref(), Some("did you mean signals.maxRows?"));
    let layers = Layers {
        given_file: Some(PathBuf::from("/nowhere/config.toml")),
        ..Layers::default()
    };
    let error = layers.load().expect_err("absent").to_string();
    assert!(error.contains("/nowhere/config.toml"), "{error}");
}
