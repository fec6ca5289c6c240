//! How far an answer about an adopted session can be trusted.

use tidings_protocol::report::LinkId;
use tidings_protocol::session_api::{UpstreamState, UpstreamStatus};
use tidings_protocol::{EpochMs, Host, SessionKey};

/// What the database knows about a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkStanding {
    /// The link.
    pub link: LinkId,
    /// The host that follows it.
    pub host: Host,
    /// When its last report was applied.
    pub last_report_at: Option<EpochMs>,
    /// Why its reports are rejected.
    pub blocked: Option<String>,
}

/// What is known of the node that follows a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodePresence {
    /// It is not connected.
    Away,
    /// It is connected.
    Here {
        /// The last sign of life that said the link's root is watched while no probe of
        /// the link was pending.
        watched_at: Option<EpochMs>,
    },
}

/// How far an answer about a session can be trusted; `None` for one that was not adopted.
#[must_use]
pub fn upstream_status(
    session: &SessionKey,
    link: Option<&LinkStanding>,
    node: NodePresence,
) -> Option<UpstreamStatus> {
    let Some(link) = link else {
        return is_adopted(session).then_some(UpstreamStatus {
            state: UpstreamState::Unlinked,
            observed_at: None,
        });
    };
    let (state, watched_at) = match node {
        _ if link.blocked.is_some() => (UpstreamState::Blocked, None),
        NodePresence::Away => (UpstreamState::Offline, None),
        NodePresence::Here { watched_at } => (UpstreamState::Live, watched_at),
    };
    Some(UpstreamStatus {
        state,
        observed_at: link.last_report_at.max(watched_at),
    })
}

/// True for the key of an adopted session.
pub(crate) fn is_adopted(session: &SessionKey) -> bool {
    let rest = session
        .as_str()
        .strip_prefix("agent:")
        .and_then(|rest| rest.split_once(':'));
    rest.is_some_and(|(_, rest)| rest.starts_with("adopted:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> SessionKey {
        SessionKey::parse(text).expect("key")
    }

    fn standing(last_report_at: Option<EpochMs>, blocked: Option<&str>) -> LinkStanding {
        LinkStanding {
            link: LinkId(1),
            host: Host::GatewayLocal,
            last_report_at,
            blocked: blocked.map(str::to_owned),
        }
    }

    #[test]
    fn an_answer_is_complete_up_to_the_later_of_report_and_sign_of_life() {
        use UpstreamState::{Blocked, Live, Offline};
        let here = |watched_at| NodePresence::Here { watched_at };
        for (link, node, state, observed_at) in [
            (standing(None, None), NodePresence::Away, Offline, None),
            (
                standing(Some(5), None),
                NodePresence::Away,
                Offline,
                Some(5),
            ),
            (standing(Some(5), None), here(None), Live, Some(5)),
            (standing(Some(5), None), here(Some(9)), Live, Some(9)),
            (standing(Some(9), None), here(Some(5)), Live, Some(9)),
            (standing(None, None), here(Some(5)), Live, Some(5)),
            (
                standing(Some(5), Some("x")),
                here(Some(9)),
                Blocked,
                Some(5),
            ),
        ] {
            let status = upstream_status(&key("agent:main:x"), Some(&link), node);
            assert_eq!(
                status,
                Some(UpstreamStatus { state, observed_at }),
                "{link:?} {node:?}"
            );
        }
    }

    #[test]
    fn without_a_link_an_adopted_session_is_unlinked_and_any_other_has_no_upstream() {
        for (session, state) in [
            (
                "agent:main:adopted:claude:local:t",
                Some(UpstreamState::Unlinked),
            ),
            ("agent:main:main", None),
            ("cron:adopted:x", None),
        ] {
            let status = upstream_status(&key(session), None, NodePresence::Away);
            assert_eq!(status.map(|status| status.state), state, "{session}");
        }
    }
}
