//! Requests about the log.

use tidings_protocol::session_api::{
    ApiError, DEFAULT_SIGNALS_PER_PAGE, ErrorType, MAX_SIGNALS_PER_PAGE, Recorded, Reply, Signals,
    SignalsQuery, SignalsRecord,
};
use tidings_protocol::signal::{Payload, Summary};
use tidings_protocol::{Actor, SignalKind};
use tokio::sync::mpsc;

use super::Service;
use crate::state::{NewSignal, SignalsPage};

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
        let page = SignalsPage {
            session: query.session,
            after: query.after.unwrap_or(0),
            limit,
        };
        let signals = self.nodes.state.signals(page).await?;
        Ok(Signals { signals })
    }

    /// The log from a sequence on: page after page while there are any, then each commit.
    pub(super) fn signals_follow(&self, query: SignalsQuery) -> mpsc::Receiver<Reply> {
        let (replies, receiver) = mpsc::channel(1);
        let state = self.nodes.state.clone();
        tokio::spawn(async move {
            let mut head = state.head();
            let mut after = query.after.unwrap_or_else(|| *head.borrow());
            while !replies.is_closed() {
                // Seen before the page is read: what comes later wakes the next round.
                let upto = *head.borrow_and_update();
                let page = SignalsPage {
                    session: query.session.clone(),
                    after,
                    limit: FOLLOW_PAGE,
                };
                let signals = match state.signals(page).await {
                    Ok(signals) => signals,
                    Err(error) => {
                        let _ = replies.send(Reply::Error(error.into())).await;
                        return;
                    }
                };
                if let Some(last) = signals.last() {
                    after = last.sequence;
                    if replies
                        .send(Reply::Signals(Signals { signals }))
                        .await
                        .is_err()
                    {
                        return;
                    }
                    continue;
                }
                after = after.max(upto);
                tokio::select! {
                    changed = head.changed() => if changed.is_err() { return },
                    () = replies.closed() => return,
                }
            }
        });
        receiver
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
