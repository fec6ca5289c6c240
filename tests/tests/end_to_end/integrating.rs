//! `integrate` on configurations as people have them, by the real programs; and `doctor`,
//! which says how they stand.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tidings_tests::{Answer, Scratch, binaries, run};

/// As Claude Code writes it itself, with what its user has put there.
pub(crate) const SETTINGS: &str = r#"{
  "$schema": "https://json.schemastore.org/claude-code-settings.json",
  "model": "opus",
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "Bash",
        "hooks": [{ "type": "command", "command": "$HOME/bin/guard", "timeout": 10 }]
      }
    ]
  },
  "permissions": { "allow": ["Bash(ls:*)"], "deny": [] },
  "statusLine": { "type": "command", "command": "~/.claude/status.sh" }
}
"#;

pub(crate) const CLAUDE_JSON: &str = r#"{
  "numStartups": 412,
  "oauthAccount": { "emailAddress": "ada@example.org", "token": "sk-secret" },
  "mcpServers": { "files": { "command": "npx", "args": ["-y", "files"] } },
  "projects": { "/home/ada/engine": { "history": [] } }
}"#;

const CONFIG_TOML: &str = r#"# My Codex.
model = "of-today"   # the good one
approval_policy = "on-request"

[mcp_servers.files]
command = "npx"
args = ["-y", "files"]

[hooks.state."/home/ada/.codex/hooks.json:Stop:0:0"]
trusted_hash = "sha256:0"

[projects."/home/ada/engine"]
trust_level = "trusted"
"#;

pub(crate) struct Desk {
    scratch: Scratch,
}

impl Desk {
    pub(crate) fn new() -> Self {
        let desk = Self {
            scratch: Scratch::new(),
        };
        for folder in [".claude", ".codex"] {
            fs::create_dir_all(desk.home(folder)).expect("a folder");
        }
        desk
    }

    fn home(&self, name: &str) -> PathBuf {
        self.scratch.home().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home(name);
        fs::write(&path, text).expect("a configuration");
        path
    }

    pub(crate) fn run(&self, program: &Path, arguments: &[&str]) -> Answer {
        let mut command = self.scratch.command(program);
        run(command.args(arguments).arg("--json"))
    }

    pub(crate) fn integrate(&self, arguments: &[&str]) -> Answer {
        let arguments = [&["integrate"], arguments].concat();
        self.run(&binaries().tidings, &arguments)
    }
}

pub(crate) fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("a file")
}

pub(crate) fn changes(answer: &Value) -> Vec<String> {
    let files = answer["files"].as_array().expect("files");
    let change = |file: &Value| file["change"].as_str().expect("a change").to_owned();
    files.iter().map(change).collect()
}

#[test]
fn claude_gets_its_hooks_and_server_once_keeps_all_it_had_and_gives_them_back() {
    let desk = Desk::new();
    let settings = desk.write(".claude/settings.json", SETTINGS);
    let servers = desk.write(".claude.json", CLAUDE_JSON);

    let shown = desk.integrate(&["claude", "--dry-run"]).done();
    assert_eq!(changes(&shown), ["edited", "edited"]);
    assert_eq!(shown["dryRun"], true);
    assert_eq!(text(&settings), SETTINGS, "nothing was written");
    assert!(!shown.to_string().contains("secret"), "{shown}");

    let done = desk.integrate(&["claude"]).done();
    assert_eq!(changes(&done), ["edited", "edited"]);
    assert_eq!(
        done["files"][0]["difference"],
        shown["files"][0]["difference"]
    );
    let backup = done["files"][0]["backup"].as_str().expect("a copy");
    assert_eq!(text(Path::new(backup)), SETTINGS);
    let command = format!("{} hook claude-code", binaries().tidings.display());
    assert_eq!(done["command"], *command);

    let after: Value = serde_json::from_str(&text(&settings)).expect("JSON");
    for (event, at) in [("PreToolUse", 1), ("UserPromptSubmit", 0), ("Stop", 0)] {
        let hook = &after["hooks"][event][at]["hooks"][0];
        assert_eq!(
            (&hook["type"], &hook["command"]),
            (&json!("command"), &json!(command))
        );
    }
    let before: Value = serde_json::from_str(SETTINGS).expect("JSON");
    assert_eq!(
        after["hooks"]["PreToolUse"][0],
        before["hooks"]["PreToolUse"][0]
    );
    for member in ["model", "permissions", "statusLine", "$schema"] {
        assert_eq!(after[member], before[member]);
    }
    let after: Value = serde_json::from_str(&text(&servers)).expect("JSON");
    let own = &after["mcpServers"]["tidings"];
    assert_eq!(
        own["command"],
        *binaries().tidings.to_str().expect("a path")
    );
    assert_eq!(own["args"], json!(["mcp"]));
    assert_eq!(after["oauthAccount"]["token"], "sk-secret");

    let again = desk.integrate(&["claude"]).done();
    assert_eq!(changes(&again), ["none", "none"]);
    assert_eq!(again["files"][0]["difference"], json!([]));

    // The other program on the same machine takes its place; there are never two.
    let other = desk.run(&binaries().node, &["integrate", "claude"]).done();
    assert_eq!(changes(&other), ["edited", "edited"]);
    assert!(!text(&settings).contains(&command));

    let back = desk.integrate(&["claude", "--uninstall"]).done();
    assert_eq!(changes(&back), ["edited", "edited"]);
    assert_eq!(
        (text(&settings), text(&servers)),
        (SETTINGS.to_owned(), CLAUDE_JSON.to_owned())
    );
    let nothing = desk.integrate(&["claude", "--uninstall"]).done();
    assert_eq!(changes(&nothing), ["none", "none"]);
}

#[test]
fn codex_keeps_its_comments_and_gets_a_file_of_hooks_that_goes_again() {
    let desk = Desk::new();
    let config = desk.write(".codex/config.toml", CONFIG_TOML);
    let hooks = desk.home(".codex/hooks.json");
    let done = desk
        .integrate(&["codex", "--state-dir", "/srv/it's tidings"])
        .done();
    assert_eq!(changes(&done), ["created", "edited"]);
    let notes = done["notes"].to_string();
    assert!(
        notes.contains("/hooks") && !notes.contains("two places"),
        "{notes}"
    );
    let written: Value = serde_json::from_str(&text(&hooks)).expect("JSON");
    // Its root may hold nothing else, and no event that Codex does not know.
    let members: Vec<&String> = written.as_object().expect("an object").keys().collect();
    assert_eq!(members, ["hooks"]);
    let command = written["hooks"]["Stop"][0]["hooks"][0]["command"].as_str();
    let expected = format!(
        r"{} hook codex --state-dir '/srv/it'\''s tidings'",
        binaries().tidings.display()
    );
    assert_eq!(command, Some(&*expected));
    assert_eq!(written["hooks"].get("SessionEnd"), None);
    let toml = text(&config);
    assert!(
        toml.starts_with("# My Codex.\nmodel = \"of-today\"   # the good one\n"),
        "{toml}"
    );
    assert!(
        toml.contains("args = [\"mcp\", \"--state-dir\", \"/srv/it's tidings\"]"),
        "{toml}"
    );
    assert!(toml.contains("trusted_hash = \"sha256:0\""), "{toml}");
    let mode = fs::metadata(&hooks).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let back = desk.integrate(&["codex", "--uninstall"]).done();
    assert_eq!(changes(&back), ["removed", "edited"]);
    assert!(!hooks.exists());
    assert_eq!(text(&config), CONFIG_TOML);
}

#[test]
fn one_broken_file_leaves_every_file_as_it_is_and_is_named() {
    let desk = Desk::new();
    for (settings, servers, named) in [
        ("{ \"hooks\": ", "{}", "settings.json"),
        (SETTINGS, "{\"mcpServers\": []}", ".claude.json"),
        ("{\"hooks\": {\"Stop\": \"x\"}}", "{}", "hooks.Stop"),
        (
            SETTINGS,
            "{\"mcpServers\": {\"tidings\": {\"command\": \"other\"}}}",
            "another",
        ),
    ] {
        let paths = [
            desk.write(".claude/settings.json", settings),
            desk.write(".claude.json", servers),
        ];
        let refused = desk.integrate(&["claude"]);
        let error = refused.refused();
        assert_eq!((refused.code, &error["type"]), (65, &json!("invalid_data")));
        assert!(
            error["message"].as_str().expect("a text").contains(named),
            "{error}"
        );
        assert_eq!(paths.each_ref().map(|path| text(path)), [settings, servers]);
    }
    let dangling = desk.home(".claude/settings.json");
    fs::remove_file(&dangling).expect("removed");
    symlink("/nonexistent/settings.json", &dangling).expect("a link");
    let error = desk.integrate(&["claude"]).refused();
    assert!(
        error["message"]
            .as_str()
            .expect("a text")
            .contains("leads nowhere")
    );
}

#[test]
fn a_project_gets_a_command_that_holds_for_everybody_and_a_link_stays_a_link() {
    let desk = Desk::new();
    let project = desk.scratch.path().to_owned();
    let real = project.join("shared.json");
    fs::write(&real, "{}\n").expect("a file");
    fs::create_dir(project.join(".claude")).expect("a folder");
    symlink("../shared.json", project.join(".claude/settings.json")).expect("a link");
    let done = desk.integrate(&["claude", "--scope", "project"]).done();
    assert_eq!(changes(&done), ["edited", "created"]);
    let link = fs::symlink_metadata(project.join(".claude/settings.json")).expect("there");
    assert!(link.is_symlink());
    let settings: Value = serde_json::from_str(&text(&real)).expect("JSON");
    let command = &settings["hooks"]["Stop"][0]["hooks"][0]["command"];
    assert_eq!(command, "tidings hook claude-code");
    let servers: Value = serde_json::from_str(&text(&project.join(".mcp.json"))).expect("JSON");
    assert_eq!(servers["mcpServers"]["tidings"]["command"], "tidings");

    // The plugin is the same, for who prefers one.
    let plugin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../integrations/claude-plugin");
    let shipped: Value =
        serde_json::from_str(&text(&plugin.join("hooks/hooks.json"))).expect("JSON");
    assert_eq!(shipped["hooks"], settings["hooks"]);
    let shipped: Value = serde_json::from_str(&text(&plugin.join(".mcp.json"))).expect("JSON");
    assert_eq!(shipped, servers);
    let manifest = text(&plugin.join(".claude-plugin/plugin.json"));
    let manifest: Value = serde_json::from_str(&manifest).expect("JSON");
    assert_eq!(manifest["name"], "tidings");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));

    // A second plugin wakes, for who wants that.
    desk.integrate(&["claude", "--scope", "project", "--rewake"])
        .done();
    let settings: Value = serde_json::from_str(&text(&real)).expect("JSON");
    let plugin = plugin.with_file_name("claude-plugin-rewake");
    let shipped: Value =
        serde_json::from_str(&text(&plugin.join("hooks/hooks.json"))).expect("JSON");
    assert_eq!(shipped["hooks"]["Stop"][0], settings["hooks"]["Stop"][1]);
    let manifest = text(&plugin.join(".claude-plugin/plugin.json"));
    let manifest: Value = serde_json::from_str(&manifest).expect("JSON");
    assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn doctor_says_how_each_program_stands_and_what_to_do_next() {
    let desk = Desk::new();
    let node = &binaries().node;
    let look = || -> (Value, Vec<String>) {
        let answer = desk.run(node, &["doctor"]);
        let document = answer.json();
        let findings = document["findings"].as_array().expect("findings").clone();
        let of_claude = findings
            .iter()
            .map(|finding| format!("{} {}", finding["what"], finding["hint"]))
            .filter(|finding| finding.contains("Claude Code"));
        (document["integrations"][0].clone(), of_claude.collect())
    };
    let (integration, findings) = look();
    assert_eq!(
        integration,
        json!({
            "program": "claude-code",
            "standing": "not_installed",
            "rewakes": false,
            "next": "tidings-node integrate claude",
        })
    );
    assert_eq!(findings, Vec::<String>::new(), "nobody asked for it");

    desk.run(node, &["integrate", "claude"]).done();
    let (integration, findings) = look();
    assert_eq!(integration["standing"], "installed", "{integration}");
    assert_eq!(integration["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(findings, Vec::<String>::new());

    // Its command is another version, then no program, then gone.
    let settings = desk.home(".claude/settings.json");
    let now = node.display().to_string();
    let stand_in = desk.scratch.folder("bin").join("tidings-node");
    let there = text(&settings).replace(&now, &stand_in.display().to_string());
    fs::write(&settings, there).expect("another command");
    for (script, what) in [
        (
            Some("#!/bin/sh\necho tidings-node 0.0.1\n"),
            "version 0.0.1",
        ),
        (Some("#!/nonexistent\n"), "does not run"),
        (None, "is not there"),
    ] {
        match script {
            Some(script) => {
                fs::write(&stand_in, script).expect("a script");
                let mode = fs::Permissions::from_mode(0o755);
                fs::set_permissions(&stand_in, mode).expect("a script");
            }
            None => fs::remove_file(&stand_in).expect("removed"),
        }
        let (integration, findings) = look();
        assert_eq!(integration["standing"], "incomplete", "{what}");
        assert_eq!(findings.len(), 1, "{what}");
        assert!(findings[0].contains(what), "{what}: {findings:?}");
        assert!(
            findings[0].contains("tidings-node integrate claude"),
            "{findings:?}"
        );
    }
    let nested = format!("{{\"a\": {}{}}}", "[".repeat(200_000), "]".repeat(200_000));
    for (broken, what) in [
        ("{", "settings.json: it is no JSON"),
        (&nested, "settings.json: it is nested more than 128 deep"),
    ] {
        fs::write(&settings, broken).expect("broken");
        let (integration, findings) = look();
        assert_eq!(integration["standing"], "unreadable");
        assert!(findings[0].contains(what), "{findings:?}");
    }
    // Also where nothing of ours can be seen.
    fs::remove_file(desk.home(".claude.json")).expect("removed");
    assert_eq!(look().0["standing"], "unreadable");
}

#[test]
fn a_configuration_that_can_mean_two_things_or_is_nested_without_end_is_refused() {
    let desk = Desk::new();
    let nested = format!("{{\"a\": {}{}}}", "[".repeat(200_000), "]".repeat(200_000));
    for (broken, what) in [
        (
            r#"{"hooks":{},"hooks":{"Stop":[]}}"#,
            "it has a member twice",
        ),
        (&nested, "it is nested more than 128 deep"),
    ] {
        let settings = desk.write(".claude/settings.json", broken);
        for arguments in [&["claude"][..], &["claude", "--uninstall"]] {
            let answer = desk.integrate(arguments);
            assert_eq!(answer.code, 65, "{answer}");
            let error = answer.json()["error"].clone();
            assert_eq!(error["type"], "invalid_data");
            let message = error["message"].as_str().expect("a message");
            assert!(message.contains(what), "{message}");
            assert_eq!(text(&settings), broken, "it is left as it is");
        }
    }
}
