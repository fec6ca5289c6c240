//! `tidings notices`: the lines that tell a watcher of a change.

use clap::Subcommand;
use tidings_node::cli::{CommandError, Note, Page};
use tidings_protocol::session_api::{Notices, Request};

use super::client::answer;
use super::sessions::SessionArgs;
use super::{Context, suggest};

#[derive(Debug, Subcommand)]
pub(super) enum NoticesCommand {
    /// Prints the notices pending for a watcher and leaves them pending
    #[command(after_help = "Example:\n  tidings notices list agent:main:main")]
    List(SessionArgs),
    /// Takes the notices pending for a watcher: each is handed out once
    #[command(after_help = "Example:\n  tidings notices drain agent:main:main")]
    Drain(SessionArgs),
}

pub(super) async fn run(
    command: NoticesCommand,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    let (watcher, page): (_, fn(&Notices) -> Page) = match &command {
        NoticesCommand::List(watcher) => (watcher.session().clone(), list_page),
        NoticesCommand::Drain(watcher) => (watcher.session().clone(), drain_page),
    };
    let request = match command {
        NoticesCommand::List(watcher) => Request::NoticesList(watcher.into_ref()),
        NoticesCommand::Drain(watcher) => Request::NoticesDrain(watcher.into_ref()),
    };
    let notices = context.client.ask(request, answer!(Notices)).await?;
    if notices.notices.is_empty() {
        suggest::unknown_session(context, &watcher).await;
    }
    context.output.answer(&notices, page)
}

/// The lines themselves are the data: they are what stands in the watcher's prompt.
fn drain_page(page: &Notices) -> Page {
    if page.notices.is_empty() {
        return Page::empty("no notices pending", "tidings watch list");
    }
    let lines = page.notices.iter().map(|notice| notice.text.as_str());
    Page::of(
        lines
            .flat_map(|line| {
                [
                    line, "
",
                ]
            })
            .collect::<String>(),
    )
}

fn list_page(page: &Notices) -> Page {
    let shown = drain_page(page);
    if page.notices.is_empty() {
        shown
    } else {
        shown.with(Note::Hint("tidings notices drain takes them".to_owned()))
    }
}
