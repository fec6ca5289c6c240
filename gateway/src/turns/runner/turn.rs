//! One turn of a session: what waits for it and what a person says becomes a prompt, the model
//! answers and calls tools until it calls none.

use serde_json::{Value, json};

use super::Runner;
use super::conversation::Conversation;
use super::cost::Cost;
use super::error::TurnError;
use super::job::News;
use super::prompt;
use super::tools::{self, Called};
use crate::config::{Compaction, Config, Model, ModelKind};
use crate::sessions::hygiene::{Block, Message, Role};
use crate::state::{SessionAddress, TurnCost};
use crate::turns::budget::Budget;
use crate::turns::models::{Answer, Endpoint, ModelError, Prompt, Protocol, Tool};
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
    /// What of the cost stands in the entry.
    pub(super) counted: TurnCost,
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

/// What a model calls.
struct Call {
    id: String,
    name: String,
    arguments: Value,
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
            counted: TurnCost::default(),
            compacted: false,
        })
    }

    /// Runs it: its prompt stands in the transcript.
    pub(super) async fn run(mut self) -> Result<TurnDone, TurnError> {
        let answered = self.answered(&tools::session_tools()).await;
        let counted = self.count().await;
        let reply = answered?;
        counted?;
        Box::pin(self.after_answer()).await;
        self.count().await?;
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
        let (mut draft, mut said) = (Draft::default(), String::new());
        let news = self.news;
        let mut on_text = |text: &str| {
            said.push_str(text);
            news.text(&draft.push(text));
        };
        let models = &self.runner.models;
        let answered = tokio::select! {
            answered = models.ask(&self.endpoint, &prompt, &mut on_text) => answered,
            () = news.gone() => Err(ModelError::Unwanted),
        };
        let estimate = tokens::of_text(&system).saturating_add(tokens::of_messages(messages));
        if let Err(ModelError::Unwanted) = answered {
            self.keep_begun(said, estimate).await;
        }
        let answer = answered?;
        if let Ending::Rest(rest) = draft.finish() {
            news.text(&rest);
        }
        self.add_cost(&answer, estimate);
        Ok(answer)
    }

    /// What the model had said when nobody waited for it any more: it stands in the transcript
    /// as what was aborted.
    async fn keep_begun(&mut self, said: String, prompt_estimate: u64) {
        if said.is_empty() {
            return;
        }
        let begun = Answer {
            message: Message {
                role: Role::Assistant,
                content: vec![Block::Text { text: said }],
                stop_reason: Some("aborted".to_owned()),
            },
            usage: None,
        };
        self.add_cost(&begun, prompt_estimate);
        if let Err(error) = self.take(&begun).await {
            tracing::warn!(session = %self.session, %error, "a begun answer was not kept");
        }
    }

    /// What the model is told before the conversation.
    pub(super) async fn system(&self) -> String {
        let usual = self.runner.system_prompt(&self.session, self.config).await;
        match self.beside {
            Some(beside) => format!("{usual}\n\n{beside}"),
            None => usual,
        }
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
    let endpoint = Endpoint::new(protocol, &model.base_url, name, key)?;
    Ok(endpoint.trusting(model.ca_file.clone()))
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
