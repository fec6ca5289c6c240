//! What a shell and a pager are told of a program: completions and man pages, made from the
//! command line's own description.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{Command, CommandFactory, Subcommand};
use clap_complete::Shell;
use clap_mangen::Man;
use serde::Serialize;
use tidings_protocol::session_api::{ApiError, ErrorType};

use super::output::write_stdout;
use super::{CommandError, Note, Output, OutputFormat, Page};

/// The commands about the command line itself.
#[derive(Debug, Subcommand)]
pub enum ManualCommand {
    /// Prints a script by which a shell completes commands and options
    #[command(after_help = "For bash, this line in ~/.bashrc:\n  \
        source <(PROGRAM completions bash)\n\n\
        For fish:\n  \
        PROGRAM completions fish > ~/.config/fish/completions/PROGRAM.fish")]
    Completions {
        /// For which shell
        shell: Shell,
    },
    /// Prints the man page, or writes the pages of all commands
    #[command(after_help = "To read it at once:\n  \
        PROGRAM man | man -l -\n\n\
        To have man find it:\n  \
        PROGRAM man --dir ~/.local/share/man/man1")]
    Man {
        /// Writes one page for each command into this directory, which is made if need be
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

#[derive(Serialize)]
struct Script {
    shell: String,
    script: String,
}

#[derive(Serialize)]
struct ManPage {
    page: String,
}

#[derive(Serialize)]
struct ManPages {
    dir: String,
    pages: Vec<String>,
}

/// Answers one of them for the program that `C` describes.
pub fn run<C: CommandFactory>(command: &ManualCommand, output: Output) -> Result<(), CommandError> {
    let program = C::command();
    match command {
        ManualCommand::Completions { shell } => {
            let script = completions(program, *shell);
            let shell = shell.to_string();
            raw(output, &Script { shell, script }, |answer| &answer.script)
        }
        ManualCommand::Man { dir: None } => {
            let page = man_page(built(program))?;
            raw(output, &ManPage { page }, |answer| &answer.page)
        }
        ManualCommand::Man { dir: Some(dir) } => {
            let pages = write_pages(built(program), dir)?;
            let dir = dir.display().to_string();
            output.answer(&ManPages { dir, pages }, |answer| {
                let written = format!("{} man pages in {}", answer.pages.len(), answer.dir);
                Page::default().with(Note::Info(written))
            })
        }
    }
}

/// Prints text that is for a program to read, as it is.
fn raw<T: Serialize>(
    output: Output,
    answer: &T,
    text: impl FnOnce(&T) -> &str,
) -> Result<(), CommandError> {
    match output.format() {
        OutputFormat::Human => write_stdout(text(answer)),
        OutputFormat::Json => output.answer(answer, |_| Page::default()),
    }
}

fn completions(mut program: Command, shell: Shell) -> String {
    let name = program.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program, name, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The program with the full names of its commands.
fn built(program: Command) -> Command {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    program
}

fn man_page(command: Command) -> Result<String, CommandError> {
    let mut page = Vec::new();
    Man::new(command)
        .render(&mut page)
        .map_err(CommandError::Stdout)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// Writes the page of a command and those of all below it; gives their names.
fn write_pages(command: Command, dir: &Path) -> Result<Vec<String>, CommandError> {
    let cannot = |path: &Path, error: &std::io::Error| {
        let message = format!("{}: {error}", path.display());
        CommandError::from(
            ApiError::new(ErrorType::CannotCreate, message)
                .with_hint("name a directory that you may write to: man --dir DIR"),
        )
    };
    fs::create_dir_all(dir).map_err(|error| cannot(dir, &error))?;
    let mut names = Vec::new();
    let mut waiting = vec![command];
    while let Some(command) = waiting.pop() {
        waiting.extend(command.get_subcommands().cloned());
        let name = Man::new(command.clone()).get_filename();
        let path = dir.join(&name);
        fs::write(&path, man_page(command)?).map_err(|error| cannot(&path, &error))?;
        names.push(name);
    }
    names.sort();
    Ok(names)
}
