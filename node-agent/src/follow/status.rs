//! What a node agent shows of what it follows.

use std::time::Duration;

use tidings_protocol::EpochMs;
use tidings_protocol::report::LinkId;
use tidings_protocol::session_api::{NodeLinkStatus, RootStatus};
use tidings_protocol::wire::messages::{
    MAX_PENDING_LINKS, MAX_PRESENCE_ITEMS, MAX_TEXT_BYTES, Presence, RootPresence,
};

use super::engine::Engine;
use crate::discover::{Root, RootSet};
use crate::watch::{RootView, Standing};

/// The signs of life of this moment.
pub(super) fn presence(
    engine: &Engine,
    roots: &RootSet,
    views: &[RootView],
    warnings: Vec<String>,
    node_time: EpochMs,
) -> Presence {
    let mut pending: Vec<LinkId> = engine
        .links
        .iter()
        .filter(|(_, followed)| followed.life.is_pending())
        .map(|(link, _)| *link)
        .collect();
    pending.sort_unstable();
    let pending_truncated = pending.len() > MAX_PENDING_LINKS;
    pending.truncate(MAX_PENDING_LINKS);
    let root = |(root, view): (&Root, &RootView)| RootPresence {
        catalog: root.catalog,
        path: root.shown(),
        state: view.state,
    };
    Presence {
        node_time,
        sweeps: engine.sweeps,
        roots: shown(roots, views).map(root).collect(),
        pending,
        pending_truncated,
        warnings,
    }
}

/// The roots, for the node's own status.
pub(super) fn roots(roots: &RootSet, views: &[RootView]) -> Vec<RootStatus> {
    shown(roots, views)
        .map(|(root, view)| RootStatus {
            catalog: root.catalog,
            path: root.shown(),
            state: view.state.as_str().to_owned(),
        })
        .collect()
}

/// The links, oldest first.
pub(super) fn links(engine: &Engine) -> Vec<NodeLinkStatus> {
    let mut links: Vec<NodeLinkStatus> = engine
        .links
        .iter()
        .map(|(link, followed)| NodeLinkStatus {
            link: *link,
            catalog: followed.thread.0,
            thread_id: followed.thread.1.clone(),
            path: followed.path.to_string_lossy().into_owned(),
            offset: followed.life.acknowledged().offset,
            state: followed.life.state().to_owned(),
        })
        .collect();
    links.sort_unstable_by_key(|status| status.link);
    links
}

/// What an operator should know, the roots first.
pub(super) fn warnings(
    engine: &Engine,
    views: &[RootView],
    now: Duration,
    hang_limit: Duration,
) -> Vec<String> {
    let of_roots = views.iter().flat_map(|view| view.warnings.clone());
    let of_reads = engine
        .slots
        .overdue(now, hang_limit)
        .into_iter()
        .filter_map(|(_, reading)| {
            let followed = engine.links.get(&reading.link)?;
            Some(format!(
                "reading {} has not come back for {} s; the thread is skipped until it does",
                followed.path.display(),
                now.saturating_sub(reading.since).as_secs()
            ))
        });
    of_roots
        .chain(of_reads)
        .take(MAX_PRESENCE_ITEMS)
        .map(cut)
        .collect()
}

fn shown<'a>(
    roots: &'a RootSet,
    views: &'a [RootView],
) -> impl Iterator<Item = (&'a Root, &'a RootView)> {
    let roots = roots.all().iter().zip(views);
    roots.filter(|(_, view)| view.standing == Standing::Expected)
}

fn cut(mut text: String) -> String {
    let mut end = text.len().min(MAX_TEXT_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}
