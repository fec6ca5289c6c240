//! Models that turns are run against.

use std::path::PathBuf;

use hyper::Uri;
use serde::{Deserialize, Serialize};

/// `[models.<name>]`: a model, and how it is reached. A later layer may say what an earlier
/// one left out, so each key is optional here; [`ModelSection::resolve`] asks for all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ModelSection {
    /// How the server is spoken to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ModelKind>,
    /// Where the server is, with its `/v1`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// What the server calls the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The environment variable with the key; absent for a server that asks for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// The authorities by which an `https` server is verified, PEM; absent: the machine's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<String>,
    /// How many tokens the model sees at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
}

/// How a model's server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelKind {
    /// `POST <baseUrl>/chat/completions`.
    Openai,
    /// `POST <baseUrl>/messages`.
    Anthropic,
}

/// A model with everything that is needed to ask it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// How the server is spoken to.
    pub kind: ModelKind,
    /// Where the server is, without a slash at the end.
    pub base_url: String,
    /// What the server calls the model.
    pub model: String,
    /// The environment variable with the key.
    pub api_key_env: Option<String>,
    /// The authorities by which its server is verified, in the place of the machine's.
    pub ca_file: Option<PathBuf>,
    /// How many tokens the model sees at most.
    pub context_window: u64,
}

/// The key of a section that does not say enough, and what is wrong.
pub(in crate::config) type Flaw = (&'static str, &'static str);

/// What is wrong with an address that cannot be asked.
pub(in crate::config) const NO_ADDRESS: &str =
    "it is http:// or https:// with a host, and without user, query or fragment";

/// True for an address that something can be asked at.
pub(in crate::config) fn is_address(url: &str) -> bool {
    let Ok(uri) = url.parse::<Uri>() else {
        return false;
    };
    let has_host = uri
        .authority()
        .is_some_and(|authority| !authority.host().is_empty() && !authority.as_str().contains('@'));
    matches!(uri.scheme_str(), Some("http" | "https")) && has_host && !url.contains('#')
}

impl ModelSection {
    /// The model, or the first key that is missing or cannot be meant.
    pub(in crate::config) fn resolve(&self) -> Result<Model, Flaw> {
        let base_url = self.base_url.as_deref().unwrap_or_default();
        let base_url = base_url.trim().trim_end_matches('/');
        let model = self.model.as_deref().unwrap_or_default().trim();
        let api_key_env = self.api_key_env.as_deref().map(str::trim);
        if base_url.is_empty() {
            return Err(("baseUrl", "it is needed: http:// or https://, with its /v1"));
        }
        if !is_address(base_url) || base_url.contains('?') {
            return Err(("baseUrl", NO_ADDRESS));
        }
        if model.is_empty() {
            return Err(("model", "it is needed: what the server calls the model"));
        }
        if api_key_env.is_some_and(|name| name.is_empty() || name.contains(['=', '\0'])) {
            return Err(("apiKeyEnv", "it is the name of an environment variable"));
        }
        let ca_file = self.ca_file.as_deref().map(PathBuf::from);
        if ca_file.as_deref().is_some_and(|path| !path.is_absolute()) {
            return Err((
                "caFile",
                "it is the absolute path of a file of certificates",
            ));
        }
        Ok(Model {
            kind: self
                .kind
                .ok_or(("kind", "it is needed: openai or anthropic"))?,
            base_url: base_url.to_owned(),
            model: model.to_owned(),
            api_key_env: api_key_env.map(str::to_owned),
            ca_file,
            context_window: self.context_window.filter(|tokens| *tokens > 0).ok_or((
                "contextWindow",
                "it is needed: how many tokens the model sees at most",
            ))?,
        })
    }
}
