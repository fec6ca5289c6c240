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
const MODEL_KEYS: [&str; 6] = [
    "apiKeyEnv",
    "baseUrl",
    "caFile",
    "contextWindow",
    "kind",
    "model",
];

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
mod tests;
