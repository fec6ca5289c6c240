//! Requests about the session stores: their upkeep, and runs of cron jobs.

use tidings_protocol::SessionKey;
use tidings_protocol::session_api::{
    ApiError, CleanedUp, CleanupAgents, CleanupDoing, CronRun, CronRunBegin, CronRuns,
    CronRunsList, ErrorType, MAX_CRON_RUNS_PER_PAGE, SessionsCleanup,
};

use super::Service;
use crate::sessions::files::Files;
use crate::sessions::lives::{Continued, Life};
use crate::sessions::local_time;
use crate::sessions::maintenance::facts::Occasion;
use crate::sessions::maintenance::keep::settings;
use crate::sessions::maintenance::report::report;
use crate::sessions::maintenance::run::Doing;
use crate::sessions::projection::Stores;
use crate::state::{Conversation, CronRunsPage, NewCronRun, SessionAddress};

/// A message that comes to a session.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Coming<'a> {
    /// The only conversation that it is for.
    pub(super) expected: Option<&'a str>,
    /// The conversation that an operator has come back to with it.
    pub(super) resumed: Option<&'a str>,
    /// Its dedupe key.
    pub(super) dedupe_key: Option<&'a str>,
}

impl Service {
    pub(super) async fn sessions_cleanup(
        &self,
        cleanup: SessionsCleanup,
    ) -> Result<CleanedUp, ApiError> {
        let stores = self.stores();
        let agents = match &cleanup.agents {
            CleanupAgents::Default {} => vec![self.agent(None)?],
            CleanupAgents::One { agent } => vec![self.agent(Some(agent))?],
            CleanupAgents::All {} => self.nodes.state.agents().await?,
        };
        let doing = match cleanup.doing {
            CleanupDoing::DryRun => Doing::Nothing,
            CleanupDoing::Enforce => Doing::Everything,
        };
        let settings = settings(&self.info.config.borrow());
        let mut outcomes = Vec::new();
        for agent in agents {
            let outcome = stores
                .maintain(&agent, &settings, Occasion::Asked, doing)
                .await?;
            outcomes.push((agent, outcome));
        }
        let mut cleaned_up = report(settings.maintenance.mode, doing, &outcomes);
        if !matches!(cleanup.agents, CleanupAgents::All {}) {
            cleaned_up.stores.clear();
        }
        Ok(cleaned_up)
    }

    pub(super) async fn cron_run_begin(&self, asked: CronRunBegin) -> Result<CronRun, ApiError> {
        let bad_job = |error: String| {
            let message = format!("the job cannot name a session: {error}");
            ApiError::new(ErrorType::InvalidRequest, message)
        };
        if asked.job_id.trim().is_empty() {
            return Err(bad_job("it is empty".to_owned()));
        }
        let key = SessionKey::parse(&format!("cron:{}", asked.job_id.trim()))
            .map_err(|error| bad_job(error.to_string()))?;
        let session = self.address(key.clone(), asked.agent.as_deref())?;
        let keep_runs = self.info.config.borrow().cron.run_log.keep_lines;
        let run = NewCronRun {
            job_id: job_of(&key).to_owned(),
            session,
            conversation: if asked.force {
                Conversation::New
            } else {
                Conversation::Standing
            },
            keep_runs,
        };
        let begun = self.nodes.state.begin_cron_run(run).await?;
        if begun.is_new {
            self.put_away().await;
        }
        Ok(CronRun {
            run_id: begun.run_id,
            session_key: key,
            session_id: begun.session_id,
            is_new: begun.is_new,
            started_at: begun.started_at,
        })
    }

    pub(super) async fn cron_runs_list(&self, list: CronRunsList) -> Result<CronRuns, ApiError> {
        let agent = match list.agent {
            Some(name) => Some(self.agent(Some(&name))?),
            None => None,
        };
        // As cron_run_begin takes it; what cannot be a job has no runs.
        let job_id = match list.job_id {
            Some(job_id) => match SessionKey::parse(&format!("cron:{}", job_id.trim())) {
                Ok(key) => Some(job_of(&key).to_owned()),
                Err(_) => return Ok(CronRuns::default()),
            },
            None => None,
        };
        let limit = list.limit.unwrap_or(MAX_CRON_RUNS_PER_PAGE);
        let page = CronRunsPage {
            job_id,
            agent,
            limit: limit.clamp(1, MAX_CRON_RUNS_PER_PAGE),
            before: list.before,
        };
        Ok(self.nodes.state.cron_runs(page).await?)
    }

    /// Before somebody's message to a session: begins another conversation where the one that
    /// stands is too old. A message is not refused because nobody knows.
    pub(super) async fn before_message(&self, session: &SessionAddress, message: Coming<'_>) {
        let settings = self.info.config.borrow().session.clone();
        let life = Life {
            settings: &settings,
            zone: &local_time::machine(),
            expected: message.expected,
            resumed: message.resumed,
            dedupe_key: message.dedupe_key,
        };
        match self.stores().before_message(session, life).await {
            Ok(Continued::Same) => {}
            Ok(Continued::RolledOver(why)) => {
                tracing::info!(%session, ?why, "another conversation has begun");
                self.put_away().await;
            }
            Err(error) => tracing::warn!(
                %session, %error, "whether the conversation has ended is not known: it goes on"
            ),
        }
    }

    /// Puts the transcripts of ended conversations among the archives. One that somebody
    /// writes waits for its writer; who has ended the conversation does not.
    pub(super) async fn put_away(&self) {
        let stores = self.stores();
        let locker = stores.locker(&self.info.config.borrow().session.write_lock);
        match stores.put_away(&locker.clone().without_waiting()).await {
            Ok(0) => {}
            Ok(_) => {
                tokio::spawn(async move { stores.put_away(&locker).await });
            }
            Err(error) => tracing::warn!(%error, "transcripts of ended conversations stay"),
        }
    }

    pub(super) fn stores(&self) -> Stores {
        Stores {
            state: self.nodes.state.clone(),
            state_dir: self.info.state_dir.clone(),
            files: Files::default(),
            clock: self.nodes.clock.clone(),
        }
    }
}

/// The job whose session has this key.
fn job_of(key: &SessionKey) -> &str {
    let key = key.as_str();
    key.strip_prefix("cron:").unwrap_or(key)
}
