//! Which sessions a program may see from its own: `session.visibility`.

use tidings_protocol::SessionKey;
use tidings_protocol::session_api::{ApiError, ErrorType, Reach, Request};

use super::Service;
use super::origin::Origin;
use crate::config::Visibility;
use crate::state::{SessionAddress, VisibleSessions};

/// What a session is to the one that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Relation {
    /// The same conversation.
    is_own: bool,
    /// A child, or a child's child.
    is_descendant: bool,
    /// Of the same agent.
    is_of_agent: bool,
}

/// True where a session that is this to the caller may be seen. Each level sees what the
/// level before it sees.
fn is_visible(visibility: Visibility, target: Relation) -> bool {
    let in_tree = target.is_own || target.is_descendant;
    match visibility {
        Visibility::Own => target.is_own,
        Visibility::Tree => in_tree,
        Visibility::Agent => in_tree || target.is_of_agent,
        Visibility::All => true,
    }
}

impl Service {
    /// Refuses what reaches further than the caller may see.
    pub(super) async fn check_reach(
        &self,
        origin: &Origin,
        request: &Request,
    ) -> Result<(), ApiError> {
        let visibility = self.visibility();
        if visibility == Visibility::All || !origin.is_program() {
            return Ok(());
        }
        match request.reach() {
            Reach::Own | Reach::Listed => Ok(()),
            Reach::Everything => Err(not_visible("threads and sessions", visibility)),
            Reach::Session { key, agent } => {
                let target = self.address(key.clone(), agent)?;
                let own = self.own_sessions(origin).await?;
                let relation = self.relation(&own, &target).await?;
                if is_visible(visibility, relation) {
                    Ok(())
                } else {
                    Err(not_visible(target.key().as_str(), visibility))
                }
            }
        }
    }

    /// The sessions that a list shows this caller; `None` for all of them.
    pub(super) async fn visible_to(
        &self,
        origin: &Origin,
    ) -> Result<Option<VisibleSessions>, ApiError> {
        let visibility = self.visibility();
        if visibility == Visibility::All || !origin.is_program() {
            return Ok(None);
        }
        let own = self.own_sessions(origin).await?;
        let keys = keys(&own);
        Ok(Some(VisibleSessions {
            agent: match (visibility, own.first()) {
                (Visibility::Agent, Some(first)) => Some(first.agent().clone()),
                _ => None,
            },
            keys: match visibility {
                Visibility::Own => keys,
                _ => self.nodes.state.tree_of(keys).await?,
            },
        }))
    }

    async fn relation(
        &self,
        own: &[SessionAddress],
        target: &SessionAddress,
    ) -> Result<Relation, ApiError> {
        let is_own = own.contains(target);
        let tree = if is_own {
            Vec::new()
        } else {
            self.nodes.state.tree_of(keys(own)).await?
        };
        Ok(Relation {
            is_own,
            is_descendant: tree.contains(target.key()),
            is_of_agent: own.iter().any(|own| own.agent() == target.agent()),
        })
    }

    fn visibility(&self) -> Visibility {
        self.info.config.borrow().session.visibility
    }
}

fn keys(sessions: &[SessionAddress]) -> Vec<SessionKey> {
    let key = |session: &SessionAddress| session.key().clone();
    sessions.iter().map(key).collect()
}

fn not_visible(what: &str, visibility: Visibility) -> ApiError {
    ApiError::new(
        ErrorType::NotPermitted,
        format!("{what} cannot be seen from this session"),
    )
    .with_hint(format!(
        "session.visibility is {visibility}: ask at the gateway's own socket, as its operator"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_sees_what_the_one_before_it_sees_and_more() {
        let relation = |is_own, is_descendant, is_of_agent| Relation {
            is_own,
            is_descendant,
            is_of_agent,
        };
        // What is seen by `self`, `tree`, `agent` and `all`, in this order.
        for (name, target, seen) in [
            ("itself", relation(true, false, true), "yyyy"),
            ("its child", relation(false, true, true), "-yyy"),
            (
                "its child of another agent",
                relation(false, true, false),
                "-yyy",
            ),
            ("another of its agent", relation(false, false, true), "--yy"),
            ("another agent's", relation(false, false, false), "---y"),
        ] {
            let levels = [
                Visibility::Own,
                Visibility::Tree,
                Visibility::Agent,
                Visibility::All,
            ];
            let sees = levels.map(|level| if is_visible(level, target) { 'y' } else { '-' });
            assert_eq!(sees.iter().collect::<String>(), seen, "{name}");
        }
    }
}
