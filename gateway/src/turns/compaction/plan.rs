//! What a compaction summarises, and what it keeps. Pure.

use crate::config::Compaction;
use crate::turns::budget::Budget;
use crate::turns::chunks::{self, Keep, Piece};
use crate::turns::view::{Item, View};

/// Why a conversation is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// Somebody asked for it.
    Manual,
    /// The context is above the threshold.
    Threshold,
    /// The provider refused a prompt of about so many tokens.
    Overflow {
        /// What it counted, or a little more than fits.
        attempted: u64,
    },
    /// The transcript is too large.
    Size,
    /// Results within a turn do not fit.
    MidTurn,
}

/// What is summarised, and what is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// So many messages from the beginning are summarised.
    pub cut: usize,
    /// The first entry that is kept; `None` where none is.
    pub first_kept: Option<String>,
    /// Where the turn began that the cut parts.
    pub split_from: Option<usize>,
}

impl Trigger {
    /// True where nobody asked for it.
    #[must_use]
    pub fn is_automatic(self) -> bool {
        self != Self::Manual
    }

    /// Its name in logs, and for commands.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Threshold => "threshold",
            Self::Overflow { .. } => "overflow",
            Self::Size => "size",
            Self::MidTurn => "mid-turn",
        }
    }
}

/// Decides what is summarised; `None` where there is nothing that could be.
#[must_use]
pub fn plan(view: &View, trigger: Trigger, settings: &Compaction, budget: Budget) -> Option<Plan> {
    let pieces: Vec<Piece<'_>> = view.items.iter().map(Item::piece).collect();
    let keep = keep(view, trigger, settings, budget);
    let cut = chunks::cut(&pieces, keep);
    let is_named = |at: usize| view.items[at].id.is_some();
    // An entry without an id cannot be named as the first that is kept.
    let cut = chunks::next_place(&pieces, cut, is_named);
    (cut > 0).then(|| Plan {
        cut,
        first_kept: view.items.get(cut).and_then(|item| item.id.clone()),
        split_from: chunks::split_turn(&pieces, cut),
    })
}

fn keep(view: &View, trigger: Trigger, settings: &Compaction, budget: Budget) -> Keep {
    let configured = settings.keep_recent_tokens;
    // What is kept must leave room for the summary and the next turn, also in a small window.
    let room = budget.threshold() / 2;
    let usual = configured.tokens().min(room);
    let tokens = match trigger {
        Trigger::Manual => configured.explicit().unwrap_or(0),
        Trigger::Threshold | Trigger::Size | Trigger::MidTurn => usual,
        Trigger::Overflow { attempted } => {
            let estimate = view.estimate();
            // What a token is here in the provider's.
            let room = u128::from(room) * u128::from(estimate) / u128::from(attempted.max(1));
            let room = u64::try_from(room).unwrap_or(u64::MAX);
            usual.min(estimate / 2).min(room)
        }
    };
    let unseen_above = match trigger {
        Trigger::Overflow { .. } => u64::MAX,
        _ => budget.chunk_target(),
    };
    Keep {
        tokens,
        unseen_above,
    }
}
