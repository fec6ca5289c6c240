//! Reading a command line: help and errors in the same words and format as everything
//! else.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Command, Parser};

use super::error::{CommandError, Usage};
use super::output::{Output, OutputFormat, write_stdout};

/// Letters and digits in a row that may be a secret: codes and tokens have at least 22, and no
/// whole number has more than 20.
const SECRET_CHARS: usize = 21;
/// How much of those is shown, so that a person sees which is meant.
const SHOWN_CHARS: usize = 4;
/// The longest word of an error: no option and no path that people type has more.
const MAX_WORD_CHARS: usize = 100;

/// Reads the process's command line, or answers it and gives the exit code: help and
/// version go to stdout, and what cannot be meant is an error of type `usage`.
pub fn parse<C: Parser>(arguments: &[OsString]) -> Result<C, ExitCode> {
    let error = match C::try_parse_from(arguments) {
        Ok(command) => return Ok(command),
        Err(error) => error,
    };
    let output = Output::new(wanted_format(arguments));
    Err(match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => show(&error.to_string(), output),
        _ => CommandError::Usage(usage(&error, &C::command(), arguments)).report(output),
    })
}

/// Answers a command line without a command: with the help of the whole program, for
/// scripts with an error.
pub fn without_command<C: Parser>(output: Output) -> ExitCode {
    let mut program = C::command();
    match output.format() {
        OutputFormat::Human => show(&program.render_help().to_string(), output),
        OutputFormat::Json => {
            let name = program.get_name();
            let usage = Usage {
                message: format!("{name} needs a command"),
                hint: format!(
                    "the commands are {}; see {name} --help",
                    command_names(&program)
                ),
                usage: None,
            };
            CommandError::Usage(usage).report(output)
        }
    }
}

fn show(text: &str, output: Output) -> ExitCode {
    match write_stdout(text) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => error.report(output),
    }
}

/// The format asked for on a command line that cannot be read as a whole.
fn wanted_format(arguments: &[OsString]) -> OutputFormat {
    let options = arguments.iter().take_while(|argument| *argument != "--");
    if options.into_iter().any(|argument| argument == "--json") {
        OutputFormat::Json
    } else {
        OutputFormat::Human
    }
}

/// What clap found wrong, in our form. Its own text is paragraphs: the error, tips, the
/// usage, and where to find help.
fn usage(error: &clap::Error, program: &Command, arguments: &[OsString]) -> Usage {
    let text = error.to_string();
    let mut paragraphs = text.split("\n\n").map(one_line);
    let first = paragraphs.next().unwrap_or_default();
    let message = first.strip_prefix("error: ").unwrap_or(&first).to_owned();
    let mut hints = Vec::new();
    let mut usage = None;
    for paragraph in paragraphs {
        if let Some(form) = paragraph.strip_prefix("Usage: ") {
            usage = Some(form.to_owned());
        } else if let Some(tips) = paragraph.strip_prefix("tip: ") {
            hints.extend(tips.split(" tip: ").map(tip_in_our_words));
        }
    }
    let (path, command) = command_meant(program, arguments);
    if matches!(
        error.kind(),
        ErrorKind::InvalidSubcommand
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        hints.push(format!("the commands are {}", command_names(command)));
    }
    hints.push(format!("see {path} --help"));
    let message = match error.kind() {
        // Here clap's text is the whole help.
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => format!("{path} needs a command"),
        _ => message.replacen("unrecognized subcommand", "there is no command", 1),
    };
    Usage {
        message: discreet(&message),
        hint: discreet(&hints.join("; ").replace("?; ", "? ")),
        usage,
    }
}

/// The text with everything cut short that may be a secret in the wrong place (a join link, a
/// code, a token), and with no word longer than a line.
fn discreet(text: &str) -> String {
    let words = text.split(' ').map(|word| {
        let mut out = String::new();
        for run in word.split_inclusive(|c: char| !is_of_secret(c)) {
            let body = run.trim_end_matches(|c: char| !is_of_secret(c));
            let looks_secret =
                body.len() >= SECRET_CHARS && body.contains(|c: char| c.is_ascii_digit());
            if looks_secret {
                out.extend([&body[..SHOWN_CHARS], "…", &run[body.len()..]]);
            } else {
                out.push_str(run);
            }
        }
        match out.char_indices().nth(MAX_WORD_CHARS) {
            Some((cut, _)) => format!("{}…", &out[..cut]),
            None => out,
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn is_of_secret(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// `a similar value exists: 'x'`, or any other tip as it is.
fn tip_in_our_words(tip: &str) -> String {
    let alike = tip.split_once(" exists: ").or(tip.split_once(" exist: "));
    match alike {
        Some((_, names)) => format!("did you mean {names}?"),
        None => tip.to_owned(),
    }
}

fn one_line(paragraph: &str) -> String {
    paragraph.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The command that the line got as far as, and how it is called.
fn command_meant<'a>(program: &'a Command, arguments: &[OsString]) -> (String, &'a Command) {
    let mut path = program.get_name().to_owned();
    let mut command = program;
    let mut arguments = arguments.iter().skip(1).filter_map(|word| word.to_str());
    while let Some(word) = arguments.next() {
        if word.starts_with('-') {
            if takes_value(program, word) {
                arguments.next();
            }
            continue;
        }
        let Some(next) = command.find_subcommand(word) else {
            break;
        };
        path = format!("{path} {}", next.get_name());
        command = next;
    }
    (path, command)
}

/// True for an option of every command that takes the word after it.
fn takes_value(program: &Command, word: &str) -> bool {
    program.get_arguments().any(|argument| {
        argument.get_action().takes_values()
            && argument
                .get_long()
                .is_some_and(|long| word.strip_prefix("--") == Some(long))
    })
}

fn command_names(command: &Command) -> String {
    let shown = command
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set() && sub.get_name() != "help");
    shown.map(Command::get_name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_a_secret_is_cut_short_and_nothing_else_is() {
        let code = "0123456789abcdef0123456789abcdef";
        let link = format!("tidings://join/{code}@gw.example.org:7430?ca={code}{code}");
        let long = "/srv/".repeat(40);
        for (text, expected) in [
            (
                format!("there is no command '{link}'"),
                "there is no command 'tidings://join/0123…@gw.example.org:7430?ca=0123…'"
                    .to_owned(),
            ),
            (
                format!("unexpected argument '{code}' found"),
                "unexpected argument '0123…' found".to_owned(),
            ),
            (
                "invalid value 'tdg_A1bcdefghijklmnopq' for '--limit <LIMIT>'".to_owned(),
                "invalid value 'tdg_…' for '--limit <LIMIT>'".to_owned(),
            ),
            (
                format!("no such root {long}"),
                format!("no such root {}…", &long[..MAX_WORD_CHARS]),
            ),
        ] {
            assert_eq!(discreet(&text), expected);
        }
        for same in [
            "did you mean '--certificate-something-with-a-long-name'?",
            "invalid value 'agent:main:adopted:claude:laptop:0a1b' for '<TARGET>'",
            "see tidings nodes --help; the commands are a, b",
            "thread 0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f",
            "ö",
        ] {
            assert_eq!(discreet(same), same);
        }
    }
}
