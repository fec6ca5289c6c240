//! Requests about the log.

use tidings_protocol::session_api::{
    ApiError, DEFAULT_SIGNALS_PER_PAGE, ErrorType, MAX_SIGNALS_PER_PAGE, Recorded, Reply, Signals,
    SignalsQuery, SignalsRecord,
};
use tidings_protocol::signal::{Payload, Summary};
use tidings_protocol::{Actor, SessionKey, SignalKind};
use tokio::sync::mpsc;

use super::Service;
use crate::state::{NewSignal, SessionAddress, SignalsPage, State, StateError, StatusRead};

/// How many signals a follower gets at a time: it reads in short pages.
const FOLLOW_PAGE: u32 = 500;

impl Service {
    pub(super) async fn signals_list(&self, query: SignalsQuery) -> Result<Signals, ApiError> {
        let limit = query.limit.unwrap_or(DEFAULT_SIGNALS_PER_PAGE);
        if limit > MAX_SIGNALS_PER_PAGE {
            return Err(ApiError::new(
                ErrorType::InvalidRequest,
                format!("a page has at most {MAX_SIGNALS_PER_PAGE} signals"),
            )
            .with_hint("go on with --after and the last sequence"));
        }
        let gap = match query.after {
            Some(after) => gap(&self.nodes.state, query.session.as_ref(), after).await?,
            None => None,
        };
        let page = SignalsPage {
            session: query.session,
            after: query.after.unwrap_or(0),
            limit,
        };
        let signals = self.nodes.state.signals(page).await?;
        Ok(Signals {
            signals,
            earliest_available_sequence: gap,
        })
    }

    /// The log from a sequence on: page after page while there are any, then each commit.
    pub(super) async fn signals_follow(
        &self,
        query: SignalsQuery,
        replies: &mpsc::Sender<Reply>,
    ) -> Result<(), ApiError> {
        Ok(follow(&self.nodes.state, query, replies).await?)
    }

    pub(super) async fn signals_record(&self, record: SignalsRecord) -> Result<Recorded, ApiError> {
        let invalid = |message: String| ApiError::new(ErrorType::InvalidRequest, message);
        let actor =
            Actor::parse(&record.actor).map_err(|error| invalid(format!("the actor: {error}")))?;
        let parent = record.parent.or_else(|| actor.id().cloned());
        if record.kind == SignalKind::ChildSpawned && parent.is_none() {
            return Err(invalid("child_spawned needs a parent".to_owned())
                .with_hint("--parent <session key>, or the parent's key as --actor"));
        }
        let summary = match record.summary {
            None => None,
            Some(text) => Some(
                Summary::from_text(&text)
                    .ok_or_else(|| invalid("the summary is empty".to_owned()))?,
            ),
        };
        let channel = record
            .channel
            .as_deref()
            .and_then(Summary::from_text)
            .map(|channel| channel.as_str().to_owned());
        let signal = NewSignal {
            session: self.address(record.session, None)?,
            kind: record.kind,
            actor,
            parent,
            run_id: record.run_id,
            occurred_at: None,
            summary,
            payload: Payload {
                outcome: record.outcome,
                channel,
                ..Payload::default()
            },
            dedupe_key: record.dedupe_key,
        };
        Ok(self.nodes.state.record(signal).await?)
    }
}

/// Sends page after page, then each commit, until the reader goes or the state closes.
async fn follow(
    state: &State,
    query: SignalsQuery,
    replies: &mpsc::Sender<Reply>,
) -> Result<(), StateError> {
    let mut head = state.head();
    let mut after = query.after.unwrap_or_else(|| *head.borrow());
    // Said before anything else: a gap is never silence.
    let gap = gap(state, query.session.as_ref(), after).await?;
    if gap.is_some() {
        let notice = Signals {
            signals: Vec::new(),
            earliest_available_sequence: gap,
        };
        let _ = replies.send(Reply::Signals(notice)).await;
    }
    while !replies.is_closed() {
        // Seen before the page is read: what comes later wakes the next round.
        let upto = *head.borrow_and_update();
        let page = SignalsPage {
            session: query.session.clone(),
            after,
            limit: FOLLOW_PAGE,
        };
        let signals = state.signals(page).await?;
        if let Some(last) = signals.last() {
            after = last.sequence;
            let page = Signals {
                signals,
                earliest_available_sequence: None,
            };
            if replies.send(Reply::Signals(page)).await.is_err() {
                return Ok(());
            }
            continue;
        }
        after = after.max(upto);
        tokio::select! {
            changed = head.changed() => if changed.is_err() { return Ok(()) },
            () = replies.closed() => return Ok(()),
        }
    }
    Ok(())
}

/// The oldest signal still kept, if some after `after` are kept no more. Sequences are
/// given without holes, so a hole before the oldest is something that was deleted; for one
/// session its own mark says it exactly.
async fn gap(
    state: &State,
    session: Option<&SessionKey>,
    after: u64,
) -> Result<Option<u64>, StateError> {
    let Some(key) = session else {
        let oldest = match state.oldest_signal().await? {
            Some(oldest) => oldest,
            None => *state.head().borrow() + 1,
        };
        return Ok((after.saturating_add(1) < oldest).then_some(oldest));
    };
    let Some(session) = SessionAddress::qualified(key.clone()) else {
        return Ok(None);
    };
    let read = StatusRead {
        session,
        changes_since: Some(i64::try_from(after).unwrap_or(i64::MAX)),
        reader: None,
    };
    let changes = match state.session_status(read).await {
        Ok(answer) => answer.status.state_changes,
        Err(StateError::UnknownSession(_)) => None,
        Err(error) => return Err(error),
    };
    Ok(changes
        .filter(|changes| changes.history_gap)
        .map(|changes| changes.earliest_available_sequence))
}
