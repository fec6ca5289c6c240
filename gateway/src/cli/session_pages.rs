//! How sessions look: the pages of `tidings sessions`.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use tidings_node::cli::format::{utc, utc_or_nothing};
use tidings_node::cli::{Column, Note, Page, Table};
use tidings_protocol::session_api::{
    Adopted, ApiError, ErrorType, SessionEntry, SessionRow, SessionStatus, Sessions, StateChange,
    StateChanges, UpstreamState,
};
use tidings_protocol::{ActorType, Host};

/// An entry as it is shown: its own fields at top level, in their order, behind what the
/// gateway says about it.
#[derive(Debug)]
pub(super) struct ShownEntry {
    members: Vec<(String, Value)>,
}

/// The members of a JSON object, in their order.
struct Members(Vec<(String, Value)>);

impl ShownEntry {
    /// Takes the entry's object apart. A field of the entry that has the name of one of the
    /// gateway's own members stays behind it.
    pub(super) fn of(entry: SessionEntry) -> Result<Self, ApiError> {
        let Members(fields) = serde_json::from_str(&entry.entry).map_err(|_| {
            ApiError::new(
                ErrorType::InvalidData,
                format!("the entry of {} is not a JSON object", entry.session_key),
            )
        })?;
        let mut members = vec![
            ("sessionKey".to_owned(), entry.session_key.as_str().into()),
            ("agentId".to_owned(), entry.agent_id.into()),
            ("stateVersion".to_owned(), entry.state_version.into()),
            ("archived".to_owned(), entry.archived.into()),
            ("pinned".to_owned(), entry.pinned.into()),
        ];
        let own = members.len();
        for (name, value) in fields {
            if name != "schemaVersion" && members[..own].iter().all(|(taken, _)| *taken != name) {
                members.push((name, value));
            }
        }
        Ok(Self { members })
    }
}

impl Serialize for ShownEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.members.len()))?;
        for (name, value) in &self.members {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

pub(super) fn adopted_page(adopted: &Adopted) -> Page {
    let link = &adopted.link;
    let page = Page::of(format_args!("{}\n", adopted.session_key)).with(Note::Info(format!(
        "{} {} on {} {} from byte {} of {}",
        link.catalog,
        link.thread_id,
        host_name(&link.host),
        if link.created {
            "is followed"
        } else {
            "was adopted before and is followed"
        },
        link.offset,
        link.path,
    )));
    match &adopted.watched {
        Some(watched) => page.with(Note::Info(watch_line(watched))),
        None => page.with(Note::Hint(format!(
            "tidings watch add WATCHER {}",
            adopted.session_key
        ))),
    }
}

/// Whether a watch stands, in one line.
pub(super) fn watch_line(watched: &tidings_protocol::session_api::Watched) -> String {
    match (watched.watched, watched.from_version, &watched.reason) {
        (true, Some(version), _) => format!("watched from version {version}"),
        (true, None, _) => "watched".to_owned(),
        (false, _, Some(reason)) => format!("not watched: {reason}"),
        (false, _, None) => "not watched".to_owned(),
    }
}

pub(super) fn list_page(page: &Sessions) -> Page {
    if page.sessions.is_empty() {
        return Page::empty(
            "no sessions",
            "tidings catalog list shows threads, tidings sessions adopt takes one in",
        );
    }
    let table = Table::new([
        Column::left("SESSION"),
        Column::right("VERSION"),
        Column::left("CHANGED (UTC)"),
        Column::left("HOST").where_filled(),
        Column::left("MARKS").where_filled(),
        Column::left("LABEL").where_filled(),
    ])
    .with_rows(&page.sessions, |row| {
        [
            key_with_agent(row),
            row.state_version
                .map(|version| version.to_string())
                .unwrap_or_default(),
            utc(row.updated_at),
            shown_host(row),
            marks(row),
            row.label.clone().unwrap_or_default(),
        ]
    });
    let shown = Page::of(table);
    match page.next_offset {
        Some(next) if page.has_more => shown.with(Note::Hint(format!(
            "{} of {} shown; the next: tidings sessions list --offset {next}",
            page.sessions.len(),
            page.count
        ))),
        _ => shown,
    }
}

/// Where its thread is, by the name that keys and commands have.
fn shown_host(row: &SessionRow) -> String {
    match (&row.node, &row.host) {
        (Some(name), _) => name.to_string(),
        (None, Some(host)) => host_name(host),
        (None, None) => String::new(),
    }
}

/// A bare key says nothing about its agent.
fn key_with_agent(row: &SessionRow) -> String {
    if row.session_key.is_agent_qualified() {
        row.session_key.to_string()
    } else {
        format!("{} (of {})", row.session_key, row.agent_id)
    }
}

fn marks(row: &SessionRow) -> String {
    let marks = [(row.pinned, "pinned"), (row.archived, "archived")];
    let set = marks.into_iter().filter(|(set, _)| *set);
    set.map(|(_, mark)| mark).collect::<Vec<_>>().join(", ")
}

/// The host as commands take it.
pub(super) fn host_name(host: &Host) -> String {
    match host {
        Host::GatewayLocal => "local".to_owned(),
        Host::Node(id) => id.to_string(),
    }
}

pub(super) fn show_page(entry: &ShownEntry) -> Page {
    let width = entry.members.iter().map(|(name, _)| name.chars().count());
    let width = width.max().unwrap_or_default();
    let lines = entry.members.iter().map(|(name, value)| {
        let shown = match value {
            Value::String(text) => text.replace('\n', " "),
            Value::Number(number) if name.ends_with("At") => number
                .as_i64()
                .map_or_else(|| number.to_string(), |time| format!("{} UTC", utc(time))),
            other => other.to_string(),
        };
        format!("{name:<width$}  {shown}\n")
    });
    Page::of(lines.collect::<String>())
}

/// How a session that was marked stands now, in one line.
pub(super) fn mark_page(entry: &ShownEntry) -> Page {
    let is = |name: &str| {
        entry
            .members
            .contains(&(name.to_owned(), Value::Bool(true)))
    };
    let stands = match (is("archived"), is("pinned")) {
        (true, _) => "archived",
        (false, true) => "active, pinned",
        (false, false) => "active, not pinned",
    };
    let key = entry.members.iter().find(|(name, _)| name == "sessionKey");
    let key = key.and_then(|(_, key)| key.as_str()).unwrap_or_default();
    Page::of(format_args!("{key}  {stands}\n"))
}

pub(super) fn status_page(status: &SessionStatus) -> Page {
    let mut text = format!("{}  version {}\n", status.session_key, status.state_version);
    if let Some(upstream) = &status.upstream {
        let until = match upstream.observed_at {
            Some(time) => format!("observed until {} UTC", utc(time)),
            None => "not observed yet".to_owned(),
        };
        text.extend([
            "upstream ",
            upstream_name(upstream.state),
            ", ",
            &until,
            "
",
        ]);
    }
    let Some(changes) = &status.state_changes else {
        return Page::of(text).with(Note::Hint(format!(
            "tidings sessions status {} --changes-since VERSION",
            status.session_key
        )));
    };
    if changes.events.is_empty() {
        text.push_str("nothing changed\n");
    } else {
        text.extend(["\n", &changes_table(&changes.events).to_string()]);
    }
    changes_notes(changes)
        .into_iter()
        .fold(Page::of(text), Page::with)
}

fn changes_notes(changes: &StateChanges) -> Vec<Note> {
    let mut notes = Vec::new();
    if changes.history_gap {
        notes.push(Note::Warning(format!(
            "events have been pruned: this is not all that changed (kept from {} on)",
            changes.earliest_available_sequence
        )));
    }
    if let Some(next) = changes.next_since.filter(|_| changes.truncated) {
        notes.push(Note::Hint(format!("there is more: --changes-since {next}")));
    }
    notes
}

fn changes_table(events: &[StateChange]) -> Table<5> {
    Table::new([
        Column::right("SEQUENCE"),
        Column::left("OCCURRED (UTC)"),
        Column::left("KIND"),
        Column::left("ACTOR"),
        Column::left("SUMMARY"),
    ])
    .with_rows(events, |event| {
        [
            event.sequence.to_string(),
            utc_or_nothing(Some(event.occurred_at)),
            event.kind.to_string(),
            actor_name(event.actor_type, event.actor_id.as_deref()),
            event.summary.clone(),
        ]
    })
}

/// Who did it: the acting session, else the type.
pub(super) fn actor_name(actor_type: ActorType, actor_id: Option<&str>) -> String {
    actor_id.unwrap_or(actor_type.as_str()).to_owned()
}

/// The state of an upstream, as JSON has it.
pub(super) fn upstream_name(state: UpstreamState) -> &'static str {
    match state {
        UpstreamState::Live => "live",
        UpstreamState::Offline => "offline",
        UpstreamState::Blocked => "blocked",
        UpstreamState::Unlinked => "unlinked",
    }
}

#[cfg(test)]
mod tests {
    use tidings_protocol::SessionKey;

    use super::*;

    fn entry(text: &str) -> SessionEntry {
        SessionEntry {
            session_key: SessionKey::parse("agent:main:main").expect("key"),
            agent_id: "main".to_owned(),
            state_version: 7,
            archived: false,
            pinned: true,
            entry: text.to_owned(),
        }
    }

    #[test]
    fn the_fields_of_an_entry_keep_their_order_and_never_hide_the_gateways() {
        let shown = ShownEntry::of(entry(
            r#"{"zeta":{"b":1},"agentId":"other","alpha":1.5,"schemaVersion":9,"pinned":false}"#,
        ))
        .expect("object");
        assert_eq!(
            serde_json::to_string(&shown).expect("text"),
            r#"{"sessionKey":"agent:main:main","agentId":"main","stateVersion":7,"archived":false,"pinned":true,"zeta":{"b":1},"alpha":1.5}"#
        );
    }

    #[test]
    fn an_entry_that_is_no_object_is_bad_data_and_its_text_is_not_repeated() {
        for text in ["", "[]", "null", "{\"a\":", "canary"] {
            let error = ShownEntry::of(entry(text)).expect_err(text);
            assert_eq!(error.error_type, ErrorType::InvalidData);
            assert_eq!(
                error.message,
                "the entry of agent:main:main is not a JSON object"
            );
        }
    }
}
