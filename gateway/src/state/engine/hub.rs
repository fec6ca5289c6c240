//! Where the outside listens: effects, the head of the log, the health of the database.

use std::sync::{Arc, OnceLock};

use tokio::sync::{broadcast, watch};

use super::meter::Meter;
use crate::state::effect::EFFECTS_KEPT;
use crate::state::{Effect, Health, StateError};

/// The channels out of the state layer.
pub(crate) struct Hub {
    effects: broadcast::Sender<Effect>,
    head: watch::Sender<u64>,
    health: watch::Sender<Health>,
    failed: OnceLock<Arc<StateError>>,
    meter: Meter,
}

impl Hub {
    /// Channels with the log standing at `head`.
    pub(crate) fn new(head: u64) -> Self {
        Self {
            effects: broadcast::Sender::new(EFFECTS_KEPT),
            head: watch::Sender::new(head),
            health: watch::Sender::new(Health::Serving),
            failed: OnceLock::new(),
            meter: Meter::default(),
        }
    }

    /// Hands out what a commit meant.
    pub(crate) fn publish(&self, head: Option<u64>, effects: impl Iterator<Item = Effect>) {
        if let Some(head) = head {
            self.head.send_replace(head);
        }
        for effect in effects {
            // An error says that nobody listens.
            let _ = self.effects.send(effect);
        }
    }

    /// Says how the database stands, but for the first failure, which is final.
    pub(crate) fn report(&self, health: Health) {
        if let Health::Failed(error) = &health {
            // An error says that it had failed before.
            let _ = self.failed.set(Arc::clone(error));
        } else if self.failed().is_some() {
            return;
        }
        self.health.send_replace(health);
    }

    /// The failure after which nothing more is written.
    pub(crate) fn failed(&self) -> Option<&StateError> {
        self.failed.get().map(|error| &**error)
    }

    /// What the writer counts.
    pub(crate) fn meter(&self) -> &Meter {
        &self.meter
    }

    pub(crate) fn effects(&self) -> broadcast::Receiver<Effect> {
        self.effects.subscribe()
    }

    pub(crate) fn head(&self) -> watch::Receiver<u64> {
        self.head.subscribe()
    }

    pub(crate) fn health(&self) -> watch::Receiver<Health> {
        self.health.subscribe()
    }
}
