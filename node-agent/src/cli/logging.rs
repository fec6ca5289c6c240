//! The log: compact lines on stderr, chosen by `TIDINGS_LOG`; for a daemon also in a file.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::log_file::LogFile;
use super::output::write_stderr;

/// The environment variable that says what is logged, as in `debug` or
/// `info,tidings_node::tail=trace`.
pub const LOG_VARIABLE: &str = "TIDINGS_LOG";

/// The library that carries the tools' calls logs what is in them; no log may.
const SPEAKS_OF_MESSAGES: &str = "rmcp";

/// How much is logged where nobody says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefaultLevel {
    /// For daemons: what an operator wants to find later.
    Info,
    /// For commands: only what is not as it should be.
    Warn,
}

/// Begins to log. What went wrong with the filter is said once, and the default taken:
/// a daemon is worth more than its log.
pub fn start(default: DefaultLevel) {
    let wanted = std::env::var(LOG_VARIABLE).unwrap_or_default();
    let filter = filter(&wanted, default).unwrap_or_else(|()| {
        write_stderr(&format!(
            "warning: {LOG_VARIABLE} is not a log filter; `{}` is used\n",
            default.as_str()
        ));
        default.into()
    });
    let lines = tracing_subscriber::fmt::layer()
        .compact()
        .with_ansi(false)
        .with_writer(Everywhere)
        // A log that cannot be written must not take down what is worth logging: the crate
        // would report that on stderr too, and panic.
        .log_internal_errors(false);
    let filter = filter.with_target(SPEAKS_OF_MESSAGES, LevelFilter::OFF);
    // Fails only where a log is running already, and that one may go on.
    let _ = tracing_subscriber::registry()
        .with(lines)
        .with(filter)
        .try_init();
}

/// From now on the log goes into this file as well. Where it cannot be opened the daemon says so,
/// and goes on.
pub fn also_into(path: &Path) {
    match LogFile::open(path) {
        Ok(file) => *log_file() = Some(file),
        Err(error) => tracing::warn!(path = %path.display(), %error, "there is no log file"),
    }
}

static LOG_FILE: Mutex<Option<LogFile>> = Mutex::new(None);

fn log_file() -> std::sync::MutexGuard<'static, Option<LogFile>> {
    LOG_FILE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wherever the log goes now.
struct Everywhere;

impl<'a> MakeWriter<'a> for Everywhere {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        Self
    }
}

impl Write for Everywhere {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Some(file) = log_file().as_mut() {
            // It fails on a full disk; stderr is left.
            let _ = file.append(line);
        }
        io::stderr().write_all(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

impl DefaultLevel {
    fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warn => "warn",
        }
    }
}

impl From<DefaultLevel> for Targets {
    fn from(default: DefaultLevel) -> Self {
        Self::new().with_default(match default {
            DefaultLevel::Info => Level::INFO,
            DefaultLevel::Warn => Level::WARN,
        })
    }
}

fn filter(wanted: &str, default: DefaultLevel) -> Result<Targets, ()> {
    match wanted.trim() {
        "" => Ok(default.into()),
        text => text.parse().map_err(|_| ()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_decides_and_an_empty_one_leaves_the_default() {
        for (wanted, default, expected) in [
            ("", DefaultLevel::Info, Ok("info")),
            (" ", DefaultLevel::Warn, Ok("warn")),
            ("trace", DefaultLevel::Warn, Ok("trace")),
            ("a=b=c", DefaultLevel::Warn, Err(())),
        ] {
            let filter = filter(wanted, default).map(|filter| filter.to_string());
            assert_eq!(filter, expected.map(str::to_owned), "{wanted:?}");
        }
    }
}
