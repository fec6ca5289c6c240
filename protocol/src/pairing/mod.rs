//! Pairing by approval: two machines that know nothing of each other, and two people (or one
//! between two screens) who compare six words.
//!
//! ```text
//! node     → gateway   ask     its key (a signing request), a commitment to its nonce
//! gateway  → node      nonce   the gateway's nonce
//! node     → gateway   reveal  the node's nonce, which must be the one committed to
//! gateway  → node      shown   people at the gateway see the request from now on
//! ```
//!
//! Both then show the words over both keys and both nonces. Whoever stands between speaks to
//! each side under a key of its own, so each side has other words unless it finds nonces that
//! make them the same. It cannot search for them: towards the gateway it has bound itself to
//! its nonce before it learns the gateway's, and the node's it learns only after it has named
//! its own. So each request is one guess in 2⁴⁸, and the gateway counts requests.

mod words;

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::digest::sha256;
pub use words::WORDS;

/// How many words are compared.
pub const WORDS_SHOWN: usize = 6;

/// Random bytes of one side, new for every request.
pub type Nonce = [u8; 32];

/// A digest that binds a node to its nonce without telling it.
pub type Commitment = [u8; 32];

/// The six words of one request, as both sides show them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct PairingWords([u8; WORDS_SHOWN]);

/// The revealed nonce is not the one that was committed to: somebody tries out nonces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the nonce is not the one that was committed to")]
pub struct CommitmentBroken;

/// Why a text is not six words of the list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WordsError {
    /// Not six.
    #[error("these are not {WORDS_SHOWN} words")]
    Count,
    /// One is not in the list.
    #[error("{0} is none of the words")]
    Unknown(String),
}

/// The node's side, from its first word on.
#[derive(Debug)]
pub struct NodeSide {
    node_key: Vec<u8>,
    nonce: Nonce,
}

/// The gateway's side, from the node's first word on.
#[derive(Debug)]
pub struct GatewaySide {
    node_key: Vec<u8>,
    commitment: Commitment,
    nonce: Nonce,
}

impl NodeSide {
    /// A node that holds the key with this SubjectPublicKeyInfo, with a fresh nonce.
    #[must_use]
    pub fn new(node_key: Vec<u8>, nonce: Nonce) -> Self {
        Self { node_key, nonce }
    }

    /// What it sends first.
    pub fn commitment(&self) -> Commitment {
        commit(&self.node_key, &self.nonce)
    }

    /// Once the gateway with this key has named its nonce: the node's own, to be sent now,
    /// and the words to show.
    #[must_use]
    pub fn reveal(self, gateway_key: &[u8], gateway_nonce: &Nonce) -> (Nonce, PairingWords) {
        let words = PairingWords::of(&self.node_key, gateway_key, &self.nonce, gateway_nonce);
        (self.nonce, words)
    }
}

impl GatewaySide {
    /// A gateway that a node with this key has asked, with a nonce made after that.
    #[must_use]
    pub fn new(node_key: Vec<u8>, commitment: Commitment, nonce: Nonce) -> Self {
        Self {
            node_key,
            commitment,
            nonce,
        }
    }

    /// The gateway's nonce, to be sent.
    pub fn nonce(&self) -> &Nonce {
        &self.nonce
    }

    /// The words to show, once the node has revealed its nonce.
    pub fn revealed(
        self,
        gateway_key: &[u8],
        node_nonce: &Nonce,
    ) -> Result<PairingWords, CommitmentBroken> {
        if commit(&self.node_key, node_nonce) != self.commitment {
            return Err(CommitmentBroken);
        }
        let words = PairingWords::of(&self.node_key, gateway_key, node_nonce, &self.nonce);
        Ok(words)
    }
}

impl PairingWords {
    fn of(node_key: &[u8], gateway_key: &[u8], node_nonce: &Nonce, gateway_nonce: &Nonce) -> Self {
        // Every part has a fixed length: nothing can be moved from one to the next.
        let digest = sha256(
            &[
                &b"tidings pairing words"[..],
                &sha256(node_key),
                &sha256(gateway_key),
                node_nonce,
                gateway_nonce,
            ]
            .concat(),
        );
        let mut words = [0; WORDS_SHOWN];
        words.copy_from_slice(&digest[..WORDS_SHOWN]);
        Self(words)
    }
}

fn commit(node_key: &[u8], nonce: &Nonce) -> Commitment {
    sha256(&[&b"tidings pairing commitment"[..], &sha256(node_key), nonce].concat())
}

impl fmt::Display for PairingWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.0.map(|byte| WORDS[usize::from(byte)]);
        f.write_str(&words.join(" "))
    }
}

impl fmt::Debug for PairingWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PairingWords {
    type Err = WordsError;

    /// Reads six words, whatever their case and whatever stands between them.
    fn from_str(text: &str) -> Result<Self, WordsError> {
        let text = text.to_ascii_lowercase();
        let words: Vec<&str> = text
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty())
            .collect();
        let words: [&str; WORDS_SHOWN] = words.try_into().map_err(|_| WordsError::Count)?;
        let mut numbers = [0; WORDS_SHOWN];
        for (number, word) in numbers.iter_mut().zip(words) {
            let unknown = || WordsError::Unknown(word.chars().take(16).collect());
            *number = words::number_of(word).ok_or_else(unknown)?;
        }
        Ok(Self(numbers))
    }
}

impl TryFrom<String> for PairingWords {
    type Error = WordsError;

    fn try_from(text: String) -> Result<Self, WordsError> {
        text.parse()
    }
}

impl From<PairingWords> for String {
    fn from(words: PairingWords) -> Self {
        words.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NODE: &[u8] = b"the node's key";
    const GATEWAY: &[u8] = b"the gateway's key";

    /// What both sides of one exchange show.
    fn exchange(node_nonce: Nonce, gateway_nonce: Nonce) -> (PairingWords, PairingWords) {
        let node = NodeSide::new(NODE.to_vec(), node_nonce);
        let gateway = GatewaySide::new(NODE.to_vec(), node.commitment(), gateway_nonce);
        let (revealed, on_node) = node.reveal(GATEWAY, gateway.nonce());
        let on_gateway = gateway.revealed(GATEWAY, &revealed).expect("committed to");
        (on_node, on_gateway)
    }

    #[test]
    fn both_sides_show_the_same_words_and_each_part_decides_them() {
        let (node, gateway) = exchange([1; 32], [2; 32]);
        assert_eq!(node, gateway);
        let other = [
            exchange([3; 32], [2; 32]).0,
            exchange([1; 32], [3; 32]).0,
            PairingWords::of(b"another key", GATEWAY, &[1; 32], &[2; 32]),
            PairingWords::of(NODE, b"another key", &[1; 32], &[2; 32]),
            PairingWords::of(GATEWAY, NODE, &[1; 32], &[2; 32]),
            PairingWords::of(NODE, GATEWAY, &[2; 32], &[1; 32]),
        ];
        for words in other {
            assert_ne!(words, node);
        }
    }

    #[test]
    fn a_nonce_that_was_not_committed_to_is_refused() {
        let node = NodeSide::new(NODE.to_vec(), [1; 32]);
        let gateway = || GatewaySide::new(NODE.to_vec(), node.commitment(), [2; 32]);
        let changed = gateway().revealed(GATEWAY, &[9; 32]);
        assert_eq!(changed, Err(CommitmentBroken));
        // Somebody else's commitment does not serve another key.
        let other = GatewaySide::new(b"another".to_vec(), node.commitment(), [2; 32]);
        assert_eq!(other.revealed(GATEWAY, &[1; 32]), Err(CommitmentBroken));
        assert!(gateway().revealed(GATEWAY, &[1; 32]).is_ok());
    }

    #[test]
    fn words_are_read_as_people_write_them() {
        let (words, _) = exchange([1; 32], [2; 32]);
        let shown = words.to_string();
        assert_eq!(shown.split(' ').count(), WORDS_SHOWN);
        for written in [
            shown.clone(),
            shown.to_uppercase(),
            shown.replace(' ', "-"),
            format!(" {}\n", shown.replace(' ', ", ")),
        ] {
            assert_eq!(written.parse(), Ok(words), "{written}");
        }
        let (five, last) = shown.rsplit_once(' ').expect("words");
        for (text, error) in [
            (String::new(), WordsError::Count),
            (five.to_owned(), WordsError::Count),
            (format!("{shown} {last}"), WordsError::Count),
            (
                format!("{five} saddle"),
                WordsError::Unknown("saddle".to_owned()),
            ),
        ] {
            assert_eq!(text.parse::<PairingWords>(), Err(error), "{text}");
        }
    }

    proptest! {
        #[test]
        fn honest_sides_always_agree_and_words_read_back(node: [u8; 32], gateway: [u8; 32]) {
            let (on_node, on_gateway) = exchange(node, gateway);
            prop_assert_eq!(on_node, on_gateway);
            prop_assert_eq!(on_node.to_string().parse(), Ok(on_node));
        }

        #[test]
        fn arbitrary_text_never_panics(text in ".{0,200}") {
            let _ = text.parse::<PairingWords>();
        }
    }
}
