//! Upkeep by itself: after the gateway has added an entry, and every hour from one hour after
//! the start. Never at the start, and never because of an edit by hand.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tidings_protocol::EpochMs;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use super::facts::{Occasion, Settings};
use super::run::{Doing, Outcome};
use crate::awareness::retention::{AgeDeletion, ClockReading, age_deletion};
use crate::config::{Config, MaintenanceMode};
use crate::sessions::projection::Stores;
use crate::state::{AgentId, Effect};

const ROUND: Duration = Duration::from_hours(1);
/// Entries that are added within this time are looked after together.
const COALESCE: Duration = Duration::from_secs(1);

/// Looks after all stores, until the state closes. A gateway that ran last before `last_ran`
/// believes its clock about ages at once, unless that is longer ago than anything is kept:
/// then only after an hour.
pub async fn keep(
    stores: Stores,
    config: watch::Receiver<Arc<Config>>,
    mut effects: broadcast::Receiver<Effect>,
    last_ran: Option<EpochMs>,
) {
    let start = read(&stores);
    let mut rounds = interval_at(Instant::now() + ROUND, ROUND);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut grown = BTreeSet::new();
    let mut due_at = Instant::now();
    loop {
        let due = tokio::select! {
            effect = effects.recv() => {
                match effect {
                    Ok(Effect::EntryAdded { agent }) => {
                        if grown.is_empty() {
                            due_at = Instant::now() + COALESCE;
                        }
                        grown.insert(agent);
                    }
                    // What was missed comes up in the next round.
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                }
                continue;
            }
            () = sleep_until(due_at), if !grown.is_empty() => std::mem::take(&mut grown),
            _ = rounds.tick() => {
                put_away(&stores, &config).await;
                agents(&stores).await
            }
        };
        let settings = settings(&config.borrow());
        let away = last_ran.map_or(0, |last_ran| start.wall.saturating_sub(last_ran));
        let has_jumped = is_longer(away, settings.maintenance.prune_after.0);
        let occasion = occasion(age_deletion(start, read(&stores)), has_jumped);
        for agent in due {
            look_after(&stores, &agent, &settings, occasion).await;
        }
    }
}

/// One wrong clock must not empty the stores: while it may be wrong, nothing goes for its age.
fn occasion(deletion: AgeDeletion, has_jumped: bool) -> Occasion {
    match deletion {
        AgeDeletion::Allowed => Occasion::Usual,
        AgeDeletion::TooEarly if !has_jumped => Occasion::Usual,
        AgeDeletion::TooEarly | AgeDeletion::ClocksDisagree => Occasion::Unsure,
    }
}

fn is_longer(ms: EpochMs, than: Duration) -> bool {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0)) > than
}

/// The settings of upkeep.
#[must_use]
pub fn settings(config: &Config) -> Settings {
    Settings {
        maintenance: config.session.maintenance.clone(),
        cron_retention: config.cron.session_retention.value(),
    }
}

async fn agents(stores: &Stores) -> BTreeSet<AgentId> {
    match stores.state.agents().await {
        Ok(agents) => agents.into_iter().collect(),
        Err(error) => {
            tracing::warn!(%error, "the agents could not be listed");
            BTreeSet::new()
        }
    }
}

/// Tries again what could not be put away when its conversation ended.
pub async fn put_away(stores: &Stores, config: &watch::Receiver<Arc<Config>>) {
    let locker = stores.locker(&config.borrow().session.write_lock);
    if let Err(error) = stores.put_away(&locker.without_waiting()).await {
        tracing::warn!(%error, "transcripts of ended conversations are not known");
    }
}

async fn look_after(stores: &Stores, agent: &AgentId, settings: &Settings, occasion: Occasion) {
    let doing = match settings.maintenance.mode {
        MaintenanceMode::Enforce => Doing::Everything,
        MaintenanceMode::Warn => Doing::Nothing,
    };
    match stores.maintain(agent, settings, occasion, doing).await {
        Ok(outcome) if outcome.actions.is_empty() => {}
        Ok(outcome) => tell(agent, doing, &outcome),
        Err(error) => tracing::warn!(%agent, %error, "the upkeep of a store failed"),
    }
}

fn tell(agent: &AgentId, doing: Doing, outcome: &Outcome) {
    let Outcome {
        before,
        after,
        freed_bytes,
        stuck,
        ..
    } = outcome;
    let failed = stuck.len();
    match doing {
        Doing::Everything => {
            tracing::info!(%agent, before, after, freed_bytes, failed, "a store was looked after");
        }
        Doing::Nothing => tracing::warn!(
            %agent, before, after, freed_bytes,
            "a store is beyond its limits; the mode is warn: tidings sessions cleanup --dry-run"
        ),
    }
}

fn read(stores: &Stores) -> ClockReading {
    ClockReading {
        wall: stores.clock.now(),
        monotonic: stores.clock.monotonic(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_is_believed_at_once_unless_it_has_jumped_and_never_while_clocks_disagree() {
        use AgeDeletion::{Allowed, ClocksDisagree, TooEarly};
        use Occasion::{Unsure, Usual};
        for (deletion, has_jumped, expected) in [
            (TooEarly, false, Usual),
            (TooEarly, true, Unsure),
            (Allowed, false, Usual),
            (Allowed, true, Usual),
            (ClocksDisagree, false, Unsure),
            (ClocksDisagree, true, Unsure),
        ] {
            assert_eq!(
                occasion(deletion, has_jumped),
                expected,
                "{deletion:?} {has_jumped}"
            );
        }
        let day = Duration::from_hours(24);
        for (ms, longer) in [
            (-5, false),
            (0, false),
            (86_400_000, false),
            (86_400_001, true),
        ] {
            assert_eq!(is_longer(ms, day), longer, "{ms}");
        }
    }
}
