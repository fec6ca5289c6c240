//! `tidings nodes listen`: who asks to become a node, as it happens.

use tidings_node::cli::format::utc;
use tidings_node::cli::{CommandError, Note, daemon};
use tidings_protocol::session_api::{
    ApiError, ErrorType, PairingEvent, PairingNews, PairingRequest, Reply, Request,
};

use super::Context;
use super::signals_follow::stdout_closed;

/// Shows who asks, until its time is over or somebody ends it.
pub(super) async fn run(context: &mut Context<'_>) -> Result<(), CommandError> {
    let stopped = daemon::stop_signal()?;
    let reader_gone = stdout_closed();
    tokio::pin!(stopped, reader_gone);
    let connection = context.client.connection().await?;
    connection.send(&Request::NodesListen {}).await?;
    loop {
        let reply = tokio::select! {
            reply = connection.next() => reply?,
            () = &mut stopped => return Ok(()),
            () = &mut reader_gone => return Ok(()),
        };
        let news = match reply {
            Some(Reply::NodesListen(news)) => news,
            Some(_) => return Err(connection.unexpected().into()),
            None => return Err(gateway_gone().into()),
        };
        context.output.item(&news, line)?;
        if news.event == PairingEvent::Listening {
            let note = "Ctrl-C ends it; who waits by then can still be approved".to_owned();
            context.output.note(&Note::Info(note));
        }
        if news.event == PairingEvent::Closed {
            return Ok(());
        }
    }
}

/// What happened, as people read it.
fn line(news: &PairingNews) -> String {
    let request = news.request.as_ref();
    let who = request.map(|request| format!("{} ({})", request.machine_name, request.address));
    let who = who.unwrap_or_default();
    match news.event {
        PairingEvent::Listening => format!(
            "machines may ask until {} UTC: tidings-node join {}",
            news.until.map(utc).unwrap_or_default(),
            news.address.as_deref().unwrap_or("HOST:PORT")
        ),
        PairingEvent::Requested => format!(
            "{who} asks, and shows:\n    {}",
            request.map(what_to_do).unwrap_or_default()
        ),
        PairingEvent::Approved => format!("{who} is a node now"),
        PairingEvent::Rejected => format!("{who} was rejected"),
        PairingEvent::Expired => format!("{who} was not approved in time"),
        PairingEvent::Withdrawn => format!("{who} has gone, or asks anew"),
        PairingEvent::Closed => "no machine may ask any more".to_owned(),
    }
}

fn what_to_do(request: &PairingRequest) -> String {
    let words = request.words;
    format!(
        "{words}\n  if the machine shows the same:  tidings nodes approve {words}\n  \
         if not:                         tidings nodes reject {}",
        request.id
    )
}

fn gateway_gone() -> ApiError {
    ApiError::new(ErrorType::Unavailable, "the gateway has gone")
        .with_hint("machines that waited must ask again, once it runs and listens")
}
