//! Rules 2 to 12: who stands behind a record, and what its content makes of it.

use tidings_protocol::marker::ThreadKind;

use super::super::{Before, Ruling, Source, Value, Words};
use super::Outcome;
use super::content::Content;
use super::fields::{Fields, is, is_present, is_set};

/// Entry points through which programs speak.
const PROGRAM_ENTRYPOINTS: &[&str] = &["sdk-cli", "sdk-ts", "sdk-py", "mcp", "local-agent"];

/// True for an entry point through which a program speaks, and no person.
pub(crate) fn is_program_entrypoint(entrypoint: &str) -> bool {
    PROGRAM_ENTRYPOINTS.contains(&entrypoint)
}

/// Entry points where a person sits behind the SDK.
const EDITOR_ENTRYPOINTS: &[&str] = &["claude-vscode", "claude-desktop", "intellij"];

/// A record that rules 2 to 6 let pass.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// The program says that a human spoke.
    OriginHuman,
    /// It came from an editor, the desktop or a phone.
    Editor,
    /// Nothing speaks against a human.
    Open,
}

/// Rules 2 to 6: everything about a record but its content.
pub(super) fn standing(
    source: Source,
    fields: &Fields<'_>,
    before: &dyn Before,
) -> Result<Standing, Ruling> {
    let is_known = fields.id().is_some_and(|id| before.knows(&id));
    if is_known || is_present(fields.forked_from) {
        return Err(Ruling::not("copy"));
    }
    let is_side =
        is_set(fields.is_sidechain) || is_present(fields.agent_id) || is_present(fields.team_name);
    if is_side || source.side_file {
        return Err(Ruling::not("sidechain"));
    }
    flags(fields)?;
    let origin_human = origins(fields)?;
    if origin_human {
        return Ok(Standing::OriginHuman);
    }
    prompt_source(fields)
}

/// Rule 4.
fn flags(fields: &Fields<'_>) -> Result<(), Ruling> {
    let flags = [
        (is_set(fields.is_meta), "meta"),
        (is_set(fields.attachment.is_meta), "meta"),
        (is_set(fields.is_compact_summary), "compact-summary"),
        (is_set(fields.is_transcript_only), "transcript-only"),
        (is_set(fields.turn_companion), "turn-companion"),
        (is_present(fields.plan_content), "plan-content"),
        (is_set(fields.slack_human_turn), "slack-turn"),
    ];
    match flags.into_iter().find(|(set, _)| *set) {
        Some((_, rule)) => Err(Ruling::not(rule)),
        None => Ok(()),
    }
}

/// Rule 5; true when the program says that a human spoke.
fn origins(fields: &Fields<'_>) -> Result<bool, Ruling> {
    let mut says_human = false;
    for origin in [fields.attachment.origin, fields.origin] {
        let Some(kind) = origin.and_then(origin_kind) else {
            continue;
        };
        if !kind.is("human") {
            return Err(Ruling::not("origin"));
        }
        says_human = true;
    }
    if is_present(fields.turn_origin) && !is(fields.turn_origin, "human") {
        return Err(Ruling::not("turn-origin"));
    }
    if is(fields.prompt_source, "system") {
        return Err(Ruling::not("prompt-source"));
    }
    Ok(says_human)
}

/// What an origin says; one that is no object speaks for itself.
fn origin_kind(origin: Value<'_>) -> Option<Value<'_>> {
    let kind = if origin.is_object() {
        origin.get("kind")?
    } else {
        origin
    };
    (!kind.is_null()).then_some(kind)
}

/// Rule 6.
fn prompt_source(fields: &Fields<'_>) -> Result<Standing, Ruling> {
    let entrypoint = fields.entrypoint();
    let entrypoint = entrypoint.as_deref().unwrap_or_default();
    let Some(prompt_source) = fields.prompt_source.filter(|value| !value.is_null()) else {
        return if is_program_entrypoint(entrypoint) {
            Err(Ruling::not("programmatic"))
        } else {
            Ok(Standing::Open)
        };
    };
    match prompt_source.text().as_deref() {
        Some("typed" | "queued" | "suggestion_accepted") => Ok(Standing::Open),
        Some("sdk") if is_editor(entrypoint) => Ok(Standing::Editor),
        Some("sdk") => Err(Ruling::not("programmatic")),
        _ => Err(Ruling::unclassified("unknown-prompt-source")),
    }
}

fn is_editor(entrypoint: &str) -> bool {
    EDITOR_ENTRYPOINTS.contains(&entrypoint) || entrypoint.starts_with("remote")
}

/// The kind of thread that a record with this entry point belongs to.
pub(in super::super) fn thread_kind(entrypoint: Option<&str>) -> ThreadKind {
    match entrypoint {
        Some(entrypoint) if is_program_entrypoint(entrypoint) => ThreadKind::Programmatic,
        _ => ThreadKind::Person,
    }
}

/// Rules 7 to 12 for a `user` record.
pub(super) fn prompt(fields: &Fields<'_>, standing: Standing) -> Outcome {
    let content = Content::of(fields.content(), standing);
    let answers_a_tool = content.has_tool_result
        || is_present(fields.tool_use_result)
        || is_present(fields.source_tool_use_id);
    if answers_a_tool {
        return if content.texts.is_empty() {
            Ruling::not("tool-result").into()
        } else {
            Outcome::new(Ruling::human("approval-feedback"), content.words())
        };
    }
    let ruling = content.ruling(standing);
    let words = if ruling.is_human() {
        content.words()
    } else {
        Words::default()
    };
    Outcome::new(ruling, words)
}
