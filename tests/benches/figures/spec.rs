//! The figures of the specification, in its order, each with its number and with what it is
//! compared with in the same run.

use std::time::Duration;

use serde_json::{Value, json};

use crate::table::{median_ms, millis, percentile};

/// A figure that the specification asks for.
#[derive(Debug, Clone, Copy)]
struct Asked {
    figure: Figure,
    name: &'static str,
    unit: &'static str,
    op: &'static str,
    target: f64,
    /// False where an absolute number has a ratio beside it, which decides.
    decides: bool,
}

impl Asked {
    /// What is asked for; in brackets where it decides nothing.
    fn shown(&self) -> String {
        let Self {
            op, target, unit, ..
        } = self;
        if self.decides {
            format!("{op} {target} {unit}")
        } else {
            format!("({op} {target} {unit})")
        }
    }
}

/// Which figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Figure {
    ScanRatio,
    ScanRate,
    AppendMedian,
    AppendSlow,
    SignalsRatio,
    Acknowledged,
    AcknowledgedMany,
    NodesRatio,
    IdleMemory,
    IdleCpu,
    IdleCommits,
    ConnectedMemory,
    Reconnect,
    Killed,
    ChangesSince,
    HookRatio,
    HookSlow,
    Start,
}

const fn at_most(figure: Figure, name: &'static str, target: f64, unit: &'static str) -> Asked {
    Asked {
        figure,
        name,
        unit,
        op: "<=",
        target,
        decides: true,
    }
}

const fn at_least(figure: Figure, name: &'static str, target: f64, unit: &'static str) -> Asked {
    Asked {
        op: ">=",
        ..at_most(figure, name, target, unit)
    }
}

const fn beside_a_ratio(asked: Asked) -> Asked {
    Asked {
        decides: false,
        ..asked
    }
}

/// All of them, in the specification's order.
const ASKED: [Asked; 18] = [
    at_least(
        Figure::ScanRatio,
        "scan + classify a tool-heavy Claude transcript, as a part of a bare newline scan",
        0.4,
        "x",
    ),
    beside_a_ratio(at_least(
        Figure::ScanRate,
        "scan + classify a tool-heavy Claude transcript, one core",
        2.0,
        "GB/s",
    )),
    at_most(
        Figure::AppendMedian,
        "appended human line to durable signal, 1 000 followed files, p50",
        1.5,
        "ms",
    ),
    at_most(
        Figure::AppendSlow,
        "appended human line to durable signal, 1 000 followed files, p99",
        10.0,
        "ms",
    ),
    at_least(
        Figure::SignalsRatio,
        "durable signals per second, 64 producers on 64 sessions, as a part of plain rows",
        0.4,
        "x",
    ),
    at_most(
        Figure::Acknowledged,
        "acknowledgement of a signal, 64 producers on 64 sessions, p99",
        4.0,
        "ms",
    ),
    at_most(
        Figure::AcknowledgedMany,
        "acknowledgement of a signal, 64 producers on 1 000 sessions, p99",
        8.0,
        "ms",
    ),
    at_least(
        Figure::NodesRatio,
        "durable signals per second through 16 nodes over QUIC, as a part of 64 producers",
        0.25,
        "x",
    ),
    at_most(
        Figure::IdleMemory,
        "idle node agent, 10 000 transcripts, 1 000 followed: memory",
        40.0,
        "MB",
    ),
    at_most(
        Figure::IdleCpu,
        "idle node agent, 10 000 transcripts, 1 000 followed: part of a core",
        0.5,
        "%",
    ),
    at_most(
        Figure::IdleCommits,
        "the same: commits at the gateway in a minute",
        0.0,
        "commits",
    ),
    at_most(
        Figure::ConnectedMemory,
        "gateway: memory of each of 2 000 idle connected nodes",
        120.0,
        "KB",
    ),
    at_most(
        Figure::Reconnect,
        "2 000 nodes reconnect and resume",
        10.0,
        "s",
    ),
    at_most(
        Figure::Killed,
        "gateway killed and restarted: ready to a line recorded, p99",
        2.0,
        "s",
    ),
    at_most(
        Figure::ChangesSince,
        "session_status with changesSince, 50 000 rows, p99",
        1.0,
        "ms",
    ),
    at_most(
        Figure::HookRatio,
        "tidings hook, whole process, as a multiple of an empty one, median",
        2.0,
        "x",
    ),
    beside_a_ratio(at_most(
        Figure::HookSlow,
        "tidings hook, whole process, p99",
        15.0,
        "ms",
    )),
    at_most(
        Figure::Start,
        "gateway start to ready, 50 000 signals, 1 000 links, median",
        150.0,
        "ms",
    ),
];

/// What a figure is compared with.
#[derive(Debug, Clone)]
pub(crate) struct Comparison {
    what: String,
    value: f64,
    unit: &'static str,
}

impl Comparison {
    /// A number.
    pub(crate) fn with(what: impl Into<String>, value: f64, unit: &'static str) -> Self {
        Self {
            what: what.into(),
            value,
            unit,
        }
    }

    /// The middle of these times.
    pub(crate) fn with_median(what: &str, times: &[Duration]) -> Self {
        Self::with(format!("{what}, p50"), median_ms(times), "ms")
    }

    /// The slow end of these times.
    pub(crate) fn with_slow_end(what: &str, times: &[Duration]) -> Self {
        Self::with(format!("{what}, p99"), millis(percentile(times, 99)), "ms")
    }

    fn json(&self) -> Value {
        json!({"what": self.what, "value": rounded(self.value), "unit": self.unit})
    }
}

#[derive(Debug)]
struct Measured {
    figure: Figure,
    value: f64,
    comparison: Comparison,
}

/// What was measured of it.
#[derive(Debug, Default)]
pub(crate) struct Results(Vec<Measured>);

impl Results {
    /// A figure was measured.
    pub(crate) fn measured(&mut self, figure: Figure, value: f64, comparison: Comparison) {
        self.0.push(Measured {
            figure,
            value,
            comparison,
        });
    }

    /// One document: what was measured, in the specification's order.
    pub(crate) fn json(&self) -> Value {
        let rows = self.in_order().map(|(asked, measured)| {
            json!({
                "name": asked.name,
                "value": rounded(measured.value),
                "unit": asked.unit,
                "target": asked.target,
                "op": asked.op,
                "decides": asked.decides,
                "comparison": measured.comparison.json(),
            })
        });
        json!({"results": rows.collect::<Vec<_>>()})
    }

    /// The same as a table of a page.
    pub(crate) fn page(&self) -> Vec<String> {
        let head = [
            "| figure | measured | target | beside it |",
            "|---|---|---|---|",
        ];
        let rows = self.in_order().map(|(asked, measured)| {
            let Asked { name, unit, .. } = asked;
            let Comparison {
                what,
                value,
                unit: other,
            } = &measured.comparison;
            let (measured, value) = (rounded(measured.value), rounded(*value));
            let target = asked.shown();
            format!("| {name} | {measured} {unit} | {target} | {what}: {value} {other} |")
        });
        head.into_iter().map(str::to_owned).chain(rows).collect()
    }

    /// The same as lines for people, with what decides nothing in brackets.
    pub(crate) fn lines(&self) -> Vec<String> {
        let rows = self.in_order().map(|(asked, measured)| {
            let value = format!("{} {}", rounded(measured.value), asked.unit);
            let target = asked.shown();
            let Comparison {
                what,
                value: other,
                unit,
            } = &measured.comparison;
            let name = asked.name;
            format!(
                "{name:<82} {value:>14}   {target:<14}   {what}: {} {unit}",
                rounded(*other)
            )
        });
        rows.collect()
    }

    fn in_order(&self) -> impl Iterator<Item = (&'static Asked, &Measured)> {
        ASKED.iter().filter_map(|asked| {
            let own = self
                .0
                .iter()
                .find(|measured| measured.figure == asked.figure);
            Some((asked, own?))
        })
    }
}

/// Three digits behind the point: nothing here is known better.
fn rounded(value: f64) -> f64 {
    (value * 1_000.0).round() / 1_000.0
}
