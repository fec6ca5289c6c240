//! Which files belong to which entries, and which to none.

use std::collections::{BTreeMap, BTreeSet};

use super::facts::{EntryFacts, Facts};
use crate::sessions::artefacts::{Artefact, Kind, classify};

/// Which files belong to which entries.
pub(super) struct Owned<'a> {
    // The names of the files that name a session id.
    by_id: BTreeMap<&'a str, Vec<&'a str>>,
    // How many entries that are left have this session id, or name this transcript.
    uses_of_id: BTreeMap<&'a str, usize>,
    uses_of_file: BTreeMap<&'a str, usize>,
}

impl<'a> Owned<'a> {
    pub(super) fn new(facts: &'a Facts) -> Self {
        let mut owned = Self {
            by_id: BTreeMap::new(),
            uses_of_id: BTreeMap::new(),
            uses_of_file: BTreeMap::new(),
        };
        for file in &facts.files {
            if let Artefact::Of(kind, id) = classify(&file.name)
                && !matches!(kind, Kind::Lock | Kind::Draft)
            {
                owned.by_id.entry(id).or_default().push(&file.name);
            }
        }
        for entry in &facts.entries {
            *owned.uses_of_id.entry(&entry.session_id).or_default() += 1;
            if let Some(name) = &entry.transcript {
                *owned.uses_of_file.entry(name).or_default() += 1;
            }
        }
        owned
    }

    /// Gives up what an entry names; answers the names that no other entry has a use for.
    pub(super) fn give_up(&mut self, entry: &'a EntryFacts) -> BTreeSet<&'a str> {
        let mut names = BTreeSet::new();
        if one_less(&mut self.uses_of_id, &entry.session_id) {
            let of_id = self.by_id.get(entry.session_id.as_str());
            names.extend(of_id.into_iter().flatten());
        }
        if let Some(transcript) = &entry.transcript {
            one_less(&mut self.uses_of_file, transcript);
            names.insert(transcript.as_str());
        }
        names.retain(|name| !self.uses_of_file.contains_key(name));
        names
    }
}

/// True where that was the last use.
fn one_less(uses: &mut BTreeMap<&str, usize>, name: &str) -> bool {
    let left = uses.get(name).map_or(0, |uses| uses - 1);
    if left == 0 {
        uses.remove(name);
        return true;
    }
    if let Some(uses) = uses.get_mut(name) {
        *uses = left;
    }
    false
}

/// What the entries that are left name.
pub(super) struct Named {
    pub(super) ids: BTreeSet<String>,
    pub(super) files: BTreeSet<String>,
    pub(super) locked: BTreeSet<String>,
}

impl Named {
    /// What a file is that no entry names; nothing for any other, or one that is written.
    pub(super) fn orphan(&self, name: &str) -> Option<Kind> {
        match classify(name) {
            Artefact::Of(Kind::Lock, _) | Artefact::Ours | Artefact::Foreign => None,
            Artefact::Of(Kind::Draft, _) => Some(Kind::Draft),
            Artefact::Of(kind, id) => {
                let is_named =
                    self.ids.contains(id) || self.files.contains(name) || self.locked.contains(id);
                (!is_named).then_some(kind)
            }
        }
    }

    /// True for archives, and for what no entry names.
    pub(super) fn loose(&self, name: &str) -> bool {
        let archive = [Kind::ResetArchive, Kind::DeletedArchive];
        let is_archive = matches!(classify(name), Artefact::Of(kind, _) if archive.contains(&kind));
        is_archive || self.orphan(name).is_some()
    }
}
