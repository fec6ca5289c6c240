//! Pairing without a link: ask the gateway, show six words, and wait until somebody there has
//! compared and approved them.
//!
//! Whoever answers at the address is not known yet. It is told what may be told to anybody:
//! a public key, a commitment and then a nonce, the machine's name and the agent's version.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use quinn::{Connection, ConnectionError, Endpoint, RecvStream};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::pki_types::CertificateDer;
use tidings_protocol::digest::sha256;
use tidings_protocol::pairing::{NodeSide, Nonce, PairingWords};
use tidings_protocol::wire::Message;
use tidings_protocol::wire::messages::{Ask, NonceOf};

use super::identity::{IdentityFileError, NodeIdentity, NodeKey, signing_request};
use super::join::{JOIN_DEADLINE, JoinError, connect, identity_of};
use super::tls::{Trust, public_key_of};
use super::transport::CONTROL_FRAME_BYTES;
use crate::clock::Clock;
use crate::framed::{self, StreamError};

/// How long somebody may take to approve: the gateway gives up a little earlier, and says so.
pub const APPROVAL_DEADLINE: Duration = Duration::from_mins(11);

/// A machine that has asked and waits.
#[derive(Debug)]
pub struct Asking {
    endpoint: Endpoint,
    connection: Connection,
    receive: RecvStream,
    key: NodeKey,
    words: PairingWords,
    authority_pin: [u8; 32],
    address: String,
}

impl Asking {
    /// Asks the gateway at `address`, `host:port`. The machine's key is kept in `dir`.
    pub async fn ask(
        address: &str,
        machine_name: &str,
        dir: &Path,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, JoinError> {
        if let Ok(identity) = NodeIdentity::load(dir) {
            return Err(identity.into());
        }
        let (endpoint, connection) = connect(address, Trust::Shown, clock).await?;
        let authority_key = authority_key_of(&connection)?;
        let key = NodeKey::load_or_create(dir)?;
        let side = NodeSide::new(key.public_key(), fresh_nonce()?);
        let ask = Message::Ask(Ask {
            signing_request: signing_request(&key)?,
            commitment: side.commitment(),
            machine_name: machine_name.to_owned(),
            agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        });
        let exchange = async {
            let (mut send, mut receive) = connection.open_bi().await.map_err(lost)?;
            framed::write(&mut send, &ask).await?;
            let Message::Nonce(NonceOf { nonce }) = answer(&mut receive).await? else {
                return Err(another_kind());
            };
            let (nonce, words) = side.reveal(&authority_key, &nonce);
            framed::write(&mut send, &Message::Reveal(NonceOf { nonce })).await?;
            let Message::Shown {} = answer(&mut receive).await? else {
                return Err(another_kind());
            };
            Ok((receive, words))
        };
        let (receive, words) = tokio::time::timeout(JOIN_DEADLINE, exchange)
            .await
            .map_err(|_| JoinError::Answer("none came in time"))??;
        Ok(Self {
            endpoint,
            connection,
            receive,
            key,
            words,
            authority_pin: sha256(&authority_key),
            address: address.to_owned(),
        })
    }

    /// What this machine shows.
    pub fn words(&self) -> PairingWords {
        self.words
    }

    /// Who this machine will be.
    pub fn node_id(&self) -> tidings_protocol::NodeId {
        self.key.node_id()
    }

    /// Waits for approval. The identity is not kept yet: see [`NodeIdentity::save`].
    pub async fn approved(mut self) -> Result<NodeIdentity, JoinError> {
        let answer = tokio::time::timeout(APPROVAL_DEADLINE, answer(&mut self.receive))
            .await
            .map_err(|_| JoinError::Answer("none came in time"))??;
        let Message::Joined(joined) = answer else {
            return Err(another_kind());
        };
        self.connection.close(0u32.into(), b"done");
        self.endpoint.wait_idle().await;
        identity_of(joined, self.key, &self.authority_pin, self.address)
    }
}

/// The gateway's next word; a refusal is an error.
async fn answer(receive: &mut RecvStream) -> Result<Message, JoinError> {
    match framed::read(receive, CONTROL_FRAME_BYTES).await? {
        Some(Message::Refused(refused)) => Err(JoinError::Refused(refused)),
        Some(message) => Ok(message),
        None => Err(StreamError::Torn.into()),
    }
}

fn another_kind() -> JoinError {
    JoinError::Answer("it is of another kind")
}

fn lost(error: ConnectionError) -> JoinError {
    JoinError::Stream(StreamError::Io(error.into()))
}

/// The key of the authority behind the certificate that the other side has shown. The
/// handshake has verified that it stands behind it.
fn authority_key_of(connection: &Connection) -> Result<Vec<u8>, JoinError> {
    let chain = connection
        .peer_identity()
        .and_then(|chain| chain.downcast::<Vec<CertificateDer<'static>>>().ok());
    let authority = chain.as_ref().and_then(|chain| chain.get(1));
    let authority = authority.ok_or(JoinError::Answer("it shows no authority"))?;
    Ok(public_key_of(authority)?.0)
}

fn fresh_nonce() -> Result<Nonce, IdentityFileError> {
    let mut nonce = [0; 32];
    SystemRandom::new()
        .fill(&mut nonce)
        .map_err(|_| IdentityFileError::Key("the system gives no random numbers".to_owned()))?;
    Ok(nonce)
}
