//! Applying what a node found: signal, cursors, evidence and marker in one transaction.

use rusqlite::Row;
use tidings_protocol::report::{LinkId, Outcome, Report, ReportAnswer, ReportVerdict};
use tidings_protocol::signal::Payload;
use tidings_protocol::{Actor, Catalog, EpochMs, Host, HostName, SessionKey, SignalKind};

use super::State;
use super::address::{AgentId, SessionAddress};
use super::deliveries::note_echoes;
use super::engine::{OpResult, Priority, Tx};
use super::error::StateError;
use super::evidence::{Source, keep_evidence};
use super::inputs::spoken_in;
use super::lifecycle::unlink;
use super::links::read_link;
use super::nodes::active_node;
use super::signals::{NewSignal, Prepared, Recording, record};
use super::sql::{conversion, int, named, number, parsed};
use crate::awareness::recording::occurred_at;
use crate::upstream::missing::Misses;
use crate::upstream::report::{Decision, StoredLink, Turns, content, decide};

/// A report with what was made of it before the transaction.
struct ReadyReport {
    host: Host,
    report: Report,
    /// The marker as it is stored, or what is wrong with the report.
    content: Result<Vec<u8>, String>,
}

/// A link as a report meets it.
struct Met {
    stored: StoredLink,
    host: Host,
    catalog: Catalog,
    session: SessionAddress,
    number: i64,
}

impl State {
    /// Applies what the node of `host` found on one of its links. An answer means that it
    /// is on disk; an error means that the node is to send it again.
    pub async fn apply_report(
        &self,
        host: Host,
        report: Report,
    ) -> Result<ReportAnswer, StateError> {
        let ready = ReadyReport {
            host,
            content: content(&report),
            report,
        };
        self.write(Priority::Report, move |tx| {
            Ok(ReportAnswer {
                link: ready.report.link,
                verdict: apply(tx, &ready)?,
            })
        })
        .await
    }
}

fn apply(tx: &mut Tx<'_>, ready: &ReadyReport) -> OpResult<ReportVerdict> {
    let host_name = active_node(tx, &ready.host)?;
    let report = &ready.report;
    let met = meet(tx, report.link)?.filter(|met| met.host == ready.host);
    let Some(met) = met else {
        return Ok(ReportVerdict::Stale { current: None });
    };
    let decision = decide(&met.stored, report, tx.now());
    if decision == Decision::Stale {
        let current = read_link(tx.conn(), report.link)?.map(Box::new);
        return Ok(ReportVerdict::Stale { current });
    }
    let marker = match &ready.content {
        Ok(marker) => marker,
        Err(reason) => return reject(tx, report.link, reason),
    };
    match decision {
        Decision::Unlink => {
            tell(tx, &met, SignalKind::UpstreamMissing, None)?;
            unlink(tx, met.number)?;
            Ok(ReportVerdict::Unlinked)
        }
        Decision::Advance { misses, turns } => {
            if let Some(turns) = turns {
                if let Recording::New(sequence) =
                    tell(tx, &met, SignalKind::HumanDirectMessage, Some(turns))?
                {
                    keep_turns(tx, &met, &host_name, report, sequence)?;
                }
                let spoken_at = occurred_at(Some(turns.latest_at), tx.now());
                spoken_in(tx, &met.session, met.number, spoken_at)?;
            }
            advance(tx, report, marker, misses)
        }
        Decision::Stale => Ok(ReportVerdict::Stale { current: None }),
    }
}

fn meet(tx: &Tx<'_>, link: LinkId) -> OpResult<Option<Met>> {
    let met = tx.row(
        "SELECT link.revision, link.misses, link.last_miss_at, link.host, link.catalog,
                session_key.session_key, session.agent_id, session.id
         FROM links AS link
         JOIN sessions AS session ON session.id = link.session
         JOIN session_keys AS session_key ON session_key.id = session.key
         WHERE link.id = ?1",
        [int(link.0)],
        met_row,
    )?;
    Ok(met)
}

fn met_row(row: &Row<'_>) -> rusqlite::Result<Met> {
    let key = parsed(row, 5, SessionKey::parse)?;
    let agent = parsed(row, 6, AgentId::parse)?;
    Ok(Met {
        stored: StoredLink {
            revision: number(row, 0)?,
            misses: Misses {
                count: row.get(1)?,
                last_at: row.get(2)?,
            },
        },
        host: parsed(row, 3, Host::parse)?,
        catalog: named(row, 4, Catalog::parse)?,
        session: SessionAddress::resolve(key, &agent).map_err(|error| conversion(5, error))?,
        number: row.get(7)?,
    })
}

/// Not applied, for what it says: shown to the operator until a report is applied.
fn reject(tx: &Tx<'_>, link: LinkId, reason: &str) -> OpResult<ReportVerdict> {
    tx.execute(
        "UPDATE links SET blocked = ?2 WHERE id = ?1",
        (int(link.0), reason),
    )?;
    Ok(ReportVerdict::Rejected {
        reason: reason.to_owned(),
    })
}

/// Records a signal of the link's session.
fn tell(tx: &mut Tx<'_>, met: &Met, kind: SignalKind, turns: Option<Turns>) -> OpResult<Recording> {
    let actor = match kind {
        SignalKind::UpstreamMissing => Actor::System,
        _ => Actor::Human,
    };
    let signal = NewSignal {
        occurred_at: turns.map(|turns| turns.latest_at),
        payload: Payload {
            turns: turns.map(|turns| turns.count),
            catalog: Some(met.catalog),
            host: Some(met.host.clone()),
            ..Payload::default()
        },
        ..NewSignal::new(met.session.clone(), kind, actor)
    };
    record(tx, &Prepared::new(signal)?)
}

fn keep_turns(
    tx: &Tx<'_>,
    met: &Met,
    host_name: &HostName,
    report: &Report,
    sequence: u64,
) -> OpResult<()> {
    let Outcome::Activity(activity) = &report.outcome else {
        return Ok(());
    };
    let source = Source {
        node: host_name.as_str(),
        catalog: met.catalog,
        path: &report.path,
    };
    keep_evidence(tx, sequence, &source, &activity.turns)
}

fn advance(tx: &Tx<'_>, report: &Report, marker: &[u8], misses: Misses) -> OpResult<ReportVerdict> {
    let link = int(report.link.0);
    let reason = match &report.outcome {
        Outcome::Inconclusive(reason) => Some(reason.as_str()),
        _ => None,
    };
    let last_miss_at: Option<EpochMs> = misses.last_at;
    tx.execute(
        "UPDATE links
         SET revision = revision + 1, marker = ?2, marker_offset = ?3, path = ?4, size = ?5,
             unclassified = unclassified + ?6, misses = ?7, last_miss_at = ?8,
             last_outcome = ?9, last_reason = ?10, last_report_at = ?11, blocked = NULL
         WHERE id = ?1",
        (
            link,
            marker,
            int(report.marker.offset),
            &report.path,
            int(report.size),
            report.unclassified,
            misses.count,
            last_miss_at,
            report.outcome.as_str(),
            reason,
            tx.now(),
        ),
    )?;
    if let Outcome::Activity(activity) = &report.outcome {
        note_echoes(tx, link, &activity.echoed)?;
    }
    Ok(ReportVerdict::Applied {
        revision: report.revision + 1,
    })
}
