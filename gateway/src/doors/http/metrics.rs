//! Figures for Prometheus. Labels are of fixed sets: no session, no machine, no text.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use tidings_node::wake_command::CommandFigures;
use tidings_protocol::EpochMs;
use tidings_protocol::session_api::{
    ApiError, CertificateKind, CertificateRow, Counts, LinkStatus, Node, NodeState, UpstreamState,
};

use super::routes::Door;
use crate::nodes::expiry;
use crate::state::{Health, StateFigures};

/// What the text is made of.
struct Looked {
    now: EpochMs,
    started_at: EpochMs,
    serving: bool,
    counts: Counts,
    state: StateFigures,
    nodes: Vec<Node>,
    links: Vec<LinkStatus>,
    certificates: Vec<CertificateRow>,
    http_certificate: Option<EpochMs>,
    requests: BTreeMap<(&'static str, u16), u64>,
    http: [u64; 3],
    commands: [(&'static str, u64); 4],
}

/// All figures as they are now, in Prometheus' text format.
pub(super) async fn text(door: &Door) -> Result<String, ApiError> {
    let service = &door.service;
    let state = &service.nodes.state;
    let serving = matches!(*state.health().borrow(), Health::Serving);
    Ok(render(&Looked {
        now: service.nodes.clock.now(),
        started_at: service.info.started_at,
        serving,
        counts: state.counts().await?,
        state: state.figures().await?,
        nodes: service.nodes_list().await?.nodes,
        links: service.links().await?,
        certificates: expiry::in_use(&service.nodes).await?,
        http_certificate: door.certificate.get(),
        requests: door.figures.requests(),
        http: door.figures.counts(),
        commands: CommandFigures::named(&service.info.wake_commands),
    }))
}

fn render(looked: &Looked) -> String {
    let mut text = Text::default();
    process(&mut text, looked);
    log(&mut text, looked);
    writer(&mut text, &looked.state);
    machines(&mut text, looked);
    doors(&mut text, looked);
    text.0
}

fn process(text: &mut Text, looked: &Looked) {
    let version = [(labels("version", env!("CARGO_PKG_VERSION")), 1.0)];
    text.rows(
        Kind::Gauge,
        "build_info",
        "The version of this gateway.",
        &version,
    );
    text.gauge(
        "start_time_seconds",
        "When this gateway started.",
        seconds(looked.started_at),
    );
    text.gauge(
        "database_serving",
        "1 while the database is written, 0 while it is only read.",
        f64::from(u8::from(looked.serving)),
    );
    text.gauge(
        "database_bytes",
        "The size of the database.",
        float(looked.state.database_bytes),
    );
    text.gauge(
        "wal_bytes",
        "The size of the log beside the database.",
        float(looked.state.log_bytes),
    );
}

fn log(text: &mut Text, looked: &Looked) {
    let counts = &looked.counts;
    text.counter(
        "signals_recorded_total",
        "Signals recorded, ever.",
        float(counts.head),
    );
    for (name, help, value) in [
        ("signals_kept", "Signals in the log.", counts.signals),
        ("sessions", "Session entries.", counts.sessions),
        ("watches", "Watches.", counts.watches),
        (
            "notices_pending",
            "Notices that no turn has taken.",
            counts.notices,
        ),
        (
            "messages_waiting",
            "Messages that no turn has taken.",
            looked.state.messages_waiting,
        ),
        (
            "turns_running",
            "Turns that run.",
            looked.state.turns_running,
        ),
        (
            "deliveries_remembered",
            "Texts handed out to threads whose echo may come.",
            looked.state.deliveries,
        ),
        (
            "echoes_remembered",
            "Those of them whose echo has come.",
            looked.state.echoes,
        ),
    ] {
        text.gauge(name, help, float(value));
    }
}

fn writer(text: &mut Text, state: &StateFigures) {
    for (name, help, value) in [
        (
            "commits_total",
            "Committed transactions: each is one group of requests.",
            state.writer.commits,
        ),
        (
            "committed_requests_total",
            "The requests in them.",
            state.writer.requests,
        ),
        (
            "rolled_back_total",
            "Transactions that were rolled back.",
            state.writer.rolled_back,
        ),
    ] {
        text.counter(name, help, float(value));
    }
    let lanes = ["interactive", "report", "upkeep"];
    let rows: Vec<_> = lanes
        .iter()
        .zip(state.queued)
        .map(|(lane, waiting)| (labels("lane", lane), float(waiting as u64)))
        .collect();
    text.rows(
        Kind::Gauge,
        "write_queue_length",
        "Requests that wait for the writer.",
        &rows,
    );
}

fn machines(text: &mut Text, looked: &Looked) {
    let nodes = NODE_STATES.map(|(state, name)| {
        let count = looked
            .nodes
            .iter()
            .filter(|node| node.status == state)
            .count();
        (labels("status", name), float(count as u64))
    });
    text.rows(Kind::Gauge, "nodes", "Nodes by status.", &nodes);
    let links = LINK_STATES.map(|(state, name)| {
        let count = looked
            .links
            .iter()
            .filter(|link| link.state == state)
            .count();
        (labels("state", name), float(count as u64))
    });
    text.rows(Kind::Gauge, "links", "Upstream links by state.", &links);
    let sum = |of: fn(&LinkStatus) -> u64| looked.links.iter().map(of).sum::<u64>();
    let unclassified = sum(|link| link.unclassified);
    text.gauge(
        "unclassified_records",
        "Records of followed files that no rule knows.",
        float(unclassified),
    );
    text.gauge(
        "unread_bytes",
        "Bytes of followed files that were not read yet.",
        float(sum(|link| link.lag_bytes)),
    );
    text.rows(
        Kind::Gauge,
        "certificate_days_left",
        "Days until a certificate expires; of the nodes', the first to.",
        &certificates(looked),
    );
    let due = looked
        .certificates
        .iter()
        .filter(|row| expiry::is_due(row))
        .count();
    text.gauge(
        "certificates_due",
        "Certificates that should have been renewed.",
        float(due as u64),
    );
}

fn doors(text: &mut Text, looked: &Looked) {
    let requests: Vec<_> = looked
        .requests
        .iter()
        .map(|((route, status), count)| {
            (
                format!("{{route=\"{route}\",status=\"{status}\"}}"),
                float(*count),
            )
        })
        .collect();
    text.rows(
        Kind::Counter,
        "http_requests_total",
        "Answered HTTP requests.",
        &requests,
    );
    let [connections, streams, cut_off] = looked.http.map(float);
    text.gauge("http_connections", "Open HTTP connections.", connections);
    text.gauge("http_streams", "Open streams of events.", streams);
    text.counter(
        "http_cut_off_total",
        "Readers that were cut off because they took nothing.",
        cut_off,
    );
    let commands = looked
        .commands
        .map(|(outcome, count)| (labels("outcome", outcome), float(count)));
    text.rows(
        Kind::Counter,
        "wake_commands_total",
        "Runs of wake.command.",
        &commands,
    );
}

const NODE_STATES: [(NodeState, &str); 5] = [
    (NodeState::Connected, "connected"),
    (NodeState::Stalled, "stalled"),
    (NodeState::Offline, "offline"),
    (NodeState::Pending, "pending"),
    (NodeState::Revoked, "revoked"),
];
const LINK_STATES: [(UpstreamState, &str); 4] = [
    (UpstreamState::Live, "live"),
    (UpstreamState::Offline, "offline"),
    (UpstreamState::Blocked, "blocked"),
    (UpstreamState::Unlinked, "unlinked"),
];

fn certificates(looked: &Looked) -> Vec<(String, f64)> {
    let first = |kind| {
        let of_kind = looked.certificates.iter().filter(|row| row.kind == kind);
        of_kind.map(|row| row.not_after).min()
    };
    [
        ("authority", first(CertificateKind::Authority)),
        ("server", first(CertificateKind::Server)),
        ("node", first(CertificateKind::Node)),
        ("http", looked.http_certificate),
    ]
    .into_iter()
    .filter_map(|(kind, end)| {
        let left = seconds(end?.saturating_sub(looked.now)) / 86_400.0;
        Some((labels("kind", kind), left))
    })
    .collect()
}

#[derive(Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
}

/// The text so far.
#[derive(Default)]
struct Text(String);

impl Text {
    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.rows(Kind::Gauge, name, help, &[(String::new(), value)]);
    }

    fn counter(&mut self, name: &str, help: &str, value: f64) {
        self.rows(Kind::Counter, name, help, &[(String::new(), value)]);
    }

    fn rows(&mut self, kind: Kind, name: &str, help: &str, rows: &[(String, f64)]) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        let _ = writeln!(self.0, "# HELP tidings_{name} {help}");
        let _ = writeln!(self.0, "# TYPE tidings_{name} {kind}");
        for (labels, value) in rows {
            let _ = writeln!(self.0, "tidings_{name}{labels} {value}");
        }
    }
}

fn labels(name: &str, value: &str) -> String {
    format!("{{{name}=\"{value}\"}}")
}

#[expect(
    clippy::cast_precision_loss,
    reason = "Prometheus has floats only, and nothing here comes near 2^53"
)]
fn float(value: u64) -> f64 {
    value as f64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds since 1970 stay below 2^53 for as long as anybody cares"
)]
fn seconds(millis: EpochMs) -> f64 {
    millis as f64 / 1_000.0
}
