//! `tidings-node status`: the node agent of this machine at a glance.

use tidings_protocol::session_api::{ApiError, ErrorType, NodeStatus, Reply, Request};

use crate::cli::door::ANSWER_DEADLINE;
use crate::cli::format::{size, utc};
use crate::cli::{Column, CommandError, CommonArgs, Door, Note, Page, Table};
use crate::connection::{IdentityFileError, NodeIdentity};
use crate::local::socket::NODE_SOCKET;

pub(super) fn run(common: &CommonArgs) -> Result<(), CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| {
            let message = format!("the command cannot start: {error}");
            ApiError::new(ErrorType::Internal, message)
        })?;
    let status = runtime.block_on(ask(common));
    let status = status.map_err(|error| of_unpaired(error, common))?;
    common.output().answer(&status, page)
}

/// Where there is no agent because there is no pairing, that is what to mend first.
fn of_unpaired(error: ApiError, common: &CommonArgs) -> ApiError {
    let paired = common.state_dir().map(|dir| NodeIdentity::load(&dir));
    match paired {
        Ok(Err(unpaired @ IdentityFileError::NotPaired { .. }))
            if error.error_type == ErrorType::Unavailable =>
        {
            let join = format!("tidings-node join LINK{}", common.state_dir_flag());
            ApiError::new(error.error_type, unpaired.to_string())
                .with_hint(format!("pair it first: {join}"))
        }
        _ => error,
    }
}

/// What the agent of this machine says about itself.
pub(super) async fn ask(common: &CommonArgs) -> Result<NodeStatus, ApiError> {
    let mut connection = door(common)?.connect().await?;
    match connection.ask(&Request::NodeStatus {}).await? {
        Reply::NodeStatus(status) => Ok(*status),
        _ => Err(connection.unexpected()),
    }
}

/// Where the agent of this machine answers.
pub(super) fn door(common: &CommonArgs) -> Result<Door, ApiError> {
    Ok(Door {
        socket: common.state_dir()?.join(NODE_SOCKET),
        service: "node agent",
        start: format!("tidings-node run{}", common.state_dir_flag()),
        deadline: ANSWER_DEADLINE,
    })
}

fn page(status: &NodeStatus) -> Page {
    let roots = Table::new([
        Column::left("CATALOG"),
        Column::left("STATE"),
        Column::left("ROOT"),
    ])
    .with_rows(&status.roots, |root| {
        [
            root.catalog.to_string(),
            root.state.clone(),
            root.path.clone(),
        ]
    });
    let links = Table::new([
        Column::left("CATALOG"),
        Column::left("THREAD"),
        Column::left("STATE"),
        Column::right("RECORDED"),
        Column::left("FILE"),
    ])
    .with_rows(&status.links, |link| {
        [
            link.catalog.to_string(),
            link.thread_id.to_string(),
            link.state.clone(),
            size(link.offset),
            link.path.clone(),
        ]
    });
    let mut text = head(status);
    if !status.roots.is_empty() {
        text.extend(["\n", &roots.to_string()]);
    }
    if !status.links.is_empty() {
        text.extend(["\n", &links.to_string()]);
    }
    let error = status.connection_error.iter();
    let warnings = error.chain(&status.warnings).cloned().map(Note::Warning);
    let page = warnings.fold(Page::of(text), Page::with);
    if status.links.is_empty() {
        return page.with(Note::Info("no thread is followed".to_owned()));
    }
    page
}

fn head(status: &NodeStatus) -> String {
    format!(
        "node         {}, id {}, version {}\n\
         gateway      {}, {} since {} UTC\n\
         certificate  until {} UTC\n",
        status.host_name,
        status.node_id,
        status.version,
        status.gateway,
        status.connection,
        utc(status.connection_since),
        utc(status.certificate_not_after),
    )
}
