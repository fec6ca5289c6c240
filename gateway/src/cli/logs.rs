//! `tidings logs`: what the gateway wrote into its log, whether it runs or not.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, value_parser};
use serde::Serialize;
use tidings_node::cli::log_file::older;
use tidings_node::cli::{CommandError, CommonArgs, Output, daemon};
use tidings_protocol::EpochMs;
use tidings_protocol::session_api::{ApiError, ErrorType};

use super::signals_follow::stdout_closed;

/// The log, in the state directory.
pub(super) const LOG_FILE: &str = "gateway.log";
/// How much of a log's end is looked at: far more than the lines that may be asked for have.
const MAX_TAIL_BYTES: u64 = 4 * 1024 * 1024;
/// The longest line that is printed whole.
const MAX_LINE_BYTES: usize = 64 * 1024;
/// How often a log that is followed is looked at: people read it.
const ROUND: Duration = Duration::from_millis(250);

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tidings logs --follow")]
pub(super) struct LogsArgs {
    /// Goes on with each line as it is written
    #[arg(long)]
    follow: bool,
    /// How many lines to begin with
    #[arg(long, value_name = "NUMBER", default_value_t = 100,
        value_parser = value_parser!(u32).range(0..=10_000))]
    lines: u32,
}

/// A line of the log.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Line<'a> {
    /// When it was written, where it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<EpochMs>,
    /// How bad it is, where it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<String>,
    /// The rest.
    text: &'a str,
}

pub(super) fn run(args: &LogsArgs, common: &CommonArgs) -> Result<(), CommandError> {
    let path = common.state_dir()?.join(LOG_FILE);
    let output = common.output();
    let mut reading = Reading::begin(&path, args.lines as usize)
        .map_err(|error| no_log(&path, &error, &common.state_dir_flag()))?;
    print(output, &reading.take_lines())?;
    if !args.follow {
        return print(output, &reading.take_rest());
    }
    daemon::runtime()?.block_on(async {
        let following = async {
            loop {
                tokio::time::sleep(ROUND).await;
                reading
                    .read_on()
                    .map_err(|error| unreadable(&path, &error))?;
                print(output, &reading.take_lines())?;
            }
        };
        tokio::select! {
            ended = following => ended,
            () = stdout_closed() => Ok(()),
        }
    })
}

fn print(output: Output, lines: &[String]) -> Result<(), CommandError> {
    lines
        .iter()
        .try_for_each(|line| output.item(&parsed(line), |_| line.clone()))
}

/// A log on the way to its reader.
struct Reading {
    path: PathBuf,
    file: File,
    /// What was read and is not printed yet.
    text: Vec<u8>,
}

impl Reading {
    /// At the last `lines` of the log and of the one before it.
    fn begin(path: &Path, lines: usize) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let mut text = match File::open(older(path)) {
            Ok(mut older) => tail(&mut older)?,
            Err(_) => Vec::new(),
        };
        text.extend(tail(&mut file)?);
        let text = last(&text, lines).to_vec();
        Ok(Self {
            path: path.to_owned(),
            file,
            text,
        })
    }

    /// Reads what was added, also where another log has begun meanwhile.
    fn read_on(&mut self) -> io::Result<()> {
        self.add()?;
        let (now, ours) = (std::fs::metadata(&self.path), self.file.metadata()?);
        if let Ok(now) = now
            && (now.dev(), now.ino()) != (ours.dev(), ours.ino())
        {
            // The last line of the older one was whole when the new one began.
            self.add()?;
            self.file = File::open(&self.path)?;
            self.add()?;
        }
        Ok(())
    }

    fn add(&mut self) -> io::Result<()> {
        let mut bounded = (&self.file).take(MAX_TAIL_BYTES);
        bounded.read_to_end(&mut self.text)?;
        Ok(())
    }

    /// The whole lines so far.
    fn take_lines(&mut self) -> Vec<String> {
        let whole = self.text.iter().rposition(|byte| *byte == b'\n');
        let end = whole.map_or(0, |at| at + 1);
        let end = if self.text.len() - end > MAX_LINE_BYTES {
            self.text.len()
        } else {
            end
        };
        let taken: Vec<u8> = self.text.drain(..end).collect();
        String::from_utf8_lossy(&taken)
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// A last line that has no end.
    fn take_rest(&mut self) -> Vec<String> {
        let rest = std::mem::take(&mut self.text);
        String::from_utf8_lossy(&rest)
            .lines()
            .map(str::to_owned)
            .collect()
    }
}

/// The end of a file, from the beginning of a line on.
fn tail(file: &mut File) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    let begin = length.saturating_sub(MAX_TAIL_BYTES);
    file.seek(SeekFrom::Start(begin))?;
    let mut text = Vec::new();
    file.take(MAX_TAIL_BYTES).read_to_end(&mut text)?;
    if begin > 0 {
        let first = text.iter().position(|byte| *byte == b'\n');
        text.drain(..first.map_or(0, |at| at + 1));
    }
    Ok(text)
}

/// The last `count` lines.
fn last(text: &[u8], count: usize) -> &[u8] {
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    if count == 0 {
        return &text[text.len()..];
    }
    let ends = memchr::memrchr_iter(b'\n', body);
    match ends.take(count).nth(count - 1) {
        Some(at) => &text[at + 1..],
        None => text,
    }
}

/// Time and level stand before the rest. A line that is none of ours is all text.
fn parsed(line: &str) -> Line<'_> {
    let ours = || {
        let (time, rest) = line.split_once(' ')?;
        let at = time.parse::<jiff::Timestamp>().ok()?.as_millisecond();
        let (level, text) = rest.trim_start().split_once(' ')?;
        Some(Line {
            at: Some(at),
            level: Some(level.to_ascii_lowercase()),
            text,
        })
    };
    ours().unwrap_or(Line {
        at: None,
        level: None,
        text: line,
    })
}

fn no_log(path: &Path, error: &io::Error, flag: &str) -> ApiError {
    if error.kind() == io::ErrorKind::NotFound {
        let message = format!("there is no log {}", path.display());
        return ApiError::new(ErrorType::NotFound, message)
            .with_hint(format!("tidings gateway run{flag} writes it"));
    }
    unreadable(path, error)
}

fn unreadable(path: &Path, error: &io::Error) -> ApiError {
    let message = format!("{} cannot be read: {error}", path.display());
    ApiError::new(ErrorType::Unavailable, message).with_hint("check its owner and permissions")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_time_level_and_text_and_a_foreign_one_is_text() {
        let ours = "2026-11-30T21:05:03.123456Z  INFO tidings_gateway: the gateway runs pid=7";
        let line = parsed(ours);
        assert_eq!(line.at, Some(1_796_072_703_123));
        assert_eq!(line.level.as_deref(), Some("info"));
        assert_eq!(line.text, "tidings_gateway: the gateway runs pid=7");
        for foreign in ["", "x", "thread panicked at", "2026-11-30 INFO x"] {
            assert_eq!(parsed(foreign).text, foreign);
        }
    }

    #[test]
    fn the_last_lines_are_counted_from_the_end_whether_the_end_is_whole_or_not() {
        for (text, count, expected) in [
            ("a\nb\nc\n", 2, "b\nc\n"),
            ("a\nb\nc", 2, "b\nc"),
            ("a\n", 2, "a\n"),
            ("", 2, ""),
            ("a\nb\n", 0, ""),
        ] {
            assert_eq!(
                last(text.as_bytes(), count),
                expected.as_bytes(),
                "{text:?}"
            );
        }
    }
}
