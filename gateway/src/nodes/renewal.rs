//! Renewing a node's certificate over its own connection.

use quinn::{Connection, SendStream};
use tidings_node::connection::{CONTROL_FRAME_BYTES, REQUEST_DEADLINE};
use tidings_node::framed::{self, StreamError};
use tidings_protocol::NodeId;
use tidings_protocol::session_api::{ApiError, ErrorType};
use tidings_protocol::wire::Message;
use tidings_protocol::wire::messages::{Refused, Renew, Renewed};

use super::admission::peer;
use super::context::NodeContext;

/// Says that the certificate has expired, and answers one request for a new one.
pub(super) async fn renew_only(
    context: &NodeContext,
    connection: &Connection,
    mut send: SendStream,
    refused: Refused,
) {
    let Some((node, _)) = peer(connection) else {
        return;
    };
    let answer = async {
        framed::write(&mut send, &Message::Refused(refused)).await?;
        let (mut send, mut receive) = connection.accept_bi().await.map_err(std::io::Error::from)?;
        if let Some(Message::Renew(request)) =
            framed::read(&mut receive, CONTROL_FRAME_BYTES).await?
        {
            framed::write(&mut send, &renew(context, &node, &request).await).await?;
            let _ = send.finish();
            let _ = send.stopped().await;
        }
        Ok::<_, StreamError>(())
    };
    let _ = tokio::time::timeout(REQUEST_DEADLINE, answer).await;
    connection.close(0u32.into(), b"renewal only");
}

/// A new certificate for the key of this very connection, and for no other.
pub(super) async fn renew(context: &NodeContext, node: &NodeId, request: &Renew) -> Message {
    let no = |error_type, message: String| Message::Failed(ApiError::new(error_type, message));
    let issued = match context
        .authority
        .sign_node(&request.signing_request, context.clock.now())
    {
        Ok(issued) => issued,
        Err(error) => return no(ErrorType::InvalidRequest, error.to_string()),
    };
    if issued.node_id != *node {
        return no(
            ErrorType::NotPermitted,
            "a node renews the certificate of its own key".to_owned(),
        );
    }
    let certificate = issued.certificate.der.clone();
    match context
        .state
        .store_certificate(node.clone(), issued.certificate)
        .await
    {
        Ok(()) => Message::Renewed(Renewed { certificate }),
        Err(error) => Message::Failed(error.into()),
    }
}
