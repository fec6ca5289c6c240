//! Layer over layer: defaults, `/etc/tidings/config.toml`, the state directory's
//! `config.toml`, `--config`, then `TIDINGS__SECTION__KEY` of the environment.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tidings_node::cli::nearest;
use tidings_node::private_files::{self, FileError};
use tidings_protocol::session_api::{ApiError, ErrorType};
use toml::{Table, Value};

use super::legacy;
use super::schema::Config;

/// A configuration file larger than this is none.
const MAX_FILE_BYTES: u64 = 1024 * 1024;
/// The beginning of every environment variable that sets a value.
const ENVIRONMENT_PREFIX: &str = "TIDINGS__";

/// Keys that are not listed where nobody sets them: a variable may set them all the same.
const KEYS_WITHOUT_DEFAULT: [&str; 6] = [
    "agents.defaults.compaction.beforeCommand",
    "agents.defaults.compaction.memoryFlush.model",
    "agents.defaults.compaction.memoryFlush.prompt",
    "agents.defaults.compaction.memoryFlush.systemPrompt",
    "agents.defaults.compaction.provider",
    "agents.defaults.model",
];
/// The keys of a model.
const MODEL_KEYS: [&str; 5] = ["apiKeyEnv", "baseUrl", "contextWindow", "kind", "model"];

/// Where the layers come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layers {
    /// Files, the weakest first; each may be absent.
    pub optional_files: Vec<PathBuf>,
    /// The file of `--config`; it must be there.
    pub given_file: Option<PathBuf>,
    /// Environment variables.
    pub environment: Vec<(String, String)>,
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// This build.
    Default,
    /// A file.
    File(PathBuf),
    /// An environment variable.
    Environment(String),
}

/// One value, with its key and where it came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Its key, sections first: `signals.maxAge`.
    pub key: String,
    /// Its value.
    pub value: Value,
    /// Where it came from.
    pub origin: Origin,
}

/// The effective configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Configuration {
    /// The values.
    pub config: Config,
    /// Each value with its origin, by key.
    pub settings: Vec<Setting>,
}

/// Why there is no effective configuration. All of it is the operator's to mend.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file, or a variable, says something that cannot be meant.
    #[error("{origin}: {message}")]
    Invalid {
        /// Which.
        origin: Origin,
        /// What is wrong, with its place.
        message: String,
        /// What was perhaps meant.
        hint: Option<String>,
    },
}

/// What a file alone means: over the defaults, and nothing over it.
pub fn alone(path: &Path, content: &[u8]) -> Result<Config, ConfigError> {
    let mut merged = Merged::defaults();
    merged.add_file(path, content)?;
    Ok(merged.finish()?.config)
}

impl Layers {
    /// The layers of a gateway with this state directory.
    #[must_use]
    pub fn of_this_process(state_dir: &Path, given_file: Option<PathBuf>) -> Self {
        Self {
            optional_files: vec![
                PathBuf::from("/etc/tidings/config.toml"),
                state_dir.join("config.toml"),
            ],
            given_file,
            environment: std::env::vars_os()
                .filter_map(|(name, value)| {
                    Some((name.into_string().ok()?, value.into_string().ok()?))
                })
                .collect(),
        }
    }

    /// Reads all layers: the whole of them, or an error.
    pub fn load(&self) -> Result<Configuration, ConfigError> {
        let mut merged = Merged::defaults();
        for file in &self.optional_files {
            match private_files::read(file, MAX_FILE_BYTES) {
                Err(error) if error.is_not_found() => {}
                content => merged.add_file(file, &content?)?,
            }
        }
        if let Some(file) = &self.given_file {
            merged.add_file(file, &private_files::read(file, MAX_FILE_BYTES)?)?;
        }
        for (name, value) in &self.environment {
            if let Some(path) = strip_prefix_ignoring_case(name, ENVIRONMENT_PREFIX) {
                merged.add_variable(name, path, value)?;
            }
        }
        merged.finish()
    }
}

/// The values so far, by key.
struct Merged {
    values: BTreeMap<String, (Value, Origin)>,
}

impl Merged {
    fn defaults() -> Self {
        let table = Table::try_from(Config::default()).unwrap_or_default();
        let mut merged = Self {
            values: BTreeMap::new(),
        };
        merged.add_table(table, &Origin::Default);
        merged
    }

    fn add_table(&mut self, table: Table, origin: &Origin) {
        for (key, value) in leaves("", table) {
            self.values.insert(key, (value, origin.clone()));
        }
    }

    fn add_file(&mut self, path: &Path, content: &[u8]) -> Result<(), ConfigError> {
        let origin = Origin::File(path.to_owned());
        let text = std::str::from_utf8(content)
            .map_err(|_| invalid(&origin, "it is not UTF-8".to_owned()))?;
        // Alone against the schema: so the error names this file and its line.
        let table =
            toml::from_str::<Table>(text).map_err(|error| invalid(&origin, place(text, &error)))?;
        toml::from_str::<Config>(text).map_err(|error| invalid(&origin, place(text, &error)))?;
        self.add_table(table, &origin);
        Ok(())
    }

    fn add_variable(&mut self, name: &str, path: &str, text: &str) -> Result<(), ConfigError> {
        let origin = Origin::Environment(name.to_owned());
        let wanted = path.replace("__", ".");
        let of_models = self.models();
        let known: Vec<&str> = self
            .values
            .keys()
            .chain(&of_models)
            .map(String::as_str)
            .chain(KEYS_WITHOUT_DEFAULT)
            .collect();
        let Some(key) = known.iter().find(|key| key.eq_ignore_ascii_case(&wanted)) else {
            return Err(ConfigError::Invalid {
                origin,
                message: "there is no such key".to_owned(),
                hint: nearest::nearest(&wanted, &known).map(|key| format!("did you mean {key}?")),
            });
        };
        let key = (*key).to_owned();
        // `50000` and `true` are themselves, everything else is text.
        let value = toml::from_str::<Table>(&format!("value = {text}"))
            .ok()
            .and_then(|mut table| table.remove("value"))
            .unwrap_or_else(|| Value::String(text.to_owned()));
        let mut alone = Table::new();
        insert(&mut alone, &key, value.clone());
        Config::deserialize(alone).map_err(|error| invalid(&origin, error.message().to_owned()))?;
        self.values.insert(key, (value, origin));
        Ok(())
    }

    /// The keys of the models that a file names.
    fn models(&self) -> Vec<String> {
        let named = self.values.keys().filter_map(|key| {
            let (section, _) = key.rsplit_once('.')?;
            section.starts_with("models.").then_some(section)
        });
        let named: BTreeSet<&str> = named.collect();
        let keys = |section: &&str| MODEL_KEYS.map(|key| format!("{section}.{key}"));
        named.iter().flat_map(keys).collect()
    }

    fn finish(mut self) -> Result<Configuration, ConfigError> {
        legacy::give_effect(&mut self.values);
        // Defaults are the schema's: so it sees what somebody said, and what nobody did.
        let mut table = Table::new();
        for (key, (value, origin)) in &self.values {
            if *origin != Origin::Default {
                insert(&mut table, key, value.clone());
            }
        }
        let config = Config::deserialize(table)
            .map_err(|error| invalid(&Origin::Default, error.message().to_owned()))?;
        let setting = |(key, (value, origin))| Setting { key, value, origin };
        let configuration = Configuration {
            config,
            settings: self.values.into_iter().map(setting).collect(),
        };
        configuration.check()?;
        Ok(configuration)
    }
}

fn invalid(origin: &Origin, message: String) -> ConfigError {
    ConfigError::Invalid {
        origin: origin.clone(),
        hint: meant(&message),
        message,
    }
}

/// The nearest of the names that an unknown field's error lists; else where that name is one.
fn meant(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("unknown field `")?;
    let mut quoted = rest.split('`');
    let given = quoted.next()?;
    let names: Vec<&str> = quoted.skip(1).step_by(2).collect();
    let nearest = nearest::nearest(given, &names).map(str::to_owned);
    let name = nearest.or_else(|| elsewhere(given))?;
    Some(format!("did you mean {name}?"))
}

/// The one key of the schema whose last name, or whose section's, is this.
fn elsewhere(name: &str) -> Option<String> {
    let defaults = Merged::defaults();
    let keys = defaults.values.keys().filter_map(|key| {
        let mut upto = 0;
        key.split('.').find_map(|part| {
            upto += part.len() + 1;
            (part == name).then(|| &key[..upto - 1])
        })
    });
    let keys: BTreeSet<&str> = keys.collect();
    match keys.len() {
        1 => keys.first().map(|key| (*key).to_owned()),
        _ => None,
    }
}

/// The error's message with the line it is about.
fn place(text: &str, error: &toml::de::Error) -> String {
    let message = error.message();
    match error.span() {
        Some(span) => {
            let before = text.get(..span.start).unwrap_or_default();
            format!("line {}: {message}", before.matches('\n').count() + 1)
        }
        None => message.to_owned(),
    }
}

/// Every value of a table with its key, sections first. A name with a dot in it is quoted.
pub(super) fn leaves(section: &str, table: Table) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for (name, value) in table {
        let name = if name.contains('.') {
            format!("\"{name}\"")
        } else {
            name
        };
        let key = if section.is_empty() {
            name
        } else {
            format!("{section}.{name}")
        };
        match value {
            Value::Table(inner) => found.extend(leaves(&key, inner)),
            value => found.push((key, value)),
        }
    }
    found
}

fn insert(table: &mut Table, key: &str, value: Value) {
    let (section, rest) = first_name(key);
    match rest {
        None => {
            table.insert(section.to_owned(), value);
        }
        Some(rest) => {
            let inner = table
                .entry(section)
                .or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(inner) = inner {
                insert(inner, rest, value);
            }
        }
    }
}

/// The first name of a key, and what follows it.
fn first_name(key: &str) -> (&str, Option<&str>) {
    let quoted = key.strip_prefix('"').and_then(|key| key.split_once('"'));
    match quoted {
        Some((name, rest)) => (name, rest.strip_prefix('.')),
        None => match key.split_once('.') {
            Some((name, rest)) => (name, Some(rest)),
            None => (key, None),
        },
    }
}

fn strip_prefix_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix)
        .then(|| &text[prefix.len()..])
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Environment(name) => f.write_str(name),
        }
    }
}

impl From<ConfigError> for ApiError {
    fn from(error: ConfigError) -> Self {
        let answer = Self::new(ErrorType::Configuration, error.to_string());
        match error {
            ConfigError::Invalid {
                hint: Some(hint), ..
            } => answer.with_hint(hint),
            ConfigError::Invalid {
                origin: Origin::File(file),
                ..
            } => answer.with_hint(format!("mend {}, or take the line out", file.display())),
            _ => answer.with_hint("mend it, or take it away: the defaults hold then"),
        }
    }
}

#[cfg(test)]
mod tests {
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
}
