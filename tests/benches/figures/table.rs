//! Figures, and how they are printed.

use std::time::Duration;

/// All figures of a run, in the order they were taken.
#[derive(Debug, Default)]
pub(crate) struct Figures(Vec<Figure>);

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
        self.0.push(Figure {
            name: name.to_owned(),
            value,
            target: target.to_owned(),
        });
    }

    /// Prints the table.
    #[expect(clippy::print_stdout, reason = "the figures are what a bench is for")]
    pub(crate) fn print(&self) {
        println!("{:<62} {:>24}   target", "figure", "measured");
        for figure in &self.0 {
            println!(
                "{:<62} {:>24}   {}",
                figure.name, figure.value, figure.target
            );
        }
    }
}

/// The middle and the slow end of these times.
pub(crate) fn percentiles(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)];
    format!("p50 {:.2} p99 {:.2} ms", millis(at(50)), millis(at(99)))
}

/// Milliseconds with their fraction.
pub(crate) fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
