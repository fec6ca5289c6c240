//! Which session a conversation belongs to: a pure function of where a message came from.

use tidings_protocol::SessionKey;
use tidings_protocol::key::KeyError;

use crate::config::{DmScope, Session, SessionScope};
use crate::state::AgentId;

/// Where a message came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inbound<'a> {
    /// The agent it is for.
    pub agent: &'a AgentId,
    /// The channel it came by: `telegram`, `slack`.
    pub channel: &'a str,
    /// The account of the channel, where there are several.
    pub account: Option<&'a str>,
    /// What kind of chat it was said in.
    pub chat: Chat,
    /// The person of a direct chat; else the id of the group, channel or room.
    pub peer: &'a str,
    /// The part of the chat it was said in.
    pub part: Option<Part<'a>>,
}

/// A kind of chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chat {
    /// With one person.
    Direct,
    /// A group.
    Group,
    /// A channel of a server.
    Channel,
    /// A room.
    Room,
}

/// A part of a chat that is a conversation of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// A thread.
    Thread(&'a str),
    /// A topic of a forum.
    Topic(&'a str),
}

/// Why a message belongs to no session: what names its origin cannot stand in a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RouteError {
    /// A part of the key would be empty or could be read as another part.
    #[error(
        "the {0} of a message is one name: not empty, without a colon, and none of the words \
         that session keys are made of"
    )]
    Name(&'static str),
    /// The peer is empty or names a thread or topic itself.
    #[error("the peer of a message must not be empty or contain :thread: or :topic:")]
    Peer,
    /// The key as a whole is none.
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Words that stand in keys with a meaning of their own: as the name of a channel or an
/// account they would make one conversation's key another's.
const KEY_WORDS: [&str; 13] = [
    "acp", "adopted", "agent", "channel", "cron", "direct", "dm", "explicit", "group", "hook",
    "room", "subagent", "thread",
];
/// The account of a channel that has only one.
const ONLY_ACCOUNT: &str = "default";

/// The key of the conversation that a message belongs to.
pub fn route(inbound: &Inbound<'_>, session: &Session) -> Result<SessionKey, RouteError> {
    if session.scope == SessionScope::Global {
        return Ok(SessionKey::parse("global")?);
    }
    let peer = inbound.peer.trim();
    let is_ambiguous = |part| peer.to_lowercase().contains(part);
    if peer.is_empty() || is_ambiguous(":thread:") || is_ambiguous(":topic:") {
        return Err(RouteError::Peer);
    }
    let channel = name("channel", inbound.channel)?;
    let place = match inbound.chat {
        Chat::Direct => direct_place(inbound, session, &channel, peer)?,
        Chat::Group => format!("{channel}:group:{peer}"),
        Chat::Channel => format!("{channel}:channel:{peer}"),
        Chat::Room => format!("{channel}:room:{peer}"),
    };
    let part = match inbound.part {
        None => String::new(),
        Some(Part::Thread(id)) => format!(":thread:{}", id.trim()),
        Some(Part::Topic(id)) => format!(":topic:{}", id.trim()),
    };
    if part.ends_with(':') {
        return Err(RouteError::Name("thread"));
    }
    Ok(SessionKey::parse(&format!(
        "agent:{}:{place}{part}",
        inbound.agent
    ))?)
}

/// The key of an agent's main session.
pub fn main_key(agent: &AgentId, session: &Session) -> Result<SessionKey, KeyError> {
    SessionKey::parse(&format!("agent:{agent}:{}", session.main_key))
}

/// The key that a key of an older layout means now: a bare `main`, `subagent:…` or
/// `<channel>:group:…` belonged to the store's agent, and `dm` was the word for `direct`.
/// A key of today stays as it is.
pub fn current_key(text: &str, agent: &AgentId, session: &Session) -> Result<SessionKey, KeyError> {
    let text = text.trim();
    // Checked as it stands, and looked at in lower case: the peer may need its own case.
    let key = SessionKey::parse(text)?;
    let (agent, rest) = match key.agent_id() {
        Some(own) => (own, text.splitn(3, ':').last().unwrap_or_default()),
        None if is_bare(key.as_str()) => return Ok(key),
        None => (agent.as_str(), text),
    };
    let rest = if rest.eq_ignore_ascii_case("main") {
        session.main_key.clone()
    } else {
        with_direct_for_dm(rest)
    };
    SessionKey::parse(&format!("agent:{agent}:{rest}"))
}

fn is_bare(key: &str) -> bool {
    key == "global" || key == "unknown" || key.starts_with("cron:") || key.starts_with("hook:")
}

/// `dm` is a chat kind only where a chat kind stands: before the peer.
fn with_direct_for_dm(rest: &str) -> String {
    let mut segments: Vec<&str> = rest.split(':').collect();
    let before_peer = segments.len().saturating_sub(1).min(3);
    let is_dm = |segment: &&str| segment.eq_ignore_ascii_case("dm");
    if let Some(at) = segments[..before_peer].iter().position(is_dm) {
        segments[at] = "direct";
    }
    segments.join(":")
}

fn direct_place(
    inbound: &Inbound<'_>,
    session: &Session,
    channel: &str,
    peer: &str,
) -> Result<String, RouteError> {
    let peer = linked_name(session, channel, peer).unwrap_or(peer);
    Ok(match session.dm_scope {
        DmScope::Main => session.main_key.clone(),
        DmScope::PerPeer => format!("direct:{peer}"),
        DmScope::PerChannelPeer => format!("{channel}:direct:{peer}"),
        DmScope::PerAccountChannelPeer => {
            let account = name("account", inbound.account.unwrap_or(ONLY_ACCOUNT))?;
            format!("{channel}:{account}:direct:{peer}")
        }
    })
}

/// The one name of a person who has several. A name that is linked with its channel is meant
/// before one that is linked bare.
fn linked_name<'a>(session: &'a Session, channel: &str, peer: &str) -> Option<&'a str> {
    let on_channel = format!("{channel}:{peer}").to_lowercase();
    let bare = peer.to_lowercase();
    [on_channel, bare].iter().find_map(|wanted| {
        session.identity_links.iter().find_map(|(one, others)| {
            let is_linked = others
                .iter()
                .any(|other| other.trim().to_lowercase() == *wanted);
            is_linked
                .then_some(one.trim())
                .filter(|one| !one.is_empty())
        })
    })
}

fn name(what: &'static str, text: &str) -> Result<String, RouteError> {
    let name = text.trim().to_lowercase();
    if name.is_empty() || name.contains(':') || KEY_WORDS.contains(&name.as_str()) {
        return Err(RouteError::Name(what));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent() -> AgentId {
        AgentId::parse("ops").expect("an agent")
    }

    fn session(dm_scope: DmScope) -> Session {
        let ada = vec![
            "telegram:77".to_owned(),
            " Discord:Ada#1".to_owned(),
            "+49123".to_owned(),
        ];
        Session {
            dm_scope,
            identity_links: [("Ada".to_owned(), ada)].into(),
            ..Session::default()
        }
    }

    /// `<channel>[/<account>] <chat> <peer> [<part> <id>]`
    fn routed(line: &str, session: &Session) -> Result<String, RouteError> {
        let words: Vec<&str> = line.split(' ').collect();
        let (channel, account) = match words[0].split_once('/') {
            Some((channel, account)) => (channel, Some(account)),
            None => (words[0], None),
        };
        let inbound = Inbound {
            agent: &agent(),
            channel,
            account,
            chat: match words[1] {
                "direct" => Chat::Direct,
                "group" => Chat::Group,
                "channel" => Chat::Channel,
                "room" => Chat::Room,
                other => panic!("{other}"),
            },
            peer: words[2],
            part: words.get(3).map(|part| match *part {
                "thread" => Part::Thread(words[4]),
                _ => Part::Topic(words[4]),
            }),
        };
        route(&inbound, session).map(String::from)
    }

    #[test]
    fn every_kind_of_conversation_has_its_key() {
        use DmScope::{Main, PerAccountChannelPeer, PerChannelPeer, PerPeer};
        for (line, scope, key) in [
            ("telegram direct 5", Main, "agent:ops:main"),
            ("telegram direct 77", Main, "agent:ops:main"),
            ("telegram direct 5", PerPeer, "agent:ops:direct:5"),
            ("telegram direct 77", PerPeer, "agent:ops:direct:ada"),
            ("discord direct ada#1", PerPeer, "agent:ops:direct:ada"),
            ("discord direct 77", PerPeer, "agent:ops:direct:77"),
            ("whatsapp direct +49123", PerPeer, "agent:ops:direct:ada"),
            (
                "Telegram direct 5",
                PerChannelPeer,
                "agent:ops:telegram:direct:5",
            ),
            (
                "telegram direct 77",
                PerChannelPeer,
                "agent:ops:telegram:direct:ada",
            ),
            (
                "telegram/Work direct 5",
                PerAccountChannelPeer,
                "agent:ops:telegram:work:direct:5",
            ),
            (
                "telegram direct 5",
                PerAccountChannelPeer,
                "agent:ops:telegram:default:direct:5",
            ),
            ("telegram group -100", Main, "agent:ops:telegram:group:-100"),
            (
                "telegram group -100 topic 9",
                Main,
                "agent:ops:telegram:group:-100:topic:9",
            ),
            (
                "discord channel 42",
                PerPeer,
                "agent:ops:discord:channel:42",
            ),
            (
                "slack channel C1 thread 17.5",
                PerPeer,
                "agent:ops:slack:channel:c1:thread:17.5",
            ),
            (
                "matrix room !AbC:Org",
                Main,
                "agent:ops:matrix:room:!AbC:Org",
            ),
            (
                "signal direct AbC",
                PerChannelPeer,
                "agent:ops:signal:direct:AbC",
            ),
            ("signal group XyZ=", Main, "agent:ops:signal:group:XyZ="),
            (
                "msteams channel 19:a@thread.tacv2",
                Main,
                "agent:ops:msteams:channel:19:a@thread.tacv2",
            ),
            ("slack direct u1 thread 8", Main, "agent:ops:main:thread:8"),
        ] {
            assert_eq!(
                routed(line, &session(scope)).as_deref(),
                Ok(key),
                "{line} {scope:?}"
            );
        }
    }

    #[test]
    fn under_the_global_scope_all_conversations_are_one() {
        let session = Session {
            scope: SessionScope::Global,
            ..session(DmScope::PerPeer)
        };
        for line in ["telegram direct 5", "slack channel c thread 8"] {
            assert_eq!(routed(line, &session).as_deref(), Ok("global"));
        }
    }

    #[test]
    fn the_main_session_has_the_configured_name() {
        let session = Session {
            main_key: "Home".to_owned(),
            ..session(DmScope::Main)
        };
        let key = routed("telegram direct 5", &session);
        assert_eq!(key.as_deref(), Ok("agent:ops:home"));
        let key = main_key(&agent(), &session).map(String::from);
        assert_eq!(key.as_deref(), Ok("agent:ops:home"));
    }

    #[test]
    fn what_could_be_read_as_another_conversation_is_refused() {
        let scope = DmScope::PerAccountChannelPeer;
        for (line, error) in [
            ("subagent group x", RouteError::Name("channel")),
            ("a:b group x", RouteError::Name("channel")),
            (" group x", RouteError::Name("channel")),
            ("telegram/direct direct 5", RouteError::Name("account")),
            ("telegram/a:b direct 5", RouteError::Name("account")),
            ("telegram/ direct 5", RouteError::Name("account")),
            ("slack channel c:Thread:9", RouteError::Peer),
            ("slack channel c thread ", RouteError::Name("thread")),
            ("slack channel c\"d", RouteError::Key(KeyError::Character)),
        ] {
            assert_eq!(routed(line, &session(scope)), Err(error), "{line}");
        }
    }

    #[test]
    fn keys_of_older_layouts_and_in_odd_case_mean_what_they_meant() {
        let session = Session {
            main_key: "home".to_owned(),
            ..Session::default()
        };
        for (old, current) in [
            ("main", "agent:ops:home"),
            (" MAIN ", "agent:ops:home"),
            ("agent:Ops:main", "agent:ops:home"),
            ("agent:ops:home", "agent:ops:home"),
            ("global", "global"),
            ("Cron:Nightly", "cron:nightly"),
            ("hook:0a1b", "hook:0a1b"),
            ("subagent:0a1b", "agent:ops:subagent:0a1b"),
            ("acp:0a1b", "agent:ops:acp:0a1b"),
            ("Telegram:Group:-1", "agent:ops:telegram:group:-1"),
            ("whatsapp:dm:5", "agent:ops:whatsapp:direct:5"),
            ("agent:a:dm:5", "agent:a:direct:5"),
            ("agent:a:signal:dm:AbC", "agent:a:signal:direct:AbC"),
            ("agent:a:signal:work:dm:5", "agent:a:signal:work:direct:5"),
            ("agent:a:slack:channel:dm", "agent:a:slack:channel:dm"),
            ("agent:a:matrix:room:!A:B", "agent:a:matrix:room:!A:B"),
        ] {
            let key = current_key(old, &agent(), &session).map(String::from);
            assert_eq!(key.as_deref(), Ok(current), "{old}");
            let again = current_key(current, &agent(), &session).map(String::from);
            assert_eq!(again.as_deref(), Ok(current), "stable");
        }
        for none in ["", "agent:a", "a b"] {
            assert!(current_key(none, &agent(), &session).is_err(), "{none:?}");
        }
    }
}
