//! Figures, and how they are printed.

use std::time::Duration;

use crate::spec::{Comparison, Figure as Asked, Results};

/// All figures of a run, in the order they were taken, and those among them that the
/// specification asks for.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    all: Vec<Figure>,
    results: Results,
}

#[derive(Debug)]
struct Figure {
    name: String,
    value: String,
    target: String,
}

impl Figures {
    /// Adds a figure, with what it should be at the least or at the most.
    #[expect(clippy::print_stderr, reason = "progress of a long run")]
    pub(crate) fn add(&mut self, name: &str, value: String, target: &str) {
        eprintln!("{name}: {value} (target {target})");
        self.all.push(Figure {
            name: name.to_owned(),
            value,
            target: target.to_owned(),
        });
    }

    /// A figure of the specification was measured.
    pub(crate) fn result(&mut self, figure: Asked, value: f64, comparison: Comparison) {
        self.results.measured(figure, value, comparison);
    }

    /// Prints what the specification asks for as one document.
    #[expect(clippy::print_stdout, reason = "the figures are what a bench is for")]
    pub(crate) fn print_json(&self) {
        println!("{}", self.results.json());
    }

    /// Prints what the specification asks for as a table of a page.
    #[expect(clippy::print_stdout, reason = "the figures are what a bench is for")]
    pub(crate) fn print_page(&self) {
        for line in self.results.page() {
            println!("{line}");
        }
    }

    /// Prints the table of everything, and the one of what the specification asks for.
    #[expect(clippy::print_stdout, reason = "the figures are what a bench is for")]
    pub(crate) fn print(&self) {
        println!("{:<62} {:>24}   target", "figure", "measured");
        for figure in &self.all {
            println!(
                "{:<62} {:>24}   {}",
                figure.name, figure.value, figure.target
            );
        }
        println!("\nwhat the specification asks for; what is in brackets decides nothing:");
        for line in self.results.lines() {
            println!("{line}");
        }
    }
}

/// The middle and the slow end of these times.
pub(crate) fn percentiles(times: &[Duration]) -> String {
    let at = |percent| millis(percentile(times, percent));
    format!("p50 {:.2} p99 {:.2} ms", at(50), at(99))
}

/// What so many of a hundred of these times are below.
pub(crate) fn percentile(times: &[Duration], percent: usize) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[(times.len() * percent / 100).min(times.len() - 1)]
}

/// The middle of these times, in milliseconds.
pub(crate) fn median_ms(times: &[Duration]) -> f64 {
    millis(percentile(times, 50))
}

/// Milliseconds with their fraction.
pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
