//! Others than the model who can summarise, by id.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::command::CommandSummariser;
use super::request::Summariser;
use crate::config::{Compaction, ProviderKind};

/// Makes somebody who summarises of an endpoint's URL and the time that it may take.
pub type Endpoints<'a> = &'a dyn Fn(&str, Duration) -> Arc<dyn Summariser>;

/// Who can summarise beside the model.
#[derive(Clone, Default)]
pub struct Providers {
    by_id: BTreeMap<String, Arc<dyn Summariser>>,
}

impl Providers {
    /// Those that are configured.
    #[must_use]
    pub fn configured(settings: &Compaction, endpoints: Endpoints<'_>) -> Self {
        let mut providers = Self::default();
        for (id, section) in &settings.providers {
            let limit = section.time_limit();
            match section.kind() {
                Some(ProviderKind::Command(line)) => {
                    providers.register(id, Arc::new(CommandSummariser::new(line, limit)));
                }
                Some(ProviderKind::Http(url)) => providers.register(id, endpoints(&url, limit)),
                None => {}
            }
        }
        providers
    }

    /// Adds one, in the place of any with this id.
    pub fn register(&mut self, id: &str, provider: Arc<dyn Summariser>) {
        self.by_id.insert(id.to_owned(), provider);
    }

    /// The one with this id.
    #[must_use]
    pub fn get(&self, id: &str) -> Option<&dyn Summariser> {
        self.by_id.get(id).map(AsRef::as_ref)
    }
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.by_id.keys()).finish()
    }
}
