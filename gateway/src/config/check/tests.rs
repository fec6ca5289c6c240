//! Settings of models, agents and compaction.

use std::path::Path;

use tidings_protocol::session_api::{ApiError, ErrorType};

use crate::config::{Config, ConfigError, Layers, ModelKind, ProviderKind, WorkspaceAccess, alone};

const MODEL: &str = "[models.small]\nkind = \"openai\"\nbaseUrl = \"http://127.0.0.1:1/v1/\"\n\
                     model = \"tiny\"\ncontextWindow = 8192\n";

fn read(content: &str) -> Result<Config, ConfigError> {
    alone(Path::new("/c.toml"), content.as_bytes())
}

/// What cannot be meant, what is said of it, and what was perhaps meant.
const WRONG: &[(&str, &str, &str)] = &[
    (
        "[agents.defaults.compaction]\nreserveToken = 1\n",
        "line 2: unknown field `reserveToken`",
        "did you mean reserveTokens?",
    ),
    (
        "[agents.defaults.compaction.memoryFlush]\nsoftTresholdToken = 1\n",
        "line 2: unknown field `softTresholdToken`",
        "did you mean softThresholdTokens?",
    ),
    (
        "[agents.defaults.compaction]\nmode = \"safe\"\n",
        "line 2: unknown variant `safe`",
        "",
    ),
    (
        "[agents.defaults.compaction]\nreserveTokens = -1\n",
        "line 2:",
        "",
    ),
    (
        "[agents.defaults.compaction]\nprovider = \"mine\"\n",
        "there is no [agents.defaults.compaction.providers.mine]",
        "",
    ),
    (
        "[agents.defaults.compaction.providers.p]\ntimeout = \"1s\"\n",
        "providers.p.command: a provider has a command or a url",
        "",
    ),
    (
        "[agents.defaults.compaction.providers.p]\nurl = \"ftp://x\"\n",
        "providers.p.url: it is http:// or https:// with a host",
        "",
    ),
    (
        "[agents.defaults.compaction.memoryFlush]\nprompt = \" \"\n",
        "memoryFlush.prompt: it says nothing",
        "",
    ),
    (
        "[compaction]\nenabled = true\n",
        "line 1: unknown field `compaction`",
        "did you mean agents.defaults.compaction?",
    ),
    (
        "[agents.default]\nmodel = \"x\"\n",
        "line 1: invalid type",
        "",
    ),
    (
        "[agents.defualts]\nmodel = \"x\"\n",
        "unknown field `defualts`",
        "did you mean defaults?",
    ),
    (
        "[agents]\ndefalt = \"x\"\n",
        "unknown field `defalt`",
        "did you mean default?",
    ),
    (
        "[agents.ops]\nworkspaceAcess = \"ro\"\n",
        "unknown field `workspaceAcess`",
        "did you mean workspaceAccess?",
    ),
    (
        "[agents.ops]\nworkspaceAccess = \"r\"\n",
        "unknown variant `r`, expected one of `rw`, `ro`, `none`",
        "",
    ),
    (
        "[agents.Ops]\nworkspaceAccess = \"none\"\n",
        "agents.Ops: this agent's id is \"ops\"",
        "",
    ),
    (
        "[agents.ops]\nworkspace = \"ops\"\n",
        "agents.ops.workspace: this path is not absolute",
        "",
    ),
    (
        "[agents.\"a:b\"]\nworkspace = \"/x\"\n",
        "agents.a:b: an agent id",
        "",
    ),
];

#[track_caller]
fn check_error(content: &str, message: &str, hint: &str) {
    let error = ApiError::from(read(content).expect_err(content));
    assert_eq!(error.error_type, ErrorType::Configuration);
    assert!(
        error.message.contains(message),
        "{content}: {}",
        error.message
    );
    assert!(error.message.contains("/c.toml"), "{}", error.message);
    let given = error.hint.unwrap_or_default();
    assert!(given.contains(hint), "{content}: {given}");
}

#[test]
fn the_documented_defaults_of_agents_and_compaction_hold() {
    let settings = Layers::default().load().expect("defaults").settings;
    let of_agents = settings
        .iter()
        .filter(|setting| setting.key.starts_with("agents."));
    let shown: Vec<String> = of_agents
        .map(|setting| {
            let key = setting.key.replace("agents.defaults.compaction", "…");
            format!("{key} {}", setting.value)
        })
        .collect();
    assert_eq!(
        shown,
        [
            "agents.default \"main\"",
            "….enabled true",
            "….keepRecentTokens 20000",
            "….maxActiveTranscriptBytes false",
            "….memoryFlush.enabled true",
            "….memoryFlush.softThresholdTokens 4000",
            "….midTurnPrecheck.enabled false",
            "….mode \"default\"",
            "….postCompactionSections []",
            "….qualityGuard.enabled true",
            "….reserveTokens 16384",
            "….reserveTokensFloor 20000",
            "….truncateAfterCompaction false",
        ]
    );
    let config = read("").expect("nothing");
    assert_eq!(config.default_model(), None);
    let flush = &config.agents.defaults.compaction.memory_flush;
    for text in [&flush.prompt, &flush.system_prompt] {
        assert!(text.contains("NO_REPLY"), "{text}");
    }
}

#[test]
fn a_model_an_agent_and_a_provider_are_read_as_they_are_written() {
    let content = format!(
        "{MODEL}apiKeyEnv = \"KEY\"\n\
         [agents]\ndefault = \"ops\"\ndefaults.model = \"small\"\n\
         [agents.ops]\nworkspace = \"/srv/ops\"\nworkspaceAccess = \"ro\"\n\
         [agents.defaults.compaction]\nkeepRecentTokens = 20000\nmode = \"safeguard\"\n\
         maxActiveTranscriptBytes = \"20mb\"\nprovider = \"mine\"\n\
         [agents.defaults.compaction.providers.mine]\ncommand = \"cat\"\ntimeout = \"9s\"\n"
    );
    let config = read(&content).expect("a configuration");
    let (name, model) = config.default_model().expect("a model");
    assert_eq!((name, model.kind), ("small", ModelKind::Openai));
    assert_eq!(model.base_url, "http://127.0.0.1:1/v1");
    assert_eq!(
        (model.api_key_env.as_deref(), model.context_window),
        (Some("KEY"), 8_192)
    );
    let agents = &config.agents;
    let state = Path::new("/state");
    assert_eq!(agents.workspace_access("ops"), WorkspaceAccess::Ro);
    assert_eq!(agents.workspace("ops", state), Path::new("/srv/ops"));
    assert_eq!(agents.workspace_access("other"), WorkspaceAccess::Rw);
    assert_eq!(
        agents.workspace("other", state),
        Path::new("/state/agents/other/workspace")
    );
    let compaction = &agents.defaults.compaction;
    assert_eq!(compaction.keep_recent_tokens.explicit(), Some(20_000));
    let sized = compaction.max_active_transcript_bytes.value();
    assert_eq!(sized.map(|size| size.0), Some(20 << 20));
    let provider = &compaction.providers["mine"];
    assert_eq!(
        provider.kind(),
        Some(ProviderKind::Command("cat".to_owned()))
    );
    assert_eq!(provider.time_limit().as_secs(), 9);
    let nothing_said = read(MODEL).expect("a configuration").agents.defaults;
    assert_eq!(nothing_said.compaction.keep_recent_tokens.explicit(), None);
}

#[test]
fn a_variable_sets_what_has_no_default_and_completes_a_model() {
    let dir = tempfile::tempdir().expect("scratch");
    let file = dir.path().join("c.toml");
    let content = MODEL.replace("contextWindow = 8192\n", "");
    std::fs::write(&file, content).expect("file");
    let layers = |window: &str| Layers {
        given_file: Some(file.clone()),
        environment: [
            ("TIDINGS__AGENTS__DEFAULTS__MODEL", "small"),
            ("TIDINGS__MODELS__SMALL__CONTEXTWINDOW", window),
            ("TIDINGS__AGENTS__DEFAULTS__COMPACTION__ENABLED", "false"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec(),
        ..Layers::default()
    };
    let config = layers("4096").load().expect("whole").config;
    let (_, model) = config.default_model().expect("a model");
    assert_eq!(model.context_window, 4_096);
    assert!(!config.agents.defaults.compaction.enabled);
    let error = layers("0").load().expect_err("no window").to_string();
    assert!(
        error.starts_with("TIDINGS__MODELS__SMALL__CONTEXTWINDOW: models.small.contextWindow:"),
        "{error}"
    );
}

#[test]
fn what_cannot_be_meant_of_models_names_its_key_and_what_was_perhaps_meant() {
    let model = |from: &str, to: &str| MODEL.replace(from, to);
    for (content, message, hint) in [
        (
            model("contextWindow = 8192\n", ""),
            "models.small.contextWindow: it is needed",
            "",
        ),
        (
            model("8192", "0"),
            "models.small.contextWindow: it is needed",
            "",
        ),
        (
            model("baseUrl", "baseURL"),
            "line 3: unknown field `baseURL`",
            "did you mean baseUrl?",
        ),
        (
            model("http://127.0.0.1:1/v1/", ""),
            "models.small.baseUrl: it is needed: http://",
            "",
        ),
        (
            model("http://127.0.0.1:1/v1/", "localhost"),
            "models.small.baseUrl: it is http:// or https:// with a host",
            "",
        ),
        (
            model("127.0.0.1:1/v1/", "me:secret@127.0.0.1/v1"),
            "models.small.baseUrl: it is http:// or https:// with a host, and without user",
            "",
        ),
        (
            model("/v1/", "/v1?key=secret"),
            "models.small.baseUrl: it is http:// or https:// with a host",
            "",
        ),
        (
            model("kind = \"openai\"\n", ""),
            "models.small.kind: it is needed: openai or anthropic",
            "",
        ),
        (
            model("openai", "cohere"),
            "line 2: unknown variant `cohere`, expected `openai` or `anthropic`",
            "",
        ),
        (model("tiny", " "), "models.small.model: it is needed", ""),
        (
            format!("{MODEL}caFile = \"ca.pem\"\n"),
            "models.small.caFile: it is the absolute path",
            "",
        ),
        (
            format!("{MODEL}apiKeyEnv = \"\"\n"),
            "models.small.apiKeyEnv: it is the name",
            "",
        ),
        (
            format!("{MODEL}[agents.defaults]\nmodel = \"smal\"\n"),
            "agents.defaults.model: there is no [models.smal]",
            "did you mean small?",
        ),
        (
            "[agents.defaults.compaction.memoryFlush]\nmodel = \"x\"\n".to_owned(),
            "memoryFlush.model: there is no [models.x]",
            "",
        ),
    ] {
        check_error(&content, message, hint);
    }
}

#[test]
fn what_cannot_be_meant_of_agents_and_compaction_names_its_key_and_what_was_perhaps_meant() {
    for (content, message, hint) in WRONG {
        check_error(content, message, hint);
    }
}
