//! Agents: what holds for all of them, and what for one.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tidings_node::cli::nearest;
use toml::Value;

use super::compaction::Compaction;

const DEFAULT: &str = "default";
const DEFAULTS: &str = "defaults";

/// Agents: `default`, `[agents.defaults]`, and a section for each agent that is to differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agents {
    /// The agent of a bare session key, and of an adopted thread, where nobody names one.
    pub default: String,
    /// What holds for all of them.
    pub defaults: AgentDefaults,
    /// What holds for one, by its id.
    pub by_id: BTreeMap<String, AgentSettings>,
}

/// What holds for all agents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct AgentDefaults {
    /// The name of the model that turns are run against; absent: no turn is run here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// When older conversation is summarised, and how.
    pub compaction: Compaction,
}

/// What holds for one agent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct AgentSettings {
    /// Where it works and keeps its notes; absent: `<state-dir>/agents/<id>/workspace`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// What it may do there.
    pub workspace_access: WorkspaceAccess,
}

/// What an agent may do in its workspace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkspaceAccess {
    /// Read and write.
    #[default]
    Rw,
    /// Read.
    Ro,
    /// Nothing.
    None,
}

impl Agents {
    /// What a workspace's agent may do in it.
    #[must_use]
    pub fn workspace_access(&self, agent: &str) -> WorkspaceAccess {
        let settings = self.by_id.get(agent);
        settings
            .map(|settings| settings.workspace_access)
            .unwrap_or_default()
    }

    /// Where an agent works and keeps its notes.
    #[must_use]
    pub fn workspace(&self, agent: &str, state_dir: &Path) -> PathBuf {
        let settings = self.by_id.get(agent);
        match settings.and_then(|settings| settings.workspace.as_deref()) {
            Some(workspace) => PathBuf::from(workspace),
            None => state_dir.join("agents").join(agent).join("workspace"),
        }
    }
}

impl Default for Agents {
    fn default() -> Self {
        Self {
            default: "main".to_owned(),
            defaults: AgentDefaults::default(),
            by_id: BTreeMap::new(),
        }
    }
}

impl Serialize for Agents {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut agents = serializer.serialize_map(None)?;
        agents.serialize_entry(DEFAULT, &self.default)?;
        agents.serialize_entry(DEFAULTS, &self.defaults)?;
        for (id, settings) in &self.by_id {
            agents.serialize_entry(id, settings)?;
        }
        agents.end()
    }
}

impl<'de> Deserialize<'de> for Agents {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Sections;

        impl<'de> Visitor<'de> for Sections {
            type Value = Agents;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of agents")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Agents, A::Error> {
                let mut agents = Agents::default();
                while let Some(name) = map.next_key::<String>()? {
                    match name.as_str() {
                        DEFAULT => agents.default = map.next_value()?,
                        DEFAULTS => agents.defaults = map.next_value()?,
                        _ => {
                            let settings = settings(&name, map.next_value()?)?;
                            agents.by_id.insert(name, settings);
                        }
                    }
                }
                Ok(agents)
            }
        }

        deserializer.deserialize_map(Sections)
    }
}

/// The section of one agent. What is no section, or would be one under a name that is nearly
/// `defaults`, is a key that does not exist.
fn settings<E: Error>(name: &str, value: Value) -> Result<AgentSettings, E> {
    let is_section = value.is_table();
    AgentSettings::deserialize(value).map_err(|error| {
        let is_nearly = nearest::nearest(name, &[DEFAULTS]).is_some();
        if !is_section || is_nearly {
            E::unknown_field(name, &[DEFAULT, DEFAULTS])
        } else {
            E::custom(error.message())
        }
    })
}
