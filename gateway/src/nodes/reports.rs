//! A node's reports: applied as they come, each answered after its commit.

use std::sync::Arc;

use quinn::{RecvStream, SendStream};
use tidings_node::framed::{self, StreamError};
use tidings_protocol::report::{Report, ReportAnswer, ReportVerdict};
use tidings_protocol::wire::{MAX_FRAME_BYTES, Message};
use tidings_protocol::{EpochMs, Host};
use tokio::sync::{Semaphore, mpsc};

use super::context::NodeContext;
use crate::state::StateError;

/// Reports of one node that wait for their commit at once: enough to fill a group while
/// another is being written.
pub(super) const MAX_REPORTS_IN_FLIGHT: u32 = 64;

/// How a stream of the node ended.
pub(super) enum StreamEnd {
    /// As it should.
    Done,
    /// A report could not be recorded. The node is sent away: it comes back, gets its links
    /// as they are stored, and sends again.
    NotRecorded(String),
}

/// Applies reports as they come and answers each after its commit. Beyond the bound nothing
/// more is read: the node waits.
pub(super) async fn serve_reports(
    context: Arc<NodeContext>,
    host: Host,
    first: Report,
    mut send: SendStream,
    mut receive: RecvStream,
) -> Result<StreamEnd, StreamError> {
    let (answers, mut answered) = mpsc::channel(MAX_REPORTS_IN_FLIGHT as usize);
    let write = async {
        while let Some(answer) = answered.recv().await {
            match answer {
                Ok(mut answer) => {
                    date_what_is_current(&mut answer, context.clock.now());
                    tracing::trace!(?answer, "answer");
                    framed::write(&mut send, &Message::ReportAnswer(answer)).await?;
                }
                Err(error) => return Ok(StreamEnd::NotRecorded(not_recorded(&error))),
            }
        }
        Ok(StreamEnd::Done)
    };
    let read = async {
        let places = Arc::new(Semaphore::new(MAX_REPORTS_IN_FLIGHT as usize));
        let mut next = Some(first);
        while let Some(report) = next {
            tracing::trace!(?report, "report");
            let Ok(place) = places.clone().acquire_owned().await else {
                break;
            };
            let (state, host, answers) = (context.state.clone(), host.clone(), answers.clone());
            tokio::spawn(async move {
                let answer = state.apply_report(host, report).await;
                let _ = answers.send(answer).await;
                drop(place);
            });
            next = match framed::read(&mut receive, MAX_FRAME_BYTES).await? {
                Some(Message::Report(report)) => Some(*report),
                Some(_) | None => None,
            };
        }
        drop(answers);
        // The answers under way end the writer; nothing more is read.
        std::future::pending::<Result<StreamEnd, StreamError>>().await
    };
    tokio::select! {
        end = write => end,
        end = read => end,
    }
}

/// The link that a stale report is answered with is told of at this time.
fn date_what_is_current(answer: &mut ReportAnswer, now: EpochMs) {
    if let ReportVerdict::Stale {
        current: Some(link),
    } = &mut answer.verdict
    {
        link.echo = std::mem::take(&mut link.echo).told_at(now);
    }
}

fn not_recorded(error: &StateError) -> String {
    tracing::warn!(%error, "a report was not recorded");
    format!("a report could not be recorded: {error}")
}
