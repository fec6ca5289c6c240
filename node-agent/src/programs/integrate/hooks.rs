//! Our hooks in a program's configuration: added beside everybody else's, and taken out again.

use serde::Serialize;

use super::super::Program;
use super::super::hook::REWAKE_LIMIT;
use super::command::{Invocation, hook_of_ours, rewakes};
use super::json_text::{Broken, JsonText, Step};

/// How long a program waits for a hook before it goes on without it, in seconds. A hook of
/// ours ends by itself long before.
const TIMEOUT_SECONDS: u64 = 5;
/// The same for a hook that waits in the background.
const REWAKE_TIMEOUT_SECONDS: u64 = REWAKE_LIMIT.as_secs() + 60;
const HOOKS: &str = "hooks";

/// Hooks of one kind that fire under one condition; none is always.
#[derive(Debug, Serialize)]
struct Group<'a> {
    hooks: [Handler<'a>; 1],
}

#[derive(Debug, Serialize)]
struct Handler<'a> {
    r#type: &'static str,
    command: &'a str,
    timeout: u64,
    /// It runs beside the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    r#async: Option<bool>,
    /// And wakes it with its end.
    #[serde(rename = "asyncRewake", skip_serializing_if = "Option::is_none")]
    async_rewake: Option<bool>,
}

impl<'a> Handler<'a> {
    fn of(command: &'a str) -> Self {
        let in_background = rewakes(command).then_some(true);
        Self {
            r#type: "command",
            command,
            timeout: match in_background {
                None => TIMEOUT_SECONDS,
                Some(_) => REWAKE_TIMEOUT_SECONDS,
            },
            r#async: in_background,
            async_rewake: in_background,
        }
    }
}

/// A hook that a configuration is to have: for which event, and the command.
pub(super) type Wanted = (&'static str, String);

/// The hooks of a program, with the one that wakes it or without.
pub(super) fn wanted(program: Program, invocation: &Invocation, rewakes: bool) -> Vec<Wanted> {
    let command = invocation.hook(program);
    let events = events(program).iter();
    let mut wanted: Vec<Wanted> = events.map(|event| (*event, command.clone())).collect();
    if rewakes {
        wanted.push((IDLE_AFTER, invocation.rewake_hook(program)));
    }
    wanted
}

/// The event after which a program is idle.
const IDLE_AFTER: &str = "Stop";

/// The events that a program has hooks for.
pub(super) fn events(program: Program) -> &'static [&'static str] {
    match program {
        Program::ClaudeCode => &[
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "SubagentStart",
            "SubagentStop",
            "Stop",
            "StopFailure",
            "PostCompact",
            "SessionEnd",
        ],
        Program::Codex => &[
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "SubagentStart",
            "SubagentStop",
            "Stop",
            "PostCompact",
        ],
    }
}

/// One handler in a configuration.
struct Found {
    event: String,
    group: usize,
    handler: usize,
    command: String,
}

/// The configuration with these hooks, and no other of ours.
pub(super) fn install(text: &str, wanted: &[Wanted]) -> Result<String, Broken> {
    let is = |found: &Found, (event, command): &Wanted| {
        found.event == *event && found.command == *command
    };
    let mut json = without(JsonText::parse(text)?, |found| {
        !wanted.iter().any(|wanted| is(found, wanted))
    })?;
    if json.at(&[Step::Member(HOOKS)]).is_none() {
        json = json.add(&[], Some(HOOKS), &serde_json::Map::new())?;
    }
    for new in wanted {
        if ours(&json)?.iter().any(|found| is(found, new)) {
            continue;
        }
        let (event, command) = new;
        let group = Group {
            hooks: [Handler::of(command)],
        };
        let path = [Step::Member(HOOKS), Step::Member(event)];
        json = if json.at(&path).is_some() {
            json.add(&path, None, &group)?
        } else {
            json.add(&path[..1], Some(event), &[group])?
        };
    }
    Ok(json.as_str().to_owned())
}

/// The configuration without any hook of ours.
pub(super) fn uninstall(text: &str) -> Result<String, Broken> {
    let json = without(JsonText::parse(text)?, |_| true)?;
    Ok(json.as_str().to_owned())
}

/// The events that a hook of ours is called for, each with the command.
pub(super) fn installed(text: &str) -> Result<Vec<(String, String)>, Broken> {
    let found = ours(&JsonText::parse(text)?)?;
    let pairs = found.into_iter().map(|found| (found.event, found.command));
    Ok(pairs.collect())
}

/// True where a hook of ours wakes the program.
pub(super) fn rewaking(text: &str) -> bool {
    installed(text).is_ok_and(|hooks| hooks.iter().any(|(_, command)| rewakes(command)))
}

/// Takes handlers of ours out, and with them what holds nothing any more.
fn without(mut json: JsonText, is_unwanted: impl Fn(&Found) -> bool) -> Result<JsonText, Broken> {
    while let Some(found) = ours(&json)?.into_iter().find(&is_unwanted) {
        let path = [
            Step::Member(HOOKS),
            Step::Member(&found.event),
            Step::Item(found.group),
            Step::Member(HOOKS),
            Step::Item(found.handler),
        ];
        json = json.remove(&path)?;
        let is_empty = |json: &JsonText, depth: usize| {
            json.at(&path[..depth]).is_some_and(|node| {
                node.len() == Some(0) || node.names().is_some_and(|names| names.is_empty())
            })
        };
        // A group without handlers, an event without groups, no events at all.
        if is_empty(&json, 4) {
            json = json.remove(&path[..3])?;
        }
        for depth in [2, 1] {
            if is_empty(&json, depth) {
                json = json.remove(&path[..depth])?;
            }
        }
    }
    Ok(json)
}

/// Our handlers. What is not as a program has it is an error that says where.
fn ours(json: &JsonText) -> Result<Vec<Found>, Broken> {
    let Some(hooks) = json.at(&[Step::Member(HOOKS)]) else {
        return Ok(Vec::new());
    };
    let events = hooks
        .names()
        .ok_or_else(|| Broken("its member hooks is no object".to_owned()))?;
    let mut found = Vec::new();
    for event in events {
        let path = [Step::Member(HOOKS), Step::Member(&event)];
        let groups = json.at(&path).and_then(super::json_text::Node::len);
        let groups = groups.ok_or_else(|| Broken(format!("its hooks.{event} is no array")))?;
        for group in 0..groups {
            let path = [path[0], path[1], Step::Item(group), Step::Member(HOOKS)];
            let handlers = json.at(&path).and_then(super::json_text::Node::len);
            for handler in 0..handlers.unwrap_or(0) {
                let path = [path[0], path[1], path[2], path[3], Step::Item(handler)];
                let value = json.value(&path).unwrap_or_default();
                let command = value["command"].as_str().unwrap_or_default();
                if hook_of_ours(command).is_some() {
                    found.push(Found {
                        event: event.clone(),
                        group,
                        handler,
                        command: command.to_owned(),
                    });
                }
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const COMMAND: &str = "/usr/local/bin/tidings hook claude-code";

    fn installed_in(text: &str) -> String {
        install(text, &hooks_of(Program::ClaudeCode, false)).expect("installed")
    }

    fn hooks_of(program: Program, rewakes: bool) -> Vec<Wanted> {
        let invocation = Invocation {
            program: "/usr/local/bin/tidings".to_owned(),
            state_dir: None,
        };
        wanted(program, &invocation, rewakes)
    }

    /// Configurations as people have them.
    const LIVED_IN: [&str; 5] = [
        "",
        "{}",
        "{\n  \"model\": \"opus\",\n  \"permissions\": {\n    \"allow\": [\"Bash(ls:*)\"]\n  }\n}\n",
        "{\n\t\"hooks\": {\n\t\t\"PreToolUse\": [\n\t\t\t{\n\t\t\t\t\"matcher\": \"Bash\",\n\t\t\t\t\"hooks\": [\n\t\t\t\t\t{ \"type\": \"command\", \"command\": \"my-guard\" }\n\t\t\t\t]\n\t\t\t}\n\t\t],\n\t\t\"Notification\": []\n\t}\n}\n",
        "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"say done\"}]}]},\"z\":1}",
    ];

    #[test]
    fn a_second_run_changes_nothing_and_taking_them_out_gives_the_first_bytes_back() {
        for before in LIVED_IN {
            let once = installed_in(before);
            assert_eq!(installed_in(&once), once, "{before}");
            let there = installed(&once).expect("hooks");
            let found: Vec<&str> = there.iter().map(|(event, _)| event.as_str()).collect();
            for event in events(Program::ClaudeCode) {
                let times = found.iter().filter(|found| *found == event).count();
                assert_eq!(times, 1, "{event} in {once}");
            }
            let back = uninstall(&once).expect("uninstalled");
            let expected = if before.is_empty() { "{}\n" } else { before };
            assert_eq!(back, expected);
        }
    }

    #[test]
    fn the_hook_that_wakes_stands_beside_the_others_in_the_background_and_goes_with_them() {
        for before in LIVED_IN {
            let with = hooks_of(Program::ClaudeCode, true);
            let once = install(before, &with).expect("installed");
            assert_eq!(install(&once, &with).expect("installed"), once);
            let json: Value = serde_json::from_str(&once).expect("JSON");
            let groups = json["hooks"]["Stop"].as_array().expect("groups");
            let waiting = &groups[groups.len() - 1]["hooks"][0];
            assert_eq!(
                *waiting,
                serde_json::json!({
                    "type": "command",
                    "command": format!("{COMMAND} --rewake"),
                    "timeout": 86_460,
                    "async": true,
                    "asyncRewake": true,
                })
            );
            assert_eq!(installed_in(&once), installed_in(before), "without it");
            let back = uninstall(&once).expect("uninstalled");
            let expected = if before.is_empty() { "{}\n" } else { before };
            assert_eq!(back, expected);
        }
    }

    #[test]
    fn what_others_have_put_there_stays() {
        let after = installed_in(LIVED_IN[3]);
        let json: Value = serde_json::from_str(&after).expect("JSON");
        let guard = &json["hooks"]["PreToolUse"][0];
        assert_eq!(guard["matcher"], "Bash");
        assert_eq!(guard["hooks"][0]["command"], "my-guard");
        assert_eq!(
            json["hooks"]["PreToolUse"][1]["hooks"][0]["command"],
            COMMAND
        );
        assert_eq!(json["hooks"]["PreToolUse"][1]["hooks"][0]["timeout"], 5);
    }

    #[test]
    fn another_command_of_ours_is_replaced_wherever_it_stands() {
        let old = "{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\
                   \"/old/tidings-node hook claude-code\"},{\"type\":\"command\",\"command\":\
                   \"say done\"}]}],\"Notification\":[{\"hooks\":[{\"type\":\"command\",\
                   \"command\":\"tidings hook claude-code\"}]}]}}";
        let after = installed_in(old);
        let json: Value = serde_json::from_str(&after).expect("JSON");
        assert_eq!(json["hooks"]["Notification"], Value::Null);
        assert_eq!(json["hooks"]["Stop"][0]["hooks"][0]["command"], "say done");
        assert_eq!(json["hooks"]["Stop"][1]["hooks"][0]["command"], COMMAND);
        assert!(!after.contains("/old/"));
    }

    #[test]
    fn what_is_not_as_a_program_has_it_is_named_and_left_alone() {
        for (text, error) in [
            ("{\"hooks\": []}", "its member hooks is no object"),
            ("{\"hooks\": {\"Stop\": {}}}", "its hooks.Stop is no array"),
            ("{\"hooks\": {", "it is no JSON: line 1, column 11"),
        ] {
            let refused = install(text, &hooks_of(Program::Codex, false)).expect_err(text);
            assert_eq!(refused.to_string(), error);
            assert_eq!(uninstall(text).expect_err(text).to_string(), error);
        }
    }
}
