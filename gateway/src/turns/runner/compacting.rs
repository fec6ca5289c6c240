//! Compaction around a turn: before it, where a prompt does not fit, between two rounds, after
//! it, and because somebody asks. And the notes that are written first.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tidings_protocol::session_api::{PrivateText, SessionCompacted};

use super::Runner;
use super::conversation::Conversation;
use super::error::TurnError;
use super::job::News;
use super::summariser::{HttpSummariser, ModelSummariser};
use super::tools;
use super::turn::{OnOverflow, Turn, endpoint, max_tokens};
use crate::sessions::hygiene::Message;
use crate::state::{ContextSize, SessionAddress};
use crate::turns::budget::{self, Cycle, Owner};
use crate::turns::compaction::plan::Trigger;
use crate::turns::compaction::provider::Providers;
use crate::turns::compaction::request::Summariser;
use crate::turns::compaction::run::{CompactionError, Compactor, Order, Outcome};
use crate::turns::compaction::summarise::Summarisers;
use crate::turns::models::{Answer, Tool};
use crate::turns::tokens;
use crate::turns::truncate::{self, Fit};

/// The type of the message that asks for notes.
const FLUSH: &str = "memory_flush";

impl Runner {
    /// Compacts a conversation because somebody asked for it.
    pub(super) async fn compact_session(
        &self,
        session: &SessionAddress,
        instructions: Option<PrivateText>,
        news: &News,
    ) -> Result<SessionCompacted, TurnError> {
        let config = self.config();
        let mut turn = Turn::open(self, session, &config, news).await?;
        let before = turn.conversation.view().await?.context().tokens();
        let focus = instructions.map(|text| text.0);
        let outcome = Box::pin(turn.compact(Trigger::Manual, focus)).await;
        turn.count().await?;
        let outcome = outcome?;
        Ok(SessionCompacted {
            session_key: session.key().clone(),
            compacted: outcome.is_some(),
            tokens_before: outcome.as_ref().map_or(before, |done| done.tokens_before),
            tokens_after: outcome.as_ref().map_or(before, |done| done.tokens_after),
        })
    }
}

impl Turn<'_> {
    /// Compacts the conversation, and goes on in what is left. `None` where there is nothing
    /// that could be summarised.
    pub(super) async fn compact(
        &mut self,
        trigger: Trigger,
        focus: Option<String>,
    ) -> Result<Option<Outcome>, CompactionError> {
        let model = ModelSummariser {
            models: &self.runner.models,
            endpoint: &self.endpoint,
            max_tokens: max_tokens(&self.model),
            cost: Mutex::default(),
        };
        let endpoints = |url: &str, limit: Duration| -> Arc<dyn Summariser> {
            Arc::new(HttpSummariser {
                url: url.to_owned(),
                limit,
            })
        };
        let settings = self.settings();
        let providers = Providers::configured(settings, &endpoints);
        let shelves = &self.runner.shelves;
        let agent = self.session.agent().as_str();
        let workspace = self
            .config
            .agents
            .workspace(agent, &shelves.stores.state_dir);
        let compactor = Compactor {
            stores: &shelves.stores,
            locker: &shelves.locker,
            summarisers: Summarisers {
                model: &model,
                providers: &providers,
                settings,
            },
            budget: self.budget(),
            workspace: &workspace,
        };
        let order = Order {
            session: self.session.clone(),
            trigger,
            focus,
        };
        let news = self.news;
        let given_up = async {
            match trigger {
                // The turn is over: whoever waited for it has its answer.
                Trigger::Threshold => std::future::pending().await,
                _ => news.gone().await,
            }
        };
        let outcome = compactor.compact(&order, given_up).await;
        let spent = *model.cost.lock().unwrap_or_else(PoisonError::into_inner);
        self.cost.add(spent);
        if let Ok(Some(outcome)) = &outcome {
            self.compacted = true;
            self.cost.tokens.context = Some(ContextSize {
                tokens: outcome.tokens_after,
                estimated: true,
            });
            self.say_compacted(trigger, outcome);
        }
        outcome
    }

    /// A line in chat, where the session is verbose.
    fn say_compacted(&self, trigger: Trigger, outcome: &Outcome) {
        let level = self.conversation.entry.verbose_level.as_deref();
        let is_verbose = level.is_some_and(|level| !matches!(level, "" | "off"));
        if is_verbose && trigger.is_automatic() {
            let count = outcome.compaction_count;
            self.news
                .note(format!("🧹 Auto-compaction complete (count {count})"));
        }
    }

    /// Compacts, and goes on where it fails: what follows says what is wrong.
    async fn try_compact(&mut self, trigger: Trigger) -> bool {
        let compacted = match Box::pin(self.compact(trigger, None)).await {
            Ok(outcome) => outcome.is_some(),
            Err(error) => {
                let (session, trigger) = (&self.session, trigger.name());
                tracing::warn!(%session, trigger, %error, "the conversation was not compacted");
                return false;
            }
        };
        match Conversation::open(&self.runner.shelves, &self.session).await {
            Ok(conversation) => self.conversation = conversation,
            Err(error) => {
                tracing::warn!(session = %self.session, %error, "a compacted conversation");
                return false;
            }
        }
        compacted
    }

    /// A transcript that has become too large is compacted before the turn.
    pub(super) async fn before_prompt(&mut self) {
        let bytes = self.conversation.bytes().await;
        let is_too_large = bytes.is_ok_and(|bytes| budget::is_too_large(bytes, self.settings()));
        if is_too_large {
            self.try_compact(Trigger::Size).await;
        }
    }

    /// Asks the model; a prompt that is too long for it is compacted, and sent once more.
    pub(super) async fn ask_recovering(&mut self, tools: &[Tool]) -> Result<Answer, TurnError> {
        let messages = self.messages(tools).await?;
        let error = match self.ask(&messages, tools).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let Some(overflow) = error.overflow() else {
            return Err(error.into());
        };
        let attempted = overflow.attempted(self.budget());
        let session = &self.session;
        tracing::info!(%session, attempted, "the prompt is too long for the model");
        let may_compact = self.on_overflow == OnOverflow::Compact && self.settings().enabled;
        if !may_compact || !self.try_compact(Trigger::Overflow { attempted }).await {
            return Err(TurnError::TooLong);
        }
        let messages = self.messages(tools).await?;
        match self.ask(&messages, tools).await {
            Err(error) if error.overflow().is_some() => Err(TurnError::TooLong),
            answered => Ok(answered?),
        }
    }

    /// The conversation as it is sent: with the check within a turn, results that are too long
    /// are shortened where that is enough.
    async fn messages(&self, tools: &[Tool]) -> Result<Vec<Message>, TurnError> {
        let messages = self.conversation.view().await?.messages();
        if !self.settings().mid_turn_precheck.enabled {
            return Ok(messages);
        }
        let overhead = self.overhead(tools).await;
        Ok(
            match truncate::fit(messages.clone(), overhead, self.budget()) {
                Fit::Whole(fitting) | Fit::Shortened(fitting, _) => fitting,
                Fit::TooLong { .. } => messages,
            },
        )
    }

    /// The tokens of what stands beside the conversation in a request, by estimate.
    async fn overhead(&self, tools: &[Tool]) -> u64 {
        let system = tokens::of_text(&self.system().await);
        let tool = |tool: &Tool| {
            let parameters = tool.parameters.to_string().len();
            tokens::of_bytes(tool.name.len() + tool.description.len() + parameters)
        };
        tools.iter().map(tool).fold(system, u64::saturating_add)
    }

    /// After the results of tools: what does not fit any more is compacted before the model is
    /// asked again.
    pub(super) async fn between_rounds(&mut self, tools: &[Tool]) {
        let settings = self.settings();
        let is_checked = settings.mid_turn_precheck.enabled && settings.enabled;
        if !is_checked || self.on_overflow == OnOverflow::GiveUp {
            return;
        }
        let Ok(view) = self.conversation.view().await else {
            return;
        };
        let overhead = self.overhead(tools).await;
        if let Fit::TooLong { estimate } = truncate::fit(view.messages(), overhead, self.budget()) {
            tracing::info!(session = %self.session, estimate, "the turn does not fit any more");
            self.try_compact(Trigger::MidTurn).await;
        }
    }

    /// After a successful turn: notes are written, and the conversation compacted, where that
    /// is due; in this order.
    pub(super) async fn after_answer(&mut self) {
        let due = match self.due().await {
            Ok(due) => due,
            Err(error) => {
                let session = &self.session;
                tracing::warn!(%session, %error, "what is due after a turn is not known");
                return;
            }
        };
        if due.flush
            && let Err(error) = Box::pin(self.flush()).await
        {
            tracing::warn!(session = %self.session, %error, "notes were not written");
        }
        if due.compaction {
            self.try_compact(Trigger::Threshold).await;
        }
    }

    async fn due(&self) -> Result<budget::Due, TurnError> {
        let conversation = Conversation::open(&self.runner.shelves, &self.session).await?;
        let context = conversation.view().await?.context();
        let cycle = Cycle {
            compactions: conversation.entry.compaction_count.unwrap_or(0),
            flushed_at: conversation.entry.memory_flush_compaction_count,
        };
        let access = self
            .config
            .agents
            .workspace_access(self.session.agent().as_str());
        let whose = (cycle, Owner::Runner(access));
        Ok(budget::due(context, self.budget(), self.settings(), whose))
    }

    /// The silent turn in which the agent writes down what must outlast a compaction.
    async fn flush(&mut self) -> Result<(), TurnError> {
        let settings = &self.settings().memory_flush;
        let session = self.session.clone();
        tracing::info!(%session, "memory flush start");
        let quiet = News::default();
        let mut turn = Turn::open(self.runner, &session, self.config, &quiet).await?;
        turn.beside = Some(&settings.system_prompt);
        turn.on_overflow = OnOverflow::GiveUp;
        if let Some(name) = &settings.model {
            // Exactly this one: housekeeping never falls back to a model that costs more.
            let model = self.config.model(name).ok_or(TurnError::NoModel)?;
            turn.endpoint = endpoint(&model)?;
            turn.model = model;
        }
        turn.conversation
            .append_hidden(FLUSH, &settings.prompt)
            .await?;
        let mut tools = tools::session_tools();
        tools.push(tools::memory_tool());
        let written = turn.answered(&tools).await;
        self.cost.add(turn.cost);
        written?;
        self.conversation = turn.conversation;
        let noted = self.runner.state.note_flush(session.clone()).await;
        noted.map_err(|error| TurnError::Door(error.into()))?;
        tracing::info!(%session, "memory flush complete");
        Ok(())
    }
}
