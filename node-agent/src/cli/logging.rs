//! The log: compact lines on stderr, chosen by `TIDINGS_LOG`; for a daemon also in a file.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use super::log_file::LogFile;
use super::output::write_stderr;

/// The environment variable that says what is logged, as in `debug` or
/// `info,tidings_node::tail=trace`.
pub const LOG_VARIABLE: &str = "TIDINGS_LOG";

/// The library that carries the tools' calls logs what is in them; no log may.
const SPEAKS_OF_MESSAGES: &str = "rmcp=off";

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
        EnvFilter::new(default.as_str())
    });
    let filter = SPEAKS_OF_MESSAGES
        .parse()
        .map_or(EnvFilter::new(default.as_str()), |silenced| {
            filter.add_directive(silenced)
        });
    // Fails only where a log is running already, and that one may go on.
    let _ = tracing_subscriber::fmt()
        .compact()
        .with_ansi(false)
        .with_writer(Everywhere)
        // A log that cannot be written must not take down what is worth logging: the crate
        // would report that on stderr too, and panic.
        .log_internal_errors(false)
        .with_env_filter(filter)
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

fn filter(wanted: &str, default: DefaultLevel) -> Result<EnvFilter, ()> {
    let text = match wanted.trim() {
        "" => default.as_str(),
        text => text,
    };
    EnvFilter::try_new(text).map_err(|_| ())
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
