//! What is run, and who hears how it ended.

use std::time::Duration;

use tidings_protocol::session_api::{
    ApiError, ChatDone, ChatUsage, InputProvenance, MessageRecorded, PrivateText, Request, RunEnd,
    RunFinished, SpeakerRef,
};

use super::Runner;
use super::error::TurnError;
use super::job::{Job, News};
use super::opening::Opening;
use super::prompt::cut;
use super::turn::TurnDone;
use crate::state::{MAX_MESSAGE_BYTES, SessionAddress};
use crate::turns::commands::ChatCommand;

/// The channel by which a person talks to a session here.
const CHANNEL: &str = "chat";
/// What could not be taken is taken again so much later: what stands in the way is a disk, or
/// somebody's lock.
const RETRY: Duration = Duration::from_secs(5);
/// So often it is tried again, each time after twice the time: within six minutes.
const MOST_FAILURES: u32 = 6;
/// What the parent of a child reads where its run was cut off.
const ANOTHER: &str = "Another conversation has begun.";
const CUT_OFF: &str = "The gateway ended while this was run.";

impl Job {
    /// Says that it is not run.
    pub(super) async fn refuse(self, error: ApiError) {
        match self {
            Self::Chat { news, .. } => news.end(Err(error)).await,
            Self::Compact { answer, .. } => {
                let _ = answer.send(Err(error));
            }
            Self::Due | Self::Again(_) | Self::Child => {
                tracing::warn!(%error, "a turn is not run");
            }
        }
    }
}

impl Runner {
    /// Runs a job to its end, or until the gateway stops.
    pub(super) async fn chore(&self, session: &SessionAddress, job: Job) {
        if job.is_unwanted() {
            tracing::info!(%session, "whoever asked for a turn has gone: it is not run");
            return;
        }
        match job {
            Job::Chat { message, news } => {
                let chat = self.chat(session, &message.0, &news);
                let done = self.unless_stopped(session, chat).await;
                if let Err(error) = &done {
                    tracing::warn!(%session, %error, "a turn came to nothing");
                }
                news.end(done.map_err(ApiError::from)).await;
            }
            Job::Due => self.wake_up(session, 0).await,
            Job::Again(failures) => self.wake_up(session, failures).await,
            Job::Child => self.child(session).await,
            Job::Compact {
                instructions,
                news,
                answer,
            } => {
                let work = self.compact_session(session, instructions, &news);
                let compacted = self.unless_stopped(session, work).await;
                let _ = answer.send(compacted.map_err(ApiError::from));
            }
        }
    }

    /// Work in a session, ended where the gateway stops meanwhile.
    async fn unless_stopped<T>(
        &self,
        session: &SessionAddress,
        work: impl Future<Output = Result<T, TurnError>>,
    ) -> Result<T, TurnError> {
        let done = tokio::select! {
            done = work => return done,
            () = self.stop() => Err(TurnError::Stopped),
        };
        if let Err(error) = self
            .ask(session, Request::TurnEnd(SpeakerRef::default()))
            .await
        {
            tracing::warn!(%session, %error, "a turn was not ended");
        }
        done
    }

    /// Waits until the gateway stops.
    async fn stop(&self) {
        let mut stopped = self.stopped.clone();
        let _ = stopped.wait_for(|stopped| *stopped).await;
    }

    /// A turn with what waits for the session, if anything does; after failures also with what
    /// was taken before and has no answer.
    async fn due(
        &self,
        session: &SessionAddress,
        failures: u32,
    ) -> Result<Option<TurnDone>, TurnError> {
        let news = News::default();
        let opening = match failures {
            0 => Opening::Waiting,
            _ => Opening::Unanswered,
        };
        let turn = self.turn(session, opening, &news);
        let done = self.unless_stopped(session, turn).await;
        match &done {
            Ok(Some(_)) => self.take_more(session),
            Ok(None) => {}
            Err(error) => tracing::warn!(%session, %error, failures, "a turn came to nothing"),
        }
        // Nothing was taken, so somebody is woken for it at once: not in a circle.
        let is_untaken = matches!(
            done,
            Err(TurnError::Conversation(_)
                | TurnError::Door(_)
                | TurnError::Endpoint(_)
                | TurnError::NoModel)
        );
        if is_untaken {
            tokio::select! {
                () = tokio::time::sleep(RETRY) => {}
                () = self.stop() => {}
            }
        }
        done
    }

    /// A turn that nobody waits for.
    async fn wake_up(&self, session: &SessionAddress, failures: u32) {
        if let Err(error) = self.due(session, failures).await {
            self.try_again(session, failures, &error);
        }
    }

    /// Nobody waits for such a turn, and nothing comes again that would begin it: while what is
    /// wrong with the model passes, it is tried again.
    fn try_again(&self, session: &SessionAddress, failures: u32, error: &TurnError) {
        let passes = matches!(error, TurnError::Model(error) if error.is_passing());
        if !passes || failures >= MOST_FAILURES {
            return;
        }
        let (jobs, session) = (self.jobs.clone(), session.clone());
        tokio::spawn(async move {
            tokio::time::sleep(RETRY * 2_u32.pow(failures)).await;
            // A gateway that is full or ends has told so itself.
            let _ = jobs.submit(session, Job::Again(failures + 1));
        });
    }

    /// One turn takes only so much: the rest is taken by the next.
    fn take_more(&self, session: &SessionAddress) {
        if let Err(error) = self.jobs.submit(session.clone(), Job::Due) {
            tracing::warn!(%session, %error, "what more there is waits for a turn");
        }
    }

    /// A child's turn: its parent hears how it ended.
    async fn child(&self, session: &SessionAddress) {
        match self.due(session, 0).await {
            // Somebody else has taken the task, and says how it ends.
            Ok(None) => {}
            Ok(Some(done)) => self.finish(session, RunEnd::Completed, done.reply).await,
            Err(error) => {
                let why = Some(error.to_string());
                self.finish(session, error.run_end(), why).await;
            }
        }
    }

    /// The process before has ended in the middle of a child's run.
    pub(super) async fn child_was_cut(&self, session: &SessionAddress) {
        let why = Some(CUT_OFF.to_owned());
        self.finish(session, RunEnd::Cancelled, why).await;
    }

    async fn finish(&self, session: &SessionAddress, outcome: RunEnd, result: Option<String>) {
        let result = result.filter(|result| !result.trim().is_empty());
        let run = RunFinished {
            session_key: session.key().clone(),
            agent: Some(session.agent().to_string()),
            outcome,
            result: result.map(|result| PrivateText(cut(result, MAX_MESSAGE_BYTES))),
            run_id: None,
            caller: None,
        };
        if let Err(error) = self.ask(session, Request::RunFinished(run)).await {
            tracing::warn!(%session, %error, "the end of a run was not recorded");
        }
    }

    /// What a person says in chat.
    async fn chat(
        &self,
        session: &SessionAddress,
        message: &str,
        news: &News,
    ) -> Result<ChatDone, TurnError> {
        match ChatCommand::parse(message) {
            None => self.say(session, message, news).await,
            Some(ChatCommand::Status) => {
                let status = self.status(session).await?;
                Ok(told(session, status, news))
            }
            Some(ChatCommand::New(said) | ChatCommand::Reset(said)) => {
                let reset = Request::SessionReset(SpeakerRef::default());
                self.ask(session, reset).await?;
                match said {
                    Some(said) => self.say(session, &said, news).await,
                    None => Ok(told(session, ANOTHER.to_owned(), news)),
                }
            }
            Some(ChatCommand::Compact(focus)) => {
                let focus = focus.map(PrivateText);
                let done = self.compact_session(session, focus, news).await?;
                let text = if done.compacted {
                    let (before, after) = (done.tokens_before, done.tokens_after);
                    format!("Compacted: {before} tokens before, about {after} now.")
                } else {
                    "There is nothing to compact.".to_owned()
                };
                let told = told(session, text, news);
                Ok(ChatDone {
                    compacted: done.compacted.then_some(true),
                    ..told
                })
            }
        }
    }

    async fn say(
        &self,
        session: &SessionAddress,
        message: &str,
        news: &News,
    ) -> Result<ChatDone, TurnError> {
        let recorded = MessageRecorded {
            session_key: None,
            agent: None,
            provenance: InputProvenance::ExternalUser,
            channel: Some(CHANNEL.to_owned()),
            occurred_at: None,
            dedupe_key: None,
        };
        self.ask(session, Request::MessageRecorded(recorded))
            .await?;
        let done = self.turn(session, Opening::Said(message), news).await?;
        let Some(done) = done else {
            return Ok(told(session, String::new(), news));
        };
        self.take_more(session);
        let reply = done.reply.map(|reply| cut(reply, MAX_MESSAGE_BYTES));
        let context = done.cost.tokens.context;
        Ok(ChatDone {
            reply: reply.map(PrivateText),
            session_key: session.key().clone(),
            usage: ChatUsage {
                input_tokens: done.cost.tokens.input,
                output_tokens: done.cost.tokens.output,
                context_tokens: context.map_or(0, |context| context.tokens),
                context_window: done.window,
                estimated: done.cost.estimated || context.is_some_and(|context| context.estimated),
            },
            compacted: done.compacted.then_some(true),
        })
    }
}

/// What the gateway itself answers.
fn told(session: &SessionAddress, text: String, news: &News) -> ChatDone {
    news.text(&text);
    ChatDone {
        reply: Some(PrivateText(text)),
        session_key: session.key().clone(),
        usage: ChatUsage::default(),
        compacted: None,
    }
}
