//! One turn of a session: what waits for it and what a person says becomes a prompt, the model
//! answers and calls tools until it calls none.

use serde_json::{Value, json};
use tidings_protocol::session_api::{LeaseRef, Reply, Request, SpeakerRef, TurnBegun};

use super::Runner;
use super::conversation::Conversation;
use super::error::TurnError;
use super::job::News;
use super::prompt;
use super::tools::{self, Called};
use crate::config::{Compaction, Config, Model, ModelKind};
use crate::sessions::hygiene::{Block, Message, Role};
use crate::state::{SessionAddress, TurnCost};
use crate::turns::budget::Budget;
use crate::turns::models::{Answer, Endpoint, ModelError, Prompt, Protocol, Tool, Usage};
use crate::turns::silent::{self, Draft, Ending};
use crate::turns::{message, tokens};

/// A model that has called tools so often in one turn is stopped: it goes in circles.
const MAX_ROUNDS: usize = 64;
/// The longest answer that is asked for, in tokens.
const MAX_ANSWER_TOKENS: u32 = 8_192;

/// A turn that is run.
pub(super) struct Turn<'a> {
    pub(super) runner: &'a Runner,
    pub(super) session: SessionAddress,
    pub(super) config: &'a Config,
    pub(super) model: Model,
    pub(super) endpoint: Endpoint,
    pub(super) conversation: Conversation,
    pub(super) news: &'a News,
    /// What is said beside the usual instructions.
    pub(super) beside: Option<&'a str>,
    pub(super) on_overflow: OnOverflow,
    pub(super) cost: Cost,
    pub(super) compacted: bool,
}

/// What is done where a prompt does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnOverflow {
    /// The conversation is compacted, and the prompt sent once more.
    Compact,
    /// Nothing: a compaction follows anyway.
    GiveUp,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TurnDone {
    /// What the model said at last; `None` where it was silent.
    pub(super) reply: Option<String>,
    /// What it cost.
    pub(super) cost: Cost,
    /// How many tokens the model sees at most.
    pub(super) window: u64,
    /// True where the history was compacted on the way.
    pub(super) compacted: bool,
}

/// What a turn has cost so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cost {
    /// In all.
    pub(super) tokens: TurnCost,
    /// True where the provider did not count some of it.
    pub(super) estimated: bool,
}

/// What a turn is begun for, beside what waits for the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opening<'a> {
    /// A person says this.
    Said(&'a str),
    /// Nothing else.
    Waiting,
    /// What was said before, where it has no answer yet.
    Unanswered,
}

/// What a model calls.
struct Call {
    id: String,
    name: String,
    arguments: Value,
}

impl Runner {
    /// Runs a turn with what waits for the session, and what a person says. `None` where there
    /// was nothing.
    pub(super) async fn turn(
        &self,
        session: &SessionAddress,
        opening: Opening<'_>,
        news: &News,
    ) -> Result<Option<TurnDone>, TurnError> {
        let speaker = || SpeakerRef::default();
        let begun = match self.ask(session, Request::TurnBegin(speaker())).await? {
            Reply::TurnBegin(begun) => begun,
            _ => TurnBegun::default(),
        };
        let done = Box::pin(self.taken(session, &begun, opening, news)).await;
        if let Err(error) = self.ask(session, Request::TurnEnd(speaker())).await {
            tracing::warn!(%session, %error, "a turn was not ended");
        }
        done
    }

    async fn taken(
        &self,
        session: &SessionAddress,
        begun: &TurnBegun,
        opening: Opening<'_>,
        news: &News,
    ) -> Result<Option<TurnDone>, TurnError> {
        let said = match opening {
            Opening::Said(said) => Some(said),
            Opening::Waiting | Opening::Unanswered => None,
        };
        let prompt = prompt::opening(begun, said);
        if prompt.is_none() && opening != Opening::Unanswered {
            return Ok(None);
        }
        let lease = begun.token.clone().map(|token| LeaseRef { token });
        let config = self.config();
        let opened = async {
            self.own(session).await?;
            let mut turn = Turn::open(self, session, &config, news).await?;
            turn.before_prompt().await;
            if let Some(prompt) = &prompt {
                let entry = message::to_entry(prompt);
                turn.conversation.append(&[entry]).await?;
            }
            Ok::<_, TurnError>(turn)
        };
        let turn = match (opened.await, lease) {
            (Ok(turn), None) => turn,
            (Ok(turn), Some(lease)) => {
                self.ask(session, Request::TurnConfirm(lease)).await?;
                turn
            }
            (Err(error), None) => return Err(error),
            (Err(error), Some(lease)) => {
                self.ask(session, Request::TurnRelease(lease)).await?;
                return Err(error);
            }
        };
        if prompt.is_none() && turn.is_answered().await? {
            return Ok(None);
        }
        turn.run().await.map(Some)
    }
}

impl<'a> Turn<'a> {
    /// Opens a session's conversation for a turn.
    pub(super) async fn open(
        runner: &'a Runner,
        session: &SessionAddress,
        config: &'a Config,
        news: &'a News,
    ) -> Result<Self, TurnError> {
        let conversation = Conversation::open(&runner.shelves, session).await?;
        let model = model_of(config, conversation.entry.model_override.as_deref());
        let model = model.ok_or(TurnError::NoModel)?;
        Ok(Self {
            runner,
            session: session.clone(),
            config,
            endpoint: endpoint(&model)?,
            model,
            conversation,
            news,
            beside: None,
            on_overflow: OnOverflow::Compact,
            cost: Cost::default(),
            compacted: false,
        })
    }

    /// True where the model spoke last.
    async fn is_answered(&self) -> Result<bool, TurnError> {
        let view = self.conversation.view().await?;
        let last = view.items.last();
        Ok(last.is_none_or(|item| item.message.role == Role::Assistant))
    }

    async fn run(mut self) -> Result<TurnDone, TurnError> {
        let answered = self.answered(&tools::session_tools()).await;
        let counted = self.count().await;
        let reply = answered?;
        counted?;
        Box::pin(self.after_answer()).await;
        Ok(TurnDone {
            reply: (!silent::is_silent(&reply)).then_some(reply),
            cost: self.cost,
            window: self.model.context_window,
            compacted: self.compacted,
        })
    }

    /// Asks the model, and makes its calls, until it calls nothing: what it said then.
    pub(super) async fn answered(&mut self, tools: &[Tool]) -> Result<String, TurnError> {
        for _ in 0..MAX_ROUNDS {
            let answer = self.ask_recovering(tools).await?;
            let calls = calls(&answer.message);
            let said = prompt::text_of(&answer.message);
            self.take(&answer).await?;
            if calls.is_empty() {
                return Ok(said);
            }
            if !said.is_empty() {
                self.news.text("\n\n");
            }
            let mut results = Vec::with_capacity(calls.len());
            for call in calls {
                results.push(message::to_entry(&self.call(call, tools).await));
            }
            self.conversation.append(&results).await?;
            self.between_rounds(tools).await;
        }
        Err(TurnError::TooManyRounds(MAX_ROUNDS))
    }

    /// Asks the model once.
    pub(super) async fn ask(
        &mut self,
        messages: &[Message],
        tools: &[Tool],
    ) -> Result<Answer, ModelError> {
        let system = self.system().await;
        let prompt = Prompt {
            system: &system,
            messages,
            tools,
            max_tokens: max_tokens(&self.model),
        };
        let mut draft = Draft::default();
        let news = self.news;
        let mut on_text = |text: &str| news.text(&draft.push(text));
        let models = &self.runner.models;
        let answer = models.ask(&self.endpoint, &prompt, &mut on_text).await?;
        if let Ending::Rest(rest) = draft.finish() {
            news.text(&rest);
        }
        let estimate = tokens::of_text(&system).saturating_add(tokens::of_messages(messages));
        self.add_cost(&answer, estimate);
        Ok(answer)
    }

    /// What the model is told before the conversation.
    pub(super) async fn system(&self) -> String {
        let usual = self.runner.system_prompt(&self.session, self.config).await;
        match self.beside {
            Some(beside) => format!("{usual}\n\n{beside}"),
            None => usual,
        }
    }

    fn add_cost(&mut self, answer: &Answer, prompt_estimate: u64) {
        let usage = answer.usage.unwrap_or(Usage {
            input: prompt_estimate,
            output: tokens::of_message(&answer.message),
        });
        let cost = &mut self.cost;
        cost.estimated |= answer.usage.is_none();
        cost.tokens.input = cost.tokens.input.saturating_add(usage.input);
        cost.tokens.output = cost.tokens.output.saturating_add(usage.output);
        cost.tokens.context = usage.input.saturating_add(usage.output);
    }

    /// Writes an answer into the transcript.
    async fn take(&mut self, answer: &Answer) -> Result<(), TurnError> {
        let mut entry = message::to_entry(&answer.message);
        entry["model"] = json!(self.model.model);
        if let Some(usage) = answer.usage {
            entry["usage"] = json!({
                "input": usage.input,
                "output": usage.output,
                "totalTokens": usage.input.saturating_add(usage.output),
            });
        }
        self.conversation.append(&[entry]).await?;
        Ok(())
    }

    async fn call(&self, call: Call, tools: &[Tool]) -> Message {
        let is_offered = tools.iter().any(|tool| tool.name == call.name);
        let called = if is_offered {
            tools::called(&call.name, &call.arguments)
        } else {
            Err("There is no such tool.".to_owned())
        };
        let (text, is_error) = match called {
            Ok(Called::Request(request)) => {
                tools::result(self.runner.ask(&self.session, request).await)
            }
            Ok(Called::Memory(text)) => self.remember(&text).await,
            Err(wrong) => (wrong, true),
        };
        Message {
            role: Role::ToolResult,
            content: vec![Block::ToolOutput {
                call_id: call.id,
                text,
                is_error,
            }],
            stop_reason: None,
        }
    }

    pub(super) fn settings(&self) -> &'a Compaction {
        &self.config.agents.defaults.compaction
    }

    pub(super) fn budget(&self) -> Budget {
        Budget::new(self.model.context_window, self.settings())
    }

    /// Counts what was spent, whatever came of it.
    async fn count(&mut self) -> Result<(), TurnError> {
        if self.cost.tokens == TurnCost::default() {
            return Ok(());
        }
        let counting = self
            .runner
            .state
            .count_turn(self.session.clone(), self.cost.tokens);
        counting
            .await
            .map_err(|error| TurnError::Door(error.into()))
    }
}

/// The model of a session: its own where it has one that is configured, else the usual one.
pub(super) fn model_of(config: &Config, chosen: Option<&str>) -> Option<Model> {
    let chosen = chosen.and_then(|name| config.model(name));
    chosen.or_else(|| config.default_model().map(|(_, model)| model))
}

pub(super) fn endpoint(model: &Model) -> Result<Endpoint, TurnError> {
    let protocol = match model.kind {
        ModelKind::Openai => Protocol::OpenAi,
        ModelKind::Anthropic => Protocol::Anthropic,
    };
    let (name, key) = (model.model.clone(), model.api_key_env.clone());
    Ok(Endpoint::new(protocol, &model.base_url, name, key)?)
}

/// How long an answer may be: never more than half of what the model sees.
pub(super) fn max_tokens(model: &Model) -> u32 {
    let half = u32::try_from(model.context_window / 2).unwrap_or(u32::MAX);
    half.clamp(1, MAX_ANSWER_TOKENS)
}

fn calls(message: &Message) -> Vec<Call> {
    let call = |block: &Block| match block {
        Block::ToolCall {
            id,
            name,
            arguments,
        } => Some(Call {
            id: id.clone(),
            name: name.clone(),
            arguments: arguments.clone(),
        }),
        _ => None,
    };
    message.content.iter().filter_map(call).collect()
}
