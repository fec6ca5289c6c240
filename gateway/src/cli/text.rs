//! A text on the command line: as an argument, from a file, or from stdin.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use tidings_node::cli::error::file_error;
use tidings_protocol::session_api::{ApiError, ErrorType, PrivateText};

use crate::state::MAX_MESSAGE_BYTES;

/// Where a text comes from.
#[derive(Debug, Args)]
pub(super) struct TextArgs {
    /// The text; else it is read from stdin
    #[arg(value_name = "TEXT")]
    text: Option<String>,
    /// A file that holds the text; `-` is stdin
    #[arg(long, value_name = "FILE", conflicts_with = "text")]
    file: Option<PathBuf>,
}

impl TextArgs {
    /// The text as it was given. Whether it says anything is for the gateway to judge.
    pub(super) fn read(self) -> Result<PrivateText, ApiError> {
        match (self.text, self.file) {
            (Some(text), _) => Ok(PrivateText(text)),
            (None, Some(file)) if file != Path::new("-") => {
                let opened = File::open(&file).map_err(|error| file_error(&file, &error))?;
                text_of(opened, &file)
            }
            (None, given) => {
                let stdin = io::stdin();
                if given.is_none() && stdin.is_terminal() {
                    return Err(ApiError::new(
                        ErrorType::InvalidRequest,
                        "there is no text: none is given, and stdin is a terminal",
                    )
                    .with_hint("give it as TEXT, or --file FILE; --file - reads the terminal"));
                }
                text_of(stdin, Path::new("stdin"))
            }
        }
    }
}

/// What a file holds, as long as a message may be.
fn text_of(input: impl Read, path: &Path) -> Result<PrivateText, ApiError> {
    let invalid = |why: &str| {
        ApiError::new(
            ErrorType::InvalidData,
            format!("{} is no message: {why}", path.display()),
        )
    };
    let mut bytes = Vec::new();
    input
        .take(MAX_MESSAGE_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| file_error(path, &error))?;
    if bytes.len() > MAX_MESSAGE_BYTES {
        return Err(invalid(&format!(
            "it has more than {MAX_MESSAGE_BYTES} bytes"
        )));
    }
    let text = String::from_utf8(bytes).map_err(|_| invalid("it is not valid UTF-8"))?;
    Ok(PrivateText(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_taken_as_it_is_up_to_the_size_of_a_message() {
        let read = |bytes: &[u8]| text_of(bytes, Path::new("m.txt"));
        assert_eq!(read(b" a\r\nb\n"), Ok(PrivateText::from(" a\r\nb\n")));
        assert_eq!(read(b""), Ok(PrivateText::from("")));
        let largest = "m".repeat(MAX_MESSAGE_BYTES);
        assert_eq!(
            read(largest.as_bytes()),
            Ok(PrivateText::from(largest.clone()))
        );
        for bad in [(largest + "m").into_bytes(), b"\xff canary".to_vec()] {
            let error = read(&bad).expect_err("an error");
            assert_eq!(error.error_type, ErrorType::InvalidData);
            assert!(
                error.message.starts_with("m.txt is no message"),
                "{error:?}"
            );
            assert!(!error.message.contains("canary"));
        }
    }
}
