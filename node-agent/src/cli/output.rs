//! What a command prints: data on stdout, warnings and hints on stderr.

use std::fmt;
use std::io::{self, Write};

use serde::Serialize;

use super::error::CommandError;

/// The version of the JSON documents. New members do not raise it; a member that changes
/// its meaning or goes does.
pub const SCHEMA_VERSION: u32 = 1;

/// For whom a command prints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputFormat {
    /// For people: tables and lines.
    #[default]
    Human,
    /// For scripts: one JSON document, or one object a line for a stream.
    Json,
}

/// Prints for one command.
#[derive(Debug, Clone, Copy, Default)]
pub struct Output {
    format: OutputFormat,
}

/// What people are shown for an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// The data, for stdout: whole lines, or nothing.
    pub text: String,
    /// What goes to stderr after it.
    pub notes: Vec<Note>,
}

/// A line for stderr.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    /// What is so.
    Info(String),
    /// What is not as it should be.
    Warning(String),
    /// What to do next.
    Hint(String),
}

impl Output {
    /// Prints in this format.
    #[must_use]
    pub fn new(format: OutputFormat) -> Self {
        Self { format }
    }

    /// The format.
    pub fn format(self) -> OutputFormat {
        self.format
    }

    /// Prints an answer: the whole of it as one document, or the page made of it.
    pub fn answer<T: Serialize>(
        self,
        answer: &T,
        page: impl FnOnce(&T) -> Page,
    ) -> Result<(), CommandError> {
        match self.format {
            OutputFormat::Json => write_document(answer),
            OutputFormat::Human => {
                let page = page(answer);
                write_stdout(&printable(&page.text))?;
                for note in &page.notes {
                    self.note(note);
                }
                Ok(())
            }
        }
    }

    /// Prints one item of a stream at once: one object, or the line made of it.
    pub fn item<T: Serialize>(
        self,
        item: &T,
        line: impl FnOnce(&T) -> String,
    ) -> Result<(), CommandError> {
        match self.format {
            OutputFormat::Json => write_document(item),
            OutputFormat::Human => write_stdout(&printable(&format!("{}\n", line(item)))),
        }
    }

    /// Prints a piece of a text that comes in pieces. A script gets the whole in a document.
    pub fn piece(self, text: &str) -> Result<(), CommandError> {
        match self.format {
            OutputFormat::Json => Ok(()),
            OutputFormat::Human => write_stdout(&printable(text)),
        }
    }

    /// Asks a person in a terminal for a line.
    pub fn prompt(self, text: &str) {
        if self.format == OutputFormat::Human {
            write_stderr(text);
        }
    }

    /// Says something besides the data. A script reads its document and wants to know no
    /// more than what went wrong.
    pub fn note(self, note: &Note) {
        if self.format == OutputFormat::Human || matches!(note, Note::Warning(_)) {
            write_stderr(&format!("{note}\n"));
        }
    }
}

impl Page {
    /// A page of these lines.
    #[must_use]
    pub fn of(text: impl fmt::Display) -> Self {
        Self {
            text: text.to_string(),
            notes: Vec::new(),
        }
    }

    /// The page of an empty list: nothing on stdout, and on stderr that it is empty and
    /// which command comes next.
    #[must_use]
    pub fn empty(what: impl Into<String>, next: impl Into<String>) -> Self {
        Self::default()
            .with(Note::Info(what.into()))
            .with(Note::Hint(next.into()))
    }

    /// The same page with one more note.
    #[must_use]
    pub fn with(mut self, note: Note) -> Self {
        self.notes.push(note);
        self
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Info(text) => f.write_str(text),
            Self::Warning(text) => write!(f, "warning: {text}"),
            Self::Hint(text) => write!(f, "hint: {text}"),
        }
    }
}

/// One JSON object, whose first member is `schemaVersion`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a, T> {
    schema_version: u32,
    #[serde(flatten)]
    body: &'a T,
}

/// The document of `body`, on one line.
pub fn document<T: Serialize>(body: &T) -> Result<String, serde_json::Error> {
    let mut line = serde_json::to_string(&Document {
        schema_version: SCHEMA_VERSION,
        body,
    })?;
    line.push('\n');
    Ok(line)
}

/// The text with everything replaced that could make a terminal do something: control
/// characters but the line end, and those that turn the direction of writing. Paths,
/// titles and names come from other machines.
#[must_use]
pub fn printable(text: &str) -> String {
    let acts = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars()
        .map(|c| {
            if acts(c) {
                char::REPLACEMENT_CHARACTER
            } else {
                c
            }
        })
        .collect()
}

fn write_document<T: Serialize>(body: &T) -> Result<(), CommandError> {
    let line = document(body).map_err(|error| CommandError::Stdout(error.into()))?;
    write_stdout(&line)
}

/// Writes to stdout and flushes: a reader of a stream sees each item when it happens.
pub(super) fn write_stdout(text: &str) -> Result<(), CommandError> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(CommandError::Stdout)
}

/// Writes to stderr. Where even that is gone there is nobody left to tell.
pub(super) fn write_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(printable(text).as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_begins_with_the_schema_version_and_is_one_line() {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Answer {
            a_member: &'static str,
        }
        let text = document(&Answer { a_member: "x\ny" }).expect("document");
        assert_eq!(text, "{\"schemaVersion\":1,\"aMember\":\"x\\ny\"}\n");
    }

    #[test]
    fn nothing_printed_can_steer_a_terminal() {
        assert_eq!(
            printable("a\u{1b}[31mb\u{7}\tc\n\u{202e}d\u{9b}ü"),
            "a\u{fffd}[31mb\u{fffd}\u{fffd}c\n\u{fffd}d\u{fffd}ü"
        );
    }

    #[test]
    fn notes_name_what_they_are() {
        let page = Page::empty("no nodes yet", "tidings nodes invite")
            .with(Note::Warning("late".to_owned()));
        let lines: Vec<_> = page.notes.iter().map(ToString::to_string).collect();
        assert_eq!(
            lines,
            [
                "no nodes yet",
                "hint: tidings nodes invite",
                "warning: late"
            ]
        );
        assert_eq!(page.text, "");
    }
}
