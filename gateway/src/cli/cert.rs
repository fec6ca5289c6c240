//! `tidings cert`: certificates for machines that are set up by the dozen, or out of reach.

use std::path::{Path, PathBuf};

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgGroup, Args, Subcommand};
use serde::Serialize;
use tidings_node::cli::CommandError;
use tidings_node::cli::error::file_error;
use tidings_node::connection::{NodeKey, provision, signing_request};
use tidings_node::private_files;
use tidings_protocol::session_api::{
    ApiError, CertificateIssued, CertificateRef, ErrorType, IssueCertificate, RenewCertificate,
    Request,
};
use tidings_protocol::{EpochMs, HostName, NodeId};
use x509_parser::pem::parse_x509_pem;

use super::args::host_parser;
use super::cert_pages::{certificates_page, issued_page, revoked_page};
use super::client::answer;
use super::{Context, suggest};

/// The largest signing request file: a P-256 one has less than a kilobyte.
const MAX_REQUEST_BYTES: u64 = 64 * 1024;

#[derive(Debug, Subcommand)]
pub(super) enum CertCommand {
    /// Makes a node of a signing request, or of a key made here
    Issue(IssueArgs),
    /// Makes a new certificate for a node's key
    Renew(RenewArgs),
    /// Turns away one certificate, or all that a node has; the node stays
    #[command(after_help = "Example:\n  tidings cert revoke laptop")]
    Revoke(RevokeArgs),
    /// Shows certificates and how they stand
    #[command(after_help = "Example:\n  tidings cert inspect laptop")]
    Inspect(InspectArgs),
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("key").required(true), after_help = "Example:\n  \
    tidings cert issue laptop --request laptop.csr --out laptop/\n\n\
    The request comes from `tidings-node request` on that machine; what stands in the folder\n\
    afterwards is for `tidings-node join --certificate`.")]
pub(super) struct IssueArgs {
    /// The host name of the new node
    #[arg(value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    name: String,
    /// The signing request that was made on the machine
    #[arg(long, value_name = "FILE", group = "key")]
    request: Option<PathBuf>,
    /// Makes the key here, for you to carry in the folder: whoever reads it is that node
    #[arg(long, group = "key")]
    with_key: bool,
    #[command(flatten)]
    destination: Destination,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  tidings cert renew laptop --out laptop/")]
pub(super) struct RenewArgs {
    /// The node: its host name or its id
    #[arg(value_name = "NODE", value_parser = host_parser())]
    node: String,
    #[command(flatten)]
    destination: Destination,
}

#[derive(Debug, Args)]
pub(super) struct Destination {
    /// The folder to write to, for its owner alone
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Where the node finds this gateway, as HOST:PORT; else where it listens
    #[arg(long, value_name = "HOST:PORT")]
    address: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct RevokeArgs {
    /// A serial number, or a node: its host name or its id
    #[arg(value_name = "SERIAL|NODE", value_parser = host_parser())]
    certificate: String,
}

#[derive(Debug, Args)]
pub(super) struct InspectArgs {
    /// A serial number, or a node: its host name or its id; else all
    #[arg(value_name = "SERIAL|NODE", value_parser = host_parser())]
    certificate: Option<String>,
}

/// What was written where.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Written {
    pub(super) node_id: NodeId,
    pub(super) host_name: HostName,
    pub(super) gateway: String,
    pub(super) serial: String,
    pub(super) not_after: EpochMs,
    pub(super) out: PathBuf,
    pub(super) files: Vec<PathBuf>,
}

pub(super) async fn run(
    command: CertCommand,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    match command {
        CertCommand::Issue(args) => issue(args, context).await,
        CertCommand::Renew(args) => {
            let node = args.node.clone();
            let request = Request::CertRenew(RenewCertificate {
                node: args.node,
                address: args.destination.address,
            });
            let client = &mut context.client;
            match client.ask(request, answer!(CertIssued)).await {
                Ok(issued) => write(&issued, None, args.destination.out, context),
                Err(error) => Err(suggest::nodes(client, error, &node).await.into()),
            }
        }
        CertCommand::Revoke(args) => {
            let request = Request::CertRevoke(named(Some(args.certificate.clone())));
            let client = &mut context.client;
            match client.ask(request, answer!(CertRevoked)).await {
                Ok(revoked) => context.output.answer(&revoked, revoked_page),
                Err(error) => Err(suggest::nodes(client, error, &args.certificate)
                    .await
                    .into()),
            }
        }
        CertCommand::Inspect(args) => {
            let name = args.certificate.clone().unwrap_or_default();
            let request = Request::CertInspect(named(args.certificate));
            let client = &mut context.client;
            match client.ask(request, answer!(CertInspect)).await {
                Ok(found) => context.output.answer(&found, certificates_page),
                Err(error) => Err(suggest::nodes(client, error, &name).await.into()),
            }
        }
    }
}

async fn issue(args: IssueArgs, context: &mut Context<'_>) -> Result<(), CommandError> {
    // A key that is made here never goes to the gateway: it signs a request as any other's.
    let (key, signing_request) = if let Some(file) = &args.request {
        (None, read_request(file)?)
    } else {
        let key = NodeKey::generate().map_err(|error| no_key(&error))?;
        let request = signing_request(&key).map_err(|error| no_key(&error))?;
        (Some(key), request)
    };
    if key.is_some() && args.destination.out.join("node.key").exists() {
        let folder = args.destination.out.display();
        let message = format!("{folder} holds a node's key already");
        return Err(ApiError::new(ErrorType::Conflict, message)
            .with_hint("give another folder; a key is not overwritten")
            .into());
    }
    // A key that could not be written would be lost, and the node made of it with it.
    private_files::create_dir(&args.destination.out).map_err(|error| {
        ApiError::new(ErrorType::CannotCreate, error.to_string())
            .with_hint("give a folder that can be written with --out; nothing was issued")
    })?;
    let request = Request::CertIssue(IssueCertificate {
        name: args.name,
        signing_request,
        address: args.destination.address,
    });
    let issued = context.client.ask(request, answer!(CertIssued)).await?;
    write(&issued, key.as_ref(), args.destination.out, context)
}

/// Writes what the machine needs, and says where.
fn write(
    issued: &CertificateIssued,
    key: Option<&NodeKey>,
    out: PathBuf,
    context: &mut Context<'_>,
) -> Result<(), CommandError> {
    let files = provision(&out, issued, key).map_err(|error| {
        ApiError::new(ErrorType::CannotCreate, error.to_string())
            .with_hint("the certificate stands: tidings cert renew NODE --out FOLDER gives another")
    })?;
    let written = Written {
        node_id: issued.node_id.clone(),
        host_name: issued.host_name.clone(),
        gateway: issued.gateway.clone(),
        serial: issued.serial.clone(),
        not_after: issued.not_after,
        out,
        files,
    };
    context.output.answer(&written, issued_page)
}

/// A signing request as people carry it: PEM, or DER.
fn read_request(file: &Path) -> Result<Vec<u8>, ApiError> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(file)
        .and_then(|opened| opened.take(MAX_REQUEST_BYTES).read_to_end(&mut bytes))
        .map_err(|error| file_error(file, &error))?;
    match parse_x509_pem(&bytes) {
        Ok((_, pem)) if pem.label.ends_with("CERTIFICATE REQUEST") => Ok(pem.contents),
        Ok(_) => Err(ApiError::new(
            ErrorType::InvalidData,
            format!("{} is no signing request", file.display()),
        )
        .with_hint("on that machine: tidings-node request --out FILE")),
        // No PEM: the gateway says whether it is a request.
        Err(_) => Ok(bytes),
    }
}

fn no_key(error: &dyn std::fmt::Display) -> ApiError {
    ApiError::new(ErrorType::Internal, error.to_string())
}

fn named(certificate: Option<String>) -> CertificateRef {
    CertificateRef { certificate }
}
