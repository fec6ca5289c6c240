//! `integrate claude --rewake`: who asks for it.

use serde_json::{Value, json};
use tidings_tests::binaries;

use crate::integrating::{CLAUDE_JSON, Desk, SETTINGS, changes, text};

#[test]
fn who_asks_for_it_gets_a_hook_that_wakes_and_keeps_it_until_it_is_taken_out() {
    let desk = Desk::new();
    let settings = desk.write(".claude/settings.json", SETTINGS);
    let servers = desk.write(".claude.json", CLAUDE_JSON);
    let plain = desk.integrate(&["claude"]).done();
    assert_eq!(plain.get("rewakeCommand"), None);
    let without = text(&settings);
    let done = desk.integrate(&["claude", "--rewake"]).done();
    assert_eq!(changes(&done), ["edited", "none"]);
    let command = format!("{} hook claude-code --rewake", binaries().tidings.display());
    assert_eq!(done["rewakeCommand"], command);
    let json: Value = serde_json::from_str(&text(&settings)).expect("JSON");
    let hook = &json["hooks"]["Stop"][1]["hooks"][0];
    assert_eq!(
        (&hook["command"], &hook["asyncRewake"]),
        (&json!(command), &json!(true))
    );

    let with = text(&settings);
    let again = desk.integrate(&["claude"]).done();
    assert_eq!(changes(&again), ["none", "none"]);
    assert_eq!(text(&settings), with);
    let notes = again["notes"].to_string();
    assert!(
        notes.contains("tidings integrate claude --uninstall"),
        "{notes}"
    );
    let doctor = desk.run(&binaries().tidings, &["doctor"]).json();
    assert_eq!(doctor["integrations"][0]["rewakes"], true, "{doctor}");
    // With the other program on the same machine it stays, and calls that one.
    desk.run(&binaries().node, &["integrate", "claude"]).done();
    let node = format!("{} hook claude-code --rewake", binaries().node.display());
    assert!(text(&settings).contains(&node) && !text(&settings).contains(&command));
    desk.integrate(&["claude", "--uninstall"]).done();
    assert_eq!(
        (text(&settings), text(&servers)),
        (SETTINGS.to_owned(), CLAUDE_JSON.to_owned())
    );
    desk.integrate(&["claude"]).done();
    assert_eq!(text(&settings), without);

    let codex = desk.integrate(&["codex", "--rewake"]);
    assert_eq!(codex.code, 2, "{codex}");
    assert_eq!(
        desk.integrate(&["claude", "--rewake", "--uninstall"]).code,
        2
    );
}
