//! Runs turns: one at a time in each session, against the configured model.
//!
//! | where | what |
//! |---|---|
//! | `job`, `lanes` | what can be run, who waits for whom |
//! | `chores` | what is run because somebody is woken, sent something, or asks |
//! | `opening` | how a turn begins: what it takes |
//! | `turn` | one turn: answers, calls, end |
//! | `prompt`, `tools` | what the model is told, and what it may call |
//! | `conversation` | the transcript, as turns read and write it |
//! | `compacting`, `summariser` | compaction around a turn, and who summarises |
//! | `cost` | what a turn costs |
//! | `status` | how a session stands, for a person |
//! | `memory` | the agent's workspace: instructions, notes |

mod chores;
mod compacting;
mod conversation;
mod cost;
mod error;
mod job;
mod lanes;
mod memory;
mod opening;
mod prompt;
mod status;
mod summariser;
mod tools;
mod turn;

use std::sync::Arc;

use tidings_protocol::session_api::{ApiError, ErrorType, Reply, Request};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{mpsc, watch};
use tokio::task::{Id, JoinSet};

pub(crate) use conversation::Shelves;
pub(crate) use job::{Job, News, Submitted};

use crate::config::Config;
use crate::doors::Service;
use crate::state::{Effect, RunSession, SessionAddress, State};
use crate::turns::models::Models;
use lanes::{Full, Lanes};

/// Jobs that are submitted and not taken yet: they are taken at once.
const MAX_SUBMITTED: usize = 256;

/// Takes jobs for the runner.
#[derive(Debug, Clone)]
pub(crate) struct Jobs {
    submitted: mpsc::Sender<Submitted>,
    config: watch::Receiver<Arc<Config>>,
}

/// What comes out of [`Jobs`].
#[derive(Debug)]
pub(crate) struct Inbox(mpsc::Receiver<Submitted>);

/// Runs turns.
pub(crate) struct Runner {
    pub(crate) state: State,
    pub(crate) service: Service,
    pub(crate) shelves: Shelves,
    pub(crate) models: Models,
    pub(crate) jobs: Jobs,
    pub(crate) stopped: watch::Receiver<bool>,
}

impl Jobs {
    /// A way to submit jobs, and where they come out.
    pub(crate) fn new(config: watch::Receiver<Arc<Config>>) -> (Self, Inbox) {
        let (submitted, inbox) = mpsc::channel(MAX_SUBMITTED);
        (Self { submitted, config }, Inbox(inbox))
    }

    /// The configuration in force.
    pub(crate) fn config(&self) -> Arc<Config> {
        self.config.borrow().clone()
    }

    /// True while a model is configured: then turns are run.
    pub(crate) fn are_run(&self) -> bool {
        self.config.borrow().default_model().is_some()
    }

    /// Has a job run in a session, behind what waits there already.
    pub(crate) fn submit(&self, session: SessionAddress, job: Job) -> Result<(), ApiError> {
        let submitted = Submitted { session, job };
        self.submitted
            .try_send(submitted)
            .map_err(|_| too_many("in this gateway"))
    }
}

fn too_many(place: &str) -> ApiError {
    ApiError::new(
        ErrorType::TryLater,
        format!("too many turns wait {place} already"),
    )
    .with_hint("try again when some of them have been run")
}

impl Runner {
    /// Runs what is submitted, and what wakes are for, until the gateway stops.
    pub(crate) async fn run(self: Arc<Self>, mut inbox: Inbox) {
        let mut stopped = self.stopped.clone();
        // Subscribed before the look: what comes between the two is told twice, never not.
        let mut effects = self.state.subscribe();
        let mut work = Work::default();
        self.resume(&mut work).await;
        loop {
            work.start(&self);
            tokio::select! {
                _ = stopped.changed() => break,
                submitted = inbox.0.recv() => match submitted {
                    Some(submitted) => work.add(submitted.session, submitted.job),
                    None => break,
                },
                effect = effects.recv() => self.hear(effect, &mut work).await,
                Some(ended) = work.running.join_next_with_id() => work.end(&ended),
            }
        }
        // Each turn hears of it by itself, and says how it ended.
        while work.running.join_next().await.is_some() {}
    }

    /// What was under way when the process before ended, and what waits since then.
    async fn resume(&self, work: &mut Work) {
        if !self.jobs.are_run() {
            return;
        }
        match self.state.resume_run_sessions().await {
            Ok(sessions) => {
                for session in sessions {
                    self.resume_one(session, work).await;
                }
            }
            Err(error) => tracing::error!(%error, "the sessions that are run are not known"),
        }
        self.look_for_wakes(work).await;
    }

    async fn resume_one(&self, found: RunSession, work: &mut Work) {
        if found.is_child && found.was_running {
            self.child_was_cut(&found.session).await;
        } else if found.has_messages && found.is_child {
            work.add(found.session, Job::Child);
        } else if found.was_running {
            // One failure: the process itself.
            work.add(found.session, Job::Again(1));
        } else if found.has_messages {
            work.add(found.session, Job::Due);
        }
    }

    async fn hear(&self, effect: Result<Effect, RecvError>, work: &mut Work) {
        match effect {
            Ok(Effect::Wake(wake)) => self.wake(&wake, work).await,
            Ok(_) => {}
            Err(RecvError::Lagged(_)) => self.look_for_wakes(work).await,
            // The state closes; the stop that follows ends this.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }

    async fn look_for_wakes(&self, work: &mut Work) {
        match self.state.wakes().await {
            Ok(wakes) => {
                for wake in wakes {
                    self.wake(&wake, work).await;
                }
            }
            Err(error) => tracing::warn!(%error, "who is to be woken is not known"),
        }
    }

    async fn wake(&self, wake: &crate::state::Wake, work: &mut Work) {
        if let Some(session) = self.service.run_session_of(&wake.watcher).await {
            work.add(session, Job::Due);
        }
    }

    /// Asks the session interface, as a session.
    async fn ask(&self, session: &SessionAddress, request: Request) -> Result<Reply, ApiError> {
        self.service.ask_as(session, request).await
    }

    /// The configuration in force.
    fn config(&self) -> Arc<Config> {
        self.jobs.config()
    }

    /// From now on the gateway runs this session.
    async fn own(&self, session: &SessionAddress) -> Result<(), ApiError> {
        Ok(self.state.run_session(session.clone()).await?)
    }
}

/// What waits and what runs.
#[derive(Default)]
struct Work {
    lanes: Lanes<Job>,
    running: JoinSet<()>,
    sessions: std::collections::HashMap<Id, SessionAddress>,
}

impl Work {
    fn add(&mut self, session: SessionAddress, job: Job) {
        let due = matches!(job, Job::Due);
        let is_covered = |waiting: &Job| due && Job::Due.is_covered_by(waiting);
        if let Err(Full(job)) = self.lanes.add(session, job, is_covered) {
            // Whoever waits for it may be slow; nothing else is to wait for that.
            tokio::spawn(job.refuse(too_many("in this session")));
        }
    }

    fn start(&mut self, runner: &Arc<Runner>) {
        while let Some((session, job)) = self.lanes.next() {
            let (runner, whose) = (Arc::clone(runner), session.clone());
            let task = self
                .running
                .spawn(async move { Box::pin(runner.chore(&whose, job)).await });
            self.sessions.insert(task.id(), session);
        }
    }

    fn end(&mut self, ended: &Result<(Id, ()), tokio::task::JoinError>) {
        let id = match ended {
            Ok((id, ())) => *id,
            Err(error) => {
                tracing::error!(%error, "a turn broke off");
                error.id()
            }
        };
        if let Some(session) = self.sessions.remove(&id) {
            self.lanes.end(&session);
        }
    }
}
