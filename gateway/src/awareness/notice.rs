//! The one line a watcher gets at its next turn.

use tidings_protocol::SessionKey;
use tidings_protocol::session_api::Notice;

/// The notice that `target` changed after `last_seen`. The same bytes as long as it is
/// pending, because a pending cursor's last seen does not move.
#[must_use]
pub fn notice(target: &SessionKey, last_seen: u64) -> Notice {
    let text = format!(
        "Session \"{target}\" changed (other actor). Reconcile before acting: \
         session_status sessionKey \"{target}\" changesSince {last_seen}."
    );
    Notice {
        target: target.clone(),
        text,
        changes_since: last_seen,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_is_exactly_the_line_of_the_specification() {
        let target = SessionKey::parse("agent:main:subagent:child").expect("key");
        assert_eq!(
            notice(&target, 12).text,
            "Session \"agent:main:subagent:child\" changed (other actor). Reconcile before \
             acting: session_status sessionKey \"agent:main:subagent:child\" changesSince 12."
        );
    }
}
