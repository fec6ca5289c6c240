//! The writer's memory of interned names.

use std::collections::HashMap;

use tidings_protocol::SessionKey;

use crate::state::SessionAddress;

/// How many names are remembered: some 20 MB with keys at their longest, and more
/// sessions than a gateway sees in a day.
const MAX_NAMES: usize = 16 * 1024;

/// Numbers of session keys and sessions. What a transaction adds is only known to be true
/// once it has committed: after a rollback everything is forgotten.
#[derive(Default)]
pub(crate) struct Names {
    sessions: HashMap<SessionAddress, i64>,
    keys: HashMap<SessionKey, i64>,
    texts: HashMap<i64, SessionKey>,
}

impl Names {
    pub(crate) fn session(&self, address: &SessionAddress) -> Option<i64> {
        self.sessions.get(address).copied()
    }

    pub(crate) fn key(&self, key: &SessionKey) -> Option<i64> {
        self.keys.get(key).copied()
    }

    pub(crate) fn text(&self, key: i64) -> Option<&SessionKey> {
        self.texts.get(&key)
    }

    pub(crate) fn remember_session(&mut self, address: &SessionAddress, number: i64) {
        self.make_room();
        self.sessions.insert(address.clone(), number);
    }

    pub(crate) fn remember_key(&mut self, key: &SessionKey, number: i64) {
        self.make_room();
        self.keys.insert(key.clone(), number);
        self.texts.insert(number, key.clone());
    }

    pub(crate) fn forget_all(&mut self) {
        self.sessions.clear();
        self.keys.clear();
        self.texts.clear();
    }

    fn make_room(&mut self) {
        if self.sessions.len() + self.keys.len() >= MAX_NAMES {
            self.forget_all();
        }
    }
}
