//! What a change of a session's goal is.

/// What became of a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoalMove {
    /// There was none.
    Created,
    /// There was another.
    Updated,
    /// There is none any more.
    Cleared,
}

impl GoalMove {
    /// The line that says so. It never says what the goal is.
    #[must_use]
    pub fn summary(self) -> &'static str {
        match self {
            Self::Created => "goal created",
            Self::Updated => "goal updated",
            Self::Cleared => "goal cleared",
        }
    }
}

/// What it means that the goal is this now; `None` where it was the same before: whoever
/// watches has nothing to reconcile.
#[must_use]
pub fn goal_move(before: Option<&str>, after: Option<&str>) -> Option<GoalMove> {
    match (before, after) {
        (before, after) if before == after => None,
        (_, None) => Some(GoalMove::Cleared),
        (None, Some(_)) => Some(GoalMove::Created),
        (Some(_), Some(_)) => Some(GoalMove::Updated),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_created_updated_and_cleared_and_the_same_again_is_no_change() {
        for (before, after, moved) in [
            (None, None, None),
            (None, Some("a"), Some("goal created")),
            (Some("a"), Some("a"), None),
            (Some("a"), Some("A"), Some("goal updated")),
            (Some("a"), None, Some("goal cleared")),
        ] {
            let line = goal_move(before, after).map(GoalMove::summary);
            assert_eq!(line, moved, "{before:?} {after:?}");
        }
    }
}
