//! Where a join link comes from: an argument, a file that is deleted once it is read, stdin.
//!
//! A join link is a secret. It is taken as an argument because it is used up at once; a
//! file or stdin keeps it out of process lists. No error repeats it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use tidings_protocol::JoinLink;
use tidings_protocol::join_link::{MAX_JOIN_LINK_BYTES, check_address};
use tidings_protocol::session_api::{ApiError, ErrorType};

use crate::cli::error::file_error;
use crate::cli::{Note, Output, OutputFormat};

/// How much of a file or of stdin is read: a link, some white space, and one byte more
/// than can be right.
const MAX_READ_BYTES: u64 = 2 * MAX_JOIN_LINK_BYTES as u64;
/// How long a file may take: a pipe has it from a program that writes at once.
const FILE_DEADLINE: Duration = Duration::from_secs(10);

/// Where the link is to be found.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source<'a> {
    /// On the command line.
    Argument(&'a str),
    /// In a file.
    File(&'a Path),
    /// On stdin.
    Stdin,
}

/// True when the link is there and has this fingerprint; then its file is deleted, as at the
/// first time. Nobody is asked for it.
pub(super) fn is_the_one(source: Source<'_>, fingerprint: &[u8; 32], output: Output) -> bool {
    let is_it = |link: &JoinLink| link.fingerprint() == *fingerprint;
    match source {
        Source::Argument(text) => JoinLink::parse(text).is_ok_and(|link| is_it(&link)),
        Source::File(path) => {
            let text = read_in_time(path, FILE_DEADLINE);
            let link =
                text.map(|(text, is_file)| (parse(&String::from_utf8_lossy(&text)), is_file));
            match link {
                Ok((Ok(link), is_file)) if is_it(&link) => {
                    if is_file {
                        delete(path, output);
                    }
                    true
                }
                _ => false,
            }
        }
        Source::Stdin => {
            let stdin = io::stdin();
            !stdin.is_terminal()
                && first_line(stdin)
                    .and_then(|line| parse(&line))
                    .is_ok_and(|link| is_it(&link))
        }
    }
}

/// Finds and reads the link.
pub(super) fn find(source: Source<'_>, output: Output) -> Result<JoinLink, ApiError> {
    match source {
        Source::Argument(text) => parse(text).map_err(|error| as_address(text).unwrap_or(error)),
        Source::File(path) => of_file(path, FILE_DEADLINE, output),
        Source::Stdin => of_stdin(output),
    }
}

/// Reads the link and deletes the file. A file that holds no link is not ours to delete, and
/// a pipe is nobody's to keep.
fn of_file(path: &Path, deadline: Duration, output: Output) -> Result<JoinLink, ApiError> {
    let (text, is_file) = read_in_time(path, deadline)?;
    let link = parse(&String::from_utf8_lossy(&text))?;
    if is_file {
        delete(path, output);
    }
    Ok(link)
}

fn delete(path: &Path, output: Output) {
    if let Err(error) = std::fs::remove_file(path) {
        output.note(&Note::Warning(format!(
            "{} still holds the join link: {error}",
            path.display()
        )));
    }
}

/// The beginning of a file, and whether it is a regular one. Read by a thread of its own: a
/// pipe that nobody writes to blocks whoever opens it.
fn read_in_time(path: &Path, deadline: Duration) -> Result<(Vec<u8>, bool), ApiError> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let of_thread: PathBuf = path.to_owned();
    std::thread::spawn(move || {
        // Nobody waits any more once the deadline has passed.
        let _ = sender.send(read(&of_thread));
    });
    let read = receiver.recv_timeout(deadline).map_err(|_| {
        let message = format!(
            "nothing came from {} within {} s",
            path.display(),
            deadline.as_secs()
        );
        ApiError::new(ErrorType::Unavailable, message)
            .with_hint("write the link to it first, or give the link on stdin")
    })?;
    read.map_err(|error| file_error(path, &error))
}

fn read(path: &Path) -> io::Result<(Vec<u8>, bool)> {
    let file = File::open(path)?;
    let is_file = file.metadata()?.is_file();
    let mut text = Vec::new();
    file.take(MAX_READ_BYTES).read_to_end(&mut text)?;
    Ok((text, is_file))
}

fn of_stdin(output: Output) -> Result<JoinLink, ApiError> {
    let stdin = io::stdin();
    if stdin.is_terminal() {
        if output.format() == OutputFormat::Json {
            return Err(ApiError::new(
                ErrorType::InvalidRequest,
                "there is no join link: none is given, and stdin is a terminal",
            )
            .with_hint("tidings-node join LINK, or --link-file FILE"));
        }
        output.note(&Note::Info(
            "waiting for a join link, as tidings nodes invite prints it on the gateway's \
             machine; paste it here:"
                .to_owned(),
        ));
    }
    first_line(stdin).and_then(|line| parse(&line))
}

/// The first line, so that a person need not end the input to be heard.
fn first_line(input: impl Read) -> Result<String, ApiError> {
    let mut line = Vec::new();
    BufReader::new(input.take(MAX_READ_BYTES))
        .read_until(b'\n', &mut line)
        .map_err(|error| file_error(Path::new("stdin"), &error))?;
    Ok(String::from_utf8_lossy(&line).into_owned())
}

fn parse(text: &str) -> Result<JoinLink, ApiError> {
    JoinLink::parse(text).map_err(|error| {
        ApiError::new(ErrorType::InvalidRequest, format!("no join link: {error}"))
            .with_hint("tidings nodes invite, on the gateway's machine, prints one")
    })
}

/// What to say of a text that would be an address if it had a port. It is not repeated: it may be
/// a piece of a link.
fn as_address(text: &str) -> Option<ApiError> {
    let host = text.trim();
    let is_v6 = host.parse::<std::net::Ipv6Addr>().is_ok();
    if !is_v6 && check_address(&format!("{host}:1")).is_err() {
        return None;
    }
    let error = ApiError::new(
        ErrorType::InvalidRequest,
        "this is no join link, which begins with tidings://join/, and as an address it names no port",
    );
    let hint = "HOST:PORT, or [IPv6]:PORT, asks the gateway there for approval; it listens at \
                port 7430 unless told otherwise";
    Some(error.with_hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> String {
        let (code, pin) = ("07".repeat(16), "09".repeat(32));
        format!("tidings://join/{code}@gw.example.org:7430?ca={pin}")
    }

    fn found(source: Source<'_>) -> Result<String, ErrorType> {
        let link = find(source, Output::default());
        link.map(|link| link.to_string())
            .map_err(|error| error.error_type)
    }

    #[test]
    fn a_link_is_taken_as_given() {
        assert_eq!(found(Source::Argument(&link())), Ok(link()));
        let no_link = found(Source::Argument("x"));
        assert_eq!(no_link, Err(ErrorType::InvalidRequest));
    }

    #[test]
    fn a_file_is_deleted_once_its_link_is_read_and_only_then() {
        let dir = tempfile::tempdir().expect("scratch directory");
        let file = dir.path().join("link.txt");
        for (text, expected, is_left) in [
            (link() + "\r\n", Ok(link()), false),
            (
                "somebody's notes".to_owned(),
                Err(ErrorType::InvalidRequest),
                true,
            ),
            (
                link() + &"x".repeat(10_000),
                Err(ErrorType::InvalidRequest),
                true,
            ),
        ] {
            std::fs::write(&file, text).expect("write");
            assert_eq!(found(Source::File(&file)), expected);
            assert_eq!(file.exists(), is_left);
        }
        let missing = dir.path().join("missing.txt");
        assert_eq!(found(Source::File(&missing)), Err(ErrorType::NoInput));
        let directory = found(Source::File(dir.path()));
        assert_eq!(directory, Err(ErrorType::InvalidData));
    }

    #[test]
    fn a_pipe_gives_its_link_and_one_that_nobody_writes_to_is_given_up() {
        let dir = tempfile::tempdir().expect("scratch directory");
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.expect("mkfifo").success());
        let writer = pipe.clone();
        let writing = std::thread::spawn(move || std::fs::write(writer, link()));
        assert_eq!(found(Source::File(&pipe)), Ok(link()));
        writing.join().expect("ends").expect("written");
        assert!(pipe.exists(), "a pipe is not deleted");
        let error =
            of_file(&pipe, Duration::from_millis(1), Output::default()).expect_err("nobody writes");
        assert_eq!(error.error_type, ErrorType::Unavailable, "{error}");
    }

    #[test]
    fn an_address_without_a_port_is_told_what_it_lacks_and_not_repeated() {
        for address in [
            "gw.example.org",
            "192.0.2.7",
            " [2001:db8::7] ",
            "2001:db8::7",
        ] {
            let error = find(Source::Argument(address), Output::default()).expect_err("no link");
            assert!(error.message.contains("names no port"), "{error}");
            assert!(!error.message.contains(address.trim()), "{error}");
        }
        for other in ["https://gw.example.org", "tidings://join/07", ""] {
            let error = find(Source::Argument(other), Output::default()).expect_err("no link");
            assert!(error.message.starts_with("no join link"), "{error}");
        }
    }

    #[test]
    fn the_link_that_a_machine_joined_by_is_known_again_and_only_its_file_is_deleted() {
        let by = JoinLink::parse(&link()).expect("a link").fingerprint();
        let other = link().replace("0707", "0808");
        let is_the_one = |source: Source<'_>| is_the_one(source, &by, Output::default());
        assert!(is_the_one(Source::Argument(&link())));
        assert!(!is_the_one(Source::Argument(&other)));
        assert!(!is_the_one(Source::Argument("gw:7430")));
        let dir = tempfile::tempdir().expect("scratch directory");
        let file = dir.path().join("link.txt");
        assert!(!is_the_one(Source::File(&file)));
        for (text, known) in [(other, false), ("notes".to_owned(), false), (link(), true)] {
            std::fs::write(&file, text).expect("write");
            assert_eq!(is_the_one(Source::File(&file)), known);
            assert_eq!(file.exists(), !known);
        }
    }

    #[test]
    fn of_stdin_the_first_line_counts_and_no_more_than_a_link_can_have() {
        let line = |text: &str| first_line(text.as_bytes()).expect("line");
        assert_eq!(line("a\nb\n"), "a\n");
        assert_eq!(line(""), "");
        assert_eq!(line(&"x".repeat(10_000)).len(), 2 * MAX_JOIN_LINK_BYTES);
    }
}
