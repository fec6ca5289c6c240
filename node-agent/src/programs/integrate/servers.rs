//! Our MCP server in a program's configuration: JSON for Claude Code, TOML for Codex.

use serde::Serialize;
use toml_edit::{Array, DocumentMut, Item, Table, value};

use super::command::{Invocation, MCP, is_ours};
use super::json_text::{Broken, JsonText, Step};

/// The server's name in a configuration.
const NAME: &str = "tidings";
const JSON_SERVERS: &str = "mcpServers";
const TOML_SERVERS: &str = "mcp_servers";

#[derive(Debug, Serialize)]
struct Server<'a> {
    r#type: &'static str,
    command: &'a str,
    args: Vec<String>,
}

fn taken() -> Broken {
    Broken(format!(
        "it has another MCP server of the name {NAME}; give that one another name"
    ))
}

/// Claude's configuration with our server.
pub(super) fn install_json(text: &str, invocation: &Invocation) -> Result<String, Broken> {
    let json = JsonText::parse(text)?;
    let path = [Step::Member(JSON_SERVERS), Step::Member(NAME)];
    let server = Server {
        r#type: "stdio",
        command: &invocation.program,
        args: invocation.mcp_arguments(),
    };
    let json = match json.at(&path[..1]) {
        None => json.add(&[], Some(JSON_SERVERS), &serde_json::Map::new())?,
        Some(servers) if servers.names().is_none() => return Err(no_object()),
        Some(_) => json,
    };
    let json = match json_server(&json)? {
        None => json.add(&path[..1], Some(NAME), &server)?,
        Some((command, arguments)) if is_same(invocation, &command, &arguments) => json,
        Some(_) => json.replace(&path, &server)?,
    };
    Ok(json.as_str().to_owned())
}

/// Claude's configuration without our server.
pub(super) fn uninstall_json(text: &str) -> Result<String, Broken> {
    let mut json = JsonText::parse(text)?;
    if matches!(json_server(&json), Ok(Some(_))) {
        let path = [Step::Member(JSON_SERVERS), Step::Member(NAME)];
        json = json.remove(&path)?;
        let servers = json.at(&path[..1]).and_then(super::json_text::Node::names);
        if servers.is_some_and(|names| names.is_empty()) {
            json = json.remove(&path[..1])?;
        }
    }
    Ok(json.as_str().to_owned())
}

/// The command of our server in Claude's configuration.
pub(super) fn installed_json(text: &str) -> Result<Option<String>, Broken> {
    let found = json_server(&JsonText::parse(text)?)?;
    Ok(found.map(|(command, _)| command))
}

/// Command and arguments of our server; an error where another has its name.
fn json_server(json: &JsonText) -> Result<Option<(String, Vec<String>)>, Broken> {
    let path = [Step::Member(JSON_SERVERS), Step::Member(NAME)];
    let Some(server) = json.value(&path) else {
        return Ok(None);
    };
    let command = server["command"].as_str().unwrap_or_default().to_owned();
    let arguments = server["args"].as_array().cloned().unwrap_or_default();
    let arguments: Vec<String> = arguments
        .iter()
        .map(|argument| argument.as_str().unwrap_or_default().to_owned())
        .collect();
    own((command, arguments)).map(Some)
}

fn own((command, arguments): (String, Vec<String>)) -> Result<(String, Vec<String>), Broken> {
    if is_ours(&command) && arguments.first().is_some_and(|first| first == MCP) {
        Ok((command, arguments))
    } else {
        Err(taken())
    }
}

fn is_same(invocation: &Invocation, command: &str, arguments: &[String]) -> bool {
    command == invocation.program && arguments == invocation.mcp_arguments()
}

fn no_object() -> Broken {
    Broken(format!("its member {JSON_SERVERS} is no object"))
}

fn no_table() -> Broken {
    Broken(format!("its {TOML_SERVERS} is no table"))
}

/// Codex's configuration with our server; comments and everything else stay.
pub(super) fn install_toml(text: &str, invocation: &Invocation) -> Result<String, Broken> {
    let mut document = parse_toml(text)?;
    match toml_server(&document)? {
        Some((command, arguments)) if is_same(invocation, &command, &arguments) => {
            return Ok(text.to_owned());
        }
        _ => {}
    }
    let servers = document.entry(TOML_SERVERS).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let servers = servers.as_table_like_mut().ok_or_else(no_table)?;
    let arguments: Array = invocation.mcp_arguments().into_iter().collect();
    let server = servers.entry(NAME).or_insert(Item::Table(Table::new()));
    let server = server.as_table_like_mut().ok_or_else(taken)?;
    server.insert("command", value(&invocation.program));
    server.insert("args", value(arguments));
    Ok(document.to_string())
}

/// Codex's configuration without our server.
pub(super) fn uninstall_toml(text: &str) -> Result<String, Broken> {
    let mut document = parse_toml(text)?;
    if !matches!(toml_server(&document), Ok(Some(_))) {
        return Ok(text.to_owned());
    }
    let servers = document.get_mut(TOML_SERVERS);
    if let Some(servers) = servers.and_then(Item::as_table_like_mut) {
        servers.remove(NAME);
        if servers.is_empty() {
            document.remove(TOML_SERVERS);
        }
    }
    Ok(document.to_string())
}

/// The command of our server in Codex's configuration.
pub(super) fn installed_toml(text: &str) -> Result<Option<String>, Broken> {
    let found = toml_server(&parse_toml(text)?)?;
    Ok(found.map(|(command, _)| command))
}

/// True where Codex's configuration has hooks of its own beside those in `hooks.json`.
pub(super) fn has_inline_hooks(text: &str) -> bool {
    let hooks = parse_toml(text).ok().and_then(|document| {
        let hooks = document.get("hooks")?.as_table_like()?;
        Some(hooks.iter().any(|(event, _)| event != "state"))
    });
    hooks.unwrap_or(false)
}

fn parse_toml(text: &str) -> Result<DocumentMut, Broken> {
    text.parse::<DocumentMut>().map_err(|error| {
        // Its own words quote the line.
        let at = error.span().map_or(0, |span| span.start);
        let line = text[..at.min(text.len())].matches('\n').count() + 1;
        Broken(format!("it is no TOML: line {line}"))
    })
}

fn toml_server(document: &DocumentMut) -> Result<Option<(String, Vec<String>)>, Broken> {
    let Some(servers) = document.get(TOML_SERVERS) else {
        return Ok(None);
    };
    let servers = servers.as_table_like().ok_or_else(no_table)?;
    let Some(server) = servers.get(NAME) else {
        return Ok(None);
    };
    let server = server.as_table_like().ok_or_else(taken)?;
    let command = server.get("command").and_then(Item::as_str);
    let arguments = server.get("args").and_then(Item::as_array);
    let arguments = arguments.into_iter().flat_map(Array::iter);
    let arguments = arguments.map(|argument| argument.as_str().unwrap_or_default().to_owned());
    own((command.unwrap_or_default().to_owned(), arguments.collect())).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invocation() -> Invocation {
        Invocation {
            program: "/usr/local/bin/tidings".to_owned(),
            state_dir: Some("/srv/tidings".to_owned()),
        }
    }

    #[test]
    fn a_json_server_is_added_once_and_taken_out_again() {
        for before in [
            "{}",
            "{\n  \"numStartups\": 7,\n  \"mcpServers\": {\n    \"files\": {\n      \"command\": \"npx\"\n    }\n  },\n  \"projects\": {}\n}\n",
            "{\"mcpServers\":{}}",
        ] {
            let once = install_json(before, &invocation()).expect("installed");
            assert_eq!(install_json(&once, &invocation()), Ok(once.clone()));
            let json: serde_json::Value = serde_json::from_str(&once).expect("JSON");
            let server = &json["mcpServers"]["tidings"];
            assert_eq!(server["command"], "/usr/local/bin/tidings");
            assert_eq!(
                server["args"],
                serde_json::json!(["mcp", "--state-dir", "/srv/tidings"])
            );
            let back = uninstall_json(&once).expect("uninstalled");
            let expected = if before == "{\"mcpServers\":{}}" {
                "{}"
            } else {
                before
            };
            assert_eq!(back, expected);
        }
    }

    #[test]
    fn a_toml_server_is_added_once_and_comments_stay() {
        let before = "# mine\nmodel = \"o\" # the good one\n\n[mcp_servers.files]\ncommand = \"npx\"\n\n[hooks.state]\n";
        let once = install_toml(before, &invocation()).expect("installed");
        assert!(
            once.starts_with("# mine\nmodel = \"o\" # the good one\n"),
            "{once}"
        );
        assert!(
            once.contains(
                "[mcp_servers.tidings]\ncommand = \"/usr/local/bin/tidings\"\n\
                 args = [\"mcp\", \"--state-dir\", \"/srv/tidings\"]\n"
            ),
            "{once}"
        );
        assert_eq!(install_toml(&once, &invocation()), Ok(once.clone()));
        assert_eq!(uninstall_toml(&once).expect("uninstalled"), before);
        assert!(!has_inline_hooks(&once));
        assert!(has_inline_hooks("[[hooks.Stop]]\n"));
        let fresh = install_toml("", &invocation()).expect("installed");
        assert_eq!(uninstall_toml(&fresh).expect("uninstalled"), "");
    }

    #[test]
    fn settings_beside_ours_survive_a_change_of_the_command() {
        let old = "[mcp_servers.tidings]\ncommand = \"/old/tidings-node\"\nargs = [\"mcp\"]\nstartup_timeout_sec = 20 # slow disk\n";
        let new = install_toml(old, &invocation()).expect("installed");
        assert!(
            new.contains("startup_timeout_sec = 20 # slow disk"),
            "{new}"
        );
        assert!(!new.contains("/old/"), "{new}");
    }

    #[test]
    fn somebody_elses_server_of_our_name_is_left_alone() {
        let json = "{\"mcpServers\":{\"tidings\":{\"command\":\"other\"}}}";
        let toml = "[mcp_servers.tidings]\nurl = \"https://example.org\"\n";
        for refused in [
            install_json(json, &invocation()),
            install_toml(toml, &invocation()),
        ] {
            assert!(
                refused
                    .expect_err("refused")
                    .to_string()
                    .contains("another MCP server")
            );
        }
        assert_eq!(uninstall_json(json).expect("the same"), json);
        assert_eq!(uninstall_toml(toml).expect("the same"), toml);
    }

    #[test]
    fn a_broken_file_is_a_named_error_that_repeats_nothing() {
        let error = install_toml("a = 1\nsecret = = 2\n", &invocation()).expect_err("broken");
        assert_eq!(error.to_string(), "it is no TOML: line 2");
        let error = install_json("{\"mcpServers\": 3}", &invocation()).expect_err("broken");
        assert_eq!(error.to_string(), "its member mcpServers is no object");
        let error = install_toml("mcp_servers = 3", &invocation()).expect_err("broken");
        assert_eq!(error.to_string(), "its mcp_servers is no table");
    }
}
