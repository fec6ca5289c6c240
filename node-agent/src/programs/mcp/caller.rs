//! Which conversation makes a call: what the program says with the call, else what it gave to
//! this process when it started it, followed to where its hooks say that it is now.

use std::path::PathBuf;

use serde_json::{Map, Value};
use tidings_protocol::session_api::Caller;
use tidings_protocol::{Catalog, ThreadId};

use super::super::binding;

/// The environment variable in which Claude Code names its conversation.
pub(super) const CLAUDE_VARIABLE: &str = "CLAUDE_CODE_SESSION_ID";
/// Where Codex says more about the turn that makes a call: an object, or its text.
const CODEX_TURN: &str = "x-codex-turn-metadata";
/// The names by which Codex calls its conversation, the surest first.
const CODEX_NAMES: [&str; 5] = [
    "threadId",
    "thread_id",
    "conversationId",
    "session_id",
    "sessionId",
];

/// Finds callers.
#[derive(Debug)]
pub(super) struct Callers {
    state_dir: PathBuf,
    claude: Option<ThreadId>,
}

impl Callers {
    /// As the environment of this process has it.
    pub(super) fn of_process(state_dir: PathBuf) -> Self {
        let named = std::env::var(CLAUDE_VARIABLE).ok();
        Self {
            state_dir,
            claude: named.and_then(|id| ThreadId::parse(&id).ok()),
        }
    }

    /// Who makes a call that came with this.
    pub(super) fn of_call(&self, meta: &Map<String, Value>) -> Option<Caller> {
        if let Some(thread_id) = codex_thread(meta) {
            return Some(Caller {
                catalog: Catalog::Codex,
                thread_id,
            });
        }
        let first = self.claude.as_ref()?;
        Some(Caller {
            catalog: Catalog::Claude,
            thread_id: binding::current(&self.state_dir, Catalog::Claude, first),
        })
    }
}

/// The thread that Codex names in what comes with a call.
fn codex_thread(meta: &Map<String, Value>) -> Option<ThreadId> {
    let turn = match meta.get(CODEX_TURN) {
        Some(Value::Object(turn)) => Some(turn.clone()),
        Some(Value::String(text)) => serde_json::from_str(text).ok(),
        _ => None,
    };
    let named = |members: &Map<String, Value>| {
        let mut names = CODEX_NAMES.iter();
        names.find_map(|name| ThreadId::parse(members.get(*name)?.as_str()?).ok())
    };
    turn.as_ref().and_then(named).or_else(|| named(meta))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn callers(claude: Option<&str>) -> Callers {
        Callers {
            state_dir: PathBuf::from("/nonexistent"),
            claude: claude.map(|id| ThreadId::parse(id).expect("a thread")),
        }
    }

    fn found(callers: &Callers, meta: &Value) -> Option<String> {
        let caller = callers.of_call(meta.as_object().expect("an object"))?;
        Some(format!("{} {}", caller.catalog, caller.thread_id))
    }

    #[test]
    fn codex_names_its_thread_with_each_call() {
        for meta in [
            json!({"threadId": "t-1", "x-codex-turn-metadata": {"session_id": "t-1"}}),
            json!({"x-codex-turn-metadata": {"session_id": "root", "thread_id": "t-1"}}),
            json!({"x-codex-turn-metadata": "{\"thread_id\":\"t-1\",\"turn_id\":\"9\"}"}),
            json!({"session_id": "t-1", "progressToken": 4}),
        ] {
            let caller = found(&callers(Some("c-1")), &meta);
            assert_eq!(caller.as_deref(), Some("codex t-1"), "{meta}");
        }
    }

    #[test]
    fn claude_names_its_conversation_in_the_environment_and_nothing_names_nobody() {
        for meta in [
            json!({}),
            json!({"claudecode/toolUseId": "toolu_1", "progressToken": 4}),
            json!({"threadId": 7, "session_id": "", "x-codex-turn-metadata": "no JSON"}),
        ] {
            let caller = found(&callers(Some("c-1")), &meta);
            assert_eq!(caller.as_deref(), Some("claude c-1"), "{meta}");
            assert_eq!(found(&callers(None), &meta), None, "{meta}");
        }
    }
}
