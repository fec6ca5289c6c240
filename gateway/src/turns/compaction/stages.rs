//! The model's way to a summary: chunk by chunk, each together with the summary so far, so an
//! earlier summary is distilled again and not carried along.

use super::request::{Summariser, SummaryError, SummaryRequest};
use crate::turns::budget::Budget;
use crate::turns::chunks::{self, Piece};
use crate::turns::view::Item;

/// How often chunks are made smaller because the model finds them too long.
const SMALLER: u32 = 4;

/// What is summarised.
#[derive(Debug, Clone, Copy)]
pub struct Work<'a> {
    /// The messages.
    pub items: &'a [Item],
    /// The summary of what was before them.
    pub previous_summary: Option<&'a str>,
    /// Why.
    pub trigger: &'static str,
    /// The model's budget.
    pub budget: Budget,
}

impl Work<'_> {
    /// A request for a summary of some of the messages.
    #[must_use]
    pub fn request(
        &self,
        instructions: &str,
        previous_summary: Option<String>,
        items: &[Item],
    ) -> SummaryRequest {
        SummaryRequest {
            schema_version: 1,
            trigger: self.trigger,
            instructions: instructions.to_owned(),
            identifier_policy: super::prompt::IDENTIFIER_POLICY,
            previous_summary,
            messages: items.iter().map(|item| item.message.clone()).collect(),
            prompt_tokens: self.budget.threshold(),
        }
    }
}

/// Has a model summarise all of it.
pub async fn summarise(
    model: &dyn Summariser,
    work: &Work<'_>,
    instructions: &str,
) -> Result<String, SummaryError> {
    let mut target = work.budget.chunk_target();
    let mut smaller = 0;
    let mut summary = work.previous_summary.map(str::to_owned);
    let mut done = 0;
    while done < work.items.len() {
        let chunk = &work.items[done..done + first_chunk(&work.items[done..], target)];
        let request = work.request(instructions, summary.clone(), chunk);
        match model.summarise(&request).await {
            Ok(text) if text.trim().is_empty() => return Err(SummaryError::Empty),
            Ok(text) => {
                summary = Some(bounded(text.trim(), work.budget));
                done += chunk.len();
            }
            Err(SummaryError::TooLong) if smaller < SMALLER => {
                smaller += 1;
                target = (target / 2).max(1);
            }
            Err(error) => return Err(error),
        }
    }
    summary.ok_or(SummaryError::Empty)
}

/// A summary that leaves room in the window for what it stands beside.
#[must_use]
pub fn bounded(summary: &str, budget: Budget) -> String {
    // As many bytes as tokens may be used: a quarter of them.
    let most = usize::try_from(budget.threshold()).unwrap_or(usize::MAX);
    crate::turns::truncate::cut(summary, most.min(super::request::MAX_SUMMARY_BYTES))
}

fn first_chunk(items: &[Item], target: u64) -> usize {
    let pieces: Vec<Piece<'_>> = items.iter().map(Item::piece).collect();
    let chunks = chunks::chunks(&pieces, pieces.len(), target);
    chunks.first().map_or(items.len(), |chunk| chunk.end)
}
