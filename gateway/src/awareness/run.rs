//! The end of a child's run: under which key it is recorded once, and what its parent is told.

use tidings_protocol::SessionKey;
use tidings_protocol::digest::{hex, sha256};
use tidings_protocol::session_api::RunEnd;

/// The key under which the end of a run is recorded once: the run's own id, else the child's
/// conversation. Of fixed length, whatever ids are.
#[must_use]
pub fn run_dedupe_key(run_id: Option<&str>, session_id: &str) -> String {
    let (kind, id) = match run_id {
        Some(id) => ("run", id),
        None => ("conversation", session_id),
    };
    format!("run-finished:{kind}:{}", hex(&sha256(id.as_bytes())))
}

/// The message to the parent: how the run ended, then the result as the child gave it.
#[must_use]
pub fn run_message(
    child: &SessionKey,
    label: Option<&str>,
    end: RunEnd,
    result: Option<&str>,
) -> String {
    let how = match end {
        RunEnd::Completed => "completed",
        RunEnd::Error => "failed",
        RunEnd::Timeout => "timed out",
        RunEnd::Cancelled => "was cancelled",
    };
    let name = label.map_or_else(String::new, |label| format!(" ({label})"));
    let line = format!("The run of child session \"{child}\"{name} {how}.");
    match result {
        Some(result) => format!("{line}\n\n{result}"),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_known_by_its_own_id_else_by_the_childs_conversation() {
        let keys = [
            run_dedupe_key(Some("r1"), "s1"),
            run_dedupe_key(Some("r2"), "s1"),
            run_dedupe_key(None, "s1"),
            run_dedupe_key(None, "s2"),
            run_dedupe_key(Some("s1"), "s1"),
        ];
        for (at, key) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(key), "{key}");
            assert!(key.len() < 128);
        }
        assert_eq!(run_dedupe_key(Some("r1"), "s2"), keys[0]);
        let long = run_dedupe_key(Some(&"r".repeat(512)), "s");
        assert_eq!(long.len(), keys[0].len());
    }

    #[test]
    fn the_parent_is_told_how_it_ended_and_then_the_result_as_it_is() {
        let child = SessionKey::parse("agent:main:subagent:1").expect("key");
        let told = |label, end, result| run_message(&child, label, end, result);
        assert_eq!(
            told(None, RunEnd::Completed, Some(" All green.\n")),
            "The run of child session \"agent:main:subagent:1\" completed.\n\n All green.\n"
        );
        assert_eq!(
            told(Some("tests"), RunEnd::Timeout, None),
            "The run of child session \"agent:main:subagent:1\" (tests) timed out."
        );
        assert!(told(None, RunEnd::Error, None).ends_with("failed."));
        assert!(told(None, RunEnd::Cancelled, None).ends_with("was cancelled."));
    }
}
