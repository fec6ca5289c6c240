//! Requests about sessions that the gateway itself runs.

use tidings_protocol::SessionKey;
use tidings_protocol::session_api::{ApiError, Chat, ErrorType, Reply, Request, SessionCompact};
use tokio::sync::{mpsc, oneshot};

use super::Service;
use super::origin::Origin;
use crate::state::{SessionAddress, StateError};
use crate::turns::runner::{Job, Jobs, News};
use crate::upstream::trust::is_adopted;

impl Service {
    /// The same, with somebody who runs turns.
    #[must_use]
    pub(crate) fn run_by(mut self, jobs: Jobs) -> Self {
        self.jobs = Some(jobs);
        self
    }

    /// Answers a session that the gateway runs: it speaks as itself, and as nobody else.
    pub(crate) async fn ask_as(
        &self,
        session: &SessionAddress,
        request: Request,
    ) -> Result<Reply, ApiError> {
        self.reply(&Origin::Session(session.clone()), request).await
    }

    /// The session of a watcher's key, where the gateway runs it.
    pub(crate) async fn run_session_of(&self, watcher: &SessionKey) -> Option<SessionAddress> {
        let session = self.address(watcher.clone(), None).ok()?;
        self.is_run(&session).await.then_some(session)
    }

    /// Runs a session that the gateway runs with what waits for it, at once; false for any
    /// other.
    pub(super) async fn run_now(&self, session: &SessionAddress) -> bool {
        self.is_run(session).await && self.submit(session, Job::Due)
    }

    /// Runs a child with its task, at once, where the gateway runs it.
    pub(super) fn run_child(&self, child: &SessionAddress) -> bool {
        self.submit(child, Job::Child)
    }

    /// Says something to a session, as a person, and tells how its turn goes. The turn ends
    /// where nobody listens any more.
    pub(super) async fn chat(
        &self,
        chat: Chat,
        replies: &mpsc::Sender<Reply>,
    ) -> Result<(), ApiError> {
        let session = self.chatting(chat.session_key, chat.agent.as_deref())?;
        if chat.message.0.trim().is_empty() {
            return Err(ApiError::new(
                ErrorType::InvalidRequest,
                "a message must say something",
            ));
        }
        let (news, mut listening) = News::heard();
        let job = Job::Chat {
            message: chat.message,
            news,
        };
        self.runner()?.submit(session, job)?;
        while let Some(news) = listening.recv().await {
            if replies.send(Reply::Chat(news?)).await.is_err() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Compacts a session's history; the answer comes when that is done.
    pub(super) async fn session_compact(&self, compact: SessionCompact) -> Result<Reply, ApiError> {
        let session = self.address(compact.session_key, compact.agent.as_deref())?;
        if is_adopted(session.key()) {
            return Err(ApiError::new(
                ErrorType::InvalidRequest,
                format!("the history of {session} is its own agent program's"),
            )
            .with_hint("compact it there"));
        }
        if !self.nodes.state.session_exists(session.clone()).await? {
            return Err(StateError::UnknownSession(session.to_string()).into());
        }
        let (answer, answered) = oneshot::channel();
        // Held until the answer is there: with it goes whoever waits.
        let (news, _listening) = News::heard();
        let job = Job::Compact {
            instructions: compact.instructions,
            news,
            answer,
        };
        self.runner()?.submit(session, job)?;
        let compacted = answered
            .await
            .map_err(|_| ApiError::new(ErrorType::Unavailable, "the gateway stops"))?;
        compacted.map(Reply::SessionCompact)
    }

    /// The session that somebody talks to here.
    fn chatting(
        &self,
        key: Option<SessionKey>,
        agent: Option<&str>,
    ) -> Result<SessionAddress, ApiError> {
        let key = match key {
            Some(key) => key,
            None => self.main_session(agent)?,
        };
        let session = self.address(key, agent)?;
        if is_adopted(session.key()) {
            return Err(ApiError::new(
                ErrorType::InvalidRequest,
                format!("{session} is run by its own agent program"),
            )
            .with_hint(format!("tidings sessions send {session} 'a message'")));
        }
        Ok(session)
    }

    /// The main session of an agent, else of the default agent.
    fn main_session(&self, agent: Option<&str>) -> Result<SessionKey, ApiError> {
        let agent = self.agent(agent)?;
        let main_key = self.info.config.borrow().session.main_key.clone();
        SessionKey::parse(&format!("agent:{agent}:{main_key}"))
            .map_err(|error| ApiError::new(ErrorType::Configuration, error.to_string()))
    }

    /// True where turns are run at all: by somebody, and against a model.
    pub(super) fn runs_turns(&self) -> bool {
        self.jobs.as_ref().is_some_and(Jobs::are_run)
    }

    /// The name of the model that turns are run against.
    pub(super) fn model_name(&self) -> Option<String> {
        let config = self.info.config.borrow();
        let model = config.default_model().map(|(name, _)| name.to_owned());
        model.filter(|_| self.jobs.is_some())
    }

    /// Who runs turns.
    fn runner(&self) -> Result<&Jobs, ApiError> {
        let jobs = self.jobs.as_ref().filter(|jobs| jobs.are_run());
        jobs.ok_or_else(|| {
            ApiError::new(
                ErrorType::Configuration,
                "no model is configured, so the gateway runs no turns",
            )
            .with_hint("set agents.defaults.model to one of [models.<name>] in config.toml")
        })
    }

    async fn is_run(&self, session: &SessionAddress) -> bool {
        if !self.runs_turns() {
            return false;
        }
        let is_run = self.nodes.state.is_run_session(session.clone()).await;
        is_run.unwrap_or_else(|error| {
            tracing::warn!(%session, %error, "whether a session is run here is not known");
            false
        })
    }

    /// False where it cannot be run now: it waits for a turn then.
    fn submit(&self, session: &SessionAddress, job: Job) -> bool {
        let submitted = self.runner().map(|jobs| jobs.submit(session.clone(), job));
        matches!(submitted, Ok(Ok(())))
    }
}
