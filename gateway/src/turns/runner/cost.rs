//! What a turn costs, and what of it stands in the session's entry.

use super::error::TurnError;
use super::turn::Turn;
use crate::state::{ContextSize, TurnCost};
use crate::turns::models::{Answer, Usage};
use crate::turns::tokens;

/// What a turn has cost so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// In all.
    pub(super) tokens: TurnCost,
    /// True where the provider did not count some of it.
    pub(super) estimated: bool,
}

impl Cost {
    /// What one answer cost: as the provider counted, else by estimate.
    pub(super) fn of(answer: &Answer, prompt_estimate: u64) -> Self {
        let estimated = answer.usage.is_none();
        let usage = answer.usage.unwrap_or(Usage {
            input: prompt_estimate,
            output: tokens::of_message(&answer.message),
        });
        let context = ContextSize {
            tokens: usage.input.saturating_add(usage.output),
            estimated,
        };
        Self {
            tokens: TurnCost {
                input: usage.input,
                output: usage.output,
                context: Some(context),
            },
            estimated,
        }
    }

    /// The same with what was spent elsewhere for it.
    pub(super) fn add(&mut self, spent: Self) {
        self.tokens.input = self.tokens.input.saturating_add(spent.tokens.input);
        self.tokens.output = self.tokens.output.saturating_add(spent.tokens.output);
        self.estimated |= spent.estimated;
    }
}

impl Turn<'_> {
    /// Adds what an answer cost.
    pub(super) fn add_cost(&mut self, answer: &Answer, prompt_estimate: u64) {
        let cost = Cost::of(answer, prompt_estimate);
        self.cost.add(cost);
        self.cost.tokens.context = cost.tokens.context;
    }

    /// Counts what was spent since it was last counted, whatever came of it.
    pub(super) async fn count(&mut self) -> Result<(), TurnError> {
        let (spent, counted) = (self.cost.tokens, self.counted);
        if spent == counted {
            return Ok(());
        }
        let cost = TurnCost {
            input: spent.input.saturating_sub(counted.input),
            output: spent.output.saturating_sub(counted.output),
            context: spent.context,
        };
        let state = &self.runner.state;
        let counting = state.count_turn(self.session.clone(), cost).await;
        counting.map_err(|error| TurnError::Door(error.into()))?;
        self.counted = spent;
        Ok(())
    }
}
