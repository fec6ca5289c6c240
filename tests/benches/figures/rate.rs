//! The database by itself, beside the plainest thing that could be done in its place: a
//! measurement inside the gateway (`gateway/src/state/tests/rate.rs`), where the writer and
//! its groups can be had without their doors.

use std::process::Stdio;

use tidings_tests::cargo;

use crate::spec::{Comparison, Figure};
use crate::table::Figures;

const MEASUREMENT: &str =
    "state::tests::rate::durable_signals_beside_plain_rows_in_the_same_groups";

/// Adds its figures. How many durable signals there were per second.
pub(crate) fn rate(figures: &mut Figures) -> f64 {
    let output = cargo("test")
        .args(["-p", "tidings-gateway", "--lib", "--", "--ignored"])
        .args(["--exact", "--nocapture", MEASUREMENT])
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{MEASUREMENT} failed");
    let printed = String::from_utf8(output.stdout).expect("cargo prints UTF-8");
    let mut said = Vec::new();
    for line in printed.lines() {
        // The harness begins a line that the first figure ends.
        let Some((_, figure)) = line.split_once("figure\t") else {
            continue;
        };
        let columns: Vec<&str> = figure.split('\t').collect();
        let [name, value, target] = columns[..] else {
            panic!("no figure: {line}");
        };
        figures.add(name, value.to_owned(), target);
        said.push(value);
    }
    let [ours, plain, ratio, few, many, plain_waits] = said[..] else {
        panic!("other figures than there should be: {said:?}");
    };
    let rows = || {
        Comparison::with(
            "plain rows per second, in the same groups",
            number(plain),
            "per s",
        )
    };
    let waits = || {
        Comparison::with(
            "a plain row in the same groups, p99",
            slow(plain_waits),
            "ms",
        )
    };
    figures.result(Figure::SignalsRatio, number(ratio), rows());
    figures.result(Figure::Acknowledged, slow(few), waits());
    figures.result(Figure::AcknowledgedMany, slow(many), waits());
    number(ours)
}

/// The number that a figure begins with.
fn number(value: &str) -> f64 {
    let first = value.split(' ').next().and_then(|text| text.parse().ok());
    first.unwrap_or_else(|| panic!("no number: {value}"))
}

/// The number behind `p99`.
fn slow(value: &str) -> f64 {
    let (_, slow) = value
        .split_once("p99 ")
        .unwrap_or_else(|| panic!("no p99: {value}"));
    number(slow)
}
