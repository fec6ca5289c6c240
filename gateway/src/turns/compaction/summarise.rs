//! Who summarises, and what happens when that fails.

use super::audit::Flaws;
use super::context;
use super::plan::Plan;
use super::prompt;
use super::provider::Providers;
use super::request::{Summariser, SummaryError, SummaryRequest};
use super::stages::{self, Work, bounded};
use crate::config::{Compaction, CompactionMode};
use crate::sessions::hygiene::Message;

/// Who summarises, and how.
#[derive(Clone, Copy)]
pub struct Summarisers<'a> {
    /// The model.
    pub model: &'a dyn Summariser,
    /// Others, by id.
    pub providers: &'a Providers,
    /// The settings.
    pub settings: &'a Compaction,
}

/// Whose summary it is.
enum Maker<'a> {
    Model(&'a dyn Summariser),
    Provider(&'a dyn Summariser),
}

impl Maker<'_> {
    async fn make(&self, work: &Work<'_>, instructions: &str) -> Result<String, SummaryError> {
        match self {
            Self::Model(model) => stages::summarise(*model, work, instructions).await,
            Self::Provider(provider) => {
                let previous = work.previous_summary.map(str::to_owned);
                let request: SummaryRequest = work.request(instructions, previous, work.items);
                let text = provider.summarise(&request).await?;
                if text.trim().is_empty() {
                    return Err(SummaryError::Empty);
                }
                Ok(bounded(text.trim(), work.budget))
            }
        }
    }
}

impl Summarisers<'_> {
    /// The summary that is written: in safeguard mode looked at, and with the last turns before
    /// the kept tail behind it. `focus` is what somebody asked it to dwell on.
    pub async fn summary(
        &self,
        work: &Work<'_>,
        plan: &Plan,
        focus: Option<&str>,
    ) -> Result<String, SummaryError> {
        let mut summary = self.raw(work, focus).await?;
        if self.is_safeguarded() {
            let behind = context::behind(work.items, plan.split_from, work.budget);
            if !behind.is_empty() {
                summary = format!("{summary}\n\n{behind}");
            }
        }
        Ok(summary)
    }

    fn is_safeguarded(&self) -> bool {
        self.settings.effective_mode() == CompactionMode::Safeguard
    }

    /// The provider's summary where one is named and gives one, else the model's.
    async fn raw(&self, work: &Work<'_>, focus: Option<&str>) -> Result<String, SummaryError> {
        if let Some(id) = &self.settings.provider {
            let Some(provider) = self.providers.get(id) else {
                tracing::warn!(provider = %id, "there is no such provider: the model summarises");
                return self.audited(&Maker::Model(self.model), work, focus).await;
            };
            match self.audited(&Maker::Provider(provider), work, focus).await {
                Err(error) if !error.is_the_callers() => {
                    tracing::warn!(provider = %id, %error, "a provider failed: the model summarises");
                }
                made => return made,
            }
        }
        self.audited(&Maker::Model(self.model), work, focus).await
    }

    /// A summary that was looked at: one that is not sound is asked for once more, and the
    /// better one is taken.
    async fn audited(
        &self,
        maker: &Maker<'_>,
        work: &Work<'_>,
        focus: Option<&str>,
    ) -> Result<String, SummaryError> {
        let summary = maker.make(work, &prompt::instructions(focus, None)).await?;
        if !self.is_safeguarded() || !self.settings.quality_guard.enabled {
            return Ok(summary);
        }
        let messages: Vec<Message> = work.items.iter().map(|item| item.message.clone()).collect();
        let flaws = Flaws::of(&summary, &messages);
        if flaws.is_empty() {
            return Ok(summary);
        }
        let feedback = flaws.feedback();
        let instructions = prompt::instructions(focus, Some(&feedback));
        let again = match maker.make(work, &instructions).await {
            Err(error) if error.is_the_callers() => return Err(error),
            // There is one already.
            Err(_) => return Ok(summary),
            Ok(again) => again,
        };
        let left = Flaws::of(&again, &messages);
        let count = |flaws: &Flaws| flaws.headings.len() + flaws.identifiers.len();
        if !left.is_empty() {
            tracing::warn!(
                headings = left.headings.len(),
                identifiers = left.identifiers.len(),
                "a summary lacks something, also at the second attempt, and is taken"
            );
        }
        Ok(if count(&left) <= count(&flaws) {
            again
        } else {
            summary
        })
    }
}
