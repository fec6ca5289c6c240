//! What the types alone cannot say of a configuration.

use std::fmt;
use std::path::Path;

use tidings_node::cli::nearest;
use tidings_protocol::SessionKey;

use super::layers::{ConfigError, Configuration, Origin};
use super::schema::Config;
use super::values::Switch;
use crate::state::AgentId;

const NO_KEY: &str = "a certificate without its key: http.tlsKey";
const NO_CERTIFICATE: &str = "a key without its certificate: http.tlsCert";
/// A longer name of a model is a mistake.
const MAX_MODEL_NAME_BYTES: usize = 128;

impl Configuration {
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        self.check_keys()?;
        self.check_upkeep()?;
        self.check_doors()?;
        self.check_models()?;
        self.check_compaction()
    }

    fn check_keys(&self) -> Result<(), ConfigError> {
        let Config {
            agents, session, ..
        } = &self.config;
        AgentId::parse(&agents.default).map_err(|error| self.wrong("agents.default", &error))?;
        for (id, settings) in &agents.by_id {
            let key = format!("agents.{id}");
            let agent = AgentId::parse(id).map_err(|error| self.wrong(&key, &error))?;
            if agent.as_str() != id {
                // Its sessions' keys spell it so, and its settings would be nobody's.
                let message = format!("this agent's id is {:?}", agent.as_str());
                return Err(self.wrong(&key, &message));
            }
            let workspace = settings.workspace.as_deref().map(Path::new);
            if workspace.is_some_and(|path| !path.is_absolute()) {
                let key = format!("{key}.workspace");
                return Err(self.wrong(&key, &"this path is not absolute"));
            }
        }
        let main_key = format!("agent:{}:{}", agents.default, session.main_key);
        SessionKey::parse(&main_key).map_err(|error| self.wrong("session.mainKey", &error))?;
        Ok(())
    }

    fn check_upkeep(&self) -> Result<(), ConfigError> {
        let upkeep = &self.config.session.maintenance;
        let nothing_left = [
            ("session.maintenance.maxEntries", upkeep.max_entries == 0),
            (
                "session.maintenance.pruneAfter",
                upkeep.prune_after.0.is_zero(),
            ),
        ];
        match nothing_left.iter().find(|(_, is_zero)| *is_zero) {
            Some((key, _)) => Err(self.wrong(key, &"0 would leave nothing")),
            None => Ok(()),
        }
    }

    /// What stands in a configuration means the same wherever the gateway is started.
    fn check_doors(&self) -> Result<(), ConfigError> {
        let Config { http, wake, .. } = &self.config;
        for (key, path) in [
            ("http.tlsCert", &http.tls_cert),
            ("http.tlsKey", &http.tls_key),
            ("wake.command", &wake.command),
        ] {
            if let Switch::On(path) = path
                && !path.is_absolute()
            {
                return Err(self.wrong(key, &"this path is not absolute"));
            }
        }
        let is_name = |host: &String| {
            let known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-');
            !host.is_empty() && host.chars().all(known)
        };
        if !http.hosts.iter().all(is_name) {
            return Err(self.wrong("http.hosts", &"a host is a name without port or path"));
        }
        match (&http.tls_cert, &http.tls_key) {
            (Switch::On(_), Switch::Off) => Err(self.wrong("http.tlsCert", &NO_KEY)),
            (Switch::Off, Switch::On(_)) => Err(self.wrong("http.tlsKey", &NO_CERTIFICATE)),
            _ => Ok(()),
        }
    }

    fn check_models(&self) -> Result<(), ConfigError> {
        for (name, section) in &self.config.models {
            let key = format!("models.{name}");
            let is_name = !name.trim().is_empty() && !name.chars().any(char::is_control);
            if !is_name || name.len() > MAX_MODEL_NAME_BYTES {
                let limit = format!("a model's name has 1 to {MAX_MODEL_NAME_BYTES} bytes");
                return Err(self.wrong(&key, &limit));
            }
            section
                .resolve()
                .map_err(|(part, message)| self.wrong(&format!("{key}.{part}"), &message))?;
        }
        let defaults = &self.config.agents.defaults;
        self.check_model_name("agents.defaults.model", defaults.model.as_deref())?;
        self.check_model_name(
            "agents.defaults.compaction.memoryFlush.model",
            defaults.compaction.memory_flush.model.as_deref(),
        )
    }

    fn check_model_name(&self, key: &str, name: Option<&str>) -> Result<(), ConfigError> {
        let models = &self.config.models;
        match name {
            Some(name) if !models.contains_key(name) => {
                let known: Vec<&str> = models.keys().map(String::as_str).collect();
                let message = format!("there is no [models.{name}]");
                Err(self.wrong_name(key, &message, (name, &known)))
            }
            _ => Ok(()),
        }
    }

    fn check_compaction(&self) -> Result<(), ConfigError> {
        let compaction = &self.config.agents.defaults.compaction;
        let Some((key, message)) = compaction.flaw() else {
            return Ok(());
        };
        let key = format!("agents.defaults.compaction.{key}");
        let given = compaction.provider.as_deref().unwrap_or_default();
        let known: Vec<&str> = compaction.providers.keys().map(String::as_str).collect();
        Err(self.wrong_name(&key, &message, (given, &known)))
    }

    fn wrong(&self, key: &str, message: &dyn fmt::Display) -> ConfigError {
        self.wrong_name(key, message, ("", &[]))
    }

    /// What is wrong with a key that gives a name, and which of the known names was perhaps
    /// meant. A key that is missing came from where its section did.
    fn wrong_name(
        &self,
        key: &str,
        message: &dyn fmt::Display,
        (given, known): (&str, &[&str]),
    ) -> ConfigError {
        let section = key.rsplit_once('.').map_or(key, |(section, _)| section);
        let is_in = |name: &str| {
            name.strip_prefix(section)
                .is_some_and(|n| n.starts_with('.'))
        };
        let said = |setting: &&super::Setting| setting.key == key;
        let settings = &self.settings;
        let setting = settings.iter().find(said).or_else(|| {
            let mut beside = settings.iter().filter(|setting| is_in(&setting.key));
            beside.find(|setting| setting.origin != Origin::Default)
        });
        ConfigError::Invalid {
            origin: setting.map_or(Origin::Default, |setting| setting.origin.clone()),
            message: format!("{key}: {message}"),
            hint: nearest::nearest(given, known).map(|name| format!("did you mean {name}?")),
        }
    }
}

#[cfg(test)]
mod tests;
