//! What one `sessions.json` shows otherwise than another: all that has to be remembered of it.
//! Pure.

use std::collections::BTreeMap;

use tidings_protocol::SessionKey;

use super::merge::{EntryDigest, Known};
use crate::state::{InPlace, SessionAddress};

/// What one file shows otherwise than another; `None` where it has no such entry.
pub type Differences = Vec<(SessionKey, Option<EntryDigest>)>;

/// What a new projection shows otherwise than the file that is in place.
pub fn replaced(
    known: &BTreeMap<SessionAddress, Known>,
    in_place: InPlace,
    next: &BTreeMap<SessionKey, EntryDigest>,
) -> Differences {
    let shown = |known: &Known| match in_place {
        InPlace::Last => known.last,
        InPlace::Before => known.before.unwrap_or(known.last),
    };
    differences(known, next, |known, next| shown(known) != next)
}

/// What a file that somebody else wrote shows otherwise than the last one, or than the one
/// before, while either may have been in place.
pub fn overwritten(
    known: &BTreeMap<SessionAddress, Known>,
    shows: &BTreeMap<SessionKey, EntryDigest>,
) -> Differences {
    differences(known, shows, |known, shows| {
        known.before.is_some() || known.last != shows
    })
}

fn differences(
    known: &BTreeMap<SessionAddress, Known>,
    next: &BTreeMap<SessionKey, EntryDigest>,
    differs: impl Fn(&Known, Option<EntryDigest>) -> bool,
) -> Differences {
    let mut new = next.clone();
    let mut differences = Differences::new();
    for (session, known) in known {
        let next = new.remove(session.key());
        if differs(known, next) {
            differences.push((session.key().clone(), next));
        }
    }
    differences.extend(new.into_iter().map(|(key, digest)| (key, Some(digest))));
    differences
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: EntryDigest = [1; 16];
    const B: EntryDigest = [2; 16];

    fn session(name: &str) -> SessionAddress {
        let key = SessionKey::parse(&format!("agent:main:{name}")).expect("a key");
        SessionAddress::qualified(key).expect("an address")
    }

    fn known(entries: &[(&str, Known)]) -> BTreeMap<SessionAddress, Known> {
        let entry = |(name, known): &(&str, Known)| (session(name), *known);
        entries.iter().map(entry).collect()
    }

    fn shows(entries: &[(&str, EntryDigest)]) -> BTreeMap<SessionKey, EntryDigest> {
        let entry = |(name, digest): &(&str, EntryDigest)| (session(name).key().clone(), *digest);
        entries.iter().map(entry).collect()
    }

    /// Each as its name and what it shows now.
    fn named(differences: &Differences) -> Vec<(&str, Option<EntryDigest>)> {
        let name = |key: &'_ SessionKey| key.as_str().len() - 1;
        let named = differences.iter();
        named
            .map(|(key, digest)| (&key.as_str()[name(key)..], *digest))
            .collect()
    }

    const SETTLED: Known = Known {
        last: Some(A),
        before: None,
    };
    /// It is in the newest file only, which may not be in place yet.
    const NEW: Known = Known {
        last: Some(A),
        before: Some(None),
    };

    #[test]
    fn only_what_differs_from_the_file_in_place_is_remembered_anew() {
        let known = known(&[("a", SETTLED), ("b", SETTLED), ("c", SETTLED), ("d", NEW)]);
        let next = shows(&[("a", A), ("b", B), ("d", A), ("e", A)]);
        let last = replaced(&known, InPlace::Last, &next);
        assert_eq!(named(&last), [("b", Some(B)), ("c", None), ("e", Some(A))]);
        let before = replaced(&known, InPlace::Before, &next);
        let expected = [("b", Some(B)), ("c", None), ("d", Some(A)), ("e", Some(A))];
        assert_eq!(named(&before), expected);
    }

    #[test]
    fn what_was_in_doubt_is_settled_by_a_file_that_somebody_else_wrote() {
        let known = known(&[("a", SETTLED), ("b", SETTLED), ("d", NEW), ("e", NEW)]);
        let found = overwritten(&known, &shows(&[("a", A), ("d", A), ("f", B)]));
        let expected = [("b", None), ("d", Some(A)), ("e", None), ("f", Some(B))];
        assert_eq!(named(&found), expected);
    }
}
