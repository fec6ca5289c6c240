//! Who is behind an input.

use tidings_protocol::{Actor, SessionKey};

/// Where an input came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Provenance {
    /// Another session sent it.
    InterSession(SessionKey),
    /// The gateway itself, or an internal effect.
    InternalSystem,
    /// A person, by whatever channel; and everything that says nothing about itself.
    External,
}

/// The actor of an input: a session for what it sent, the system for what it did by
/// itself, and a human for everything else.
#[must_use]
pub fn actor_of_input(provenance: Provenance) -> Actor {
    match provenance {
        Provenance::InterSession(sender) => Actor::Agent(sender),
        Provenance::InternalSystem => Actor::System,
        Provenance::External => Actor::Human,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_sessions_and_the_system_is_a_human() {
        let sender = SessionKey::parse("agent:main:main").expect("key");
        for (provenance, actor) in [
            (
                Provenance::InterSession(sender.clone()),
                Actor::Agent(sender),
            ),
            (Provenance::InternalSystem, Actor::System),
            (Provenance::External, Actor::Human),
        ] {
            assert_eq!(actor_of_input(provenance), actor);
        }
    }
}
