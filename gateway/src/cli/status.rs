//! `tidings status`: the gateway, its nodes and its links at a glance.

use tidings_node::cli::format::{size, utc, utc_or_nothing};
use tidings_node::cli::{Column, CommandError, Note, Page, Table};
use tidings_protocol::session_api::{LinkStatus, Request, Status};

use super::Context;
use super::client::answer;
use super::node_pages::nodes_table;
use super::session_pages::upstream_name;

pub(super) async fn run(context: &mut Context<'_>) -> Result<(), CommandError> {
    let request = Request::Status {};
    let status = context.client.ask(request, answer!(Status)).await?;
    context.output.answer(&status, |status| page(status))
}

fn page(status: &Status) -> Page {
    let nodes = nodes_table(&status.nodes);
    let mut text = head(status);
    if !status.nodes.is_empty() {
        text.extend(["\n", &nodes.text]);
    }
    if !status.links.is_empty() {
        text.extend(["\n", &links_table(&status.links).to_string()]);
    }
    let own = status.gateway.warnings.iter().cloned().map(Note::Warning);
    let page = Page {
        text,
        notes: own.chain(nodes.notes).collect(),
    };
    if status.links.is_empty() {
        let next = "tidings catalog list shows threads, tidings sessions adopt follows one";
        return page
            .with(Note::Info("no thread is followed".to_owned()))
            .with(Note::Hint(next.to_owned()));
    }
    page
}

fn head(status: &Status) -> String {
    let gateway = &status.gateway;
    let counts = &status.counts;
    let model = gateway.model.as_ref();
    format!(
        "gateway   {}, process {}, since {} UTC\n\
         listens   {}\n\
         http      {}\n\
         state     {}\n\
         database  {}\n\
         {}shows     a certificate until {} UTC; its authority until {} UTC\n\
         counts    sessions {}, signals {} (head {}), watches {}, notices {}, links {}\n",
        gateway.version,
        gateway.pid,
        utc(gateway.started_at),
        gateway.listen,
        gateway.http.as_deref().unwrap_or("off"),
        gateway.state_dir,
        gateway.database,
        model
            .map(|model| format!("model     {model}\n"))
            .unwrap_or_default(),
        utc(gateway.server_certificate_not_after),
        utc(gateway.authority_not_after),
        counts.sessions,
        counts.signals,
        counts.head,
        counts.watches,
        counts.notices,
        counts.links,
    )
}

fn links_table(links: &[LinkStatus]) -> Table<7> {
    Table::new([
        Column::left("SESSION"),
        Column::left("STATE"),
        Column::left("LAST OUTCOME"),
        Column::left("LAST REPORT (UTC)"),
        Column::right("UNREAD"),
        Column::right("UNCLASSIFIED"),
        Column::left("BLOCKED BECAUSE").where_filled(),
    ])
    .with_rows(links, |link| {
        [
            link.session_key.to_string(),
            upstream_name(link.state).to_owned(),
            link.last_outcome.clone(),
            utc_or_nothing(link.last_report_at),
            size(link.lag_bytes),
            link.unclassified.to_string(),
            link.blocked.clone().unwrap_or_default(),
        ]
    })
}
