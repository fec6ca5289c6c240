//! The database by itself, beside the plainest thing that could be done in its place: a
//! measurement inside the gateway (`gateway/src/state/tests/rate.rs`), where the writer and
//! its groups can be had without their doors.

use std::process::Stdio;

use tidings_tests::cargo;

use crate::table::Figures;

const MEASUREMENT: &str =
    "state::tests::rate::durable_signals_beside_plain_rows_in_the_same_groups";

/// Adds its figures. How many durable signals there were per second.
pub(crate) fn rate(figures: &mut Figures) -> Option<f64> {
    let output = cargo("test")
        .args(["-p", "tidings-gateway", "--lib", "--", "--ignored"])
        .args(["--exact", "--nocapture", MEASUREMENT])
        .stderr(Stdio::inherit())
        .output()
        .expect("cargo starts");
    assert!(output.status.success(), "{MEASUREMENT} failed");
    let printed = String::from_utf8(output.stdout).expect("cargo prints UTF-8");
    let mut first = None;
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
        let number = value.split(' ').next().and_then(|text| text.parse().ok());
        first = first.or(number);
    }
    first
}
