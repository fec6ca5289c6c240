//! How a command ends when it cannot do what was asked.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use tidings_protocol::session_api::{ApiError, ErrorType};

use super::output::{Output, OutputFormat, document, write_stderr, write_stdout};

/// The exit code where stdout cannot be written (sysexits `EX_IOERR`).
const EXIT_STDOUT: u8 = 74;
/// What the exit codes mean, for the help of both programs.
pub const EXIT_CODES: &str = "Exit codes:
  0 done, 1 there is no such thing or something was found, 2 the command line cannot be meant,
  65 bad data, 66 no such file, 69 not reachable, 70 a fault of ours, 73 cannot create,
  74 cannot write to stdout, 75 try later, 77 not permitted, 78 configuration";

/// Why a command did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The other side, or this program, says no; the type says whose fault it is and
    /// whether trying again helps.
    #[error(transparent)]
    Api(#[from] ApiError),
    /// The command line cannot be meant: the caller's fault.
    #[error("{}", .0.message)]
    Usage(Usage),
    /// What was to be printed cannot be. A reader that has gone is no fault of anybody.
    #[error("cannot write to stdout: {0}")]
    Stdout(io::Error),
    /// The answer has been printed, and it is a negative one: only the exit code says more.
    #[error("the answer is negative")]
    Negative,
}

/// What is wrong with a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Usage {
    /// What is wrong.
    pub message: String,
    /// What was perhaps meant, what there is, where to read on.
    pub hint: String,
    /// The right form, where there is one to show.
    pub usage: Option<String>,
}

/// `{"ok":false,"error":{…}}`
#[derive(Serialize)]
struct ErrorDocument<'a> {
    ok: bool,
    error: ErrorBody<'a>,
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    #[serde(rename = "type")]
    error_type: TypeName,
    message: &'a str,
    hint: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum TypeName {
    Api(ErrorType),
    Own(&'static str),
}

impl CommandError {
    /// The exit code. A reader that closed our stdout has all it wanted: 0.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Api(error) => error.error_type.exit_code(),
            Self::Usage(_) => 2,
            Self::Negative => 1,
            Self::Stdout(error) if error.kind() == ErrorKind::BrokenPipe => 0,
            Self::Stdout(_) => EXIT_STDOUT,
        }
    }

    /// Says so in the format asked for, and gives the exit code.
    pub fn report(&self, output: Output) -> ExitCode {
        let code = self.exit_code();
        if code != 0 && !matches!(self, Self::Negative) {
            match (output.format(), self) {
                // A document that cannot be written either leaves the exit code to speak.
                (OutputFormat::Json, Self::Api(_) | Self::Usage(_)) => {
                    let _ = write_stdout(&self.to_document());
                }
                _ => write_stderr(&self.to_text()),
            }
        }
        ExitCode::from(code)
    }

    /// The error for people, as lines.
    fn to_text(&self) -> String {
        let mut text = format!("error: {self}\n");
        let (hint, usage) = match self {
            Self::Api(error) => (error.hint.as_deref(), None),
            Self::Usage(usage) => (Some(usage.hint.as_str()), usage.usage.as_deref()),
            Self::Stdout(_) | Self::Negative => (None, None),
        };
        for (label, line) in [("hint", hint), ("usage", usage)] {
            if let Some(line) = line {
                text.extend([label, ": ", line, "\n"]);
            }
        }
        text
    }

    /// The error for scripts, as one line.
    fn to_document(&self) -> String {
        let message = self.to_string();
        let (error_type, hint) = match self {
            Self::Api(error) => (TypeName::Api(error.error_type), error.hint.as_deref()),
            Self::Usage(usage) => (TypeName::Own("usage"), Some(usage.hint.as_str())),
            Self::Stdout(_) => (TypeName::Own("stdout"), None),
            Self::Negative => (TypeName::Own("negative"), None),
        };
        let body = ErrorDocument {
            ok: false,
            error: ErrorBody {
                error_type,
                message: &message,
                hint,
            },
        };
        document(&body).unwrap_or_default()
    }
}

/// The error for a file that was named on the command line and cannot be read.
pub fn file_error(path: &Path, error: &io::Error) -> ApiError {
    let error_type = match error.kind() {
        ErrorKind::NotFound => ErrorType::NoInput,
        ErrorKind::PermissionDenied => ErrorType::NotPermitted,
        _ => ErrorType::InvalidData,
    };
    ApiError::new(
        error_type,
        format!("cannot read {}: {error}", path.display()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage() -> CommandError {
        CommandError::Usage(Usage {
            message: "what?".to_owned(),
            hint: "this".to_owned(),
            usage: Some("tidings".to_owned()),
        })
    }

    #[test]
    fn an_error_has_its_hint_on_a_line_of_its_own() {
        let error = ApiError::new(ErrorType::NotFound, "no such node");
        for (error, text) in [
            (CommandError::Api(error.clone()), "error: no such node\n"),
            (
                CommandError::Api(error.with_hint("look")),
                "error: no such node\nhint: look\n",
            ),
            (usage(), "error: what?\nhint: this\nusage: tidings\n"),
        ] {
            assert_eq!(error.to_text(), text);
        }
    }

    #[test]
    fn an_error_document_has_type_message_and_hint() {
        let error = ApiError::new(ErrorType::NotFound, "no such node");
        for (error, document) in [
            (
                CommandError::Api(error),
                r#"{"schemaVersion":1,"ok":false,"error":{"type":"not_found","message":"no such node","hint":null}}"#,
            ),
            (
                usage(),
                r#"{"schemaVersion":1,"ok":false,"error":{"type":"usage","message":"what?","hint":"this"}}"#,
            ),
        ] {
            assert_eq!(error.to_document().trim_end(), document);
        }
    }

    #[test]
    fn each_way_to_fail_has_its_exit_code() {
        let stdout = |kind: ErrorKind| CommandError::Stdout(kind.into());
        for (error, code) in [
            (usage(), 2),
            (CommandError::Negative, 1),
            (stdout(ErrorKind::BrokenPipe), 0),
            (stdout(ErrorKind::StorageFull), 74),
            (ApiError::new(ErrorType::Conflict, "").into(), 1),
            (ApiError::new(ErrorType::Unavailable, "").into(), 69),
        ] {
            assert_eq!(error.exit_code(), code, "{error:?}");
        }
    }
}
