//! Which session a key means under `session.scope`.

use tidings_protocol::SessionKey;

use crate::config::{Session, SessionScope};
use crate::state::{AgentId, AgentIdError, SessionAddress};

/// The key that all conversations of an agent share under the global scope. It is bare: such
/// a session has its log and `changesSince`, and is told nothing by itself.
const GLOBAL_KEY: &str = "global";
/// The main session's usual name; it means the main session however that is called.
const MAIN_KEY: &str = "main";

/// The session of a key; a bare one belongs to `agent_of_bare`. Under the global scope an
/// agent's main session is the one that all its conversations share.
pub(super) fn session_of(
    key: SessionKey,
    agent_of_bare: &AgentId,
    session: &Session,
) -> Result<SessionAddress, AgentIdError> {
    let address = SessionAddress::resolve(key, agent_of_bare)?;
    if session.scope == SessionScope::Global
        && is_main(address.key(), &session.main_key)
        && let Ok(global) = SessionKey::parse(GLOBAL_KEY)
    {
        return SessionAddress::resolve(global, address.agent());
    }
    Ok(address)
}

fn is_main(key: &SessionKey, main_key: &str) -> bool {
    let rest = key.agent_id().and(key.as_str().splitn(3, ':').nth(2));
    rest.is_some_and(|rest| rest == MAIN_KEY || rest.eq_ignore_ascii_case(main_key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn under_the_global_scope_a_main_session_is_the_one_that_all_share() {
        let caller = AgentId::parse("ops").expect("agent");
        for (key, per_sender, global) in [
            ("agent:a:main", "agent:a:main of a", "global of a"),
            ("agent:a:home", "agent:a:home of a", "global of a"),
            (
                "agent:a:subagent:main",
                "agent:a:subagent:main of a",
                "agent:a:subagent:main of a",
            ),
            (
                "agent:a:x:direct:main",
                "agent:a:x:direct:main of a",
                "agent:a:x:direct:main of a",
            ),
            ("global", "global of ops", "global of ops"),
            ("cron:main", "cron:main of ops", "cron:main of ops"),
        ] {
            for (scope, expected) in [
                (SessionScope::PerSender, per_sender),
                (SessionScope::Global, global),
            ] {
                let session = Session {
                    scope,
                    main_key: "Home".to_owned(),
                    ..Session::default()
                };
                let key = SessionKey::parse(key).expect("key");
                let meant = session_of(key, &caller, &session).expect("an address");
                let meant = format!("{} of {}", meant.key(), meant.agent());
                assert_eq!(meant, expected, "{scope:?}");
            }
        }
    }
}
