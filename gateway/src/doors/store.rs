//! Requests about the session stores: their upkeep, and runs of cron jobs.

use tidings_protocol::SessionKey;
use tidings_protocol::session_api::{
    ApiError, CleanedUp, CleanupAgents, CleanupDoing, CronRun, CronRunBegin, ErrorType,
    SessionsCleanup,
};

use super::Service;
use crate::sessions::files::Files;
use crate::sessions::maintenance::facts::Occasion;
use crate::sessions::maintenance::keep::settings;
use crate::sessions::maintenance::report::report;
use crate::sessions::maintenance::run::Doing;
use crate::sessions::projection::Stores;
use crate::sessions::transcript::lock::{LockTimes, Locker};
use crate::state::{Conversation, NewCronRun};

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
        let (keep_runs, write_lock) = {
            let config = self.info.config.borrow();
            (config.cron.run_log.keep_lines, config.session.write_lock)
        };
        let run = NewCronRun {
            job_id: asked.job_id.trim().to_owned(),
            session: session.clone(),
            conversation: if asked.force {
                Conversation::New
            } else {
                Conversation::Standing
            },
            keep_runs,
        };
        let begun = self.nodes.state.begin_cron_run(run).await?;
        if let Some(ended) = &begun.ended {
            let variable = |name: &str| std::env::var(name).ok();
            let times = LockTimes::resolve(&write_lock, variable);
            let locker = Locker::new(Files::default(), self.nodes.clock.clone(), times);
            // The run has begun: a transcript that stays where it is is found by upkeep.
            if let Err(error) = self.stores().archive(&session, ended, &locker).await {
                tracing::warn!(%session, %error, "a transcript was not put among the archives");
            }
        }
        Ok(CronRun {
            run_id: begun.run_id,
            session_key: key,
            session_id: begun.session_id,
            is_new: begun.is_new,
            started_at: begun.started_at,
        })
    }

    fn stores(&self) -> Stores {
        Stores {
            state: self.nodes.state.clone(),
            state_dir: self.info.state_dir.clone(),
            files: Files::default(),
            clock: self.nodes.clock.clone(),
        }
    }
}
